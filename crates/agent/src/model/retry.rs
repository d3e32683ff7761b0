//! What a failed call to a model's server comes to: another try at once, or which error. Pure.
//!
//! A server that is away is asked again later, by the engine: that wait may last an hour and outlive this process.

use std::time::Duration;

use super::{ModelError, advice};

/// Tries of one request that gets answers which are none, the first included.
const TRIES: u32 = 2;

/// Tries of one request whose answers end oddly, the first included.
const ODD_TRIES: u32 = 3;

/// Pause before the second try; doubles for the third.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// How one try went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No complete answer in the time of this try. Not tried again: the server may have done (and billed)
    /// nearly all of the work, and the next try would not be faster.
    Timeout,
    /// No connection, or it broke off: what, in words of ours.
    Transport(&'static str),
    /// An HTTP status that is no success.
    Status {
        /// The status.
        status: u16,
        /// The server's own code for it, already made harmless.
        code: Option<String>,
        /// The server's words for people. As they came, until `Target::without_secrets` has made them harmless.
        said: Option<String>,
        /// How long the server asks us to wait.
        retry_after: Option<Duration>,
    },
    /// A success with something that is no answer. Models and proxies have bad moments: asked once more.
    Nonsense(String),
    /// The prompt is longer than the model reads. The caller can send a shorter one.
    TooLong,
    /// The provider's filter took the answer away.
    Filtered,
    /// The answer ended with this word, which is no known good end, or with an `error`. Nothing that came with it is taken.
    Odd(String),
    /// The server does not take the request as it is. It may take one without what its words name.
    Objection(Box<Objection>),
}

/// What a server says against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// HTTP status.
    pub(super) status: u16,
    /// All its words, in lower case. They are not told to anybody.
    pub(super) words: String,
    /// What it is when nothing can be left out.
    pub(super) failure: Failure,
}

impl Failure {
    pub(super) fn nonsense(what: &str) -> Self {
        Self::Nonsense(what.to_owned())
    }
}

/// What to do about a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Ask again after this pause.
    Again(Duration),
    /// Tell the caller.
    GiveUp(ModelError),
}

/// Decides about `failure` of try number `attempt` (1-based) with `left` of the request's time. `spread`
/// is any number that differs between requests: it keeps many turns from coming back at the same moment.
pub(super) fn decide(failure: Failure, attempt: u32, left: Duration, spread: u64) -> RetryDecision {
    let pause = own_pause(attempt, spread);
    if attempt < tries(&failure) && pause < left {
        return RetryDecision::Again(pause);
    }
    RetryDecision::GiveUp(error(failure))
}

/// Tries of a request whose answers go wrong so, the first included.
pub(super) fn tries(failure: &Failure) -> u32 {
    match failure {
        // Models and proxies have bad moments.
        Failure::Nonsense(_) => TRIES,
        Failure::Odd(_) => ODD_TRIES,
        Failure::Timeout
        | Failure::Transport(_)
        | Failure::Status { .. }
        | Failure::TooLong
        | Failure::Filtered
        | Failure::Objection(_) => 1,
    }
}

/// Is the server away for a while? Nothing was acted on, whatever had come of the answer: a reply is handed on whole or not at all, so that
/// a stream that broke off half way may be asked for again as well.
fn passes(status: u16, code: Option<&str>) -> bool {
    // An empty account answers 429 too, and no waiting fills it.
    code != Some("insufficient_quota") && matches!(status, 408 | 425 | 429 | 500..=599)
}

fn own_pause(attempt: u32, spread: u64) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    // Between one half and the whole.
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis / 2 + spread % (millis / 2 + 1))
}

fn error(failure: Failure) -> ModelError {
    match failure {
        Failure::Timeout => ModelError::Timeout,
        Failure::Transport(what) => ModelError::Away {
            why: what.to_owned(),
            wait: None,
        },
        Failure::Nonsense(what) => ModelError::Nonsense(what),
        Failure::TooLong => ModelError::TooLong,
        Failure::Filtered => ModelError::Filtered,
        Failure::Odd(word) => ModelError::OddEnd(word),
        Failure::Objection(objection) => error(objection.failure),
        Failure::Status {
            status,
            ref code,
            retry_after,
            ..
        } if passes(status, code.as_deref()) => ModelError::Away {
            why: spell(&failure),
            wait: retry_after,
        },
        Failure::Status { status, .. } => ModelError::Refused {
            status,
            reason: spell(&failure),
        },
    }
}

