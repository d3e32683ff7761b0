//! Do this machine and the platforms agree on the time? Signatures are good for five minutes.

use std::time::Duration;

use countersign_agent::domain::Clock;
use countersign_gateway::app::Http;
use futures_util::future::join_all;
use reqwest::header::DATE;

use super::verdict::CheckVerdict;

/// A difference above this one is reported, although platforms still accept it.
const NOTABLE: Duration = Duration::from_secs(60);
/// Signed requests that are further away are refused.
const WINDOW: Duration = Duration::from_secs(300);
/// For one answer: the others need not wait for a host that is down.
const ANSWER: Duration = Duration::from_secs(8);

/// Asks each of `hosts` for no more than the `Date` of its answer.
pub(super) async fn verdict(hosts: &[&str], http: &Http, clock: Clock) -> CheckVerdict {
    if hosts.is_empty() {
        return CheckVerdict::Good(String::from("not compared: no channel and no model server to ask"));
    }
    let asked = join_all(hosts.iter().map(|host| ahead(host, http, &clock))).await;
    match asked.into_iter().flatten().max_by_key(|seconds| seconds.unsigned_abs()) {
        None => CheckVerdict::Doubtful(String::from("not compared: no server told its time")),
        Some(seconds) => judge(seconds),
    }
}

/// Seconds that the host's clock is ahead of ours.
async fn ahead(host: &str, http: &Http, clock: &Clock) -> Option<i64> {
    let sent = clock.now();
    let answer = http.for_url(host).head(host).timeout(ANSWER).send().await.ok()?;
    let came = clock.now();
    let date = answer.headers().get(DATE)?.to_str().ok()?;
    let theirs = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    // A date has no fractions: it lies half a second back on average.
    let ours = sent.0.midpoint(came.0) - 500;
    Some((theirs.as_millisecond() - ours) / 1000)
}

fn judge(seconds: i64) -> CheckVerdict {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let told = format!(
        "this clock is {} s {}",
        span.as_secs(),
        if seconds > 0 { "behind" } else { "ahead" }
    );
    if span > WINDOW {
        CheckVerdict::Bad(format!("{told}: signed requests are refused over {} s", WINDOW.as_secs()))
    } else if span > NOTABLE {
        CheckVerdict::Doubtful(format!("{told}: signed requests are refused over {} s", WINDOW.as_secs()))
    } else {
        CheckVerdict::Good(String::from("agrees with the servers' within a minute"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-X1: a clock that differs by over a minute is told, one outside the window of signatures is a failure.
    #[test]
    fn skew_is_judged_by_the_signature_window() {
        for (seconds, good, bad, words) in [
            (0, true, false, "agrees"),
            (60, true, false, "agrees"),
            (61, false, false, "61 s behind"),
            (-300, false, false, "300 s ahead"),
            (301, false, true, "301 s behind"),
            (-7200, false, true, "7200 s ahead"),
        ] {
            let verdict = judge(seconds);
            let (CheckVerdict::Good(text) | CheckVerdict::Doubtful(text) | CheckVerdict::Bad(text)) = &verdict;
            assert!(text.contains(words), "{seconds}: {text}");
            assert_eq!(matches!(verdict, CheckVerdict::Good(_)), good, "{seconds}");
            assert_eq!(matches!(verdict, CheckVerdict::Bad(_)), bad, "{seconds}");
        }
    }
}
