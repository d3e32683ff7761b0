//! The played Slack refuses what Slack refuses, and remembers it: tests that pass on it say something.

use std::time::Duration;

use countersign_agent::domain::{Clock, Ids};
use countersign_gateway::app;
use countersign_gateway::config::{EventDelivery, SlackSecrets};
use countersign_playground::{FakeSlack, Fault, Tenant, Words};
use serde_json::{Value, json};

use crate::support::settings::slack_app;

const TOKEN: &str = "xoxb-slack-test-0123456789";

struct Bench {
    slack: FakeSlack,
    people: Tenant,
    http: reqwest::Client,
    clock: Clock,
}

impl Bench {
    async fn start() -> Self {
        app::install_crypto();
        let clock = Clock::manual(Clock::system().now());
        let slack = FakeSlack::start(TOKEN, clock.clone(), Ids::random()).await.unwrap();
        let http = countersign_agent::tls::http_client().no_proxy().build().unwrap();
        let secrets = SlackSecrets {
            base_url: slack.base_url(),
            delivery: EventDelivery::Webhook,
            app_token: "".into(),
            signing_secret: "ss-slack-test-0123456789".into(),
            previous_signing_secret: None,
            bot_token: TOKEN.into(),
        };
        let people = Tenant::slack(
            http.clone(),
            "http://127.0.0.1:1",
            slack_app(&secrets),
            Some(slack.workspace()),
            clock.clone(),
            Ids::random(),
        );
        Self {
            slack,
            people,
            http,
            clock,
        }
    }

    /// A person's words in `C0C1`; gives their time stamp.
    fn said(&self, reply_to: Option<&str>) -> String {
        let words = Words {
            user: "U0U1",
            chat: "C0C1",
            text: "hello",
            group: true,
            mention: true,
            reply_to,
            thread: None,
        };
        self.people.message(&words).message_id
    }

    async fn call(&self, method: &str, arguments: &Value) -> Value {
        let url = format!("{}/{method}", self.slack.base_url());
        let request = self.http.post(url).bearer_auth(TOKEN);
        let request = if method.starts_with("conversations.") {
            request.form(arguments)
        } else {
            request.json(arguments)
        };
        request.send().await.unwrap().json().await.unwrap()
    }

    fn violations(&self) -> usize {
        self.slack.snapshot().violations.len()
    }
}

/// design: a message stands in the thread of its root, is read back by its key, and is changed only by who posted it.
#[tokio::test]
async fn messages_stand_in_threads_and_are_found_again() {
    let bench = Bench::start().await;
    let root = bench.said(None);
    let below = bench.said(Some(&root));
    let metadata = json!({ "event_type": "countersign_outbox", "event_payload": { "k": "key-1" } });
    let posted = bench
        .call(
            "chat.postMessage",
            &json!({ "channel": "C0C1", "thread_ts": root, "text": "hi", "metadata": metadata }),
        )
        .await;
    assert_eq!(posted["ok"], true, "{posted}");
    let ts = posted["ts"].as_str().unwrap();
    assert!(ts > below.as_str() && below > root, "time goes on");
    let asked = json!({ "channel": "C0C1", "ts": root, "include_all_metadata": "true", "oldest": "0", "limit": "10" });
    let found = bench.call("conversations.replies", &asked).await;
    assert_eq!(found["messages"][1]["metadata"]["event_payload"]["k"], "key-1", "{found}");
    let changed = json!({ "channel": "C0C1", "ts": ts, "text": "now", "blocks": [] });
    assert_eq!(bench.call("chat.update", &changed).await["ok"], true);
    assert_eq!(bench.slack.snapshot().messages[0].words(), "now");
    assert_eq!(bench.violations(), 0);

    let not_ours = json!({ "channel": "C0C1", "ts": root, "text": "now", "blocks": [] });
    assert_eq!(bench.call("chat.update", &not_ours).await["error"], "message_not_found");
    for (at, wrong) in [
        json!({ "channel": "C0C1", "thread_ts": below, "text": "not a root" }),
        json!({ "channel": "C0C2", "thread_ts": root, "text": "another channel" }),
        json!({ "channel": "C0C1", "text": "" }),
        json!({ "channel": "C0C1", "text": "x", "link_names": true }),
        json!({ "channel": "C0C1", "text": "<!channel>" }),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(bench.call("chat.postMessage", &wrong).await["ok"], false, "{wrong}");
        assert_eq!(bench.violations(), at + 2, "{wrong}");
    }
}

