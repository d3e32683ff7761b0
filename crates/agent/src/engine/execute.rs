//! Running tools: reads together, write calls one by one, each journaled `running` before and `done` after.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use metrics::{counter, histogram};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::JournalError;
use super::drive::{Engine, RETRY, Run};
use super::journal::Sending;
use super::model_call::interrupted;
use crate::domain::{ActionId, ToolResult};
use crate::reducer::{self, CallOutcome, Env, Input, OpenCall};
use crate::tools::{CallHandle, Halt, HaltReason, MAX_OUTPUT_BYTES, ToolError, ToolOutput};

/// A call that was sent and not answered, and what a reader is told of it.
struct UnknownOutcome(ToolResult);

/// What became of a write call.
enum WriteOutcome {
    /// It was sent, now or before a crash, and this is its answer. `None` means that whether it ran is unknown.
    Sent(Option<ToolResult>),
    /// It was not sent, and must not be: a rule forbids it, what let it through holds no more, or a person has to see first what it would change
    /// now.
    Outdated,
    /// The turn is being stopped: it was not sent and is not now, or it did not end in its grace and its row stays `running`.
    Stopped,
}

impl Engine {
    /// Runs the named open calls. When a person stops the turn (or a shutdown begins) in between, the results so far
    /// are handed in and the rest stays to be run. `None` means there is nothing to hand in.
    pub(super) async fn run_tools(&self, run: &Run<'_>, calls: &[String], stop: &CancellationToken) -> Result<Option<Input>, JournalError> {
        let started = Instant::now();
        let open: Vec<&OpenCall> = run
            .turn
            .state
            .calls
            .open
            .iter()
            .filter(|call| calls.contains(&call.call.id))
            .collect();
        let (writes, reads): (Vec<&OpenCall>, Vec<&OpenCall>) = open.into_iter().partition(|call| call.action.is_some());
        // Repeating a read is harmless, so reads carry no journal of their own and may be dropped at a stop.
        let reading = join_all(reads.into_iter().map(|call| async {
            let handle = CallHandle {
                links_resolved: true,
                ..CallHandle::default()
            };
            let reading = self.invoke(call, &handle);
            let result = tokio::time::timeout(self.timings.tool_timeout, reading).await;
            CallOutcome {
                call_id: call.call.id.clone(),
                result: Some(match result {
                    // A read that may or may not have been made can be made again.
                    Ok(Ok(result) | Err(UnknownOutcome(result))) => result,
                    Err(_) => late(self.timings.tool_timeout),
                }),
            }
        }));
        let mut outcomes = tokio::select! {
            outcomes = reading => outcomes,
            () = interrupted(run) => return Ok(None),
            () = stop.cancelled() => return Ok(None),
        };
        let millis = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        for call in writes {
            // No call is begun once the time is up: a long batch must not run on past the limit. What was sent before a crash is
            // read all the same: the turn must not take it for a call that never ran.
            let late = !outcomes.is_empty() && time_is_up(run, started.elapsed());
            let begins = !late && !stop.is_cancelled() && run.journal.news(&run.turn.state).await?.is_none();
            let call_id = call.call.id.clone();
            match self.run_write(run, call, begins).await? {
                WriteOutcome::Sent(result) => {
                    let known = result.is_some();
                    outcomes.push(CallOutcome { call_id, result });
                    // Later writes must not overtake one that may have to be run again.
                    if !known {
                        break;
                    }
                }
                // What ran before it is told first; then its turn comes again.
                WriteOutcome::Outdated if outcomes.is_empty() => {
                    return Ok(Some(Input::Outdated { call_id, millis: millis() }));
                }
                // Of a call that was stopped its row says so when the stop is read.
                WriteOutcome::Outdated | WriteOutcome::Stopped => break,
            }
        }
        if outcomes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Input::ToolResults {
            outcomes,
            millis: millis(),
        }))
    }

    /// One write call, at most once; `begins`: it may be sent now, if it was not before.
    async fn run_write(&self, run: &Run<'_>, call: &OpenCall, begins: bool) -> Result<WriteOutcome, JournalError> {
        let Some(id) = call.action.as_deref().map(ActionId::new) else {
            return Err(JournalError::Corrupt(format!("call {} has no row in actions", call.call.id)));
        };
        let forbidden = begins && !self.may_be_sent(run, call).await?;
        let outdated = forbidden || (begins && self.is_outdated(call).await);
        match run.journal.sending(&id, begins && !outdated).await? {
            Sending::Now => (),
            // Only of a call that was never sent: one that was may have changed the thing itself.
            Sending::Not if outdated => return Ok(WriteOutcome::Outdated),
            Sending::Answered(result) => return Ok(WriteOutcome::Sent(Some(result))),
            // It was sent before a crash. What it changes may be changed by now: the tool has to compare.
            Sending::Unknown if begins && !forbidden && self.resumes(call) => (),
            Sending::Unknown => return Ok(WriteOutcome::Sent(None)),
            Sending::Not => return Ok(WriteOutcome::Stopped),
        }
        let handle = CallHandle {
            action: Some(id.clone()),
            base: call.base.clone(),
            links_resolved: true,
            halt: Halt::default(),
        };
        let invocation = async {
            if let Some(lag) = self.failpoint.lag("action_sent") {
                tokio::time::sleep(lag).await;
            }
            self.invoke(call, &handle).await
        };
        let mut invocation = pin!(invocation);
        let why = tokio::select! {
            result = &mut invocation => Ok(result),
            () = interrupted(run) => Err(HaltReason::ByPerson),
            () = tokio::time::sleep(self.timings.tool_timeout) => Err(HaltReason::ByTime),
        };
        let answered = match why {
            Ok(answered) => answered,
            Err(why) => {
                // A tool that listens ends now and says what it has done: that is the call's result, like any other.
                handle.halt.tell(why);
                match tokio::time::timeout(self.timings.stop_grace, invocation).await {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(_)) | Err(_) if why == HaltReason::ByPerson => return Ok(WriteOutcome::Stopped),
                    // It may still land; only a person can say whether it should be run again.
                    Ok(Err(_)) | Err(_) => return Ok(WriteOutcome::Sent(None)),
                }
            }
        };
        let Ok(result) = answered else {
            return Ok(WriteOutcome::Sent(None));
        };
        self.failpoint.reach("action_ran");
        // What came of it is known here and nowhere else: the ledger is told as soon as it answers, as long as the lane is ours.
        while let Err(error) = run.journal.done(&id, &result).await {
            let JournalError::Unavailable(_) = error else {
                return Err(error);
            };
            warn!(action.id = %id, %error, "the result of a write call could not be journaled; trying again");
            tokio::time::sleep(RETRY).await;
        }
        self.failpoint.reach("action_journaled");
        Ok(WriteOutcome::Sent(Some(result)))
    }

    /// May the call, which was allowed, still be sent? What forbids it may be newer than the approval.
    async fn may_be_sent(&self, run: &Run<'_>, call: &OpenCall) -> Result<bool, JournalError> {
        let standing = match &call.standing {
            Some(_) => run.journal.standing().await?,
            None => None,
        };
        let rules = (self.rules)();
        let env = Env {
            now: self.clock.now(),
            tools: &run.specs,
            rules: &rules,
            standing: standing.as_ref(),
            chat: run.journal.chat(),
            prompts: &self.templates,
        };
        Ok(reducer::may_be_sent(&env, call))
    }

    fn resumes(&self, call: &OpenCall) -> bool {
        let tool = self.tools.get_for(&call.call.name, call.definition.as_deref());
        tool.is_some_and(|tool| tool.resumes())
    }

    async fn invoke(&self, call: &OpenCall, handle: &CallHandle) -> Result<ToolResult, UnknownOutcome> {
        let (name, started) = (&call.call.name, Instant::now());
        let tool = self.tools.get_for(name, call.definition.as_deref());
        let arguments = match &call.behind_links {
            Some(behind) => Ok(behind.clone()),
            None => serde_json::from_str(&call.call.arguments),
        };
        let answered = match (tool, arguments) {
            (Some(tool), Ok(arguments)) => tool.run(&arguments, handle).await,
            (None, _) => Err(ToolError::TellModel(format!("there is no tool `{name}` any more"))),
            (_, Err(error)) => Err(ToolError::TellModel(format!("the arguments are not JSON: {error}"))),
        };
        let seconds = started.elapsed().as_secs_f64();
        // Only names that the admin configured: the model makes names up without end.
        if self.tools.offers(name) {
            let outcome = if answered.is_ok() { "ok" } else { "failed" };
            counter!("countersign_tool_calls_total", "tool" => name.to_owned(), "outcome" => outcome).increment(1);
            histogram!("countersign_tool_call_seconds", "tool" => name.to_owned()).record(seconds);
        }
        match answered {
            Ok(ToolOutput {
                text,
                exit_code,
                truncated,
                exit,
                attachment,
            }) => {
                let (text, cut) = cut(text);
                Ok(ToolResult {
                    text,
                    exit_code,
                    seconds,
                    truncated: truncated || cut,
                    ok: true,
                    exit,
                    attachment,
                })
            }
            Err(failure) => {
                if let ToolError::Fatal(reason) = &failure {
                    error!(tool = %name, reason, "tool failed");
                }
                let (text, truncated) = cut(failure.to_string());
                let result = ToolResult {
                    text,
                    exit_code: None,
                    seconds,
                    truncated,
                    ok: false,
                    exit: None,
                    attachment: None,
                };
                match failure {
                    ToolError::Unknown(_) => Err(UnknownOutcome(result)),
                    ToolError::TellModel(_) | ToolError::Fatal(_) => Ok(result),
                }
            }
        }
    }
}

/// Has the turn worked as long as it may, `more` included?
fn time_is_up(run: &Run<'_>, more: Duration) -> bool {
    let mut millis = run.turn.state.budget.millis;
    millis.used = millis.used.saturating_add(u64::try_from(more.as_millis()).unwrap_or(u64::MAX));
    millis.spent()
}

/// What the model hears of a read that took too long.
fn late(limit: Duration) -> ToolResult {
    ToolResult {
        text: format!("no answer within {} s", limit.as_secs()),
        exit_code: None,
        seconds: limit.as_secs_f64(),
        truncated: false,
        ok: false,
        exit: None,
        attachment: None,
    }
}

/// Cuts at the cap, on a character border.
fn cut(mut text: String) -> (String, bool) {
    let whole = text.len() <= MAX_OUTPUT_BYTES;
    if !whole {
        text.truncate(text.floor_char_boundary(MAX_OUTPUT_BYTES));
    }
    (text, !whole)
}
