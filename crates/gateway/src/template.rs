//! The templates of the gateway: the agent's prompts, our wording and the console's pages.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use countersign_agent::template::{TemplateError, Templates};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../templates/text/"]
#[prefix = "text/"]
struct Wording;

#[derive(RustEmbed)]
#[folder = "../../templates/console/"]
#[prefix = "console/"]
struct Pages;

/// All built-in templates, each replaced by a file of the same path under `folder` if there is one. Without a folder they are read and tried
/// once a process.
pub fn load(folder: Option<&Path>) -> Result<Arc<Templates>, TemplateError> {
    static BUILT_IN: OnceLock<Arc<Templates>> = OnceLock::new();
    if let (None, Some(built_in)) = (folder, BUILT_IN.get()) {
        return Ok(Arc::clone(built_in));
    }
    let templates = Templates::load_with(files::<Wording>().chain(files::<Pages>()), folder)?;
    let templates = Arc::new(templates);
    Ok(match folder {
        Some(_) => templates,
        None => Arc::clone(BUILT_IN.get_or_init(|| templates)),
    })
}

fn files<E: RustEmbed>() -> impl Iterator<Item = (String, Cow<'static, [u8]>)> {
    E::iter().filter_map(|path| Some((path.to_string(), E::get(&path)?.data)))
}
