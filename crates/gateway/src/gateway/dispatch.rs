//! The dispatcher: outbox rows to the chats, with back-off, fallback to text and giving up.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Millis, Outbound};
use metrics::{counter, histogram};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::outages::Lasting;
use super::state::Gateway;
use super::uploads::Uploads;
use crate::channels::{BatchSizes, Delivery, DeliveryError, Receipt};
use crate::store::{Hold, Line, LineKind, OutboxOp, OutboxRow, StoreError, Tx};

/// Between two tries to write down what came of a delivery.
const RETRY: Duration = Duration::from_millis(200);
/// Deliveries to a platform under way at a time. Each has places of its own: one that does not answer holds up no other.
const MAX_PARALLEL: usize = 64;
/// Of those, places that only posts get.
const FOR_POSTS: usize = 16;
/// The shortest time between two tries.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long repaints and marks are tried, and wait for the platform's rates, at most.
const GIVE_UP_AFTER: Duration = Duration::from_hours(1);
/// Wrong credentials need an admin; asking often does not help.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(30);

/// Deliveries side by side: a slow chat delays no other.
#[derive(Debug)]
pub(super) struct Dispatcher {
    gateway: Gateway,
    owner: String,
    tasks: TaskTracker,
    platforms: [Platform; 3],
    uploads: Uploads,
}

/// A platform as the dispatcher sees it.
#[derive(Debug)]
struct Platform {
    channel: ChannelKind,
    places: Arc<Semaphore>,
    /// How many deliveries of each kind are worth claiming at a time.
    batch_sizes: BatchSizes,
}

impl Platform {
    fn lines(&self) -> [Line; 3] {
        let BatchSizes { posts, repaints, marks } = self.batch_sizes;
        let free = self.places.available_permits();
        // Repaints that hang must leave room for what people wait for.
        let rest = free.saturating_sub(FOR_POSTS);
        let kinds = [
            (LineKind::Posts, posts, free),
            (LineKind::Repaints, repaints, rest),
            (LineKind::Marks, marks, rest),
        ];
        kinds.map(|(kind, most, free)| Line {
            channel: self.channel,
            kind,
            most,
            within: BatchSizes::MAX_WAIT,
            free,
        })
    }
}

impl Dispatcher {
    pub(super) fn new(gateway: Gateway, owner: String, tasks: TaskTracker) -> Self {
        let platforms = ChannelKind::ALL.map(|channel| Platform {
            channel,
            places: Arc::new(Semaphore::new(MAX_PARALLEL)),
            batch_sizes: gateway.channels.out(channel).batch_sizes(),
        });
        Self {
            gateway,
            owner,
            tasks,
            platforms,
            uploads: Uploads::default(),
        }
    }

    /// Takes as many due rows as their platforms have free places and begins to send them; gives how many were taken.
    pub(super) async fn dispatch(&self) -> Result<usize, StoreError> {
        let lines: Vec<Line> = self.platforms.iter().flat_map(Platform::lines).collect();
        if lines.iter().all(|line| line.free == 0) {
            return Ok(0);
        }
        let mut tx = self.gateway.ledger.begin().await?;
        let (span, asked) = (self.gateway.timings.lease, Instant::now());
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        let rows = tx.claim_outbox(&self.owner, millis, 0, &lines).await?;
        if rows.is_empty() {
            // Nothing is committed: a commit is news to every open page and to other processes.
            return Ok(usize::from(tx.end_of_claim().await?));
        }
        tx.commit().await?;
        let hold = Hold::since(asked, span);
        let taken = rows.len();
        for row in rows {
            let platform = self
                .platforms
                .iter()
                .find(|platform| platform.channel == row.new.conversation.channel);
            let Some(Ok(place)) = platform.map(|platform| Arc::clone(&platform.places).try_acquire_owned()) else {
                continue;
            };
            let (gateway, uploads, hold) = (self.gateway.clone(), self.uploads.clone(), hold.clone());
            self.tasks.spawn(async move {
                // A process that stood still for longer than its hold sends nothing and writes nothing of it afterwards.
                if let Err(error) = hold.guard(send(&gateway, &uploads, &row)).await.flatten() {
                    // The row is found again when its hold ends; its key keeps the platform from doubling it.
                    warn!(outbox.id = row.id, %error, "outcome of a delivery not recorded");
                }
                drop(place);
                // The next row of this queue, or one that found no place.
                gateway.ledger.outbox_wakeup().notify_one();
            });
        }
        Ok(taken)
    }
}

