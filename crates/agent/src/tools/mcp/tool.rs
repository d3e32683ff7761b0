//! One tool of a server: sends the call, carries a halt to the server, and says so when its outcome is unknown.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::answer;
use super::definition::OfferedTool;
use super::link::{CallResult, RpcCall};
use super::server::ServerLink;
use crate::domain::{EffectClass, Scope, ToolSpec};
use crate::tools::{BoxFuture, CallHandle, Tool, ToolError, ToolOutput};

/// A tool on offer.
#[derive(Debug)]
pub(super) struct McpTool {
    pub(super) server: Arc<ServerLink>,
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
            let name = &self.server.config.name;
            match self.sent(arguments, call).await? {
                CallResult::Answered(result) => answer::read(&result),
                CallResult::Unreadable(why) => Ok(ToolOutput {
                    text: format!("the MCP server {name} carried the call out; its result cannot be read: {why}"),
                    ..ToolOutput::default()
                }),
                CallResult::Refused(why) => Err(ToolError::TellModel(format!("the MCP server {name} refuses the call: {why}"))),
                CallResult::NotTaken(why) => Err(ToolError::TellModel(format!(
                    "the MCP server {name} did not take the call, so that it was not carried out: {why}"
                ))),
                CallResult::NotSent(why) => Err(ToolError::TellModel(format!(
                    "the MCP server {name} was not reached: {why}; nothing was carried out"
                ))),
                CallResult::Unknown(why) => Err(ToolError::Unknown(format!(
                    "the MCP server {name} did not answer ({why}); whether it carried the call out is not known"
                ))),
            }
        })
    }
}

impl McpTool {
    /// Sends a call. One that the server never got is sent once more, over the next connection, if the tool is still what it was.
    async fn sent(&self, arguments: &Map<String, Value>, call: &CallHandle) -> Result<CallResult, ToolError> {
        let first = self.sent_once(arguments, call).await?;
        let CallResult::NotSent(why) = first else { return Ok(first) };
        let back = tokio::select! {
            peer = self.server.peer() => peer.is_ok(),
            _ = call.halt.told() => false,
        };
        match back && self.server.still_offers(&self.offered) {
            true => self.sent_once(arguments, call).await,
            false => Ok(CallResult::NotSent(why)),
        }
    }

    async fn sent_once(&self, arguments: &Map<String, Value>, call: &CallHandle) -> Result<CallResult, ToolError> {
        let peer = tokio::select! {
            peer = self.server.peer() => peer.map_err(ToolError::TellModel)?,
            _ = call.halt.told() => return Ok(CallResult::NotSent(String::from("it was told to stop before"))),
        };
        // A task of its own: when this future is dropped, the server is still told that nobody waits any more.
        let enough = CancellationToken::new();
        let _dropped = enough.clone().drop_guard();
        let (offered, arguments, told) = (self.offered.clone(), arguments.clone(), enough.clone());
        let mut sent = tokio::spawn(async move {
            let call = RpcCall {
                tool: &offered.raw,
                arguments: &arguments,
                marked: &offered.marked,
            };
            peer.call(call, &told).await
        });
        let called = tokio::select! {
            called = &mut sent => called,
            _ = call.halt.told() => {
                enough.cancel();
                sent.await
            }
        };
        called.map_err(|_| ToolError::Fatal(String::from("a call to an MCP server broke off")))
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
