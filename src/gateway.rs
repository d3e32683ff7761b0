//! HTTP in, workers, dispatcher out, API.
