//! Bodies too long or too slow, and a ledger that cannot commit.

use std::time::{Duration, Instant};

use countersign_playground::Sealed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{CARDS, EVENTS, JSON, message, push};
use crate::support::platform::On;
use crate::support::quiet::{hold, quiet};
use crate::support::scripts::reporter;
use crate::support::world::{DIRECT, SECRETS, World};

/// M-1, F-P7: a body without a told length is cut off at the limit, and the refusal is heard however long the body is.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    let world = World::process(&[], None, reporter).await;
    for length in [1_048_577, 3 << 20, 3 << 20, 3 << 20, 16 << 20] {
        let body = Sealed {
            headers: Vec::new(),
            body: vec![b'x'; length],
        };
        assert_eq!(push(&world, EVENTS, JSON, &body).await.code(), "payload_too_large");
        assert_eq!(push(&world, EVENTS, "text/plain", &body).await.code(), "unsupported_media_type");
        assert_eq!(push(&world, "/nothing", JSON, &body).await.code(), "not_found");
    }
    let at_limit = Sealed {
        headers: Vec::new(),
        body: vec![b'x'; 1_048_576],
    };
    assert_eq!(push(&world, EVENTS, JSON, &at_limit).await.code(), "unauthorized");
    let chunk = vec![b'x'; 1 << 16];
    let head = format!(
        "POST {EVENTS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nx-lark-signature: 0\r\n\r\n"
    );
    let mut stream = open(&world).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..20 {
        // The gateway may hang up before everything is sent.
        let _ = stream.write_all(&[b"10000\r\n", &chunk[..], b"\r\n"].concat()).await;
    }
    let _ = stream.write_all(b"0\r\n\r\n").await;
    assert_eq!(status_line(&mut stream).await, "HTTP/1.1 413 Payload Too Large");
    let mut stream = open(&world).await;
    stream.write_all(format!("{head}zz\r\n").as_bytes()).await.unwrap();
    assert_eq!(
        status_line(&mut stream).await,
        "HTTP/1.1 400 Bad Request",
        "a body that breaks off is not a long one"
    );
    world.end().await;
}

/// M-1, F-S4: a body that trickles in is answered with 408 after ten seconds, and delays nobody meanwhile.
#[tokio::test]
async fn a_slow_body_is_given_up() {
    let world = World::start(&[], reporter).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = open(&world).await;
        let head = format!("POST {EVENTS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    world.plan_card("oc_p1").await;
    for mut stream in slow {
        assert_eq!(status_line(&mut stream).await, "HTTP/1.1 408 Request Timeout");
    }
    world.end().await;
}

/// interface: without signature headers nothing over 8 KiB can be Lark's, and nothing over 1 KiB Slack's: it is refused before it is
/// read, told lengths and chunks alike.
#[tokio::test]
async fn a_long_body_without_a_signature_is_not_read() {
    let both = [SECRETS, &[("CHANNELS__LARK__ENABLED", "true")]].concat();
    let world = World::start_on(On::Slack, &both, reporter).await;
    for (path, least) in [(EVENTS, 8 << 10), ("/webhooks/slack/events", 1 << 10)] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
        let mut told = open(&world).await;
        told.write_all(format!("{head}content-length: {}\r\n\r\n", least + 1).as_bytes())
            .await
            .unwrap();
        assert_eq!(
            status_line(&mut told).await,
            "HTTP/1.1 401 Unauthorized",
            "{path}, by its length alone"
        );
        let mut chunked = open(&world).await;
        let chunk = format!("{:x}\r\n{}", least + 1, "x".repeat(least + 1));
        chunked
            .write_all(format!("{head}transfer-encoding: chunked\r\n\r\n{chunk}").as_bytes())
            .await
            .unwrap();
        assert_eq!(status_line(&mut chunked).await, "HTTP/1.1 401 Unauthorized", "{path}, by what came");
        let mut signed = open(&world).await;
        let names = "x-lark-signature: 0\r\nx-slack-signature: 0\r\n";
        signed
            .write_all(format!("{head}{names}content-length: {}\r\n\r\n{}", least + 1, "x".repeat(least + 1)).as_bytes())
            .await
            .unwrap();
        assert_eq!(
            status_line(&mut signed).await,
            "HTTP/1.1 401 Unauthorized",
            "{path}, read and refused"
        );
    }
    world.end().await;
}

