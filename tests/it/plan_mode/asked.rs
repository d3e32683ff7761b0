//! What a request of plan mode is about, and models that are pure functions of it.

use serde_json::{Value, json};

use crate::support::fake_model::{call, say};

/// What the model is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A plan.
    Plan,
    /// A step, by its number; and how many of its calls are answered.
    Step(String, usize),
    /// A look at the plan, after so many others.
    Reflection(usize),
    /// The last words.
    Conclusion,
}

/// Reads a request.
pub fn asked(request: &Value) -> Asked {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let last = text(messages.last().unwrap());
    if last.starts_with("<plan-reflection>\n") {
        let looks = messages.iter().filter(|message| text(message).starts_with("<plan-reflection>\n"));
        return Asked::Reflection(looks.count() - 1);
    }
    if last.starts_with("<plan-conclusion>\n") {
        return Asked::Conclusion;
    }
    let Some(brief) = messages.iter().rposition(|message| text(message).starts_with("<plan-step>\n")) else {
        return Asked::Plan;
    };
    let words = text(&messages[brief]);
    let number = words.split("\nstep ").last().unwrap().split(" of ").next().unwrap().to_owned();
    let answered = messages[brief..].iter().filter(|message| message["role"] == "tool").count();
    Asked::Step(number, answered)
}

/// The answer to a reflection.
pub fn outcome(outcome: &str, more: &Value) -> Value {
    let mut object = json!({ "outcome": outcome, "reason": "笔记里还提到了别的事" });
    for (name, value) in more.as_object().unwrap() {
        object[name] = value.clone();
    }
    say(&object.to_string())
}

/// The plan goes on as it is.
pub fn goes_on() -> Value {
    outcome("continue", &json!({}))
}

/// Writes `name`.
pub fn writes(name: &str) -> Value {
    call([("write_file", json!({ "path": name, "content": format!("内容 {name}\n") }))])
}
