//! An agent that plans, asks people before it acts, runs every write once, and can be stopped, stored and gone on with.
//!
//! `domain` has the nouns, `template` renders prompts. `reducer` decides (pure: no I/O, no clock). `engine` carries its decisions out;
//! `model` and `tools` reach outside. Programs begin at [`Agent::builder`]; `docs/library.md` is their guide.
#![warn(missing_docs)]

pub mod domain;
pub mod template;
pub mod reducer;
#[cfg(any(feature = "http-models", feature = "web", feature = "mcp"))]
pub mod tls;
#[cfg(any(feature = "http-models", feature = "mcp"))]
mod sse;
pub mod model;
pub mod tools;
pub mod engine;

pub use engine::{Agent, AgentBuilder, Outcome, Task, Verdict};

/// The guide's code is compiled and run with the tests.
#[cfg(all(doctest, feature = "http-models"))]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
