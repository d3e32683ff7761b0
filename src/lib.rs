//! Countersign: an AI agent for group chats that shows its plan and gets it countersigned before it acts.
//!
//! The rooms, in reading order. `domain` has the nouns. `config`, `telemetry` and `template` are what an
//! admin touches. `store` remembers, `model` and `tools` reach outside, `agent` decides (pure). `runner`
//! carries the agent's decisions out. `channels` spell all this for Lark; `conversation` finds out who said
//! what to whom. `gateway` is HTTP in, workers, dispatcher out. `app` puts the parts together, `cli` is the
//! command line. Who may import whom is a test (`tests/it/tidy.rs`).
//!
//! Programs that bring their own chat begin at [`runner::Agent`]; `docs/library.md` is their guide.
pub mod domain;
pub mod config;
pub mod telemetry;
pub mod template;
pub mod store;
pub mod model;
pub mod tools;
pub mod agent;
pub mod runner;
pub mod channels;
pub mod conversation;
pub mod gateway;
pub mod app;
pub mod cli;

/// The guide's code is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct Guide;
