//! The wording as it is delivered.

use std::sync::Arc;

use countersign_agent::template::Templates;

/// Read once a process.
pub fn templates() -> Arc<Templates> {
    countersign_gateway::template::load(None).unwrap()
}
