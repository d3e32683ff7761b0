//! One integration-test binary: the specification as tests, one file a theme.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod phrases;
