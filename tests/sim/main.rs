//! Deterministic simulation: thousands of short lives of the whole core, each thrown by a seed.
//!
//! Real are the reducer, the runner, triage and decisions (`Conversations`), and the ledger on SQLite with its leases, fences and outbox. Played
//! are the model, the tools, the people, the platform that carries messages, the dispatcher's calls to it, the processes (two, which
//! die, stand still and lose their leases) and time. Nothing moves unless the play gives it something, so a seed is a life, and a life
//! that breaks a rule can be lived again: `COUNTERSIGN_SIM_SEED=K` tells it step by step. `COUNTERSIGN_SIM_SEEDS=N` lives so many,
//! `COUNTERSIGN_SIM_FROM=K` those from this seed on.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a play that cannot be set up fails its test")]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "which seeds are lived is told by the environment; a life is told aloud"
)]
#![expect(
    unreachable_pub,
    reason = "`pub` marks what the files use of each other; nothing leaves this binary"
)]

mod chat;
mod checks;
mod dice;
mod lab;
mod life;
mod people;
mod replica;
mod run;
mod script;
mod stage;
mod told;

#[path = "../it/triage/cards.rs"]
#[expect(dead_code, reason = "shared with the tests of triage; here only the settings are needed")]
mod cards;
#[path = "../it/support/model_protocol.rs"]
mod model_protocol;
#[path = "../it/triage/words.rs"]
#[expect(dead_code, reason = "shared with the tests of triage")]
mod words;
