//! One integration-test binary: the specification as tests, one file a theme.

mod store_actions;
mod store_audit;
mod store_gates;
mod store_inbox;
mod store_kit;
mod store_lanes;
mod store_outbox;
mod store_restart;
mod store_retention;
mod store_simulation;
mod store_turns;
