//! Follows the configuration while the gateway runs: notices an edit, reads it in peace, puts it in force or refuses it.

use std::sync::Arc;
use std::time::Duration;

use metrics::counter;
use tokio::sync::Notify;
use tracing::{Level, enabled, error, info, warn};

use crate::config::{ConfigState, Edit, Found, Reloader, Settings, Watch};
use crate::telemetry::Logs;

/// What looks wrong may be half of a file that is being written: it is believed when it is still there after this.
const DOUBT: Duration = Duration::from_millis(300);

/// Goes on until it is dropped. `ring`: look now, whether or not the file changed.
pub(super) async fn follow(mut reloader: Reloader, settings: Settings, logs: Logs, ring: Arc<Notify>) {
    let mut watch = Watch::new(reloader.file());
    loop {
        tokio::select! {
            () = watch.changed() => (),
            () = ring.notified() => info!("the configuration is read again, because a signal asks for it"),
        }
        let found = in_peace(&reloader, &mut watch).await;
        note(reloader.decide(found), &settings, &logs);
    }
}

/// Looks when the file rests, and twice at what it does not like.
async fn in_peace(reloader: &Reloader, watch: &mut Watch) -> Found {
    loop {
        watch.settle().await;
        let found = reloader.look();
        if found.is_valid() && !watch.is_empty() {
            return found;
        }
        tokio::time::sleep(DOUBT).await;
        if watch.is_settled() {
            return reloader.look();
        }
    }
}

/// The one place where an edit is put in force, logged and remembered.
fn note(edit: Edit, settings: &Settings, logs: &Logs) {
    match edit {
        Edit::None => (),
        Edit::Taken {
            live,
            hot,
            restart,
            restart_changed,
            warnings,
        } => {
            let tell = || match hot.as_slice() {
                [] => info!("the configuration file is good; the settings in force are as they were"),
                keys => info!("new settings are in force for every turn that starts now: {}", keys.join(", ")),
            };
            // One of both levels lets the line through, if any does.
            let told = enabled!(Level::INFO);
            if told {
                tell();
            }
            logs.set_level(&live.log_level);
            if !told {
                tell();
            }
            for warning in warnings {
                warn!("{warning}");
            }
            match restart.as_slice() {
                _ if !restart_changed => (),
                [] => info!("what waited for a restart was taken back"),
                keys => warn!("needs a restart: {}", keys.join(", ")),
            }
            counter!("countersign_config_reloads_total", "outcome" => "applied").increment(1);
            let problems = Vec::new();
            settings.replace(*live, ConfigState { problems, restart });
        }
        Edit::Refused { problems, restart } => {
            error!("the edit of the configuration is refused, nothing changes: {}", problems.join("; "));
            counter!("countersign_config_reloads_total", "outcome" => "refused").increment(1);
            settings.note(ConfigState { problems, restart });
        }
    }
}
