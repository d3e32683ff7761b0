//! The settings in force, and how the file stands to them.

use std::sync::Arc;

use tokio::sync::watch;

use super::live::Live;

/// How the configuration file stands to what runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigState {
    /// Why the file is not in force, one line each; empty: it is.
    pub problems: Vec<String>,
    /// Keys whose new value waits for a restart.
    pub restart: Vec<&'static str>,
}

/// The settings in force; cheap to clone, always the newest.
#[derive(Clone, Debug)]
pub struct Settings(Arc<watch::Sender<InForce>>);

#[derive(Clone, Debug)]
struct InForce {
    live: Arc<Live>,
    state: ConfigState,
}

impl Settings {
    pub fn new(live: Live) -> Self {
        let (live, state) = (Arc::new(live), ConfigState::default());
        Self(Arc::new(watch::Sender::new(InForce { live, state })))
    }

    pub fn current(&self) -> Arc<Live> {
        Arc::clone(&self.0.borrow().live)
    }

    pub fn state(&self) -> ConfigState {
        self.0.borrow().state.clone()
    }

    pub fn replace(&self, live: Live, state: ConfigState) {
        let live = Arc::new(live);
        self.0.send_replace(InForce { live, state });
    }

    /// Notes how the file stands; the settings in force stay.
    pub fn set_state(&self, state: ConfigState) {
        self.0.send_modify(|now| now.state = state);
    }

    /// Comes back once `wanted` is true of what is in force.
    pub async fn until(&self, wanted: impl Fn(&Live) -> bool) {
        // Fails only without a sender, and that is here.
        let _ = self.0.subscribe().wait_for(|now| wanted(&now.live)).await;
    }
}
