//! What the rates let through, for the tests of each platform's own, and the generic rules.

use super::*;

/// Departure times in milliseconds when `calls` ask at once.
pub(in crate::channels) fn departures<'a>(calls: usize, rates: impl Fn(usize) -> Rates<'a>) -> Vec<u128> {
    let (mut arrivals, now) = (Arrivals::default(), Instant::now());
    (0..calls)
        .map_while(|call| arrivals.reserve(rates(call), now, BatchSizes::MAX_WAIT).ok())
        .map(|wait| wait.as_millis())
        .collect()
}

/// The most of them in any `span` of milliseconds.
pub(in crate::channels) fn most_within(span: u128, departures: &[u128]) -> usize {
    departures
        .iter()
        .map(|from| departures.iter().filter(|at| (*from..from + span).contains(*at)).count())
        .max()
        .unwrap_or(0)
}

fn one_a_second(target: &str) -> Rates<'_> {
    let rate = Rate {
        every: Duration::from_secs(1),
        burst: 2,
    };
    Rates {
        wide: &[],
        target: Some((target, rate)),
    }
}

/// F-C1: a pause that the platform asked for holds the whole time, burst or no burst, and only what it is about.
#[test]
fn a_pause_holds() {
    let pace = Limiter::default();
    pace.pause(one_a_second("C1"), Duration::from_secs(30));
    let now = Instant::now();
    let mut arrivals = pace.arrivals();
    let wait = arrivals.reserve(one_a_second("C1"), now, BatchSizes::MAX_WAIT).unwrap_err();
    assert!(wait > Duration::from_secs(29) && wait <= Duration::from_secs(30), "{wait:?}");
    assert!(arrivals.reserve(one_a_second("C2"), now, BatchSizes::MAX_WAIT).is_ok());
    let after = now + Duration::from_secs(30);
    assert_eq!(
        arrivals.reserve(one_a_second("C1"), after, BatchSizes::MAX_WAIT),
        Ok(Duration::ZERO)
    );
}

/// F-C1: who cannot wait is told at once, and takes nobody's place.
#[test]
fn without_time_nothing_waits() {
    let (mut arrivals, now) = (Arrivals::default(), Instant::now());
    for _ in 0..3 {
        arrivals.reserve(one_a_second("C1"), now, Duration::ZERO).unwrap();
    }
    assert_eq!(
        arrivals.reserve(one_a_second("C1"), now, Duration::ZERO),
        Err(Duration::from_secs(1))
    );
    assert_eq!(
        arrivals.reserve(one_a_second("C1"), now, BatchSizes::MAX_WAIT),
        Ok(Duration::from_secs(1))
    );
}

/// F-C1: the table of targets does not grow without bound.
#[test]
fn idle_chats_are_forgotten() {
    let (mut arrivals, mut now) = (Arrivals::default(), Instant::now());
    for call in 0..5000 {
        now += Duration::from_secs(1);
        arrivals
            .reserve(one_a_second(&format!("C{call}")), now, BatchSizes::MAX_WAIT)
            .unwrap();
    }
    assert!(arrivals.targets.len() <= MAX_TARGETS);
}
