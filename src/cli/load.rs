//! The configuration of a command, with its problems on stderr.

use std::path::PathBuf;
use std::process::ExitCode;

use countersign_gateway::config::{self, Loaded, Source};

use super::output::problem;

/// The configuration of this process: the file and the environment.
pub(super) fn source(file: Option<PathBuf>) -> Source {
    Source::new(file, config::environment())
}

/// Loads the configuration, or prints every problem and gives the exit code.
pub(super) fn load(file: Option<PathBuf>) -> Result<Loaded, ExitCode> {
    loaded(&source(file))
}

/// Loads the configuration from a source that the caller keeps.
pub(super) fn loaded(source: &Source) -> Result<Loaded, ExitCode> {
    match source.load() {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                problem(warning);
            }
            Ok(loaded)
        }
        Err(problems) => {
            for found in problems {
                problem(&found.to_string());
            }
            Err(ExitCode::FAILURE)
        }
    }
}
