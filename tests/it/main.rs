//! One integration-test binary: the specification as tests, one file a theme.

mod tidy;
mod config;
mod template;