/// interface: all bodies in flight hold 64 MiB together; those that have been arriving longest make room, so a long event is taken.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_in_flight_have_a_bound() {
    let world = World::start(&[], reporter).await;
    let head = format!("POST {EVENTS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-lark-signature: 0\r\n");
    let most = (1 << 20) - 8;
    let mut open_bodies = Vec::new();
    for _ in 0..72 {
        let mut stream = open(&world).await;
        stream
            .write_all(format!("{head}content-length: {}\r\n\r\n", most + 8).as_bytes())
            .await
            .unwrap();
        // The gateway may have refused it meanwhile.
        let _ = stream.write_all(&vec![b'x'; most]).await;
        open_bodies.push(stream);
    }
    for text in ["整理笔记", &"长".repeat(100_000)] {
        let event = message(&world, text);
        assert_eq!(push(&world, EVENTS, JSON, &event).await.status, 200, "beside them");
    }
    let mut statuses = Vec::new();
    for stream in &mut open_bodies {
        statuses.push(status_line(stream).await);
    }
    let refused = statuses.iter().filter(|line| *line == "HTTP/1.1 503 Service Unavailable").count();
    assert!(refused >= 8, "{refused} of 72 were refused; 64 MiB have room for 64");
    assert_eq!(statuses[71], "HTTP/1.1 408 Request Timeout", "the newest had room");
    world.plan_card("oc_http").await;
    world.end().await;
}

/// M-1: what could not be committed gets 503 with Retry-After within a second; sent again it is taken, once.
#[tokio::test]
async fn what_cannot_be_committed_is_sent_again() {
    let world = World::start(&[], reporter).await;
    let event = message(&world, "整理笔记");
    let held = hold(&world).await;
    let started = Instant::now();
    let reply = push(&world, EVENTS, JSON, &event).await;
    assert_eq!(
        (reply.status, reply.code().as_str(), reply.header("retry-after")),
        (503, "unavailable", "1")
    );
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}: the platform waits three seconds",
        started.elapsed()
    );
    held.release().await;
    let again = push(&world, EVENTS, JSON, &event).await;
    assert_eq!(again.status, 200, "{again:?}");
    let card = world.plan_card("oc_http").await;
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 1);

    // A click is not sent again by the platform: the person sees that it failed, and presses again; that counts once, too.
    let click = world.sealed(
        &world
            .tenant
            .tap("ou_u1", "oc_http", &card.id, &card.button("approve").unwrap(), None),
    );
    let held = hold(&world).await;
    let started = Instant::now();
    let reply = push(&world, CARDS, JSON, &click).await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "unavailable"));
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}: the platform waits three seconds",
        started.elapsed()
    );
    held.release().await;
    world.tap("ou_u1", "oc_http", &card, "approve", None).await.done("确认");
    world.hears("oc_http", "全部完成").await;
    quiet(&world).await;
    assert_eq!(world.count("oc_http", "全部完成"), 1);
    let turn = world.api.turn_in("oc_http", "completed").await;
    assert_eq!(
        world
            .api
            .event_types(&turn)
            .await
            .iter()
            .filter(|kind| *kind == "turn_resumed")
            .count(),
        1
    );
    world.end().await;
}

async fn open(world: &World) -> TcpStream {
    TcpStream::connect(world.api.url("").strip_prefix("http://").unwrap())
        .await
        .unwrap()
}

async fn status_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        match stream.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(error) => panic!("{error} after {line:?}"),
        }
    }
    String::from_utf8(line).unwrap().trim().to_owned()
}
