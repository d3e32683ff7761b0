//! A whole world for one test: a played chat platform, a fake model, people, and the gateway between them — in this
//! process, with a clock that the test moves, or as the real binary that the test kills.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use countersign_agent::domain::{Clock, Ids};
use countersign_agent::tools::{Tool, Toolbox};
use countersign_gateway::app::{self, Parts, Running, StartError};
use countersign_gateway::config::Loaded;
use countersign_gateway::lanes::Intervals;
use countersign_gateway::store::StoreError;
use countersign_playground::{BOT, Demo, FakeLark, FakeSlack, Posted, Snapshot, Stage, Tenant};
use serde_json::Value;
use tempfile::TempDir;

use super::api::{Api, PATIENCE, eventually};
use super::deliveries::{Delivery, SLACK_APP_TOKEN};
use super::fake_model::FakeModel;
use super::platform::On;
use super::process::{Process, STARTS};
use super::quiet;
use super::settings::{change, lark_app, load, slack_app};
use super::stores::Pairing;

/// Settings of every test world, as YAML under these keys.
pub const SECRETS: &[(&str, &str)] = &[
    ("CHANNELS__LARK__APP_ID", "app_test"),
    ("CHANNELS__LARK__APP_SECRET", "as-lark-test-0123456789"),
    ("CHANNELS__LARK__VERIFICATION_TOKEN", "vt-test-0123456789"),
    ("CHANNELS__LARK__ENCRYPT_KEY", "k-lark-test-0123456789"),
];
/// Secrets of the played Slack app.
pub const SLACK_SECRETS: &[(&str, &str)] = &[
    ("CHANNELS__SLACK__SIGNING_SECRET", "ss-slack-test-0123456789"),
    ("CHANNELS__SLACK__BOT_TOKEN", "xoxb-slack-test-0123456789"),
];

/// After so long without news, a frozen world looks whether what is waited for is held back.
const LOOK: Duration = Duration::from_millis(30);
/// The platforms' rates hold nothing back for longer.
const LONGEST_HOLD: Duration = Duration::from_secs(3);

/// The gateway, in whichever form.
enum Gateway {
    Here(Running),
    Process(Process),
    Stopped,
}

/// The played platform's server.
enum Fake {
    Lark(FakeLark),
    Slack(FakeSlack),
}

/// Everything a test needs.
pub struct World {
    pub on: On,
    /// What happens in the chats.
    pub chat: Stage,
    fake: Fake,
    /// Slack: the thread in which somebody's words stand, by sender, chat and topic.
    pub(super) threads: Mutex<HashMap<(String, String, String), String>>,
    pub model: FakeModel,
    pub tenant: Tenant,
    pub api: Api,
    pub clock: Clock,
    /// Does the clock move by the test alone?
    frozen: bool,
    pub folder: TempDir,
    settings: Vec<(String, String)>,
    /// Its configuration file, for a gateway in this process.
    yaml: String,
    tools: Option<Toolbox>,
    gateway: Gateway,
}

/// How a person says something. On Slack a group's words with a mention stand in the thread that the sender's first such
/// words in the chat (or under this topic) began, as people there go on; without a mention they stand in the channel itself.
#[derive(Clone, Copy, Default)]
pub struct To<'a> {
    pub group: bool,
    pub mention: bool,
    pub reply_to: Option<&'a str>,
    pub thread: Option<&'a str>,
}

/// In a group, with the bot mentioned.
pub const GROUP: To<'static> = To {
    group: true,
    mention: true,
    reply_to: None,
    thread: None,
};
/// In a direct chat.
pub const DIRECT: To<'static> = To {
    group: false,
    mention: false,
    ..GROUP
};
/// In a group, without a mention.
pub const ASIDE: To<'static> = To { mention: false, ..GROUP };

impl World {
    /// A world in this process, on Lark. `extra` are settings as `SECTION__KEY` (`CHAT__KEY`: of the platform); `answer` is the model.
    pub async fn start(extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::start_on(On::Lark, extra, answer).await
    }

    /// A world in this process, on any platform. See [`World::start`].
    pub async fn start_on(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut world = Self::prepare(on, extra, answer, Clock::system()).await;
        world.boot().await;
        world
    }

