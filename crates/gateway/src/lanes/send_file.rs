//! `send_file`: a file of the workspace goes into the chat of the task.
//!
//! A call is a post of the outbox, whose key is made of the call's id. The bytes stand beside the post as they were when it was made. Whoever
//! runs the call again after a crash finds the post and waits for it.

mod looks;

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{
    ActionId, ActionStatus, ArgumentSense, Attachment, AttachmentKind, Conversation, EffectClass, Failpoint, FileView, Ids, Outbound,
    Scope, ToolSpec, one_line, visible,
};
use countersign_agent::tools::{
    BoxFuture, CallHandle, HaltReason, TakenFile, Tool, ToolError, ToolOutput, ToolboxError, Workspace, read_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use self::looks::{media_type, preview_text, size};
use crate::store::{Ledger, NewOutbox, OutboxOp, PostState, StoreError, outbox_key};

pub const SEND_FILE: &str = "send_file";
/// Characters of a caption.
const MAX_CAPTION: usize = 2000;
/// Between two looks at whether the file has arrived.
const LOOK: Duration = Duration::from_millis(200);
/// So often it is looked after a stop.
const LAST_LOOKS: u32 = 10;
/// Files in memory at a time, of all tasks of the process.
const AT_A_TIME: usize = 4;

#[derive(Clone, Debug)]
pub struct FileSender {
    workspace: Arc<Workspace>,
    ledger: Ledger,
    failpoint: Failpoint,
    room: Arc<Semaphore>,
}

impl FileSender {
    /// For files below `folder`.
    pub fn new(folder: &Path, ids: &Ids, ledger: Ledger, failpoint: Failpoint) -> Result<Self, ToolboxError> {
        Ok(Self {
            workspace: Arc::new(Workspace::open(folder, ids)?),
            ledger,
            failpoint,
            room: Arc::new(Semaphore::new(AT_A_TIME)),
        })
    }

    /// The tool of a task in this conversation.
    pub fn tool_in(&self, place: &Conversation) -> Arc<dyn Tool> {
        Arc::new(SendFile {
            sender: self.clone(),
            place: place.clone(),
        })
    }
}

pub fn send_file_spec() -> ToolSpec {
    ToolSpec {
        name: SEND_FILE.to_owned(),
        description: format!(
            "Sends a file of the workspace into this chat, as it is now, and waits until it is there. At most {} MiB, not empty.",
            Workspace::MAX_TAKEN_BYTES >> 20
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative to the workspace, without `..`."},
                "caption": {"type": "string", "description": "Words that stand with the file."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
        .into(),
        effect: EffectClass::Write,
        scope: Scope::argument("path", ArgumentSense::Path),
    }
}

#[derive(Debug)]
struct SendFile {
    sender: FileSender,
    place: Conversation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    path: String,
    #[serde(default)]
    caption: Option<String>,
}

/// Why a step of a call came to nothing.
enum StepError {
    Store(StoreError),
    Tool(ToolError),
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ToolError> for StepError {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl Tool for SendFile {
    fn spec(&self) -> ToolSpec {
        send_file_spec()
    }

    fn run<'a>(&'a self, arguments: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let asked: SendArguments = read_arguments(arguments)?;
            if asked.caption.as_ref().is_some_and(|caption| caption.chars().count() > MAX_CAPTION) {
                return Err(ToolError::TellModel(format!("the caption has more than {MAX_CAPTION} characters")));
            }
            let action = call.action.as_ref();
            let action = action.ok_or_else(|| ToolError::Fatal(String::from("a call of send_file has no row")))?;
            let key = outbox_key(&["file", action.as_str()]);
            let mut halted = pin!(call.halt.told());
            loop {
                match self.step(&key, action, &asked, call.base.as_deref()).await {
                    Ok(Some(sent)) => return Ok(sent),
                    // The database is asked again, as long as there is time.
                    Ok(None) | Err(StepError::Store(StoreError::Unavailable(_))) => (),
                    Err(StepError::Store(error)) => return Err(ToolError::Fatal(format!("the file is not sent: {error}"))),
                    Err(StepError::Tool(error)) => return Err(error),
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => (),
                    why = &mut halted => return self.leave(&key, &asked.path, why).await,
                }
            }
        })
    }

    fn preview<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let SendArguments { path, .. } = read_arguments(arguments).ok()?;
            let _room = self.sender.room.acquire().await;
            self.taken(&path).await.ok().map(|file| preview_text(&file))
        })
    }

    fn base<'a>(&'a self, arguments: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let SendArguments { path, .. } = read_arguments(arguments).ok()?;
            let _room = self.sender.room.acquire().await;
            Some(match self.taken(&path).await {
                Ok(file) => file.digest(),
                Err(error) => error.to_string(),
            })
        })
    }

    fn resumes(&self) -> bool {
        true
    }
}

