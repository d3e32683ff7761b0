//! Is Redis there?

use super::online::Verdict;
use crate::config::Coordination;
use crate::store::{StoreError, look_at_redis};

/// How Redis stands; `None` without a configured one.
pub(super) async fn verdict(coordination: &Coordination) -> Option<Verdict> {
    let Coordination::Redis { url, .. } = coordination else {
        return None;
    };
    Some(match look_at_redis(url).await {
        Ok(()) => Verdict::Good(String::from("the server answers")),
        // What the server says of its own; a password is in none of it.
        Err(StoreError::Unavailable(why)) => Verdict::Bad(why),
        Err(error) => Verdict::Bad(error.to_string()),
    })
}
