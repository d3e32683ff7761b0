//! An agent that plans, asks people before it acts, runs every write once, and can be stopped, stored and gone on with.
//!
//! `domain` has the nouns. `template` renders prompts. `reducer` decides (pure: no I/O, no clock). `engine` carries its decisions out;
//! `model` and `tools` reach outside. Programs begin at [`engine::Agent`].
pub mod domain;
pub mod template;
pub mod reducer;
pub mod model;
pub mod tools;
pub mod engine;
