//! `countersign serve`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use countersign_agent::model::ChatModel;
use countersign_gateway::app::{self, Parts};
use countersign_gateway::config::{self, Reloader, Source};
use countersign_gateway::telemetry;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::load::loaded;
use super::output::result;

/// Runs until SIGINT or SIGTERM; a second signal ends the process at once. SIGHUP has the configuration read again. `greeting` is printed after the
/// ready line.
pub(super) async fn serve(source: Source, greeting: fn(SocketAddr) -> String) -> anyhow::Result<ExitCode> {
    let loaded = match loaded(&source) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let reloader = Reloader::new(source, &loaded);
    let logs = telemetry::init(loaded.boot.log_json, &loaded.live.log_level);
    // Installed before the ready line: its reader may signal us at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    open_more_files();
    let mut parts = Parts {
        failpoint: config::failpoint(),
        demo: demo_model(),
        ..Parts::default()
    };
    if let Some(lease) = config::lease() {
        parts.timings.lease = lease;
    }
    if let Some(poll) = config::poll() {
        parts.timings.poll = poll;
    }
    let [channels, model, database, tools] = config::summary(&loaded.boot, &loaded.live).map(|(_, words)| words);
    let running = Box::pin(app::start(loaded.boot, loaded.live, parts))
        .await?
        .following(reloader, logs);
    tracing::info!(channels, model, database, tools, "serving");
    result(&format!(
        "countersign ready: http://{}/console/{}",
        running.addr,
        greeting(running.addr)
    ))?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => running.reload(),
        }
    }
    tokio::select! {
        () = running.stop() => Ok(ExitCode::SUCCESS),
        _ = terminate.recv() => Ok(ExitCode::FAILURE),
        _ = interrupt.recv() => Ok(ExitCode::FAILURE),
    }
}

/// Allows this process as many open files as the system lets it have: a thousand turns that wait for the model are a thousand
/// connections, which is where the usual limit of 1,024 would have webhooks refused.
fn open_more_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// What `model.provider: demo` means. The configuration refuses it in a program without the feature.
fn demo_model() -> Option<Arc<dyn ChatModel>> {
    #[cfg(feature = "demo")]
    return Some(Arc::new(countersign_playground::Demo));
    #[cfg(not(feature = "demo"))]
    return None;
}
