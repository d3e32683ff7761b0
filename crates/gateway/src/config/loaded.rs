//! A configuration that passed every check, and how its layers become one.

use std::path::{Path, PathBuf};

use config::Config;
use countersign_agent::domain::ToolSpec;

use super::boot::Boot;
use super::layer::Layer;
use super::live::Live;
use super::problem::{Problem, Report};
use super::values::Values;
use super::{chat, check, effective, workspace};

/// A configuration that passed every check.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What is fixed while the process runs.
    pub boot: Boot,
    /// What a later edit may change.
    pub live: Live,
    /// What works but should be known, one line each; no secrets.
    pub warnings: Vec<String>,
    /// Every key as YAML, secrets and passwords as `***`, with the place each value was set at.
    pub effective: String,
    /// The value of every key with its place, to be compared with a later one's.
    pub values: Values,
    pub has_file: bool,
}

impl Loaded {
    /// The keys in force in one chat as YAML, secrets as `***`, with the place each value was set at. `tools`: names of the tools that are
    /// switched on. The channel is told from the form of the id.
    pub fn effective_in(&self, chat: &str, tools: &[String]) -> String {
        chat::render(&self.values, &self.live, chat, tools)
    }

    /// A warning for each pattern of a profile or a rule that fits none of `tools` and can fit none of an MCP server, and for each rule that
    /// can fit no call.
    pub fn idle_patterns(&self, tools: &[ToolSpec]) -> Vec<String> {
        chat::idle_patterns(&self.values, &self.live, &self.boot.tools.mcp_servers, tools)
    }

    /// Where the value of `path` was set; `default` if nowhere.
    pub(super) fn origin(&self, path: &str) -> &str {
        self.values.origin(path).unwrap_or("default")
    }
}

pub(super) fn layered(
    file: Option<Layer>,
    env: Layer,
    path: &Path,
    secrets: &[(String, PathBuf)],
    mut report: Report,
) -> Result<Loaded, Vec<Problem>> {
    let has_file = file.is_some();
    let built = Config::builder()
        .add_source(Layer::defaults())
        .add_source(file.unwrap_or_default())
        .add_source(env)
        .build();
    let typed = built.and_then(|all| Ok((Boot::of(&all)?, Live::of(&all)?, all)));
    match typed {
        Ok((boot, live, all)) => {
            let values = Values(all.cache);
            check::check_rules(&boot, &live, &values, &mut report);
            workspace::check_workspace(&boot, &values, path, secrets, &mut report);
            if report.problems.is_empty() {
                return Ok(Loaded {
                    boot,
                    live,
                    warnings: report.warnings,
                    effective: effective::render(&values),
                    values,
                    has_file,
                });
            }
        }
        // Every value passed its key, so only a key whose kind does not fit its field comes here; the error's text could quote a value.
        Err(_) => report.problem("defaults".into(), "", "the kind of a key does not fit its field"),
    }
    Err(report.problems)
}
