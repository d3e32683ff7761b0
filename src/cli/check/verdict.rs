//! How one trial of `check --online` ended.

use countersign_gateway::channels::deepest_cause;

/// How a trial ended, in words that hold no secret and nothing that a server said but its codes.
#[derive(Debug)]
pub(super) enum CheckVerdict {
    Good(String),
    /// It works, but should be known.
    Doubtful(String),
    Bad(String),
}

/// What went wrong on the way, by its kind and its deepest cause: the error's own text may hold the URL.
pub(super) fn transport(error: &reqwest::Error) -> CheckVerdict {
    CheckVerdict::Bad(if error.is_timeout() {
        String::from("no answer in time")
    } else if error.is_connect() {
        format!("no connection: {}", deepest_cause(error))
    } else if error.is_builder() {
        String::from("no request can be made of these settings: the key has characters that no header can carry")
    } else {
        String::from("the connection broke")
    })
}
