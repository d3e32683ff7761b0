//! The folder of one run of the demo: its configuration, its database and the sample workspace.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use countersign_agent::domain::Ids;
use countersign_agent::tools::unpack_sample;

/// A folder that goes away with the demo.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("countersign-demo-{}", &Ids::random().token()[..12]));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Unpacks the sample workspace and writes a configuration for it, which is loaded and checked like everybody's.
    pub(super) fn configure(&self, channels: &str, mode: &str) -> anyhow::Result<PathBuf> {
        let workspace = self.0.join("workspace");
        unpack_sample(&workspace).context("cannot unpack the sample workspace")?;
        let yaml = format!(
            "server:\n  bind: 127.0.0.1:0\n{channels}store:\n  database_url: sqlite://{}\nmodel:\n  provider: demo\n\
             agent:\n  mode: {mode}\ntools:\n  workspace: {}\ntelemetry:\n  log_level: error\n",
            self.0.join("countersign.db").display(),
            workspace.display(),
        );
        let file = self.0.join("config.yaml");
        fs::write(&file, yaml)?;
        Ok(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
