//! Answers of a platform that count for a while. Meanwhile the platform is not asked again.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use countersign_agent::domain::{Clock, Millis};
use parking_lot::{Mutex, MutexGuard};

/// Keys of one memory at most.
const MOST: usize = 10_000;

/// How long a refusal counts, for want of a scope or of a feature. An admin may add it meanwhile.
pub(super) const REFUSED_FOR: Duration = Duration::from_hours(1);

/// Values by key. Each is known for a while from when it was noted, at most until the process ends.
#[derive(Debug)]
pub(super) struct Memory<K, V = ()> {
    age: Duration,
    clock: Clock,
    known: Mutex<HashMap<K, (Millis, V)>>,
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    /// A memory in which each value is known for `age`.
    pub(super) fn new(age: Duration, clock: &Clock) -> Self {
        Self {
            age,
            clock: clock.clone(),
            known: Mutex::default(),
        }
    }

    /// The value of `key`, if it was noted and is not too old.
    pub(super) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let known = self.known();
        let (at, value) = known.get(key)?;
        self.is_fresh(*at).then(|| value.clone())
    }

    /// Notes `value` under `key`. Gives `true` if nothing was known there; else what was noted first stays, and its time goes on.
    pub(super) fn note(&self, key: K, value: V) -> bool {
        let mut known = self.known();
        if known.get(&key).is_some_and(|(at, _)| self.is_fresh(*at)) {
            return false;
        }
        if known.len() >= MOST {
            known.retain(|_, (at, _)| self.is_fresh(*at));
        }
        if known.len() >= MOST {
            // The platform is rather asked once more.
            known.clear();
        }
        known.insert(key, (self.clock.now(), value));
        true
    }

    pub(super) fn forget(&self, key: &K) {
        self.known().remove(key);
    }

    /// A value that was noted in the future is forgotten: the clock was set back since.
    fn is_fresh(&self, noted: Millis) -> bool {
        let now = self.clock.now();
        noted <= now && now.since(noted) < self.age
    }

    fn known(&self) -> MutexGuard<'_, HashMap<K, (Millis, V)>> {
        self.known.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn a_value_is_known_for_its_time() {
        let clock = Clock::manual(Millis(1));
        let names = Memory::<String, &str>::new(HOUR, &clock);
        assert_eq!(names.get("U1"), None);
        assert!(names.note(String::from("U1"), "Lin"));
        clock.advance(HOUR / 2);
        assert!(!names.note(String::from("U1"), "Linda"));
        assert_eq!(names.get("U1"), Some("Lin"));
        clock.advance(HOUR / 2);
        assert_eq!(names.get("U1"), None);
        assert!(names.note(String::from("U1"), "Linda"));
        assert_eq!(names.get("U1"), Some("Linda"));
        names.forget(&String::from("U1"));
        assert_eq!(names.get("U1"), None);
    }

    /// design: what people can fill has a bound.
    #[test]
    fn it_is_bounded() {
        let memory = Memory::<usize>::new(HOUR, &Clock::manual(Millis(1)));
        for key in 0..=MOST {
            assert!(memory.note(key, ()));
        }
        assert!(memory.known().len() <= MOST);
        assert!(memory.get(&MOST).is_some());
    }
}
