//! One integration-test binary: the specification as tests, one file a theme.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]
#![expect(
    unreachable_pub,
    reason = "`pub` marks what the themes may use of a support file; nothing leaves this binary"
)]

mod phrases;
mod triage;
