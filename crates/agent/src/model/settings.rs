//! Which model is asked, and where.

use std::time::Duration;

use secrecy::SecretString;

/// Model providers of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Built in, deterministic.
    Demo,
    /// Any OpenAI-compatible server.
    OpenAi,
    /// The Anthropic messages API.
    Anthropic,
}

/// `model.*`.
#[derive(Clone, Debug)]
pub struct ModelLive {
    /// `provider`.
    pub provider: Provider,
    /// `base_url`, without a trailing slash.
    pub base_url: String,
    /// `name`.
    pub name: String,
    /// `api_key`.
    pub api_key: SecretString,
    /// `timeout_seconds`.
    pub timeout: Duration,
    /// `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
}
