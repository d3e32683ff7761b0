//! No secret of the configuration is ever logged, answered, shown to the model or stored.

use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::quiet::{contents, quiet};
use crate::support::raw::{get, headers, post, send};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, SECRETS, World};
use countersign_playground::Fault;

const CONSOLE: &str = "console-canary-0123456789abcdef";
const MODEL: &str = "sk-canary-0123456789abcdef";

/// Everything that must never be seen.
fn canaries(world: &World) -> Vec<String> {
    let mut all: Vec<String> = SECRETS.iter().skip(1).map(|(_, secret)| (*secret).to_owned()).collect();
    all.extend([CONSOLE.to_owned(), MODEL.to_owned()]);
    all.extend(world.lark().tokens());
    all
}

#[track_caller]
fn clean(world: &World, what: &str, bytes: &[u8]) {
    for canary in canaries(world) {
        let found = bytes.windows(canary.len()).position(|window| window == canary.as_bytes());
        let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(120)..(at + 40).min(bytes.len())]).into_owned());
        assert_eq!(around, None, "{canary} in {what}");
    }
}

/// Reads everything that the API shows.
async fn everything(world: &World) -> String {
    let mut all = String::new();
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/v1/turns",
        "/api/v1/reviews?status=approved",
        "/api/v1/reviews",
        "/api/v1/actions?status=executed",
        "/api/v1/messages?chat=chat_a",
    ] {
        let reply = get(world, path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        all.push_str(&format!("{reply:?}"));
    }
    let form = headers(&[
        ("content-type", "application/x-www-form-urlencoded"),
        ("sec-fetch-site", "same-origin"),
    ]);
    let login = send(world, "POST", "/console/login", &form, format!("token={CONSOLE}").into_bytes()).await;
    all.push_str(&format!("{login:?}"));
    let session = headers(&[("cookie", login.header("set-cookie").split(';').next().unwrap())]);
    for path in ["/console/?chat=chat_a", "/console/live?chat=chat_a", "/console/login"] {
        all.push_str(&format!("{:?}", send(world, "GET", path, &session, Vec::new()).await));
    }
    for turn in world.api.turns().await {
        let record = format!("/console/turn/{}", turn["id"].as_str().unwrap());
        let record = send(world, "GET", &record, &session, Vec::new()).await;
        assert_eq!(record.status, 200, "{record:?}");
        all.push_str(&record.text);
        for part in ["", "/messages", "/events"] {
            all.push_str(
                &get(world, &format!("/api/v1/turns/{}{part}", turn["id"].as_str().unwrap()))
                    .await
                    .text,
            );
        }
    }
    all
}