    /// A world in this process with these action tools instead of the file tools.
    pub async fn with_tools_on(on: On, tools: Vec<Arc<dyn Tool>>, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut world = Self::prepare(on, &[], answer, Clock::system()).await;
        world.tools = Some(Toolbox::new(tools, &BTreeMap::new()));
        world.boot().await;
        world
    }

    /// A world in this process, with a clock that only the test moves.
    pub async fn frozen_on(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let mut world = Self::prepare(on, extra, answer, Clock::manual(Clock::system().now())).await;
        world.boot().await;
        world
    }

    /// A world in this process with `yaml` as its configuration file, and this clock.
    pub async fn by_yaml_on(
        on: On,
        extra: &[(&str, &str)],
        yaml: &str,
        clock: Clock,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::prepare(on, extra, answer, clock).await;
        yaml.clone_into(&mut world.yaml);
        world.boot().await;
        world
    }

    /// A world on Lark with a clock that only the test moves.
    pub async fn frozen(extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::frozen_on(On::Lark, extra, answer).await
    }

    /// The real binary, on Lark; `failpoint` lets it die there.
    pub async fn process(
        extra: &[(&str, &str)],
        failpoint: Option<&str>,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::process_on(On::Lark, extra, failpoint, answer).await
    }

    /// A world with the real binary, on any platform. See [`World::process`].
    pub async fn process_on(
        on: On,
        extra: &[(&str, &str)],
        failpoint: Option<&str>,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::prepare(on, extra, answer, Clock::system()).await;
        world.restart_process(failpoint);
        world
    }

    /// Everything but a gateway: the test starts those that it wants with [`World::settings`] and says by [`World::reach`] where
    /// people and the test's questions find them.
    pub async fn without_gateway(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::prepare(on, extra, answer, Clock::system()).await
    }

    /// The real binary on Lark with `yaml` as its `config.yaml`, and without the settings that the file is to hold in the
    /// environment.
    pub async fn by_file(
        extra: &[(&str, &str)],
        without: &[&str],
        yaml: &str,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self::by_file_on(On::Lark, extra, without, yaml, answer).await
    }

    /// A world that is configured by a file, on any platform. See [`World::by_file`].
    pub async fn by_file_on(
        on: On,
        extra: &[(&str, &str)],
        without: &[&str],
        yaml: &str,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::prepare(on, extra, answer, Clock::system()).await;
        world.settings.retain(|(key, _)| !without.contains(&key.as_str()));
        std::fs::write(world.folder.path().join("config.yaml"), yaml).unwrap();
        world.restart_process(None);
        world
    }

