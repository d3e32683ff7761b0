//! Rates of our calls to a platform: waiting here a moment costs less than a refusal there.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::{BatchSizes, DeliveryError};

/// Targets remembered before idle ones are swept out.
const MAX_TARGETS: usize = 1024;

/// A rate with some burst, as the theoretical arrival time of the next call (GCRA): in any window w at most
/// `(w + burst × every) / every + 1` calls pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Time between two calls.
    pub(super) every: Duration,
    /// Calls that may come at once, beyond the first.
    pub(super) burst: u32,
}

impl Rate {
    /// How many calls at this rate go within [`BatchSizes::MAX_WAIT`].
    pub(super) const fn batch_size(self) -> usize {
        let fit = BatchSizes::MAX_WAIT.as_micros() / self.every.as_micros();
        if fit == 0 { 1 } else { fit as usize }
    }

    /// How long a call at `now` waits, and the arrival time to remember if it goes.
    fn next(self, arrival: Option<Instant>, now: Instant) -> (Duration, Instant) {
        let arrival = arrival.unwrap_or(now).max(now);
        let wait = arrival.saturating_duration_since(now).saturating_sub(self.every * self.burst);
        (wait, arrival + self.every)
    }
}

/// The rates that one call is subject to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates<'a> {
    /// What many calls share, by name.
    pub(super) wide: &'a [(&'static str, Rate)],
    /// What this chat or message has of its own.
    pub(super) target: Option<(&'a str, Rate)>,
}

/// Arrival times of the shared rates and of every target lately spoken to.
#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<Arrivals>);

#[derive(Debug, Default)]
struct Arrivals {
    wide: HashMap<&'static str, Instant>,
    targets: HashMap<String, Instant>,
}

impl Limiter {
    /// Waits for the turn of one call, for the time `at_most`. A longer wait is an error, and no place is taken.
    pub(super) async fn wait(&self, rates: Rates<'_>, at_most: Duration) -> Result<(), DeliveryError> {
        let now = Instant::now();
        let wait = self.arrivals().reserve(rates, now, at_most);
        match wait {
            Ok(wait) => {
                tokio::time::sleep_until(now + wait).await;
                Ok(())
            }
            Err(wait) => Err(DeliveryError::Retry {
                reason: String::from("more to say than the platform's rates allow"),
                after: Some(wait),
                uncertain: false,
            }),
        }
    }

    /// Lets nothing more through for `span`: the platform asked for it. The target's own rate if there is one, else
    /// the shared ones.
    pub(super) fn pause(&self, rates: Rates<'_>, span: Duration) {
        let now = Instant::now();
        let mut arrivals = self.arrivals();
        let until = |rate: Rate| now + span + rate.every * rate.burst;
        if let Some((target, rate)) = rates.target {
            let arrival = arrivals.targets.entry(target.to_owned()).or_insert(now);
            *arrival = until(rate).max(*arrival);
            return;
        }
        for (name, rate) in rates.wide {
            let arrival = arrivals.wide.entry(name).or_insert(now);
            *arrival = until(*rate).max(*arrival);
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.0.lock()
    }
}

impl Arrivals {
    /// The wait, with the place in line taken; or the wait that is too long, with nothing taken.
    fn reserve(&mut self, rates: Rates<'_>, now: Instant, at_most: Duration) -> Result<Duration, Duration> {
        let wide: Vec<(&'static str, Duration, Instant)> = rates
            .wide
            .iter()
            .map(|(name, rate)| {
                let (wait, arrival) = rate.next(self.wide.get(name).copied(), now);
                (*name, wait, arrival)
            })
            .collect();
        let own = rates
            .target
            .map(|(target, rate)| (target, rate.next(self.targets.get(target).copied(), now)));
        let own_wait = own.map_or(Duration::ZERO, |(_, (wait, _))| wait);
        let wait = wide.iter().map(|(_, wait, _)| *wait).max().unwrap_or_default().max(own_wait);
        if wait > at_most {
            return Err(wait);
        }
        self.wide.extend(wide.into_iter().map(|(name, _, arrival)| (name, arrival)));
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
pub(super) mod tests;
