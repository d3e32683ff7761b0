//! `countersign demo`: the real server, a Lark tenant on loopback, and the chat between them.

mod draw;
mod fake_lark;
mod show;
mod tenant;

pub use fake_lark::{BOT, Call, FakeLark, Fault, Posted, Snapshot};
pub use show::run;
pub use tenant::{Event, TENANT_KEY, Tenant, Words};
