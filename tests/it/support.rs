//! What the themes share: signing as the platforms do, fakes, the binary as a process, a whole world.

pub mod anthropic_request;
pub mod api;
pub mod badinput;
pub mod browser;
pub mod command;
pub mod fake_model;
pub mod fleet;
pub mod gallery;
pub mod heard;
pub mod internet;
pub mod lark_push;
pub mod model_protocol;
pub mod model_wire;
pub mod people;
pub mod platform;
pub mod played_mcp;
pub mod process;
pub mod quiet;
pub mod raw;
pub mod scripts;
pub mod servers;
pub mod sign;
pub mod slack_push;
pub mod stores;
pub mod workspace;
pub mod world;
