//! Lark's rates: 5 messages a second to one chat, 50 calls a second and 1000 a minute to an app.

use std::time::Duration;

use crate::channels::BatchSizes;
use crate::channels::rates::{Rate, Rates};

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
const APP: &[(&str, Rate)] = &[("second", SECOND), ("minute", MINUTE)];

/// What that comes to for the dispatcher.
pub(super) const BATCHES: BatchSizes = BatchSizes {
    posts: TARGET.batch_size(),
    repaints: MINUTE.batch_size(),
    marks: MINUTE.batch_size(),
};

/// The rates of one call to `target` (a chat, or a message to update; `None` means only the app's own).
pub(super) fn rates(target: Option<&str>) -> Rates<'_> {
    Rates {
        wide: APP,
        target: target.map(|target| (target, TARGET)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::rates::tests::{departures, most_within};

    /// F-C1: at most five messages a second to one chat, and a wait over three seconds goes back to the dispatcher.
    #[test]
    fn one_chat_gets_five_a_second() {
        let departures = departures(100, |_| rates(Some("oc_1")));
        assert_eq!(departures.first(), Some(&0));
        assert_eq!(departures.last(), Some(&3000));
        assert!(most_within(1000, &departures) <= 5);
    }

    /// F-C1: at most fifty calls a second to the app, over any number of chats.
    #[test]
    fn the_app_gets_fifty_a_second() {
        let chats: Vec<String> = (0..1000).map(|call| format!("oc_{call}")).collect();
        let departures = departures(1000, |call| rates(Some(&chats[call])));
        assert!(departures.len() > 100, "{}", departures.len());
        assert!(most_within(1000, &departures) <= 50);
    }
}
