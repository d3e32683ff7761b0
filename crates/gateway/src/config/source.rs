//! Where a configuration comes from, so that it can be read again.

use std::path::{Path, PathBuf};

use super::loaded::{Loaded, layered};
use super::problem::{Problem, Report};
use super::{env, file};

/// Looked for in the working directory when no file is named.
const DEFAULT_FILE: &str = "config.yaml";

/// The file and the environment of this process. The environment is the one of the start: it cannot change from outside.
#[derive(Clone)]
pub struct Source {
    pub(super) file: PathBuf,
    /// A missing file is an error.
    pub(super) needed: bool,
    env: Vec<(String, String)>,
}

impl Source {
    /// The file `named`, or `config.yaml` in the working directory; and `env` (see [`super::environment`]).
    pub fn new(named: Option<PathBuf>, env: impl Iterator<Item = (String, String)>) -> Self {
        Self {
            needed: named.is_some(),
            file: named.unwrap_or_else(|| PathBuf::from(DEFAULT_FILE)),
            env: env.collect(),
        }
    }

    /// The file, whether it is there or not.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Loads the configuration: defaults, then the file (a missing default one is an empty one), then the environment.
    ///
    /// # Errors
    /// Every [`Problem`] of every layer, in the order file, environment, rules between keys.
    pub fn load(&self) -> Result<Loaded, Vec<Problem>> {
        let mut report = Report::default();
        let file = file::read_layer(&self.file, self.needed, &mut report);
        let env = env::read_layer(self.env.iter().cloned(), &mut report);
        let secrets = env::secret_files(&self.env);
        layered(file, env, &self.file, &secrets, report)
    }
}

/// Loads the configuration: defaults, then the file (`named`, or `config.yaml` in the working directory if it
/// exists), then `env` (see [`super::environment`]).
///
/// # Errors
/// Every [`Problem`] of every layer, in the order file, environment, rules between keys.
pub fn load(named: Option<&Path>, env: impl Iterator<Item = (String, String)>) -> Result<Loaded, Vec<Problem>> {
    Source::new(named.map(Path::to_owned), env).load()
}

/// Without the environment: there are secrets in it.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("file", &self.file()).finish_non_exhaustive()
    }
}
