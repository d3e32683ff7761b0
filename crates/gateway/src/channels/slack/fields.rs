//! The fields of a form body, strictly: each name once, everything UTF-8.
//!
//! Lenient decoders replace bytes that are no text and keep odd percent signs; then what was signed and what is read could
//! be two things.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads an `application/x-www-form-urlencoded` body.
    pub(super) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        let mut fields = Vec::new();
        for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let cut = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let value = pair.get(cut + 1..).unwrap_or_default();
            fields.push((decode(&pair[..cut])?, decode(value)?));
        }
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|two| two[0] == two[1]) {
            return Err("duplicate field");
        }
        Ok(Self(fields))
    }

    /// The strings of a JSON object, which is what Socket Mode makes of a form.
    pub(super) fn of_object(text: &str) -> Result<Self, &'static str> {
        let members: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| "not an object")?;
        let string = |(name, value)| match value {
            Value::String(text) => Some((name, text)),
            _ => None,
        };
        Ok(Self(members.into_iter().filter_map(string).collect()))
    }

    /// The value of `name`, out of the form.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// `ssl_check=1`, and nothing that could mean anything else.
    pub(super) fn is_probe(&self) -> bool {
        self.0.iter().any(|(name, value)| name == "ssl_check" && value == "1")
            && self.0.iter().all(|(name, _)| matches!(name.as_str(), "ssl_check" | "token"))
    }
}

fn decode(bytes: &[u8]) -> Result<String, &'static str> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => plain.push(b' '),
            b'%' => {
                let digits = after.get(..2).ok_or("odd percent sign")?;
                let mut byte = [0];
                hex::decode_to_slice(digits, &mut byte).map_err(|_| "odd percent sign")?;
                plain.push(byte[0]);
                rest = &after[2..];
            }
            other => plain.push(*other),
        }
    }
    String::from_utf8(plain).map_err(|_| "not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M-1: what a form says is decoded once, and a field that is there twice is two opinions.
    #[test]
    fn strict_forms() {
        let mut fields = Fields::parse("text=a+b%2Bc%20%E8%AE%A1&empty=&bare&x%3Dy=1".as_bytes()).unwrap();
        assert_eq!(fields.take("text").as_deref(), Some("a b+c 计"));
        assert_eq!(fields.take("text"), None);
        assert_eq!(fields.take("empty").as_deref(), Some(""));
        assert_eq!(fields.take("bare").as_deref(), Some(""));
        assert_eq!(fields.take("x=y").as_deref(), Some("1"));
        for odd in ["a=1&a=1", "a=1&%61=2", "a=%", "a=%4", "a=%zz", "a=%ff", "a=%C3", "%ff=1"] {
            assert!(Fields::parse(odd.as_bytes()).is_err(), "{odd}");
        }
        assert!(Fields::parse(b"a=\xff").is_err());
    }

    /// M-1: only a probe that can mean nothing else is a probe.
    #[test]
    fn probes() {
        for (body, probe) in [
            ("ssl_check=1", true),
            ("ssl_check=1&token=x", true),
            ("token=x&ssl_check=1", true),
            ("ssl_check=0", false),
            ("ssl_check=", false),
            ("token=x", false),
            ("", false),
            ("ssl_check=1&payload=%7B%7D", false),
            ("ssl_check=1&command=%2Fplan", false),
            ("ssl_check=1&x=", false),
        ] {
            assert_eq!(Fields::parse(body.as_bytes()).unwrap().is_probe(), probe, "{body}");
        }
    }
}
