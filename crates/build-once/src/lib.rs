//! No code: what this package is for is told in its `Cargo.toml`.
