//! What waits for one person in all chats of an organisation: read from the ledger, by the rights of this moment. Nothing is stored.

use countersign_agent::domain::handshake::Right;
use countersign_agent::domain::{Conversation, Gate, GateKind, Inbound, Millis, Notice, Outbound, UndoneCount};

use crate::lanes::undone_of;
use crate::store::{GateRecord, Read, StoreError};

use super::{Conversations, paint};

/// Open gates that are looked at, the newest.
const LOOKED_AT: usize = 100;
/// Tasks of the person, under way and waiting: so many of each.
const TASKS: i64 = 20;
/// Tasks of the person that ended, at most, and within how many milliseconds.
const ENDED: i64 = 5;
const LATELY: i64 = 24 * 60 * 60 * 1000;

/// What waits for a person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Gates that they are asked about, oldest first.
    pub gates: Vec<WaitingGate>,
    /// Their own tasks: those that have not ended, then the last that ended.
    pub tasks: Vec<OwnTask>,
    /// More gates are open than were looked at.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WaitingGate {
    pub place: Conversation,
    /// What it is about: a line of foreign text.
    pub goal: String,
    pub card: Outbound,
}

/// A task that has not ended, or ended lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTask {
    pub place: Conversation,
    /// What was asked: a line of foreign text.
    pub goal: String,
    /// `queued`, `running`, the kind of the gate at which it waits, or how it ended: `completed`, `failed`, `cancelled`.
    pub state: &'static str,
    /// How many of its calls were not carried out, by reason; known once it ended.
    pub undone: Vec<UndoneCount>,
}

impl Conversations {
    /// What waits for `user`, of the organisations `teams`, in the organisation of `place`. What depends on a group that cannot be looked up
    /// is left out.
    pub async fn waiting(&self, place: &Conversation, user: &str, teams: &[String]) -> Result<Waiting, StoreError> {
        let mut waiting = Waiting::default();
        let mut unknown = self.look(&mut waiting, place, user, teams).await?;
        if !unknown.is_empty() {
            unknown.sort_unstable();
            unknown.dedup();
            self.groups.look_up(place.channel, &unknown).await;
            self.look(&mut waiting, place, user, teams).await?;
        }
        Ok(waiting)
    }

    /// Reads it by what is known of the groups; gives those that are not known.
    async fn look(&self, waiting: &mut Waiting, place: &Conversation, user: &str, teams: &[String]) -> Result<Vec<String>, StoreError> {
        let _reader = self.home_readers.acquire().await;
        let (mut read, now) = (self.ledger.read().await?, self.clock.now());
        let (mut unknown, mut gates) = (Vec::new(), Vec::new());
        let (ids, more) = read.open_gates_of(place, LOOKED_AT).await?;
        waiting.more = more;
        for id in ids.iter().rev() {
            let Some(record) = read.gate(id).await?.filter(|record| record.decision.is_none()) else {
                continue;
            };
            // A question is answered in words, where it was asked.
            if record.gate.kind == GateKind::Question || now >= record.gate.expires_at {
                continue;
            }
            match self.lists(&mut read, &record.gate, user, teams).await? {
                Right::No => (),
                Right::Unknown(groups) => unknown.extend(groups),
                Right::Given(_) => {
                    gates.push(self.shown(&mut read, &record, user).await?);
                }
            }
        }
        waiting.gates = gates;
        waiting.tasks = tasks(&mut read, place, user, now).await?;
        Ok(unknown)
    }

    async fn shown(&self, read: &mut Read, record: &GateRecord, user: &str) -> Result<WaitingGate, StoreError> {
        let rights = self.rights_of(read, &record.gate.conversation, user).await?;
        let rows = read.actions_of_gate(&record.gate.id).await?;
        let card = paint::open(read, record, &rows, &rights, self.clock.now()).await?;
        Ok(WaitingGate {
            place: record.gate.conversation.clone(),
            goal: paint::goal(&record.gate.card),
            card,
        })
    }

    /// Is `gate` among what waits for `user`? See [`super::rights::Rights::lists`].
    async fn lists(&self, read: &mut Read, gate: &Gate, user: &str, teams: &[String]) -> Result<Right, StoreError> {
        let rights = self.rights_of(read, &gate.conversation, user).await?;
        Ok(rights.lists(user, teams, gate))
    }

    /// Why a press in the list of what waits for its sender does not count at `gate`: it decides nothing that would not be listed for them, in their
    /// organisation. `None` means that it counts.
    pub(super) async fn unlisted(&self, read: &mut Read, gate: &Gate, inbound: &Inbound) -> Result<Option<Notice>, StoreError> {
        if !inbound.conversation.may_be(&gate.conversation) {
            return Ok(Some(Notice::UnknownReview {}));
        }
        let right = self.lists(read, gate, &inbound.sender, &inbound.sender_teams).await?;
        Ok(match right {
            Right::No => Some(Notice::UnknownReview {}),
            Right::Unknown(groups) => Some(Notice::GroupUnknown { groups }),
            Right::Given(_) => None,
        })
    }
}

/// The person's tasks: those under way, those that wait their turn, and the last that ended.
async fn tasks(read: &mut Read, place: &Conversation, user: &str, now: Millis) -> Result<Vec<OwnTask>, StoreError> {
    let mut tasks = Vec::new();
    for turn in read.open_turns_of(place, user, TASKS).await? {
        let gate = read.open_gate_of_lane(&turn.lane_id).await?.filter(|gate| gate.turn_id == turn.id);
        tasks.push(OwnTask {
            state: gate.map_or("running", |gate| gate.kind.as_str()),
            goal: paint::brief(&turn.text),
            place: turn.conversation,
            undone: Vec::new(),
        });
    }
    for row in read.queued_of(place, user, TASKS).await? {
        tasks.push(OwnTask {
            goal: paint::brief(&read.asked(&row).await?),
            place: row.inbound.conversation,
            state: "queued",
            undone: Vec::new(),
        });
    }
    for turn in read.ended_turns_of(place, user, Millis(now.0 - LATELY), ENDED).await? {
        tasks.push(OwnTask {
            state: turn.status.as_str(),
            goal: paint::brief(&turn.text),
            undone: undone_of(&turn),
            place: turn.conversation,
        });
    }
    Ok(tasks)
}
