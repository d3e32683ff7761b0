//! A Lark tenant and a Slack workspace on loopback, the people in them, and a model that follows a script: for the demo and for tests.
//!
//! The platforms check every request against their documented rules and refuse what those refuse.

mod check_card;
mod check_message;
mod demo;
mod draw;
mod fake_lark;
mod fake_slack;
mod people;
mod posted;
mod seal;
mod sockets;
mod stage;

pub use check_card::check_card;
pub use check_message::check_message;
pub use demo::Demo;
pub use draw::{drawn, repainted};
pub use fake_lark::{BOT, FakeLark};
pub use fake_slack::{FakeSlack, SLACK_BOT, TEAM, Workspace};
pub use people::{Event, Parcel, TENANT_KEY, Tenant, Words};
pub use posted::{Call, Form, Note, Posted, SharedFile, Snapshot};
pub use seal::{LarkApp, Sealed, SlackApp, seal};
pub use sockets::{Link, Pieces, SocketFault, Sockets};
pub use stage::{Fault, PlayedFile, Stage};
