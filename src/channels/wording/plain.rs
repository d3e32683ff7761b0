//! Everything we say as plain text: for the API's message list, and for a chat that refused the card.

use countersign_agent::domain::{
    ActionView, Answer, ApprovalCard, BudgetCard, CardState, Locale, Outbound, PlanCard, PlanEnd, ProgressView, QuestionCard, StepView,
};
use countersign_agent::template::Templates;
use serde_json::json;

use super::{
    Asked, Whom, asked_of, capitalized, decided_by, decision_words, effect_key, end_key, end_text, left_off, mark_of, minutes, notice_text,
    one_line, opening, plan_key, prompt_key, settled_text, spent, state_key, under_way, why_ended, words_key,
};

/// `content` as text that a person can read and answer without buttons. Foreign text stands as it is: a caller that
/// puts the result into a platform's markup escapes it first. Empty for a reaction.
#[must_use]
pub fn plain_text(templates: &Templates, locale: Locale, content: &Outbound) -> String {
    let asking = asking(templates, locale, false, content, &str::to_owned);
    let body = body(templates, locale, false, content);
    if asking.is_empty() { body } else { format!("{asking}\n{body}") }
}

/// Whom an open card asks, where that is not the requester alone, and whom the requester waits for. It holds words of ours and people as
/// `name` gives them, and no foreign text.
pub(in crate::channels) fn asking(
    templates: &Templates,
    locale: Locale,
    slack: bool,
    content: &Outbound,
    name: &dyn Fn(&str) -> String,
) -> String {
    let (intro, waits, state) = match content {
        Outbound::PlanCard(card) => ("plan.intro", "plan.waits", &card.state),
        Outbound::ApprovalCard(card) => ("approval.intro", "approval.waits", &card.state),
        Outbound::BudgetCard(card) => ("", "budget.waits", &card.state),
        Outbound::QuestionCard(_)
        | Outbound::Progress(_)
        | Outbound::Answer(_)
        | Outbound::Notice(_)
        | Outbound::Text { .. }
        | Outbound::Reaction(_) => return String::new(),
    };
    let asks = |whom: &Whom<'_>| whom.listed().is_some() || whom.anyone();
    let Some(whom) = Whom::of(content).filter(|whom| matches!(state, CardState::Open { .. }) && asks(whom)) else {
        return String::new();
    };
    let people = whom.people(name);
    let mut values = json!({});
    whom.tell(&mut values, slack, &people, &name(whom.requester));
    // What a limit asks stands in its own words; here are those who are asked.
    let mut lines = vec![if intro.is_empty() {
        people
    } else {
        opening(templates, locale, intro, &values)
    }];
    if whom.waits() {
        lines.push(opening(templates, locale, waits, &values));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

/// [`plain_text`] without the people whom it asks.
pub(in crate::channels) fn body(templates: &Templates, locale: Locale, slack: bool, content: &Outbound) -> String {
    let text = Text { templates, locale, slack };
    let lines = match content {
        Outbound::PlanCard(card) => text.plan(card),
        Outbound::ApprovalCard(card) => text.approval(card),
        Outbound::QuestionCard(card) => text.question(card),
        Outbound::BudgetCard(card) => text.budget(card),
        Outbound::Progress(view) => text.progress(view),
        Outbound::Answer(answer) => text.answer(answer),
        Outbound::Notice(notice) => vec![notice_text(templates, locale, notice)],
        Outbound::Text { text } => vec![text.clone()],
        Outbound::Reaction(_) => Vec::new(),
    };
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

struct Text<'a> {
    templates: &'a Templates,
    locale: Locale,
    /// Said where people answer in threads.
    slack: bool,
}

impl Text<'_> {
    fn say(&self, key: &str, values: serde_json::Value) -> String {
        self.templates.say(self.locale, key, values)
    }

    fn word(&self, key: &str) -> String {
        self.say(key, json!({}))
    }

    fn title(&self, key: &str, state: &CardState, asked: Asked) -> String {
        match state {
            CardState::Open { .. } => self.titled(key, String::new()),
            CardState::Decided { .. } | CardState::Informed => self.titled(key, self.word(state_key(state, asked))),
        }
    }

    fn titled(&self, key: &str, state: String) -> String {
        self.say("plain.title", json!({"title": self.word(key), "state": state}))
            .trim_end()
            .to_owned()
    }

    /// `label text`; a full-width colon brings its own gap.
    fn labelled(&self, key: &str, text: &str) -> String {
        let label = self.word(key);
        let gap = if label.is_ascii() { " " } else { "" };
        format!("{label}{gap}{}", hang(text))
    }

    /// Who settled it, when, with which words; and how it ended.
    fn settled(&self, state: &CardState, asked: Asked, end: Option<PlanEnd>) -> Vec<String> {
        let CardState::Decided { decision } = state else {
            return Vec::new();
        };
        let mut lines = vec![decided_by(self.templates, self.locale, decision, asked, str::to_owned)];
        lines.extend(settled_text(self.templates, self.locale, decision.kind));
        lines.extend(decision_words(decision).map(|words| self.labelled(words_key(asked), words)));
        lines.extend(end.and_then(|end| end_text(self.templates, self.locale, end)));
        lines
    }

    fn step(&self, number: usize, step: &StepView, marks: bool) -> String {
        let mark = if marks { format!("{} ", mark_of(step)) } else { String::new() };
        let tools = if step.tools.is_empty() {
            String::new()
        } else {
            format!(" [{}]", self.say("plain.tools", json!({"tools": step.tools.join(", ")})))
        };
        let intent = step.intent.as_deref().map_or_else(String::new, |intent| {
            format!(" — {}", self.say("plan.intent", json!({"intent": one_line(intent, usize::MAX)})))
        });
        let left = left_off(self.templates, self.locale, step);
        format!("{number}. {mark}{}{intent}{tools}{left}", one_line(&step.content, usize::MAX))
    }

    fn steps(&self, steps: &[StepView], marks: bool) -> Vec<String> {
        steps.iter().enumerate().map(|(at, step)| self.step(at + 1, step, marks)).collect()
    }

    fn plan(&self, card: &PlanCard) -> Vec<String> {
        let open = matches!(card.state, CardState::Open { .. });
        let state = if open { String::new() } else { self.word(plan_key(card)) };
        let mut lines = vec![self.titled("plan.title", state)];
        lines.push(self.labelled("plan.goal", &one_line(&card.goal, usize::MAX)));
        lines.extend(self.steps(&card.steps, under_way(card)));
        lines.extend(card.note.as_deref().map(hang));
        if card.request_edited && open {
            lines.push(self.word("plan.edited"));
        }
        if let CardState::Open { votes } = card.state {
            lines.push(self.say("plan.grants", json!({"tools": card.grants.join(", ")})));
            let asks = json!({"tools": card.still_asks.join(", "), "approval": card.approval});
            lines.push(self.say("plan.still_asks", asks));
            lines.push(self.word("plan.prompt"));
            lines.push(self.group(card.group));
            lines.push(self.word("plain.cancel"));
            if card.quorum > 1 {
                lines.push(self.say("foot.quorum", json!({"quorum": card.quorum, "votes": votes})));
            }
            lines.push(self.ttl(card.ttl_ms));
        }
        lines.extend(self.settled(&card.state, asked_of(card), card.end));
        if card.demo {
            lines.push(self.word("foot.demo"));
        }
        lines
    }

    fn approval(&self, card: &ApprovalCard) -> Vec<String> {
        let mut lines = vec![self.title("approval.title", &card.state, Asked::Actions)];
        lines.extend(card.note.as_deref().map(hang));
        for (at, action) in card.actions.iter().enumerate() {
            lines.extend(self.action(at + 1, action));
        }
        if matches!(card.state, CardState::Open { .. }) {
            if card.later > 0 {
                lines.push(self.say("approval.later", json!({"count": card.later})));
            }
            lines.push(self.word(if prompt_key(card) == "approval.prompt" {
                "plain.approval"
            } else {
                prompt_key(card)
            }));
            lines.push(self.group(card.group));
            lines.push(self.ttl(card.ttl_ms));
        }
        lines.extend(self.settled(&card.state, Asked::Actions, None));
        lines
    }

    fn action(&self, number: usize, action: &ActionView) -> Vec<String> {
        let effect = self.word(effect_key(action.effect));
        let status = self.word(&format!("action.{}", action.status.as_str()));
        let mut lines = vec![
            format!("{number}. {} ({effect}, {status})", action.tool),
            one_line(&action.justification, 1000),
        ];
        // What is decided about comes before what may be cut.
        lines.push(self.labelled("approval.arguments", &action.arguments));
        if action.hidden > 0 {
            lines.push(self.say("approval.hidden", json!({"count": action.hidden})));
        }
        lines.extend(action.preview.as_ref().map(|preview| self.labelled("approval.preview", preview)));
        lines.extend(action.warning().map(|key| self.word(key)));
        if let Some(output) = &action.output {
            lines.push(self.labelled("approval.output", output));
        }
        lines
    }

    fn question(&self, card: &QuestionCard) -> Vec<String> {
        let mut lines = vec![self.title("question.title", &card.state, Asked::Answer)];
        lines.extend(card.title.as_deref().map(hang));
        lines.push(hang(&card.question));
        if let Some(reason) = &card.reason {
            lines.push(self.labelled("question.reason", reason));
        }
        if matches!(card.state, CardState::Open { .. }) {
            lines.push(self.word("question.prompt"));
            lines.push(self.group(card.group));
            lines.push(self.ttl(card.ttl_ms));
        }
        lines.extend(self.settled(&card.state, Asked::Answer, None));
        lines
    }

    fn budget(&self, card: &BudgetCard) -> Vec<String> {
        let mut lines = vec![self.title("budget.title", &card.state, Asked::Approval)];
        lines.push(capitalized(&self.say("budget.intro", spent(self.templates, self.locale, card))));
        lines.push(hang(&card.summary));
        lines.extend(self.open_steps("budget.open_steps", &card.open_steps));
        if matches!(card.state, CardState::Open { .. }) {
            lines.push(self.word("budget.prompt"));
            lines.push(self.group(true));
            lines.push(self.ttl(card.ttl_ms));
        }
        lines.extend(self.settled(&card.state, Asked::Approval, None));
        lines
    }

    fn progress(&self, view: &ProgressView) -> Vec<String> {
        let title = if view.finished {
            "progress.title_finished"
        } else {
            "progress.title"
        };
        let state = view.end.map_or_else(String::new, |end| self.word(end_key(end)));
        let mut lines = vec![self.titled(title, state), self.labelled("plan.goal", &one_line(&view.goal, 1000))];
        lines.extend(self.steps(&view.steps, true));
        lines.extend(view.end.and_then(|end| end_text(self.templates, self.locale, end)));
        lines
    }

    fn answer(&self, answer: &Answer) -> Vec<String> {
        let mut lines = vec![answer.text.trim().to_owned()];
        lines.push(why_ended(self.templates, self.locale, answer));
        if lines.iter().all(String::is_empty) {
            lines.push(self.word("notice.nothing_to_say"));
        }
        lines.extend(self.open_steps("answer.open_steps", &answer.open_steps));
        if let Some(incident) = &answer.incident {
            lines.push(self.say("answer.incident", json!({"incident": incident})));
        }
        if answer.demo {
            lines.push(format!("({})", self.word("foot.demo")));
        }
        lines
    }

    fn open_steps(&self, key: &str, steps: &[String]) -> Vec<String> {
        if steps.is_empty() {
            return Vec::new();
        }
        std::iter::once(self.word(key))
            .chain(steps.iter().map(|step| format!("- {}", one_line(step, 1000))))
            .collect()
    }

    fn group(&self, group: bool) -> String {
        match (group, self.slack) {
            (false, _) => String::new(),
            (true, false) => self.word("plain.group"),
            (true, true) => self.word("slack.plain_group"),
        }
    }

    fn ttl(&self, ttl_ms: i64) -> String {
        self.say("foot.ttl", json!({"minutes": minutes(ttl_ms)}))
    }
}

/// Foreign text of several lines hangs two blanks in, so that it cannot pass for a line of ours.
fn hang(text: &str) -> String {
    text.trim().lines().collect::<Vec<_>>().join("\n  ")
}
