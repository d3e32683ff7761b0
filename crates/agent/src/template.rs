//! Templates: the prompts, and what a program adds to them (wording, pages); overridable by a folder, all parsed and tried at start.

mod pieces;
mod trial;
mod words;
pub mod yaml;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, escape_formatter};
use serde::Serialize;

use crate::domain::{Locale, PromptLanguage, visible};

pub use pieces::Asset;

/// Every template of the process. Loading has parsed and tried each of them, so that rendering fails only for a
/// value that its caller forgot.
#[derive(Debug)]
pub struct Templates {
    env: Environment<'static>,
    assets: BTreeMap<String, Asset>,
}

/// What is wrong with the templates, one problem a line: file, line or key, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

impl Templates {
    /// The prompts, each replaced by a file of the same path under `folder` if there is one. A YAML file replaces the keys that it has, any
    /// other file the whole.
    ///
    /// # Errors
    /// All problems of all templates, one a line: bad syntax, a file or key that nothing reads, a variable that the built-in original does
    /// not use.
    pub fn load(folder: Option<&Path>) -> Result<Self, TemplateError> {
        Self::load_with(std::iter::empty(), folder)
    }

    /// [`Templates::load`] for a program with templates of its own: `more` has its files by their path (`text/en-US.yaml`, `console/page.html`).
    ///
    /// # Errors
    /// The errors of [`Templates::load`].
    pub fn load_with(more: impl IntoIterator<Item = (String, Cow<'static, [u8]>)>, folder: Option<&Path>) -> Result<Self, TemplateError> {
        let mut problems = Vec::new();
        let embedded = pieces::embedded(more, &mut problems);
        let overrides = folder
            .map(|folder| pieces::folder(folder, &embedded, &mut problems))
            .unwrap_or_default();
        Self::build(embedded, overrides, problems)
    }

    fn build(
        mut embedded: pieces::TemplateTexts,
        mut overrides: pieces::TemplateTexts,
        mut problems: Vec<String>,
    ) -> Result<Self, TemplateError> {
        let assets = pieces::take_assets(&mut embedded, &mut overrides);
        let mut bare = environment();
        for (name, piece) in &embedded {
            trial::add(&mut bare, name, piece, &mut problems);
            bare.clear_templates();
        }
        for (name, piece) in &overrides {
            trial::replace(&mut bare, name, embedded.get(name), piece, &mut problems);
            bare.clear_templates();
        }
        embedded.extend(overrides);
        let texts: BTreeMap<String, String> = embedded.iter().map(|(name, piece)| (name.clone(), piece.text.clone())).collect();
        let mut env = environment();
        // Compiled when it is first used: most are not, and a compiled text takes 11 KiB.
        env.set_loader(move |name| Ok(texts.get(name).cloned()));
        // Tried last: a prompt may include another one, of which an override may exist.
        let mut lenient = trial::lenient(&env);
        for (name, piece) in &embedded {
            trial::render(&lenient, name, piece, &mut problems);
            lenient.clear_templates();
        }
        if problems.is_empty() {
            Ok(Self { env, assets })
        } else {
            Err(TemplateError(problems.join("\n")))
        }
    }

    /// Renders the prompt `name` in `language`: a file (`base.md`, `blocks/nudge.md`) or one text of a file
    /// (`answers.yaml#lost`). English prompts are those of `prompts/`, Chinese ones of `prompts/zh/`. If that fails, which is
    /// a bug of the caller, it is logged and the name comes back.
    #[must_use]
    pub fn prompt(&self, language: PromptLanguage, name: &str, values: impl Serialize) -> String {
        self.render(&pieces::prompt_name(language, name), name, values)
    }

    /// Renders the wording `key` (dotted, for example `notice.queued`) of `text/{locale}.yaml`. If that fails,
    /// which is a bug of the caller, it is logged and the key comes back.
    #[must_use]
    pub fn say(&self, locale: Locale, key: &str, values: impl Serialize) -> String {
        self.render(&pieces::text_name(locale, key), key, values)
    }

    /// Renders the console's page or part `console/{name}` (for example `page.html`). What stands in `values` is escaped,
    /// unless the template calls it safe; `word(key)` gives the wording of the member `locale` of `values`. If it does not
    /// render, which is a bug of the caller, it is logged and an empty page comes back.
    #[must_use]
    pub fn page(&self, name: &str, values: impl Serialize) -> String {
        self.render(&format!("console/{name}"), "", values)
    }

    /// A file that is served as it is: `console/{name}`.
    #[must_use]
    pub fn asset(&self, name: &str) -> Option<&Asset> {
        self.assets.get(&format!("console/{name}"))
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

/// Strict: a variable that is not there is an error. Pages escape what is put in. The rest does not: who puts foreign
/// text into a prompt or a chat message knows the format it goes into.
fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|name| {
        if name.starts_with("console/") {
            AutoEscape::Html
        } else {
            AutoEscape::None
        }
    });
    // On a page people decide: nothing in it may hide or stand in another order than it runs.
    env.set_formatter(|out, state, value| match (state.auto_escape(), value.as_str()) {
        (AutoEscape::Html, Some(text)) if !value.is_safe() => escape_formatter(out, state, &Value::from(visible(text))),
        _ => escape_formatter(out, state, value),
    });
    env.add_function("word", words::word);
    env.add_filter("ticks", words::ticks);
    env
}

#[cfg(test)]
mod tests;
