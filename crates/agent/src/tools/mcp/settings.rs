//! Which MCP servers there are, and how each is reached.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::domain::EffectClass;

/// One server of `tools.mcp_servers`.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// `name`, unique: what its tools' names begin with.
    pub name: String,
    /// How it is reached.
    pub reach: McpReach,
    /// `effects`, by the server's own names of its tools, or by what stands behind `NAME__` where models call them.
    pub effects: BTreeMap<String, EffectClass>,
    /// `scope`, by the same names: the arguments that say where a call acts. Of other tools every top-level argument does.
    pub scope: BTreeMap<String, Vec<String>>,
}

/// How an MCP server is reached.
#[derive(Clone, Debug)]
pub enum McpReach {
    /// A child process that speaks over its standard input and output.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its variables, beside `PATH` and `HOME`.
        env: BTreeMap<String, SecretString>,
    },
    /// Streamable HTTP.
    Url {
        /// The endpoint.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, SecretString>,
    },
}
