//! Embedded templates (prompts, wording), overridable by a folder, all parsed and tried at start.

mod pieces;
mod trial;

use std::path::Path;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::domain::Locale;

/// Every template of the process. Loading has parsed and tried each of them, so that rendering fails only for a
/// value that its caller forgot.
#[derive(Debug)]
pub struct Templates {
    env: Environment<'static>,
}

/// What is wrong with the templates, one problem a line: file, line or key, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

impl Templates {
    /// The embedded templates, each replaced by a file of the same path under `folder` if there is one. A prompt
    /// is replaced as a whole, a text file key by key.
    ///
    /// # Errors
    /// All problems of all templates, one a line: bad syntax, a file or key that nothing reads, a variable that
    /// the embedded original does not use.
    pub fn load(folder: Option<&Path>) -> Result<Self, TemplateError> {
        let mut problems = Vec::new();
        let embedded = pieces::embedded(&mut problems);
        let overrides = folder
            .map(|folder| pieces::folder(folder, &embedded, &mut problems))
            .unwrap_or_default();
        Self::build(embedded, overrides, problems)
    }

    fn build(embedded: pieces::Pieces, overrides: pieces::Pieces, mut problems: Vec<String>) -> Result<Self, TemplateError> {
        let mut env = environment();
        for (name, piece) in &embedded {
            trial::add(&mut env, name, piece, &mut problems);
        }
        for (name, piece) in &overrides {
            trial::replace(&mut env, name, piece, &mut problems);
        }
        // Tried last: a prompt may include another one, of which an override may exist.
        for (name, piece) in embedded.iter().filter(|(name, _)| !overrides.contains_key(*name)).chain(&overrides) {
            trial::render(&env, name, piece, &mut problems);
        }
        if problems.is_empty() {
            Ok(Self { env })
        } else {
            Err(TemplateError(problems.join("\n")))
        }
    }

    /// Renders `prompts/{name}` (for example `base.md`, `blocks/nudge.md`). If that fails, which is a bug of the
    /// caller, it is logged and the name comes back.
    #[must_use]
    pub fn prompt(&self, name: &str, values: impl Serialize) -> String {
        self.render(&format!("prompts/{name}"), name, values)
    }

    /// Renders the wording `key` (dotted, for example `notice.queued`) of `text/{locale}.yaml`. If that fails,
    /// which is a bug of the caller, it is logged and the key comes back.
    #[must_use]
    pub fn say(&self, locale: Locale, key: &str, values: impl Serialize) -> String {
        self.render(&pieces::text_name(locale, key), key, values)
    }

    fn render(&self, name: &str, fallback: &str, values: impl Serialize) -> String {
        let values = Value::from(Serde(&values));
        self.env
            .get_template(name)
            .and_then(|template| template.render(values))
            .unwrap_or_else(|error| {
                // Kind and place only: the detail could quote a value.
                tracing::error!(template = name, line = error.line(), error = %error.kind(), "template does not render");
                fallback.to_owned()
            })
    }
}

/// Strict: a variable that is not there is an error. No auto-escaping: who puts foreign text in knows the format
/// it goes into, a file name's ending does not.
fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env
}

#[cfg(test)]
mod tests;
