//! A model that is a function of what it is asked, and a tool that counts.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use countersign_agent::domain::{EffectClass, Role, Scope, ToolCall, ToolSpec};
use countersign_agent::engine::{Agent, AgentBuilder, Ending, OpenGate, Outcome, Task};
use countersign_agent::model::{BoxFuture, ChatModel, ChatReply, ChatRequest, ModelError};
use countersign_agent::tools::{CallHandle, Tool, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// What the model answers.
pub type Answer = fn(&ChatRequest) -> ChatReply;

/// A model in the program itself.
#[derive(Clone)]
pub struct Played {
    pub answer: Answer,
    /// Everything it was asked.
    pub asked: Arc<Mutex<Vec<ChatRequest>>>,
    /// It answers when it may.
    pub may: Arc<Semaphore>,
}

impl fmt::Debug for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Played")
    }
}

impl Played {
    pub fn new(answer: Answer) -> Self {
        Self {
            answer,
            asked: Arc::default(),
            may: Arc::new(Semaphore::new(1000)),
        }
    }

    /// The last request.
    pub fn last(&self) -> ChatRequest {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

impl ChatModel for Played {
    fn chat<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(async {
            self.may.acquire().await.unwrap().forget();
            Ok((self.answer)(request))
        })
    }
}

/// Words.
pub fn says(text: &str) -> ChatReply {
    ChatReply {
        text: text.to_owned(),
        ..ChatReply::default()
    }
}

/// One call.
pub fn calls(request: &ChatRequest, name: &str, arguments: &Value) -> ChatReply {
    all_at_once(request, &[(name, arguments.clone())])
}

/// Several calls.
pub fn all_at_once(request: &ChatRequest, calls: &[(&str, Value)]) -> ChatReply {
    let calls = calls.iter().enumerate().map(|(at, (name, arguments))| ToolCall {
        id: format!("call_{}_{at}", said(request)),
        name: (*name).to_owned(),
        arguments: arguments.to_string(),
    });
    ChatReply {
        calls: calls.collect(),
        ..ChatReply::default()
    }
}

/// A plan of steps with the tools that each declares.
pub fn plans(request: &ChatRequest, steps: &[(&str, &[&str])]) -> ChatReply {
    let steps: Vec<Value> = (1..)
        .zip(steps)
        .map(|(id, (content, tools)): (usize, _)| {
            let calls: Vec<Value> = tools
                .iter()
                .map(|tool| json!({"tool": tool, "arguments": {"text": "**"}, "times": 9}))
                .collect();
            json!({"id": id.to_string(), "content": content, "calls": calls})
        })
        .collect();
    calls(
        request,
        "plan",
        &json!({"overall_goal_ui": "three notes", "complexity": "complex", "internal_plan": steps}),
    )
}

/// How often the model has spoken since the last brief, or at all.
pub fn said(request: &ChatRequest) -> usize {
    let brief = request
        .messages
        .iter()
        .rposition(|message| message.content.starts_with("<plan-step>"));
    let since = &request.messages[brief.unwrap_or(0)..];
    since.iter().filter(|message| message.role == Role::Assistant).count()
}

/// Where plan mode stands, by the last words of ours.
pub enum Stage {
    Plan,
    /// The step's number.
    Step(String),
    Reflect,
    Conclude,
}

pub fn stage(request: &ChatRequest) -> Stage {
    let ours = request.messages.iter().rev().find(|message| message.content.starts_with("<plan-"));
    match ours.map(|message| message.content.as_str()) {
        Some(text) if text.starts_with("<plan-step>") => {
            let number = text.lines().find_map(|line| line.strip_prefix("step ")?.split(' ').next());
            Stage::Step(number.unwrap().to_owned())
        }
        Some(text) if text.starts_with("<plan-reflection>") => Stage::Reflect,
        Some(text) if text.starts_with("<plan-conclusion>") => Stage::Conclude,
        _ => Stage::Plan,
    }
}

/// `note`, a tool that changes something: it keeps what it was given.
#[derive(Clone, Debug)]
pub struct Note {
    pub effect: EffectClass,
    pub kept: Arc<Mutex<Vec<String>>>,
}

impl Note {
    pub fn new(effect: EffectClass) -> Self {
        Self {
            effect,
            kept: Arc::default(),
        }
    }

    pub fn kept(&self) -> Vec<String> {
        self.kept.lock().unwrap().clone()
    }
}

impl Tool for Note {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: String::from("note"),
            description: String::from("keeps a note"),
            parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}).into(),
            effect: self.effect,
            scope: Scope::Every,
        }
    }

    fn run<'a>(&'a self, arguments: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
        self.kept.lock().unwrap().push(text.clone());
        // "exit: …" ends the conversation.
        let exit = text.strip_prefix("exit: ").map(str::to_owned);
        Box::pin(std::future::ready(Ok(ToolOutput {
            text: String::from("kept"),
            exit,
            ..ToolOutput::default()
        })))
    }
}

/// An agent with `note`, whose writes ask nobody unless a test says otherwise.
pub fn agent(model: &Played, note: &Note) -> AgentBuilder {
    Agent::builder(model.clone()).tool(note.clone())
}

/// The gate at which `task` waits now.
pub async fn waits(task: &mut Task) -> OpenGate {
    match task.execute().await.unwrap() {
        Outcome::Waits(gate) => *gate,
        Outcome::Ended(ending) => panic!("it ended: {ending:?}"),
    }
}

/// How `task` ends now.
pub async fn ends(task: &mut Task) -> Ending {
    match task.execute().await.unwrap() {
        Outcome::Ended(ending) => ending,
        Outcome::Waits(gate) => panic!("it waits: {gate:?}"),
    }
}

/// Three notes in plan mode, one a step; every step declares the tool.
pub fn three_notes(request: &ChatRequest) -> ChatReply {
    match stage(request) {
        Stage::Plan => plans(request, &[("first", &["note"]), ("second", &["note"]), ("third", &["note"])]),
        Stage::Step(id) if said(request) == 0 => calls(request, "note", &json!({ "text": id })),
        Stage::Step(id) => says(&format!("{id} is noted")),
        Stage::Reflect => says(r#"{"outcome":"continue","reason":"on the way"}"#),
        Stage::Conclude => says("All three are noted."),
    }
}
