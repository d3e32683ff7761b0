//! Events that come in several frames.

use std::collections::BTreeMap;
use std::time::Duration;

use countersign_agent::domain::Millis;

/// Most frames of an event.
const MOST: usize = 64;
/// Longest event, joined, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;
/// Most bytes of all unfinished events together.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Most unfinished events at a time.
const OPEN: usize = 64;
/// How long an unfinished event waits for its next frame. It is not acknowledged, so the platform sends it again.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The unfinished events of one connection.
#[derive(Debug, Default)]
pub(super) struct Fragments(BTreeMap<String, MessageParts>);

#[derive(Debug)]
struct MessageParts {
    slots: Vec<Option<Vec<u8>>>,
    last: Millis,
}

impl MessageParts {
    fn bytes(&self) -> usize {
        self.slots.iter().flatten().map(Vec::len).sum()
    }
}

impl Fragments {
    /// Adds part `at` of the `of` parts of the event `id`; a part that comes again replaces the one that was there. Gives the event when it
    /// is whole.
    ///
    /// # Errors
    /// A reason for the log, when the parts make no event or are too many or too long.
    pub(super) fn add(&mut self, id: &str, at: usize, of: usize, part: Vec<u8>, now: Millis) -> Result<Option<Vec<u8>>, &'static str> {
        self.0.retain(|_, parts| now.since(parts.last) <= TIME_LIMIT);
        if of <= 1 {
            return Ok(Some(part));
        }
        if of > MOST || at >= of || id.is_empty() {
            self.0.remove(id);
            return Err("odd numbers of its parts");
        }
        if !self.0.contains_key(id) && self.0.len() >= OPEN {
            return Err("too many unfinished events");
        }
        let held: usize = self.0.values().map(MessageParts::bytes).sum();
        let parts = self.0.entry(id.to_owned()).or_insert_with(|| MessageParts {
            slots: vec![None; of],
            last: now,
        });
        if parts.slots.len() != of {
            self.0.remove(id);
            return Err("odd numbers of its parts");
        }
        if held + part.len() > MAX_BYTES || parts.bytes() + part.len() > LONGEST {
            self.0.remove(id);
            return Err("too long");
        }
        parts.slots[at] = Some(part);
        parts.last = now;
        if parts.slots.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole = self.0.remove(id).map(|parts| parts.slots.into_iter().flatten().flatten().collect());
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(fragments: &mut Fragments, at: usize, of: usize, part: &str, now: i64) -> Result<Option<String>, &'static str> {
        let whole = fragments.add("m", at, of, part.as_bytes().to_vec(), Millis(now))?;
        Ok(whole.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    /// reach §2.4: parts are joined by their numbers, in whatever order they come.
    #[test]
    fn parts_are_joined_by_their_numbers() {
        let mut fragments = Fragments::default();
        assert_eq!(add(&mut fragments, 0, 1, "alone", 0), Ok(Some(String::from("alone"))));
        assert_eq!(add(&mut fragments, 2, 3, "c", 0), Ok(None));
        assert_eq!(add(&mut fragments, 0, 3, "x", 0), Ok(None));
        assert_eq!(add(&mut fragments, 0, 3, "a", 9_000), Ok(None));
        assert_eq!(add(&mut fragments, 1, 3, "b", 18_000), Ok(Some(String::from("abc"))));
        assert!(fragments.0.is_empty());
    }

    /// reach §2.4: what misses a part is forgotten after ten seconds.
    #[test]
    fn a_missing_part_is_not_waited_for_longer() {
        let mut fragments = Fragments::default();
        assert_eq!(add(&mut fragments, 0, 2, "a", 0), Ok(None));
        assert_eq!(add(&mut fragments, 1, 2, "b", 10_001), Ok(None));
        assert_eq!(add(&mut fragments, 0, 2, "a", 10_002), Ok(Some(String::from("ab"))));
    }

    /// Whatever a peer sends, little is kept of it.
    #[test]
    fn parts_are_bounded() {
        let mut fragments = Fragments::default();
        for (at, of) in [(0, 65), (2, 2), (usize::MAX, 2)] {
            assert_eq!(add(&mut fragments, at, of, "a", 0), Err("odd numbers of its parts"));
        }
        assert_eq!(fragments.add("", 0, 2, Vec::new(), Millis(0)), Err("odd numbers of its parts"));
        assert_eq!(add(&mut fragments, 0, 3, "a", 0), Ok(None));
        assert_eq!(add(&mut fragments, 0, 2, "a", 0), Err("odd numbers of its parts"));
        let long = "x".repeat(LONGEST - 1);
        assert_eq!(add(&mut fragments, 0, 2, &long, 0), Ok(None));
        assert_eq!(add(&mut fragments, 1, 2, "xx", 0), Err("too long"));
        assert!(fragments.0.is_empty());
        for n in 0..OPEN {
            assert_eq!(fragments.add(&n.to_string(), 0, 2, Vec::new(), Millis(0)), Ok(None));
        }
        assert_eq!(add(&mut fragments, 0, 2, "a", 0), Err("too many unfinished events"));
        let mut fragments = Fragments::default();
        for n in 0..MAX_BYTES / LONGEST {
            assert_eq!(fragments.add(&n.to_string(), 0, 2, vec![0; LONGEST], Millis(0)), Ok(None));
        }
        assert_eq!(add(&mut fragments, 0, 2, "a", 0), Err("too long"));
    }
}
