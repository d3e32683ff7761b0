//! A child's process group: known by its leader, killed with this value.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;

use crate::tools::ToolError;

/// A process group, killed whole when this is dropped. That must happen before its leader is reaped, so that the number
/// cannot belong to somebody else.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
}

impl Group {
    /// The group of a child that was started as the leader of one and has not been waited for.
    pub(super) fn led_by(child: &Child) -> Result<Self, ToolError> {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader = id.ok_or_else(|| ToolError::Fatal("a command has no process id".to_owned()))?;
        Ok(Self { leader })
    }

    /// The group's number: its leader's.
    #[cfg(feature = "mcp")]
    pub(super) fn number(&self) -> i32 {
        self.leader.as_raw_pid()
    }

    /// Comes back once the leader has ended, without taking its exit status from the code that waits for it. `children` tells of every child
    /// of ours that ends; it was asked for before the leader began, so that no end is missed. No thread waits meanwhile.
    pub(super) fn leader_ended(&self, mut children: tokio::signal::unix::Signal) -> impl Future<Output = ()> + Send + use<> {
        let leader = self.leader;
        async move { while runs(leader) && children.recv().await.is_some() {} }
    }

    /// Asks everybody in the group to end.
    pub(super) fn terminate(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // In one stroke, as the system does it: a process that is about to fork dies or its child does, too.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

fn runs(leader: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(leader), look) {
            Ok(ended) => return ended.is_none(),
            Err(Errno::INTR) => (),
            // It was reaped: then it has ended.
            Err(_) => return false,
        }
    }
}

/// How many processes and threads our user has; none where the system does not tell.
#[cfg(feature = "bash")]
pub(super) fn processes_of_our_user() -> Option<u64> {
    let us = rustix::process::getuid().as_raw().to_string();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        if !entry
            .file_name()
            .to_string_lossy()
            .starts_with(|first: char| first.is_ascii_digit())
        {
            continue;
        }
        // Somebody who ended meanwhile does not count.
        let Ok(status) = std::fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next().map(str::to_owned)
        };
        if field("Uid:").is_some_and(|uid| uid == us) {
            count += field("Threads:").and_then(|threads| threads.parse::<u64>().ok()).unwrap_or(1);
        }
    }
    (count > 0).then_some(count)
}
