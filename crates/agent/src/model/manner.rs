//! How one server wants to be asked: what its refusals name is left out, one thing at a time. Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ChatRequest;
use super::dialogue::{Side, sides};
use crate::domain::{MOST_TOOLS, Message, Role, ToolSpec, digest128};

/// A server that takes fewer tokens of output than this is of no use.
const LEAST_OUTPUT: u64 = 256;
/// A member's name that is shorter is a word like others.
const LEAST_NAME: usize = 5;
/// Letters of an id for servers that take no longer one.
const SHORT_ID: usize = 9;
/// Members of [`Message::raw`] that are ours.
const WRAPPERS: [&str; 4] = ["openai", "anthropic", "message", "calls"];
/// Under this name [`Message::raw`] says whose it is.
const SERVER: &str = "from";

/// How one request is put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking<'a> {
    /// The model's name on its server.
    pub(super) model: &'a str,
    /// The configured limit of one answer, in tokens. 0 means none.
    pub(super) limit: u64,
    /// Stands for the server and the model.
    pub(super) server: &'a str,
    /// What the server does not take.
    pub(super) manner: &'a Manner,
}

impl Asking<'_> {
    /// What must go back with a message in this protocol. It goes to nobody but the server and the model that sent it; what an older version
    /// stored does not say whose it is.
    pub(super) fn kept<'m>(&self, message: &'m Message, protocol: &str) -> Option<&'m Value> {
        let raw = message.raw.as_ref()?;
        let theirs = raw.get(SERVER).is_none_or(|server| server == self.server);
        if theirs && !self.manner.no_fields {
            raw.get(protocol)
        } else {
            None
        }
    }

    /// The limit of one answer, in tokens. 0 means none.
    pub(super) fn limit(&self) -> u64 {
        self.manner.limit(self.limit)
    }

    /// The id of a call as the server takes it: the same for the call and for its result.
    pub(super) fn id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        if !self.manner.short_ids {
            return Cow::Borrowed(id);
        }
        let mut short = hex::encode(digest128(&[id]));
        short.truncate(SHORT_ID);
        Cow::Owned(short)
    }
}

/// Marks what came from `server`.
pub(super) fn mark(raw: &mut Value, server: &str) {
    if let Some(members) = raw.as_object_mut() {
        members.insert(SERVER.to_owned(), server.into());
    }
}

/// How an answer is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnswerForm {
    /// As a stream that ends with its token count.
    #[default]
    Counted,
    /// As a stream.
    Streamed,
    /// In one piece.
    Whole,
}

/// What a server is known not to take.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manner {
    pub(super) delivery: AnswerForm,
    /// The system prompt stands before the first words of the user's side.
    pub(super) no_system: bool,
    /// Words after results stand at the end of the last result.
    pub(super) words_in_results: bool,
    /// Requests without tools leave out `tool_choice`.
    pub(super) no_choice: bool,
    /// Nothing of [`Message::raw`] goes back.
    pub(super) no_fields: bool,
    /// Ids of calls are nine letters and digits, as Mistral's are.
    pub(super) short_ids: bool,
    /// The limit of an answer is called `max_completion_tokens`.
    pub(super) limit_of_completion: bool,
    /// The most that the server writes.
    most_output: Option<u64>,
    /// The most tools that it takes.
    most_tools: usize,
    /// Tools that it refuses: digest and name.
    refused: BTreeMap<String, String>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            delivery: AnswerForm::default(),
            no_system: false,
            words_in_results: false,
            no_choice: false,
            no_fields: false,
            short_ids: false,
            limit_of_completion: false,
            most_output: None,
            most_tools: MOST_TOOLS,
            refused: BTreeMap::new(),
        }
    }
}

