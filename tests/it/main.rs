//! One integration-test binary: the specification as tests, one file a theme.

mod demo_model;
mod openai;
mod support;
mod tools;
