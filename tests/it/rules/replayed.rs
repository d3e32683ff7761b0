//! `countersign rules test` and the console's page: what rules would have done to the calls of a ledger.

use serde_json::json;

use crate::console_page::form;
use crate::support::command::{configure, run};
use crate::support::fake_model::{call, say};
use crate::support::raw::get;
use crate::support::scripts::in_order;
use crate::support::world::{GROUP, World};

const U: &str = "ou_u1";

/// A gateway that runs, and whose ledger has five writes: three that people approved, and two that they refused.
async fn played() -> World {
    let write = |path: &str| call([("write_file", json!({ "path": path, "content": "x".repeat(300) }))]);
    let script = move |request: &serde_json::Value| {
        let messages = request["messages"].as_array().unwrap();
        let asked = messages.iter().rfind(|message| message["role"] == "user").unwrap()["content"]
            .as_str()
            .unwrap();
        let path = asked.rsplit(' ').next().unwrap();
        in_order(vec![write(path), say(&format!("完成 {path}"))])(request)
    };
    let world = World::process(&[], None, script).await;
    for (at, (path, verb)) in [
        ("out/a.md", "approve"),
        ("out/b.md", "approve"),
        ("out/c.md", "reject"),
        ("hr/pay.md", "approve"),
        ("hr/all.md", "reject"),
    ]
    .into_iter()
    .enumerate()
    {
        let chat = format!("oc_{at}");
        world.say(U, &chat, &format!("写 {path}"), GROUP).await;
        let card = world.card_titled(&chat, "操作确认").await;
        world.tap(U, &chat, &card, verb, None).await;
        world.hears(&chat, &format!("完成 {path}")).await;
    }
    world
}

const RULES: &str = "\
- {tool: write_file, where: {path: \"out/*\"}, then: allow}
- {tool: write_file, where: {path: \"hr/*\"}, then: deny}
";

/// Ids and times of a line as `#`.
fn plain(out: &str) -> String {
    let word = |word: &str| {
        let id = word.trim_matches(['(', ')', ',']);
        let number =
            id.len() == 24 && id.ends_with('Z') || id.starts_with("act_") || (id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        if number { word.replace(id, "#") } else { word.to_owned() }
    };
    out.lines()
        .map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// interface §1: the command reads beside the running gateway, replays the rules of a file or of the configuration, and prints a table.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_what_would_change() {
    let world = played().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("new.yaml"), RULES).unwrap();
    let workspace = world.folder.path().join("workspace").display().to_string();
    let env = [("STORE__DATABASE_URL", world.database_url()), ("TOOLS__WORKSPACE", &workspace)];
    let ran = run(folder.path(), &env, &["rules", "test", "--file", "new.yaml"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let rows = "\
5 calls, 2 rules. \"let through\": they were refused, and would have run.

    calls  asks less  asks more    denied  let through  by rule
        3          3          0         0            1  #  {tool: \"write_file\", where: {\"path\": \"out/*\"}, then: allow}
        2          0          0         2            0  #  {tool: \"write_file\", where: {\"path\": \"hr/*\"}, then: deny}

    calls  asks less  asks more    denied  let through  by tool
        5          3          0         2            1  write_file
        5          3          0         2            1  all tools

1 refusals would have been let through:
  #  oc_2  ou_u1 refused write_file path: \"out/c.md\", content: \"";
    assert!(plain(&ran.out).starts_with(rows), "{}", plain(&ran.out));
    configure(folder.path(), &format!("rules:\n  {}", RULES.trim_end().replace('\n', "\n  ")));
    let same = run(folder.path(), &env, &["rules", "test"]).await;
    assert_eq!((same.code, &same.out), (0, &ran.out), "the rules of the configuration");
    let none = run(folder.path(), &env, &["rules", "test", "--since", "0h"]).await;
    assert!(none.code == 0 && none.out.starts_with("0 calls"), "{none:?}");
    std::fs::write(folder.path().join("wrong.yaml"), "- {tool: a, then: maybe}\n").unwrap();
    let wrong = run(folder.path(), &env, &["rules", "test", "--file", "wrong.yaml"]).await;
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""));
    assert!(wrong.err.starts_with("wrong.yaml:1: rules: then: found maybe"), "{wrong:?}");
    for args in [&["rules"][..], &["rules", "test", "--since", "soon"], &["rules", "test", "extra"]] {
        assert_eq!(run(folder.path(), &env, args).await.code, 2, "{args:?}");
    }
    let missing = run(folder.path(), &env, &["rules", "test", "--file", "none.yaml"]).await;
    assert_eq!((missing.code, missing.out.as_str()), (1, ""));
    world.end().await;
}

/// interface §10: rules that take long to try hold up no other request, and end in time; a second trial waits for the first.
#[tokio::test(flavor = "multi_thread")]
async fn trying_rules_holds_up_nobody() {
    let ours = ("sec-fetch-site", "same-origin");
    let long = |path: &str| ("write_file", json!({ "path": path, "content": "x".repeat(3000) }));
    let script = in_order(vec![call([long("a.md"), long("b.md"), long("c.md")]), say("完成")]);
    let world = World::process(&[], None, script).await;
    world.say(U, "oc_1", "写", GROUP).await;
    world.card_titled("oc_1", "操作确认").await;
    let one = format!(
        "- {{tool: write_file, where: {{content: \"*{}\"}}, then: deny}}\n",
        "x".repeat(254) + "y"
    );
    // More work than there is time for.
    let rules = one.repeat(480);
    let fields = [("rules", rules.as_str())];
    let headers = [ours];
    let (answered, first, second) = {
        let trial = || form(&world, "/console/rules", &fields, &headers);
        let mut trials = std::pin::pin!(async { tokio::join!(trial(), trial()) });
        let mut answered = 0;
        loop {
            let health = tokio::time::timeout(std::time::Duration::from_secs(3), get(&world, "/healthz"));
            tokio::select! {
                (first, second) = &mut trials => break (answered, first, second),
                health = health => {
                    assert_eq!(health.expect("an answer meanwhile").status, 200);
                    answered += 1;
                }
            }
        }
    };
    assert_eq!((first.status, second.status), (200, 200));
    assert!(answered > 0);
    for page in [first, second] {
        assert!(page.text.contains("role=\"status\">时间不够，只统计了最新的 "), "{}", page.text);
    }
    world.end().await;
}

/// design: the console shows the same before the rules are saved, tells mistakes with their line, and takes forms of its own page alone.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_shows_what_would_change() {
    let ours = ("sec-fetch-site", "same-origin");
    let world = played().await;
    let empty = get(&world, "/console/rules").await;
    assert!(empty.status == 200 && empty.text.contains("name=\"rules\"") && !empty.text.contains("<table>"));
    let shown = form(&world, "/console/rules", &[("rules", RULES)], &[ours]).await;
    assert_eq!(shown.status, 200);
    for part in [
        "<td>3</td><td>3</td><td>0</td><td>0</td><td>1</td>",
        "<td>2</td><td>0</td><td>0</td><td>2</td><td>0</td>",
        "<code>write_file path: &quot;out&#x2f;c.md&quot;",
        "oc_2",
    ] {
        assert!(shown.text.contains(part), "{part} in {}", shown.text);
    }
    let wrong = form(&world, "/console/rules", &[("rules", "- {tool: a, then: maybe}")], &[ours]).await;
    assert!(
        wrong.status == 422 && wrong.text.contains("rules:1: rules: then: found maybe"),
        "{}",
        wrong.text
    );
    let foreign = form(&world, "/console/rules", &[("rules", RULES)], &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(foreign.status, 403);
    world.end().await;
}