/// A failure in words.
pub(super) fn spell(failure: &Failure) -> String {
    match failure {
        Failure::Status { status, code, said, .. } => advice::refusal(*status, code.as_deref(), said.as_deref()),
        Failure::Transport(what) => (*what).to_owned(),
        Failure::Nonsense(what) => what.clone(),
        Failure::Timeout => "no answer in time".to_owned(),
        Failure::Odd(word) => format!("the answer ended with `{word}`"),
        Failure::Objection(objection) => spell(&objection.failure),
        Failure::TooLong | Failure::Filtered => "refused".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn status(status: u16, retry_after: Option<u64>) -> Failure {
        Failure::Status {
            status,
            code: None,
            said: None,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    /// S3-13, bugs F4: which failures are of a server that is away, with the wait that it names; what else is told at once, by status.
    #[test]
    fn a_server_that_is_away_is_told_apart() {
        for away in [408, 425, 429, 500, 502, 503, 504, 529] {
            for (asked, wait) in [(None, None), (Some(3600), Some(Duration::from_secs(3600)))] {
                let why = advice::refusal(away, None, None);
                let expected = RetryDecision::GiveUp(ModelError::Away { why, wait });
                assert_eq!(decide(status(away, asked), 1, MINUTE, 7), expected);
            }
        }
        let broken = decide(Failure::Transport("reset"), 1, MINUTE, 7);
        assert!(
            matches!(broken, RetryDecision::GiveUp(ModelError::Away { wait: None, .. })),
            "{broken:?}"
        );
        let nonsense = || Failure::nonsense("a web page");
        assert!(matches!(decide(nonsense(), 1, MINUTE, 7), RetryDecision::Again(_)), "a bad moment");
        let told = RetryDecision::GiveUp(ModelError::Nonsense("a web page".to_owned()));
        assert_eq!(decide(nonsense(), TRIES, MINUTE, 7), told);
        assert_eq!(decide(nonsense(), 1, Duration::from_millis(10), 7), told, "no time for another");
        let odd = || Failure::Odd("abort".to_owned());
        assert!(matches!(decide(odd(), 2, MINUTE, 7), RetryDecision::Again(_)), "twice more");
        let told = RetryDecision::GiveUp(ModelError::OddEnd("abort".to_owned()));
        assert_eq!(decide(odd(), ODD_TRIES, MINUTE, 7), told);
        assert_eq!(decide(Failure::TooLong, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::TooLong));
        assert_eq!(decide(Failure::Filtered, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::Filtered));
        assert_eq!(decide(Failure::Timeout, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::Timeout));
        for lasting in [301, 400, 401, 403, 404, 409, 413, 422] {
            assert!(matches!(
                decide(status(lasting, Some(1)), 1, MINUTE, 7),
                RetryDecision::GiveUp(ModelError::Refused { status, .. }) if status == lasting
            ));
        }
        let empty_account = Failure::Status {
            status: 429,
            code: Some("insufficient_quota".to_owned()),
            said: None,
            retry_after: None,
        };
        assert!(matches!(
            decide(empty_account, 1, MINUTE, 7),
            RetryDecision::GiveUp(ModelError::Refused { status: 429, .. })
        ));
    }

    /// S3-13: our own pause grows and is spread, between one half and the whole of its step.
    #[test]
    fn our_own_pause_grows_and_is_spread() {
        for spread in [0, 1, 249, 250, 251, 12_345, u64::MAX] {
            let (first, second) = (own_pause(1, spread).as_millis(), own_pause(2, spread).as_millis());
            assert!((250..=500).contains(&first), "{first}");
            assert!((500..=1000).contains(&second), "{second}");
        }
        assert_ne!(own_pause(1, 3), own_pause(1, 200));
    }
}
