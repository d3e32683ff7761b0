//! What we say, as the console's views.

use countersign_agent::domain::{
    ActionStatus, ActionView, Answer, ApprovalCard, BudgetCard, CardState, Decision, DecisionKind, GateId, Locale, Outbound, PlanCard,
    PlanEnd, ProgressView, QuestionCard, StepStatus, StepView,
};
use countersign_agent::template::Templates;
use serde_json::json;

use super::markdown;
use super::view::{Ask, Block, CallAsk, CallLine, CardPage, StepLine};
use crate::channels::wording::{
    Asked, Tone, Whom, asked_of, capitalized, decided_by, decision_words, effect_key, end_key, end_text, minutes, notice_people,
    notice_text, opening, plan_key, prompt_key, settled_text, spent, state_key, sure_key, under_way, why_ended, words_key,
};

/// `content` as the console draws it; none for what is no message. `name` gives people their names.
#[must_use]
pub fn card_page(templates: &Templates, locale: Locale, name: &dyn Fn(&str) -> String, content: &Outbound) -> Option<CardPage> {
    let painter = Painter { templates, locale, name };
    Some(match content {
        Outbound::PlanCard(card) => painter.plan(card),
        Outbound::ApprovalCard(card) => painter.approval(card),
        Outbound::QuestionCard(card) => painter.question(card),
        Outbound::BudgetCard(card) => painter.budget(card),
        Outbound::Progress(view) => painter.progress(view),
        Outbound::Answer(answer) => painter.answer(answer),
        Outbound::Notice(notice) => CardPage {
            shape: "notice",
            text: notice_text(templates, locale, notice_people(notice, name).as_ref().unwrap_or(notice)),
            ..CardPage::default()
        },
        Outbound::Text { text } => CardPage {
            shape: "prose",
            blocks: vec![prose(text)],
            ..CardPage::default()
        },
        Outbound::Reaction(_) => return None,
    })
}

/// Plan steps as lines; `marks`: work may have begun.
#[must_use]
pub fn step_lines(templates: &Templates, locale: Locale, steps: &[StepView], marks: bool) -> Vec<StepLine> {
    let lines = steps.iter().enumerate().map(|(at, step)| {
        let mark = if step.unfinished { "unfinished" } else { mark(step.status) };
        StepLine {
            number: at + 1,
            mark: if marks { mark } else { "plain" },
            status: if marks {
                templates.say(locale, &format!("console.step.{mark}"), json!({}))
            } else {
                String::new()
            },
            content: step.content.clone(),
            intent: match &step.intent {
                Some(intent) => templates.say(locale, "plan.intent", json!({"intent": intent})),
                None => String::new(),
            },
            tools: step.tools.clone(),
        }
    });
    lines.collect()
}

/// Tool calls as blocks without buttons, for the full record; arguments and outputs are as long as they are.
#[must_use]
pub fn call_blocks(templates: &Templates, locale: Locale, calls: &[ActionView]) -> Vec<Block> {
    let painter = Painter {
        templates,
        locale,
        name: &str::to_owned,
    };
    let lines = calls.iter().enumerate();
    lines.map(|(at, call)| painter.call(at + 1, call, None)).collect()
}

/// Markdown as safe HTML.
#[must_use]
pub fn markdown_html(text: &str) -> String {
    markdown::html(text)
}

fn mark(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in_progress",
        StepStatus::Completed => "completed",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
    }
}

fn prose(text: &str) -> Block {
    Block::Prose {
        html: markdown::html(text),
        quiet: false,
    }
}

/// Tool names for a sentence of ours: as code, whatever is in them.
fn in_code(tools: &[String]) -> String {
    let names = tools.iter().map(|name| format!("`{}`", name.replace('`', "'")));
    names.collect::<Vec<_>>().join(" ")
}

struct Painter<'a> {
    templates: &'a Templates,
    locale: Locale,
    name: &'a dyn Fn(&str) -> String,
}

