//! Our own words to people: notices, states and times, rendered from `templates/text`; shared by all channels.

mod audience;

use serde_json::{Value, json};

use countersign_agent::domain::{
    Answer, ApprovalCard, Approver, BudgetCard, CardState, Decision, DecisionKind, EffectClass, FileProblem, Hole, Limit, Locale, Millis,
    Notice, PlanCard, PlanEnd, PlanWords, StepStatus, StepView, TurnReason, UndoneCount,
};
use countersign_agent::template::Templates;

pub(super) use audience::{Audience, requester};
pub(super) use countersign_agent::domain::one_line;

/// The wording of a notice. Foreign text in it (goals, ids) stands as it is: a caller that puts the result into
/// a platform's markup escapes it first.
pub fn notice_text(templates: &Templates, locale: Locale, notice: &Notice) -> String {
    notice_words(templates, locale, notice.clone(), &str::to_owned)
}

/// [`notice_text`] with foreign text as `escape` gives it. People stand as they are.
pub(super) fn notice_words(templates: &Templates, locale: Locale, mut notice: Notice, escape: &dyn Fn(&str) -> String) -> String {
    for hole in notice.holes() {
        match hole {
            Hole::Person(_) => {}
            Hole::Foreign(text, most) => *text = escape(&one_line(text, most)),
            Hole::Time(at) => *at = readable_time(at),
        }
    }
    let mut values = serde_json::to_value(&notice).unwrap_or_default();
    match &notice {
        Notice::Status { steps, .. } => {
            let line = |(content, status): &(String, StepStatus)| json!({"mark": step_mark(*status), "content": content});
            values["steps"] = steps.iter().map(line).collect();
        }
        // Our sentence ends it.
        Notice::Stopped { goal, .. } => values["goal"] = json!(goal.trim_end_matches(['.', '。', ' '])),
        Notice::FilesNotTaken { files } => {
            let line = |(name, problem): &(String, FileProblem)| json!({"name": name, "why": problem});
            values["files"] = files.iter().map(line).collect();
        }
        _ => {}
    }
    templates.say(locale, &format!("notice.{}", notice.key()), values)
}

/// `notice` with each person and group as `name` gives it. `None` means that it has none.
pub fn with_names(notice: &Notice, name: &dyn Fn(&str) -> String) -> Option<Notice> {
    let (mut notice, mut any) = (notice.clone(), false);
    for hole in notice.holes() {
        if let Hole::Person(ids) = hole
            && !ids.is_empty()
        {
            *ids = ids.split(',').map(|id| name(id.trim())).collect::<Vec<_>>().join(", ");
            any = true;
        }
    }
    any.then_some(notice)
}

/// Why a turn ended, in a sentence; empty after an ordinary answer. A known problem says more than its class.
pub(super) fn why_ended(templates: &Templates, locale: Locale, answer: &Answer) -> String {
    match &answer.problem {
        Some(problem) => notice_text(templates, locale, problem),
        None => templates.say(locale, &format!("answer.reason.{}", answer.reason.as_str()), json!({})),
    }
}

pub(super) fn step_mark(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "⬜",
        StepStatus::InProgress => "⏳",
        StepStatus::Completed => "✅",
        StepStatus::Failed => "❌",
        StepStatus::Skipped => "⏭️",
    }
}

/// The mark before a step of a card.
pub(super) fn mark_of(step: &StepView) -> &'static str {
    if step.unfinished { "⏹️" } else { step_mark(step.status) }
}

/// Steps that need no more work.
pub(super) fn done_steps(steps: &[StepView]) -> usize {
    steps.iter().filter(|step| step.status.is_settled()).count()
}

/// Does a card in this state wait, with buttons?
pub(super) fn is_open(state: &CardState) -> bool {
    matches!(state, CardState::Open { .. })
}

pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// What a card asks for; it decides what an answer in free words is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskKind {
    /// A yes to a plan or a limit: what words are is not known yet.
    Approval,
    /// A yes to a plan: the words were a question about it.
    Question,
    /// A yes to a plan: the words changed it.
    Changes,
    /// An answer to a question: the words are the answer.
    Answer,
    /// A yes to tool calls: words are a no with its reason.
    Actions,
}

/// The kind of answer that a plan's card asks for, or got.
pub(super) fn asked_of(card: &PlanCard) -> AskKind {
    match card.words {
        // A choice of steps is understood at once.
        PlanWords::Unknown if matches!(&card.head.state, CardState::Decided { decision } if !decision.kept.is_empty()) => AskKind::Changes,
        PlanWords::Unknown => AskKind::Approval,
        PlanWords::Question => AskKind::Question,
        PlanWords::Changes => AskKind::Changes,
    }
}

