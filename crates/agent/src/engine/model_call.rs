//! One call of the model: prompt, deadline, interruption, and its failures in words for people.
//!
//! A prompt that the provider finds too long is halved: oldest tool outputs first, then newer ones, until it fits. Tokens are not counted,
//! because only the provider knows how. An interrupted call costs its time, which is charged with the next call, and no step.

use std::time::Duration;

use futures_util::future::join_all;
use metrics::{counter, histogram};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::JournalError;
use super::drive::{CallSetup, Engine, Run, UnchargedCost};
use crate::domain::SignalKind::{Cancel, Steer, Supersede};
use crate::domain::{Message, Notice};
use crate::model::{ChatReply, ChatRequest, ModelError};
use crate::reducer::{self, Env, FailedTry, Input, ModelReply, Room};

/// The flagged last call has time of its own, whatever the turn has left.
const LAST_CALL: Duration = Duration::from_secs(30);

impl Engine {
    /// Asks the model. `None` means a person (or a shutdown) interrupted; nothing of the answer is kept, and the connection is closed.
    pub(super) async fn call_model(&self, run: &mut Run<'_>, last: bool, stop: &CancellationToken) -> Result<Option<Input>, JournalError> {
        let call_setup = (self.call_setup)(&run.turn.state.policy);
        // What servers offer changes while a turn is under way: its calls are judged by what the model was shown last.
        run.specs = self.specs(&run.turn.state.policy);
        let history = run.journal.history(&run.turn.state.policy).await?;
        let budget = &run.turn.state.budget;
        let left = Duration::from_millis(budget.millis.limit.saturating_sub(budget.millis.used)).saturating_sub(run.uncharged.time);
        let whole = if last { LAST_CALL } else { left };
        let mut request = ChatRequest {
            messages: self.prompt(run, run.room, &call_setup, &history),
            tools: reducer::offered(run.turn, &run.specs),
            parallel_tool_calls: call_setup.parallel_tool_calls,
            deadline: whole,
        };
        let started = Instant::now();
        let outcome = loop {
            request.deadline = whole.saturating_sub(started.elapsed());
            let outcome = tokio::select! {
                outcome = call_setup.model.chat(&request) => outcome.and_then(ChatReply::bounded),
                () = run.journal.heard(&[Cancel, Supersede, Steer]) => {
                    run.uncharged.time += started.elapsed();
                    counter!("countersign_model_calls_total", "outcome" => "interrupted").increment(1);
                    return Ok(None);
                }
                () = stop.cancelled() => return Ok(None),
            };
            match outcome {
                Err(ModelError::TooLong) if self.fold(run, &mut request, &call_setup, &history) => {}
                outcome => break outcome,
            }
        };
        let uncharged = std::mem::take(&mut run.uncharged);
        let worked = uncharged.time + started.elapsed();
        let millis = u64::try_from(worked.as_millis()).unwrap_or(u64::MAX);
        self.note_health(&outcome);
        count(&outcome, started.elapsed());
        self.failpoint.reach("model_answered");
        Ok(Some(match outcome {
            Ok(ChatReply {
                text,
                calls,
                raw,
                tokens,
                cut_call,
            }) => {
                if calls.is_empty() && reducer::has_call_markup(&text) {
                    warn!(
                        "the model wrote a tool call as text: its server does not parse tool calls (a tool parser or chat template is missing there)"
                    );
                }
                info!(
                    millis,
                    tokens,
                    calls = calls.len(),
                    text_chars = text.chars().count(),
                    "model answered"
                );
                let behind_links = join_all(calls.iter().map(|call| self.behind_links_of(call))).await;
                Input::Reply(ModelReply {
                    text,
                    calls,
                    behind_links,
                    raw,
                    tokens: tokens.saturating_add(uncharged.tokens),
                    millis,
                    cut_call,
                })
            }
            Err(error) => {
                let in_time = started.elapsed() < whole;
                self.failed(run, &error, (uncharged, millis, in_time), call_setup.patience)
            }
        }))
    }