    async fn prepare(on: On, extra: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static, clock: Clock) -> Self {
        app::install_crypto();
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("notes.md"), "# Notes\n\n- ship the report\n- ask Zhao Lei\n").unwrap();
        let (fake, base, secrets) = match on {
            On::Lark => {
                let lark = FakeLark::start("app_test", "as-lark-test-0123456789", clock.clone()).await.unwrap();
                let base = lark.base_url();
                (Fake::Lark(lark), base, SECRETS)
            }
            On::Slack => {
                let slack = FakeSlack::start(SLACK_SECRETS[1].1, clock.clone(), Ids::random()).await.unwrap();
                slack.set_app_token(SLACK_APP_TOKEN);
                let base = slack.base_url();
                (Fake::Slack(slack), base, SLACK_SECRETS)
            }
        };
        let model = FakeModel::with_fn(answer).await;
        let mut settings = Vec::new();
        change(&mut settings, on, secrets);
        let more = [
            ("SERVER__BIND", "127.0.0.1:0".to_owned()),
            ("CHAT__ENABLED", "true".to_owned()),
            ("CHAT__BASE_URL", base),
            ("CHAT__LOCALE", "zh-CN".to_owned()),
            ("MODEL__PROVIDER", "openai".to_owned()),
            ("MODEL__BASE_URL", model.base_url()),
            ("MODEL__NAME", "fake".to_owned()),
            ("TOOLS__WORKSPACE", workspace.display().to_string()),
        ];
        settings.extend(more.map(|(key, value)| (on.setting(key), value)));
        settings.extend(Pairing::of_this_run().settings(folder.path()).await);
        let delivery = Delivery::configure(&mut settings, on, extra);
        let Loaded { boot, .. } = load(&settings, "");
        let http = countersign_agent::tls::http_client().no_proxy().timeout(PATIENCE).build().unwrap();
        let (nowhere, ids) = ("http://127.0.0.1:1", Ids::random());
        let (chat, tenant) = match &fake {
            Fake::Lark(lark) => (
                (**lark).clone(),
                Tenant::new(http, nowhere, lark_app(&boot.lark), BOT, clock.clone(), ids),
            ),
            Fake::Slack(slack) => (
                (**slack).clone(),
                Tenant::slack(http, nowhere, slack_app(&boot.slack), Some(slack.workspace()), clock.clone(), ids),
            ),
        };
        let mut world = Self {
            on,
            chat,
            fake,
            threads: Mutex::default(),
            model,
            tenant,
            api: Api::new(""),
            frozen: clock.is_manual(),
            clock,
            folder,
            settings,
            yaml: String::new(),
            tools: None,
            gateway: Gateway::Stopped,
        };
        world.tenant = delivery.of(&world.tenant, world.sockets());
        world
    }

    /// The played Lark.
    pub fn lark(&self) -> &FakeLark {
        match &self.fake {
            Fake::Lark(lark) => lark,
            Fake::Slack(_) => panic!("this world is on Slack"),
        }
    }

    /// The played Slack.
    pub fn slack(&self) -> &FakeSlack {
        match &self.fake {
            Fake::Slack(slack) => slack,
            Fake::Lark(_) => panic!("this world is on Lark"),
        }
    }

    async fn boot(&mut self) {
        self.boot_with(|_| {}).await;
    }

    /// Starts the gateway with changed timings, in a world that has none.
    pub async fn boot_with(&mut self, change: impl FnOnce(&mut Intervals)) {
        let own = self.another_with(change).await;
        self.reach(&format!("http://{}", own.addr));
        self.gateway = Gateway::Here(own);
    }

    /// Another gateway in this process, on the same stores and with the same clock: what a second machine is.
    pub async fn another(&self) -> Running {
        self.another_with(|_| {}).await
    }

    /// Another gateway on the stores of this world, with changed timings.
    pub async fn another_with(&self, change: impl FnOnce(&mut Intervals)) -> Running {
        let Loaded { boot, live, .. } = load(&self.settings, &self.yaml);
        let mut parts = Parts {
            clock: self.clock.clone(),
            drain: Duration::ZERO,
            tools: self.tools.clone(),
            demo: Some(Arc::new(Demo)),
            ..Parts::default()
        };
        parts.timings.poll = Duration::from_millis(20);
        parts.timings.calls.interrupt_poll = Duration::from_millis(20);
        change(&mut parts.timings);
        for _ in 0..STARTS {
            match Box::pin(app::start(boot.clone(), live.clone(), parts.clone())).await {
                Err(StartError::Store(StoreError::Unavailable(_))) => {}
                started => return started.unwrap(),
            }
        }
        Box::pin(app::start(boot, live, parts)).await.unwrap()
    }

    /// Starts the binary on the same folder; the fakes live on.
    pub fn restart_process(&mut self, failpoint: Option<&str>) {
        self.try_restart_process(failpoint).unwrap_or_else(|told| panic!("{told}"));
    }

    /// Starts the process again. The error is what it wrote when it ended before it was ready.
    pub fn try_restart_process(&mut self, failpoint: Option<&str>) -> Result<(), String> {
        self.gateway = Gateway::Stopped;
        let variables = failpoint.map(|point| ("COUNTERSIGN_FAILPOINT", point.to_owned()));
        let process = Process::try_start(self.folder.path(), &self.settings, variables.as_slice())?;
        self.reach(&process.base);
        self.gateway = Gateway::Process(process);
        Ok(())
    }

    /// Changes settings for the next start.
    pub fn set(&mut self, changed: &[(&str, &str)]) {
        change(&mut self.settings, self.on, changed);
    }

    /// Stops the gateway in this process and starts it again on the same folder, with these settings changed.
    pub async fn restart(&mut self, changed: &[(&str, &str)]) {
        self.stop().await;
        change(&mut self.settings, self.on, changed);
        self.boot().await;
    }

    /// Stops the gateway in this process.
    pub async fn stop(&mut self) {
        if let Gateway::Here(running) = std::mem::replace(&mut self.gateway, Gateway::Stopped) {
            running.stop().await;
        }
    }

    /// Where its ledger is.
    pub fn database_url(&self) -> &str {
        let (_, url) = self.settings.iter().find(|(key, _)| key == "STORE__DATABASE_URL").unwrap();
        url
    }

    /// Is its ledger a file, or a server that others may use beside the gateway?
    pub fn on_a_file(&self) -> bool {
        self.database_url().starts_with("sqlite:")
    }

    /// Does the gateway run in this process?
    pub fn is_here(&self) -> bool {
        matches!(self.gateway, Gateway::Here(_))
    }

    /// The binary, if the gateway is one.
    pub fn try_child(&mut self) -> Option<&mut Process> {
        match &mut self.gateway {
            Gateway::Process(process) => Some(process),
            Gateway::Here(_) | Gateway::Stopped => None,
        }
    }

    /// The binary.
    pub fn child(&mut self) -> &mut Process {
        self.try_child().expect("this world has no process")
    }

    /// Waits until the binary has ended by itself, while the fakes go on.
    pub async fn ended(&mut self) -> ExitStatus {
        self.child().ends().await
    }

    /// What a gateway of this world is told.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// From now on events go there, and the test's questions too.
    pub fn reach(&mut self, base: &str) {
        self.tenant = self.tenant.at(base);
        self.api = Api::new(base);
    }

    /// Waits until the played platform has seen something. What the platform's rates hold back is due by the world's clock: one that only the
    /// test moves goes on for it.
    pub async fn seen<T>(&self, what: &str, mut found: impl FnMut(&Snapshot) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let look = if self.frozen { LOOK } else { PATIENCE };
        let (mut wait, mut held) = (look, None);
        while Instant::now() < until {
            if let Some(found) = self.chat.wait_for(wait, &mut found).await {
                return found;
            }
            let (now, at) = (self.clock.now(), quiet::held_back(self).await);
            let span = at.map_or(look, |at| at.since(now));
            // The gateway counts the rates in real time: the clock goes on when that time is over too.
            if at.is_some() && at == held {
                self.clock.advance(span);
            }
            (wait, held) = (span.min(LONGEST_HOLD), at);
        }
        let chat = self.chat.snapshot();
        let words: Vec<String> = chat.messages.iter().map(|m| format!("[{}] {}", m.chat, m.words())).collect();
        panic!("not seen: {what}; the chat: {words:#?}; turns: {:#?}", self.api.turns().await);
    }

    /// Waits for a card of `chat` with an OK button whose review waits, and until the gateway knows of its arrival.
    pub async fn plan_card(&self, chat: &str) -> Posted {
        let review = self.api.review_in(chat).await;
        let id = review["message_id"].as_str().unwrap().to_owned();
        self.seen("the plan card", |seen| {
            seen.messages.iter().find(|message| message.id == id).cloned()
        })
        .await
    }

    /// Waits for a message of the bot in `chat` that holds `words`.
    pub async fn hears(&self, chat: &str, words: &str) -> Posted {
        self.seen(&format!("{words:?} in {chat}"), |seen| {
            seen.in_chat(chat).find(|message| message.words().contains(words)).cloned()
        })
        .await
    }

    /// Puts a file into the workspace.
    pub fn put(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("workspace").join(name), text).unwrap();
    }

    /// A file of the workspace.
    pub fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join("workspace").join(name)).ok()
    }

    /// Ends the world: no fake may have anything to object, and every task comes to its end or waits for a person.
    pub async fn end(mut self) {
        eventually("every task at its end or at a person", || async {
            let turns = self.api.turns().await;
            let works = |turn: &Value| turn["status"] == "running" || turn["status"] == "queued";
            (!turns.iter().any(works)).then_some(())
        })
        .await;
        self.stop().await;
        assert_eq!(self.chat.snapshot().violations, Vec::<String>::new(), "the played platform objects");
        assert_eq!(self.model.violations(), Vec::<String>::new(), "the fake model objects");
    }
}

/// How many messages of the model are in a request: the place in a script, however often it is asked.
pub fn place(request: &Value) -> usize {
    request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .count()
}

/// The last message of a request.
pub fn last(request: &Value) -> &Value {
    request["messages"].as_array().unwrap().last().unwrap()
}

/// Text of all user messages of a request.
pub fn user_words(request: &Value) -> String {
    let messages = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user");
    messages
        .filter_map(|message| message["content"].as_str())
        .collect::<Vec<_>>()
        .join("\n---\n")
}
