//! Who belongs to the groups that the settings name: asked of the platform, never within a transaction, and remembered for a minute.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Clock, Millis};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, join_all};
use parking_lot::Mutex;

/// How long an answer counts.
const AGE: Duration = Duration::from_secs(60);
/// How long a person waits for it: a press has two seconds in all. The look-up goes on, for the next press.
const WAIT: Duration = Duration::from_secs(1);
/// Answers that are remembered.
const MOST: usize = 256;

/// Tells who belongs to a group of a platform: a Slack user group, a Lark department.
pub trait GroupDirectory: Send + Sync + fmt::Debug {
    /// The user ids of the members, asked over the network. `None` means that the platform does not tell now.
    fn members<'a>(&'a self, channel: ChannelKind, group: &'a str) -> BoxFuture<'a, Option<HashSet<String>>>;
}

/// The members of groups, as far as they are known at a moment; by the group's id.
pub(super) type GroupMembers = HashMap<String, Arc<HashSet<String>>>;

type GroupAnswer = Option<Arc<HashSet<String>>>;

/// One question to the platform; who asks while it is under way hears the same answer.
#[derive(Clone)]
struct Question {
    at: Millis,
    answer: Shared<BoxFuture<'static, GroupAnswer>>,
}

#[derive(Clone)]
pub(super) struct Groups {
    directory: Arc<dyn GroupDirectory>,
    clock: Clock,
    asked: Arc<Mutex<HashMap<(ChannelKind, String), Question>>>,
}

impl Groups {
    pub(super) fn new(directory: Arc<dyn GroupDirectory>, clock: Clock) -> Self {
        Self {
            directory,
            clock,
            asked: Arc::default(),
        }
    }

    /// What is known of the groups of `channel`, and is not too old.
    pub(super) fn known(&self, channel: ChannelKind) -> GroupMembers {
        let now = self.clock.now();
        let asked = self.asked.lock();
        let fresh = asked.iter().filter(|((of, _), question)| *of == channel && question.is_fresh(now));
        fresh
            .filter_map(|((_, group), question)| Some((group.clone(), question.answer.peek()?.clone()?)))
            .collect()
    }

    /// Asks who belongs to `groups`, where that is not known. Comes back when that is answered, or when it has taken too long.
    pub(super) async fn look_up(&self, channel: ChannelKind, groups: &[String]) {
        let answers: Vec<_> = groups.iter().map(|group| self.ask(channel, group)).collect();
        if tokio::time::timeout(WAIT, join_all(answers)).await.is_err() {
            tracing::warn!(
                channel = channel.as_str(),
                ?groups,
                "the platform takes too long to tell who is in a group"
            );
        }
    }

    fn ask(&self, channel: ChannelKind, group: &str) -> Shared<BoxFuture<'static, GroupAnswer>> {
        let now = self.clock.now();
        let mut asked = self.asked.lock();
        let key = (channel, group.to_owned());
        if let Some(question) = asked.get(&key).filter(|question| question.is_fresh(now) && !question.failed()) {
            return question.answer.clone();
        }
        if asked.len() >= MOST {
            asked.retain(|_, question| question.is_fresh(now));
        }
        if asked.len() >= MOST {
            asked.clear();
        }
        let (directory, group) = (Arc::clone(&self.directory), group.to_owned());
        // A task of its own: it ends although nobody waits for it any more.
        let task = tokio::spawn(async move { directory.members(channel, &group).await });
        let answer = task.map(|told| told.ok().flatten().map(Arc::new)).boxed().shared();
        asked.insert(
            key,
            Question {
                at: now,
                answer: answer.clone(),
            },
        );
        answer
    }
}

impl Question {
    /// Counted from the moment when it was asked.
    fn is_fresh(&self, now: Millis) -> bool {
        now.since(self.at) < AGE
    }

    fn failed(&self) -> bool {
        matches!(self.answer.peek(), Some(None))
    }
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("directory", &self.directory).finish_non_exhaustive()
    }
}
