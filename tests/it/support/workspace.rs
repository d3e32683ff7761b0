//! File tools on a folder of the test's own.

use countersign_agent::tools::Reach;
use std::path::Path;

use countersign_agent::tools::Toolbox;
use countersign_gateway::config::{self, Boot};

/// A configuration of which only the workspace matters.
pub(crate) fn boot(workspace: Option<&Path>) -> Boot {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let mut boot = config::load(Some(empty.path()), std::iter::empty()).unwrap().boot;
    boot.tools.workspace = workspace.map(Path::to_path_buf);
    boot
}

/// The file tools of `folder`.
pub(crate) fn toolbox(folder: &Path) -> Toolbox {
    countersign_gateway::app::toolbox(&boot(Some(folder)), &Reach::default()).unwrap()
}
