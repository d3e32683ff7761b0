//! Lanes: who works on a conversation of one person, by lease and fence, and when to look at it again.
//!
//! A claim takes the chat whose ready lane has waited longest, then the person of that chat who was served longest ago. Waiting tasks are
//! limited per person and chat, not per lane: on Slack every top-level mention is a lane of its own.

use std::collections::HashSet;

use countersign_agent::domain::{Conversation, LaneId, Millis, TurnId};

use super::Result;
use super::arg::args;
use super::sql::{Row, encode};
use super::transaction::{Read, Tx};
use crate::store::{StoreError, keys};

/// A lease on a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The lane.
    pub lane_id: LaneId,
    /// Its conversation.
    pub conversation: Conversation,
    /// Its requester.
    pub user: String,
    /// Rises with every claim; every write of the turn carries it.
    pub fence: i64,
    /// Wake-ups seen when it was claimed; a later one forbids going to sleep.
    pub wakes: i64,
    /// The unfinished turn, if there is one.
    pub turn_id: Option<TurnId>,
    /// The task without a turn yet, by its inbox row, for which chat and files were read last.
    pub gathering: Option<i64>,
    /// So many processes died while they worked on that turn or read for that task, with no step journaled since. It was counted when the
    /// lane was claimed.
    pub crashes: i64,
}

impl Lease {
    /// So many processes died of the turn that it is not to be read again.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.crashes >= MAX_CRASHES
    }
}

/// A turn with which so many processes have died, with no step journaled since, has failed.
pub(crate) const MAX_CRASHES: i64 = 3;

/// A lane that does not read back is looked at again after this time (milliseconds): somebody may have mended it.
const PASSED_OVER_MS: i64 = 60_000;
/// So many of them are passed over before others have a turn at the database.
const MOST_PASSED_OVER: usize = 16;

/// What came of the wish to prolong a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It begins anew.
    Prolonged,
    /// It is still held, and somebody writes to the lane at this moment: ask again.
    Busy,
    /// This worker does not have the lane (any more).
    Lost,
}

/// In the place of an owner: a process that was asked to stop.
macro_rules! stopping {
    () => {
        "stopping"
    };
}
pub(super) use stopping;

/// The deaths of the lane once it is claimed by `$1`.
macro_rules! crashes {
    ($lane:literal) => {
        concat!(
            $lane,
            ".crashes + CASE WHEN ",
            $lane,
            ".owner NOT IN ('', '",
            stopping!(),
            "', $1) AND (",
            $lane,
            ".turn_id IS NOT NULL OR ",
            $lane,
            ".gathering IS NOT NULL) THEN 1 ELSE 0 END"
        )
    };
}

/// The lane `ripe` may be claimed at `$3`, as far as it alone is concerned. The 2 is one less than [`crate::store::MAX_CRASHES`].
macro_rules! claimable {
    () => {
        concat!(
            "ripe.ready_at <= $3 AND ripe.lease_until <= $3 AND (",
            crashes!("ripe"),
            " <> 2 OR NOT EXISTS (SELECT 1 FROM lanes AS suspect
             WHERE suspect.crashes = 2 AND suspect.crashes > 1 AND suspect.owner <> '' AND suspect.lease_until > $3))"
        )
    };
}

impl Read {
    /// Is there a lane of this id? It stays as long as a task of it is kept.
    pub async fn has_lane(&mut self, lane: &LaneId) -> Result<bool> {
        let row = self.maybe("SELECT 1 FROM lanes WHERE id = $1", args![lane.as_str()]).await?;
        Ok(row.is_some())
    }

    /// Re-reads `wakes` and `turn_id` under the fence (after a refused release).
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn refresh(&mut self, lease: &Lease) -> Result<Lease> {
        self.maybe("SELECT id, conversation, requester, fence, wakes, turn_id, gathering, crashes FROM lanes WHERE id = $1 AND fence = $2 AND owner <> ''", args![lease.lane_id.as_str(), lease.fence]).await?
        .map_or(Err(StoreError::Stale), |row| read(&row))
    }