/// The key of the word on how a card stands.
pub(super) fn state_key(state: &CardState, asked: AskKind) -> &'static str {
    match state {
        CardState::Open { .. } if asked == AskKind::Answer => "state.waiting",
        CardState::Open { .. } => "state.open",
        CardState::Informed => "state.informed",
        CardState::Decided { decision } => decision_key(decision.kind, asked),
    }
}

/// The key of the word on how a card was settled.
fn decision_key(kind: DecisionKind, asked: AskKind) -> &'static str {
    match kind {
        DecisionKind::Approve if asked == AskKind::Actions => "state.approve_actions",
        DecisionKind::Approve => "state.approve",
        DecisionKind::Revise => match asked {
            AskKind::Approval => "state.replied",
            AskKind::Question => "state.asked",
            AskKind::Changes => "state.revise",
            AskKind::Answer => "state.answered",
            AskKind::Actions => "state.reject",
        },
        DecisionKind::Cancel => "state.cancel",
        DecisionKind::Reject => "state.reject",
        DecisionKind::Expire => "state.expire",
        DecisionKind::Supersede => "state.supersede",
    }
}

/// The makers of a decision, its way and its time, which is said as `at`. `counts`: in place of the decision's word. `name` gives a person's
/// name.
pub(super) fn decided_by(
    templates: &Templates,
    locale: Locale,
    decision: &Decision,
    (asked, counts): (AskKind, Option<&str>),
    at: &str,
    mut name: impl FnMut(&str) -> String,
) -> String {
    let mut makers = decision.makers();
    // Of several calls some were rejected, perhaps by somebody who approved none.
    let last = decision
        .by
        .as_ref()
        .filter(|by| counts.is_some() && makers.iter().all(|maker| maker.by != **by));
    makers.extend(last.map(|by| Approver {
        by: by.clone(),
        through_api: decision.through_api,
        in_place_of: decision.in_place_of.clone(),
    }));
    if makers.is_empty() {
        return templates.say(locale, "state.decided_at", json!({"at": at}));
    }
    let mut names = |through_api: bool| {
        let makers = makers.iter().filter(|maker| maker.through_api == through_api);
        let named = makers.map(|maker| match &maker.in_place_of {
            Some(person) => {
                let values = json!({"by": name(&maker.by), "person": name(person)});
                templates.say(locale, "state.in_place_of", values)
            }
            None => name(&maker.by),
        });
        all_of(templates, locale, &named.collect::<Vec<_>>())
    };
    let word = || templates.say(locale, decision_key(decision.kind, asked), json!({}));
    let state = counts.map_or_else(word, str::to_owned);
    let values = json!({"state": capitalized(&state), "by": names(false), "api": names(true), "at": at});
    let key = match (decision.kind, asked) {
        // It is theirs, and they did not receive it.
        (DecisionKind::Revise, AskKind::Approval | AskKind::Question) => "state.replied_by",
        _ => "state.decided_by",
    };
    templates.say(locale, key, values)
}

/// `a, b and c`, as the language has it.
fn all_of(templates: &Templates, locale: Locale, names: &[String]) -> String {
    templates.say(locale, "state.all_of", json!({ "names": names }))
}

/// The key of the word on how the work on a plan ended.
pub(super) fn end_key(end: PlanEnd) -> &'static str {
    match end {
        PlanEnd::Done => "state.done",
        PlanEnd::Unfinished => "state.unfinished",
        PlanEnd::Replaced | PlanEnd::Early(TurnReason::Superseded) => "state.supersede",
        PlanEnd::Early(TurnReason::Cancelled) => "state.stopped",
        PlanEnd::Early(TurnReason::Expired) => "state.expire",
        PlanEnd::Early(_) => "state.failed",
    }
}

/// How many calls were not carried out, behind the word on how a task ended: `, 1 rejected`. Empty where all were.
pub fn undone_words(templates: &Templates, locale: Locale, undone: &[UndoneCount]) -> String {
    if undone.is_empty() {
        return String::new();
    }
    templates.say(locale, "undone.counts", json!({ "parts": undone }))
}

/// A sentence on how the work on a plan ended, where its word does not say all of it.
pub(super) fn end_text(templates: &Templates, locale: Locale, end: PlanEnd) -> Option<String> {
    let said = match end {
        PlanEnd::Done | PlanEnd::Unfinished => return None,
        PlanEnd::Replaced => templates.say(locale, "state.replaced_text", json!({})),
        PlanEnd::Early(reason) => templates.say(locale, &format!("answer.reason.{}", reason.as_str()), json!({})),
    };
    Some(said).filter(|said| !said.is_empty())
}

/// The key of the line that says how an approval card is answered.
pub(super) fn prompt_key(card: &ApprovalCard) -> &'static str {
    if card.actions.iter().any(|row| row.hidden > 0) {
        "approval.prompt_hidden"
    } else {
        "approval.prompt"
    }
}