/// M-1, design: a whole handshake with faults of every kind, at the most talkative log level, in both formats: no secret in the log, in any
/// answer, in what the chat or the model sees, or in the database's bytes.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaves_the_configuration() {
    for format in ["pretty", "json"] {
        let settings = [
            ("CHANNELS__CONSOLE__TOKEN", CONSOLE),
            ("MODEL__API_KEY", MODEL),
            ("TELEMETRY__LOG_LEVEL", "trace"),
            ("TELEMETRY__LOG_FORMAT", format),
        ];
        let mut world = World::process(&settings, None, reporter).await;
        world.api = world.api.with_token(CONSOLE);
        world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
        let card = world.plan_card("oc_p1").await;
        world.lark().expire_tokens();
        world.chat.fault(
            "patch",
            Fault::Answer {
                status: 500,
                code: 1,
                header: None,
            },
        );
        world.tap("ou_u2", "oc_p1", &card, "approve", None).await;
        world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
        world.hears("oc_p1", "全部完成").await;
        let said = post(
            &world,
            "/api/v1/messages",
            &json!({ "chat_id": "chat_a", "user_id": "u1", "text": "整理笔记" }),
        )
        .await;
        assert_eq!(said.status, 202);
        world.api.review_in("chat_a").await;

        // Requests that are refused, each with a secret somewhere in it.
        let key = SECRETS[3].1;
        let token = SECRETS[2].1;
        let event = world.tenant.message(&countersign_playground::Words {
            user: "ou_u1",
            chat: "oc_p1",
            text: "OK",
            ..Default::default()
        });
        let mut wrong = world.sealed(&event);
        wrong.headers.push(("X-Lark-Signature".to_owned(), key.to_owned()));
        wrong.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let mut answers = String::new();
        for (path, given, body) in [
            ("/webhooks/lark/events", wrong.headers.clone(), wrong.body.clone()),
            (
                "/webhooks/lark/events",
                headers(&[("content-type", "application/json")]),
                format!("{{\"token\":\"{token}\"").into_bytes(),
            ),
            (
                "/webhooks/lark/events",
                headers(&[("content-type", "application/json")]),
                event.body.to_string().into_bytes(),
            ),
            (
                "/api/v1/messages",
                headers(&[
                    ("content-type", "application/json"),
                    ("authorization", &format!("Bearer {CONSOLE}x")),
                ]),
                b"{}".to_vec(),
            ),
            ("/api/v1/nothing", Vec::new(), Vec::new()),
        ] {
            let reply = send(&world, "POST", path, &given, body).await;
            assert!(reply.status >= 400, "{reply:?}");
            answers.push_str(&format!("{reply:?}"));
        }
        quiet(&world).await;
        answers.push_str(&everything(&world).await);
        clean(&world, "answers", answers.as_bytes());
        let log = world.child().log();
        assert!(
            log.contains(": waiting for plan_review") && log.contains("event refused"),
            "it logs: {log}"
        );
        clean(&world, "the log", log.as_bytes());
        for seen in world.model.seen() {
            clean(&world, "a model request", seen.body.to_string().as_bytes());
        }
        let calls: Vec<Value> = world
            .chat
            .snapshot()
            .calls
            .iter()
            .filter(|call| call.endpoint != "token")
            .map(|call| call.body.clone())
            .collect();
        clean(&world, "calls to the chat", json!(calls).to_string().as_bytes());
        clean(&world, "the database", &contents(&world).await);
        assert_eq!(world.chat.snapshot().violations, Vec::<String>::new());
    }
}

/// design: credentials that the platform and the model refuse are told to the admin without them.
#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_not_shown() {
    let settings = [
        ("CHANNELS__LARK__APP_SECRET", "as-wrong-canary-0123456789"),
        ("MODEL__API_KEY", MODEL),
        ("TELEMETRY__LOG_LEVEL", "trace"),
    ];
    let mut world = World::process(&settings, None, |_| Value::Null).await;
    world
        .model
        .script("", crate::support::fake_model::Script::new().status(401, &[]).status(401, &[]));
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let turn = world.api.turn_in("oc_p1", "failed").await;
    assert_eq!(turn["reason"], "model_error");
    let ready = get(&world, "/readyz").await;
    assert_eq!(ready.json()["status"], "degraded", "{ready:?}");
    let log = world.child().log();
    let shown = format!("{log}{ready:?}{turn}{}", String::from_utf8_lossy(&contents(&world).await));
    for canary in ["as-wrong-canary", MODEL] {
        assert!(!shown.contains(canary), "{canary}");
    }
    // `check` and a failing start say what is wrong without saying the secret.
    let folder = tempfile::tempdir().unwrap();
    let env = [
        ("CHANNELS__LARK__APP_SECRET", "as canary\n0123456789"),
        ("STORE__DATABASE_URL", "postgres://ann:pw-canary@db/x"),
        ("CHANNELS__CONSOLE__TOKEN", "ct-canary\u{7}"),
    ];
    let ran = run(folder.path(), &env, &["check"]).await;
    assert!(!format!("{}{}", ran.out, ran.err).contains("canary"), "{ran:?}");
}

/// design: secrets, from its start on a gateway leaves no core dump, and processes of its own user cannot read its environment: whatever
/// tools are configured.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_started_gateway_closes_its_memory() {
    let mut world = World::process(&[], None, reporter).await;
    let pid = world.child().id();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
    // Root may read everything; everybody else is refused.
    if !rustix::process::getuid().is_root() {
        assert!(std::fs::read(format!("/proc/{pid}/environ")).is_err());
    }
    world.end().await;
}

/// interface: so does every other command: `check --online` starts MCP servers, which are processes of our user.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_check_closes_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let looks = format!("cat /proc/$PPID/limits > {}/limits", folder.path().display());
    let servers = json!([{"name": "srv", "command": ["/bin/sh", "-c", looks], "effects": {}}]).to_string();
    run(folder.path(), &[("TOOLS__MCP_SERVERS", &servers)], &["check", "--online"]).await;
    let limits = std::fs::read_to_string(folder.path().join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{limits}");
}
