//! The demo model.
