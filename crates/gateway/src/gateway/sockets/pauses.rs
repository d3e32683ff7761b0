//! How long the keeper of a connection waits before its next try. Pauses grow, and are of random length: many processes lose their
//! connections at the same moment.

use std::time::Duration;

/// The longest pause after failures.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest pause while the platform allows no more connections, in multiples of the first one.
const MOST_TIMES: u32 = 10;

#[derive(Debug)]
pub(super) struct Pauses {
    failures: u32,
    /// Refusals because of the platform's limit.
    crowded: u32,
    first_crowded: Duration,
}

impl Pauses {
    /// `crowded` is the longest first pause while the platform allows no more connections.
    pub(super) fn new(crowded: Duration) -> Self {
        Self {
            failures: 0,
            crowded: 0,
            first_crowded: crowded,
        }
    }

    /// A connection was good for long, or was replaced as planned.
    pub(super) fn begin_anew(&mut self) {
        (self.failures, self.crowded) = (0, 0);
    }

    /// After a failure. The first try follows at once. `random` is from 0 to 1.
    pub(super) fn after_failure(&mut self, random: f64) -> Duration {
        let before = self.failures;
        self.failures = before.saturating_add(1);
        match before {
            0 => Duration::ZERO,
            more => LONGEST.min(Duration::from_secs(1 << (more - 1).min(6))).mul_f64(random),
        }
    }

    /// While the platform allows no more connections. No try follows at once: a connection of somebody else must end first.
    pub(super) fn while_crowded(&mut self, random: f64) -> Duration {
        let times = MOST_TIMES.min(1 << self.crowded.min(4));
        self.crowded = self.crowded.saturating_add(1);
        (self.first_crowded * times).mul_f64(0.5 + random / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// How often a keeper tries within `span`, the first try included.
    fn tries(span: Duration, mut pause: impl FnMut() -> Duration) -> usize {
        let (mut at, mut tries) = (Duration::ZERO, 1);
        loop {
            at += pause();
            if at > span {
                return tries;
            }
            tries += 1;
        }
    }

    /// F-E5: a platform that allows no more connections is asked at most five times in the first ten minutes, and 291 times in a day. A
    /// connection that becomes free is taken within ten minutes.
    #[test]
    fn a_full_app_is_not_hammered() {
        for random in [0.0, 0.5, 1.0] {
            let mut pauses = Pauses::new(MINUTE);
            assert!(tries(MINUTE * 10, || pauses.while_crowded(random)) <= 5, "{random}");
            let mut pauses = Pauses::new(MINUTE);
            assert!(tries(MINUTE * 60 * 24, || pauses.while_crowded(random)) <= 291, "{random}");
            assert!(pauses.while_crowded(random) <= MINUTE * 10, "{random}");
        }
    }

    /// F-E5: these pauses grow to their bound, and begin anew after a good connection. Failures do not shorten them.
    #[test]
    fn crowded_pauses_grow() {
        let mut pauses = Pauses::new(MINUTE);
        let longest: Vec<u64> = (0..6).map(|_| pauses.while_crowded(1.0).as_secs() / 60).collect();
        assert_eq!(longest, [1, 2, 4, 8, 10, 10]);
        assert_eq!(pauses.while_crowded(0.0), MINUTE * 5);
        pauses.after_failure(1.0);
        assert_eq!(pauses.while_crowded(1.0), MINUTE * 10);
        pauses.begin_anew();
        assert_eq!(pauses.while_crowded(0.0), MINUTE / 2);
    }

    /// F-E2: the first try after a failure follows at once, further ones after growing pauses.
    #[test]
    fn failures_are_tried_again_soon() {
        let mut pauses = Pauses::new(MINUTE);
        let longest: Vec<u64> = (0..9).map(|_| pauses.after_failure(1.0).as_secs()).collect();
        assert_eq!(longest, [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        pauses.begin_anew();
        assert_eq!(pauses.after_failure(1.0), Duration::ZERO);
    }
}
