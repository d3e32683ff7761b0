//! The built-in demo model: shows the whole handshake without an account, a key or a network.
//!
//! It plays the scenes of its script and is not clever. The same messages give the same reply, so that a demo can be replayed and
//! a turn resumed after a crash. What it reports comes from the results of its calls.

mod log;
mod script;
mod summary;

use countersign_agent::domain::ToolCall;
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use serde_json::{Value, json};

use self::log::{Call, Log, Owed, section, unescaped};
use self::script::{EVERY_FILE, Line, OUTPUT, READ, SCENES, Scene, Step, Tongue};

/// Files that one summary takes in.
const MAX_FILES: usize = 8;
const MAX_GOAL_CHARS: usize = 500;
const MAX_QUOTE_CHARS: usize = 200;

/// The demo model. Everything it says is labelled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl ChatModel for Demo {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(std::future::ready(Ok(answer(request))))
    }

    fn is_demo(&self) -> bool {
        true
    }
}

fn answer(request: &ChatRequest) -> ChatReply {
    let log = Log::of(&request.messages);
    let (before, tongue) = (log.calls_so_far, Tongue::of(log.task));
    let mut calls = match Actor::new(request, log, tongue).next_move() {
        Move::Say(text) => {
            return ChatReply {
                text: tongue.say(script::LABEL, &[]) + &text,
                ..ChatReply::default()
            };
        }
        Move::Call(calls) => calls,
    };
    if !request.parallel_tool_calls {
        calls.truncate(1);
    }
    let calls = (before + 1..).zip(calls).map(|(number, (tool, arguments))| ToolCall {
        id: format!("call_{number}"),
        name: tool.to_owned(),
        arguments: arguments.to_string(),
    });
    ChatReply {
        calls: calls.collect(),
        ..ChatReply::default()
    }
}

enum Move {
    Say(String),
    Call(Vec<(&'static str, Value)>),
}

/// The demo in one turn: the scene it plays, and where it stands in it.
struct Actor<'a> {
    request: &'a ChatRequest,
    log: Log<'a>,
    tongue: Tongue,
    scene: &'static Scene,
    output: String,
}

impl<'a> Actor<'a> {
    fn new(request: &'a ChatRequest, log: Log<'a>, tongue: Tongue) -> Self {
        // In the last call nothing is on offer any more: the plan tells what was.
        let offers = |tool: &&str| match request.tools.as_slice() {
            [] => log.plan.contains(&format!("\"{tool}\"")),
            tools => tools.iter().any(|on_offer| on_offer.name == *tool),
        };
        // The newest words decide: they name a file, or call for a scene, or do neither.
        let words: Vec<_> = log.changes.iter().rev().map(String::as_str).chain([log.task]).collect();
        let named = words.iter().position(|words| named_file(words).is_some());
        let output = named.and_then(|at| named_file(words[at]));
        let newer: String = words[..named.unwrap_or(words.len())].join("\n").to_lowercase();
        let fits = |scene: &&Scene| (scene.triggers.is_empty() || contains_any(&newer, scene.triggers)) && scene.needs.iter().all(offers);
        Self {
            scene: SCENES.iter().find(fits).unwrap_or(&SCENES[SCENES.len() - 1]),
            output: output.unwrap_or_else(|| script::DEFAULT_OUTPUT.to_owned()),
            request,
            log,
            tongue,
        }
    }

    fn next_move(&self) -> Move {
        let last = self.request.messages.last().map_or("", |message| message.content.as_str());
        if last.starts_with("<plan-reflection>\n") {
            return self.reflect(last);
        }
        if let Some((_, steps)) = last.split_once("\nplan:\n")
            && (last.starts_with("<plan-conclusion>\n") || last.starts_with("<turn-limit>\n"))
        {
            return Move::Say(self.conclusion(last.starts_with("<turn-limit>\n"), steps));
        }
        if self.is_one_step() {
            return self.one_step();
        }
        let can_act = !self.request.tools.is_empty();
        match &self.log.owed {
            _ if self.log.plan.is_empty() => self.opening(),
            _ if !can_act => Move::Say(format!("{}\n\n{}", self.say(script::CUT_SHORT, &[]), self.report())),
            Some(Owed::Plan) => self.plan(),
            Some(Owed::Answer(question)) => Move::Say(self.explanation(question)),
            None => self.work(),
        }
    }

