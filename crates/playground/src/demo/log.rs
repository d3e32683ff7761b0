//! What the demo model reads off the messages: what was asked, what people said to the plan, what was called since.

use countersign_agent::domain::{Message, Role};
use serde_json::Value;

use super::script::is_han;

#[derive(Debug, Default)]
pub(super) struct Log<'a> {
    /// What the person asked for; in plan mode the brief of a step.
    pub(super) task: &'a str,
    /// The arguments of the plan in force. Empty before there is one.
    pub(super) plan: &'a str,
    /// What people said that changes the plan, oldest first.
    pub(super) changes: Vec<String>,
    /// What the last words to the plan wait for.
    pub(super) owed: Option<Owed>,
    /// The calls since the plan was made or people last spoke to it.
    pub(super) calls: Vec<Call<'a>>,
    /// What people said while the turn ran.
    pub(super) mail: Vec<String>,
    /// The agent asks to go on with the plan.
    pub(super) nudged: bool,
    /// The calls of all turns: the next id is one more.
    pub(super) calls_so_far: usize,
}

/// What people wait for before the plan goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owed {
    /// An answer to this question.
    Answer(String),
    Plan,
}

#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    arguments: Value,
    /// The tool's own words; empty while there are none.
    pub(super) result: &'a str,
}

impl Call<'_> {
    pub(super) fn text(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }

    /// Did the call fail, or was it refused?
    pub(super) fn failed(&self) -> bool {
        self.result.trim().is_empty() || self.result.starts_with("error: ") || self.result.starts_with(NOT_APPROVED)
    }
}

/// The agent's word for a call that no approval covers.
const NOT_APPROVED: &str = "plan_not_approved";

impl<'a> Log<'a> {
    /// The turn begins at the last message that a person typed. Blocks that stand for people begin with a tag, typed text never does.
    pub(super) fn of(messages: &'a [Message]) -> Self {
        let is_block = |text: &str| text.starts_with("<plan_feedback>\n") || text.starts_with("<mailbox>\n");
        let typed = |message: &Message| message.role == Role::User && !is_block(&message.content);
        let begin = messages.iter().rposition(typed);
        let turn = &messages[begin.map_or(0, |at| at + 1)..];
        let mut log = Self {
            task: begin.map_or("", |at| messages[at].content.trim()),
            calls_so_far: messages.iter().map(|message| message.calls.len()).sum(),
            ..Self::default()
        };
        // The words that the demo took for a yes.
        let mut yes = String::new();
        for message in turn {
            match message.role {
                Role::User if message.content.starts_with("<mailbox>") => log.mail.push(section(&message.content, "message:")),
                Role::User => yes = log.hear(section(&message.content, "user_feedback:")),
                Role::Assistant if message.calls.is_empty() => log.owed = None,
                Role::Assistant => log.call(message, turn, &mut yes),
                Role::System => log.nudged = message.content.starts_with("<plan-continuation>"),
                Role::Tool => {}
            }
        }
        log
    }

    /// A person speaks to the plan. Gives the words back when they are a yes.
    fn hear(&mut self, words: String) -> String {
        self.calls.clear();
        self.owed = None;
        if words.contains(['?', '？']) {
            self.owed = Some(Owed::Answer(words));
        } else if is_one_word(&words) {
            return words;
        } else {
            self.changes.push(words);
            self.owed = Some(Owed::Plan);
        }
        String::new()
    }

    fn call(&mut self, message: &'a Message, turn: &'a [Message], yes: &mut String) {
        self.nudged = false;
        for call in &message.calls {
            let answer = turn.iter().find(|answer| answer.call_id.as_ref() == Some(&call.id));
            let result = answer.map_or("", |answer| own_words(&answer.content));
            match call.name.as_str() {
                "plan" => {
                    self.plan = &call.arguments;
                    self.calls.clear();
                    self.owed = None;
                    continue;
                }
                "request_user" => self.changes.push(result.to_owned()),
                // The agent knows better what is a yes.
                _ if result.contains(NOT_APPROVED) && !yes.is_empty() => {
                    self.changes.push(std::mem::take(yes));
                    self.owed = Some(Owed::Plan);
                }
                _ => {}
            }
            self.calls.push(Call {
                tool: &call.name,
                arguments: serde_json::from_str(&call.arguments).unwrap_or_default(),
                result,
            });
        }
    }

    /// The last call of `tool` with `path`, if it was made.
    pub(super) fn last(&self, tool: &str, path: &str) -> Option<&Call<'a>> {
        self.calls.iter().rfind(|call| call.tool == tool && call.text("path") == path)
    }

    pub(super) fn count(&self, tool: &str) -> usize {
        self.calls.iter().filter(|call| call.tool == tool).count()
    }
}

/// People say yes in one word; what they want changed takes more. The agent has kept every refusal to itself.
fn is_one_word(words: &str) -> bool {
    let word = words.trim_matches(|c: char| c.is_whitespace() || ".。!！,，、~～…".contains(c));
    let han = word.chars().filter(|c| is_han(*c)).count();
    !word.contains(char::is_whitespace) && word.chars().count() <= 12 && han <= 2
}

/// What stands below a label of a block. Labels stand at the beginning of a line, foreign text after two blanks.
pub(super) fn section(block: &str, label: &str) -> String {
    let lines = block.lines().skip_while(|line| *line != label).skip(1);
    let lines: Vec<_> = lines.map_while(|line| line.strip_prefix("  ")).collect();
    unescaped(lines.join("\n").trim())
}

/// Foreign text of a block, as it was said.
pub(super) fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What a tool itself answered: without the head, and without a reminder that the agent appended.
fn own_words(answer: &str) -> &str {
    let head = answer.strip_prefix("[tool_result:").and_then(|rest| rest.split_once("] "));
    let words = head.map_or(answer, |(_, words)| words);
    words.rsplit_once("\n\n<plan-reminder>").map_or(words, |(words, _)| words)
}
