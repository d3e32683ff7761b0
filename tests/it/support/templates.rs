//! The wording as it is delivered.

use std::sync::{Arc, LazyLock};

use countersign_agent::template::Templates;

/// Loaded once: all tests read, none writes.
pub fn templates() -> Arc<Templates> {
    static LOADED: LazyLock<Arc<Templates>> = LazyLock::new(|| Arc::new(countersign_gateway::template::load(None).unwrap()));
    Arc::clone(&LOADED)
}
