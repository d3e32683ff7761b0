//! `countersign demo`: the real server, a Lark tenant or a Slack workspace on loopback, and the chat between them.

mod draw;
mod fake_lark;
mod fake_slack;
mod people;
mod posted;
mod show;
mod stage;

pub use draw::{drawn, repainted};
pub use fake_lark::{BOT, FakeLark};
pub use fake_slack::{FakeSlack, SLACK_BOT, TEAM, Workspace};
pub use people::{Event, Parcel, TENANT_KEY, Tenant, Words};
pub use posted::{Call, Form, Note, Posted, Snapshot};
pub use show::{Play, open_console, run};
pub use stage::{Fault, Stage};
