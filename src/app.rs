//! The composition root: the only place that picks implementations.
