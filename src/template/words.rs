//! `word(key, …)`: our wording inside the console's pages, in the language of the page.

use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind, State};

use super::pieces::text_name;
use crate::domain::Locale;

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
        let template = state.env().get_template(&text_name(one, key)).map_err(|_| {
            Error::new(ErrorKind::TemplateNotFound, format!("there is no text {key}"))
        })?;
        if one.as_str() == locale {
            said = template.render(Value::from(values.clone()))?;
        }
    }
    Ok(said)
}
