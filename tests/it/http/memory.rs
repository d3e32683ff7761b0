//! What strangers make the process hold: measured from outside, as the machine sees it.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{EVENTS, JSON, message, push};
use crate::support::scripts::reporter;
use crate::support::world::World;

const CONNECTIONS: usize = 1000;
/// interface §10: 64 MiB and 32 KiB a connection.
const MOST_KIB: u64 = 64 * 1024 + 32 * CONNECTIONS as u64;

/// What each connection of a flood sends, and never ends.
struct Wave {
    what: &'static str,
    head: String,
    body: Vec<u8>,
}

fn waves() -> Vec<Wave> {
    let head = |path: &str, more: &str| format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{more}\r\n");
    let signed = "x-lark-signature: 0\r\n";
    let most = 1 << 20;
    let told = format!("content-length: {most}\r\n");
    let withheld = vec![b'x'; most - 8];
    let chunk = [format!("{most:x}\r\n").into_bytes(), withheld.clone()].concat();
    // Below the limit of headers.
    let long = format!("x-a: {}\r\n", "a".repeat(31 << 10));
    vec![
        Wave {
            what: "events",
            head: head(EVENTS, &format!("{signed}{told}")),
            body: withheld.clone(),
        },
        Wave {
            what: "requests to the API",
            head: head("/api/v1/messages", &told),
            body: withheld,
        },
        Wave {
            what: "chunks",
            head: head(EVENTS, &format!("{signed}transfer-encoding: chunked\r\n")),
            body: chunk,
        },
        Wave {
            what: "long headers and bodies",
            head: head(EVENTS, &format!("{long}{signed}{told}")),
            body: vec![b'x'; 64 << 10],
        },
        Wave {
            what: "shorter bodies",
            head: head(EVENTS, &format!("{signed}content-length: 60000\r\n")),
            body: vec![b'x'; 60_000 - 8],
        },
        Wave {
            what: "half of the headers",
            head: format!("GET / HTTP/1.1\r\nhost: x\r\n{}", long.trim_end()),
            body: Vec::new(),
        },
    ]
}

async fn flood(at: &str, wave: Wave) -> Vec<TcpStream> {
    let bytes = Arc::new([wave.head.into_bytes(), wave.body].concat());
    let one = || {
        let (at, bytes) = (at.to_owned(), Arc::clone(&bytes));
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(at).await.unwrap();
            // The gateway may refuse it meanwhile, or take no more.
            let writing = stream.write_all(&bytes);
            let _ = tokio::time::timeout(std::time::Duration::from_secs(4), writing).await;
            stream
        })
    };
    let open = join_all((0..CONNECTIONS).map(|_| one())).await;
    open.into_iter().map(Result::unwrap).collect()
}

/// interface §10: what connections hold before their proof, buffers included, is at most 64 MiB and 32 KiB a connection, whatever they send;
/// a process with little memory lives on, and an event beside them is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_connections_hold_little() {
    let mut world = World::process(&[], None, reporter).await;
    world.child().may_have(512 << 20);
    let at = world.api.base().strip_prefix("http://").unwrap().to_owned();
    // What the first event takes stays.
    let first = message(&world, "整理笔记");
    assert_eq!(push(&world, EVENTS, JSON, &first).await.status, 200);
    world.plan_card("oc_http").await;
    let before = world.child().peak_kib();
    let mut told = Vec::new();
    for wave in waves() {
        let what = wave.what;
        let open = flood(&at, wave).await;
        let event = message(&world, &format!("整理笔记 {what}"));
        assert_eq!(push(&world, EVENTS, JSON, &event).await.status, 200, "beside {what}");
        drop(open);
        told.push((what, world.child().peak_kib() - before));
    }
    println!("memory: {before} KiB before, then more by {told:?}");
    assert!(told.iter().all(|(_, more)| *more <= MOST_KIB), "{told:?}, at most {MOST_KIB}");
    world.end().await;
}
