//! What must hold between the states of the machine.

use countersign_agent::domain::{ActionStatus, DecisionKind, GateKind};

use super::{Card, Machine, Outcome, PEOPLE, State};

impl Machine {
    /// What is wrong with a step.
    pub(in crate::conversation::route::tests::search) fn broken(&self, before: &State, after: &State) -> Option<String> {
        if before.decision.is_some() && before.decision != after.decision {
            return Some(format!("a decision changed: {:?}, {:?}", before.decision, after.decision));
        }
        if before
            .rows
            .iter()
            .zip(&after.rows)
            .any(|(before, after)| !before.waits() && before != after)
        {
            return Some(String::from("a verdict changed"));
        }
        if after.decision.is_some() && after.rows.iter().any(|row| row.waits()) {
            return Some(String::from("a row waits behind a decided gate"));
        }
        if after.went > 1 {
            return Some(String::from("the turn went on twice"));
        }
        if after.outcome != Outcome::Waits && after.decision.is_none() {
            return Some(String::from("a gate is open behind a turn that went on"));
        }
        if let (Outcome::Went(kind, rows), Some((decided, _))) = (after.outcome, after.decision)
            && (kind != decided || rows != after.rows)
        {
            return Some(String::from("the turn went on otherwise than decided"));
        }
        if before.lapsed
            && before.decision.is_none()
            && after
                .decision
                .is_some_and(|(kind, by)| kind == DecisionKind::Approve || by.is_some())
        {
            return Some(String::from("decided by a person after its time"));
        }
        if before.waiting.len() > after.waiting.len() && after.card == Card::Unheard && after.decision.is_none() {
            return Some(String::from("words were lost before the card's receipt was known"));
        }
        self.voted(before, after).or_else(|| self.unentitled(before, after))
    }

    /// A vote of somebody who may not approve; or one that is gone.
    fn voted(&self, before: &State, after: &State) -> Option<String> {
        let all = |state: &State, who: usize| state.votes[who] + state.row_votes[0][who] + state.row_votes[1][who];
        for (who, name) in PEOPLE.iter().enumerate() {
            if all(after, who) > all(before, who) && !self.entitled(who, before.left) {
                return Some(format!("a vote of {name}"));
            }
            if all(after, who) < all(before, who) {
                return Some(format!("a vote of {name} is gone"));
            }
        }
        None
    }

    /// Approved by too few, or by somebody who may not. A vote counts for as long as the gate is open, whoever leaves the group.
    fn unentitled(&self, before: &State, after: &State) -> Option<String> {
        let quorum = usize::try_from(self.quorum).unwrap_or(usize::MAX);
        let few = |votes: [u8; 2]| votes.iter().filter(|votes| **votes > 0).count() < quorum;
        for (at, row) in after.rows.iter().enumerate() {
            if *row == ActionStatus::Approved && before.rows[at].waits() && quorum > 1 && few(after.row_votes[at]) {
                return Some(format!("row {at} approved by too few"));
            }
        }
        let Some((DecisionKind::Approve, by)) = after.decision.filter(|_| before.decision.is_none()) else {
            return None;
        };
        let Some(by) = by else {
            return Some(String::from("approved by nobody"));
        };
        if self.kind != GateKind::ToolApproval && !self.entitled(by, before.left) {
            return Some(format!("approved by {}", PEOPLE[by]));
        }
        (self.kind == GateKind::PlanReview && few(after.votes)).then(|| String::from("approved by too few"))
    }

    /// From here the processes alone must come to a state in which nobody waits for nothing.
    pub(in crate::conversation::route::tests::search) fn stuck(&self, state: &State) -> Option<String> {
        let mut at = state.clone();
        for _ in 0..16 {
            let next = (0..2).find_map(|worker| self.worked(&at, worker));
            let Some(next) = next else { break };
            at = next;
        }
        let due = at.decision.is_some() || at.lapsed || at.stop || at.card == Card::Never;
        (at.outcome == Outcome::Waits && due).then(|| format!("stuck: {at:?}"))
    }
}
