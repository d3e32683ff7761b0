//! How one trial of `check --online` ended.

/// How a trial ended, in words that hold no secret and nothing that a server said but its codes.
#[derive(Debug)]
pub(super) enum Verdict {
    /// As it should be.
    Good(String),
    /// It works, but should be known.
    Doubtful(String),
    /// It does not work.
    Bad(String),
}

/// What went wrong on the way, by its kind only: the error's own text may hold the URL.
pub(super) fn transport(error: &reqwest::Error) -> Verdict {
    Verdict::Bad(String::from(if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection: wrong address, name service, proxy or TLS certificate"
    } else if error.is_builder() {
        "no request can be made of these settings: the key has characters that no header can carry"
    } else {
        "the connection broke"
    }))
}
