//! Looks up everything that a message may be about.

use std::time::Duration;

use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{Addressed, ChatType, DecisionKind, GateId, InboundMessage, Millis};

use crate::config::GroupTrigger;
use crate::store::{GateRecord, InboxRow, ListQuery, Read, StoreError, TurnRow, Tx};

use super::again::LATE;
use super::answer::words_under_way;
use super::away;
use super::commands::ChatCommand;
use super::context::{MessageContext, Reply, ReplyTo};
use super::phrases::{Phrase, is_plain_ok};
use super::rights::Rights;
use super::{Conversations, say};

/// How long a reply to an unknown message waits for the news that somebody else's card arrived: longer than one
/// try of a delivery takes.
pub(super) const DELIVERY: Duration = Duration::from_secs(25);

/// Loads what the message may be about. `rights`: of its sender, in its chat. `None` when the message is not for the bot and nothing is open
/// here. Gates whose time is over are closed on the way, so that no choice is made about them.
pub(super) async fn load_context(
    tx: &mut Tx,
    conversations: &Conversations,
    rights: Rights,
    row: &InboxRow,
    message: &InboundMessage,
    bot: Option<&str>,
) -> Result<Option<MessageContext>, StoreError> {
    let place = &row.inbound.conversation;
    let sender = &row.inbound.sender;
    let now = conversations.clock.now();
    let live = conversations.settings.current();
    let channel = live.in_chat(place.channel, &place.chat);
    let direct = message.chat_type == ChatType::Direct;
    let said = message.addressed(bot.unwrap_or_default());
    let lane = place.lane(sender);
    let group_all = channel.group_trigger == GroupTrigger::All;
    let threads_count = !direct && channel.group_trigger == GroupTrigger::Thread;
    let own_thread = threads_count && !place.thread.is_empty() && tx.has_lane(&lane).await?;
    let overheard = !(direct || said.to_bot || group_all || own_thread) && message.replies_to.is_empty();
    if overheard && !may_answer_a_card(tx, row, message, &said).await? {
        return Ok(None);
    }
    let mut open = tx.open_gates(place).await?;
    for gate in open.iter().filter(|gate| now >= gate.expires_at) {
        tx.lapse_gate(gate, now).await?;
    }
    // Those of other chats lapse in their own.
    let sent_here = match direct {
        true => tx.gates_of_direct_chat(place, sender).await?,
        false => Vec::new(),
    };
    let mut elsewhere_rights = Vec::new();
    for gate in &sent_here {
        let rights = conversations.rights_of(tx, &gate.conversation, sender).await?;
        elsewhere_rights.push((gate.id.clone(), rights));
    }
    let lapsed = sent_here.iter().find(|gate| now >= gate.expires_at).map(|gate| gate.id.clone());
    open.extend(sent_here);
    open.retain(|gate| now < gate.expires_at);
    let lane_turn = match tx.turn_of_lane(&lane).await? {
        Some(id) => tx.turn(&id).await?.filter(|turn| !turn.status.is_final()),
        None => None,
    };
    let elsewhere = if lane_turn.is_none() {
        elsewhere(tx, row).await?
    } else {
        Vec::new()
    };
    let command = ChatCommand::parse(&said);
    let phrase = Phrase::of(&said, direct);
    let closed = if phrase.is_listed() {
        match (closed_lately(tx, row, &rights, direct, now).await?, lapsed) {
            (None, Some(id)) => lapsed_gate(tx, &id, now).await?,
            (closed, _) => closed,
        }
    } else {
        None
    };
    let reply = reply(tx, row, message).await?;
    let own_chain = threads_count && reply.as_ref().is_some_and(|reply| reply.is_of(sender));
    let under_way = under_way(tx, closed.as_ref(), reply.as_ref()).await?;
    Ok(Some(MessageContext {
        at: row.inbound.at,
        sender: sender.clone(),
        tenant: place.tenant.clone(),
        chat: place.chat.clone(),
        thread: place.thread.clone(),
        direct,
        to_all: message.mentions_all,
        plain_ok: is_plain_ok(&said),
        away: match command {
            Some(ChatCommand::Away) => away::read(message, place.channel, bot.unwrap_or_default(), sender, now),
            _ => None,
        },
        command,
        phrase,
        said,
        attachment_only: message.attachment_only,
        files: channel.max_file_mb > 0 && !message.files.is_empty(),
        truncated: message.truncated,
        rights,
        group_all,
        own_thread: own_thread || own_chain,
        queue_mode: live.agent.queue_mode,
        fresh: now.since(row.received_at) < DELIVERY,
        replies_to_unknown: reply.is_none() && !message.replies_to.is_empty(),
        reply,
        open,
        elsewhere_rights,
        direct_card_under_way: direct && tx.is_direct_card_under_way(place, sender).await?,
        lane_turn,
        elsewhere,
        queued: u32::try_from(tx.queued(&lane).await?.len()).unwrap_or(u32::MAX),
        waiting: u32::try_from(tx.count_waiting(place, sender).await?).unwrap_or(u32::MAX),
        closed,
        under_way,
        lane,
    }))
}

