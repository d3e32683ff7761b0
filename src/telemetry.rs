//! Logs: structured, with turn and event ids, never a secret.
