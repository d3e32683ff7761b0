//! Settling a gate: who may do what at it, when its time is over, how many must approve, and what becomes of its calls.
//!
//! Pure, and the only place of these rules: chat messages, buttons, the API and the library ask here, and then write down the answer.

mod keep;
mod right;
mod rows;
#[cfg(test)]
mod tests;
mod withdraw;

use super::{Absence, ActionId, Approver, Approvers, Decision, DecisionKind, Gate, GateKind, Millis, StepView, Via, Vote};
pub use keep::{BadChoice, kept_steps, optional_steps};
pub use right::{Basis, Right};
pub use rows::{RowVotes, RowsSettlement, settle_rows};
pub use withdraw::withdrawn;

/// What a person says at an open gate: an approval, a change or a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Go ahead. At a gate of tool calls: with all that wait.
    Approve,
    /// Changes to the plan, or the answer to the question.
    Revise(String),
    /// Leave steps out of the plan: of those that may be left out, keep the ones with these ids.
    Keep(Vec<String>),
    /// Give the task up. At a gate of tool calls: run none of those that wait.
    Cancel,
    /// Run none of the calls that wait, for this reason.
    Reject(Option<String>),
}

impl Act {
    /// The act in the terms of this kind of gate. Calls are rejected, never cancelled or revised. At every other gate a refusal
    /// gives the task up. A question cannot be approved, and only a plan has steps: that is `None`.
    pub fn at(self, kind: GateKind) -> Option<Self> {
        Some(match (kind, self) {
            (GateKind::Question, Self::Approve) | (GateKind::Question | GateKind::ToolApproval | GateKind::Budget, Self::Keep(_)) => {
                return None;
            }
            (GateKind::ToolApproval, Self::Cancel) => Self::Reject(None),
            (GateKind::ToolApproval, Self::Revise(reason)) => Self::Reject(Some(reason).filter(|reason| !reason.trim().is_empty())),
            (GateKind::PlanReview | GateKind::Question | GateKind::Budget, Self::Reject(_)) => Self::Cancel,
            (_, act) => act,
        })
    }

    /// The decision that this makes of a gate once nothing is missing, and its text. `words`: what was said, kept with an approval. `kept`: the
    /// numbers of the steps that stay.
    fn decides(&self, kept: &[usize], words: Option<&str>) -> (DecisionKind, Option<String>) {
        match self {
            Self::Approve => (DecisionKind::Approve, Some(words.unwrap_or("OK").to_owned())),
            Self::Revise(text) => (DecisionKind::Revise, Some(text.clone())),
            Self::Keep(_) => (DecisionKind::Revise, Some(keep::in_words(kept))),
            Self::Cancel => (DecisionKind::Cancel, None),
            Self::Reject(reason) => (DecisionKind::Reject, reason.clone()),
        }
    }
}

/// Who acts, and how it reached us.
#[derive(Clone, Debug)]
pub struct Actor {
    /// For whom it counts. `None` for the gateway itself.
    pub user: Option<String>,
    /// The name in the approval trail: the user, or the holder of the API token.
    pub principal: Option<String>,
    /// The holder of the API token acts in the user's name.
    pub by_token: bool,
    /// The person who is away and by whose right the user acts.
    pub in_place_of: Option<String>,
    /// By message, button or API.
    pub via: Via,
    /// Evidence.
    pub event_id: Option<String>,
    /// Now.
    pub now: Millis,
}

impl Actor {
    /// A person, by a verified event.
    pub fn person(user: &str, via: Via, event_id: &str, now: Millis) -> Self {
        Self {
            user: Some(user.to_owned()),
            principal: Some(user.to_owned()),
            by_token: false,
            in_place_of: None,
            via,
            event_id: Some(event_id.to_owned()),
            now,
        }
    }

    /// The gateway itself.
    pub fn system(now: Millis) -> Self {
        Self {
            user: None,
            principal: None,
            by_token: false,
            in_place_of: None,
            via: Via::System,
            event_id: None,
            now,
        }
    }

    /// This actor, with the person by whose right they act. The holder of the API token acts by the token.
    #[must_use]
    pub fn by_right(&self, right: &Right) -> Self {
        let basis = right.basis().filter(|_| !self.by_token);
        Self {
            in_place_of: basis.and_then(|basis| basis.in_place_of.clone()),
            ..self.clone()
        }
    }

    /// A decision of this actor.
    pub fn decision(&self, kind: DecisionKind, text: Option<String>) -> Decision {
        Decision {
            kind,
            by: self.user.clone(),
            via: self.via,
            through_api: self.by_token,
            in_place_of: self.in_place_of.clone(),
            text,
            at: self.now,
            event_id: self.event_id.clone(),
            approvers: Vec::new(),
            kept: Vec::new(),
            standing: None,
        }
    }

