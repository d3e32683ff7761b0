//! Who was offered prompts today: opening the chat once more offers nothing new.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// People who are remembered.
const MOST: usize = 10_000;
/// Until they are offered prompts again.
const DAY: Duration = Duration::from_hours(24);

/// By workspace and person, until the process ends.
#[derive(Debug, Default)]
pub(super) struct Greeted(Mutex<HashMap<(String, String), Instant>>);

impl Greeted {
    /// Is it the first time today? From now on it is not.
    pub(super) fn first_today(&self, team: &str, user: &str) -> bool {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, at| now.duration_since(*at) < DAY);
        }
        if known.len() >= MOST {
            // So many in a day: rather somebody is offered them twice.
            known.clear();
        }
        let before = known.get(&(team.to_owned(), user.to_owned()));
        if before.is_some_and(|at| now.duration_since(*at) < DAY) {
            return false;
        }
        known.insert((team.to_owned(), user.to_owned()), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// reach §3: a person is offered prompts once a day, each in each workspace.
    #[tokio::test(start_paused = true)]
    async fn once_a_day() {
        let greeted = Greeted::default();
        assert_eq!(["U1", "U1", "U2"].map(|user| greeted.first_today("T1", user)), [true, false, true]);
        assert!(greeted.first_today("T2", "U1"));
        tokio::time::advance(DAY).await;
        assert!(greeted.first_today("T1", "U1"));
    }

    /// design: what people can fill has a bound.
    #[tokio::test(start_paused = true)]
    async fn it_is_bounded() {
        let greeted = Greeted::default();
        for user in 0..=MOST {
            assert!(greeted.first_today("T1", &user.to_string()));
        }
        assert!(greeted.0.lock().unwrap().len() <= MOST);
    }
}
