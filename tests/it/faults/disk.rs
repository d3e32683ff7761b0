//! A disk that is full: a small file system of its own, which needs root.

use std::path::Path;
use std::process::Command;

use super::ready;
use crate::support::api::eventually;
use crate::support::platform::{On, on_either};
use crate::support::scripts::reporter;
use crate::support::skips::{Missing, skip};
use crate::support::world::{DIRECT, GROUP, World};

on_either! {
    a_full_disk_is_told_and_heals,
}

/// A tmpfs of 8 MiB; gone with the value.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|out| out.status.success()) {
            return Some(Self(folder));
        }
        skip(Missing::Mount, "a small file system cannot be mounted");
        None
    }

    fn filler(&self) -> std::path::PathBuf {
        self.0.path().join("filler")
    }

    /// Until not a byte more fits.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.filler()).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let path: &Path = self.0.path();
        let _ = Command::new("umount").arg("-l").arg(path).status();
    }
}

/// F-Q4: the disk fills up under a waiting plan: events and taps get 503, reads go on, nothing runs; with room again the tap counts once,
/// without a restart.
async fn a_full_disk_is_told_and_heals(on: On) {
    let Some(small) = Small::mount() else {
        return;
    };
    let url = format!("sqlite://{}", small.0.path().join("full.db").display());
    let world = World::start_on(on, &[("STORE__DATABASE_URL", &url), ("STORE__COORDINATION", "embedded")], reporter).await;
    let (c, u) = (on.chat("c1"), on.user("u1"));
    world.say(u, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.caught_up().await;
    small.fill();
    // What the file still holds free is used up first.
    eventually("refused", || async {
        let (_, status) = world.try_say(on.user("u2"), on.direct("p2"), "/status", DIRECT).await;
        (status == Some(503)).then_some(())
    })
    .await;
    let tap = world.tenant.tap(u, c, &card.id, &card.button("approve").unwrap(), None);
    assert_eq!(world.tenant.post(&world.tenant.seal(&tap)).await.unwrap().0, 503);
    assert_eq!(world.review_of(&card).await["status"], "pending", "reads go on");
    let (status, word, ledger) = ready(&world).await;
    assert_eq!((status, word.as_str(), ledger.as_str()), (503, "not_ready", "failed"));
    assert_eq!(world.file("report.md"), None);
    std::fs::remove_file(small.filler()).unwrap();
    eventually("ready again", || async { (ready(&world).await.0 == 200).then_some(()) }).await;
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.count(c, "全部完成"), 1);
    assert_eq!(world.continuations(), 1);
    world.end().await;
}
