//! What one model request carries: the system prompt once, earlier turns, the log; and the tools.

mod reminder;
pub(super) mod specs;
pub(super) mod words;

use serde_json::json;

use crate::domain::{GateKind, MOST_TOOLS, Message, PromptFeature, Role, ToolSpec};

use super::{Env, Next, Turn, compose, plan_mode};
use crate::domain::foreign::{cut, plain};
use words::Words;

pub use specs::own_tools;

/// A text shorter than this is not worth folding, bytes.
const FOLD_FROM: usize = 240;
/// Bytes that are left of a folded text.
const FOLD_TO: usize = 160;
/// Messages at the end of the log that are never folded to one line, in the tightest room.
const LEAST_KEPT: usize = 2;
/// Bytes that one of their outputs has at least.
const LEAST_OUTPUT: usize = 512;

/// How much one request may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all messages; past them the oldest tool outputs are folded.
    pub bytes: usize,
    /// Messages at the end of the log that are never folded.
    pub kept: usize,
    /// Bytes of one tool output among those.
    pub output: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: 200 * 1024,
            kept: 8,
            output: 2 * compose::OUTPUT_CAP,
        }
    }
}

impl Room {
    /// Half of what `sent` was, for a model that found it too long. The words of people, plans and decisions stay whole at any
    /// size; of the messages at the end only tool outputs can get folded, those of the newest two clipped at last. `None` means there is no tighter
    /// one.
    #[must_use]
    pub fn tighter(self, sent: &[Message]) -> Option<Self> {
        let (kept, output) = if self.kept > LEAST_KEPT {
            ((self.kept / 2).max(LEAST_KEPT), self.output)
        } else {
            (self.kept, self.output / 2)
        };
        let bytes = size(sent) / 2;
        (output >= LEAST_OUTPUT).then_some(Self { bytes, kept, output })
    }
}

/// The messages of the next model request: the system prompt once, `history` of earlier turns, the log.
/// In plan mode the log is that of the step which is carried out, else the turn's own.
/// Oldest tool outputs are folded to one line when the whole grows past its `room`, then earlier turns go, then big
/// arguments of old calls are folded; every call keeps its result.
#[must_use]
pub fn prompt(turn: &Turn, env: &Env<'_>, extra: &str, history: &[Message], room: Room) -> Vec<Message> {
    let system = system(turn, env, extra);
    let scope = turn.state.scope();
    let mut log: Vec<Message> = turn
        .log
        .iter()
        .filter(|message| plan_mode::belongs(message, scope))
        .cloned()
        .collect();
    // A step has its brief; earlier tasks are the planner's to know.
    let mut earlier = if scope.is_some() { Vec::new() } else { groups(history) };
    let mut over = size(std::iter::once(&system).chain(earlier.iter().flatten()).chain(&log)).saturating_sub(room.bytes);
    let recent = log.len().saturating_sub(room.kept);
    for message in earlier.iter_mut().flatten().chain(log.iter_mut().take(recent)) {
        if over == 0 {
            break;
        }
        if message.role == Role::Tool {
            over = over.saturating_sub(fold(&mut message.content));
        }
    }
    // Not enough: earlier turns go, oldest first, each whole, so that calls keep their results.
    while over > 0 && !earlier.is_empty() {
        over = over.saturating_sub(size(&earlier.remove(0)));
    }
    for message in log.iter_mut().take(recent) {
        for call in message
            .calls
            .iter_mut()
            .filter(|call| !specs::is_state_tool(&call.name) && call.arguments.len() > FOLD_FROM)
        {
            if over == 0 {
                break;
            }
            let folded = json!({"folded": format!("{} bytes", call.arguments.len())}).to_string();
            over = over.saturating_sub(call.arguments.len() - folded.len());
            call.arguments = folded;
        }
    }
    let newest = log.iter_mut().skip(recent).filter(|message| message.role == Role::Tool);
    for message in newest.filter(|message| message.content.len() > room.output) {
        message.content = cut(&message.content, room.output);
    }
    let mut messages = vec![system];
    messages.extend(earlier.into_iter().flatten());
    messages.extend(log);
    messages
}

/// How many action tools that leaves room for.
#[must_use]
pub fn most_action_tools() -> usize {
    MOST_TOOLS - specs::NAMES.len()
}

/// The tools of the next model request: the state tools, then `tools`; none where words are asked for: for the flagged last call, and
/// in plan mode for a reflection and for the conclusion.
#[must_use]
pub fn offered(turn: &Turn, tools: &[ToolSpec]) -> Vec<ToolSpec> {
    let names = specs::names(&turn.state);
    if names.is_empty() || turn.state.next == (Next::CallModel { last: true }) {
        return Vec::new();
    }
    let own = specs::specs(turn.state.policy.prompt_language)
        .iter()
        .filter(|spec| names.contains(&spec.name.as_str()))
        .cloned();
    let actions = tools.iter().filter(|spec| !specs::is_state_tool(&spec.name)).cloned();
    own.chain(actions).collect()
}

