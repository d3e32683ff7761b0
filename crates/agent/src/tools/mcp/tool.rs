//! One tool of a server: sends the call, carries a halt to the server, and says so when its outcome is unknown.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::definition::OfferedTool;
use super::link::{self, CallResult};
use super::{Server, answer};
use crate::domain::{EffectClass, Scope, ToolSpec};
use crate::tools::{BoxFuture, CallHandle, Tool, ToolError, ToolOutput};

/// A tool on offer.
#[derive(Debug)]
pub(super) struct McpTool {
    pub(super) server: Arc<Server>,
    pub(super) offered: OfferedTool,
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.offered.spec.clone()
    }

    fn run<'a>(&'a self, arguments: &'a Value, call: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Value::Object(arguments) = arguments else {
                return Err(ToolError::TellModel(String::from("the arguments must be an object")));
            };
            let peer = self.server.peer().map_err(ToolError::TellModel)?;
            // A task of its own: when this future is dropped, the server is still told that nobody waits any more.
            let enough = CancellationToken::new();
            let _dropped = enough.clone().drop_guard();
            let sent = link::call(peer, self.offered.raw.clone(), arguments.clone(), enough.clone());
            let mut sent = tokio::spawn(sent);
            let called = tokio::select! {
                called = &mut sent => called,
                _ = call.halt.told() => {
                    enough.cancel();
                    sent.await
                }
            };
            let server = &self.server.config.name;
            match called {
                Ok(CallResult::Answered(result)) => answer::read(&result),
                Ok(CallResult::Refused(why)) => Err(ToolError::TellModel(format!("the MCP server {server} refuses the call: {why}"))),
                Ok(CallResult::NotSent(why)) => Err(ToolError::TellModel(format!("the MCP server {server} was not reached: {why}"))),
                Ok(CallResult::Unknown(why)) => Err(ToolError::Unknown(format!(
                    "the MCP server {server} did not answer ({why}); whether it carried the call out is not known"
                ))),
                Err(_) => Err(ToolError::Fatal(String::from("a call to an MCP server broke off"))),
            }
        })
    }
}

/// Stands for a tool that a configured server does not offer now.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) name: String,
    pub(super) why: String,
}

impl Tool for Absent {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
            effect: EffectClass::Write,
            scope: Scope::Every,
        }
    }

    fn run<'a>(&'a self, _: &'a Value, _: &'a CallHandle) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::TellModel(self.why.clone()))))
    }
}
