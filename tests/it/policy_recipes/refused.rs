//! Recipes that keep the bot from things: it only reads, it writes in one folder.

use std::fs;

use serde_json::{Value, json};

use super::{ONE_FOLDER, READING, cooked};
use crate::handshake::actions::{WRITE, actions, tool_words};
use crate::support::fake_model::{call, say};
use crate::support::people::{reply, rows};
use crate::support::platform::{On, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned, reads, writes};
use crate::support::world::{GROUP, World};

on_either! {
    a_bot_that_only_reads,
    writes_in_one_folder,
    no_plan_opens_what_is_denied,
}

const FORBIDDEN: &str = "a rule of the administrator forbids this call";

/// The tool messages of the task that asked for these words, as the model saw them.
async fn heard_by_model(world: &World, chat: &str) -> Vec<String> {
    let turn = world.turns_in(chat).await.pop().unwrap();
    let messages = world.api.messages(&turn).await;
    let of_tools = messages.iter().filter(|message| message["role"] == "tool");
    of_tools.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// In the chat of the recipe reads run and nothing else does, without a card; in another chat the same write asks.
async fn a_bot_that_only_reads(on: On) {
    let (news, other, u) = (on.chat("news"), on.chat("other"), on.user("u1"));
    let script = in_order(vec![
        reads(),
        planned("写", WRITE),
        clarified(),
        writes(&["a.md"]),
        call([("run_bash", json!({ "command": "echo > b.md" }))]),
        call([("web_fetch", json!({ "url": "http://127.0.0.1:1/" }))]),
        finished(),
        say("好了"),
    ]);
    let tools = [("TOOLS__RUN_BASH", "true"), ("TOOLS__WEB_FETCH", "true")];
    let world = cooked(on, READING, &tools, script).await;
    world.say(u, news, "写", GROUP).await;
    world.hears(news, "好了").await;
    let words = heard_by_model(&world, news).await;
    assert!(words[0].contains("ship the report"), "{words:?}");
    assert_eq!(words.iter().filter(|word| word.contains(FORBIDDEN)).count(), 3, "{words:?}");
    let cards = world.titled(news, "计划确认") + world.titled(news, "操作确认");
    assert_eq!((cards, world.file("a.md"), world.file("b.md")), (0, None, None));

    world.say(u, other, "写", GROUP).await;
    let plan = world.plan_card(other).await;
    world.tap(u, other, &plan, "approve", None).await;
    let command = world.card_titled(other, "操作确认").await;
    assert!(world.file("a.md").is_some() && command.words().contains("echo > b.md"));
    world.say(u, other, "/stop", GROUP).await;
    world.api.turn_in(other, "cancelled").await;
    world.end().await;
}

/// Below `out` nobody is asked; elsewhere somebody is; what Git or a secret is in is neither read nor written, below `out` too.
async fn writes_in_one_folder(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let denied = [
        ".git/hooks/post-commit",
        "./.git//config",
        "sub/.git",
        "out/.git/config",
        ".github/workflows/ci.yml",
        ".env",
        "out/.env.local",
        "out/key.pem",
    ];
    let reads = [".env", "deep/.env", ".git/config", "key.pem"];
    let reads = call(reads.map(|path| ("read_file", json!({ "path": path }))));
    let escapes = writes(&["out/../b.md", "outside.md"]);
    let inside = writes(&["out/a.md", "./out/deep/b.md"]);
    let script = in_order(vec![
        reads,
        inside,
        writes(&denied),
        writes(&["out/c.md", "README.md"]),
        escapes,
        say("好了"),
    ]);
    let world = cooked(on, ONE_FOLDER, &[], script).await;
    let workspace = world.folder.path().join("workspace");
    for folder in ["deep", ".git"] {
        fs::create_dir(workspace.join(folder)).unwrap();
    }
    for path in [".env", "deep/.env", ".git/config", "key.pem"] {
        fs::write(workspace.join(path), "hush").unwrap();
    }
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(world.file("out/a.md").is_some() && world.file("out/deep/b.md").is_some());
    assert!(world.file("out/c.md").is_some(), "it does not wait for its neighbour");
    let pending = actions(&world, "pending").await;
    let asks: Vec<&Value> = pending.iter().map(|row| &row["arguments"]["path"]).collect();
    assert_eq!((asks, rows(&card).len()), (vec![&json!("README.md")], 1));
    world.tap(u, c, &card, "approve", None).await;
    let second = world
        .seen("the card of the next write", |seen| {
            seen.in_chat(c)
                .find(|posted| posted.words().contains("outside.md") && posted.button("approve").is_some())
                .cloned()
        })
        .await;
    assert!(world.file("README.md").is_some());
    assert!(
        !second.words().contains("out/../b.md"),
        "what cannot be compared is denied: {}",
        second.words()
    );
    world.say(u, c, "拒绝", reply(&second.id)).await;
    world.hears(c, "好了").await;
    let words = tool_words(&world).await;
    let forbidden = words.iter().filter(|word| word.contains(FORBIDDEN)).count();
    assert_eq!(forbidden, 4 + denied.len() + 1, "{words:?}");
    assert!(!words.iter().any(|word| word.contains("hush")), "{words:?}");
    for path in denied
        .iter()
        .chain(&["b.md"])
        .filter(|path| **path != ".env" && **path != "./.git//config")
    {
        assert_eq!(world.file(path), None, "{path}");
    }
    assert_eq!(world.file(".env").as_deref(), Some("hush"));
    assert_eq!(world.file(".git/config").as_deref(), Some("hush"));
    world.end().await;
}

/// A plan is reviewed here too. Its OK covers what its card lists elsewhere, and nothing that a rule denies.
async fn no_plan_opens_what_is_denied(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let steps: &[(&str, &[&str])] = &[("写", &["write_file README.md", "write_file .git/hooks/post-commit"])];
    let script = in_order(vec![
        planned("写", steps),
        clarified(),
        writes(&["out/a.md", "README.md", ".git/hooks/post-commit"]),
        finished(),
        say("好了"),
    ]);
    let world = cooked(on, ONE_FOLDER, &[], script).await;
    world.say(u, c, "写", GROUP).await;
    let plan = world.plan_card(c).await;
    assert_eq!(world.file("out/a.md"), None);
    world.tap(u, c, &plan, "approve", None).await;
    world.hears(c, "好了").await;
    assert_eq!(world.titled(c, "操作确认"), 0);
    assert!(world.file("out/a.md").is_some() && world.file("README.md").is_some());
    assert_eq!(world.file(".git/hooks/post-commit"), None);
    world.end().await;
}
