//! What an unknown key was probably meant to be.

use super::table::{KEYS, below};

/// What to say about `path`, which is no key: the nearest real one, else what its section has.
pub(super) fn find(path: &str) -> Hint {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    let nearest = |wanted: &dyn Fn(&str) -> bool| {
        let within = 1 + name.chars().count() / 4;
        let near: Vec<(usize, String)> = candidates()
            .into_iter()
            .filter(|known| wanted(known))
            .map(|known| (distance(name, known.rsplit('.').next().unwrap_or_default()), known))
            .filter(|(apart, _)| *apart <= within)
            .collect();
        let least = near.iter().map(|(apart, _)| *apart).min()?;
        Some(
            near.into_iter()
                .filter(|(apart, _)| *apart == least)
                .map(|(_, known)| known)
                .collect(),
        )
    };
    let beside = |known: &str| below(section, known).is_some_and(|rest| !rest.contains('.'));
    match nearest(&beside).or_else(|| nearest(&|_| true)) {
        Some(known) => Hint::Nearest(known),
        None => Hint::Allowed(names(section)),
    }
}

/// The key whose words, joined by one underscore, are nearest to `words`.
pub(super) fn nearest_by_words(words: &str) -> Option<&'static str> {
    KEYS.iter()
        .map(|key| (distance(words, &key.path.replace('.', "_")), key.path))
        .filter(|(apart, _)| *apart <= 1 + words.chars().count() / 8)
        .min_by_key(|(apart, _)| *apart)
        .map(|(_, path)| path)
}

/// Names of the keys and sections right below `section`, or below the nearest section above it that exists.
fn names(section: &str) -> Vec<String> {
    let found: Vec<_> = candidates()
        .into_iter()
        .filter_map(|known| below(section, &known).filter(|rest| !rest.contains('.')).map(str::to_owned))
        .collect();
    if found.is_empty() {
        names(section.rsplit_once('.').map_or("", |(above, _)| above))
    } else {
        found
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// Path of the key or section that was probably meant; several that are as near.
    Nearest(Vec<String>),
    Allowed(Vec<String>),
}

/// Paths of all keys and sections, in order.
fn candidates() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in KEYS.iter() {
        for (at, _) in key.path.match_indices('.') {
            let section = &key.path[..at];
            if !found.iter().any(|known| known == section) {
                found.push(section.to_owned());
            }
        }
        found.push(key.path.to_owned());
    }
    found
}

/// Edits (insert, remove, replace) between two names.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: a mistyped key is told the key that was meant, first in its own section, then anywhere.
    #[test]
    fn unknown_keys_get_the_nearest_one() {
        let near = |path: &str| Hint::Nearest(vec![path.to_owned()]);
        assert_eq!(find("channels.lark.plan_reveiw_enabled"), near("channels.lark.plan_review_enabled"));
        assert_eq!(
            find("channels.console.plan_review_qorum"),
            near("channels.console.plan_review_quorum")
        );
        assert_eq!(find("sever"), near("server"));
        assert_eq!(find("channels.larc"), near("channels.lark"));
        assert_eq!(find("agent.log_level"), near("telemetry.log_level"));
        assert_eq!(
            find("telemetry.zebra_crossing"),
            Hint::Allowed(vec!["log_format".into(), "log_level".into(), "otlp_endpoint".into()])
        );
        assert_eq!(find("zebra.crossing.here"), find("zebra_crossing"));
        let Hint::Allowed(top) = find("zebra_crossing") else {
            panic!("no near key")
        };
        assert_eq!(
            top,
            [
                "server",
                "channels",
                "store",
                "agent",
                "model",
                "models",
                "profiles",
                "tools",
                "rules",
                "templates",
                "telemetry"
            ]
        );
    }
}
