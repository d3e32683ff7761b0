//! `countersign check --online`: what the configuration points to is tried; no secret is shown, nothing is changed.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::Clock;
use countersign_playground::FakeLark;
use serde_json::{Value, json};

use crate::support::command::{Ran, run};
use crate::support::scripts::reporter;
use crate::support::world::{SECRETS, World};

/// What one answer of the stand-in is: status, headers, body.
type Answer = (u16, Vec<(&'static str, String)>, Value);

/// A server that gives every path the same answer and remembers what it was asked.
struct StandIn {
    base: String,
    asked: Arc<Mutex<Vec<(Method, Uri, HeaderMap)>>>,
}

impl StandIn {
    async fn start(answer: Answer) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let state = (Arc::clone(&asked), Arc::new(answer));
        let router = Router::new().fallback(reply).with_state(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, asked }
    }

    /// The header of the one request with `method`.
    fn header(&self, method: &Method, name: &str) -> String {
        let asked = self.asked.lock().unwrap();
        let (_, _, headers) = asked.iter().find(|(seen, _, _)| seen == method).unwrap();
        headers[name].to_str().unwrap().to_owned()
    }

    fn paths(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .map(|(method, uri, _)| format!("{method} {uri}"))
            .collect()
    }
}

type Shared = (Arc<Mutex<Vec<(Method, Uri, HeaderMap)>>>, Arc<Answer>);

async fn reply(State((asked, answer)): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    asked.lock().unwrap().push((method, uri, headers));
    let mut response = axum::Json(answer.2.clone()).into_response();
    *response.status_mut() = StatusCode::from_u16(answer.0).unwrap();
    for (name, value) in &answer.1 {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}

/// Runs `check --online` in a folder of its own with these settings.
async fn online(settings: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut ran = run(folder.path(), settings, &["check", "--online"]).await;
    let told = ran.err.lines().filter(|line| !line.starts_with("ok: "));
    ran.err = told.map(|line| format!("{line}\n")).collect();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it made something: {ran:?}");
    assert!(!format!("{ran:?}").contains("0123456789"), "a secret is shown: {ran:?}");
    ran
}

#[track_caller]
fn told(text: &str, line: &str) {
    assert!(text.lines().any(|told| told.starts_with(line)), "{line:?} in {text}");
}

/// design: with nothing enabled only the database is to be tried; the results are comments of the effective YAML.
#[tokio::test]
async fn the_defaults_are_sound() {
    let ran = online(&[]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        lines,
        [
            "# online: store.database_url: the file does not exist yet and will be created",
            "# online: model: the demo model is built in",
            "# online: clock: not compared: no channel and no model server to ask",
        ]
    );
}

/// M-3: Lark's credentials are tried (token and identity), and a refused secret is one line, exit 1.
#[tokio::test(flavor = "multi_thread")]
async fn larks_credentials_are_tried() {
    let lark = FakeLark::start("app_test", "as-lark-test-0123456789", Clock::system())
        .await
        .unwrap();
    let base = lark.base_url();
    let mut settings = SECRETS.to_vec();
    settings.extend([("CHANNELS__LARK__ENABLED", "true"), ("CHANNELS__LARK__BASE_URL", base.as_str())]);
    let ran = online(&settings).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    told(&ran.out, "# online: channels.lark: the credentials are good; the bot is ou_");
    told(&ran.out, "# online: clock: agrees with the servers'");
    settings.retain(|(key, _)| *key != "CHANNELS__LARK__APP_SECRET");
    settings.push(("CHANNELS__LARK__APP_SECRET", "as-other-0123456789"));
    let ran = online(&settings).await;
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{ran:?}");
    told(
        &ran.err,
        "online: channels.lark: the credentials or permissions are refused: Lark code 10014",
    );
    settings.retain(|(key, _)| *key != "CHANNELS__LARK__BASE_URL");
    settings.push(("CHANNELS__LARK__BASE_URL", "http://127.0.0.1:1"));
    let ran = online(&settings).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(&ran.err, "online: channels.lark: no connection to Lark: Connection refused");
    told(&ran.err, "online: clock: warning: not compared");
}

fn slack(base: &str) -> [(&str, &str); 4] {
    [
        ("CHANNELS__SLACK__ENABLED", "true"),
        ("CHANNELS__SLACK__BASE_URL", base),
        ("CHANNELS__SLACK__SIGNING_SECRET", "ss-0123456789"),
        ("CHANNELS__SLACK__BOT_TOKEN", "xoxb-0123456789"),
    ]
}

/// M-3: Slack's bot token is tried with `auth.test`; missing scopes are named, a refused token says Slack's word for it.
#[tokio::test(flavor = "multi_thread")]
async fn slacks_token_and_scopes_are_tried() {
    let needed = "app_mentions:read,channels:history,chat:write,commands,groups:history,im:history,mpim:history,reactions:write";
    let all = format!(
        "{needed},reactions:read,assistant:write,files:write,files:read,im:write,users:read,channels:read,groups:read,usergroups:read"
    );
    let good = json!({ "ok": true, "user_id": "U0BOT" });
    let scopes = |scopes: &str| vec![("x-oauth-scopes", scopes.to_owned())];
    let server = StandIn::start((200, scopes(&all), good.clone())).await;
    let ran = online(&slack(&server.base)).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    told(
        &ran.out,
        "# online: channels.slack: the bot token is good and has every scope; the bot is \"U0BOT\"",
    );
    assert_eq!(server.header(&Method::POST, "authorization"), "Bearer xoxb-0123456789");
    assert!(server.paths().contains(&"POST /auth.test".to_owned()), "{:?}", server.paths());

    let older = all.replace(",files:read", "").replace(",users:read", "");
    let older = StandIn::start((200, scopes(&older), good.clone())).await;
    let ran = online(&slack(&older.base)).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    told(
        &ran.err,
        "online: channels.slack: warning: the bot token is good; the bot is \"U0BOT\"; without these scopes something is missing: \
         files:read (to read the files of a request, and to see after a crash or a broken connection whether a file of the agent is already in the chat), \
         users:read (to name the people in what was said before a request)",
    );

    let few = StandIn::start((200, scopes("chat:write, im:history"), good)).await;
    let ran = online(&slack(&few.base)).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(
        &ran.err,
        "online: channels.slack: the bot token lacks the scopes app_mentions:read (to hear messages that mention the bot), channels:history (",
    );
    let rest = "): add them and install the app again; without these scopes something is missing: commands (";
    assert!(ran.err.contains(rest), "{}", ran.err);
    assert!(!ran.err.contains("()"), "each scope has a purpose: {}", ran.err);

    let refusing = StandIn::start((200, vec![], json!({ "ok": false, "error": "invalid_auth" }))).await;
    let ran = online(&slack(&refusing.base)).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(&ran.err, "online: channels.slack: the bot token is refused: invalid_auth");
}

fn model<'a>(provider: &'a str, base: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("MODEL__PROVIDER", provider),
        ("MODEL__BASE_URL", base),
        ("MODEL__NAME", "m-1"),
        ("MODEL__API_KEY", "sk-0123456789"),
    ]
}

