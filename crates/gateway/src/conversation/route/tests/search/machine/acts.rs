//! What an act of a person does to the machine, by the real rules.

use countersign_agent::domain::handshake::{Act, Actor};
use countersign_agent::domain::{Action, ActionId, ActionStatus, EffectClass, Millis, TurnId, Via, Vote};

use super::{Fault, GROUP, Machine, PEOPLE, State};
use crate::conversation::route::tests::undecided;
use crate::store::GateRecord;

fn row_id(at: usize) -> ActionId {
    ActionId::new(format!("act_{at}"))
}

fn rows(state: &State) -> Vec<Action> {
    let row = |(at, status): (usize, &ActionStatus)| Action {
        id: row_id(at),
        turn_id: TurnId::new("turn_g"),
        gate_id: None,
        call_id: String::new(),
        tool: String::from("write_file"),
        effect: EffectClass::Write,
        arguments: serde_json::Value::Null,
        justification: String::new(),
        preview: None,
        edited: None,
        quorum: 0,
        approvers: None,
        status: *status,
        position: 0,
        created_at: Millis(900),
        expires_at: None,
        decision: None,
        covered_by: None,
        result: None,
    };
    state.rows.iter().enumerate().map(row).collect()
}

impl Machine {
    /// As the conversation settles: a vote is kept. `one`: at this call alone.
    pub(super) fn settle(&self, state: &mut State, who: usize, one: Option<usize>, act: &Act) {
        let (rights, rows) = (self.rights(state.left), rows(state));
        let one = one.map(|at| &rows[at].id);
        let actor = Actor::person(PEOPLE[who], Via::Text, "evt", Millis(1_000));
        let at = |id: &ActionId| rows.iter().position(|row| row.id == *id).unwrap_or_default();
        let Ok(settled) = rights.settle(&self.record(state), &rows, one, act, None, &actor) else {
            return;
        };
        for vote in &settled.votes {
            let given = match &vote.row {
                Some(row) => &mut state.row_votes[at(row)][who],
                None => &mut state.votes[who],
            };
            *given = (*given + 1).min(self.most_votes());
        }
        for (id, decision) in &settled.decided {
            state.rows[at(id)] = decision.kind.of_open_rows();
        }
        if let Some(decision) = settled.gate {
            self.decide(state, decision.kind, Some(who));
        }
    }

    fn most_votes(&self) -> u8 {
        if self.has(Fault::VotesByPress) { 2 } else { 1 }
    }

    fn record(&self, state: &State) -> GateRecord {
        // The other member is asked as one of the group, where that is how they are asked.
        let group = |who: usize| (who == 1 && self.approvers.names(GROUP)).then(|| GROUP.to_owned());
        let vote = |who: usize, row: Option<usize>| Vote {
            in_place_of: None,
            by: PEOPLE[who].to_owned(),
            via: Via::Text,
            principal: None,
            at: Millis(1),
            event_id: None,
            row: row.map(row_id),
            group: group(who),
        };
        let times = |who: usize, row: Option<usize>, count: u8| (0..count).map(move |_| vote(who, row));
        let mut votes = Vec::new();
        for who in 0..PEOPLE.len() {
            votes.extend(times(who, None, state.votes[who]));
            for row in 0..state.rows.len() {
                votes.extend(times(who, Some(row), state.row_votes[row][who]));
            }
        }
        GateRecord {
            votes,
            ..undecided(&self.gate(state.card))
        }
    }
}