/// May a message that was said to nobody in particular answer a card? Outside the threads of our tasks only `OK` itself does, while a card of
/// the chat waits for its sender.
async fn may_answer_a_card(tx: &mut Tx, row: &InboxRow, message: &InboundMessage, said: &Addressed) -> Result<bool, StoreError> {
    let place = &row.inbound.conversation;
    let beside = place.thread.is_empty() || message.message_id.as_ref() == Some(&place.thread);
    if beside {
        Ok(is_plain_ok(said) && tx.anything_waits(place, &row.inbound.sender).await?)
    } else {
        tx.anything_open(place).await
    }
}

/// A gate whose time is over, with the decision that it expired. That decision may not be stored yet.
async fn lapsed_gate(tx: &mut Tx, id: &GateId, now: Millis) -> Result<Option<GateRecord>, StoreError> {
    Ok(tx.gate(id).await?.map(|record| GateRecord {
        decision: Some(
            record
                .decision
                .unwrap_or_else(|| Actor::system(now).decision(DecisionKind::Expire, None)),
        ),
        ..record
    }))
}

/// The turns of the sender that are under way in this chat and older than the message.
async fn elsewhere(read: &mut Read, row: &InboxRow) -> Result<Vec<TurnRow>, StoreError> {
    let mut own = read.open_turns(&row.inbound.conversation).await?;
    own.retain(|turn| turn.user == row.inbound.sender && turn.inbox_id < row.id);
    Ok(own)
}

/// What the message replies to: the nearest of parent and root that is a message of one of our turns.
async fn reply(tx: &mut Tx, row: &InboxRow, message: &InboundMessage) -> Result<Option<Reply>, StoreError> {
    let place = &row.inbound.conversation;
    for id in &message.replies_to {
        let ids = std::slice::from_ref(id);
        let gate = tx.gate_by_message(place, ids).await?;
        let turn = tx.turn_by_message(place, ids).await?;
        let turn_id = gate
            .as_ref()
            .map(|record| &record.gate.turn_id)
            .or(turn.as_ref().map(|turn| &turn.id));
        let Some(turn_id) = turn_id.cloned() else {
            continue;
        };
        let is_card = match &gate {
            Some(record) => match tx.gate_of_card(place, id, &row.inbound.sender).await? {
                Some(card) => card == record.gate.id || is_earlier(tx, &card, record).await?,
                None => false,
            },
            None => false,
        };
        let is_request = turn.as_ref().is_some_and(|turn| turn.request_message.as_ref() == Some(id))
            || gate.as_ref().is_some_and(|record| record.gate.request_message.as_ref() == Some(id));
        let to = match (is_card, is_request) {
            (true, _) => ReplyTo::Card,
            (false, true) => ReplyTo::Request,
            (false, false) => ReplyTo::Post,
        };
        return Ok(Some(Reply { to, turn_id, turn, gate }));
    }
    Ok(None)
}

/// Those of these gates that words settled on which the model still works.
async fn under_way(read: &mut Read, closed: Option<&GateRecord>, reply: Option<&Reply>) -> Result<Vec<GateId>, StoreError> {
    let mut ids = Vec::new();
    for record in closed.into_iter().chain(reply.and_then(|reply| reply.gate.as_ref())) {
        if words_under_way(read, record).await? {
            ids.push(record.gate.id.clone());
        }
    }
    Ok(ids)
}

/// Did `gate` ask about the plan that `record` asks about? A question was answered in between.
async fn is_earlier(read: &mut Read, gate: &GateId, record: &GateRecord) -> Result<bool, StoreError> {
    let earlier = read.gate(gate).await?;
    Ok(earlier.is_some_and(|earlier| earlier.gate.asks_the_same(&record.gate)))
}

/// The gate that a late word is about: the sender's own that was closed last, else in a direct chat the one of a card there, else the chat's
/// newest review if the sender might have decided it. None after a day.
async fn closed_lately(
    read: &mut Read,
    row: &InboxRow,
    rights: &Rights,
    direct: bool,
    now: Millis,
) -> Result<Option<GateRecord>, StoreError> {
    let place = &row.inbound.conversation;
    let sender = &row.inbound.sender;
    let since = Millis(now.0.saturating_sub(i64::try_from(LATE.as_millis()).unwrap_or(i64::MAX)));
    if let Some(record) = read.last_closed_gate(place, sender, since).await? {
        return Ok(Some(record));
    }
    if direct && let Some(record) = read.last_closed_of_direct_chat(place, since).await? {
        return Ok(Some(record));
    }
    let query = ListQuery {
        chat: Some(place.chat.clone()),
        limit: 1,
        ..ListQuery::default()
    };
    let newest = read.list_reviews(&query).await?.items.into_iter().next();
    Ok(newest.filter(|record| {
        let lately = record.decision.as_ref().is_some_and(|decision| decision.at >= since);
        lately && say::same_chat(&record.gate.conversation, place) && rights.of_plans(sender, &record.gate.requester).is_given()
    }))
}
