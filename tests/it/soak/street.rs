//! Where it happens: both platforms, the model, the workspace and the replicas' doors, all of which keep the history.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_agent::domain::{Clock, Ids, Millis};
use countersign_gateway::app;
use countersign_playground::{BOT, Event, FakeLark, FakeSlack, Posted, Stage, Tenant};
use notify::event::{EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use serde_json::Value;
use tokio::time::sleep;

use super::courier::{DONE, answers, courier};
use super::history::{History, Post, What, tasks_in};
use super::replica::Replica;
use crate::support::api::Api;
use crate::support::fake_model::FakeModel;
use crate::support::platform::On;
use crate::support::settings::{lark_app, load, slack_app};
use crate::support::world::{SECRETS, SLACK_SECRETS};

/// As patient as Lark and Slack are with one push.
const PUSH: Duration = Duration::from_secs(3);
/// What the bot's last word on a task holds.
const LAST: &[&str] = &[DONE, "没有做任何改动", "停止前已经执行", "任务没有完成", "出了点问题", GIVEN_UP];
/// The gateway says this when it ends a task whose process died three times.
const GIVEN_UP: &str = "三次异常退出";

/// One platform.
pub struct Side {
    pub on: On,
    pub chat: Stage,
    pub tenant: Tenant,
    _fake: Fake,
}

/// Kept, so that it goes on.
enum Fake {
    Lark { _fake: FakeLark },
    Slack { _fake: FakeSlack },
}

/// Everything.
pub struct Street {
    pub history: Arc<History>,
    pub sides: [Side; 2],
    pub model: FakeModel,
    pub replicas: Vec<Replica>,
    /// When the faults end, since the history began.
    pub bad_time: Duration,
    /// They have ended.
    pub over: AtomicBool,
    /// Everything that was pushed, to be pushed again.
    pub pushed: Mutex<Vec<(On, Event)>>,
    /// Tasks by a person's message.
    messages: Mutex<HashMap<String, String>>,
    /// Tasks by kind.
    pub kinds: Mutex<BTreeMap<&'static str, usize>>,
    next: AtomicUsize,
    began: Millis,
    _watcher: RecommendedWatcher,
}

impl Street {
    /// `stores`: settings of the stores; `doors`: how many replicas.
    pub async fn open(folder: &Path, stores: &[(String, String)], doors: usize, bad_time: Duration) -> Self {
        app::install_crypto();
        let history = Arc::new(History::new());
        let (clock, ids) = (Clock::system(), Ids::random());
        let began = clock.now();
        let workspace = folder.join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let watcher = watch(&workspace, Arc::clone(&history));
        let lark = FakeLark::start("app_test", SECRETS[1].1, clock.clone()).await.unwrap();
        let slack = FakeSlack::start(SLACK_SECRETS[1].1, clock.clone(), ids.clone()).await.unwrap();
        let book = Arc::clone(&history);
        let model = FakeModel::with_fn(move |request| {
            let tasks = tasks_in(&request["messages"].to_string());
            let what = What::Asked {
                answers: answers(request),
                tasks: tasks.clone(),
            };
            book.note(tasks.first().map_or("", String::as_str), what);
            courier(request)
        })
        .await;
        model.forgets();
        let mut settings: Vec<(String, String)> = [SECRETS, SLACK_SECRETS]
            .concat()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        for (on, base) in [(On::Lark, lark.base_url()), (On::Slack, slack.base_url())] {
            let more = [("ENABLED", "true"), ("BASE_URL", &base), ("LOCALE", "zh-CN")];
            settings.extend(more.map(|(key, value)| (on.setting(&format!("CHAT__{key}")), value.to_owned())));
        }
        let more = [
            ("SERVER__BIND", "127.0.0.1:0".to_owned()),
            ("MODEL__PROVIDER", "openai".to_owned()),
            ("MODEL__BASE_URL", model.base_url()),
            ("MODEL__NAME", "fake".to_owned()),
            ("TOOLS__WORKSPACE", workspace.display().to_string()),
        ];
        settings.extend(more.map(|(key, value)| (key.to_owned(), value)));
        settings.extend(stores.iter().cloned());
        let boot = load(&settings, "").boot;
        let http = countersign_agent::tls::http_client().no_proxy().timeout(PUSH).build().unwrap();
        let nowhere = "http://127.0.0.1:1";
        let sides = [
            Side {
                on: On::Lark,
                chat: (*lark).clone(),
                tenant: Tenant::new(http.clone(), nowhere, lark_app(&boot.lark), BOT, clock.clone(), ids.clone()),
                _fake: Fake::Lark { _fake: lark },
            },
            Side {
                on: On::Slack,
                chat: (*slack).clone(),
                tenant: Tenant::slack(http, nowhere, slack_app(&boot.slack), Some(slack.workspace()), clock, ids),
                _fake: Fake::Slack { _fake: slack },
            },
        ];
        let replicas = (0..doors).map(|door| Replica::new(folder.join(format!("replica-{door}")), settings.clone()));
        Self {
            history,
            sides,
            model,
            replicas: replicas.collect(),
            bad_time,
            over: AtomicBool::new(false),
            pushed: Mutex::default(),
            messages: Mutex::default(),
            kinds: Mutex::default(),
            next: AtomicUsize::new(0),
            began,
            _watcher: watcher,
        }
    }

    pub fn side(&self, on: On) -> &Side {
        self.sides.iter().find(|side| side.on == on).unwrap()
    }

    /// Pushes an event once, to one replica after the other. `None` means that its outcome is unknown.
    pub async fn push(&self, on: On, task: &str, event: &Event, name: &str) -> Option<(u16, Value)> {
        let door = &self.replicas[self.next.fetch_add(1, Ordering::Relaxed) % self.replicas.len()];
        let tenant = self.side(on).tenant.at(&door.base());
        let answer = tenant.post(&tenant.seal(event)).await.ok();
        // An answer that was cut off is none.
        let answer = answer.filter(|(status, body)| *status != 200 || on == On::Slack || body.is_object());
        let status = answer.as_ref().map(|(status, _)| *status);
        self.history.note(
            task,
            What::Ack {
                event: name.to_owned(),
                status,
            },
        );
        answer
    }

    /// Remembers whose message it is, before the gateway may hear of it.
    pub fn learn(&self, on: On, task: &str, chat: &str, event: &Event) {
        self.side(on).chat.learn(&event.message_id, chat);
        self.messages.lock().unwrap().insert(event.message_id.clone(), task.to_owned());
        self.pushed.lock().unwrap().push((on, event.clone()));
    }

    /// Pushes all again that was pushed: it must be taken, and nothing may come of it.
    pub async fn push_all_again(&self, patience: Duration) {
        let pushed = self.pushed.lock().unwrap().clone();
        let until = self.history.now() + patience;
        for (on, event) in pushed {
            while self.push(on, "", &event, "again").await.is_none_or(|(status, _)| status != 200) {
                if self.history.now() > until {
                    self.history
                        .note("", What::Objection(format!("not taken when pushed again: {}", event.body)));
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits until no turn is left that is not over; gives those that are.
    pub async fn settled(&self, patience: Duration) -> Vec<Value> {
        let api = Api::new(&self.replicas[0].base());
        let until = self.history.now() + patience;
        loop {
            let mut left = Vec::new();
            for status in ["running", "queued", "paused"] {
                let list = api.get(&format!("/api/v1/turns?limit=200&status={status}")).await;
                left.extend(list["items"].as_array().unwrap().clone());
            }
            if left.is_empty() || self.history.now() > until {
                return left;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Writes down what the platforms hold.
    pub fn collect(&self) {
        let messages = self.messages.lock().unwrap();
        for side in &self.sides {
            let seen = side.chat.snapshot();
            for posted in &seen.messages {
                let words = all_words(posted);
                let mut tasks = tasks_in(&words);
                if tasks.is_empty() {
                    let meant = posted.reply_to.as_ref().and_then(|id| messages.get(id));
                    tasks = meant.into_iter().cloned().collect::<BTreeSet<_>>();
                }
                let at = posted.at.since(self.began);
                for task in &tasks {
                    self.history.note_at(at, task, What::Posted(post(side.on, posted, &words)));
                }
                if tasks.is_empty() {
                    self.history.note_at(at, "", What::Posted(post(side.on, posted, &words)));
                }
            }
            for violation in &seen.violations {
                self.history.note("", What::Objection(violation.clone()));
            }
        }
        for violation in self.model.violations() {
            self.history.note("", What::Objection(violation));
        }
    }
}

/// Notes each time that a file of the workspace gets its name: the tool writes elsewhere and renames, so that is one run of
/// it, whatever was there before.
fn watch(workspace: &Path, history: Arc<History>) -> RecommendedWatcher {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = event.unwrap();
        if event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::To)) {
            let file = event.paths[0].file_name().unwrap().to_str().unwrap().to_owned();
            let task = tasks_in(&file).pop_first().unwrap_or_default();
            history.note(&task, What::Executed { file });
        }
    })
    .unwrap();
    watcher.watch(workspace, RecursiveMode::NonRecursive).unwrap();
    watcher
}

/// Of all its versions.
pub fn all_words(posted: &Posted) -> String {
    let versions = posted.versions.iter().map(|content| {
        let mut version = posted.clone();
        version.content = content.clone();
        version.words()
    });
    versions.collect::<Vec<_>>().join("\n")
}

pub fn is_last(words: &str) -> bool {
    LAST.iter().any(|last| words.contains(last))
}

pub fn is_given_up(words: &str) -> bool {
    words.contains(GIVEN_UP)
}

fn post(on: On, posted: &Posted, words: &str) -> Post {
    let review = posted.first().button("approve");
    Post {
        id: posted.id.clone(),
        key: posted.uuid.clone(),
        chat: posted.chat.clone(),
        // The plan's card says how its task ended, too; the last word is a message of its own.
        last: review.is_none() && is_last(words),
        review: review.and_then(|value| value["review_id"].as_str().map(str::to_owned)),
        words: words.to_owned(),
        keyed: on == On::Lark,
    }
}
