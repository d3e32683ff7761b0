//! Rows that do not read back, and a file that went bad on its disk while nobody looked.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::json;
use sqlx::Executor;
use tokio::sync::Mutex;

use super::ready;
use crate::support::api::eventually;
use crate::support::command::run;
use crate::support::fake_model::{Gate, Script, say};
use crate::support::quiet::{connect, database, quiet, stored};
use crate::support::scripts::{gated, reporter};
use crate::support::stores::Pairing;
use crate::support::world::{DIRECT, GROUP, World};

const PAGE: usize = 4096;
/// A page that holds rows of a table, <https://www.sqlite.org/fileformat2.html#b_tree_pages>.
const ROWS: u8 = 0x0d;

/// Spoils a page in the middle of the file, as a disk does: nobody writes down that it was changed.
fn rot(path: &Path) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let changed = file.metadata().unwrap().modified().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let pages: Vec<usize> = (1..bytes.len() / PAGE).filter(|page| bytes[page * PAGE] == ROWS).collect();
    // The widest stretch of such pages is the inbox; what a start reads is at its end.
    let page = pages[pages.len() / 2];
    file.seek(SeekFrom::Start((page * PAGE) as u64)).unwrap();
    file.write_all(&[0x5a; PAGE]).unwrap();
    file.set_modified(changed).unwrap();
    file.sync_all().unwrap();
}

/// interface §10: one damaged row of each table that is read for all chats: tasks of other chats go on, and `/readyz` names the rows.
#[tokio::test]
async fn a_damaged_row_stops_no_other_chat() {
    let world = World::process(&[], None, |_| say("好了")).await;
    world.say("ou_u1", "oc_bad", "你好", DIRECT).await;
    world.hears("oc_bad", "好了").await;
    quiet(&world).await;
    let mut beside = connect(&world).await;
    let text = "UPDATE lanes SET conversation = '{', ready_at = 0";
    assert_eq!(beside.execute(text).await.unwrap().rows_affected(), 1);
    world.say("ou_u2", "oc_good", "你好", DIRECT).await;
    world.hears("oc_good", "好了").await;
    let (status, body) = world.api.try_get("/readyz").await;
    assert_eq!((status, &body["status"]), (200, &json!("degraded")));
    let ledger = body["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["name"] == "ledger")
        .unwrap();
    let told = ledger["message"].as_str().unwrap();
    assert!(
        told.contains("passed over: lanes ") && told.contains("column `conversation`"),
        "{told}"
    );
    // The same person asks again in the same chat.
    world.say("ou_u1", "oc_bad", "还在吗", DIRECT).await;
    eventually("a mended lane", || async { (ready(&world).await.1 == "ready").then_some(()) }).await;
    world.end().await;
}

/// interface §10: a task that goes bad while it waits in its person's queue is passed over and named: `/stop` and their next tasks are heard.
#[tokio::test]
async fn a_damaged_task_holds_up_nobody() {
    let (c, u) = ("oc_c1", "ou_u1");
    let world = World::start(&[], reporter).await;
    let beside = Mutex::new(connect(&world).await);
    for stops in [false, true] {
        let gate = Gate::new();
        world.model.script("慢任务", Script::new().then(gated(&gate, say("慢任务做完了"))));
        world.model.script("下一个", Script::new().text("下一个做完了"));
        world.say(u, c, "慢任务", GROUP).await;
        gate.reached().await;
        world.say(u, c, "坏任务", GROUP).await;
        eventually("a task that waits", || async {
            let waiting = "UPDATE inbox SET payload = '{' WHERE state = 'laned'";
            (beside.lock().await.execute(waiting).await.unwrap().rows_affected() == 1).then_some(())
        })
        .await;
        if stops {
            world.say(u, c, "/stop", GROUP).await;
            world.api.turn_in(c, "cancelled").await;
        }
        let before = world.count(c, "下一个做完了");
        world.say(u, c, "下一个", GROUP).await;
        gate.open();
        eventually("the next task", || async {
            (world.count(c, "下一个做完了") > before).then_some(())
        })
        .await;
    }
    quiet(&world).await;
    assert_eq!(ready(&world).await.2, "degraded", "the rows are named");
    assert_eq!(
        stored(&world, "SELECT outcome FROM inbox WHERE payload = '{'").await,
        ["unreadable", "unreadable"]
    );
    world.end().await;
}

/// F-Q6: a file that went bad after an orderly stop starts without being read; `check --online` reads it and names the damage.
#[tokio::test]
async fn check_online_finds_damage() {
    if !Pairing::Sqlite.runs() {
        return;
    }
    let mut world = World::start(&[], reporter).await;
    for number in 0..300 {
        // Long, and nothing comes of it.
        let said = json!({ "chat_id": "chat_a", "user_id": "u1", "text": format!("/status {}", "x".repeat(2000)), "event_id": format!("e{number}") });
        assert_eq!(world.api.post("/api/v1/messages", &said).await.0, 202);
    }
    quiet(&world).await;
    world.stop().await;
    let file = database(&world);
    let url = format!("sqlite://{}", file.display());
    let check = async || {
        run(
            world.folder.path(),
            &[("STORE__DATABASE_URL", url.as_str())],
            &["check", "--online"],
        )
        .await
    };
    assert!(!check().await.err.contains("damaged"));
    rot(&file);
    let ran = check().await;
    assert!(
        ran.code == 1 && ran.err.contains("countersign.db") && ran.err.contains("the file is damaged"),
        "{ran:?}"
    );
    world.restart(&[]).await;
    assert_eq!(ready(&world).await.1, "ready");
    world.stop().await;
}
