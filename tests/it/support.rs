//! What the themes share: signing as the platforms do, and the bad request bodies.

pub mod badinput;
pub mod lark_push;
pub mod sign;
