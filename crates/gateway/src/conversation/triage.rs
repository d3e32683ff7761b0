//! Gives inbox rows their meaning: loads what surrounds a message, has `route` choose, carries the choice out. One transaction a row.

use std::collections::HashSet;

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::handshake::Actor;
use countersign_agent::domain::{ChannelKind, ChatType, Conversation, Gate, InboundBody, InboundMessage, Notice, ReactionMark, Via};
use metrics::counter;

use crate::store::{DamagedRow, InboxRow, StoreError, Tx};

use super::answer::{AnswerTo, Answered, GateAnswer, answer};
use super::context::MessageContext;
use super::load::load_context;
use super::mentions::person;
use super::route::{Meaning, acts_elsewhere, queue, route};
use super::settle::GateOutcome;
use super::{Conversations, away, changes, say, stop};

/// Rows looked at in one go.
const BATCH: i64 = 64;

/// How often one row is looked at in one go, each time knowing more of what it depends on.
const LOOKS: usize = 4;

/// Rows looked at in one call, those that must wait included.
const FARTHEST: usize = 4096;

pub(super) enum RowEnd {
    /// Handled; the word says how.
    Done(&'static str),
    /// A task for its sender's lane.
    Task,
    /// Not yet: the bot's own id, or whether the card was there to read, is not known.
    Wait,
    /// Not before it is known who is in these groups.
    LookUp(Vec<String>),
    /// It is about a gate of this chat, whose lock it needs: the sender has a direct card of it.
    Elsewhere(Box<Conversation>),
}

impl Conversations {
    /// Handles what came in and waits for triage, oldest first; gives how many rows were handled. Any number of workers may
    /// call it at once: each row is taken by compare-and-set.
    ///
    /// # Errors
    /// When the ledger cannot be read or written; rows that were handled stay handled.
    pub async fn triage(&self) -> Result<usize, StoreError> {
        self.triage_until(|| false).await
    }

    /// Triages, and begins no further row once `over` is true; other processes do the rest.
    pub async fn triage_until(&self, over: impl Fn() -> bool + Send + Sync) -> Result<usize, StoreError> {
        let mut waiting = HashSet::new();
        let (mut after, mut seen, mut handled) = (0, 0, 0);
        loop {
            let rows = self.ledger.read().await?.untriaged(after, BATCH).await?;
            for row in &rows {
                if over() {
                    return Ok(handled);
                }
                let row = match row {
                    Ok(row) => row,
                    Err(damaged) => {
                        handled += usize::from(self.pass_over(damaged).await?);
                        continue;
                    }
                };
                let who = person(&row.inbound);
                let looked_at = self.mentions.look(row, &rows, self.clock.now());
                // Rows of one person in one chat are taken in order.
                let behind = waiting.contains(&who);
                if let Some(row) = looked_at
                    && self.triage_row(&row, behind).await?
                {
                    handled += 1;
                } else {
                    waiting.insert(who);
                }
            }
            seen += rows.len();
            after = rows
                .last()
                .map_or(after, |row| row.as_ref().map_or_else(|damaged| damaged.id, |row| row.id));
            // Rows that wait hold up no others: look behind them.
            let full = i64::try_from(rows.len()).is_ok_and(|count| count >= BATCH);
            if handled > 0 || !full || seen >= FARTHEST {
                return Ok(handled);
            }
        }
    }

    /// Nobody can know what this row was about.
    async fn pass_over(&self, damaged: &DamagedRow) -> Result<bool, StoreError> {
        let mut tx = self.ledger.begin().await?;
        let passed_over = tx.pass_event_over(damaged).await?;
        tx.commit().await?;
        Ok(passed_over)
    }

