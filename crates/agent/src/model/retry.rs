//! When a failed call to a model's server is worth another try, and how long to wait before it. Pure.

use std::time::Duration;

use super::{ModelError, advice};

/// Tries of one request, the first included.
pub(super) const TRIES: u32 = 3;

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
    let asked = match &failure {
        Failure::Status { retry_after, .. } => *retry_after,
        _ => None,
    };
    if !worth_another(&failure, attempt) {
        return RetryDecision::GiveUp(error(failure));
    }
    let pause = asked.unwrap_or_else(|| own_pause(attempt, spread));
    if pause < left {
        return RetryDecision::Again(pause);
    }
    RetryDecision::GiveUp(match asked {
        Some(asked) => ModelError::Unreachable(format!(
            "{}; it asks to wait {} s, longer than this task may take",
            spell(&failure),
            asked.as_secs()
        )),
        None => error(failure),
    })
}

/// The wait named by a `Retry-After` header (RFC 9110 §10.2.3): seconds, or a date. A date counts from the
/// answer's own `Date` header, so that the two machines' clocks need not agree; without one it says nothing.
pub(super) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if value.starts_with(|c: char| c.is_ascii_digit()) {
        return Duration::try_from_secs_f64(value.parse().ok()?).ok();
    }
    let at = |text: &str| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let wait = at(value)?.as_second() - at(date?)?.as_second();
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)))
}

fn worth_another(failure: &Failure, attempt: u32) -> bool {
    match failure {
        Failure::Nonsense(_) => attempt < 2,
        Failure::Odd(_) => attempt < ODD_TRIES,
        failure => attempt < TRIES && passes(failure),
    }
}

/// A trouble that may be over when the server is asked again. Nothing was acted on, whatever had come of the answer: a reply is
/// handed on whole or not at all, so that a stream that broke off half way may be asked for again as well.
fn passes(failure: &Failure) -> bool {
    match failure {
        Failure::Transport(_) => true,
        // An empty account answers 429 too, and no waiting fills it.
        Failure::Status { code: Some(code), .. } if code == "insufficient_quota" => false,
        Failure::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
        Failure::Objection(objection) => passes(&objection.failure),
        Failure::Timeout | Failure::Nonsense(_) | Failure::Odd(_) | Failure::TooLong | Failure::Filtered => false,
    }
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
        Failure::Transport(what) => ModelError::Unreachable(what.to_owned()),
        Failure::Nonsense(what) => ModelError::Nonsense(what),
        Failure::TooLong => ModelError::TooLong,
        Failure::Filtered => ModelError::Filtered,
        Failure::Odd(word) => ModelError::OddEnd(word),
        Failure::Objection(objection) => error(objection.failure),
        Failure::Status { .. } if passes(&failure) => ModelError::Unreachable(spell(&failure)),
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

    /// S3-13: what is tried again and what is told at once, by status.
    #[test]
    fn only_passing_troubles_are_tried_again() {
        for passing in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(
                matches!(decide(status(passing, None), 1, MINUTE, 7), RetryDecision::Again(_)),
                "{passing}"
            );
            assert_eq!(
                decide(status(passing, None), TRIES, MINUTE, 7),
                RetryDecision::GiveUp(ModelError::Unreachable(advice::refusal(passing, None, None))),
                "after the last try"
            );
        }
        let nonsense = || Failure::nonsense("a web page");
        assert!(matches!(decide(nonsense(), 1, MINUTE, 7), RetryDecision::Again(_)), "a bad moment");
        assert_eq!(
            decide(nonsense(), 2, MINUTE, 7),
            RetryDecision::GiveUp(ModelError::Nonsense("a web page".to_owned()))
        );
        let odd = || Failure::Odd("abort".to_owned());
        assert!(matches!(decide(odd(), 2, MINUTE, 7), RetryDecision::Again(_)), "twice more");
        assert_eq!(
            decide(odd(), 3, MINUTE, 7),
            RetryDecision::GiveUp(ModelError::OddEnd("abort".to_owned()))
        );
        assert_eq!(decide(Failure::TooLong, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::TooLong));
        assert_eq!(decide(Failure::Filtered, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::Filtered));
        for lasting in [301, 400, 401, 403, 404, 413, 422] {
            assert!(matches!(
                decide(status(lasting, Some(1)), 1, MINUTE, 7),
                RetryDecision::GiveUp(ModelError::Refused { status, .. }) if status == lasting
            ));
        }
        assert!(matches!(decide(Failure::Transport("reset"), 2, MINUTE, 7), RetryDecision::Again(_)));
        assert_eq!(decide(Failure::Timeout, 1, MINUTE, 7), RetryDecision::GiveUp(ModelError::Timeout));
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

    /// S3-13: the server's own wait is honoured exactly, and one that does not fit ends the call at once.
    #[test]
    fn the_servers_wait_is_kept_or_refused() {
        assert_eq!(
            decide(status(429, Some(9)), 1, MINUTE, 7),
            RetryDecision::Again(Duration::from_secs(9))
        );
        assert_eq!(decide(status(503, Some(0)), 2, MINUTE, 7), RetryDecision::Again(Duration::ZERO));
        assert_eq!(
            decide(status(429, Some(3600)), 1, MINUTE, 7),
            RetryDecision::GiveUp(ModelError::Unreachable(
                "HTTP 429 (the provider limits the rate: wait, or raise the limit there); it asks to wait 3600 s, longer than this task may take"
                    .to_owned()
            ))
        );
        assert_eq!(
            decide(status(500, None), 1, Duration::from_millis(10), 7),
            RetryDecision::GiveUp(ModelError::Unreachable("HTTP 500".to_owned()))
        );
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

    /// S3-13: `Retry-After` as seconds and as a date relative to the server's own `Date`.
    #[test]
    fn retry_after_reads_seconds_and_dates() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for (value, date, wait) in [
            ("120", None, Some(120_000)),
            (" 0 ", None, Some(0)),
            ("1.5", None, Some(1_500)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, Some(30_000)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", date, Some(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("-5", None, None),
            ("soon", date, None),
            ("", date, None),
            ("9e999", None, None),
        ] {
            assert_eq!(retry_after(value, date), wait.map(Duration::from_millis), "{value}");
        }
    }
}
