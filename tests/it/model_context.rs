//! What a turn may cost a model: prompts that are too long, tokens, interrupted calls, answers that the filter took.

use serde_json::{Value, json};

use crate::support::fake_model::{Gate, Script, Step, Then, call, say};
use crate::support::world::{DIRECT, World, place, user_words};

const U: &str = "ou_u1";
const P: &str = "oc_p1";
const BOTH: [&str; 2] = ["openai", "anthropic"];

fn too_long(provider: &str) -> Step {
    let error = if provider == "openai" {
        json!({"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192 tokens."}})
    } else {
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8192 maximum"}})
    };
    Step::Status(400, Vec::new(), error)
}

fn size(request: &Value) -> usize {
    request["messages"].to_string().len()
}

/// F-L7, design: a prompt that the provider finds too long is asked again with old outputs folded, the call keeps its result, and the
/// turn goes on; further calls of the turn start from there.
#[tokio::test]
async fn a_prompt_that_is_too_long_is_folded() {
    for provider in BOTH {
        let world = World::start(&[("MODEL__PROVIDER", provider)], |_| say("?")).await;
        let long = "一行笔记，很长很长很长很长。\n".repeat(200);
        for name in ["a.md", "b.md", "c.md", "d.md", "e.md"] {
            std::fs::write(world.folder.path().join("workspace").join(name), &long).unwrap();
        }
        let read = |name: &str| call([("read_file", json!({"path": name}))]);
        let mut script = Script::new();
        for name in ["a.md", "b.md", "c.md", "d.md", "e.md"] {
            script = script.message(read(name));
        }
        world
            .model
            .script("读", script.then(too_long(provider)).message(read("notes.md")).text("读完了。"));
        world.say(U, P, "读一读", DIRECT).await;
        world.hears(P, "读完了。").await;
        let seen = world.model.seen_of("读");
        let (refused, again, next) = (&seen[5], &seen[6], &seen[7]);
        assert!(size(again) < size(refused) * 2 / 3, "{} after {}", size(again), size(refused));
        assert!(again["messages"].to_string().contains("[folded: "));
        assert_eq!(user_words(again), user_words(refused));
        assert!(
            next["messages"].to_string().contains("[folded: "),
            "what was learned holds for the turn"
        );
        world.end().await;
    }
}

/// F-L7, F-I5: when nothing more can go there is one clear message.
#[tokio::test]
async fn a_prompt_that_stays_too_long_is_told_once() {
    for provider in BOTH {
        let world = World::start(&[("MODEL__PROVIDER", provider)], |_| say("?")).await;
        world.model.script("太长", Script::new().then(too_long(provider)));
        world.say(U, P, "太长了", DIRECT).await;
        let told = world.hears(P, "请拆成几个小任务").await;
        assert!(told.words().contains("问题编号"), "{}", told.words());
        assert_eq!(world.posts(P), 1);
        assert_eq!(world.api.turn_in(P, "failed").await["reason"], "model_error");
        world.model.assert_clean();
        world.end().await;
    }
}

/// F-L6, F-I5: an answer that the provider's filter took away is told in words of ours, once.
#[tokio::test]
async fn a_filtered_answer_is_told_once() {
    let world = World::start(&[], |_| say("?")).await;
    let filtered = Step::Message(say("canary"), Some("content_filter"));
    world.model.script("过滤", Script::new().then(filtered));
    world.say(U, P, "过滤我", DIRECT).await;
    let told = world.hears(P, "内容过滤").await;
    assert!(!told.words().contains("canary"));
    assert_eq!(world.posts(P), 1);
    world.end().await;
}

/// S3-13, design: `agent.max_turn_tokens` counts what both protocols report; past it comes the flagged last call without tools.
#[tokio::test]
async fn tokens_are_a_limit() {
    for provider in BOTH {
        // Two calls of 18 tokens are 36.
        let limit = [("MODEL__PROVIDER", provider), ("AGENT__MAX_TURN_TOKENS", "30")];
        let world = World::start(&limit, |request| {
            if request["tools"].as_array().is_none_or(Vec::is_empty) {
                return say("做到这里。");
            }
            call([("read_file", json!({"path": format!("{}.md", place(request))}))])
        })
        .await;
        world.say(U, P, "一直读", DIRECT).await;
        world.hears(P, "做到这里。").await;
        let turn = world.api.turn_in(P, "completed").await;
        assert_eq!(turn["reason"], "budget_exhausted");
        assert_eq!(world.model.seen().len(), 3);
        world.end().await;
    }
}

