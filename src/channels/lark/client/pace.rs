//! Pace of our calls: the platform allows 5 messages a second to one chat, 50 calls a second and 1000 a minute to an
//! app. Waiting here a moment costs less than a refusal there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::channels::DeliveryError;

/// Longest wait inside a call; above it the dispatcher gets the delivery back with the time to wait.
const PATIENCE: Duration = Duration::from_secs(3);

/// Targets remembered before idle ones are swept out.
const MAX_TARGETS: usize = 1024;

/// A rate with some burst, as the theoretical arrival time of the next call (GCRA): in any window w at most
/// `(w + burst × every) / every + 1` calls pass.
#[derive(Clone, Copy, Debug)]
struct Rate {
    every: Duration,
    burst: u32,
}

/// 5 in any second, evenly.
const TARGET: Rate = Rate {
    every: Duration::from_millis(250),
    burst: 0,
};
/// 50 in any second, ten at once.
const SECOND: Rate = Rate {
    every: Duration::from_millis(25),
    burst: 9,
};
/// 1000 in any minute, a hundred at once.
const MINUTE: Rate = Rate {
    every: Duration::from_micros(66_700),
    burst: 99,
};

impl Rate {
    /// How long a call at `now` waits, and the arrival time to remember if it goes.
    fn next(self, arrival: Option<Instant>, now: Instant) -> (Duration, Instant) {
        let arrival = arrival.unwrap_or(now).max(now);
        let wait = arrival.saturating_duration_since(now).saturating_sub(self.every * self.burst);
        (wait, arrival + self.every)
    }
}

/// Arrival times of the app and of every chat or message lately spoken to.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Arrivals>);

#[derive(Debug, Default)]
struct Arrivals {
    second: Option<Instant>,
    minute: Option<Instant>,
    targets: HashMap<String, Instant>,
}

impl Pace {
    /// Waits for the turn of one call to `target` (a chat, or a message to update; none: only the app's own rates).
    pub(super) async fn wait(&self, target: Option<&str>) -> Result<(), DeliveryError> {
        let now = Instant::now();
        let wait = self.0.lock().unwrap_or_else(PoisonError::into_inner).reserve(target, now);
        match wait {
            Ok(wait) => {
                tokio::time::sleep_until(now + wait).await;
                Ok(())
            }
            Err(wait) => Err(DeliveryError::Retry {
                reason: String::from("more to say than the platform's rates allow"),
                after: Some(wait),
            }),
        }
    }
}

impl Arrivals {
    /// The wait, with the place in line taken; or the wait that is too long, with nothing taken.
    fn reserve(&mut self, target: Option<&str>, now: Instant) -> Result<Duration, Duration> {
        let (second_wait, second) = SECOND.next(self.second, now);
        let (minute_wait, minute) = MINUTE.next(self.minute, now);
        let own = target.map(|target| (target, TARGET.next(self.targets.get(target).copied(), now)));
        let own_wait = own.as_ref().map_or(Duration::ZERO, |(_, (wait, _))| *wait);
        let wait = second_wait.max(minute_wait).max(own_wait);
        if wait > PATIENCE {
            return Err(wait);
        }
        (self.second, self.minute) = (Some(second), Some(minute));
        if let Some((target, (own_wait, arrival))) = own {
            if self.targets.len() >= MAX_TARGETS {
                self.targets.retain(|_, arrival| *arrival > now);
            }
            // It goes when the slowest of its rates lets it go: the next one of this target counts from there.
            self.targets.insert(target.to_owned(), arrival + (wait - own_wait));
        }
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Departure times in milliseconds when `calls` ask at once.
    fn departures(calls: usize, target: impl Fn(usize) -> Option<String>) -> Vec<u128> {
        let (mut arrivals, now) = (Arrivals::default(), Instant::now());
        (0..calls)
            .map_while(|call| arrivals.reserve(target(call).as_deref(), now).ok())
            .map(|wait| wait.as_millis())
            .collect()
    }

    fn most_in_a_second(departures: &[u128]) -> usize {
        departures
            .iter()
            .map(|from| departures.iter().filter(|at| (*from..from + 1000).contains(*at)).count())
            .max()
            .unwrap_or(0)
    }

    /// C1: at most five messages a second to one chat, and a wait over three seconds goes back to the dispatcher.
    #[test]
    fn one_chat_gets_five_a_second() {
        let departures = departures(100, |_| Some(String::from("oc_1")));
        assert_eq!(departures.first(), Some(&0));
        assert_eq!(departures.last(), Some(&3000));
        assert!(most_in_a_second(&departures) <= 5);
    }

    /// C1: at most fifty calls a second to the app, over any number of chats.
    #[test]
    fn the_app_gets_fifty_a_second() {
        let departures = departures(1000, |call| Some(format!("oc_{call}")));
        assert!(departures.len() > 100, "{}", departures.len());
        assert!(most_in_a_second(&departures) <= 50);
    }

    /// C1: the table of targets does not grow without bound.
    #[test]
    fn idle_chats_are_forgotten() {
        let (mut arrivals, mut now) = (Arrivals::default(), Instant::now());
        for call in 0..5000 {
            now += Duration::from_secs(1);
            arrivals.reserve(Some(&format!("oc_{call}")), now).unwrap();
        }
        assert!(arrivals.targets.len() <= MAX_TARGETS);
    }
}