    /// The unfinished turn of a lane.
    pub async fn turn_of_lane(&mut self, lane: &LaneId) -> Result<Option<TurnId>> {
        let row = self.maybe("SELECT turn_id FROM lanes WHERE id = $1", args![lane.as_str()]).await?;
        Ok(row
            .map(|row| row.get::<Option<String>>("turn_id"))
            .transpose()?
            .flatten()
            .map(TurnId::new))
    }
}

impl Tx {
    /// Takes a lane of the chat that has waited longest; at most `per_chat` leased lanes of one chat at a time. In a chat people take
    /// turns: the one who was served longest ago comes first, so that one person's tasks do not wait behind all of another's.
    ///
    /// A lane that still has an owner when its lease is over is one whose process died, or whose step panicked
    /// ([`Tx::release_crashed`]): that is counted, before anybody reads its turn.
    /// (Our own name there is no death: we live, and lost the lease.) A first death says little of the turns that were under way, and all
    /// of them go on at once. Those that saw a second death are claimed one at a time, whatever chat they are of, until each has
    /// journaled a step: so the turn that kills its process a third time has no other such turn beside it, and no innocent one is
    /// given up with it. Two processes may claim such turns at the same moment; to exclude that is not worth a lock.
    pub async fn claim_lane(&mut self, owner: &str, lease_ms: i64, per_chat: i64) -> Result<Option<Lease>> {
        for _ in 0..MOST_PASSED_OVER {
            let Some(row) = self.ripest(owner, lease_ms, per_chat).await? else {
                return Ok(None);
            };
            let id = row.text("id")?;
            match read(&row) {
                Err(StoreError::Corrupt(why)) => self.pass_lane_over(&id, &why).await?,
                lease => {
                    self.inner.damage.forget("lanes", &id);
                    return lease.map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Gives a lane back that does not read back.
    async fn pass_lane_over(&mut self, id: &str, why: &str) -> Result<()> {
        self.inner.damage.note("lanes", id, why, self.now());
        self.run(
            "UPDATE lanes SET owner = '', lease_until = 0, ready_at = $1 WHERE id = $2",
            args![self.now().0.saturating_add(PASSED_OVER_MS), id],
        )
        .await?;
        self.passed_over = true;
        Ok(())
    }

    /// The row that [`Tx::claim_lane`] takes.
    async fn ripest(&mut self, owner: &str, lease_ms: i64, per_chat: i64) -> Result<Option<Row>> {
        // While leased, `ready_at` is the lease's end: a lane whose worker died is found like any other.
        // On a server the first SELECT locks its lane, too: those who claim at the same moment look for another chat.
        let text = self.claiming(
            concat!(
                "UPDATE lanes SET crashes = ",
                crashes!("lanes"),
                ", owner = $1, fence = fence + 1, lease_until = $2, ready_at = $2, claimed_at = $3
                 WHERE id = (SELECT ripe.id FROM lanes AS ripe
                   WHERE ripe.chat_key = (SELECT ripe.chat_key FROM lanes AS ripe
                       WHERE ",
                claimable!(),
                " AND (SELECT COUNT(*) FROM lanes AS busy
                        WHERE busy.chat_key = ripe.chat_key AND busy.owner <> '' AND busy.lease_until > $3) < $4
                   ORDER BY ripe.ready_at, ripe.id LIMIT 1 {skip})
                 AND ",
                claimable!(),
                " ORDER BY (SELECT MAX(served.claimed_at) FROM lanes AS served
                       WHERE served.chat_key = ripe.chat_key AND served.requester = ripe.requester), ripe.ready_at, ripe.id LIMIT 1 {skip})
                   AND lease_until <= $3
                 RETURNING id, conversation, requester, fence, wakes, turn_id, gathering, crashes"
            ),
            "ripe",
        );
        let now = self.now();
        self.maybe(text, args![owner, now.0.saturating_add(lease_ms), now, per_chat]).await
    }

    /// Notes that the process of `owner` stops in order, before it gives back its lanes, which it may have no time for: its end is no
    /// death of their turns. Its leases hold as before.
    pub async fn note_stopping(&mut self, owner: &str) -> Result<()> {
        self.run(
            concat!("UPDATE lanes SET owner = '", stopping!(), "' WHERE owner = $1"),
            args![owner],
        )
        .await?;
        Ok(())
    }

    /// A step of the lane's turn is journaled: it may go on beside others again.
    pub(super) async fn clear_crashes(&mut self, lease: &Lease) -> Result<()> {
        if lease.crashes == 0 {
            return Ok(());
        }
        let cleared = self
            .run(
                "UPDATE lanes SET crashes = 0 WHERE id = $1 AND crashes > 0",
                args![lease.lane_id.as_str()],
            )
            .await?;
        self.effects.lanes |= cleared > 0;
        Ok(())
    }

    /// Chat and files are read for the task of this inbox row now. Deaths of another task are forgotten: that one is gone.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn note_gathering(&mut self, lease: &Lease, task: i64) -> Result<()> {
        self.prove_lease(lease).await?;
        self.run(
            "UPDATE lanes SET crashes = CASE WHEN gathering = $1 THEN crashes ELSE 0 END, gathering = $1 WHERE id = $2",
            args![task, lease.lane_id.as_str()],
        )
        .await?;
        // Lanes that wait because this one saw two deaths may be due now.
        self.effects.lanes |= lease.crashes > 0;
        Ok(())
    }

    /// The task for which chat and files were read last is gone, and its deaths with it.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn forget_gathering(&mut self, lease: &Lease) -> Result<()> {
        self.prove_lease(lease).await?;
        self.run(
            "UPDATE lanes SET crashes = 0, gathering = NULL WHERE id = $1",
            args![lease.lane_id.as_str()],
        )
        .await?;
        self.effects.lanes = true;
        Ok(())
    }