    /// Handles one row; `false` means that it must wait. `behind`: an older row of its sender waits, which only a stop overtakes.
    async fn triage_row(&self, row: &InboxRow, behind: bool) -> Result<bool, StoreError> {
        if row.is_copy {
            self.drop_copy(row).await?;
            return Ok(true);
        }
        let mut handled = self.handle_row(row, behind).await;
        // Between our look and our commit, what a row is about may have been removed for its age, which then does not read back. Or
        // a copy of the row in another chat may have been handled, whose key then refuses ours. The second look knows.
        if matches!(handled, Err(StoreError::Corrupt(_))) {
            handled = self.handle_row(row, behind).await;
        }
        match handled {
            // A row that cannot be understood must not hold up the others for ever.
            Err(StoreError::Corrupt(why)) => {
                tracing::error!(inbox = row.id, event_id = %row.inbound.event_key, why, "row given up: the ledger does not read back");
                self.give_up(row).await?;
                Ok(true)
            }
            handled => handled,
        }
    }

    /// One try of [`Conversations::triage_row`].
    async fn handle_row(&self, row: &InboxRow, behind: bool) -> Result<bool, StoreError> {
        let mut locked = row.inbound.conversation.clone();
        let mut looked_up = false;
        for _ in 0..LOOKS {
            let mut tx = self.ledger.begin_in(&locked).await?;
            match Box::pin(self.end_of(&mut tx, row, behind, looked_up, &locked)).await? {
                RowEnd::LookUp(groups) => {
                    // No transaction waits for a platform.
                    drop(tx);
                    // Slack tells of a mention twice. If the first event was handled meanwhile, this one needs no look-up.
                    if self.drop_copy(row).await? {
                        return Ok(true);
                    }
                    self.groups.look_up(row.inbound.conversation.channel, &groups).await;
                    looked_up = true;
                }
                RowEnd::Elsewhere(place) => locked = *place,
                end => return self.finish_row(tx, row, end).await,
            }
        }
        // What it is about changes from look to look: later.
        Ok(false)
    }

    /// What becomes of the row. `looked_up`: the groups that it depends on were asked for. `locked`: the chat whose transaction this is.
    async fn end_of(
        &self,
        tx: &mut Tx,
        row: &InboxRow,
        behind: bool,
        looked_up: bool,
        locked: &Conversation,
    ) -> Result<RowEnd, StoreError> {
        Ok(match &row.inbound.body {
            InboundBody::Message(message) => match self.handle_message(tx, row, message, behind, locked).await? {
                RowEnd::LookUp(groups) if looked_up => {
                    say::tell_seldom(tx, row, Notice::GroupUnknown { groups }, self.clock.now()).await?;
                    RowEnd::Done("group unknown")
                }
                end => end,
            },
            _ if behind => RowEnd::Wait,
            InboundBody::Recalled { message_id } => RowEnd::Done(changes::handle_recall(tx, row, message_id, self.clock.now()).await?),
            InboundBody::Edited { message_id, new } => {
                let rights = self.rights(&row.inbound.conversation);
                RowEnd::Done(changes::handle_edit(tx, row, message_id, new.as_deref(), &rights, self.clock.now()).await?)
            }
            InboundBody::Reaction(reaction) => match self.handle_reaction(tx, row, reaction, locked).await? {
                RowEnd::LookUp(_) if looked_up => RowEnd::Done("group unknown"),
                end => end,
            },
            InboundBody::Joined => RowEnd::Done(changes::handle_join(tx, row).await?),
            InboundBody::Left => RowEnd::Done(changes::handle_leave(tx, row, self.clock.now()).await?),
            // Decided in the request, or a task from the beginning; such a row is never left over.
            InboundBody::Click(_) | InboundBody::Again { .. } | InboundBody::TryAgain { .. } => RowEnd::Done("handled"),
        })
    }

    async fn finish_row(&self, mut tx: Tx, row: &InboxRow, end: RowEnd) -> Result<bool, StoreError> {
        let (taken, name) = match end {
            RowEnd::Wait | RowEnd::LookUp(_) | RowEnd::Elsewhere(_) => return Ok(false),
            RowEnd::Done(name) => (tx.triaged(row.id, name).await?, name),
            RowEnd::Task => {
                let lane = row.inbound.conversation.lane(&row.inbound.sender);
                (tx.assign(row, &lane).await?, "task")
            }
        };
        if !taken {
            // Somebody else handled it in the meantime, or a copy of it: what we did about it is rolled back.
            drop(tx);
            self.drop_copy(row).await?;
            return Ok(true);
        }
        tx.commit().await?;
        tracing::info!(inbox = row.id, event_id = %row.inbound.event_key, kind = row.inbound.body.name(), outcome = name, "triaged");
        Ok(true)
    }

