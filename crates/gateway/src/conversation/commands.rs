//! Slash commands in the text of a message.

use countersign_agent::domain::Addressed;

/// What somebody typed after the slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// `/stop`: stop what I asked for.
    Stop,
    /// `/new TEXT`: drop what I asked for and begin this instead.
    New,
    /// `/plan TEXT`: this task, in plan mode.
    Plan,
    /// `/status`, and `/plan` alone: where does my task stand?
    Status,
    /// `/away …`: somebody else decides in my place. Alone: am I away?
    Away,
    /// `/back`: I decide myself again.
    Back,
    /// `/grants`: what may run in this chat without asking?
    Grants,
    /// `/grants revoke N`: it may not any more.
    Revoke(String),
    /// `/help`, and any command that we do not know.
    Help,
}

impl ChatCommand {
    /// The command that `said` is, if it is one.
    pub(super) fn parse(said: &Addressed) -> Option<Self> {
        let (name, rest) = said.command()?;
        Some(match name.as_str() {
            "stop" => Self::Stop,
            "new" => Self::New,
            "plan" if !rest.is_empty() => Self::Plan,
            "status" | "plan" => Self::Status,
            "away" => Self::Away,
            "back" => Self::Back,
            "grants" => match revoked(rest) {
                Some(number) => Self::Revoke(number),
                None => Self::Grants,
            },
            _ => Self::Help,
        })
    }
}

/// Characters of a number that are looked at.
const NUMBER: usize = 10;

/// The number behind `revoke`, as it was typed.
fn revoked(rest: &str) -> Option<String> {
    let (verb, number) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number = number.trim().trim_start_matches('#');
    (verb.eq_ignore_ascii_case("revoke") || verb == "撤销").then(|| number.chars().take(NUMBER).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Addressed {
        Addressed {
            text: text.trim().to_owned(),
            to_bot: true,
            to_others: false,
        }
    }

    /// design: `/stop`, `/new …`, `/plan …`, `/status`, `/plan`, `/help` are commands; other slashed words get the help.
    #[test]
    fn commands_are_read() {
        let table = [
            ("/stop", Some(ChatCommand::Stop)),
            (" /STOP ", Some(ChatCommand::Stop)),
            ("/new 写周报\n要三段", Some(ChatCommand::New)),
            ("/new", Some(ChatCommand::New)),
            ("/new\tx", Some(ChatCommand::New)),
            ("/status", Some(ChatCommand::Status)),
            ("/plan", Some(ChatCommand::Status)),
            ("/plan ", Some(ChatCommand::Status)),
            ("/PLAN\t写周报", Some(ChatCommand::Plan)),
            ("/plan 写周报\n要三段", Some(ChatCommand::Plan)),
            ("/away @bob for 3d", Some(ChatCommand::Away)),
            ("／ａｗａｙ", Some(ChatCommand::Away)),
            ("/BACK", Some(ChatCommand::Back)),
            ("/help", Some(ChatCommand::Help)),
            ("/dance", Some(ChatCommand::Help)),
            ("/etc/hosts 里有什么", None),
            ("/", None),
            ("/ stop", None),
            ("please /stop", None),
            ("／stop", Some(ChatCommand::Stop)),
            ("／ｓｔｏｐ", Some(ChatCommand::Stop)),
            ("／plan　写周报", Some(ChatCommand::Plan)),
            ("／ stop", None),
            ("stop", None),
        ];
        for (text, command) in table {
            assert_eq!(ChatCommand::parse(&said(text)), command, "{text:?}");
        }
    }

    /// design: the task of `/new …` and `/plan …` is what follows; any other text is a task as it stands. Only `/plan …` asks for plan mode.
    #[test]
    fn task_of_new_is_the_rest() {
        let table = [
            ("/new 写周报\n要三段", "写周报\n要三段"),
            ("/NEW\t写周报", "写周报"),
            ("／new 写周报", "写周报"),
            ("/new", ""),
            ("/plan 写周报", "写周报"),
            ("/plan", "/plan"),
            ("/plans 今天", "/plans 今天"),
            ("/news 今天", "/news 今天"),
            ("写周报 /new", "写周报 /new"),
        ];
        for (text, task) in table {
            assert_eq!(said(text).task(), task, "{text:?}");
            assert_eq!(said(text).asks_for_plan_mode(), text == "/plan 写周报", "{text:?}");
        }
    }
}
