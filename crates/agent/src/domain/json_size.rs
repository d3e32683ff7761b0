//! How much a JSON text holds, before it takes memory.

/// Values of one text of foreign JSON, or of one answer of a model that comes in pieces. What holds more is not read: a value takes up to
/// a hundred times its two bytes on the wire.
pub(crate) const MAX_VALUES: usize = 100_000;

/// How many values a text holds at most: a comma or a bracket that opens begins one.
pub(crate) fn most_values(json: &[u8]) -> usize {
    let (mut values, mut inside, mut escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' if !inside => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::most_values;

    /// N2: values are counted before they are read; those inside of strings are none.
    #[test]
    fn values_are_counted() {
        for (text, values) in [("", 1), ("7", 1), ("[1,2]", 3), (r#"{"a":[{}]}"#, 4), (r#""[{,\",[""#, 1)] {
            assert_eq!(most_values(text.as_bytes()), values, "{text}");
        }
    }
}
