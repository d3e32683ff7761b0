//! Messages that wait for nothing: progress, and the final answer.

use countersign_agent::domain::{Answer, ProgressView};
use serde_json::{Value, json};

use super::painter::{Painter, mention};
use super::parts::{self, text};
use crate::channels::slack::escape;
use crate::channels::wording::{done_steps, end_key, end_text, one_line, why_ended};

impl Painter<'_> {
    pub(super) fn progress(&self, view: &ProgressView) -> Vec<Value> {
        let title = if view.finished {
            "progress.title_finished"
        } else {
            "progress.title"
        };
        let counts = self.say("plan.progress", json!({"done": done_steps(&view.steps), "count": view.steps.len()}));
        let goal = self.labelled("plan.goal", vec![text(&self.planned(&view.goal))]);
        let mut blocks = vec![
            parts::header(&self.word(title)),
            self.status(
                &view
                    .end
                    .iter()
                    .map(|end| self.word(end_key(*end)))
                    .chain([counts])
                    .collect::<Vec<_>>(),
            ),
            parts::rich("goal", vec![parts::section(goal)]),
        ];
        if !view.steps.is_empty() {
            blocks.push(self.steps("steps", &view.steps, true));
        }
        let why = view.end.and_then(|end| end_text(self.templates, self.locale, end));
        blocks.extend(why.map(|why| parts::rich("settled", vec![parts::section(vec![text(&why)])])));
        blocks
    }

    /// The answer has no header: it should read like a message. Its own Markdown renders; what we add stands below.
    pub(super) fn answer(&self, answer: &Answer) -> Vec<Value> {
        let mut blocks = Vec::new();
        if let Some(mention) = mention(&answer.requester).filter(|_| answer.group) {
            blocks.push(parts::rich("to", vec![parts::section(vec![mention])]));
        }
        let words = self.model_words("answer", &answer.text, self.caps.answer);
        let why = why_ended(self.templates, self.locale, answer);
        let ours = match (why.is_empty(), words.is_empty()) {
            (true, true) => self.word("notice.nothing_to_say"),
            _ => why,
        };
        blocks.extend(words);
        if !ours.is_empty() {
            blocks.push(parts::rich("why", vec![parts::section(vec![text(&escape::inert(&ours))])]));
        }
        if !answer.open_steps.is_empty() {
            blocks.push(self.open_steps("answer.open_steps", &answer.open_steps));
        }
        let mut foot = Vec::new();
        if let Some(incident) = &answer.incident {
            foot.push(self.say("answer.incident", json!({"incident": one_line(incident, 64)})));
        }
        if answer.demo {
            foot.push(self.word("foot.demo"));
        }
        blocks.extend(self.foot(None, &foot));
        blocks
    }
}
