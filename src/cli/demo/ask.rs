//! The reader decides: in a terminal the demo asks whoever reads it for the answer to each card.

mod words;

use std::io::{Write, stdin, stdout};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use countersign_agent::domain::Locale;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, channel};

use words::{Choice, DemoEffect, DemoWords};

/// How long a reader may think about one line.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Lines that may be typed, or pasted, before the demo reads them.
const UNREAD_LINES: usize = 64;

/// What came of the question for an answer.
#[derive(Debug, PartialEq)]
pub(super) enum PageAnswer {
    /// These words are sent to the chat.
    Say(String),
    /// There is none: the input has ended, or nobody wrote a line in time. The demo ends with this code.
    Left(ExitCode),
}

/// Whoever sits at the terminal.
pub(super) struct AnswerReader {
    lines: Receiver<String>,
    out: Box<dyn Write + Send>,
    locale: Locale,
}

impl AnswerReader {
    pub(super) fn at_terminal(locale: Locale) -> Self {
        let (send, lines) = channel(UNREAD_LINES);
        // A thread that nobody joins: blocked in a read, it does not keep the process from ending.
        thread::spawn(move || {
            let lines = stdin().lock();
            for line in std::io::BufRead::split(lines, b'\n').map_while(Result::ok) {
                // A line too many is lost: the reader is asked again.
                let sent = send.try_send(String::from_utf8_lossy(&line).into_owned());
                if matches!(sent, Err(TrySendError::Closed(_))) {
                    break;
                }
            }
        });
        Self {
            lines,
            out: Box::new(stdout()),
            locale,
        }
    }

    /// Asks until the reader has answered the card of a gate of this kind. How it ended is printed, if not with an answer.
    pub(super) async fn answer(&mut self, kind: &str) -> anyhow::Result<PageAnswer> {
        let words = words::about(kind, self.locale);
        // What was typed before the card was there answers something else.
        while self.lines.try_recv().is_ok() {}
        let mut chosen = None;
        self.print(&format!("\n{}", words.question()))?;
        loop {
            let line = match tokio::time::timeout(PATIENCE, self.lines.recv()).await {
                Ok(Some(line)) => line,
                Ok(None) => return self.leave(ExitCode::SUCCESS, words::input_ended(self.locale)),
                Err(_) => return self.leave(ExitCode::FAILURE, words::nobody_answered(self.locale)),
            };
            match understand(&words, chosen, &line) {
                Heard::Answer(text) => return Ok(PageAnswer::Say(text)),
                Heard::Choice(choice, question) => {
                    chosen = Some(choice);
                    self.print(&format!("{question} > "))?;
                }
                Heard::Nothing => {
                    chosen = None;
                    self.print(&format!("{}\n{}", words.help, words.question()))?;
                }
            }
        }
    }

    /// The cursor stands behind the question: the sentence begins below.
    fn leave(&mut self, code: ExitCode, sentence: &str) -> anyhow::Result<PageAnswer> {
        self.print(&format!("\n\n{sentence}\n"))?;
        Ok(PageAnswer::Left(code))
    }

    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }
}

/// What a line of the reader means.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Answer(String),
    /// A letter that wants words; they are asked for next.
    Choice(&'static Choice, &'static str),
    Nothing,
}

