//! What a process of ours does, as the gateway's loops do it: triage, work on a lane, deliveries, clicks. Each is an actor.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Inbound, LaneId, Millis, Notice};
use countersign_gateway::conversation::Conversations;
use countersign_gateway::lanes::{Runner, WorkError};
use countersign_gateway::store::{Hold, Lease, Ledger, OutboxOp, OutboxRow, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::chat::Receipt;
use super::stage::{ActorId, Scene, on};

/// Leased lanes of one chat.
const LANES_PER_CHAT: i64 = 4;
/// Deliveries taken at once.
const ROWS: i64 = 4;
/// As the gateway waits.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// How something that an actor did ended.
#[derive(Clone, Debug)]
pub enum News {
    Triaged(Result<usize, String>),
    /// `None` means that nothing is due.
    Claimed(Option<LaneId>),
    /// The lane was left; an error is one that the gateway would log as a failure.
    Worked(LaneId, Result<&'static str, String>),
    Dispatched(usize),
    /// A row of the outbox arrived, or not.
    Delivered(Box<OutboxRow>, Receipt),
    Clicked(String, Result<Notice, String>),
}

/// What actors tell the play.
#[derive(Debug, Default)]
pub struct Board {
    pub news: RefCell<Vec<(ActorId, News)>>,
    /// Under which lease an actor works.
    pub leases: RefCell<HashMap<ActorId, Lease>>,
    /// Rows on their way, by key.
    pub rows: RefCell<HashMap<String, OutboxRow>>,
}

impl Board {
    /// Somebody else has claimed the lane since this actor did: what it learns from now on comes to nothing.
    pub fn has_lost_its_lane(&self, actor: ActorId) -> bool {
        let leases = self.leases.borrow();
        let later = |own: &Lease| leases.values().any(|other| other.lane_id == own.lane_id && other.fence > own.fence);
        leases.get(&actor).is_some_and(later)
    }

    fn tell(&self, news: News) {
        self.news.borrow_mut().push((on(), news));
    }
}

/// The parts that the actors of a process share.
#[derive(Clone)]
pub struct Process {
    pub ledger: Ledger,
    pub conversations: Conversations,
    pub runner: Runner,
    pub clock: Clock,
    pub scene: Arc<Scene>,
    pub board: Rc<Board>,
    /// Unique for each start.
    pub owner: String,
    /// Length of its leases.
    pub lease: Duration,
    /// False: its measure of its own claims is of no use, so that only the ledger's fences keep it from doing harm.
    pub knows_time: bool,
}

impl Process {
    pub async fn triage(self) {
        let handled = self.conversations.triage().await.map_err(|error| error.to_string());
        self.board.tell(News::Triaged(handled));
    }

    pub async fn click(self, inbound: Inbound) {
        let answer = self.conversations.click(&inbound).await;
        let answer = answer.map(|answer| answer.notice).map_err(|error| error.to_string());
        self.board.tell(News::Clicked(inbound.event_key, answer));
    }

    /// Takes the lane that waits longest and works on it until it is given back.
    pub async fn work(self) {
        let asked = Instant::now();
        let Ok(Some(lease)) = self.claim().await else {
            return self.board.tell(News::Claimed(None));
        };
        let lane = lease.lane_id.clone();
        self.board.leases.borrow_mut().insert(on(), lease.clone());
        self.board.tell(News::Claimed(Some(lane.clone())));
        let span = if self.knows_time { self.lease } else { self.lease * 10_000 };
        let hold = Hold::since(asked, span);
        let ended = match Box::pin(self.runner.work_on_lane(lease.clone(), hold, CancellationToken::new())).await {
            Ok(()) => Ok("at rest"),
            Err(WorkError::Store(StoreError::Stale)) => Ok("lease lost"),
            Err(WorkError::Store(StoreError::Unavailable(_))) => {
                tokio::time::sleep(FAILURE_PAUSE).await;
                self.runner.give_back(&lease, Duration::ZERO).await;
                Ok("given back")
            }
            Err(error) => Err(error.to_string()),
        };
        self.board.tell(News::Worked(lane, ended));
    }

    async fn claim(&self) -> Result<Option<Lease>, StoreError> {
        let mut tx = self.ledger.begin().await?;
        let millis = i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX);
        let Some(lease) = tx.claim_lane(&self.owner, millis, LANES_PER_CHAT).await? else {
            return Ok(None);
        };
        tx.commit().await?;
        Ok(Some(lease))
    }

    pub async fn dispatch(self) {
        let rows = self.rows().await.unwrap_or_default();
        let taken = rows.len();
        for row in rows {
            let receipt = self.send(&row).await;
            // The row is found again when its hold ends.
            let _found_again = self.record(&row, &receipt).await;
            self.board.tell(News::Delivered(Box::new(row), receipt));
        }
        self.board.tell(News::Dispatched(taken));
    }

    async fn rows(&self) -> Result<Vec<OutboxRow>, StoreError> {
        let mut tx = self.ledger.begin().await?;
        let millis = i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX);
        let rows = tx.claim_outbox(&self.owner, millis, ROWS, &[]).await?;
        if !rows.is_empty() {
            tx.commit().await?;
        }
        Ok(rows)
    }

    async fn send(&self, row: &OutboxRow) -> Receipt {
        if matches!(row.new.op, OutboxOp::Patch { .. }) && row.target_message.is_none() {
            return Receipt::Gone;
        }
        if !matches!(row.new.op, OutboxOp::Post { .. }) {
            let at = self.clock.now();
            return Receipt::Sent { id: String::new(), at };
        }
        self.board.rows.borrow_mut().insert(row.new.key.clone(), row.clone());
        let receipt = self.scene.post(&row.new.key).await;
        self.board.rows.borrow_mut().remove(&row.new.key);
        receipt
    }

    async fn record(&self, row: &OutboxRow, receipt: &Receipt) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut tx = self.ledger.begin_in(&row.new.conversation).await?;
        match receipt {
            Receipt::Sent { id, at } => {
                let post = matches!(row.new.op, OutboxOp::Post { .. });
                tx.outbox_sent(row.id, post.then_some(id.as_str()), Some(*at)).await?;
            }
            failed => match next_try(row, failed, now) {
                Some((at, plain)) => {
                    tx.outbox_retry(row, at, "trouble", plain, *failed == Receipt::Lost).await?;
                }
                None => tx.outbox_failed(row, "given up").await?,
            },
        }
        tx.commit().await?;
        // Words may wait for a card's arrival; of anything else nobody waits to hear.
        if row.new.gate_id.is_some() {
            self.ledger.inbox_wakeup().notify_one();
        }
        Ok(())
    }
}

/// As the dispatcher reckons.
fn next_try(row: &OutboxRow, failed: &Receipt, now: Millis) -> Option<(Millis, bool)> {
    let post = matches!(row.new.op, OutboxOp::Post { .. });
    let (pause, plain) = match failed {
        Receipt::Gone => return None,
        Receipt::Content if !post || row.plain => return None,
        Receipt::Content => (Duration::ZERO, true),
        Receipt::Refused | Receipt::Lost | Receipt::Sent { .. } => {
            let exponent = u32::try_from(row.tries.clamp(0, 6)).unwrap_or(6);
            (Duration::from_millis(500 * 2_u64.pow(exponent)), row.plain)
        }
    };
    let at = now.plus(pause);
    (at <= row.give_up_at).then_some((at, plain))
}
