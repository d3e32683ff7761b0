//! A scenario's file, and its recording as a model.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::fake_model::{call, say};

/// One file of `eval/`; its keys are told in `eval/README.md`.
pub(super) struct Scenario {
    pub(super) name: String,
    told: Value,
}

impl Scenario {
    /// All of them, by name.
    pub(super) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval");
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        paths.sort();
        let read = |path: &std::path::PathBuf| Self {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            told: toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        };
        paths.iter().map(read).collect()
    }

    pub(super) fn kind(&self) -> &str {
        self.told["kind"].as_str().unwrap()
    }

    pub(super) fn request(&self) -> &str {
        self.told["request"].as_str().unwrap()
    }

    pub(super) fn settings(&self) -> Vec<(&str, &str)> {
        pairs(&self.told["settings"])
    }

    pub(super) fn files(&self) -> Vec<(String, String)> {
        let files = pairs(&self.told["files"]).into_iter();
        files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    /// Answers to plan reviews, to calls, to a question.
    pub(super) fn person(&self) -> (Vec<&str>, &str, &str) {
        let person = &self.told["person"];
        let plans = words(&person["plan"]);
        (
            if plans.is_empty() { vec!["approve"] } else { plans },
            person["calls"].as_str().unwrap_or("reject"),
            person["question"].as_str().unwrap_or("我不知道，请按你的判断来。"),
        )
    }

    pub(super) fn expect(&self) -> &Value {
        &self.told["expect"]
    }

    pub(super) fn replies(&self) -> &[Value] {
        self.told["replies"].as_array().unwrap()
    }
}

/// The texts of a list; nothing if there is none.
pub(super) fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

fn pairs(map: &Value) -> Vec<(&str, &str)> {
    let pairs = map.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.as_str(), value.as_str().unwrap())).collect()
}

/// A model that says what was recorded, one after the other.
#[derive(Clone)]
pub(super) struct Recorded(Arc<Mutex<Tape>>);

struct Tape {
    replies: Vec<Value>,
    said: usize,
    systems: Vec<String>,
}

impl Recorded {
    pub(super) fn new(replies: &[Value]) -> Self {
        let mut all = Vec::new();
        for reply in replies {
            let times = reply["repeat"].as_u64().unwrap_or(1);
            all.extend((0..times).map(|_| message(reply)));
        }
        Self(Arc::new(Mutex::new(Tape {
            replies: all,
            said: 0,
            systems: Vec::new(),
        })))
    }

    pub(super) fn next(&self, request: &Value) -> Value {
        let mut tape = self.0.lock().unwrap();
        tape.systems.push(request["messages"][0]["content"].as_str().unwrap().to_owned());
        tape.said += 1;
        tape.replies
            .get(tape.said - 1)
            .cloned()
            .unwrap_or_else(|| say("(nothing more is recorded)"))
    }

    /// More was asked than is recorded, or in another language.
    pub(super) fn objections(&self, language: &str) -> Vec<String> {
        let tape = self.0.lock().unwrap();
        let mut found = Vec::new();
        if tape.said > tape.replies.len() {
            found.push(format!("{} replies are recorded, {} were asked for", tape.replies.len(), tape.said));
        }
        let begin = if language == "zh" {
            "你是 Countersign"
        } else {
            "You are Countersign"
        };
        if tape.systems.iter().any(|system| !system.starts_with(begin)) {
            found.push(String::from("a prompt is in the other language"));
        }
        found
    }
}

/// A recorded reply as the server says it.
fn message(reply: &Value) -> Value {
    let of = |name: &str| reply.get(name);
    if let Some(goal) = of("plan") {
        let complexity = of("complexity").cloned().unwrap_or_else(|| json!("complex"));
        return one(
            "plan",
            json!({"overall_goal_ui": goal, "complexity": complexity, "internal_plan": reply["steps"]}),
        );
    }
    if let Some(goal) = of("clarify") {
        return one("clarify", json!({ "task_goal_ui": goal }));
    }
    if let Some(question) = of("ask") {
        return one("request_user", json!({ "message": question }));
    }
    if of("done").is_some() {
        return one("plan_progress", json!({"plan_status": "completed"}));
    }
    for status in ["failed", "skipped"] {
        if let Some(why) = of(status) {
            return one("plan_progress", json!({"step_status": status, "step_summary": why}));
        }
    }
    if let Some(object) = of("reflect") {
        return say(&object.to_string());
    }
    match of("calls") {
        Some(calls) => call(calls.as_array().unwrap().iter().map(|own| {
            let mut arguments = own.clone();
            arguments.as_object_mut().unwrap().remove("tool");
            (own["tool"].as_str().unwrap(), arguments)
        })),
        None => say(reply["say"].as_str().unwrap()),
    }
}

fn one(name: &str, arguments: Value) -> Value {
    call([(name, arguments)])
}
