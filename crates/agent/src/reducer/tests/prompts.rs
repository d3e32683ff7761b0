//! Whole prompts as a model gets them, in both languages.

use serde_json::{Value, json};

use super::plan_mode::{approved, goes_on, planner, reflects, three};
use super::play::{Play, three_steps};
use crate::domain::{DecisionKind, Policy, PromptFeature, PromptLanguage};
use crate::reducer::{Room, prompt};

const LANGUAGES: [(PromptLanguage, &str); 2] = [(PromptLanguage::En, "en"), (PromptLanguage::Zh, "zh")];

/// The next request, to be read: every message under its role.
fn told(play: &Play) -> String {
    let messages = prompt(&play.turn, &play.env(), "We are the release team.", &[], Room::default());
    let mut parts: Vec<String> = Vec::new();
    for message in messages {
        let mut part = format!("==== {:?}\n{}", message.role, message.content);
        for call in &message.calls {
            part.push_str(&format!("\n-> {} {}", call.name, call.arguments));
        }
        parts.push(part);
    }
    parts.join("\n")
}

fn speaks(language: PromptLanguage) -> impl FnOnce(&mut Policy) {
    move |policy| {
        policy.prompt_language = language;
        policy.prompt_features = [PromptFeature::Continuation, PromptFeature::OutputFormat].into();
    }
}

/// S3-1, S3-4, C19: one log with every component and every block that such a turn can hold: a review, a nudge, a reminder, a person's
/// words, the end of the limit.
#[test]
fn one_log() {
    for (language, name) in LANGUAGES {
        let mut play = Play::with(speaks(language));
        play.calls("plan", three_steps());
        play.decides(DecisionKind::Revise, Some("请先读 b.md"));
        play.calls("plan", three_steps()).approves();
        play.calls("clarify", json!({"task_goal_ui": "read"}));
        play.calls("read_file", json!({"path": "a.md"})).tools_answer("ship on Friday");
        play.says("The first note is read.");
        play.calls("plan_progress", json!({"step_id": "1", "step_summary": "read"}));
        play.feed(crate::reducer::Input::Steer("也看看 c.md".into()));
        play.calls("plan", json!({"overall_goal_ui": "x"}));
        insta::assert_snapshot!(format!("one_log-{name}"), told(&play));
    }
}

/// S3-4, S3-6, C19: a required signal, and what is said to a reply that announces more.
#[test]
fn required_signal() {
    for (language, name) in LANGUAGES {
        let mut play = Play::with(|policy| {
            speaks(language)(policy);
            policy.continuation.require_explicit_signal = true;
        });
        let signal = json!({"continuation": {"status": "CONTINUE", "reason": "one file is read"}});
        play.says(&format!("One file is read.\n\n```json\n{signal}\n```"));
        insta::assert_snapshot!(format!("required_signal-{name}"), told(&play));
    }
}

/// S2-4, C19: plan mode from the planner over a step with its brief, a look that cannot be read, to the conclusion.
#[test]
fn plan_mode() {
    for (language, name) in LANGUAGES {
        let show = |part: &str, play: &Play| insta::assert_snapshot!(format!("{part}-{name}"), told(play));
        show("planner", &planner(speaks(language)));
        let mut play = approved(three(), speaks(language));
        play.calls("read_file", json!({"path": "a.md"})).tools_answer("ship on Friday");
        play.calls("read_file", json!({"path": "a.md"}));
        play.says("The notes say: ship on Friday.");
        goes_on(&mut play);
        show("executor", &play);
        play.calls(
            "plan_progress",
            json!({"step_status": "failed", "step_summary": "the folder is read-only"}),
        );
        play.says("words without an object");
        show("reflector", &play);
        reflects(&mut play, "complete", json!({}));
        show("conclusion", &play);
    }
}

/// S0-18, S0-20, C19: the state tools as both languages describe them.
#[test]
fn state_tools() {
    for (language, name) in LANGUAGES {
        let mut play = Play::with(speaks(language));
        play.tools.clear();
        let tools = play.request().1.into_iter();
        let tools: Vec<Value> = tools
            .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": *tool.parameters}))
            .collect();
        insta::assert_json_snapshot!(format!("state_tools-{name}"), tools);
    }
}

/// C19: a turn keeps the language that it began with, and one of an older program is told in English.
#[test]
fn a_turn_keeps_its_language() {
    let play = Play::with(speaks(PromptLanguage::Zh));
    let mut stored = serde_json::to_value(&play.turn.state).unwrap();
    assert_eq!(stored["policy"]["prompt_language"], "zh");
    stored["policy"].as_object_mut().unwrap().remove("prompt_language");
    let older: crate::reducer::TurnState = serde_json::from_value(stored).unwrap();
    assert_eq!(older.policy.prompt_language, PromptLanguage::En);
}
