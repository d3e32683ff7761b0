//! What can be typed.

/// For `:help`.
pub(crate) const HELP: &str = "You can type:
  TEXT             a reply in the thread of the last message; the first one is a mention in the channel
  :new TEXT        a new mention in the channel
  :dm TEXT         a direct message to the bot
  :slash TEXT      /countersign TEXT
  :approve  :cancel  :revise TEXT  :reject    press that button of the newest card
  :as U0WANG       be somebody else
  :fail WHAT ERROR let the next call of this kind go wrong: create, reply, patch, react, whisper, form, bot; not_in_channel, …
  :quit            (or Ctrl-C)";

/// One typed line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed<'a> {
    Reply(&'a str),
    New(&'a str),
    Direct(&'a str),
    Slash(&'a str),
    Press(&'a str, &'a str),
    Become(&'a str),
    Fail(&'a str, &'a str),
    Help,
    Quit,
    Nothing,
}

/// Reads a line. A word after `:` that is none of ours is a button.
pub(crate) fn read(line: &str) -> Typed<'_> {
    let line = line.trim();
    let Some(order) = line.strip_prefix(':') else {
        return if line.is_empty() { Typed::Nothing } else { Typed::Reply(line) };
    };
    let (word, rest) = order.split_once(' ').map_or((order, ""), |(word, rest)| (word, rest.trim()));
    match (word, rest) {
        ("new", text) if !text.is_empty() => Typed::New(text),
        ("dm", text) if !text.is_empty() => Typed::Direct(text),
        ("as", user) if !user.is_empty() => Typed::Become(user),
        ("fail", what) => what
            .split_once(' ')
            .map_or(Typed::Help, |(call, error)| Typed::Fail(call, error.trim())),
        ("slash", text) => Typed::Slash(text),
        ("quit", "") => Typed::Quit,
        ("new" | "dm" | "as" | "help" | "", _) => Typed::Help,
        (verb, text) => Typed::Press(verb, text),
    }
}

#[cfg(test)]
mod tests {
    use super::{Typed, read};

    /// design: plain words are a reply; a word after a colon is an order, an unknown one a button, a half one asks for help.
    #[test]
    fn a_line_is_a_reply_or_an_order() {
        for (line, typed) in [
            (" OK \n", Typed::Reply("OK")),
            ("", Typed::Nothing),
            (":new read: the notes", Typed::New("read: the notes")),
            (":dm hello", Typed::Direct("hello")),
            (":approve", Typed::Press("approve", "")),
            (":revise draft first", Typed::Press("revise", "draft first")),
            (":fail reply not_in_channel", Typed::Fail("reply", "not_in_channel")),
            (":slash", Typed::Slash("")),
            (":new", Typed::Help),
            (":fail reply", Typed::Help),
            (":quit", Typed::Quit),
        ] {
            assert_eq!(read(line), typed, "{line}");
        }
    }
}
