//! The scenarios of `eval/` by their recordings: what `scripts/eval` judges, judged here without its downloads.

mod judged;
mod recorded;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::support::api::eventually;
use crate::support::platform::On;
use crate::support::world::World;
use recorded::{Recorded, Scenario};

/// Worlds at a time.
const ABREAST: usize = 4;
/// Kinds of scenarios; a recording of each is there.
const KINDS: [&str; 8] = [
    "research",
    "notes",
    "edit",
    "tool error",
    "impossible",
    "injection",
    "question",
    "plan mode",
];

/// S1-14, S2-10, C19: every recorded scenario ends as it expects and breaks no rule of the gateway, with the English and with the
/// Chinese prompts.
#[tokio::test]
async fn recorded_scenarios_end_as_expected() {
    let scenarios = Scenario::all();
    assert!(scenarios.len() >= 30, "{}", scenarios.len());
    for kind in KINDS {
        assert!(
            scenarios.iter().any(|scenario| scenario.kind() == kind),
            "no scenario is of the kind {kind}"
        );
    }
    let plays = scenarios
        .iter()
        .flat_map(|scenario| ["en", "zh"].map(|language| Box::pin(play(scenario, language))));
    let found: Vec<Vec<String>> = stream::iter(plays).buffer_unordered(ABREAST).collect().await;
    let found = found.concat();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Plays one scenario; gives what is wrong.
async fn play(scenario: &Scenario, language: &str) -> Vec<String> {
    let mut settings = vec![("AGENT__PROMPT_LANGUAGE", language)];
    settings.extend(scenario.settings());
    let recorded = Recorded::new(scenario.replies());
    let played = recorded.clone();
    let world = World::start_on(On::Lark, &settings, move |request| played.next(request)).await;
    let workspace = world.folder.path().join("workspace");
    std::fs::remove_file(workspace.join("notes.md")).unwrap();
    for (path, text) in scenario.files() {
        std::fs::create_dir_all(workspace.join(&path).parent().unwrap()).unwrap();
        std::fs::write(workspace.join(path), text).unwrap();
    }
    let before = judged::files(&workspace);
    say(&world, scenario.request()).await;
    let (turn, gates) = Person::new(scenario).answers(&world, &scenario.name).await;
    let mut found = judged::differences(scenario, &turn, &gates, &before, &judged::files(&workspace));
    found.extend(judged::violations(&world, &turn, &before, &judged::files(&workspace)).await);
    found.extend(recorded.objections(language));
    world.end().await;
    found
        .into_iter()
        .map(|what| format!("{} ({language}): {what}", scenario.name))
        .collect()
}

async fn say(world: &World, text: &str) {
    let body = json!({"chat_id": "eval", "user_id": "ada", "text": text});
    assert_eq!(world.api.post("/api/v1/messages", &body).await.0, 202);
}

/// Answers cards as a scenario says.
struct Person<'a> {
    plans: Vec<&'a str>,
    calls: &'a str,
    answer: &'a str,
    seen: Vec<String>,
    gates: Vec<String>,
}

impl<'a> Person<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let (mut plans, calls, answer) = scenario.person();
        plans.reverse();
        Self {
            plans,
            calls,
            answer,
            seen: Vec::new(),
            gates: Vec::new(),
        }
    }

    /// Until the turn is over; gives it and the kinds of gates that were open.
    async fn answers(mut self, world: &World, scenario: &str) -> (Value, Vec<String>) {
        loop {
            let what = format!("{scenario}: a gate beside {:?}, or the end", self.gates);
            let turn = eventually(&what, || async {
                let turn = world.api.get("/api/v1/turns?chat=eval").await["items"][0].clone();
                let gate = turn["gate"]["id"].as_str();
                let new = gate.is_some_and(|gate| !self.seen.iter().any(|seen| seen == gate));
                (new || turn["finished_at"].is_string()).then_some(turn)
            })
            .await;
            if turn["finished_at"].is_string() {
                let path = format!("/api/v1/turns/{}", turn["id"].as_str().unwrap());
                return (world.api.get(&path).await, self.gates);
            }
            self.look(world, &turn).await;
        }
    }

    /// Does what the open gate wants.
    async fn look(&mut self, world: &World, turn: &Value) {
        let gate = turn["gate"]["id"].as_str().unwrap();
        self.seen.push(gate.to_owned());
        let kind = turn["gate"]["kind"].as_str().unwrap();
        self.gates.push(kind.to_owned());
        let review = format!("/api/v1/reviews/{gate}/decision");
        match kind {
            "plan_review" => {
                let words = self.plans.last().copied().unwrap();
                if self.plans.len() > 1 {
                    self.plans.pop();
                }
                decide(world, &review, words, "feedback").await;
            }
            "budget" => decide(world, &review, "cancel", "feedback").await,
            "question" => {
                // Words count as an answer only if they were said after the card appeared.
                eventually("the question, a moment ago", || async {
                    let items = world.api.get("/api/v1/messages?chat=eval").await;
                    let bot = items["items"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .find(|item| item["from"] == "bot")
                        .cloned()?;
                    let at: jiff::Timestamp = bot["at"].as_str().unwrap().parse().unwrap();
                    (bot["card"].is_object() && at.as_millisecond() < world.clock.now().0).then_some(())
                })
                .await;
                say(world, self.answer).await;
            }
            _ => {
                let path = format!("/api/v1/actions?turn={}&status=pending", turn["id"].as_str().unwrap());
                for action in world.api.get(&path).await["items"].as_array().unwrap() {
                    let path = format!("/api/v1/actions/{}/decision", action["id"].as_str().unwrap());
                    decide(world, &path, self.calls, "reason").await;
                }
            }
        }
    }
}

/// `words`: a verb, or a verb, a colon and the text that goes under the name `under`.
async fn decide(world: &World, path: &str, words: &str, under: &str) {
    let (verb, text) = words.split_once(':').unwrap_or((words, ""));
    let mut body = json!({"decision": verb, "user_id": "ada"});
    if !text.trim().is_empty() {
        body[under] = json!(text.trim());
    }
    let (status, answer) = world.api.post(path, &body).await;
    assert_eq!(status, 200, "{path}: {answer}");
}
