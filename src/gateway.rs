//! HTTP in, workers, dispatcher out, API, console.

mod api;
mod console;
mod dispatch;
mod error;
mod health;
mod linger;
mod metrics;
mod refusals;
mod router;
mod state;
mod webhooks;
mod worker;

pub use router::router;
pub use state::{Channels, Gateway, GatewayParts, Roles};
pub use worker::{Workers, start_workers};