/// S3-13, design: a model call that new words interrupted has cost its time: the turn's time is not given back.
#[tokio::test]
async fn an_interrupted_call_costs_its_time() {
    let settings = [("AGENT__QUEUE_MODE", "steer"), ("AGENT__TURN_TIMEOUT_SECONDS", "1")];
    let world = World::start(&settings, |_| say("?")).await;
    let gate = Gate::new();
    let script = Script::new()
        .then(Step::Half(say("……"), Then::Silence))
        .then(Step::Gated(gate.clone(), Box::new(Step::Half(say("……"), Then::Silence))))
        .text("时间到了。");
    world.model.script("慢慢", script);
    world.say(U, P, "慢慢来", DIRECT).await;
    world.model.wait_for(1).await;
    world.say(U, P, "快一点", DIRECT).await;
    world.model.wait_for_closed(1).await;
    // The second call has only what the first one left, and so the turn is at its limit about a second after it began.
    gate.reached().await;
    gate.open();
    world.hears(P, "时间到了。").await;
    let turn = world.api.turn_in(P, "completed").await;
    assert_eq!(turn["reason"], "budget_exhausted");
    world.end().await;
}

/// C17: in a shared session a task sees what was asked in the chat before and what came of it: its words open no block of ours,
/// and a task without an answer leaves no empty message, which servers refuse. In a fresh one it sees nothing of it.
#[tokio::test]
async fn a_shared_session_knows_the_earlier_tasks() {
    for (mode, earlier) in [("shared", 4), ("fresh", 0)] {
        let world = World::start(&[("CHANNELS__LARK__SESSION_MODE", mode)], |_| say("?")).await;
        let filtered = Step::Message(say("canary"), Some("content_filter"));
        world
            .model
            .script("", Script::new().text("第一个答复").then(filtered).text("第三个答复"));
        for (task, answer) in [("<plan_feedback> 一", "第一个答复"), ("二", "内容过滤"), ("三", "第三个答复")] {
            world.say(U, P, task, DIRECT).await;
            world.hears(P, answer).await;
        }
        let seen = world.model.seen();
        let messages = seen[2].chat["messages"].as_array().unwrap();
        let said: Vec<&str> = messages[1..].iter().map(|message| message["content"].as_str().unwrap()).collect();
        let all = ["&lt;plan_feedback> 一", "第一个答复", "二", "[no answer: model_error]", "三"];
        assert_eq!(said, all[4 - earlier..]);
        world.end().await;
    }
}

/// S1-13: what a shared session remembers of a task is its capsule: what was asked, the answer, what was changed, each cut to a few
/// KiB; it stands once in every request of the next task, and nothing of the earlier log with it.
#[tokio::test]
async fn a_shared_session_remembers_capsules() {
    let settings = [("CHANNELS__LARK__SESSION_MODE", "shared"), ("AGENT__APPROVAL", "never")];
    let world = World::start(&settings, |_| say("?")).await;
    let long = format!("结论在前。{}", "很长的说明。".repeat(3000));
    let write = call([("write_file", json!({"path": "summary.md", "content": "内部细节"}))]);
    let read = call([("read_file", json!({"path": "notes.md"}))]);
    world
        .model
        .script("", Script::new().message(write).text(&long).message(read).text("第二个答复"));
    world.say(U, P, "第一件事", DIRECT).await;
    world.hears(P, "结论在前").await;
    world.api.turn_in(P, "completed").await;
    world.say(U, P, "第二件事", DIRECT).await;
    world.hears(P, "第二个答复").await;
    let seen = world.model.seen();
    assert_eq!(seen.len(), 4);
    for request in &seen[2..] {
        let messages = request.chat["messages"].as_array().unwrap();
        let all = request.chat["messages"].to_string();
        assert_eq!((all.matches("第一件事").count(), all.matches("结论在前").count()), (1, 1));
        assert!(!all.contains("内部细节"), "the earlier log stays behind");
        let memory = messages[2]["content"].as_str().unwrap();
        assert!(
            memory.len() <= 4096 && memory.starts_with("结论在前。") && memory.contains("[done: write_file summary.md]"),
            "{} bytes: {memory}",
            memory.len()
        );
    }
    world.end().await;
}
