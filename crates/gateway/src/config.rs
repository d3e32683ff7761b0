//! Configuration: one table of keys, layered file and environment, checked into [`Boot`] and [`Live`].

mod key;
mod table;
mod deserialize;
mod sections;
mod hint;
mod kind;
mod delivery;
mod tree;
mod trigger;
mod problem;
mod layer;
mod file;
mod env;
mod secret;
mod check;
mod boot;
mod effective;
mod values;
mod loaded;
mod source;
mod settings;
mod live;
mod profiles;
mod chat;
mod summary;
mod database_address;
mod redis_address;
mod rules;
mod servers;
mod reload;
mod watch;
mod workspace;

pub use boot::{Boot, Coordination, Stores};
pub use database_address::DatabaseAddress;
pub use delivery::EventDelivery;
pub use env::{environment, failpoint, lease, poll, terminal_locale};
pub use key::{Key, Reload, Since};
pub use live::Live;
pub use loaded::Loaded;
pub use problem::Problem;
pub use profiles::{Profile, Profiles};
pub use redis_address::{RedisAddress, RedisKind};
pub use reload::{Candidate, Edit, Reloader};
pub use rules::parse_rules;
pub use settings::{ConfigState, Settings};
pub use source::{Source, load};
pub use summary::summary;
pub use table::{AgentLive, ChannelLive, KEYS, LarkSecrets, ProcessRole, Server, SlackSecrets, Tools};
pub use trigger::GroupTrigger;
pub use values::Values;
pub use watch::Watch;

#[cfg(test)]
mod tests;