    /// No plan yet: small talk, a question, or the plan.
    fn opening(&self) -> Move {
        let task = self.log.task.to_lowercase();
        let bare = task.trim_matches(|c: char| c.is_whitespace() || ".。!！,，~～?？…".contains(c));
        let asks = task.contains(['?', '？']) && !contains_any(&task, script::WORK);
        if self.request.tools.is_empty() {
            Move::Say(self.say(script::NOTHING_DONE, &[]))
        } else if !self.offers("plan") || asks || script::GREETINGS.contains(&bare) {
            Move::Say(self.say(script::HELLO, &[]))
        } else if contains_any(&task, script::ASK_FIRST) && self.log.count("request_user") == 0 {
            let question = self.say(script::WHAT_MATTERS, &[]);
            Move::Call(vec![("request_user", json!({"message": question}))])
        } else {
            self.plan()
        }
    }

    fn plan(&self) -> Move {
        let steps = self.scene.steps.iter().enumerate();
        let steps: Vec<_> = steps
            .map(|(at, step)| json!({"id": id(at), "content": self.content(at), "tools": tools(step), "calls": self.declared(step)}))
            .collect();
        let goal: String = self.log.task.chars().take(MAX_GOAL_CHARS).collect();
        let arguments = json!({"overall_goal_ui": goal, "complexity": "complex", "internal_plan": {"steps": steps}});
        Move::Call(vec![("plan", arguments)])
    }

    /// The calls of a step that change something.
    fn declared(&self, step: &Step) -> Vec<Value> {
        let writes = step.calls.iter().filter(|(tool, _)| *tool == "write_file");
        writes
            .map(|(tool, path)| json!({"tool": tool, "arguments": {"path": path.replace(OUTPUT, &self.output)}}))
            .collect()
    }

    /// The words of a step. A change becomes part of the step that makes the result, in the person's own words.
    fn content(&self, at: usize) -> String {
        let mut content = self.say(self.scene.steps[at].words, &[&self.output]);
        if at == 1 {
            let changes = self.log.changes.iter();
            content.extend(changes.map(|change| self.say(script::CHANGED, &[&one_line(change)])));
        }
        content
    }

    /// The answer to a question about the plan.
    fn explanation(&self, question: &str) -> String {
        let steps = self.scene.steps.iter().enumerate().map(|(at, step)| match tools(step) {
            tools if tools.is_empty() => format!("{}. {}", id(at), self.content(at)),
            tools => format!("{}. {} [{}]", id(at), self.content(at), tools.join(", ")),
        });
        let (question, steps) = (one_line(question), steps.collect::<Vec<_>>().join("\n"));
        if self.scene.needs.contains(&"write_file") {
            self.say(script::ABOUT_WRITING, &[&question, &self.output, &steps])
        } else {
            self.say(script::ABOUT_READING, &[&question, &steps])
        }
    }

    /// The plan may be carried out: the next calls of the step in hand, the report on it, or the last words.
    fn work(&self) -> Move {
        let steps = self.scene.steps;
        let at = self.log.count("plan_progress");
        if self.offers("clarify") && self.log.count("clarify") == 0 {
            let criteria = [self.content(steps.len() - 1)];
            let arguments = json!({
                "task_id": id(0), "task_goal_ui": self.content(0), "success_criteria": criteria, "needs_user_input": false,
            });
            return Move::Call(vec![("clarify", arguments)]);
        }
        let at = if self.log.nudged { steps.len() - 1 } else { at };
        let Some(step) = steps.get(at) else {
            return Move::Say(self.report());
        };
        let calls = self.calls(step);
        if !calls.is_empty() {
            return Move::Call(calls);
        }
        // A step that failed is told about but never reported as done.
        let outcome = self.outcome(step);
        let mut arguments = json!({});
        if outcome.is_ok() {
            arguments["step_id"] = json!(id(at));
        }
        let summary = outcome.unwrap_or_else(|failure| failure);
        arguments["step_summary"] = json!(summary.lines().next());
        if at + 1 < steps.len() {
            arguments["next_step"] = json!(self.content(at + 1));
        } else {
            arguments["plan_status"] = json!("completed");
        }
        Move::Call(vec![("plan_progress", arguments)])
    }

    /// The calls of `step` that come next. None are left when it is over, however it went: the demo never insists.
    fn calls(&self, step: &Step) -> Vec<(&'static str, Value)> {
        let reads_back = step.calls.first() == Some(&("read_file", OUTPUT));
        let first = if reads_back || !self.offers("list_files") {
            &[]
        } else {
            READ.calls
        };
        for (tool, path) in first.iter().chain(step.calls) {
            let calls = match (*tool, *path) {
                ("read_file", EVERY_FILE) => self.unread(),
                // In plan mode the write stands in the log of the step before.
                ("read_file", OUTPUT) if !self.is_one_step() && self.written().is_none_or(Call::failed) => Vec::new(),
                ("write_file", _) if self.sources().is_empty() => Vec::new(),
                (tool, path) => {
                    let path = path.replace(OUTPUT, &self.output);
                    let made = self.log.last(tool, &path).is_some();
                    if made { Vec::new() } else { vec![path] }
                }
            };
            if !calls.is_empty() {
                return calls.into_iter().map(|path| (*tool, self.arguments(tool, &path))).collect();
            }
        }
        Vec::new()
    }