    /// What the reducer hears of a call that failed; `in_time`: it was not the turn's own time that ended it.
    fn failed(
        &self,
        run: &mut Run<'_>,
        error: &ModelError,
        (uncharged, millis, in_time): (UnchargedCost, u64, bool),
        patience: Duration,
    ) -> Input {
        let incident = self.ids.token()[..8].to_owned();
        let away = match error {
            ModelError::Away { wait, .. } => Some(*wait),
            // A server that begins to run takes connections before it answers.
            ModelError::Timeout if in_time && run.turn.state.outage.is_some() => Some(None),
            _ => None,
        };
        // Waiting for a server that is away costs no working time, and its tries cost none either.
        if let Some(wait) = away {
            warn!(incident, %error, ?wait, "the model's server is away");
            return Input::ModelAway(FailedTry {
                wait,
                patience,
                error: error.to_string(),
                incident,
                millis: u64::try_from(uncharged.time.as_millis()).unwrap_or(u64::MAX),
                tokens: uncharged.tokens,
            });
        }
        run.uncharged.tokens = uncharged.tokens;
        warn!(millis, incident, %error, "the model did not answer");
        Input::ModelFailed {
            notice: notice_for(error),
            error: error.to_string(),
            incident,
            millis,
        }
    }

    fn prompt(&self, run: &Run<'_>, room: Room, call_setup: &CallSetup, history: &[Message]) -> Vec<Message> {
        let env = Env {
            now: self.clock.now(),
            tools: &run.specs,
            rules: &[],
            standing: None,
            chat: run.journal.chat(),
            prompts: &self.templates,
        };
        let mut messages = reducer::prompt(run.turn, &env, &call_setup.system_prompt, history, room);
        // A model that found the whole too long does without the pictures.
        if !call_setup.vision || room.bytes < Room::default().bytes {
            messages.iter_mut().for_each(|message| message.pictures.clear());
        }
        messages
    }

    /// Makes the request shorter, for this call and for the next ones. `false` means nothing more can go.
    fn fold(&self, run: &mut Run<'_>, request: &mut ChatRequest, call_setup: &CallSetup, history: &[Message]) -> bool {
        let mut room = run.room;
        // A room that is tighter may hold the same, and the next one less.
        while let Some(tighter) = room.tighter(&request.messages) {
            room = tighter;
            let messages = self.prompt(run, room, call_setup, history);
            if messages == request.messages {
                continue;
            }
            info!(
                bytes = room.bytes,
                kept = room.kept,
                "the prompt is too long for the model; asking again with less of the old outputs"
            );
            run.room = room;
            request.messages = messages;
            return true;
        }
        false
    }

    fn note_health(&self, outcome: &Result<ChatReply, ModelError>) {
        let last = outcome.as_ref().map(|_| ()).map_err(ToString::to_string);
        let mut health = self.health.lock();
        health.last = Some((self.clock.now(), last));
    }
}

/// Comes back once a person has stopped the turn (or something newer took its place).
pub(super) async fn interrupted(run: &Run<'_>) {
    run.journal.heard(&[Cancel, Supersede]).await;
}

fn count(outcome: &Result<ChatReply, ModelError>, took: Duration) {
    let name = match outcome {
        Ok(_) => "answered",
        Err(ModelError::Away { .. } | ModelError::Unreachable(_)) => "unreachable",
        Err(ModelError::Refused { .. }) => "refused",
        Err(ModelError::Timeout) => "timeout",
        Err(ModelError::TooLong) => "too_long",
        Err(ModelError::Filtered) => "filtered",
        Err(ModelError::Nonsense(_)) => "nonsense",
        Err(ModelError::OddEnd(_)) => "odd_end",
    };
    counter!("countersign_model_calls_total", "outcome" => name).increment(1);
    histogram!("countersign_model_call_seconds").record(took.as_secs_f64());
    if let Ok(reply) = outcome {
        counter!("countersign_model_tokens_total").increment(reply.tokens);
    }
}

fn notice_for(error: &ModelError) -> Notice {
    match error {
        ModelError::Away { .. } | ModelError::Unreachable(_) => Notice::ModelUnreachable {},
        ModelError::Refused { .. } => Notice::ModelRefused {},
        ModelError::Timeout => Notice::ModelTimeout {},
        ModelError::Nonsense(_) => Notice::ModelNonsense {},
        ModelError::OddEnd(word) => Notice::ModelOddEnd { word: word.clone() },
        ModelError::TooLong => Notice::ModelTooLong {},
        ModelError::Filtered => Notice::ModelFiltered {},
    }
}
