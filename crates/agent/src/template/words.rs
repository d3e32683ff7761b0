//! What the console's pages may call: `word(key, …)`, our wording in the language of the page, and `text|ticks`.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind, HtmlEscape, State};

use super::pieces::text_name;
use crate::domain::{Locale, visible};

/// The text `key` in the language named by the variable `locale`, with the named arguments as its variables.
///
/// # Errors
/// An unknown key, in any language of ours: found when templates are tried at start.
pub(super) fn word(state: &State<'_, '_>, key: &str, values: Kwargs) -> Result<String, Error> {
    let locale = state.lookup("locale");
    let locale = locale.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut said = String::new();
    for one in [Locale::ZhCn, Locale::EnUs] {
        // Looked up in both, so that a key that only one language has is found whatever the setting.
        let template = state
            .env()
            .get_template(&text_name(one, key))
            .map_err(|_| Error::new(ErrorKind::TemplateNotFound, format!("there is no text {key}")))?;
        if one.as_str() == locale {
            said = template.render(Value::from(values.clone()))?;
        }
    }
    Ok(said)
}

/// Foreign text with what stands between backticks as code; everything in it is escaped, nothing hides in it.
pub(super) fn ticks(text: &str) -> Value {
    let text = visible(text);
    let mut html = String::new();
    let pieces: Vec<&str> = text.split('`').collect();
    for (at, piece) in pieces.iter().enumerate() {
        let escaped = HtmlEscape(piece);
        // Without its partner a backtick is one.
        let paired = at % 2 == 1 && at + 1 < pieces.len();
        html.push_str(&match (paired, at % 2) {
            (true, _) => format!("<code>{escaped}</code>"),
            (false, 1) => format!("`{escaped}"),
            (false, _) => escaped.to_string(),
        });
    }
    Value::from_safe_string(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: backticks make code, alone they stay; foreign text is escaped inside and outside.
    #[test]
    fn backticks_make_code() {
        for (text, shown) in [
            ("write `a.md` now", "write <code>a.md</code> now"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("5` wide", "5` wide"),
            ("rm `a\u{202e}b`", "rm <code>a\u{fffd}b</code>"),
            ("`a` `b", "<code>a</code> `b"),
            ("<b> `<i>` \"'&", "&lt;b&gt; <code>&lt;i&gt;</code> &quot;&#x27;&amp;"),
        ] {
            assert_eq!(ticks(text).to_string(), shown, "{text}");
        }
    }
}
