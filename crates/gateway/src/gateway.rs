//! HTTP in, workers, dispatcher out, API, console.

mod api;
mod body;
mod connections;
mod console;
mod dispatch;
mod error;
mod health;
mod intake;
mod language;
mod linger;
mod metrics;
mod origin;
mod outages;
mod refusals;
mod request;
mod router;
mod sockets;
mod standings;
mod state;
mod webhooks;
mod uploads;
mod worker;

pub use connections::serve;
pub use router::Routes;
pub use state::{Channels, Gateway, GatewayParts, Roles};
pub use worker::{Workers, start_workers};