impl SendFile {
    /// Looks for the post of the call, and makes it when there is none. `None` means that the file is on its way.
    async fn step(&self, key: &str, action: &ActionId, asked: &SendArguments, base: Option<&str>) -> Result<Option<ToolOutput>, StepError> {
        let state = self.sender.ledger.read().await?.post_state(key).await?;
        match state {
            None => self.queue(key, action, asked, base).await.map(|()| None),
            Some((PostState::Waiting, _)) => Ok(None),
            Some((state, content)) => Ok(Some(outcome(&asked.path, state, content)?)),
        }
    }

    /// Makes the post, with the bytes as they are now.
    async fn queue(&self, key: &str, action: &ActionId, asked: &SendArguments, base: Option<&str>) -> Result<(), StepError> {
        let _room = self.sender.room.acquire().await;
        let file = self.taken(&asked.path).await?;
        if base.is_some_and(|base| base != file.digest()) {
            let why = "it was changed after it was approved; call again to ask about it as it is now";
            return Err(ToolError::TellModel(format!("`{}` was not sent: {why}", asked.path)).into());
        }
        let mut tx = self.sender.ledger.begin_in(&self.place).await?;
        let record = tx.action(action).await?;
        let turn = match &record {
            // Somebody else may have ended the task since this call began.
            Some(record) if record.action.status == ActionStatus::Running => tx.turn_in_brief(&record.action.turn_id, 0).await?,
            _ => None,
        };
        let turn = turn.ok_or_else(|| ToolError::TellModel(format!("`{}` was not sent: the call is over", asked.path)))?;
        let view = FileView {
            name: visible(&one_line(&file.name, 255)),
            bytes: file.bytes.len() as u64,
            media_type: media_type(&file.bytes).to_owned(),
            caption: asked.caption.clone().filter(|caption| !caption.trim().is_empty()),
        };
        let post = NewOutbox {
            key: key.to_owned(),
            // A queue of its own: a file that the platform does not take holds up no words.
            queue: key.to_owned(),
            gate_id: None,
            turn_id: Some(turn.id),
            conversation: self.place.clone(),
            op: OutboxOp::Post {
                reply_to: turn.request_message,
                content: Outbound::File(view),
            },
        };
        tx.enqueue_file(&post, &file.bytes).await?;
        tx.commit().await?;
        self.sender.failpoint.reach("file_queued");
        Ok(())
    }

    /// The answer to a call that must end before the file is there. A try that is under way at a stop may come to nothing: then the file is taken
    /// back.
    async fn leave(&self, key: &str, path: &str, why: HaltReason) -> Result<ToolOutput, ToolError> {
        let looks = if why == HaltReason::ByPerson { LAST_LOOKS } else { 1 };
        for look in 1..=looks {
            let over = async {
                let mut tx = self.sender.ledger.begin_in(&self.place).await?;
                if why == HaltReason::ByPerson {
                    tx.withdraw(key, "the task was stopped").await?;
                }
                let state = tx.post_state(key).await?;
                tx.commit().await?;
                Ok::<_, StoreError>(state)
            };
            match over.await {
                Ok(None) => return Err(ToolError::TellModel(format!("`{path}` was not sent: there was no time"))),
                Ok(Some((PostState::Waiting, _))) if look < looks => tokio::time::sleep(LOOK).await,
                Ok(Some((PostState::Waiting, _))) => break,
                Ok(Some((state, content))) => return outcome(path, state, content),
                Err(_) => {
                    let unknown = format!("whether `{path}` is sent is not known: the database does not answer");
                    return Err(ToolError::Unknown(unknown));
                }
            }
        }
        Ok(ToolOutput {
            text: format!(
                "`{path}` is still on its way: the chat has not taken it yet. It is tried for ten minutes; do not send it again."
            ),
            ..ToolOutput::default()
        })
    }

    /// The file as it is now; read where nobody waits for the disk.
    async fn taken(&self, path: &str) -> Result<TakenFile, ToolError> {
        let (workspace, path) = (Arc::clone(&self.sender.workspace), path.to_owned());
        tokio::task::spawn_blocking(move || workspace.take(&path))
            .await
            .map_err(|_| ToolError::Fatal(String::from("a file could not be read")))?
    }
}

/// What became of the post of the file at `path`, which waits no more.
fn outcome(path: &str, state: PostState, content: Outbound) -> Result<ToolOutput, ToolError> {
    match (state, content) {
        (PostState::Sent, Outbound::File(file)) => Ok(ToolOutput {
            text: format!("sent `{path}` ({}) to the chat", size(file.bytes)),
            attachment: Some(Attachment {
                name: file.name,
                bytes: file.bytes,
                kind: AttachmentKind::Out,
            }),
            ..ToolOutput::default()
        }),
        (PostState::Failed(why), _) => Err(ToolError::TellModel(format!("`{path}` was not sent: {why}"))),
        (PostState::Sent | PostState::Waiting, _) => Err(ToolError::Fatal(format!("the post of `{path}` is no file that was sent"))),
    }
}