    /// Prolongs these leases, all in one statement; says of each, in their order, what came of it.
    pub async fn renew(&mut self, leases: &[&Lease], lease_ms: i64) -> Result<Vec<Renewal>> {
        let named: Vec<_> = leases.iter().map(|lease| (lease.lane_id.as_str(), lease.fence)).collect();
        let named = encode(&named)?;
        // A lane whose row somebody is writing is passed over: who waits for one while holding others may be waited for by that one.
        let text = self.claiming(
            "WITH held AS MATERIALIZED (SELECT mine.id FROM {each} AS named
               JOIN lanes AS mine ON mine.id = named.value ->> 0 AND mine.fence = CAST(named.value ->> 1 AS BIGINT)
               WHERE mine.owner <> '' {skip})
             UPDATE lanes SET lease_until = $2, ready_at = $2 WHERE id IN (SELECT id FROM held) RETURNING id, fence",
            "mine",
        );
        let until = self.now().0.saturating_add(lease_ms);
        let rows = self.all(text, args![&named, until]).await?;
        let prolonged = places(&rows)?;
        let mut ours = HashSet::new();
        if prolonged.len() < leases.len() {
            let text = self.claiming(
                "SELECT mine.id, mine.fence FROM {each} AS named
                   JOIN lanes AS mine ON mine.id = named.value ->> 0 AND mine.fence = CAST(named.value ->> 1 AS BIGINT)
                 WHERE mine.owner <> ''",
                "",
            );
            ours = places(&self.all(text, args![&named]).await?)?;
        }
        let outcome = |lease: &&Lease| {
            let place = (lease.lane_id.clone(), lease.fence);
            match (prolonged.contains(&place), ours.contains(&place)) {
                (true, _) => Renewal::Prolonged,
                (false, true) => Renewal::Busy,
                (false, false) => Renewal::Lost,
            }
        };
        Ok(leases.iter().map(outcome).collect())
    }

    /// Gives the lane back, to be looked at again at `ready_at`. Gives `false` when it was woken meanwhile, so look again now
    /// (after [`Read::refresh`]).
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn release(&mut self, lease: &Lease, ready_at: Millis) -> Result<bool> {
        self.prove_lease(lease).await?;
        let done = self
            .run(
                "UPDATE lanes SET owner = '', lease_until = 0, ready_at = $1
                 WHERE id = $2 AND fence = $3 AND owner <> '' AND wakes = $4",
                args![ready_at, lease.lane_id.as_str(), lease.fence, lease.wakes],
            )
            .await?;
        if done == 0 {
            return Ok(false);
        }
        self.proved_lease = None;
        // Another lane of the chat may be due now: workers that sleep look again.
        self.effects.lanes = true;
        Ok(true)
    }

    /// Gives back the lane of a step that panicked. Its next claim counts a death: a panic comes again like a killed process does. The
    /// lease is over with that, also for a renewal that is under way.
    ///
    /// # Errors
    /// `Stale` when the lease is lost.
    pub async fn release_crashed(&mut self, lease: &Lease, ready_at: Millis) -> Result<()> {
        self.prove_lease(lease).await?;
        self.run(
            "UPDATE lanes SET owner = 'crashed', fence = fence + 1, lease_until = 0, ready_at = $1 WHERE id = $2 AND fence = $3",
            args![ready_at, lease.lane_id.as_str(), lease.fence],
        )
        .await?;
        self.proved_lease = None;
        self.effects.lanes = true;
        Ok(())
    }

    /// Makes a lane ready now; a lane that does not exist yet needs no waking.
    pub async fn wake_lane(&mut self, lane: &LaneId) -> Result<()> {
        let woken = self
            .run(
                "UPDATE lanes SET ready_at = $1, wakes = wakes + 1 WHERE id = $2",
                args![self.now(), lane.as_str()],
            )
            .await?;
        self.effects.lanes |= woken > 0;
        Ok(())
    }

    /// Creates the lane if need be and makes it ready. What its id stands for is written again: it mends a lane that does not read back.
    pub(super) async fn make_lane_ready(&mut self, lane: &LaneId, place: &Conversation, user: &str) -> Result<()> {
        // A new lane's fence starts at a fresh id and not at 0: a worker that slept through the pruning of this
        // lane must not find its old number in use again.
        self.run(
            "INSERT INTO lanes (id, chat_key, conversation, requester, owner, fence, lease_until, ready_at, wakes)
             VALUES ($1, $2, $3, $4, '', $5, 0, $6, 1)
             ON CONFLICT (id) DO UPDATE SET ready_at = excluded.ready_at, wakes = lanes.wakes + 1,
               conversation = excluded.conversation, requester = excluded.requester",
            args![
                lane.as_str(),
                keys::chat_key(place),
                encode(place)?,
                encode(user)?,
                self.next_id(),
                self.now()
            ],
        )
        .await?;
        self.effects.lanes = true;
        Ok(())
    }

    /// Proves once in this transaction that the lease is still ours, and keeps it so until the transaction ends:
    /// the write that changes nothing locks the lane's row where several may write at a time.
    pub(super) async fn prove_lease(&mut self, lease: &Lease) -> Result<()> {
        if self
            .proved_lease
            .as_ref()
            .is_some_and(|(lane, fence)| *lane == lease.lane_id && *fence == lease.fence)
        {
            return Ok(());
        }
        let ours = self
            .run(
                "UPDATE lanes SET fence = fence WHERE id = $1 AND fence = $2 AND owner <> ''",
                args![lease.lane_id.as_str(), lease.fence],
            )
            .await?;
        if ours == 0 {
            return Err(StoreError::Stale);
        }
        self.proved_lease = Some((lease.lane_id.clone(), lease.fence));
        Ok(())
    }
}

/// Lane and fence of each row.
fn places(rows: &[Row]) -> Result<HashSet<(LaneId, i64)>> {
    rows.iter().map(|row| Ok((row.get::<LaneId>("id")?, row.int("fence")?))).collect()
}

fn read(row: &Row) -> Result<Lease> {
    Ok(Lease {
        lane_id: row.get("id")?,
        conversation: row.json("conversation")?,
        user: row.json("requester")?,
        fence: row.get("fence")?,
        wakes: row.get("wakes")?,
        turn_id: row.get("turn_id")?,
        gathering: row.get("gathering")?,
        crashes: row.get("crashes")?,
    })
}
