//! Replicas that die, stand still and come back: real processes on the same stores, each with a folder for its log.

use std::path::PathBuf;
use std::sync::RwLock;
use std::time::Duration;

use tokio::time::sleep;

use super::dice::Dice;
use super::history::{Fault, History, What};
use super::weather::Luck;
use crate::support::process::{LEASE_MS, Process, signal};

/// One of them.
pub struct Replica {
    folder: PathBuf,
    settings: Vec<(String, String)>,
    /// Where it was reached last.
    base: RwLock<String>,
}

impl Replica {
    pub fn new(folder: PathBuf, settings: Vec<(String, String)>) -> Self {
        std::fs::create_dir(&folder).unwrap();
        Self {
            folder,
            settings,
            base: RwLock::default(),
        }
    }

    pub fn base(&self) -> String {
        self.base.read().unwrap().clone()
    }

    /// Starts it, as often as it takes: what supervises it does so too when a store is not there.
    pub async fn start(&self) -> Process {
        loop {
            let (folder, settings) = (self.folder.clone(), self.settings.clone());
            let start = move || Process::try_start(&folder, &settings, &[]);
            if let Ok(process) = tokio::task::spawn_blocking(start).await.unwrap() {
                self.base.write().unwrap().clone_from(&process.base);
                return process;
            }
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// Puts its log where it outlives the run; gives the place.
    pub fn keep_log(&self) -> String {
        let (file, path) = tempfile::Builder::new()
            .prefix("soak-")
            .suffix(".log")
            .tempfile()
            .unwrap()
            .keep()
            .unwrap();
        drop(file);
        std::fs::copy(self.folder.join("gateway.log"), &path).unwrap();
        path.display().to_string()
    }

    /// One fault, and back to health.
    pub async fn suffer(&self, process: Process, luck: &Luck, dice: &mut Dice, history: &History) -> Process {
        match dice.roll(5) {
            _ if luck.only_kills => {
                history.note("", What::Fault(Fault::Kill));
                drop(process);
            }
            0..=2 => {
                history.note("", What::Fault(Fault::Kill));
                drop(process);
                sleep(dice.millis(0..2000)).await;
            }
            3 => {
                history.note("", What::Fault(Fault::Stop));
                signal(process.id(), "STOP");
                sleep(dice.millis(200..2 * LEASE_MS.parse::<u64>().unwrap())).await;
                signal(process.id(), "CONT");
                return process;
            }
            _ => {
                history.note("", What::Fault(Fault::Drain));
                process.terminate();
                let ended = move || {
                    let mut process = process;
                    process.ended(Duration::from_secs(40)).is_some()
                };
                if !tokio::task::spawn_blocking(ended).await.unwrap() {
                    history.note("", What::Objection("a replica that does not end on SIGTERM".to_owned()));
                }
            }
        }
        self.start().await
    }
}
