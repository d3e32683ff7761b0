//! Slash commands in the text of a message.

/// What somebody typed after the slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `/stop`: stop what I asked for.
    Stop,
    /// `/new TEXT`: drop what I asked for and begin this instead; the text may be empty.
    New(String),
    /// `/status`, `/plan`: where does my task stand?
    Status,
    /// `/help`, and any command that we do not know.
    Help,
}

/// Reads a command; none: the text is not one. A command is a slash and letters only, so a path such as `/etc/hosts` is not.
pub(super) fn read(text: &str) -> Option<Command> {
    let (name, rest) = split(text)?;
    Some(match name.to_ascii_lowercase().as_str() {
        "stop" => Command::Stop,
        "new" => Command::New(rest.to_owned()),
        "status" | "plan" => Command::Status,
        _ => Command::Help,
    })
}

/// The task in a text: what follows `/new`, else the text itself.
pub(super) fn task(text: &str) -> &str {
    match split(text) {
        Some((name, rest)) if name.eq_ignore_ascii_case("new") => rest,
        _ => text,
    }
}

/// Name and rest of a command line.
fn split(text: &str) -> Option<(&str, &str)> {
    let line = text.trim().strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic())).then(|| (name, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: `/stop`, `/new …`, `/status`, `/plan`, `/help` are commands; other slashed words get the help.
    #[test]
    fn commands_are_read() {
        let table = [
            ("/stop", Some(Command::Stop)),
            (" /STOP ", Some(Command::Stop)),
            ("/new 写周报\n要三段", Some(Command::New("写周报\n要三段".to_owned()))),
            ("/new", Some(Command::New(String::new()))),
            ("/new\tx", Some(Command::New("x".to_owned()))),
            ("/status", Some(Command::Status)),
            ("/plan", Some(Command::Status)),
            ("/help", Some(Command::Help)),
            ("/dance", Some(Command::Help)),
            ("/etc/hosts 里有什么", None),
            ("/", None),
            ("/ stop", None),
            ("please /stop", None),
            ("／stop", None),
        ];
        for (text, command) in table {
            assert_eq!(read(text), command, "{text:?}");
        }
    }

    /// design: the task of `/new …` is what follows it; any other text is a task as it stands.
    #[test]
    fn task_of_new_is_the_rest() {
        assert_eq!(task("/new 写周报"), "写周报");
        assert_eq!(task("写周报"), "写周报");
        assert_eq!(task("/etc/hosts 里有什么"), "/etc/hosts 里有什么");
    }
}
