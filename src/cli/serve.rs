//! `countersign serve`.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::result;
use crate::app::{self, Parts};
use crate::config::{self, Loaded};
use crate::telemetry;

/// Runs until SIGINT or SIGTERM; a second signal ends the process at once.
pub(super) async fn serve(loaded: Loaded) -> anyhow::Result<ExitCode> {
    let Loaded { boot, live, .. } = loaded;
    telemetry::init(boot.log_json, &live.log_level);
    // Installed before the ready line: whoever reads it may signal us right away.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let running = Box::pin(app::start(
        boot,
        live,
        Parts {
            failpoint: config::failpoint(),
            ..Parts::default()
        },
    ))
    .await?;
    result(&format!("countersign ready: http://{}/console/", running.addr))?;
    tokio::select! {
        _ = terminate.recv() => (),
        _ = interrupt.recv() => (),
    }
    tokio::select! {
        () = running.stop() => Ok(ExitCode::SUCCESS),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
        _ = interrupt.recv() => Ok(ExitCode::FAILURE),
    }
}