    /// The approval of this actor, who has this `right`; of one row of a tool approval, or of the gate.
    pub fn vote(&self, right: &Right, row: Option<&ActionId>) -> Option<Vote> {
        let basis = right.basis().filter(|_| !self.by_token);
        Some(Vote {
            by: self.user.clone()?,
            via: self.via,
            principal: self.by_token.then(|| super::API_TOKEN.to_owned()),
            at: self.now,
            event_id: self.event_id.clone(),
            row: row.cloned(),
            group: basis.and_then(|basis| basis.group.clone()),
            in_place_of: basis.and_then(|basis| basis.in_place_of.clone()),
        })
    }

    fn approver(&self) -> Vec<Approver> {
        let by = self.user.iter();
        by.map(|by| Approver {
            by: by.clone(),
            through_api: self.by_token,
            in_place_of: self.in_place_of.clone(),
        })
        .collect()
    }
}

/// The part of a gate that the rules read.
#[derive(Clone, Copy, Debug)]
pub struct GateStanding<'a> {
    /// Why it waits.
    pub kind: GateKind,
    /// Whose task it is.
    pub requester: &'a str,
    /// Who may approve, by the settings of this moment.
    pub approvers: &'a Approvers,
    /// The steps of the plan under review, as its card shows them.
    pub steps: &'a [StepView],
    /// Different people needed to approve: a plan, or each call.
    pub quorum: u32,
    /// When it lapses.
    pub expires_at: Millis,
    /// The actor was shown everything that is decided about.
    pub shown_whole: bool,
    /// No part of it counts as shown to the actor.
    pub cut: bool,
    /// The approvals so far.
    pub votes: &'a [Vote],
    /// People who are away now, with those who decide in their place.
    pub away: &'a [Absence],
    /// It took its decision.
    pub decided: bool,
}

impl<'a> GateStanding<'a> {
    /// A stored gate, of whose card the actor has seen what it shows.
    pub fn of(gate: &'a Gate, approvers: &'a Approvers, votes: &'a [Vote], decided: bool) -> Self {
        Self {
            kind: gate.kind,
            requester: &gate.requester,
            approvers,
            steps: gate.card.steps_under_review(),
            quorum: gate.quorum,
            expires_at: gate.expires_at,
            shown_whole: !gate.card.hides(),
            cut: gate.card.is_cut(),
            votes,
            away: &[],
            decided,
        }
    }

    /// Different people needed to approve it as a whole. Calls are approved one by one.
    fn needed(&self) -> u32 {
        if self.kind == GateKind::PlanReview { self.quorum.max(1) } else { 1 }
    }
}

/// The effect of an act.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// The gate takes this decision.
    Decided(Decision),
    /// One of several approvals: so many count.
    Voted {
        /// With this one.
        votes: u32,
    },
}

/// What an act comes to, with the approval that is to be kept for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The effect, in which the approval counts already.
    pub settlement: Settlement,
    /// The approval. `None` means that the act is none.
    pub vote: Option<Vote>,
}

/// Why an act has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody was first.
    Decided,
    /// Its time is over.
    Lapsed,
    /// The actor may not do this here.
    NotEntitled,
    /// Whether the actor may do this depends on these groups, which could not be looked up.
    GroupUnknown(Vec<String>),
    /// There is more to decide about than the card shows.
    NotShownWhole,
    /// Changes without words.
    NoWords,
    /// Such a choice of steps changes nothing.
    BadChoice(BadChoice),
}

/// What `act` of `actor` comes to at `gate`, which asks for no calls. `right`: may this person approve where these people are asked, by the
/// settings of this moment?
///
/// Everybody who may approve may do everything. A requester who may not approve may change and refuse. The holder of the API token may do
/// everything, and is one voter in whosever name it speaks. `words`: what was said, kept with an approval.
pub fn settle(
    gate: &GateStanding<'_>,
    act: &Act,
    actor: &Actor,
    right: impl Fn(&str, &Approvers) -> Right,
    words: Option<&str>,
) -> Result<Answer, Refusal> {
    let own = check(gate, gate.approvers, act, actor, &right)?;
    let actor = &actor.by_right(&own);
    let vote = actor.vote(&own, None).filter(|_| *act == Act::Approve);
    let mut approvers = Vec::new();
    if *act == Act::Approve {
        approvers = counted(gate.needed(), gate.votes.to_vec(), actor, vote.clone(), |vote| {
            stands(vote, gate.requester, gate.approvers, &right)
        });
        let votes = u32::try_from(approvers.len()).unwrap_or(u32::MAX);
        if votes < gate.needed() {
            let settlement = Settlement::Voted { votes };
            return Ok(Answer { settlement, vote });
        }
    }
    let kept = match act {
        Act::Keep(ids) => kept_steps(gate.steps, ids).map_err(Refusal::BadChoice)?,
        Act::Approve | Act::Revise(_) | Act::Cancel | Act::Reject(_) => Vec::new(),
    };
    let (kind, text) = act.decides(&kept, words);
    let settlement = Settlement::Decided(Decision {
        approvers,
        kept,
        ..actor.decision(kind, text)
    });
    Ok(Answer { settlement, vote })
}