/// Reads a line; `chosen` is the letter before it that wanted words.
fn understand(words: &DemoWords, chosen: Option<&'static Choice>, line: &str) -> Heard {
    let text = line.trim();
    if let Some(Choice {
        effect: DemoEffect::Write { end, .. },
        ..
    }) = chosen
    {
        return match text.contains(char::is_alphanumeric) {
            true if text.contains(['?', '？']) => Heard::Answer(text.to_owned()),
            true => Heard::Answer(format!("{text}{end}")),
            false => Heard::Nothing,
        };
    }
    if let Some(choice) = words.choices.iter().find(|choice| text.eq_ignore_ascii_case(choice.letter)) {
        return match choice.effect {
            DemoEffect::Say(text) => Heard::Answer(text.to_owned()),
            DemoEffect::Write { question, .. } => Heard::Choice(choice, question),
        };
    }
    // The gateway ignores signs alone. One letter is a slip of the finger; one Chinese character may be a word.
    let is_slip = text.len() == 1 && !words.choices.is_empty();
    if is_slip || !text.contains(char::is_alphanumeric) {
        Heard::Nothing
    } else {
        Heard::Answer(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(lines: Receiver<String>) -> AnswerReader {
        AnswerReader {
            lines,
            out: Box::new(std::io::sink()),
            locale: Locale::EnUs,
        }
    }

    /// design: each kind of card can be answered, in both languages: by a letter, by words of one's own; a slip is no answer.
    #[test]
    fn a_line_is_understood() {
        for (kind, locale, line, said) in [
            ("plan_review", Locale::EnUs, "o", Some("OK")),
            ("plan_review", Locale::EnUs, " C ", Some("cancel")),
            ("plan_review", Locale::ZhCn, "c", Some("取消")),
            ("plan_review", Locale::EnUs, "draft only, please", Some("draft only, please")),
            ("plan_review", Locale::ZhCn, "好", Some("好")),
            ("plan_review", Locale::EnUs, "", None),
            ("plan_review", Locale::EnUs, "x", None),
            ("plan_review", Locale::EnUs, "!?!", None),
            ("tool_approval", Locale::EnUs, "a", Some("OK")),
            ("tool_approval", Locale::ZhCn, "r", Some("拒绝")),
            ("tool_approval", Locale::EnUs, "not this file", Some("not this file")),
            ("budget", Locale::EnUs, "g", Some("OK")),
            ("budget", Locale::ZhCn, "c", Some("取消")),
            ("question", Locale::EnUs, "7", Some("7")),
            ("question", Locale::EnUs, " ", None),
            ("question", Locale::ZhCn, "进度", Some("进度")),
        ] {
            let heard = understand(&words::about(kind, locale), None, line);
            let meant = said.map_or(Heard::Nothing, |said| Heard::Answer(said.to_owned()));
            assert_eq!(heard, meant, "{kind} {line:?}");
        }
    }

    /// design: a letter may ask for words: changes go as they were written, a question is one to the agent, an empty line leads back.
    #[test]
    fn a_letter_asks_for_words() {
        let plan = words::about("plan_review", Locale::EnUs);
        let chosen = |letter| match understand(&plan, None, letter) {
            Heard::Choice(choice, _) => Some(choice),
            other => panic!("{other:?}"),
        };
        let said = |letter, line| understand(&plan, chosen(letter), line);
        assert_eq!(said("m", "draft only "), Heard::Answer("draft only".to_owned()));
        assert_eq!(said("m", "c"), Heard::Answer("c".to_owned()));
        assert_eq!(
            said("q", "does it overwrite files"),
            Heard::Answer("does it overwrite files?".to_owned())
        );
        assert_eq!(said("q", "why?"), Heard::Answer("why?".to_owned()));
        assert_eq!(said("q", ""), Heard::Nothing);
    }

    /// design: what was typed before the card was there does not answer it; the end of the input ends the demo.
    #[tokio::test]
    async fn what_was_typed_ahead_does_not_count() {
        let (send, lines) = channel(UNREAD_LINES);
        send.try_send("o".to_owned()).unwrap();
        drop(send);
        assert_eq!(
            reader(lines).answer("plan_review").await.unwrap(),
            PageAnswer::Left(ExitCode::SUCCESS)
        );
    }

    /// design: somebody who went away is not waited for: the demo ends a quarter of an hour after the last line.
    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_without_end() {
        let (_send, lines) = channel(UNREAD_LINES);
        let began = tokio::time::Instant::now();
        assert_eq!(
            reader(lines).answer("plan_review").await.unwrap(),
            PageAnswer::Left(ExitCode::FAILURE)
        );
        assert!(began.elapsed() >= PATIENCE);
    }
}
