//! What the agent's own work costs in a long turn: composing a prompt and taking a step at 200 messages, beside writing the same log
//! as JSON. `cargo bench --profile dist --bench agent` prints Markdown; exit status 1 when a limit is passed.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "it prints what it measures, and stops at what cannot be"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use countersign_agent::domain::{EffectClass, Millis, Policy, Scope, ToolCall, ToolResult, ToolSpec};
use countersign_agent::reducer::{Beginning, CallOutcome, Env, Input, ModelReply, Next, Room, Turn, begin, prompt, step};
use countersign_agent::template::Templates;
use serde_json::json;

const MESSAGES: usize = 200;
/// Timed repetitions, after a tenth as many that are not.
const TIMES: usize = 3000;
/// The limits, microseconds.
const PROMPT: f64 = 100.0;
const STEP: f64 = 50.0;
/// Of a continuation, in however long a reply.
const DECISION: f64 = 100_000.0;

fn policy() -> Policy {
    Policy {
        review_enabled: false,
        max_iterations: 1000,
        ..Policy::default()
    }
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, effect| ToolSpec {
        name: name.to_owned(),
        description: format!("{name}: does what its name says to a file of the workspace"),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}).into(),
        effect,
        scope: Scope::Every,
    };
    vec![tool("read_file", EffectClass::Read), tool("write_file", EffectClass::Write)]
}

fn calls(id: usize, name: &str, arguments: &serde_json::Value) -> Input {
    Input::Reply(ModelReply {
        text: String::from("Next I look at the following file, because the one before names it."),
        calls: vec![ToolCall {
            id: format!("call_{id}"),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }],
        tokens: 700,
        millis: 900,
        ..ModelReply::default()
    })
}

/// The model's next look at a file.
fn look(turn: &Turn) -> Input {
    calls(
        turn.log.len(),
        "read_file",
        &json!({"path": format!("notes/{}.md", turn.log.len())}),
    )
}

/// A reply of about 100 KB, in which an object may begin at many places, that asks to go on.
fn goes_on() -> Input {
    let words = "words {of} all \"kinds\" \n".repeat(4_000);
    let signal = json!({"continuation": {"status": "CONTINUE", "reason": "more to read"}});
    Input::Reply(ModelReply {
        text: format!("{words}{signal}"),
        tokens: 700,
        millis: 900,
        ..ModelReply::default()
    })
}

/// What came of it.
fn seen(turn: &Turn) -> Input {
    let Next::RunTools { calls } = &turn.state.next else {
        panic!("{:?}", turn.state.next)
    };
    let text: String = (0..9)
        .map(|line| format!("- 第 {line} 行: ship the report, then ask Zhao Lei about it & the rest\n"))
        .collect();
    let result = ToolResult {
        ok: true,
        exit: None,
        text,
        exit_code: None,
        seconds: 0.1,
        truncated: false,
        attachment: None,
    };
    let outcome = |call: &String| CallOutcome {
        call_id: call.clone(),
        result: Some(result.clone()),
    };
    Input::ToolResults {
        outcomes: calls.iter().map(outcome).collect(),
        millis: 5,
    }
}

/// A turn of a task with eight steps, whose model must now be asked.
fn long_turn(env: &Env<'_>) -> Turn {
    let mut turn = begin(Beginning {
        turn_id: String::from("turn_1"),
        seed: String::from("00112233445566778899aabbccddeeff"),
        task: String::from("请整理笔记并写周报"),
        requester: String::from("ou_u1"),
        group: true,
        policy: policy(),
        demo: false,
    });
    step(&mut turn, env, Input::Start);
    let steps: Vec<_> = (1..=8)
        .map(|id| json!({"id": id.to_string(), "content": format!("第 {id} 步：读取并汇总"), "tools": ["read_file"]}))
        .collect();
    let plan = json!({"overall_goal_ui": "整理笔记", "complexity": "complex", "internal_plan": steps});
    step(&mut turn, env, calls(0, "plan", &plan));
    step(&mut turn, env, calls(1, "clarify", &json!({"task_goal_ui": "读取"})));
    while turn.log.len() < MESSAGES {
        let input = if matches!(turn.state.next, Next::CallModel { .. }) {
            look(&turn)
        } else {
            seen(&turn)
        };
        step(&mut turn, env, input);
    }
    if !matches!(turn.state.next, Next::CallModel { .. }) {
        let input = seen(&turn);
        step(&mut turn, env, input);
    }
    turn
}

/// Median and 99th percentile in microseconds; what `prepare` makes and what `work` leaves behind costs no time.
fn measure<T, R>(mut prepare: impl FnMut() -> T, mut work: impl FnMut(&mut T) -> R) -> (f64, f64) {
    let mut took: Vec<f64> = Vec::with_capacity(TIMES);
    for number in 0..TIMES + TIMES / 10 {
        let mut from = prepare();
        let begun = Instant::now();
        let made = black_box(work(black_box(&mut from)));
        let micros = begun.elapsed().as_secs_f64() * 1e6;
        drop((made, from));
        if number >= TIMES / 10 {
            took.push(micros);
        }
    }
    took.sort_by(f64::total_cmp);
    (took[TIMES / 2], took[TIMES * 99 / 100])
}

fn main() -> ExitCode {
    let (prompts, tools) = (Templates::load(None).unwrap(), tools());
    let env = Env {
        now: Millis(1_760_000_000_000),
        tools: &tools,
        rules: &[],
        standing: None,
        chat: "",
        prompts: &prompts,
    };
    let turn = long_turn(&env);
    let mut asked = turn.clone();
    let reply = look(&turn);
    step(&mut asked, &env, reply.clone());
    let results = seen(&asked);
    let bytes = serde_json::to_string(&turn.log).unwrap().len();
    let json = measure(|| (), |()| serde_json::to_string(&turn.log).unwrap());
    let room = Room::default();
    // Half of what it is: every old output has to go.
    let tight = Room { bytes: bytes / 2, ..room };
    let rows = [
        ("prompt", PROMPT, measure(|| (), |()| prompt(&turn, &env, "", &[], room))),
        (
            "prompt, half of it folded",
            PROMPT,
            measure(|| (), |()| prompt(&turn, &env, "", &[], tight)),
        ),
        (
            "step: the model calls a tool",
            STEP,
            measure(
                || (turn.clone(), Some(reply.clone())),
                |(turn, input)| step(turn, &env, input.take().unwrap()),
            ),
        ),
        (
            "step: the tool's result, with a reminder or without",
            STEP,
            measure(
                || (asked.clone(), Some(results.clone())),
                |(turn, input)| step(turn, &env, input.take().unwrap()),
            ),
        ),
        (
            "step: 100 KB of words with a continuation",
            DECISION,
            measure(
                || (turn.clone(), Some(goes_on())),
                |(turn, input)| step(turn, &env, input.take().unwrap()),
            ),
        ),
    ];
    println!(
        "At {} messages, {} KiB as JSON; {TIMES} times each.\n",
        turn.log.len(),
        bytes / 1024
    );
    println!("| what | median µs | p99 µs | limit µs | median ÷ the log as JSON | |\n|---|---|---|---|---|---|");
    println!(
        "| the log as JSON (`serde_json`), to compare | {:.1} | {:.1} | | 1 | |",
        json.0, json.1
    );
    let mut good = true;
    for (what, limit, (median, p99)) in rows {
        let holds = median < limit;
        good &= holds;
        let verdict = if holds { "holds" } else { "**falls short**" };
        println!(
            "| {what} | {median:.1} | {p99:.1} | {limit:.0} | {:.2} | {verdict} |",
            median / json.0
        );
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