/// The turn's messages as the API shows them: system prompt, whole log and, while a plan review is open,
/// the marker.
#[must_use]
pub fn view(turn: &Turn, env: &Env<'_>, extra: &str) -> Vec<Message> {
    let mut messages = vec![system(turn, env, extra)];
    messages.extend(turn.log.iter().cloned());
    let reviewed = turn.state.gate.as_ref().is_some_and(|gate| gate.kind == GateKind::PlanReview);
    if let Some(plan) = turn.state.plan.as_ref().filter(|_| reviewed) {
        messages.push(Message::text(Role::System, compose::marker(&turn.state, plan)));
    }
    messages
}

/// The agent's own prompt, then each shared component that is in, once, with its heading: core first, the admin's text before
/// what is said about tools.
fn system(turn: &Turn, env: &Env<'_>, extra: &str) -> Message {
    let policy = &turn.state.policy;
    let required = policy.continuation.require_explicit_signal;
    let named = |feature| policy.prompt_features.contains(&feature);
    let part = plan_mode::part(&turn.state);
    let words = Words::of(&turn.state, env.prompts);
    let shared = |stem: &str| {
        let values = json!({ "required": required, "plan_mode": part.is_some() });
        Some(words.file(&format!("shared/{stem}.md"), values))
    };
    let own = part.map(|part| (part.heading, Some(words.file(&format!("plan_mode/{}.md", part.file), json!({})))));
    let acts = part.is_none_or(|part| part.acts);
    let components = [
        ("CORE INSTRUCTIONS", shared("core")),
        own.unwrap_or_default(),
        (
            "CONTINUATION PROTOCOL",
            // In plan mode the driver goes on by itself.
            shared("continuation_protocol").filter(|_| part.is_none() && (required || named(PromptFeature::Continuation))),
        ),
        ("MAILBOX PROTOCOL", shared("mailbox_protocol")),
        ("INSTRUCTIONS OF THIS WORKSPACE", Some(extra.trim().to_owned())),
        (
            "AVAILABLE TOOLS",
            shared("tool_guidelines").filter(|_| acts && !env.tools.is_empty()),
        ),
        (
            "OUTPUT_FORMAT INSTRUCTIONS",
            shared("output_format").filter(|_| part.is_none_or(|part| part.answers) && named(PromptFeature::OutputFormat)),
        ),
    ];
    let mut parts = vec![words.file("base.md", json!({}))];
    for (heading, text) in components {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            parts.push(format!("## {heading}\n\n{text}"));
        }
    }
    Message::text(Role::System, parts.join("\n\n"))
}

fn size<'a>(messages: impl IntoIterator<Item = &'a Message>) -> usize {
    let calls = |message: &Message| {
        message
            .calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len())
            .sum::<usize>()
    };
    messages.into_iter().map(|message| message.content.len() + calls(message)).sum()
}

/// Folds a tool output to its first line; gives the bytes won.
fn fold(content: &mut String) -> usize {
    let before = content.len();
    if before < FOLD_FROM {
        return 0;
    }
    let first = content.lines().next().unwrap_or_default();
    *content = format!("{} … [folded: {before} bytes]", crate::domain::foreign::clip(first, FOLD_TO));
    before - content.len()
}

/// Earlier turns, each from a user's message up to the next. System messages stay behind (the system
/// prompt is said once), and so does a turn in which a call and its result lost each other. Its words are as foreign as the log's.
fn groups(history: &[Message]) -> Vec<Vec<Message>> {
    let mut groups: Vec<Vec<Message>> = Vec::new();
    for message in history.iter().filter(|message| message.role != Role::System) {
        let content = plain(&message.content);
        let message = Message {
            content,
            ..message.clone()
        };
        match groups.last_mut() {
            _ if message.role == Role::User => groups.push(vec![message]),
            Some(group) => group.push(message),
            // The cut of the history tore this one from its beginning.
            None => {}
        }
    }
    groups.retain(|group| paired(group));
    groups
}

fn paired(group: &[Message]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in group {
        match (message.role, &message.call_id) {
            (Role::Tool, Some(id)) => match open.iter().position(|wanted| wanted == id) {
                Some(at) => drop(open.remove(at)),
                None => return false,
            },
            (Role::Tool, None) => return false,
            (Role::System | Role::User | Role::Assistant, _) if !open.is_empty() => return false,
            (Role::System | Role::User | Role::Assistant, _) => open.extend(message.calls.iter().map(|call| call.id.as_str())),
        }
    }
    open.is_empty()
}
