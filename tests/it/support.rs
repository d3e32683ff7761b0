//! What several themes share: servers that play the outside world.

pub(crate) mod fake_model;
mod model_protocol;
pub(crate) mod workspace;
