//! What waits for nothing: progress, and the final answer.

use serde_json::json;

use super::build::Builder;
use super::{AnswerPart, ButtonStyle, Card, CardLine, FeedbackButtons, Head, Part, Span, Tone, ours};
use crate::channels::wording::{done_steps, end_text, one_line, why_ended};
use countersign_agent::domain::{self, Millis, ProgressView};

impl Builder<'_> {
    pub(super) fn progress<'a>(&self, view: &'a ProgressView) -> Card<'a> {
        let goal = one_line(&view.goal, 80);
        let said = self.done_of(&view.steps);
        let counts_below = self.words.surface.counts_below();
        let title = self.word(if view.finished {
            "progress.title_finished"
        } else {
            "progress.title"
        });
        let (tone, state) = match view.end {
            Some(end) => {
                let (tone, state) = self.ended(end, &view.undone);
                (tone, format!("{state} · {said}"))
            }
            None if view.finished => (Tone::Good, said),
            None if counts_below => (Tone::Info, String::new()),
            None => (Tone::Info, said),
        };
        let mut parts = vec![Part::Lines("goal", vec![self.labelled("plan.goal", self.planned(&view.goal))])];
        if !view.steps.is_empty() {
            parts.push(self.steps(&view.steps, true));
        }
        parts.extend(self.outage(view.outage_until));
        let why = view.end.and_then(|end| end_text(self.words.templates, self.words.locale, end));
        parts.extend(why.map(|why| Part::Lines("settled", vec![ours(&why)])));
        Card {
            summary: if view.finished || counts_below {
                format!("{title} · {goal}")
            } else {
                let counts = json!({"done": done_steps(&view.steps), "count": view.steps.len(), "goal": goal});
                self.say("progress.summary", counts)
            },
            head: Some(Head {
                title,
                subject: None,
                tone,
                state,
                facts: Vec::new(),
            }),
            parts,
            ..Card::default()
        }
    }

    /// The model's server is away, and is tried until then.
    pub(super) fn outage(&self, until: Option<Millis>) -> Option<Part<'static>> {
        let until = vec![Span::Time(until?)];
        Some(Part::Lines(
            "outage",
            vec![self.around("⏳ ", "progress.outage", json!({}), "until", until)],
        ))
    }

    /// Words of the model on their own: the earlier parts of a long answer.
    pub(super) fn said(&self, text: &str) -> Card<'static> {
        self.spoken(None, text, "", Vec::new(), Vec::new())
    }

    /// The answer has no head: it should read like a message. Its own Markdown renders; what we add stands below.
    pub(super) fn answer<'a>(&self, answer: &'a domain::Answer) -> Card<'a> {
        let to = self.mention(&answer.requester).filter(|_| answer.group);
        let why = why_ended(self.words.templates, self.words.locale, answer);
        let mut more: Vec<Part<'a>> = Vec::new();
        if !answer.undone.is_empty() {
            more.push(Part::Lines("undone", self.undone(&answer.undone)));
        }
        more.extend(self.open_steps("answer.open_steps", &answer.open_steps));
        if !answer.granted.is_empty() {
            let calls: Vec<_> = answer.granted.iter().collect();
            more.push(Part::Lines("granted", self.calls_under("answer.granted", &calls, false)));
        }
        if !answer.standing.is_empty() {
            let calls: Vec<_> = answer.standing.iter().collect();
            more.push(Part::Lines("standing", self.calls_under("answer.standing", &calls, false)));
        }
        if let Some(turn) = answer.feedback.as_ref().filter(|_| self.words.surface.is_chat_card()) {
            let button = |label| self.button(label, ButtonStyle::Plain, None);
            let (up, down) = (button("answer.up"), button("answer.down"));
            more.push(Part::Feedback(turn, FeedbackButtons { up, down }));
        }
        if let Some(turn) = answer.again.as_ref().filter(|_| !self.words.surface.is_text()) {
            more.push(Part::Lines("again", vec![ours(&self.word("answer.again_hint"))]));
            more.push(Part::TryAgain(turn, self.button("answer.again", ButtonStyle::Primary, None)));
        }
        let mut foot = Vec::new();
        if let Some(incident) = &answer.incident {
            let incident = Span::Foreign(one_line(incident, 64));
            foot.push(self.around("", "answer.incident", json!({}), "incident", vec![incident]));
        }
        foot.extend(self.demo(answer.demo));
        self.spoken(to, &answer.text, &why, more, foot)
    }

    fn spoken<'a>(&self, to: Option<Span>, text: &str, why: &str, more: Vec<Part<'a>>, foot: Vec<CardLine>) -> Card<'a> {
        let text = self.cut(text.trim(), self.caps.answer);
        let ours = match (text.is_empty(), why.is_empty()) {
            (true, true) => ours(&self.word("notice.nothing_to_say")),
            (false, true) => CardLine::new(),
            // It may name what was done, in words of the model.
            (_, false) => vec![Span::Block(why.to_owned())],
        };
        let summary = match one_line(&text, 100) {
            text if text.is_empty() => self.word("answer.summary"),
            text => text,
        };
        let mut parts = vec![Part::Answer(AnswerPart { to, text, ours })];
        parts.extend(more);
        Card {
            summary,
            parts,
            foot,
            ..Card::default()
        }
    }
}