/// design: the model's server is asked for its list of models with the key, and never for an answer that costs.
#[tokio::test(flavor = "multi_thread")]
async fn the_models_server_is_tried_for_free() {
    let list = json!({ "data": [{ "id": "m-0" }, { "id": "m-1" }] });
    let server = StandIn::start((200, vec![], list)).await;
    let ran = online(&model("openai", &server.base)).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    told(&ran.out, "# online: model: the server is there, takes the key and has \"m-1\"");
    assert_eq!(server.header(&Method::GET, "authorization"), "Bearer sk-0123456789");
    let ran = online(&model("anthropic", &server.base)).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut paths = server.paths();
    paths.sort();
    paths.dedup();
    assert_eq!(paths, ["GET /models", "GET /v1/models", "HEAD /"]);

    // A base that ends in the version is as good as one without.
    let server = StandIn::start((200, vec![], json!({ "data": [{ "id": "m-1" }] }))).await;
    let ran = online(&model("anthropic", &format!("{}/v1", server.base))).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    assert!(server.paths().contains(&"GET /v1/models".to_owned()), "{:?}", server.paths());

    for (status, body, code, line) in [
        (
            200,
            json!({ "data": [{ "id": "m-0" }] }),
            0,
            "online: model: warning: the server is there and takes the key, but \"m-1\"",
        ),
        (
            401,
            json!({}),
            1,
            "online: model: the server refuses the key (model.api_key): HTTP 401",
        ),
        (500, json!({}), 1, "online: model: the server answers HTTP 500"),
        (
            404,
            json!({}),
            0,
            "online: model: warning: something answers, but has no list of models (HTTP 404): is model.base_url right?",
        ),
    ] {
        let server = StandIn::start((status, vec![], body)).await;
        let ran = online(&model("openai", &server.base)).await;
        assert_eq!(ran.code, code, "{ran:?}");
        told(if line.starts_with('#') { &ran.out } else { &ran.err }, line);
    }
}

/// F-X1: a clock that is minutes off is told from the servers' Date, and outside the window of signatures it is a failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_is_told() {
    let list = json!({ "data": [{ "id": "m-1" }] });
    let old = StandIn::start((200, vec![("date", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned())], list)).await;
    let ran = online(&model("openai", &old.base)).await;
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{ran:?}");
    assert!(
        ran.err.starts_with("online: clock: this clock is ") && ran.err.contains(" s ahead: signed requests are refused over 300 s"),
        "{ran:?}"
    );
}

/// design: the database is looked at beside the gateway that has it open, and one that is none is told.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_looked_at() {
    let world = World::start(&[], reporter).await;
    let ran = online(&[("STORE__DATABASE_URL", world.database_url())]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    told(
        &ran.out,
        "# online: store.database_url: the database answers and has the current schema",
    );
    world.end().await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.db");
    let url = format!("sqlite://{}", file.display());
    std::fs::write(&file, "").unwrap();
    let ran = online(&[("STORE__DATABASE_URL", &url)]).await;
    told(
        &ran.out,
        "# online: store.database_url: the database answers; its schema is brought up to date at start",
    );
    let ran = online(&[("STORE__DATABASE_URL", &url), ("STORE__MIGRATE_ON_START", "false")]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(&ran.err, "online: store.database_url: the schema is older than this program");
    std::fs::write(&file, "not a database, however long one reads in it\n".repeat(50)).unwrap();
    let ran = online(&[("STORE__DATABASE_URL", &url)]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(&ran.err, "online: store.database_url: ");
    let inside = format!("sqlite://{}/x.db", file.display());
    let ran = online(&[("STORE__DATABASE_URL", &inside)]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    told(&ran.err, "online: store.database_url: the database cannot be used: ");
}
