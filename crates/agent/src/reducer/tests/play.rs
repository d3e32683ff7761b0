//! The driver: feeds inputs, remembers effects, and checks after every step what must always hold.

mod invariants;

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::domain::handshake::Actor;
use crate::domain::{
    Action, ActionStatus, Answer, ApprovalMode, ArgumentSense, CallEdit, Decision, DecisionKind, EffectClass, Event, GateKind, Grant,
    Message, Millis, Notice, Outbound, Policy, Role, Rule, Scope, StandingGrants, ToolCall, ToolResult, ToolSpec, TurnReason, TurnStatus,
    Via,
};
use crate::reducer::{
    Beginning, CallOutcome, Effect, Env, GateOpening, Input, ModelReply, Next, OpenCall, Room, RowVerdict, Turn, TurnState, begin, offered,
    prompt, step,
};
use crate::template::Templates;

use super::pairing::assert_paired;
use super::watch::Watch;

pub(super) fn policy() -> Policy {
    Policy::default()
}

pub(super) fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, member: &str, sense, effect| ToolSpec {
        name: name.to_owned(),
        description: format!("{name} for tests"),
        parameters:
            json!({"type": "object", "properties": {member: {"type": "string"}, "content": {"type": "string"}}, "required": [member]})
                .into(),
        effect,
        scope: Scope::argument(member, sense),
    };
    vec![
        tool("read_file", "path", ArgumentSense::Path, EffectClass::Read),
        tool("write_file", "path", ArgumentSense::Path, EffectClass::Write),
        tool("web_fetch", "url", ArgumentSense::Url, EffectClass::Write),
        tool("run_bash", "command", ArgumentSense::Text, EffectClass::Destructive),
    ]
}

/// Loaded once: parsing every template takes longer than most scenarios.
static PROMPTS: LazyLock<Templates> = LazyLock::new(|| Templates::load(None).unwrap());

/// One turn being played.
pub(super) struct Play {
    pub(super) turn: Turn,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) rules: Vec<Rule>,
    /// The standing grants of the chat.
    pub(super) standing: Option<StandingGrants>,
    /// Effects of the last step.
    pub(super) last: Vec<Effect>,
    /// Effects of all steps.
    pub(super) all: Vec<Effect>,
    /// Who is told of all steps.
    pub(super) watch: Watch,
    /// Calls of the model so far, by whose count they are named.
    pub(super) calls: u32,
    now: i64,
}

impl Play {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A started turn under a changed policy.
    pub(super) fn with(change: impl FnOnce(&mut Policy)) -> Self {
        let mut play = Self::queued(change, "请整理周报");
        play.feed(Input::Start);
        play
    }

    pub(super) fn queued(change: impl FnOnce(&mut Policy), task: &str) -> Self {
        let mut policy = policy();
        change(&mut policy);
        let turn = begin(Beginning {
            turn_id: "turn_1".into(),
            seed: "00112233445566778899aabbccddeeff".into(),
            task: task.into(),
            requester: "ou_u1".into(),
            group: true,
            policy,
            demo: false,
        });
        Self {
            turn,
            tools: tools(),
            standing: None,
            rules: Vec::new(),
            last: Vec::new(),
            all: Vec::new(),
            watch: Watch::default(),
            calls: 0,
            now: 1_000,
        }
    }