async fn send(gateway: &Gateway, uploads: &Uploads, row: &OutboxRow) -> Result<(), StoreError> {
    let new = &row.new;
    let started = Instant::now();
    let outcome = match operation(row) {
        None => Err(DeliveryError::Gone(String::from("what it changes was never posted"))),
        Some(op) => {
            let channel = gateway.channels.out(new.conversation.channel);
            let live = gateway.settings.current();
            let locale = live.in_chat(new.conversation.channel, &new.conversation.chat).locale;
            let mut delivery = Delivery {
                key: new.key.clone(),
                conversation: new.conversation.clone(),
                op,
                locale,
                plain: row.plain,
                written_at: row.created_at,
                again: row.uncertain,
                upload: None,
                about: request_of(gateway, row).await.ok().flatten(),
            };
            // So much less than the hold that what came of it can be written down.
            let time = gateway.timings.lease * 2 / 3;
            let delivering = async {
                uploads.prepare(gateway, row, &mut delivery).await?;
                channel.deliver(&delivery).await
            };
            let outcome = match tokio::time::timeout(time, delivering).await {
                Ok(outcome) => {
                    gateway.failpoint.reach(point(row));
                    outcome
                }
                Err(_) => Err(DeliveryError::Retry {
                    reason: String::from("no answer in time"),
                    after: None,
                    uncertain: true,
                }),
            };
            // How a task stands is shown where that can be: it says nothing of how messages fare.
            if !matches!(new.op, OutboxOp::Session { .. }) {
                gateway.note_delivery(new.conversation.channel, outcome.as_ref().err());
            }
            outcome
        }
    };
    count(row, outcome.as_ref().err(), started.elapsed());
    let outcome = outcome.map_err(|error| {
        let next = next(row, &error, gateway.clock.now());
        (error, next)
    });
    log(gateway, row, &outcome);
    record_at_last(gateway, row, &outcome).await
}

/// What a delivery came to: what the platform made of it, or why it did not arrive and what becomes of its row.
type DeliveryOutcome = Result<Receipt, (DeliveryError, AfterFailure)>;

/// Tells the log. Of a platform that is away it would be a line for each message and try; of its rates, for each that waits for them.
fn log(gateway: &Gateway, row: &OutboxRow, outcome: &DeliveryOutcome) {
    let channel = row.new.conversation.channel;
    let (subject, now) = (("deliveries", channel.as_str()), Instant::now());
    match outcome {
        Ok(_) => {
            if let Some(Lasting { seconds, tries }) = gateway.outages().ended(subject, now) {
                info!(channel = subject.1, seconds, tries, "the platform takes deliveries again");
            }
            let turn = row.new.turn_id.as_ref().map(tracing::field::display);
            debug!(outbox.id = row.id, turn.id = turn, "delivered");
        }
        Err((error, AfterFailure::HeldBack(_))) => debug!(outbox.id = row.id, %error, "a delivery waits for the platform's rates"),
        Err((error @ DeliveryError::Retry { .. }, _)) if error.held_back().is_none() => {
            if let Some(Lasting { seconds, tries }) = gateway.outages().failed(subject, now) {
                warn!(channel = subject.1, outbox.id = row.id, %error, seconds, tries, "delivery failed; trying again");
            } else {
                debug!(outbox.id = row.id, tries = row.tries + 1, %error, "delivery failed");
            }
        }
        Err((error, _)) => {
            if let Some(not_logged_before) = gateway.log_of(channel, kind_of(error)) {
                warn!(outbox.id = row.id, tries = row.tries + 1, %error, not_logged_before, "delivery failed");
            }
        }
    }
}

