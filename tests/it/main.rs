//! One integration-test binary: the specification as tests, one file a theme.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "which servers and how many rounds a run has is told by its environment; what was skipped, counted or measured is printed"
)]
#![expect(
    unreachable_pub,
    reason = "`pub` marks what the themes may use of a support file; nothing leaves this binary"
)]

mod support;

mod anthropic;
mod api_surface;
mod command_line;
mod config;
mod console_browser;
mod console_page;
mod container;
mod delivery;
mod demo_model;
mod documents;
mod eval;
mod events_socket;
mod fake_slack;
mod faults;
mod files_out;
mod handshake;
mod http;
mod injection;
mod kills;
mod lark_access;
mod lark_badinput;
mod lark_cards;
mod lark_client;
mod lark_events;
mod lark_progress;
mod lark_vectors;
mod leases;
mod library;
mod lifecycle;
mod long_answers;
mod mcp;
mod metrics;
mod model_context;
mod model_stream;
mod observers;
mod odd_models;
mod openai;
mod pairings;
mod plan_mode;
mod phrases;
mod previews;
mod policy_recipes;
mod public_api;
mod races;
mod redis_faults;
mod redis_handshake;
mod redis_shared;
mod redis_topologies;
mod reload;
mod replicas;
mod requirements;
mod rules;
mod run_bash;
mod secrets;
mod servers;
mod slack_access;
mod slack_badinput;
mod slack_cards;
mod slack_client;
mod slack_events;
mod slack_forms;
mod slack_home;
mod slack_interactions;
mod slack_places;
mod slack_surfaces;
mod slack_sweep;
mod slack_vectors;
mod soak;
mod sockets;
mod stopping;
mod store_actions;
mod store_audit;
mod store_cards;
mod store_crashes;
mod store_damage;
mod store_gates;
mod store_inbox;
mod store_kit;
mod store_lanes;
mod store_outbox;
mod store_outgoing;
mod store_processes;
mod store_restart;
mod store_retention;
mod store_server;
mod store_simulation;
mod store_tail;
mod store_transactions;
mod store_turns;
mod surroundings;
mod sweep;
mod template;
mod tidy;
mod tools;
mod triage;
mod web_fetch;
