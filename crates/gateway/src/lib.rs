//! Countersign: an AI agent for group chats that shows its plan and gets it countersigned before it acts.
//!
//! The agent itself is the package `countersign-agent`. The rooms of the gateway, in reading order: `config`, `telemetry` and
//! `template` are what an admin touches. `store` remembers. `lanes` has the agent work on what is stored. `channels` speak Lark and
//! Slack; `conversation` finds out who said what to whom. `gateway` is HTTP in, workers, dispatcher out. `app` puts the parts together.
//! The command line is the package `countersign`, on top of this one. Who may import whom is a test (`tests/it/tidy.rs`).
pub mod config;
pub mod telemetry;
pub mod template;
pub mod store;
pub mod lanes;
pub mod channels;
pub mod surroundings;
pub mod conversation;
pub mod gateway;
pub mod app;