impl Manner {
    /// The tools that are sent.
    pub(super) fn offered<'a>(&self, tools: &'a [ToolSpec]) -> Vec<&'a ToolSpec> {
        let taken = |spec: &&ToolSpec| self.refused.is_empty() || !self.refused.contains_key(&spec.digest());
        tools.iter().filter(taken).take(self.most_tools).collect()
    }

    /// The limit of one answer in tokens, `configured` or the server's own. 0 means none.
    pub(super) fn limit(&self, configured: u64) -> u64 {
        self.most_output.map_or(configured, |most| most.min(configured))
    }

    /// Names of the tools that the server refuses, each once.
    pub(super) fn refused(&self) -> Vec<String> {
        let names: BTreeSet<&String> = self.refused.values().collect();
        names.into_iter().cloned().collect()
    }

    /// Takes on what was learned about the server meanwhile.
    pub(super) fn learn(&mut self, known: Self) {
        self.delivery = self.delivery.max(known.delivery);
        self.no_system |= known.no_system;
        self.words_in_results |= known.words_in_results;
        self.no_choice |= known.no_choice;
        self.no_fields |= known.no_fields;
        self.short_ids |= known.short_ids;
        self.limit_of_completion |= known.limit_of_completion;
        self.most_output = self.most_output.into_iter().chain(known.most_output).min();
        self.most_tools = self.most_tools.min(known.most_tools);
        if self.refused.len() < MOST_TOOLS {
            self.refused.extend(known.refused);
        }
    }

    /// Leaves out what a refusal names, and says what that is. `words` are the server's, in lower case. `None` means that they name nothing
    /// that could be left out.
    pub(super) fn concede(&mut self, status: u16, words: &str, request: &ChatRequest, limit: u64) -> Option<String> {
        // A template's error has its server's own status, and a proxy may wrap another server's refusal in a 500.
        if is_about_system(words) && !self.no_system && request.messages.first().is_some_and(|first| first.role == Role::System) {
            self.no_system = true;
            return Some("the system role".to_owned());
        }
        if is_about_roles(words) && !self.words_in_results && has_words_after_results(&request.messages) {
            self.words_in_results = true;
            return Some("a message of the user after results".to_owned());
        }
        let about_choice = words.contains("tool_choice") || words.contains("tool choice");
        if about_choice && !self.no_choice && request.tools.is_empty() {
            self.no_choice = true;
            return Some("the choice of no tool".to_owned());
        }
        if status >= 500 {
            return None;
        }
        if is_about_ids(words) && !self.short_ids {
            self.short_ids = true;
            return Some("the ids of calls as another server gave them".to_owned());
        }
        self.without_a_tool(words, &request.tools)
            .or_else(|| self.without_fields(words, &request.messages))
            .or_else(|| self.another_limit(words, limit))
            .or_else(|| self.simpler(words))
    }

    fn without_a_tool(&mut self, words: &str, tools: &[ToolSpec]) -> Option<String> {
        let offered = self.offered(tools);
        let named = named_tool(words, &offered);
        if let Some(tool) = named.and_then(|at| offered.get(at)) {
            self.refused.insert(tool.digest(), tool.name.clone());
            return Some(format!("the tool {}", tool.name));
        }
        let too_many = ["too many", "too long", "maximum", "at most", "limit"];
        let about = words.contains("tools") && too_many.iter().any(|part| words.contains(part));
        let fewer = numbers(words).filter_map(|number| usize::try_from(number).ok());
        let most = fewer.filter(|number| (1..offered.len()).contains(number)).max().filter(|_| about)?;
        self.most_tools = most;
        Some(format!("all tools after the first {most}"))
    }

    fn without_fields(&mut self, words: &str, log: &[Message]) -> Option<String> {
        let named = || {
            let mut names = BTreeSet::new();
            log.iter()
                .filter_map(|message| message.raw.as_ref())
                .for_each(|raw| members(raw, &mut names));
            names
                .iter()
                .any(|name| name.len() >= LEAST_NAME && words.contains(&name.to_lowercase()))
        };
        if self.no_fields || !named() {
            return None;
        }
        self.no_fields = true;
        Some("the provider's own fields".to_owned())
    }

    fn another_limit(&mut self, words: &str, limit: u64) -> Option<String> {
        let limit = self.limit(limit);
        if limit == 0 || !is_about_output(words) {
            return None;
        }
        if words.contains("max_completion_tokens") && !self.limit_of_completion && !words.contains("at most") {
            self.limit_of_completion = true;
            return Some("the older name of the output limit".to_owned());
        }
        // Some say what they write at most; of the others only trying tells.
        let plain = words.replace(',', "");
        let told = numbers(&plain)
            .filter(|number| (LEAST_OUTPUT..limit).contains(number))
            .max()
            .filter(|_| words.contains("output tokens") || words.contains("completion tokens"));
        let most = told.or(Some(limit / 2).filter(|half| *half >= LEAST_OUTPUT))?;
        self.most_output = Some(most);
        Some(format!("an output limit over {most}"))
    }

    fn simpler(&mut self, words: &str) -> Option<String> {
        let less = if words.contains("stream_options") || words.contains("include_usage") {
            AnswerForm::Streamed
        } else if words.contains("stream") {
            AnswerForm::Whole
        } else {
            return None;
        };
        if less <= self.delivery {
            return None;
        }
        self.delivery = less;
        Some(
            if less == AnswerForm::Whole {
                "the stream"
            } else {
                "the count of tokens in the stream"
            }
            .to_owned(),
        )
    }
}

