//! Whom a card asks, and whom it tells that others are asked.

use serde_json::{Value, json};

use countersign_agent::domain::{Absence, ActionView, ApprovalCard, CardHead, ChannelKind, Deciders, MOST_NAMED, Outbound};

/// The approvers of what a card shows, beside the person whose task it is.
#[derive(Clone, Debug)]
pub(in crate::channels) struct Audience<'a> {
    deciders: Deciders<'a>,
    pub(in crate::channels) requester: &'a str,
    /// Those of them who are away.
    pub(in crate::channels) away: &'a [Absence],
    group: bool,
}

impl<'a> Audience<'a> {
    /// `None` when it needs no approval.
    pub(in crate::channels) fn of(content: &'a Outbound) -> Option<Self> {
        match content {
            Outbound::ApprovalCard(card) => Some(Self::calls(card)),
            Outbound::QuestionCard(_) => None,
            _ => content.head().map(Self::of_head),
        }
    }

    pub(in crate::channels) fn of_head(head: &'a CardHead) -> Self {
        Self {
            deciders: head.deciders(),
            requester: &head.requester,
            away: &head.away,
            // Where the card does not say whether this is a group, a mention does no harm in a direct chat.
            group: head.group.unwrap_or(true),
        }
    }

    /// Of all calls that wait.
    pub(in crate::channels) fn calls(card: &'a ApprovalCard) -> Self {
        Self {
            deciders: card.deciders(),
            ..Self::of_head(&card.head)
        }
    }

    pub(in crate::channels) fn call(card: &'a ApprovalCard, row: &'a ActionView) -> Self {
        Self {
            deciders: row.deciders(card.head.approvers(), &card.head.requester),
            ..Self::calls(card)
        }
    }

    /// Does it ask the same people?
    pub(in crate::channels) fn is_as(&self, other: &Self) -> bool {
        self.deciders == other.deciders
    }

    /// The people who may approve, where they are not the requester alone or everybody.
    pub(in crate::channels) fn listed(&self) -> Option<&[&'a str]> {
        let people = &self.deciders.people[..];
        (!people.is_empty() && *people != [self.requester]).then_some(people)
    }

    pub(in crate::channels) fn nobody(&self) -> bool {
        self.deciders.is_nobody()
    }

    /// Does it ask somebody in the chat?
    pub(in crate::channels) fn anyone(&self) -> bool {
        self.group && self.deciders.anyone
    }

    /// Does it ask somebody in the chat, but not the requester?
    pub(in crate::channels) fn not_requester(&self) -> bool {
        self.deciders.others && !self.anyone()
    }

    /// Are others asked than the requester alone?
    pub(in crate::channels) fn others(&self) -> bool {
        self.listed().is_some() || self.anyone() || self.not_requester()
    }

    /// Does the requester wait for others? They may be a member of a group that is asked.
    pub(in crate::channels) fn waits(&self) -> bool {
        let may = |id: &&str| *id == self.requester || ChannelKind::is_group_anywhere(id);
        let may = self.deciders.anyone || self.deciders.people.iter().any(may);
        !may && (self.not_requester() || self.listed().is_some())
    }

    /// The requester alone is asked, by name where others read along.
    pub(in crate::channels) fn by_name(&self) -> Option<&'a str> {
        (self.group && !self.others() && !self.nobody()).then_some(self.requester)
    }

    /// How many of those who may approve are not named.
    pub(in crate::channels) fn more(&self) -> usize {
        self.listed().map_or(0, |ids| ids.len().saturating_sub(MOST_NAMED))
    }

    /// Those who may approve, as many as are named.
    pub(in crate::channels) fn named(&self) -> impl Iterator<Item = &'a str> {
        self.listed().unwrap_or_default().iter().take(MOST_NAMED).copied()
    }

    /// Adds to the values of our words who is asked; `people` and `requester` as the platform names them.
    pub(in crate::channels) fn tell(&self, values: &mut Value, slack: bool, people: &str, requester: &str) {
        let asks = match (self.listed(), self.anyone(), self.not_requester()) {
            (Some(_), _, _) => "listed",
            (None, true, _) => "anyone",
            (None, false, true) => "not_requester",
            (None, false, false) if self.nobody() => "nobody",
            (None, false, false) => "requester",
        };
        values["asks"] = json!(asks);
        values["people"] = json!(people);
        values["requester"] = json!(requester);
        values["slack"] = json!(slack);
    }
}

/// The person who is mentioned before a text in a group.
pub(in crate::channels) fn requester(content: &Outbound) -> Option<&str> {
    match content {
        Outbound::QuestionCard(card) => card.head.in_group().then_some(card.head.requester.as_str()),
        Outbound::Answer(answer) => answer.group.then_some(answer.requester.as_str()),
        Outbound::PlanCard(_) | Outbound::ApprovalCard(_) | Outbound::BudgetCard(_) => Audience::of(content)
            .filter(|whom| whom.listed().is_none())
            .and_then(|whom| whom.by_name().or_else(|| whom.anyone().then_some(whom.requester))),
        _ => None,
    }
}
