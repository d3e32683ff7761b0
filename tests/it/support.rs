//! What the themes share: signing as the platforms do, fakes, the binary as a process, an API client.

pub mod api;
pub mod badinput;
pub mod lark_push;
pub mod process;
pub mod sign;
