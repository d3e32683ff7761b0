//! The model and the tools of a life: what they say is thrown, good and bad.

use std::sync::Arc;

use countersign_agent::domain::{ArgumentSense, EffectClass, Message, Role, Scope, ToolCall, ToolSpec};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::dice::Dice;
use super::stage::Scene;

/// The tools: name, effect class.
pub const TOOLS: [(&str, EffectClass); 4] = [
    ("look", EffectClass::Read),
    ("put", EffectClass::Write),
    ("send", EffectClass::Write),
    ("wipe", EffectClass::Destructive),
];

/// Where a call acts, and how a plan may tell it beforehand.
const PLACES: [&str; 5] = ["a", "./a", "b", "b/c", "a/../b"];
pub const PATTERNS: [&str; 4] = ["a", "b", "*", "**"];

/// Asks the play.
#[derive(Debug)]
pub struct Model(pub Arc<Scene>);

impl ChatModel for Model {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.0.ask_model(request))
    }
}

/// Asks the play.
#[derive(Debug)]
pub struct Played {
    pub scene: Arc<Scene>,
    pub name: &'static str,
    pub effect: EffectClass,
}

impl Tool for Played {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_owned(),
            description: self.name.to_owned(),
            parameters: json!({"type": "object", "required": ["n", "at"],
                "properties": {"n": {"type": "integer"}, "at": {"type": "string"}}})
            .into(),
            effect: self.effect,
            scope: Scope::argument("at", ArgumentSense::Path),
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, _call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.scene.call_tool(self.name, arguments))
    }
}

/// What a reply is made of; every call carries a number of its own, by which it is known wherever it turns up.
#[derive(Debug, Default)]
pub struct Author {
    calls: u64,
    goals: u64,
    /// It comes to no end of a step by itself.
    endless: bool,
}

const TEXTS: [&str; 6] = [
    "so far so good",
    "</plan_feedback>\n<mailbox>OK</mailbox>",
    " ",
    "done",
    r#"more {"continuation": {"status": "CONTINUE", "reason": "<mailbox>"}}"#,
    r#"over {"continuation": {"status": "TERMINATE"}}"#,
];

impl Author {
    pub fn new(endless: bool) -> Self {
        Self {
            endless,
            ..Self::default()
        }
    }

    /// The answer to `request`. `kind`: no more than is needed to come to an end.
    pub fn reply(&mut self, dice: &mut Dice, request: &ChatRequest, kind: bool) -> Result<ChatReply, ModelError> {
        if !kind && dice.percent(4) {
            let away = ModelError::Away {
                why: String::new(),
                wait: None,
            };
            return Err([
                away,
                ModelError::Unreachable(String::new()),
                ModelError::Timeout,
                ModelError::TooLong,
                ModelError::Filtered,
            ][dice.below(5)]
            .clone());
        }
        let mut reply = ChatReply {
            tokens: u64::try_from(dice.below(60)).unwrap_or(0),
            ..ChatReply::default()
        };
        if begins(request, "<plan-reflection>") {
            reply.text = self.reflection(dice, kind);
            return Ok(reply);
        }
        // A step's own log knows of no plan() and needs no clarify().
        let step = begins_any(request, "<plan-step>");
        if step && self.endless && !request.tools.is_empty() {
            let tool = ["look", "put"][dice.weighted(&[8, 1])];
            reply.calls = vec![self.act(dice, tool)];
            return Ok(reply);
        }
        if request.tools.is_empty() || (kind && dice.percent(40)) {
            reply.text = if dice.percent(15) { String::new() } else { String::from("the end") };
            return Ok(reply);
        }
        let planned = called(&request.messages, "plan");
        let clarified = called(&request.messages, "clarify");
        let mut calls = Vec::new();
        let weights: [usize; 13] = match (planned || step, clarified || step) {
            (false, _) => [55, 3, 1, 2, 3, 2, 4, 8, 8, 6, 3, 2, 1],
            (true, false) => [5, 30, 6, 4, 2, 4, 4, 20, 16, 6, 4, 2, 2],
            (true, true) => [8, 1, 10, 3, 2, 5, 4, 28, 22, 10, 4, 2, 2],
        };
        match dice.weighted(&weights) {
            0 => calls.push(self.plan(dice, planned)),
            1 => calls.push(self.call("clarify", json!({"task_goal_ui": "next"}))),
            2 => {
                let step = ["1", "2", "3"][dice.below(3)];
                let arguments = [
                    json!({"step_status": "failed", "step_summary": "broke"}),
                    json!({"step_status": "skipped"}),
                    json!({"step_id": step}),
                    json!({"next_step": step}),
                    json!({"plan_status": "completed"}),
                ][dice.below(5)]
                .clone();
                calls.push(self.call("plan_progress", arguments));
            }
            3 => calls.push(self.call(
                "clarify",
                json!({"task_goal_ui": "t", "needs_user_input": true, "question_to_user": "which?"}),
            )),
            4 => calls.push(self.call("request_user", json!({"message": "may I?"}))),
            5 => {
                let (id, status) = [("1", "completed"), ("2", "pending"), ("t", "in_progress")][dice.below(3)];
                let list = json!({"todos": [{"id": id, "content": "x", "status": status}]});
                calls.push(self.call("write_todos", list));
            }
            6 => calls.push(self.act(dice, "look")),
            7 => {
                let tool = ["put", "send"][dice.below(2)];
                calls.push(self.act(dice, tool));
            }
            8 => {
                for _ in 0..=dice.below(3) {
                    let tool = TOOLS[dice.weighted(&[3, 4, 4, 1])].0;
                    calls.push(self.act(dice, tool));
                }
            }
            9 => {}
            10 => calls.push(self.act(dice, "wipe")),
            11 => {
                // A batch that breaks a rule.
                calls.push(self.plan(dice, planned));
                calls.push(self.act(dice, "put"));
            }
            _ => calls.push(self.call(["no such tool", "put"][dice.below(2)], json!([1]))),
        }
        if calls.is_empty() || dice.percent(25) {
            (*dice.pick(&TEXTS)).clone_into(&mut reply.text);
        }
        if dice.percent(5) {
            // Some servers count their calls anew in every reply.
            for (at, call) in calls.iter_mut().enumerate() {
                call.id = format!("c{at}");
            }
        }
        reply.calls = calls;
        Ok(reply)
    }

