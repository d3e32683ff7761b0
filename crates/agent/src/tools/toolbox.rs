//! The box of action tools: those that the configuration switches on, and those of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Tool;
#[cfg(feature = "mcp")]
use super::mcp::Servers;
use crate::domain::{EffectClass, ToolSpec};

/// The action tools that are switched on, in the order in which the model sees them.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: Vec<(ToolSpec, Arc<dyn Tool>)>,
    effects: BTreeMap<String, EffectClass>,
    #[cfg(feature = "mcp")]
    servers: Servers,
}

impl Toolbox {
    /// These tools; `effects` overrides the effect class that a tool gives itself. Tools of servers have theirs from [`McpServer::effects`](super::McpServer::effects).
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>, effects: &BTreeMap<String, EffectClass>) -> Self {
        Self {
            effects: effects.clone(),
            ..Self::default()
        }
        .with(tools)
    }

    /// These and others of ours, under the same overrides.
    #[must_use]
    pub fn with(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        let effects = &self.effects;
        self.tools
            .extend(tools.into_iter().map(|tool| (tool.spec().overridden(effects), tool)));
        self
    }

    /// These and what the MCP servers offer at any moment.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn with_servers(mut self, servers: Servers) -> Self {
        self.servers = servers;
        self
    }

    /// The MCP servers.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Returns once every MCP server has connected for the first time, or has had ten seconds for it.
    pub async fn settled(&self) {
        #[cfg(feature = "mcp")]
        self.servers.settled().await;
    }

    /// What is offered, with effect classes after overrides.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let own = self.tools.iter().map(|(spec, _)| spec.clone());
        #[cfg(feature = "mcp")]
        let own = own.chain(self.servers.specs());
        own.collect()
    }

    /// Is a tool of that name offered?
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        let own = self.tools.iter().any(|(spec, _)| spec.name == name);
        #[cfg(feature = "mcp")]
        let own = own || self.servers.offers(name);
        own
    }

    /// The tool of that name. One of an MCP server that is not offered now tells the model why.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.get_for(name, None)
    }

    /// The tool for a call that was made under `definition` ([`ToolSpec::digest`]; `None` when it is not known). A server's tool whose definition
    /// is another one by now tells the model so, and nothing is sent. Definitions of our own tools come with the program.
    #[must_use]
    #[cfg_attr(
        not(feature = "mcp"),
        expect(unused_variables, reason = "only tools of servers are asked for by their definition")
    )]
    pub fn get_for(&self, name: &str, definition: Option<&str>) -> Option<Arc<dyn Tool>> {
        let own = self
            .tools
            .iter()
            .find(|(spec, _)| spec.name == name)
            .map(|(_, tool)| Arc::clone(tool));
        #[cfg(feature = "mcp")]
        let own = own.or_else(|| self.servers.get_for(name, definition));
        own
    }
}
