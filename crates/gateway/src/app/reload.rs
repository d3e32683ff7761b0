//! Follows the configuration while the gateway runs: notices an edit, reads it in peace, puts it in force or refuses it.

use std::sync::Arc;
use std::time::Duration;

use metrics::counter;
use tokio::sync::Notify;
use tracing::{Level, enabled, error, info, warn};

use crate::config::{Candidate, ConfigState, Edit, Reloader, Settings, Watch};
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
async fn in_peace(reloader: &Reloader, watch: &mut Watch) -> Candidate {
    loop {
        watch.settle().await;
        let found = reloader.load_candidate();
        if found.is_valid() && !watch.is_empty() {
            return found;
        }
        tokio::time::sleep(DOUBT).await;
        if watch.is_settled() {
            return reloader.load_candidate();
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
            let level = live.log_level.clone();
            // Before the line that says so: its reader relies on it.
            let state = ConfigState {
                problems: Vec::new(),
                restart: restart.clone(),
            };
            settings.replace(*live, state);
            // One of both levels lets the line through, if any does.
            let told = enabled!(Level::INFO);
            if told {
                tell();
            }
            logs.set_level(&level);
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
        }
        Edit::Refused { problems, restart } => {
            error!("the edit of the configuration is refused, nothing changes: {}", problems.join("; "));
            counter!("countersign_config_reloads_total", "outcome" => "refused").increment(1);
            settings.set_state(ConfigState { problems, restart });
        }
    }
}

#[cfg(test)]
mod tests {

    use parking_lot::Mutex;
    use tracing::{Event, Subscriber};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
    use tracing_subscriber::registry;

    use super::*;
    use crate::config;
    use crate::telemetry;

    /// Is the console in force, at each line of the log?
    struct AtEachLine(Settings, Arc<Mutex<Vec<bool>>>);

    impl<S: Subscriber> Layer<S> for AtEachLine {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.1.lock().push(self.0.current().console.enabled);
        }
    }

    /// The line that says that settings are in force is written when they are: its reader relies on it.
    #[test]
    fn the_line_is_true_when_it_is_written() {
        let live = |env: &[(&str, &str)]| {
            let env = env.iter().map(|(key, value)| (format!("COUNTERSIGN__{key}"), (*value).to_owned()));
            config::load(None, env).unwrap().live
        };
        let settings = Settings::new(live(&[]));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let layer = AtEachLine(settings.clone(), Arc::clone(&lines));
        let edit = Edit::Taken {
            live: Box::new(live(&[("CHANNELS__CONSOLE__ENABLED", "false")])),
            hot: vec!["channels.console.enabled"],
            restart: Vec::new(),
            restart_changed: false,
            warnings: Vec::new(),
        };
        let logs = telemetry::init(false, "error");
        tracing::subscriber::with_default(registry().with(layer), || note(edit, &settings, &logs));
        assert_eq!(*lines.lock(), [false]);
    }
}