    pub(super) fn env(&self) -> Env<'_> {
        Env {
            now: Millis(self.now),
            tools: &self.tools,
            rules: &self.rules,
            standing: self.standing.as_ref(),
            chat: "oc_1",
            prompts: &PROMPTS,
        }
    }

    /// Time passes without a step.
    pub(super) fn wait(&mut self, span: Duration) -> &mut Self {
        self.now = Millis(self.now).plus(span).0;
        self
    }

    pub(super) fn now(&self) -> Millis {
        Millis(self.now)
    }

    /// One step. A twin that went through JSON takes the same step and must do the same (replay).
    pub(super) fn feed(&mut self, input: Input) -> &mut Self {
        self.now += 1;
        let mut twin = stored(&self.turn);
        let mut turn = self.turn.clone();
        let given: Vec<String> = match &input {
            Input::ToolResults { outcomes, .. } | Input::Cancel { left: outcomes, .. } | Input::HookFailed { left: outcomes, .. } => {
                let given = outcomes.iter().filter(|outcome| outcome.result.is_some());
                given.map(|outcome| outcome.call_id.clone()).collect()
            }
            _ => Vec::new(),
        };
        let lost = self.turn.state.calls.open.iter().filter(|open| open.lost && open.answer.is_none());
        let lost: Vec<String> = lost.map(|open| open.call.id.clone()).filter(|id| !given.contains(id)).collect();
        let effects = step(&mut turn, &self.env(), input.clone());
        let again = step(&mut twin, &self.env(), input);
        assert_eq!(effects, again, "a turn read back from JSON goes another way");
        assert_eq!(turn, twin, "a turn read back from JSON becomes another one");
        for message in turn
            .log
            .iter()
            .filter(|message| message.call_id.as_ref().is_some_and(|id| lost.contains(id)))
        {
            assert!(message.content.contains("may or may not have run"), "{message:?}");
        }
        self.watch.see(&self.turn, &turn);
        self.turn = turn;
        self.all.extend(effects.iter().cloned());
        self.last = effects;
        self.check();
        self
    }

    pub(super) fn state(&self) -> &TurnState {
        &self.turn.state
    }

    /// The model answers in words.
    pub(super) fn says(&mut self, text: &str) -> &mut Self {
        self.reply(text, &[])
    }

    /// The model calls one tool.
    pub(super) fn calls(&mut self, name: &str, arguments: Value) -> &mut Self {
        self.reply("", &[(name, arguments)])
    }

    /// The model answers with words and calls.
    pub(super) fn reply(&mut self, text: &str, calls: &[(&str, Value)]) -> &mut Self {
        let calls = calls.iter().map(|(name, arguments)| {
            self.calls += 1;
            ToolCall {
                id: format!("call_{}", self.calls),
                name: (*name).to_owned(),
                arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
            }
        });
        let reply = ModelReply {
            text: text.into(),
            calls: calls.collect(),
            behind_links: Vec::new(),
            raw: None,
            tokens: 10,
            millis: 100,
            cut_call: false,
        };
        self.feed(Input::Reply(reply))
    }

    /// Every running call answers `text`.
    pub(super) fn tools_answer(&mut self, text: &str) -> &mut Self {
        self.tools_give(|_| Some(ok(text)))
    }

    /// Every running call gives what `result` says for its tool.
    pub(super) fn tools_give(&mut self, result: impl Fn(&str) -> Option<ToolResult>) -> &mut Self {
        let Next::RunTools { calls } = &self.turn.state.next else {
            panic!("no tools run: {:?}", self.turn.state.next)
        };
        let name = |id: &String| {
            self.turn
                .state
                .calls
                .open
                .iter()
                .find(|open| open.call.id == *id)
                .unwrap()
                .call
                .name
                .clone()
        };
        // Any order will do.
        let outcomes = calls.iter().rev().map(|id| CallOutcome {
            call_id: id.clone(),
            result: result(&name(id)),
        });
        let input = Input::ToolResults {
            outcomes: outcomes.collect(),
            millis: 50,
        };
        self.feed(input)
    }

    /// A person decides the open gate.
    pub(super) fn decides(&mut self, kind: DecisionKind, text: Option<&str>) -> &mut Self {
        self.feed(Input::Decided {
            decision: decision(kind, text),
            rows: Vec::new(),
        })
    }

    pub(super) fn approves(&mut self) -> &mut Self {
        self.decides(DecisionKind::Approve, Some("OK"))
    }

    /// A person settles the rows of the open approval card, in order.
    pub(super) fn settles(&mut self, verdicts: &[(ActionStatus, Option<&str>)]) -> &mut Self {
        let rows = self.rows();
        assert_eq!(rows.len(), verdicts.len(), "rows of the card");
        let rows = rows.into_iter().zip(verdicts).map(|(action, (status, reason))| RowVerdict {
            edited: None,
            action,
            status: *status,
            reason: reason.map(str::to_owned),
        });
        let input = Input::Decided {
            decision: decision(DecisionKind::Reject, None),
            rows: rows.collect(),
        };
        self.feed(input)
    }

    /// A person approves the only row of the open approval card, with these arguments.
    pub(super) fn edits(&mut self, arguments: &Value, edit: &CallEdit) -> &mut Self {
        let rows = self.rows().into_iter().map(|action| RowVerdict {
            edited: Some((arguments.clone(), edit.clone())),
            action,
            status: ActionStatus::Approved,
            reason: None,
        });
        let input = Input::Decided {
            decision: decision(DecisionKind::Approve, None),
            rows: rows.collect(),
        };
        self.feed(input)
    }

    /// Action ids on the last approval card.
    pub(super) fn rows(&self) -> Vec<String> {
        match &self.gate().card {
            Outbound::ApprovalCard(card) => card.actions.iter().map(|row| row.id.as_str().to_owned()).collect(),
            other => panic!("no approval card: {other:?}"),
        }
    }

    /// The gate that was opened last.
    pub(super) fn gate(&self) -> &GateOpening {
        self.gates().last().copied().expect("a gate")
    }

    pub(super) fn gates(&self) -> Vec<&GateOpening> {
        let opened = self.all.iter().filter_map(|effect| match effect {
            Effect::OpenGate(opening) => Some(&**opening),
            _ => None,
        });
        opened.collect()
    }

    /// The turn waits at a gate of `kind`.
    #[track_caller]
    pub(super) fn waits_for(&self, kind: GateKind) {
        assert_eq!(self.turn.state.gate.as_ref().map(|gate| gate.kind), Some(kind));
        assert_eq!(self.turn.state.next, Next::Wait);
    }

    #[track_caller]
    pub(super) fn calls_model(&self) {
        assert_eq!(self.turn.state.next, Next::CallModel { last: false });
    }

    /// Names of the tools that run now.
    pub(super) fn running(&self) -> Vec<&str> {
        let Next::RunTools { calls } = &self.turn.state.next else {
            return Vec::new();
        };
        let open = self.turn.state.calls.open.iter().filter(|open| calls.contains(&open.call.id));
        open.map(|open| open.call.name.as_str()).collect()
    }

    #[track_caller]
    pub(super) fn ended(&self, status: TurnStatus, reason: TurnReason) {
        assert_eq!((self.turn.state.status, self.turn.state.reason), (status, Some(reason)));
    }

    /// What was said to the chat.
    fn said(&self) -> impl Iterator<Item = &Outbound> {
        self.all.iter().filter_map(|effect| match effect {
            Effect::Say(said) => Some(&**said),
            _ => None,
        })
    }

    pub(super) fn answer(&self) -> &Answer {
        let answer = self
            .said()
            .find_map(|said| if let Outbound::Answer(answer) = said { Some(answer) } else { None });
        answer.expect("an answer")
    }

    pub(super) fn notices(&self) -> Vec<&Notice> {
        let said = self.said();
        said.filter_map(|said| if let Outbound::Notice(notice) = said { Some(notice) } else { None })
            .collect()
    }

    pub(super) fn events(&self) -> Vec<&Event> {
        let emitted = self.all.iter().filter_map(|effect| match effect {
            Effect::Emit { event, .. } => Some(event),
            _ => None,
        });
        emitted.collect()
    }

    pub(super) fn actions(&self) -> Vec<&Action> {
        let proposed = self.all.iter().filter_map(|effect| match effect {
            Effect::Propose(action) => Some(&**action),
            _ => None,
        });
        proposed.collect()
    }

    /// Contents of the log's messages of `role`.
    pub(super) fn log(&self, role: Role) -> Vec<&str> {
        self.turn
            .log
            .iter()
            .filter(|message| message.role == role)
            .map(|message| message.content.as_str())
            .collect()
    }

    /// The last tool message.
    pub(super) fn told(&self) -> &str {
        self.log(Role::Tool).last().copied().unwrap_or_default()
    }

    pub(super) fn request(&self) -> (Vec<Message>, Vec<ToolSpec>) {
        (
            prompt(&self.turn, &self.env(), "", &[], Room::default()),
            offered(&self.turn, &self.tools),
        )
    }

    /// A complex plan of three steps that declares `write_file`, approved, its task declared.
    pub(super) fn at_work() -> Self {
        let mut play = Self::new();
        play.calls("plan", three_steps())
            .approves()
            .calls("clarify", json!({"task_goal_ui": "first"}));
        play.calls_model();
        play
    }
}

