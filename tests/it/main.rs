//! One integration-test binary: the specification as tests, one file a theme.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking, its helpers too")]

mod tidy;
mod config;
mod template;
