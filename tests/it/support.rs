//! What the themes share: signing as the platforms do, fakes, the binary as a process, a whole world.

pub mod api;
pub mod badinput;
pub mod browser;
pub mod command;
pub mod fake_model;
pub mod lark_push;
pub mod model_protocol;
pub mod people;
pub mod process;
pub mod quiet;
pub mod raw;
pub mod scripts;
pub mod sign;
pub mod workspace;
pub mod world;