/// The key of what is asked before a row's consent counts. `None` when nothing is asked.
pub(super) fn sure_key(effect: EffectClass, is_cut: bool) -> Option<&'static str> {
    if is_cut {
        return Some("approval.hidden");
    }
    (effect == EffectClass::Destructive).then_some("approval.danger")
}

/// The key of the label before the words of a decision.
pub(super) fn words_key(asked: AskKind) -> &'static str {
    match asked {
        AskKind::Approval => "state.replied_text",
        AskKind::Question => "state.asked_text",
        AskKind::Changes => "state.revise_text",
        AskKind::Answer => "question.answer",
        AskKind::Actions => "state.reject_text",
    }
}

/// The words of a decision that are worth showing: "OK" says nothing that its kind does not say. A choice of steps is said in our words.
pub(super) fn decision_words(templates: &Templates, locale: Locale, decision: &Decision) -> Option<String> {
    if !decision.kept.is_empty() {
        return Some(templates.say(locale, "plan.kept", json!({"numbers": decision.kept})));
    }
    let words = decision.text.as_deref()?.trim();
    (matches!(decision.kind, DecisionKind::Revise | DecisionKind::Reject) && !words.is_empty()).then(|| words.to_owned())
}

/// Is the plan of such a card being carried out, or was it before it was changed, so that its steps have marks?
pub(super) fn under_way(card: &PlanCard) -> bool {
    let works = match &card.head.state {
        CardState::Open { .. } => false,
        CardState::Informed => true,
        CardState::Decided { decision } => decision.kind == DecisionKind::Approve,
    };
    // A simple plan is done with the answer; nobody reports its steps.
    if card.end == Some(PlanEnd::Done) && card.steps.iter().all(|step| step.status == StepStatus::Pending) {
        return false;
    }
    works || card.steps.iter().any(|step| step.status != StepStatus::Pending)
}

/// The key of a sentence that belongs to how a gate was settled, if there is one.
pub(super) fn settled_key(kind: DecisionKind) -> Option<&'static str> {
    match kind {
        DecisionKind::Expire => Some("state.expired_text"),
        DecisionKind::Cancel => Some("state.cancelled_text"),
        DecisionKind::Supersede => Some("state.superseded_text"),
        DecisionKind::Approve | DecisionKind::Revise | DecisionKind::Reject => None,
    }
}

/// The values of the budget card's first sentence: model calls spent, and which limits are reached, in words.
pub(super) fn spent(templates: &Templates, locale: Locale, card: &BudgetCard) -> Value {
    let word = |limit: &Limit| {
        let key = match limit {
            Limit::Steps => "budget.limit.steps",
            Limit::Time => "budget.limit.time",
            Limit::Tokens => "budget.limit.tokens",
        };
        templates.say(locale, key, json!({}))
    };
    let limits: Vec<String> = card.reached.iter().map(word).collect();
    json!({"steps": card.steps_used, "limits": limits, "people": "", "requester": ""})
}

/// A moment for people: minutes, and the zone in words, since a chat's readers sit in several zones.
pub(super) fn clock_time(at: Millis) -> String {
    readable_time(&at.rfc3339())
}

/// RFC 3339 as `2026-11-21 03:04 UTC`; anything else stays as it is.
fn readable_time(text: &str) -> String {
    match (text.get(..10), text.get(11..16), text.ends_with('Z')) {
        (Some(day), Some(time), true) => format!("{day} {time} UTC"),
        _ => text.to_owned(),
    }
}

/// Minutes to show for a span in milliseconds: rounded up, at least one.
pub(super) fn minutes(ttl_ms: i64) -> i64 {
    (ttl_ms.max(1).saturating_add(59_999)) / 60_000
}

/// At most `max` characters of `text`, the cut marked by `…`.
pub(super) fn clip(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: times on cards are minutes with their zone, and whatever is no time stays readable.
    #[test]
    fn times_are_short_and_name_their_zone() {
        assert_eq!(clock_time(Millis(1_765_432_100_123)), "2025-12-11 05:48 UTC");
        assert_eq!(readable_time("yesterday"), "yesterday");
        assert_eq!(readable_time("昨天昨天昨天昨天Z"), "昨天昨天昨天昨天Z");
    }

    /// design: a review that lapses within a minute still says one minute, never none.
    #[test]
    fn minutes_round_up() {
        assert_eq!([minutes(0), minutes(60_000), minutes(60_001), minutes(3_600_000)], [1, 1, 2, 60]);
    }

    /// design: cuts count characters, not bytes, and are marked.
    #[test]
    fn cuts_are_marked_and_never_split_a_character() {
        assert_eq!(clip("计划确认", 4), "计划确认");
        assert_eq!(clip("计划确认", 3), "计划…");
    }
}
