//! The whole handshake on one machine, with a Lark tenant that we play ourselves.

mod draw;
mod fake_lark;

pub use draw::{draw_card, draw_line};
pub use fake_lark::{FakeLark, Fault, LarkCall, LarkMessage, LarkRoute, LarkState};