    fn arguments(&self, tool: &str, path: &str) -> Value {
        let mut arguments = json!({"path": path});
        if tool == "write_file" {
            arguments["content"] = json!(summary::compose(self.tongue, &self.sources()));
        }
        arguments
    }

    /// The text files of the listing (`path<TAB>n bytes` lines) that were not asked for yet, without the demo's own.
    fn unread(&self) -> Vec<String> {
        let listing = self.log.last("list_files", ".").map_or("", |call| call.result);
        let paths = listing.lines().filter_map(|line| line.split_once('\t').map(|(path, _)| path));
        paths
            .filter(|path| [".md", ".csv", ".txt"].iter().any(|end| path.ends_with(end)))
            .filter(|path| *path != self.output && !path.starts_with('.'))
            .take(MAX_FILES)
            .filter(|path| self.log.last("read_file", path).is_none())
            .map(str::to_owned)
            .collect()
    }

    /// Path and text of the files that were really read.
    fn sources(&self) -> Vec<(&str, &str)> {
        let read = self.log.calls.iter().filter(|call| call.tool == "read_file" && !call.failed());
        read.map(|call| (call.text("path"), call.result))
            .filter(|(path, _)| *path != self.output)
            .collect()
    }

    fn written(&self) -> Option<&Call<'a>> {
        self.log.last("write_file", &self.output)
    }

    /// What came of `step`, or why it failed, by the results of its calls.
    fn outcome(&self, step: &Step) -> Result<String, String> {
        match step.calls.first().map(|(tool, _)| *tool) {
            Some("list_files") => {
                let sources = self.sources();
                let paths: Vec<_> = sources.iter().map(|(path, _)| format!("`{path}`")).collect();
                let mut read = self.say(script::FILES_READ, &[&paths.join(", ")]);
                if sources.is_empty() {
                    read = self.say(script::NOTHING_READ, &[]);
                }
                let reads = self.log.calls.iter().filter(|call| call.tool == "read_file");
                let failed = reads.filter(|call| call.failed() && call.text("path") != self.output).count();
                if failed > 0 {
                    read.push(' ');
                    read.push_str(&self.say(script::FILES_UNREADABLE, &[&failed.to_string()]));
                }
                if sources.is_empty() {
                    return Err(read);
                }
                Ok(format!("{read}\n\n{}", summary::overview(self.tongue, &sources)))
            }
            Some("write_file") => match self.written() {
                None => Err(self.say(script::NOT_DONE, &[&self.output])),
                Some(call) if call.failed() => {
                    let why = call.result.strip_prefix("error: ").unwrap_or(call.result);
                    Err(self.say(script::NOT_WRITTEN, &[&one_line(why)]))
                }
                Some(call) => {
                    let size = call.result.trim_end().split_once(": ").map_or("", |(_, size)| size);
                    Ok(self.say(script::WRITTEN, &[&self.output, size]))
                }
            },
            Some(_) => {
                let back = self.log.last("read_file", &self.output).filter(|call| !call.failed());
                let Some(back) = back else {
                    return Err(self.say(script::NOT_READ_AGAIN, &[&self.output]));
                };
                let written = self.written().map(|call| call.text("content").trim_end());
                Ok(match written {
                    None => self.say(script::READ_AGAIN, &[&self.output, &back.result.lines().count().to_string()]),
                    Some(text) if text == back.result.trim_end() => self.say(script::READ_AGAIN_SAME, &[&self.output]),
                    Some(_) => self.say(script::READ_AGAIN_OTHER, &[&self.output]),
                })
            }
            None if self.scene.needs.is_empty() => Ok(self.say(script::NO_TOOLS, &[])),
            None => {
                let points = summary::first_points(&self.sources());
                let told = format!("{}\n\n{points}", self.say(script::NO_FILE_WRITTEN, &[]));
                Ok(told.trim_end().to_owned())
            }
        }
    }

    /// The last words: what came of every step, and what was left out.
    fn report(&self) -> String {
        let steps = self.scene.steps.iter();
        let mut parts: Vec<_> = steps.map(|step| self.outcome(step).unwrap_or_else(|failure| failure)).collect();
        parts.dedup();
        parts.extend(self.log.mail.iter().map(|mail| self.say(script::MAIL, &[&one_line(mail)])));
        parts.join("\n\n")
    }

