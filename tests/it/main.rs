//! One integration-test binary: the specification as tests, one file a theme.

#![expect(clippy::unwrap_used, reason = "a test and its helpers stop at the first surprise")]

mod demo_model;
mod openai;
mod support;
mod tools;
