//! One integration-test binary: the specification as tests, one file a theme.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod lark_cards;
mod lark_client;
