//! The answers of a played model as tests write them down.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An assistant message (see [`say`] and [`call`]) with its finish reason, if not the usual one.
    Message(Value, Option<&'static str>),
    /// A status with headers and a JSON body.
    Status(u16, Vec<(&'static str, String)>, Value),
    /// A success with exactly this body.
    Verbatim(&'static str, Vec<u8>),
    /// The first half of an answer, then the connection breaks.
    CutOff,
    /// The first half of this message as a stream, then nothing more: the end, or silence until the client goes away.
    Half(Value, Then),
    /// These events as a stream.
    Events(Vec<String>),
    /// These events as a stream that the server forgets to end.
    Open(Vec<String>),
    /// Waits for the gate, then goes on with the step.
    Gated(Gate, Box<Step>),
}

/// What comes after half a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    End,
    Silence,
}

/// An assistant message that is text.
pub(crate) fn say(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// An assistant message that calls tools; the server gives the ids.
pub(crate) fn call<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(name, arguments)| {
            let arguments = match arguments {
                // Text is sent as it is, so that malformed arguments can be scripted.
                Value::String(text) => text,
                other => other.to_string(),
            };
            json!({"type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// The answers of one conversation, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script(pub(super) VecDeque<Step>);

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.0.push_back(step);
        self
    }

    pub(crate) fn message(self, message: Value) -> Self {
        self.then(Step::Message(message, None))
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.message(say(text))
    }

    pub(crate) fn call(self, name: &str, arguments: Value) -> Self {
        self.message(call([(name, arguments)]))
    }

    pub(crate) fn status(self, status: u16, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.then(Step::Status(
            status,
            headers,
            json!({"error": {"code": "scripted", "message": "canary-body"}}),
        ))
    }
}

/// Holds an answer back until the test lets it go.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<(Semaphore, Semaphore)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new((Semaphore::new(0), Semaphore::new(0))))
    }

    /// Waits until a request stands at the gate.
    pub(crate) async fn reached(&self) {
        self.0.0.acquire().await.unwrap().forget();
    }

    /// Lets one request through.
    pub(crate) fn open(&self) {
        self.0.1.add_permits(1);
    }

    pub(super) async fn pass(&self) {
        self.0.0.add_permits(1);
        self.0.1.acquire().await.unwrap().forget();
    }
}
