//! A file that went bad on its disk while nobody looked.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::json;

use super::ready;
use crate::support::api::eventually;
use crate::support::quiet::{database, quiet};
use crate::support::scripts::reporter;
use crate::support::stores::Pairing;
use crate::support::world::World;

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

/// F-Q6: a file that is as it was left is not read through before the start, but soon after it: damage is named, and the gateway takes
/// events as long as it can.
#[tokio::test]
async fn damage_is_found_beside_the_work() {
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
    rot(&database(&world));
    world.restart(&[]).await;
    let (status, word, ledger) = eventually("damage that is named", || async {
        let found = ready(&world).await;
        (found.1 != "ready").then_some(found)
    })
    .await;
    assert_eq!((status, word.as_str(), ledger.as_str()), (200, "degraded", "degraded"));
    let (_, body) = world.api.try_get("/readyz").await;
    let message = body["parts"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("countersign.db") && message.contains("the file is damaged"),
        "{message}"
    );
    world.stop().await;
}
