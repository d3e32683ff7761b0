//! A line of a card: words of ours with foreign text and people between them.

use countersign_agent::domain::Millis;

/// A piece of a line. Everything but [`Span::Ours`], [`Span::Label`] and [`Span::Time`] is foreign: who encodes it escapes it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::channels) enum Span {
    /// Words of ours; `**` stands around bold ones.
    Ours(String),
    /// Words of ours that name the rest of the line.
    Label(String),
    /// To be shown on one line.
    Foreign(String),
    /// Of several lines.
    Block(String),
    /// To be shown on one line in code type, where it cannot pass for words of ours. It holds no backtick.
    Code(String),
    Tools(Vec<String>),
    /// Somebody's id.
    Person(String),
    /// The id of a group chat.
    Chat(String),
    /// A moment; a platform that knows its readers' time zones shows it in theirs.
    Time(Millis),
}

pub(in crate::channels) type CardLine = Vec<Span>;

/// Words of ours.
pub(super) fn plain(words: &str) -> Span {
    Span::Ours(words.to_owned())
}

/// A line of words of ours, if there are any.
pub(super) fn ours(words: &str) -> CardLine {
    if words.is_empty() { CardLine::new() } else { vec![plain(words)] }
}

/// The first character that stands in a wording for what is no plain text; no keyboard and no language has it.
const FIRST: char = '\u{e000}';

/// What goes into a wording beside plain text. Each piece is a character of its own until the wording is rendered.
#[derive(Default)]
pub(super) struct Holes(Vec<CardLine>);

impl Holes {
    /// The value to render; empty if there is nothing inside.
    pub(super) fn put(&mut self, inside: CardLine) -> String {
        if inside.is_empty() {
            return String::new();
        }
        self.0.push(inside);
        (FIRST..'\u{f8ff}').nth(self.0.len() - 1).map(String::from).unwrap_or_default()
    }

    /// The rendered wording with everything in its place.
    pub(super) fn fill(&self, said: &str) -> CardLine {
        let mut line = CardLine::new();
        let mut words = String::new();
        for c in said.chars() {
            let hole = u32::from(c).checked_sub(u32::from(FIRST));
            match hole.and_then(|at| self.0.get(usize::try_from(at).ok()?)) {
                None => words.push(c),
                Some(inside) => {
                    line.extend(ours(&std::mem::take(&mut words)));
                    line.extend(inside.iter().cloned());
                }
            }
        }
        line.extend(ours(&words));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-5: what goes into a wording keeps its kind, wherever the wording has it, twice too; nothing else becomes a hole.
    #[test]
    fn a_wording_keeps_the_kinds_of_what_is_inside() {
        let mut holes = Holes::default();
        let (who, none) = (holes.put(vec![Span::Person(String::from("**U1**"))]), holes.put(CardLine::new()));
        let what = holes.put(vec![Span::Foreign(String::from("\u{e000}"))]);
        assert_eq!(none, "");
        let line = holes.fill(&format!("{who} wants {what}, {who}\u{e005}"));
        let person = Span::Person(String::from("**U1**"));
        let foreign = Span::Foreign(String::from("\u{e000}"));
        assert_eq!(
            line,
            [person.clone(), plain(" wants "), foreign, plain(", "), person, plain("\u{e005}")]
        );
    }
}