impl Painter<'_> {
    fn say(&self, key: &str, values: impl serde::Serialize) -> String {
        self.templates.say(self.locale, key, values)
    }

    fn word(&self, key: &str) -> String {
        self.say(key, json!({}))
    }

    /// Words of ours, with their Markdown.
    fn quiet(&self, text: &str) -> Block {
        Block::Prose {
            html: markdown::html(text),
            quiet: true,
        }
    }

    fn card(&self, title: &str, state: &CardState, asked: Asked) -> CardPage {
        CardPage {
            shape: "card",
            tone: tone(state, asked),
            title: self.word(title),
            tag: self.word(state_key(state, asked)),
            ..CardPage::default()
        }
    }

    fn ttl(&self, ttl_ms: i64) -> String {
        self.say("foot.ttl", json!({"minutes": minutes(ttl_ms)}))
    }

    /// Whom an open card asks and, for a requester who waits for others, whom. Foreign in it are ids: without Markdown.
    fn asks(&self, keys: [&str; 2], whom: Whom<'_>) -> Option<Block> {
        let people = whom.people(self.name);
        let requester = if whom.by_name().is_some() || whom.listed().is_some() || whom.anyone() {
            (self.name)(whom.requester)
        } else {
            String::new()
        };
        let mut values = json!({});
        whom.tell(&mut values, false, &people, &requester);
        let [intro, waits] = keys;
        let mut html = String::new();
        for key in [Some(intro), whom.waits().then_some(waits)]
            .into_iter()
            .flatten()
            .filter(|key| !key.is_empty())
        {
            html.push_str("<p>");
            markdown::escape(&opening(self.templates, self.locale, key, &values), &mut html);
            html.push_str("</p>");
        }
        (!html.is_empty()).then_some(Block::Prose { html, quiet: true })
    }

    /// Who settled it, when, with which words; and how it ended.
    fn settled(&self, decision: &Decision, asked: Asked, end: Option<PlanEnd>) -> Vec<Block> {
        let who = decided_by(self.templates, self.locale, decision, asked, self.name);
        let mut blocks = Vec::new();
        if let Some(words) = decision_words(decision) {
            blocks.push(Block::Labelled {
                label: self.word(words_key(asked)),
                text: words.to_owned(),
            });
        }
        let text = settled_text(self.templates, self.locale, decision.kind);
        // Foreign in it are ids: without Markdown.
        let mut html = String::from("<p>");
        markdown::escape(&who, &mut html);
        html.push_str("</p>");
        let ended = end.and_then(|end| end_text(self.templates, self.locale, end));
        html.extend(text.into_iter().chain(ended).map(|text| markdown::html(&text)));
        blocks.push(Block::Prose { html, quiet: true });
        blocks
    }

    fn note(&self, note: Option<&str>) -> Option<Block> {
        note.filter(|note| !note.trim().is_empty()).map(prose)
    }

    fn plan(&self, card: &PlanCard) -> CardPage {
        let mut page = self.card("plan.title", &card.state, asked_of(card));
        page.tag = self.word(plan_key(card));
        if let Some(end) = card.end {
            page.tone = end_tone(end);
        }
        let under_way = under_way(card);
        let count = card.steps.len();
        page.subtitle = if under_way {
            self.say("plan.progress", json!({"done": done(&card.steps), "count": count}))
        } else {
            self.say("plan.steps", json!({"count": count}))
        };
        if card.plan_version > 1 {
            page.subtitle.push_str(" · ");
            page.subtitle
                .push_str(&self.say("plan.version", json!({"version": card.plan_version})));
        }
        if matches!(card.state, CardState::Open { .. }) {
            page.blocks.extend(self.asks(["plan.intro", "plan.waits"], Whom::plan(card)));
        }
        page.blocks.push(Block::Labelled {
            label: self.word("plan.goal"),
            text: card.goal.clone(),
        });
        page.blocks.push(Block::Steps {
            items: step_lines(self.templates, self.locale, &card.steps, under_way),
        });
        page.blocks.extend(self.note(card.note.as_deref()));
        match &card.state {
            CardState::Open { votes } => self.plan_handshake(&mut page, card, *votes),
            CardState::Decided { decision } => page.blocks.extend(self.settled(decision, asked_of(card), card.end)),
            CardState::Informed => {
                let said = match card.end {
                    Some(end) => end_text(self.templates, self.locale, end),
                    None => Some(self.word("state.informed_text")),
                };
                page.blocks.extend(said.map(|said| self.quiet(&said)));
            }
        }
        if card.demo {
            page.foot.push(self.word("foot.demo"));
        }
        page
    }

    fn plan_handshake(&self, page: &mut CardPage, card: &PlanCard, votes: u32) {
        if card.request_edited {
            page.blocks.push(self.quiet(&self.word("plan.edited")));
        }
        let mut lines = vec![
            self.say("plan.grants", json!({"tools": in_code(&card.grants)})),
            self.say(
                "plan.still_asks",
                json!({"tools": in_code(&card.still_asks), "approval": card.approval}),
            ),
        ];
        if card.quorum > 1 {
            lines.push(self.say("foot.quorum", json!({"quorum": card.quorum, "votes": votes})));
            page.tag = self.say("state.votes", json!({"votes": votes, "quorum": card.quorum}));
        }
        page.blocks.push(self.quiet(&lines.join("\n")));
        page.blocks.push(prose(&self.word("plan.prompt")));
        page.ask = card.review_id.as_ref().map(|id| Ask {
            id: id.to_string(),
            ok: self.word("plan.ok"),
            no: self.word("plan.cancel"),
            no_sure: self.word("plan.cancel_title"),
            label: self.word("plan.feedback"),
            placeholder: self.word("plan.feedback_placeholder"),
            submit: self.word("plan.submit"),
        });
        page.foot.push(self.ttl(card.ttl_ms));
    }

    fn approval(&self, card: &ApprovalCard) -> CardPage {
        let mut page = self.card("approval.title", &card.state, Asked::Actions);
        let open = matches!(card.state, CardState::Open { .. }).then_some(&card.gate_id);
        if open.is_some() {
            page.blocks
                .extend(self.asks(["approval.intro", "approval.waits"], Whom::calls(card)));
        }
        page.blocks.extend(self.note(card.note.as_deref()));
        let rows = card.actions.iter().enumerate();
        page.blocks.extend(rows.map(|(at, action)| self.call(at + 1, action, open)));
        let refused = card
            .actions
            .iter()
            .filter(|action| matches!(action.status, ActionStatus::Rejected | ActionStatus::Expired))
            .count();
        match &card.state {
            CardState::Open { .. } => {
                if card.later > 0 {
                    page.blocks
                        .push(self.quiet(&self.say("approval.later", json!({"count": card.later}))));
                }
                page.blocks.push(prose(&self.word(prompt_key(card))));
                page.foot.push(self.ttl(card.ttl_ms));
            }
            CardState::Decided { decision } => {
                // Rows were decided one by one: "approved" over a rejected row would be a lie.
                if decision.kind == DecisionKind::Approve && refused > 0 {
                    let approved = card.actions.len() - refused;
                    page.tag = self.say("approval.settled", json!({"approved": approved, "refused": refused}));
                    page.tone = if approved > 0 { "good" } else { "bad" };
                }
                page.blocks.extend(self.settled(decision, Asked::Actions, None));
            }
            CardState::Informed => (),
        }
        page
    }

    fn call(&self, number: usize, action: &ActionView, gate: Option<&GateId>) -> Block {
        let waits = matches!(action.status, ActionStatus::Pending | ActionStatus::Unknown);
        Block::Call(Box::new(CallLine {
            number,
            tool: action.tool.clone(),
            effect: action.effect,
            effect_word: self.word(effect_key(action.effect)),
            status: action.status,
            status_word: self.word(&format!("action.{}", action.status.as_str())),
            justification: action.justification.clone(),
            warning: action.warning().map(|key| self.word(key)),
            hidden: (action.hidden > 0).then(|| self.say("approval.hidden", json!({"count": action.hidden}))),
            open: gate.is_some() && waits,
            preview_label: self.word("approval.preview"),
            preview: action.preview.clone(),
            arguments_label: self.word("approval.arguments"),
            arguments: action.arguments.clone(),
            output_label: self.word("approval.output"),
            output: action.output.clone(),
            ask: gate.filter(|_| waits).map(|gate| CallAsk {
                id: action.id.to_string(),
                gate: gate.to_string(),
                ok: self.word("approval.approve"),
                no: self.word("approval.reject"),
                danger: sure_key(action).map(|key| self.word(&format!("{key}_title"))),
            }),
        }))
    }

    fn question(&self, card: &QuestionCard) -> CardPage {
        let mut page = self.card("question.title", &card.state, Asked::Answer);
        page.subtitle = card.title.clone().unwrap_or_default();
        page.blocks.push(prose(&card.question));
        if let Some(reason) = card.reason.as_ref().filter(|reason| !reason.trim().is_empty()) {
            page.blocks.push(Block::Labelled {
                label: self.word("question.reason"),
                text: reason.clone(),
            });
        }
        match &card.state {
            CardState::Open { .. } => {
                page.blocks.push(self.quiet(&self.word("question.prompt")));
                page.ask = Some(Ask {
                    id: card.gate_id.to_string(),
                    submit: self.word("console.send"),
                    label: self.word("question.answer"),
                    ..Ask::default()
                });
                page.foot.push(self.ttl(card.ttl_ms));
            }
            CardState::Decided { decision } => page.blocks.extend(self.settled(decision, Asked::Answer, None)),
            CardState::Informed => (),
        }
        page
    }

    fn budget(&self, card: &BudgetCard) -> CardPage {
        let mut page = self.card("budget.title", &card.state, Asked::Approval);
        let spent = self.say("budget.intro", spent(self.templates, self.locale, card));
        page.blocks.push(self.quiet(&capitalized(&spent)));
        page.blocks.extend(self.note(Some(&card.summary)));
        page.blocks.extend(self.open_steps("budget.open_steps", &card.open_steps));
        match &card.state {
            CardState::Open { .. } => {
                page.blocks.extend(self.asks(["", "budget.waits"], Whom::limit(card)));
                page.blocks.push(prose(&self.word("budget.prompt")));
                page.ask = Some(Ask {
                    id: card.gate_id.to_string(),
                    ok: self.word("budget.ok"),
                    no: self.word("budget.cancel"),
                    ..Ask::default()
                });
                page.foot.push(self.ttl(card.ttl_ms));
            }
            CardState::Decided { decision } => page.blocks.extend(self.settled(decision, Asked::Approval, None)),
            CardState::Informed => (),
        }
        page
    }

    fn open_steps(&self, key: &str, steps: &[String]) -> Option<Block> {
        (!steps.is_empty()).then(|| Block::List {
            label: self.word(key),
            items: steps.to_vec(),
        })
    }

    fn progress(&self, view: &ProgressView) -> CardPage {
        let counts = self.say("plan.progress", json!({"done": done(&view.steps), "count": view.steps.len()}));
        let why = view.end.and_then(|end| end_text(self.templates, self.locale, end));
        let mut page = CardPage {
            shape: "card",
            tone: match view.end {
                Some(end) => end_tone(end),
                None if view.finished => "good",
                None => "info",
            },
            title: self.word(if view.finished {
                "progress.title_finished"
            } else {
                "progress.title"
            }),
            tag: match view.end {
                Some(end) => format!("{} · {counts}", self.word(end_key(end))),
                None => counts,
            },
            blocks: vec![
                Block::Labelled {
                    label: self.word("plan.goal"),
                    text: view.goal.clone(),
                },
                Block::Steps {
                    items: step_lines(self.templates, self.locale, &view.steps, true),
                },
            ],
            ..CardPage::default()
        };
        page.blocks.extend(why.map(|why| self.quiet(&why)));
        page
    }

    fn answer(&self, answer: &Answer) -> CardPage {
        let mut blocks = Vec::new();
        blocks.extend(self.note(Some(&answer.text)));
        let why = why_ended(self.templates, self.locale, answer);
        if !why.is_empty() {
            blocks.push(self.quiet(&why));
        }
        if blocks.is_empty() {
            blocks.push(self.quiet(&self.word("notice.nothing_to_say")));
        }
        blocks.extend(self.open_steps("answer.open_steps", &answer.open_steps));
        let mut foot = Vec::new();
        if let Some(incident) = &answer.incident {
            foot.push(self.say("answer.incident", json!({"incident": incident})));
        }
        if answer.demo {
            foot.push(self.word("foot.demo"));
        }
        CardPage {
            shape: "prose",
            blocks,
            foot,
            ..CardPage::default()
        }
    }
}

/// Steps that need no more work.
fn done(steps: &[StepView]) -> usize {
    let done = |step: &&StepView| matches!(step.status, StepStatus::Completed | StepStatus::Skipped);
    steps.iter().filter(done).count()
}

fn end_tone(end: PlanEnd) -> &'static str {
    match Tone::of(end) {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Quiet => "quiet",
    }
}

fn tone(state: &CardState, asked: Asked) -> &'static str {
    match state {
        CardState::Open { .. } => "wait",
        CardState::Informed => "info",
        CardState::Decided { decision } => match decision.kind {
            DecisionKind::Approve => "good",
            DecisionKind::Revise => match asked {
                Asked::Approval | Asked::Question | Asked::Changes => "info",
                Asked::Answer => "good",
                Asked::Actions => "bad",
            },
            DecisionKind::Cancel | DecisionKind::Reject => "bad",
            DecisionKind::Expire | DecisionKind::Supersede => "quiet",
        },
    }
}