pub(super) fn three_steps() -> Value {
    plan(
        "complex",
        json!([{"id": "1", "content": "read", "tools": ["read_file"]},
        {"id": "2", "content": "write", "calls": [writes("**", 1000)]}, {"id": "3", "content": "tell"}]),
    )
}

/// A declared call of `write_file`.
pub(super) fn writes(path: &str, times: u32) -> Value {
    json!({"tool": "write_file", "arguments": {"path": path}, "times": times})
}

/// A declared call of `web_fetch`.
pub(super) fn fetches(url: &str) -> Value {
    json!({"tool": "web_fetch", "arguments": {"url": url}})
}

/// The tools of the calls that an approval covers.
pub(super) fn granted(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.call.tool.as_str()).collect()
}

pub(super) fn plan(complexity: &str, steps: Value) -> Value {
    json!({"overall_goal_ui": "Weekly report", "complexity": complexity, "internal_plan": steps})
}

pub(super) fn decision(kind: DecisionKind, text: Option<&str>) -> Decision {
    let actor = Actor::person("ou_u1", Via::Text, "ev_1", Millis(5));
    Decision {
        by: actor.user.clone().filter(|_| kind != DecisionKind::Expire),
        ..actor.decision(kind, text.map(str::to_owned))
    }
}

pub(super) fn ok(text: &str) -> ToolResult {
    ToolResult {
        text: text.into(),
        exit_code: None,
        seconds: 0.5,
        truncated: false,
        ok: true,
        exit: None,
        attachment: None,
    }
}

/// The turn as it comes back from the ledger.
fn stored(turn: &Turn) -> Turn {
    let through = |value: Value| value.to_string();
    Turn {
        state: serde_json::from_str(&through(serde_json::to_value(&turn.state).unwrap())).unwrap(),
        log: serde_json::from_str(&through(serde_json::to_value(&turn.log).unwrap())).unwrap(),
    }
}

/// What is said of a turn that was stopped: its goal, else the beginning of the request, and what was done.
pub(super) fn stopped(play: &Play, done: Vec<String>) -> Notice {
    let state = play.state();
    let request = || state.task.chars().take(60).collect();
    Notice::Stopped {
        goal: state.plan.as_ref().map_or_else(request, |plan| plan.goal.clone()),
        done,
        next: None,
    }
}