/// Those whose approval counts, with that of `actor`, where `needed` are needed.
fn counted(needed: u32, votes: Vec<Vote>, actor: &Actor, own: Option<Vote>, stands: impl Fn(&Vote) -> bool) -> Vec<Approver> {
    if needed <= 1 {
        return actor.approver();
    }
    Vote::approvers(&with_own(votes, own), stands)
}

/// The votes with this one, as they are stored: of two that exclude each other the higher one stands, of equal ones the first.
fn with_own(mut votes: Vec<Vote>, own: Option<Vote>) -> Vec<Vote> {
    if let Some(own) = own
        && votes.iter().filter(|vote| own.excludes(vote)).all(|vote| own.outranks(vote))
    {
        votes.retain(|vote| !own.excludes(vote));
        votes.push(own);
    }
    votes
}

/// Does a vote that was given count where `approvers` are asked now? One that somebody gave as a member of a group counts as long as the
/// group is asked, also after they have left it. One that was given in somebody's place counts as long as that person may approve, also after
/// they are back.
pub fn stands(vote: &Vote, requester: &str, approvers: &Approvers, right: impl Fn(&str, &Approvers) -> Right) -> bool {
    if vote.in_place_of.is_some() && vote.by == requester && approvers.bars_requester() {
        return false;
    }
    let group_is_asked = vote.group.as_deref().is_some_and(|group| approvers.names(group));
    let own = right(vote.voice(), approvers);
    let counts = match &vote.in_place_of {
        Some(person) => own.in_place_of(person),
        None => own,
    };
    group_is_asked || counts.is_given()
}

/// The right by which `actor` may do this now where `approvers` are asked.
fn check(
    gate: &GateStanding<'_>,
    approvers: &Approvers,
    act: &Act,
    actor: &Actor,
    right: impl Fn(&str, &Approvers) -> Right,
) -> Result<Right, Refusal> {
    is_open(gate, actor)?;
    let right = right_of(gate, approvers, act, actor, None, right)?;
    match act {
        Act::Approve if !gate.shown_whole => Err(Refusal::NotShownWhole),
        Act::Revise(text) if text.trim().is_empty() => Err(Refusal::NoWords),
        Act::Approve | Act::Revise(_) | Act::Keep(_) | Act::Cancel | Act::Reject(_) => Ok(right),
    }
}

fn is_open(gate: &GateStanding<'_>, actor: &Actor) -> Result<(), Refusal> {
    if gate.decided {
        return Err(Refusal::Decided);
    }
    if actor.now >= gate.expires_at {
        return Err(Refusal::Lapsed);
    }
    Ok(())
}

fn right_of(
    gate: &GateStanding<'_>,
    approvers: &Approvers,
    act: &Act,
    actor: &Actor,
    row: Option<&ActionId>,
    right: impl Fn(&str, &Approvers) -> Right,
) -> Result<Right, Refusal> {
    if actor.by_token {
        return Ok(Right::OWN);
    }
    let user = actor.user.as_deref().unwrap_or_default();
    // A deputy of several lends their vote to one for whom nobody has voted, if there is one.
    let voted = |absence: &&Absence| {
        let of_another = |vote: &Vote| vote.by != user && vote.principal.is_none();
        let same = |vote: &Vote| vote.row.as_ref() == row && vote.voice() == absence.person && of_another(vote);
        gate.votes.iter().any(same)
    };
    let (voted, unheard): (Vec<&Absence>, Vec<&Absence>) = gate.away.iter().partition(voted);
    match may(act, user, gate.requester, approvers, unheard.into_iter().chain(voted), right) {
        Right::No => Err(Refusal::NotEntitled),
        Right::Unknown(groups) => Err(Refusal::GroupUnknown(groups)),
        given @ Right::Given(_) => Ok(given),
    }
}

/// May `user` do this to what `requester` asked for, where `approvers` are asked? By their own right, else by that of one of those who are
/// `away` and whose deputy they are. Where the requester must not approve, they do not in another's place either. `right`: of a person by
/// themselves.
pub fn may<'a>(
    act: &Act,
    user: &str,
    requester: &str,
    approvers: &Approvers,
    away: impl IntoIterator<Item = &'a Absence>,
    right: impl Fn(&str, &Approvers) -> Right,
) -> Right {
    // A requester who is not an approver may change and refuse, never approve.
    let own = |person: &str| {
        if person == requester && *act != Act::Approve {
            Right::OWN
        } else {
            right(person, approvers)
        }
    };
    let barred = user == requester && approvers.bars_requester();
    let by_themselves = own(user);
    if by_themselves.is_given() || barred {
        return by_themselves;
    }
    let deputised = away.into_iter().filter(|absence| absence.deputy == user);
    deputised
        .map(|absence| own(&absence.person).in_place_of(&absence.person))
        .fold(by_themselves, Right::or)
}