/// Writes the outcome down as soon as the ledger answers: it is known here and nowhere else.
async fn record_at_last(gateway: &Gateway, row: &OutboxRow, outcome: &DeliveryOutcome) -> Result<(), StoreError> {
    let subject = ("records", row.new.conversation.channel.as_str());
    loop {
        match record(gateway, row, outcome).await {
            Err(StoreError::Unavailable(reason)) => {
                if let Some(Lasting { seconds, tries }) = gateway.outages().failed(subject, Instant::now()) {
                    warn!(
                        channel = subject.1,
                        outbox.id = row.id,
                        reason,
                        seconds,
                        tries,
                        "outcome of a delivery not recorded yet"
                    );
                }
            }
            recorded => {
                if let Some(Lasting { seconds, tries }) = gateway.outages().ended(subject, Instant::now()) {
                    info!(channel = subject.1, seconds, tries, "outcomes of deliveries are recorded again");
                }
                return recorded;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The request that `row` posts about, where its thread may be lost: only Slack has such threads.
async fn request_of(gateway: &Gateway, row: &OutboxRow) -> Result<Option<String>, StoreError> {
    let new = &row.new;
    let in_thread = new.conversation.channel == ChannelKind::Slack && !new.conversation.thread.is_empty();
    match (&new.op, &new.turn_id) {
        (OutboxOp::Post { .. }, Some(turn)) if in_thread => {
            let turn = gateway.ledger.read().await?.turn_in_brief(turn, 0).await?;
            Ok(turn.map(|turn| turn.text))
        }
        _ => Ok(None),
    }
}

fn count(row: &OutboxRow, error: Option<&DeliveryError>, took: Duration) {
    let channel = row.new.conversation.channel.as_str();
    let op = match row.new.op {
        OutboxOp::Post { .. } => "post",
        OutboxOp::Patch { .. } => "patch",
        OutboxOp::React { .. } => "react",
        OutboxOp::Session { .. } => "session",
    };
    let outcome = error.map_or("sent", kind_of);
    counter!("countersign_deliveries_total", "channel" => channel, "op" => op, "outcome" => outcome).increment(1);
    histogram!("countersign_delivery_seconds", "channel" => channel).record(took.as_secs_f64());
}

/// A word for metrics, and for the log's limit.
fn kind_of(error: &DeliveryError) -> &'static str {
    match error {
        _ if error.held_back().is_some() => "held_back",
        DeliveryError::Retry { .. } => "retry",
        DeliveryError::Content(_) => "content",
        DeliveryError::Gone(_) => "gone",
        DeliveryError::Forbidden(_) => "forbidden",
    }
}

/// The operation as a platform takes it: a repaint names the message of its card, a mark the one before it. `None` means that the card was
/// never posted.
fn operation(row: &OutboxRow) -> Option<OutboxOp> {
    let mut op = row.new.op.clone();
    match &mut op {
        OutboxOp::Patch { target, .. } => target.clone_from(row.target_message.as_ref()?),
        OutboxOp::React { shown, .. } => shown.clone_from(&row.target_message),
        OutboxOp::Post { .. } | OutboxOp::Session { .. } => (),
    }
    Some(op)
}

/// The card, the answer or a part of it is with the platform, and we have not written that down.
fn point(row: &OutboxRow) -> &'static str {
    match &row.new.op {
        OutboxOp::Post {
            content: Outbound::Answer(_),
            ..
        } => "answer_posted",
        OutboxOp::Post {
            content: Outbound::Text { .. },
            ..
        } => "part_posted",
        OutboxOp::Post {
            content: Outbound::File(_),
            ..
        } => "file_posted",
        OutboxOp::Post { .. } if row.new.gate_id.is_some() => "card_posted",
        OutboxOp::React { mark: None, .. } => "unmarked",
        OutboxOp::Patch { .. } => "repainted",
        OutboxOp::Post { .. } | OutboxOp::React { .. } | OutboxOp::Session { .. } => "posted",
    }
}

async fn record(gateway: &Gateway, row: &OutboxRow, outcome: &DeliveryOutcome) -> Result<(), StoreError> {
    let mut tx = gateway.ledger.begin_in(&row.new.conversation).await?;
    match outcome {
        Ok(Receipt { message_id, at, chat }) => {
            if let Some(chat) = chat {
                tx.outbox_in_chat(row.id, &row.new.conversation, chat).await?;
            }
            tx.outbox_sent(row.id, message_id.as_deref(), *at).await?;
        }
        Err((error, next)) => {
            let reason = error.to_string();
            let uncertain = matches!(error, DeliveryError::Retry { uncertain: true, .. });
            match *next {
                AfterFailure::HeldBack(at) => tx.outbox_held_back(row, at, &reason).await?,
                AfterFailure::Again(at, plain) => {
                    if plain && !row.plain {
                        note_cut(gateway, &mut tx, row).await?;
                    }
                    tx.outbox_retry(row, at, &reason, plain, uncertain).await?;
                }
                AfterFailure::GiveUp => tx.outbox_failed(row, &reason).await?,
            }
        }
    }
    tx.commit().await?;
    // An answer to the card may have come in before the news of its arrival.
    gateway.ledger.inbox_wakeup().notify_one();
    Ok(())
}

/// Before a card goes out as text that is cut, its gate says so: an answer may come in at once.
async fn note_cut(gateway: &Gateway, tx: &mut Tx, row: &OutboxRow) -> Result<(), StoreError> {
    if let (Some(gate), OutboxOp::Post { content, .. }) = (&row.new.gate_id, &row.new.op)
        && gateway.channels.out(row.new.conversation.channel).cuts_text(content)
    {
        tx.gate_cut(gate).await?;
    }
    Ok(())
}

/// What becomes of a row that did not arrive.
#[derive(Clone, Copy, Debug)]
enum AfterFailure {
    /// Not tried, for the platform's rates: it waits in its place until then.
    HeldBack(Millis),
    /// Another try then; as plain text?
    Again(Millis, bool),
    GiveUp,
}

fn next(row: &OutboxRow, error: &DeliveryError, now: Millis) -> AfterFailure {
    let post = matches!(row.new.op, OutboxOp::Post { .. });
    // A card must not keep its buttons because many others are repainted before it, or because the platform was in trouble when it came
    // to its turn; nor may a task seem to go on. Words that come too late are worse than none.
    // A mark that the bot may not put there is not asked for again and again.
    let forbidden_mark = matches!((&row.new.op, error), (OutboxOp::React { .. }, DeliveryError::Forbidden(_)));
    let last = if post || forbidden_mark {
        row.give_up_at
    } else {
        row.give_up_at.max(row.created_at.plus(GIVE_UP_AFTER))
    };
    if let Some(wait) = error.held_back() {
        let at = now.plus(wait.max(SHORTEST));
        return if at <= last {
            AfterFailure::HeldBack(at)
        } else {
            AfterFailure::GiveUp
        };
    }
    let (pause, plain) = match error {
        DeliveryError::Gone(_) => return AfterFailure::GiveUp,
        // A repaint cannot become text, and text that is refused as text stays refused. A file is uploaded once more.
        DeliveryError::Content(_) if !post || row.plain => return AfterFailure::GiveUp,
        DeliveryError::Content(_) => (Duration::ZERO, true),
        DeliveryError::Forbidden(_) => (FORBIDDEN_PAUSE, row.plain),
        DeliveryError::Retry { after, .. } => {
            let exponent = u32::try_from(row.tries.clamp(0, 6)).unwrap_or(6);
            let backoff = Duration::from_millis(500 * 2_u64.pow(exponent));
            (after.unwrap_or(backoff).max(SHORTEST), row.plain)
        }
    };
    let at = now.plus(pause);
    if at <= last {
        AfterFailure::Again(at, plain)
    } else {
        AfterFailure::GiveUp
    }
}

#[cfg(test)]
mod tests;
