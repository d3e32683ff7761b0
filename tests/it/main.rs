//! One integration-test binary: the specification as tests, one file a theme.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]
#![expect(
    unreachable_pub,
    reason = "`pub` marks what the themes may use of a support file; nothing leaves this binary"
)]

mod support;

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking, its helpers too")]

mod tidy;
mod config;
mod demo_model;
mod lark_access;
mod lark_badinput;
mod lark_events;
mod lark_vectors;
mod openai;
mod phrases;
mod triage;
mod requirements;
mod template;
mod tidy;
mod tools;
