//! YAML as a tree that knows its lines, duplicates kept, so that every problem of a file can be told at once.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned, UserMessageFormatter};

/// A value and its line (from 1): in a mapping the line of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// From 1.
    pub line: u64,
    /// What stands there.
    pub value: Yaml,
}

/// One `key: value` of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value.
    pub node: Node,
}

/// What YAML can say. Only `true` and `false` are booleans: `yes`, `on` and friends are text.
#[derive(Clone, Debug, PartialEq)]
pub enum Yaml {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// Wide enough for every `i64` and `u64`.
    Whole(i128),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// Everything else that is one value.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// In the order of the file; a key that stands twice is here twice.
    Map(Vec<Entry>),
}

/// Text that is not YAML: why, and the line if the parser knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYaml {
    /// From 1.
    pub line: Option<u64>,
    /// For people.
    pub why: String,
}

/// Reads one YAML document; an empty one is [`Yaml::Null`].
///
/// # Errors
/// [`NotYaml`] for the first place where the text is not YAML.
pub fn parse(text: &str) -> Result<Node, NotYaml> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
    };
    match serde_saphyr::from_str_with_options::<Spanned<Yaml>>(text, options) {
        Ok(root) => Ok(root.into()),
        // Without its snippet: the lines round an error may hold a secret. In the words for people: the others advise on the parser's own API.
        Err(error) => Err(NotYaml {
            line: error.location().map(|at| at.line()).filter(|line| *line > 0),
            why: first_line(&error.without_snippet().render_with_formatter(&UserMessageFormatter)),
        }),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    // What comes behind names limits of the parser.
    match line.split_once("too large or too complex:") {
        Some((start, _)) => format!("{start}too large or too complex"),
        None => line.to_owned(),
    }
}

impl From<Spanned<Yaml>> for Node {
    fn from(spanned: Spanned<Yaml>) -> Self {
        Self {
            line: spanned.referenced.line(),
            value: spanned.value,
        }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyYaml)
    }
}

struct AnyYaml;

impl<'de> Visitor<'de> for AnyYaml {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Yaml, D::Error> {
        Yaml::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Whole(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Yaml, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Yaml>>()? {
            found.push(item.into());
        }
        Ok(Yaml::List(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Yaml, A::Error> {
        let mut found = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let node = Node {
                line: key.referenced.line(),
                value: entries.next_value()?,
            };
            found.push(Entry { key: key.value, node });
        }
        Ok(Yaml::Map(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Vec<(String, u64, Yaml)> {
        match parse(text).unwrap().value {
            Yaml::Map(entries) => entries
                .into_iter()
                .map(|entry| (entry.key, entry.node.line, entry.node.value))
                .collect(),
            other => panic!("not a map: {other:?}"),
        }
    }

    /// design: every value of a file keeps its line, also below other values and in lists.
    #[test]
    fn values_keep_their_lines() {
        let found = map("# head\na: 1\nb:\n  c: two\n  d: [x,\n    3.5]\ne:\n");
        assert_eq!((found[0].0.as_str(), found[0].1, &found[0].2), ("a", 2, &Yaml::Whole(1)));
        let Yaml::Map(inner) = &found[1].2 else { panic!("no map") };
        assert_eq!((inner[0].node.line, &inner[0].node.value), (4, &Yaml::Text("two".into())));
        let Yaml::List(items) = &inner[1].node.value else {
            panic!("no list")
        };
        assert_eq!((items[1].line, &items[1].value), (6, &Yaml::Float(3.5)));
        assert_eq!((found[2].1, &found[2].2), (7, &Yaml::Null));
        assert_eq!(map("a:\n\n  |\n  text\n")[0].1, 1, "a value below its key is told at the key");
    }

    /// design: a duplicate key is kept, so that it can be reported with both lines beside all other problems.
    #[test]
    fn duplicates_are_kept() {
        let found = map("a: 1\nb: 2\na: 3\n");
        assert_eq!(
            found.iter().map(|(key, line, _)| (key.as_str(), *line)).collect::<Vec<_>>(),
            [("a", 1), ("b", 2), ("a", 3)]
        );
    }

    /// design: `yes` is text, quotes make text, a number too big for 64 bits is still a number.
    #[test]
    fn scalars_are_what_yaml_1_2_says() {
        let found = map("a: yes\nb: true\nc: '12'\nd: 18446744073709551615\ng: -1000000000000000000000\ne: 0x10\nf: ~\n");
        let values: Vec<_> = found.into_iter().map(|(_, _, value)| value).collect();
        assert_eq!(
            values,
            [
                Yaml::Text("yes".into()),
                Yaml::Flag(true),
                Yaml::Text("12".into()),
                Yaml::Whole(u64::MAX.into()),
                Yaml::Float(-1e21),
                Yaml::Whole(16),
                Yaml::Null,
            ]
        );
    }

    /// design: bad syntax names its line and never quotes the file (it may hold a secret).
    #[test]
    fn bad_syntax_names_its_line_only() {
        for text in [
            "a: 1\nb: [hunter2\nc: 3\n",
            "a: \"hunter2\nb: 1\n",
            "a: hunter2\n b: hunter2\n",
            "a: *hunter2\n",
            "a: !!int hunter2\n",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.line.is_some(), "{text}: {error:?}");
            assert!(!error.why.contains("hunter2"), "{text}: {error:?}");
        }
        assert_eq!(parse("").unwrap().value, Yaml::Null);
        assert_eq!(parse("# nothing\n").unwrap().value, Yaml::Null);
    }
}
