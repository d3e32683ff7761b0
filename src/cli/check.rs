//! `countersign check`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{load, problem, result};
use crate::config::Loaded;
use crate::template::Templates;
use crate::tools::Toolbox;

/// Every problem of the configuration and of the templates to stderr; the effective YAML to stdout.
pub(super) fn check(file: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let Loaded { boot, effective, .. } = match load(file) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let mut sound = true;
    if let Err(error) = Templates::load(boot.templates.as_deref()) {
        problem(&error.to_string());
        sound = false;
    }
    if let Err(error) = Toolbox::from_config(&boot) {
        problem(&error.to_string());
        sound = false;
    }
    result(effective.trim_end())?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
