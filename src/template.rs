//! Embedded templates (prompts, wording), overridable by a folder, all parsed and tried at start.

use std::path::Path;

use serde::Serialize;

use crate::domain::Locale;

/// Every template of the process. Loading proves that each renders with its declared variables, so rendering
/// later does not fail.
#[derive(Debug)]
pub struct Templates {}

/// What is wrong with a template: file, line and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

impl Templates {
    /// The embedded templates, each replaced by a file of the same path under `folder` if there is one.
    ///
    /// # Errors
    /// All problems of all templates, one a line.
    pub fn load(_folder: Option<&Path>) -> Result<Self, TemplateError> {
        unimplemented!()
    }

    /// Renders `prompts/{name}` (for example `base.md`, `blocks/nudge.md`).
    #[must_use]
    pub fn prompt(&self, _name: &str, _values: impl Serialize) -> String {
        unimplemented!()
    }

    /// Renders the wording `key` (dotted, for example `notice.queued`) of `text/{locale}.yaml`.
    #[must_use]
    pub fn say(&self, _locale: Locale, _key: &str, _values: impl Serialize) -> String {
        unimplemented!()
    }
}
