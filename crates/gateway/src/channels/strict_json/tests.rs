//! The strict pre-pass against serde_json, and the texts that it must refuse.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn refused(text: &str) -> Option<StrictJsonError> {
    check(text.as_bytes()).err()
}

/// design: duplicate keys are refused at every level, also when an escape hides them.
#[test]
fn duplicate_keys() {
    for text in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\u0061":1,"b":0,"a":2}"#,
        r#"{"x":{"a":1,"b":2,"a":1}}"#,
        r#"{"x":[[{"":1,"":1}]]}"#,
        r#"{"x":{"y":1},"z":1,"x":2}"#,
        r#"{"😀":1,"\ud83d\ude00":2}"#,
    ] {
        assert_eq!(refused(text), Some(StrictJsonError::DuplicateKey), "{text}");
    }
    for text in [
        r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#,
        r#"{"a":1,"A":2,"a ":3,"":4,"á":5}"#,
        r#"{"a":[{"a":1},{"a":1}]}"#,
        "{}",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

/// design: a key that is there twice is refused in a long object, too, wherever the two stand.
#[test]
fn duplicate_keys_among_many() {
    for count in [FEW, FEW + 1, 2 * FEW] {
        let members: Vec<String> = (0..count).map(|at| format!("\"{}\":0", count - at)).collect();
        let members = members.join(",");
        assert_eq!(refused(&format!("{{{members}}}")), None, "{members}");
        for again in 1..=count {
            let text = format!("{{{members},\"{again}\":1}}");
            assert_eq!(refused(&text), Some(StrictJsonError::DuplicateKey), "{text}");
        }
    }
}

/// design: nesting to 32, the root included, and not one level more; 100 000 brackets do not reach the stack's end.
#[test]
fn depth() {
    let arrays = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    let objects = |n: usize| format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n));
    assert_eq!(refused(&arrays(31)), None);
    assert_eq!(refused(&arrays(32)), Some(StrictJsonError::TooDeep));
    assert_eq!(refused(&objects(32)), None);
    assert_eq!(refused(&objects(33)), Some(StrictJsonError::TooDeep));
    assert_eq!(refused(&"[".repeat(100_000)), Some(StrictJsonError::TooDeep));
    assert_eq!(refused(&"{\"a\":".repeat(100_000)), Some(StrictJsonError::TooDeep));
}

/// design: one object, UTF-8, nothing before or after it.
#[test]
fn one_object_and_nothing_else() {
    for (text, error) in [
        ("", StrictJsonError::NotJson),
        (" ", StrictJsonError::NotJson),
        ("hello=1&x=2", StrictJsonError::NotJson),
        ("\u{feff}{}", StrictJsonError::NotJson),
        ("{} {}", StrictJsonError::NotJson),
        ("{}x", StrictJsonError::NotJson),
        ("{\"a\":1,}", StrictJsonError::NotJson),
        ("{\"a\":NaN}", StrictJsonError::NotJson),
        ("{\"a\":1e400}", StrictJsonError::NotJson),
        ("{\"a\":\"\\ud800\"}", StrictJsonError::NotJson),
        ("{\"a\":\"\u{1}\"}", StrictJsonError::NotJson),
        ("[]", StrictJsonError::NotAnObject),
        ("[{\"a\":1}]", StrictJsonError::NotAnObject),
        ("\"{}\"", StrictJsonError::NotAnObject),
        ("null", StrictJsonError::NotAnObject),
        ("1", StrictJsonError::NotAnObject),
    ] {
        assert_eq!(refused(text), Some(error), "{text:?}");
    }
    assert_eq!(check(b"{\"a\":\"\xff\"}"), Err(StrictJsonError::NotUtf8));
    assert_eq!(check(b"{\"a\":\"\xed\xa0\x80\"}"), Err(StrictJsonError::NotUtf8));
    assert_eq!(check(b" \r\n\t{ } "), Ok(" \r\n\t{ } "));
}

/// Notes are bounded: a body of tiny members must not take many times its size. Members in arrays are not noted.
#[test]
fn members_that_are_noted_have_a_bound() {
    let members = |count: usize| (0..count).map(|at| format!("\"{at}\":0")).collect::<Vec<_>>().join(",");
    let inside = |count| format!("{{\"a\":{{{}}}}}", members(count));
    assert!(read(&inside(MOST_NOTED - 1)).is_ok());
    assert_eq!(read(&inside(MOST_NOTED)).err(), Some(StrictJsonError::TooManyMembers));
    assert!(read(&format!("{{\"a\":[{{{}}}]}}", members(2 * MOST_NOTED))).is_ok());
    assert!(check(inside(2 * MOST_NOTED).as_bytes()).is_ok());
}

/// The text of a JSON value whose objects may repeat keys, and whether one does.
fn json() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        Just("null"),
        Just("true"),
        Just("-0"),
        Just("1e9"),
        Just("18446744073709551616"),
        Just("\"\""),
        Just("\"\\u0061\""),
    ]
    .prop_map(|text| (text.to_owned(), false));
    let key = prop_oneof![
        Just(("a", "a")),
        Just(("\\u0061", "a")),
        Just(("b", "b")),
        Just(("\\n", "\n")),
        Just(("", ""))
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
            let texts: Vec<_> = items.iter().map(|(text, _)| text.as_str()).collect();
            (format!("[{}]", texts.join(" ,")), items.iter().any(|(_, twice)| *twice))
        });
        let object = prop::collection::vec((key.clone(), inner), 0..4).prop_map(|members| {
            let texts: Vec<_> = members
                .iter()
                .map(|((name, _), (value, _))| format!("\"{name}\": {value}"))
                .collect();
            let names: std::collections::BTreeSet<_> = members.iter().map(|((_, name), _)| name).collect();
            let twice = names.len() < members.len() || members.iter().any(|(_, (_, twice))| *twice);
            (format!("{{{}}}", texts.join(",")), twice)
        });
        prop_oneof![list, object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// design: a text passes exactly when serde_json reads an object from it and no object repeats a key.
    #[test]
    fn agrees_with_the_parser((text, twice) in json()) {
        let object = matches!(serde_json::from_str::<Value>(&text), Ok(Value::Object(_)));
        prop_assert_eq!(check(text.as_bytes()).is_ok(), object && !twice, "{}", text);
    }

    /// design: whatever passes parses; damaged and arbitrary bytes never panic.
    #[test]
    fn what_passes_parses((text, _) in json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), junk in any::<Vec<u8>>()) {
        let mut damaged = text.into_bytes();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        for bytes in [damaged, junk] {
            if let Ok(text) = check(&bytes) {
                prop_assert!(serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()));
            }
        }
    }
}