/// design: a form opens once, within three seconds of its click.
#[tokio::test]
async fn a_trigger_opens_one_form_soon() {
    let bench = Bench::start().await;
    let view = json!({ "type": "modal", "callback_id": "plan_revise_submit", "private_metadata": "{}",
        "title": { "type": "plain_text", "text": "Edit" }, "submit": { "type": "plain_text", "text": "Send" },
        "close": { "type": "plain_text", "text": "Back" },
        "blocks": [{ "type": "input", "block_id": "feedback", "label": { "type": "plain_text", "text": "What?" },
            "element": { "type": "plain_text_input", "action_id": "feedback", "multiline": true } }] });
    let trigger = || {
        let value = json!({ "action": "revise", "review_id": "rv_1" });
        bench.people.tap("U0U1", "C0C1", "1.1", &value, None).body["trigger_id"].clone()
    };
    let once = json!({ "trigger_id": trigger(), "view": view });
    let opened = bench.call("views.open", &once).await;
    assert_eq!(opened["ok"], true, "{opened}");
    assert_eq!(bench.call("views.open", &once).await["error"], "exchanged_trigger_id");
    let late = json!({ "trigger_id": trigger(), "view": view });
    bench.clock.advance(Duration::from_millis(3001));
    assert_eq!(bench.call("views.open", &late).await["error"], "expired_trigger_id");
    assert_eq!(
        (bench.slack.snapshot().forms.len(), bench.violations()),
        (1, 1),
        "a late form is nobody's fault"
    );
}

/// design: marks, notes and faults: the same mark stands once, a note is for one person, a lost answer was carried out.
#[tokio::test]
async fn marks_notes_and_faults_are_played() {
    let bench = Bench::start().await;
    let root = bench.said(None);
    let mark = json!({ "channel": "C0C1", "timestamp": root, "name": "eyes" });
    assert_eq!(bench.call("reactions.add", &mark).await["ok"], true);
    assert_eq!(bench.call("reactions.add", &mark).await["error"], "already_reacted");
    assert_eq!(bench.call("reactions.remove", &mark).await["ok"], true);
    assert_eq!(bench.call("reactions.remove", &mark).await["error"], "no_reaction");
    assert_eq!(bench.slack.snapshot().marks(&root), Vec::<&str>::new());
    let note = json!({ "channel": "C0C1", "user": "U0U2", "text": "a &lt;word&gt;", "thread_ts": root });
    assert_eq!(bench.call("chat.postEphemeral", &note).await["ok"], true);
    let seen = bench.slack.snapshot();
    assert_eq!((seen.notes[0].user.as_str(), seen.notes[0].text.as_str()), ("U0U2", "a <word>"));
    bench.slack.fault("create", Fault::LoseAnswer);
    let url = format!("{}/chat.postMessage", bench.slack.base_url());
    let post = || {
        bench
            .http
            .post(&url)
            .bearer_auth(TOKEN)
            .json(&json!({ "channel": "C0C1", "text": "x" }))
    };
    let lost = async { post().send().await?.bytes().await };
    assert!(lost.await.is_err());
    assert_eq!(bench.slack.snapshot().messages.len(), 1);
    let wait = Some(("retry-after".to_owned(), "7".to_owned()));
    bench.slack.fault(
        "create",
        Fault::Answer {
            status: 429,
            code: 0,
            header: wait,
        },
    );
    let refused = post().send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()),
        (429, "7")
    );
    let stranger = bench
        .http
        .post(&url)
        .bearer_auth("xoxb-other")
        .json(&json!({ "channel": "C0C1", "text": "x" }));
    let answer: Value = stranger.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["error"], "invalid_auth");
    assert_eq!(bench.violations(), 0);
}

/// design: a look at the clock (`check --online`) is no misuse of the platform, any other stray request is.
#[tokio::test]
async fn only_a_head_request_may_go_anywhere() {
    let bench = Bench::start().await;
    let answer = bench.http.head(bench.slack.base_url()).send().await.unwrap();
    assert!(answer.headers().contains_key("date"));
    assert_eq!(bench.violations(), 0);
    bench.http.get(bench.slack.base_url()).send().await.unwrap();
    assert_eq!(bench.violations(), 1);
}