    /// Plan mode: one step, known by the tools that its brief declares.
    fn one_step(&self) -> Move {
        let declared = section(self.log.task, "declared tools:");
        let mut steps = SCENES.iter().flat_map(|scene| scene.steps);
        let step = steps.find(|step| tools(step).join(", ") == declared).unwrap_or(&script::TELL);
        let calls = self.calls(step);
        if !calls.is_empty() {
            return Move::Call(calls);
        }
        match self.outcome(step) {
            Ok(done) => Move::Say(done),
            Err(why) => Move::Call(vec![("plan_progress", json!({"step_status": "failed", "step_summary": why}))]),
        }
    }

    /// Plan mode: a step has ended, and the plan stays as it is.
    fn reflect(&self, block: &str) -> Move {
        let failed = block.contains("\nstep that has just ended:\n  [failed] ");
        let reason = self.say(if failed { script::STEP_FAILED } else { script::STEP_DONE }, &[]);
        Move::Say(json!({"outcome": "continue", "reason": reason}).to_string())
    }

    /// Plan mode: every step with what came of it. A block has `  [status] 1. (step_id x) words`, and the result below, further in.
    fn conclusion(&self, cut_short: bool, steps: &str) -> String {
        let label = self.say(script::LABEL, &[]);
        let mut told = self.say(if cut_short { script::CUT_SHORT } else { script::CARRIED_OUT }, &[]);
        for line in steps.lines().filter(|line| !line.trim().is_empty()) {
            if let Some((status, step)) = line.strip_prefix("  [").and_then(|line| line.split_once("] ")) {
                let sign = script::SIGNS
                    .iter()
                    .find(|(known, _)| *known == status)
                    .map_or("○", |(_, sign)| sign);
                let words = step.split_once(") ").map_or(step, |(_, words)| words);
                told.push_str(&format!("\n- {sign} {words}"));
            } else if let Some(more) = line.strip_prefix("          ") {
                told.push_str(&format!("\n  {more}"));
            } else if let Some((_, result)) = line.strip_prefix("      ").and_then(|line| line.split_once(": ")) {
                told.push_str(&format!(": {}", result.strip_prefix(&label).unwrap_or(result)));
            }
        }
        unescaped(&told)
    }

    /// Plan mode: is this the log of one step?
    fn is_one_step(&self) -> bool {
        self.log.task.starts_with("<plan-step>\n")
    }

    fn offers(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|on_offer| on_offer.name == tool)
    }

    fn say(&self, line: Line, parts: &[&str]) -> String {
        self.tongue.say(line, parts)
    }
}

fn id(at: usize) -> String {
    (at + 1).to_string()
}

fn tools(step: &Step) -> Vec<&'static str> {
    step.calls.iter().map(|(tool, _)| *tool).collect()
}

fn contains_any(words: &str, list: &[&str]) -> bool {
    list.iter().any(|word| words.contains(word))
}

/// Somebody's words on one line, short enough to be quoted.
fn one_line(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The last `….md` or `….txt` that is to be written: "写到 `brief.md`", "save it as brief.md". Never outside the workspace.
fn named_file(words: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let mut before = String::new();
    let mut named = None;
    for piece in words.split_inclusive(|c| !is_name(c)) {
        let name = piece.trim_end_matches(|c| !is_name(c) || c == '.');
        let lead = before.trim_end_matches(|c: char| c.is_whitespace() || "`\"'“「《".contains(c));
        let is_output = script::BEFORE_OUTPUT.iter().any(|word| lead.ends_with(word));
        let is_inside = !name.starts_with(['/', '.']) && !name.contains("..") && !name.contains("//");
        if is_output && is_inside && (name.ends_with(".md") || name.ends_with(".txt")) {
            named = Some(name.to_owned());
        }
        before.push_str(&piece.to_lowercase());
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: only a file that is to be written is the output, never one that is to be read, and none outside the workspace.
    #[test]
    fn words_name_the_output() {
        for (words, name) in [
            ("写到 brief.md", Some("brief.md")),
            ("汇总写入`out/周`", None),
            ("请改为写到“out/brief.md”。", Some("out/brief.md")),
            ("Save it as brief.md.", Some("brief.md")),
            ("put it in notes/week.txt please", Some("notes/week.txt")),
            ("不要写到 a.md，写到 b.md", Some("b.md")),
            ("read tasks.csv and notes.md", None),
            ("write to ../x.md", None),
            ("write to /etc/x.md", None),
        ] {
            assert_eq!(named_file(words).as_deref(), name, "{words}");
        }
    }
}