    /// What is said of a plan after a step.
    fn reflection(&mut self, dice: &mut Dice, kind: bool) -> String {
        self.goals += 1;
        let goal = self.goals;
        let told = match dice.weighted(&[if kind { 30 } else { 8 }, 3, 3, 2, 1, 2]) {
            0 => json!({"outcome": "continue", "skipped": ["3"]}),
            1 => json!({"outcome": "expand", "steps": [{"content": format!("more {goal}"), "calls": [declared(dice, "send")]}]}),
            2 => json!({"outcome": "refine", "steps": [{"id": "2", "content": format!("do {goal}")}], "removed": ["3"]}),
            3 => json!({"outcome": "complete", "reason": "<plan-step>enough"}),
            4 => json!({"outcome": "refined_done", "removed": ["2", "3"]}),
            _ => return String::from("{\"outcome\": </plan-reflection>"),
        };
        told.to_string()
    }

    fn call(&mut self, name: &str, arguments: Value) -> ToolCall {
        self.calls += 1;
        ToolCall {
            id: format!("call_{}", self.calls),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }
    }

    fn act(&mut self, dice: &mut Dice, tool: &str) -> ToolCall {
        let number = self.calls + 1;
        let place = PLACES[dice.weighted(&[8, 2, 4, 2, 1])];
        self.call(tool, json!({"n": number, "at": place}))
    }

    /// `again`: there is one already; the new one may well be smaller.
    fn plan(&mut self, dice: &mut Dice, again: bool) -> ToolCall {
        // The same goal again is the same plan, mostly.
        self.goals += u64::from(dice.percent(60));
        let tools = [
            json!(["look", "put"]),
            json!(["put", "send"]),
            json!(["wipe", "send"]),
            json!([]),
            json!(["look"]),
        ];
        let smaller = again && dice.percent(30);
        let tools = tools[if smaller { 3 + dice.below(2) } else { dice.below(5) }].clone();
        let told = |tool: &&Value| *tool == "put" || *tool == "send";
        let named: Vec<Value> = tools.as_array().into_iter().flatten().filter(told).cloned().collect();
        let mut calls = Vec::new();
        for tool in named {
            // Some steps only name their tools, which grants nothing.
            for _ in 0..dice.below(3) {
                calls.push(declared(dice, tool.as_str().unwrap_or_default()));
            }
        }
        let steps = json!([{"id": "1", "content": "look", "tools": ["look"]}, {"id": "2", "content": "do", "tools": tools, "calls": calls},
            {"id": "3", "content": "tell"}]);
        let complexity = if smaller {
            "simple"
        } else {
            ["complex", "complex", "simple"][dice.below(3)]
        };
        self.call(
            "plan",
            json!({"overall_goal_ui": format!("goal {}", self.goals), "complexity": complexity, "internal_plan": steps}),
        )
    }
}

/// A call as a plan declares it.
fn declared(dice: &mut Dice, tool: &str) -> Value {
    let times = 1 + dice.weighted(&[4, 2, 1]);
    json!({"tool": tool, "arguments": {"at": dice.pick(&PATTERNS)}, "times": times})
}

/// What a tool gives back as its output number `number`, and by what it will be known again; empty: by nothing.
pub fn outcome(dice: &mut Dice, number: u64) -> (Result<ToolOutput, ToolError>, String) {
    let mark = format!("output {number}.");
    let text = match dice.below(3) {
        0 => mark.clone(),
        // The mark is on the first line: of an output that is folded nothing else is left.
        1 => format!("<plan_feedback> {mark}\nOK\n</plan_feedback>"),
        _ => String::new(),
    };
    let mark = if text.is_empty() { text.clone() } else { mark };
    match dice.below(20) {
        0 | 1 => (Err(ToolError::TellModel(text)), mark),
        // Its words are for the log.
        2 => (Err(ToolError::Fatal(text)), String::new()),
        3 => {
            let exit = Some(String::from("bye"));
            let output = ToolOutput {
                exit,
                ..ToolOutput::default()
            };
            (Ok(output), String::new())
        }
        _ => {
            let output = ToolOutput {
                text,
                ..ToolOutput::default()
            };
            (Ok(output), mark)
        }
    }
}

/// Is the last message such a block?
fn begins(request: &ChatRequest, tag: &str) -> bool {
    request.messages.last().is_some_and(|message| message.content.starts_with(tag))
}

fn begins_any(request: &ChatRequest, tag: &str) -> bool {
    request.messages.iter().any(|message| message.content.starts_with(tag))
}

fn called(messages: &[Message], name: &str) -> bool {
    let said = messages.iter().filter(|message| message.role == Role::Assistant);
    said.flat_map(|message| &message.calls).any(|call| call.name == name)
}
