//! Cards that wait for nothing: progress, and the final answer.

use countersign_agent::domain::{Answer, ProgressView};
use serde_json::{Value, json};

use super::{Look, Painter, escape, parts};
use crate::channels::lark::markdown::markdown;
use crate::channels::wording::{done_steps, end_text, one_line, why_ended};

impl Painter<'_> {
    pub(super) fn progress(&self, view: &ProgressView) -> Value {
        let counts = json!({"done": done_steps(&view.steps), "count": view.steps.len(), "goal": one_line(&view.goal, 80)});
        let said = self.say("plan.progress", counts.clone());
        let look = match view.end {
            Some(end) => {
                let look = self.end_look(end);
                let tag = format!("{} · {said}", look.tag);
                Look { tag, ..look }
            }
            None => Look {
                template: if view.finished { "green" } else { "blue" },
                tag: said,
            },
        };
        let title = self.word(if view.finished {
            "progress.title_finished"
        } else {
            "progress.title"
        });
        let mut elements = vec![parts::markdown("goal", &self.labelled("plan.goal", &self.planned(&view.goal)))];
        if !view.steps.is_empty() {
            elements.push(parts::markdown("steps", &self.steps(&view.steps, true)));
        }
        let why = view.end.and_then(|end| end_text(self.templates, self.locale, end));
        elements.extend(why.map(|why| parts::markdown("settled", &why)));
        let summary = if view.finished {
            format!("{title} · {}", one_line(&view.goal, 80))
        } else {
            self.say("progress.summary", counts)
        };
        parts::shell(&summary, Some(parts::header(&title, "", &look)), elements)
    }

    /// Words of the model on their own: the earlier parts of a long answer.
    pub(super) fn said(&self, text: &str) -> Value {
        let words = if text.trim().is_empty() {
            self.word("notice.nothing_to_say")
        } else {
            self.spoken(text)
        };
        parts::shell(&one_line(text, 100), None, vec![parts::markdown("answer", &words)])
    }

    /// The model's Markdown, as much as a card holds.
    fn spoken(&self, text: &str) -> String {
        markdown(&self.cut(text.trim(), self.caps.answer))
    }

    /// The answer has no header: it should read like a message. Its own Markdown renders; what we add stands below.
    pub(super) fn answer(&self, answer: &Answer) -> Value {
        let mut lines = Vec::new();
        if let Some(mention) = escape::card_mention(&answer.requester).filter(|_| answer.group) {
            lines.push(mention);
        }
        let spoken = lines.len();
        if !answer.text.trim().is_empty() {
            lines.push(self.spoken(&answer.text));
        }
        let why = why_ended(self.templates, self.locale, answer);
        if !why.is_empty() {
            lines.push(escape::lines(&why));
        }
        if lines.len() == spoken {
            lines.push(self.word("notice.nothing_to_say"));
        }
        let mut elements = vec![parts::markdown("answer", &lines.join("\n"))];
        if !answer.open_steps.is_empty() {
            elements.push(parts::markdown(
                "open_steps",
                &self.open_steps("answer.open_steps", &answer.open_steps),
            ));
        }
        let mut foot = Vec::new();
        if let Some(incident) = &answer.incident {
            foot.push(self.say("answer.incident", json!({"incident": escape::inline(incident)})));
        }
        if answer.demo {
            foot.push(self.word("foot.demo"));
        }
        elements.extend(self.foot(foot));
        let summary = match one_line(&answer.text, 100) {
            text if text.is_empty() => self.word("answer.summary"),
            text => text,
        };
        parts::shell(&summary, None, elements)
    }
}