/// Does a refusal speak of the limit of the answer, and not of the prompt?
pub(super) fn is_about_output(words: &str) -> bool {
    let names = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "output tokens",
        "completion tokens",
    ];
    names.iter().any(|name| words.contains(name))
}

/// `System role not supported`, as the templates of Gemma's models say it.
fn is_about_system(words: &str) -> bool {
    let refused = ["not support", "unsupported", "not allowed", "unexpected", "invalid", "unknown"];
    let named = [
        "system role",
        "role system",
        "role 'system'",
        "role \"system\"",
        "role: system",
        "system messages",
    ];
    named.iter().any(|name| words.contains(name)) && refused.iter().any(|part| words.contains(part))
}

/// `alternate`, `unexpected role 'user' after role 'tool'`.
fn is_about_roles(words: &str) -> bool {
    let about = |part: &str| words.contains(part);
    about("alternat") || (about("role") && (about("user") || about("tool"))) || (about("user") && about("after") && about("tool"))
}

/// A turn that began with another server has ids of its kind.
fn is_about_ids(words: &str) -> bool {
    let about = |part: &str| words.contains(part);
    (about("tool call id") || about("tool_call_id") || (about("tool_calls") && about(".id"))) && about("length")
}

fn has_words_after_results(log: &[Message]) -> bool {
    let (_, sides) = sides(log);
    sides
        .iter()
        .any(|side| matches!(side, Side::User { results, words } if !results.is_empty() && !words.is_empty()))
}

/// The tool that a refusal names, by its place or by its name in quotes.
fn named_tool(words: &str, offered: &[&ToolSpec]) -> Option<usize> {
    // Gemini counts its declarations within one tool.
    let place = place_after(words, "function_declarations").or_else(|| place_after(words, "tools"));
    if let Some(place) = place.filter(|place| *place < offered.len()) {
        return Some(place);
    }
    if !["tool", "function", "schema"].iter().any(|part| words.contains(part)) {
        return None;
    }
    let quoted = |name: &str| {
        ['\'', '"', '`']
            .iter()
            .any(|quote| words.contains(&format!("{quote}{name}{quote}")))
    };
    offered.iter().position(|tool| quoted(&tool.name.to_lowercase()))
}

/// The number right behind `name`: `tools[3]`, `tools.3`, `"tools", 3`.
fn place_after(words: &str, name: &str) -> Option<usize> {
    words.match_indices(name).find_map(|(at, _)| {
        let after = words.get(at + name.len()..)?;
        let digits = after.find(|c: char| c.is_alphanumeric()).filter(|at| (1..=4).contains(at))?;
        let number: String = after.get(digits..)?.chars().take_while(char::is_ascii_digit).collect();
        number.parse().ok()
    })
}

fn numbers(words: &str) -> impl Iterator<Item = u64> {
    words.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

/// Names of the members that would go back, and kinds of blocks.
fn members(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| members(item, names)),
        Value::Object(map) => {
            for (name, value) in map {
                if WRAPPERS.contains(&name.as_str()) {
                    members(value, names);
                } else {
                    let kind = value.as_str().filter(|_| name == "type");
                    names.insert(kind.unwrap_or(name.as_str()).to_owned());
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