    /// Platforms push an event again until they hear 200 in time, and Slack tells of a mention twice.
    /// `false` means that it is no copy.
    async fn drop_copy(&self, row: &InboxRow) -> Result<bool, StoreError> {
        let mut tx = self.ledger.begin_in(&row.inbound.conversation).await?;
        let dropped = tx.drop_copy(row.id).await?;
        if dropped {
            tx.commit().await?;
            self.mentions.note_copy(row);
            let channel = row.inbound.conversation.channel.as_str();
            counter!("countersign_duplicates_total", "channel" => channel).increment(1);
            tracing::info!(inbox = row.id, event_id = %row.inbound.event_key, kind = row.inbound.body.name(), "a copy of what was triaged before");
        }
        Ok(dropped)
    }

    async fn give_up(&self, row: &InboxRow) -> Result<(), StoreError> {
        let mut tx = self.ledger.begin_in(&row.inbound.conversation).await?;
        if tx.triaged(row.id, "unreadable").await? {
            let incident = row.id.to_string();
            say::tell(&mut tx, row, Notice::Internal { incident }).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Finds out what a message means, and does it.
    async fn handle_message(
        &self,
        tx: &mut Tx,
        row: &InboxRow,
        message: &InboundMessage,
        behind: bool,
        locked: &Conversation,
    ) -> Result<RowEnd, StoreError> {
        let bot = tx.fact(&row.inbound.conversation.bot_fact()).await?;
        if bot.is_none() && needs_identity(row, message) {
            return Ok(RowEnd::Wait);
        }
        if bot.as_deref() == Some(row.inbound.sender.as_str()) {
            return Ok(RowEnd::Done("our own"));
        }
        let place = &row.inbound.conversation;
        let rights = self.rights_of(tx, place, &row.inbound.sender).await?;
        if !rights.inside(&row.inbound.sender_teams, &place.tenant) {
            return Ok(RowEnd::Done("of another organisation"));
        }
        let Some(context) = load_context(tx, self, rights, row, message, bot.as_deref()).await? else {
            return Ok(RowEnd::Done("not for us"));
        };
        let mut meaning = route(&context);
        if let Meaning::Steer(turn) = &meaning
            && tx.is_ending(turn).await?
        {
            // It reads no more words: they would end with it.
            meaning = queue(&context);
        }
        if behind && !matches!(meaning, Meaning::Stop(_)) {
            return Ok(RowEnd::Wait);
        }
        if let Some(gate) = acts_elsewhere(&context, &meaning)
            && gate.conversation.chat != locked.chat
        {
            return Ok(RowEnd::Elsewhere(Box::new(gate.conversation.clone())));
        }
        self.carry_out(tx, row, &context, meaning).await
    }

    async fn carry_out(&self, tx: &mut Tx, row: &InboxRow, context: &MessageContext, meaning: Meaning) -> Result<RowEnd, StoreError> {
        let now = self.clock.now();
        let actor = Actor::person(&row.inbound.sender, Via::Text, &row.inbound.event_key, now);
        match meaning {
            Meaning::Wait => Ok(RowEnd::Wait),
            Meaning::Ignore(why) => Ok(RowEnd::Done(why)),
            Meaning::Tell(why, notice) => {
                say::tell_seldom(tx, row, notice, now).await?;
                Ok(RowEnd::Done(why))
            }
            Meaning::GroupUnknown(groups) => Ok(RowEnd::LookUp(groups)),
            Meaning::Refuse(gate) => {
                say::tell_seldom(tx, row, context.rights_at(&gate).not_entitled(&gate, None), now).await?;
                tx.audit_act("refused", &gate, None, &actor, serde_json::json!({}));
                Ok(RowEnd::Done("not entitled"))
            }
            Meaning::Status => {
                let status = stop::status(tx, context).await?;
                say::tell_seldom(tx, row, status, now).await?;
                Ok(RowEnd::Done("status"))
            }
            Meaning::Away(request) => {
                match request {
                    Some(request) => away::leave(tx, row, request, now).await?,
                    None => away::tell(tx, row, now).await?,
                }
                Ok(RowEnd::Done("away"))
            }
            Meaning::Back => {
                away::come_back(tx, row, now).await?;
                Ok(RowEnd::Done("back"))
            }
            Meaning::Grants => {
                let listed = self.list_grants(tx, row).await?;
                say::tell_seldom(tx, row, listed, now).await?;
                Ok(RowEnd::Done("grants"))
            }
            Meaning::Revoke(number) => {
                let revoked = self.revoke_grant(tx, row, &number).await?;
                say::tell_seldom(tx, row, revoked, now).await?;
                Ok(RowEnd::Done("grant revoked"))
            }
            Meaning::Answer(gate, act) => {
                if say::hint(tx, row, &gate, &act).await? {
                    return Ok(RowEnd::Done("hint"));
                }
                self.answer_gate(tx, row, context, &gate, &actor).await
            }
            Meaning::Stop(turn) => {
                stop::stop(tx, row, context, turn.as_ref(), &actor).await?;
                Ok(RowEnd::Done("stop"))
            }
            Meaning::Steer(id) => {
                if let Some(turn) = tx.turn(&id).await? {
                    tx.signal(&turn, SignalKind::Steer, Some(&context.said.text), Some(&row.inbound.sender))
                        .await?;
                }
                say::tell(tx, row, Notice::Steered {}).await?;
                Ok(RowEnd::Done("steer"))
            }
            Meaning::Task(before) => {
                let mark = if before == 0 { ReactionMark::Working } else { ReactionMark::Seen };
                say::mark(tx, row, mark).await?;
                if before > 0 {
                    say::tell(tx, row, Notice::Queued { position: before }).await?;
                }
                Ok(RowEnd::Task)
            }
            Meaning::Instead => {
                stop::supersede(tx, row, context, &actor).await?;
                if context.said.task().is_empty() {
                    say::tell_seldom(tx, row, Notice::Greeting {}, now).await?;
                    return Ok(RowEnd::Done("dropped"));
                }
                say::mark(tx, row, ReactionMark::Working).await?;
                Ok(RowEnd::Task)
            }
        }
    }

    /// Words that answer `gate`.
    async fn answer_gate(
        &self,
        tx: &mut Tx,
        row: &InboxRow,
        context: &MessageContext,
        gate: &Gate,
        actor: &Actor,
    ) -> Result<RowEnd, StoreError> {
        let given = GateAnswer {
            to: AnswerTo::Gate(&gate.id),
            verb: &context.verb(),
            by: actor,
            teams: &row.inbound.sender_teams,
            place: None,
            edit: None,
        };
        let Some(Answered { outcome, notice, .. }) = answer(self, tx, &given).await? else {
            return Err(StoreError::Corrupt(format!("gate {} is gone", gate.id)));
        };
        match (outcome, notice) {
            (_, Notice::GroupUnknown { groups }) => return Ok(RowEnd::LookUp(groups)),
            // The card tells everybody; the mark tells the one who answered that they were understood.
            (GateOutcome::Decided(_) | GateOutcome::RowsDecided(_), _) => say::mark(tx, row, ReactionMark::Seen).await?,
            (GateOutcome::Voted { .. }, notice) => say::tell(tx, row, notice).await?,
            (_, notice) => say::tell_seldom(tx, row, notice, self.clock.now()).await?,
        }
        Ok(RowEnd::Done("answer"))
    }
}

/// In a group only the bot's own id tells whether a message is for us; alone with us it matters only if somebody is mentioned.
/// The console has no bot account.
fn needs_identity(row: &InboxRow, message: &InboundMessage) -> bool {
    let matters = message.chat_type == ChatType::Group && !message.to_bot || !message.mentions.is_empty();
    row.inbound.conversation.channel != ChannelKind::Console && matters
}
