//! One connection against a peer that misbehaves. The time is paused: a wait of half a minute takes none.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{Clock, Millis};
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::json;
use tokio::io::DuplexStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::channels::SlackReceived;

/// `hello` greets, `bye` recycles, anything else is an event that is answered by itself.
#[derive(Debug)]
struct Plain;

impl SocketProtocol for Plain {
    fn waits_for_greeting(&self) -> bool {
        true
    }

    fn liveness(&self) -> Liveness {
        Liveness {
            every: Duration::from_secs(10),
            within: Duration::from_secs(20),
        }
    }

    fn ping(&self) -> Frame {
        Frame::Ping
    }

    fn read(&mut self, frame: Frame, _: Millis) -> SocketRead {
        let Frame::Text(text) = frame else {
            return SocketRead::Nothing;
        };
        match text.as_str() {
            "hello" => SocketRead::Greeted,
            "bye" => SocketRead::Recycle(text),
            _ => SocketRead::Event(SocketEvent {
                received: Ok(SocketReceived::Slack(SlackReceived::Challenge(text.clone()))),
                answer: Box::new(|answer| (*answer != SocketAnswer::NotTaken).then_some(Frame::Text(text))),
            }),
        }
    }
}

/// The gateway's end and the peer.
struct Pair {
    peer: WebSocketStream<DuplexStream>,
    serving: JoinHandle<ConnectionEnd>,
    greeted: oneshot::Receiver<()>,
    recycle: oneshot::Receiver<String>,
    stop: CancellationToken,
    /// The events that were handed over, in their order.
    handled: Arc<Mutex<Vec<String>>>,
    /// As many events are stored as it has permits.
    ledger: Arc<Semaphore>,
}

async fn pair() -> Pair {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(1000);
    let ours = WebSocketStream::from_raw_socket(ours, Role::Client, Some(config)).await;
    let peer = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    let ((greeted_tx, greeted), (recycle_tx, recycle)) = (oneshot::channel(), oneshot::channel());
    let (stop, handled, ledger) = (CancellationToken::new(), Arc::default(), Arc::new(Semaphore::new(0)));
    let signals = Signals {
        greeted: greeted_tx,
        recycle: recycle_tx,
        stop: stop.clone(),
    };
    let (book, commits): (Arc<Mutex<Vec<String>>>, Arc<Semaphore>) = (Arc::clone(&handled), Arc::clone(&ledger));
    let socket = Socket::new(ours, Box::new(Plain), String::new());
    let serving = tokio::spawn(async move {
        let handle = |received| {
            let (book, commits) = (Arc::clone(&book), Arc::clone(&commits));
            async move {
                let Ok(SocketReceived::Slack(SlackReceived::Challenge(text))) = received else {
                    return SocketAnswer::NotTaken;
                };
                book.lock().push(text.clone());
                assert_ne!(text, "a bug");
                commits.acquire().await.unwrap().forget();
                if text == "refused" {
                    SocketAnswer::NotTaken
                } else {
                    SocketAnswer::Taken(Some(json!({})))
                }
            }
        };
        socket.serve(&Clock::system(), signals, handle).await
    });
    Pair {
        peer,
        serving,
        greeted,
        recycle,
        stop,
        handled,
        ledger,
    }
}

impl Pair {
    async fn say(&mut self, text: &str) {
        self.peer.send(Message::text(text)).await.unwrap();
    }

    /// The next text that comes to the peer, which answers pings meanwhile.
    async fn hears(&mut self) -> Option<String> {
        while let Some(Ok(message)) = self.peer.next().await {
            if let Message::Text(text) = message {
                return Some(text.to_string());
            }
        }
        None
    }
}

/// reach §1.3: an event is acknowledged after its commit and not before; events are handed over in their order.
#[tokio::test(start_paused = true)]
async fn an_acknowledgement_follows_the_commit() {
    let mut pair = pair().await;
    pair.say("hello").await;
    (&mut pair.greeted).await.unwrap();
    for text in ["1", "2", "3"] {
        pair.say(text).await;
    }
    let early = tokio::time::timeout(Duration::from_secs(25), pair.hears()).await;
    assert!(early.is_err(), "acknowledged before the commit: {early:?}");
    pair.ledger.add_permits(3);
    for text in ["1", "2", "3"] {
        assert_eq!(pair.hears().await.as_deref(), Some(text));
    }
    assert_eq!(*pair.handled.lock(), ["1", "2", "3"]);
}

/// What could not be stored is not acknowledged; neither is what a bug of ours ended. The connection goes on.
#[tokio::test(start_paused = true)]
async fn what_is_not_stored_is_not_acknowledged() {
    let mut pair = pair().await;
    pair.ledger.add_permits(10);
    for text in ["hello", "refused", "a bug", "good"] {
        pair.say(text).await;
    }
    assert_eq!(pair.hears().await.as_deref(), Some("good"));
    assert_eq!(pair.handled.lock().len(), 3);
}

/// reach §1.5: hundreds of events at once leave pings answered; more wait with the peer, and none is lost.
#[tokio::test(start_paused = true)]
async fn a_burst_keeps_pings_answered() {
    let mut pair = pair().await;
    pair.say("hello").await;
    for number in 0..250 {
        pair.say(&number.to_string()).await;
    }
    pair.peer.send(Message::Ping(Vec::from("are you there?").into())).await.unwrap();
    let pong = loop {
        match pair.peer.next().await {
            Some(Ok(Message::Pong(bytes))) if !bytes.is_empty() => break bytes,
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(&pong[..], b"are you there?");
    for number in 250..300 {
        pair.say(&number.to_string()).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pair.handled.lock().len(), 256, "no more than these wait for the ledger");
    pair.ledger.add_permits(300);
    let mut answered = Vec::new();
    while answered.len() < 300 {
        answered.push(pair.hears().await.unwrap());
    }
    let all: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(*pair.handled.lock(), all, "handed over in their order");
    // They are acknowledged as they are stored.
    answered.sort_by_key(|number| number.parse::<u32>().unwrap());
    assert_eq!(answered, all);
}

/// reach §1.2: a platform that never greets is left after ten seconds.
#[tokio::test(start_paused = true)]
async fn a_missing_greeting_ends_it() {
    let (began, mut pair) = (Instant::now(), pair().await);
    let answering = tokio::spawn(async move { while let Some(Ok(_)) = pair.peer.next().await {} });
    assert_eq!(pair.serving.await.unwrap(), ConnectionEnd::Lost("the platform did not greet"));
    assert_eq!(began.elapsed().as_secs(), 10);
    answering.abort();
}

/// reach §1.5: a peer that takes everything and says nothing is left after half a minute.
#[tokio::test(start_paused = true)]
async fn a_half_open_peer_ends_it() {
    let began = Instant::now();
    let mut pair = pair().await;
    pair.say("hello").await;
    // It answers no ping: nobody reads there.
    let ending = (&mut pair.serving).await.unwrap();
    assert_eq!(ending, ConnectionEnd::Lost("the peer is silent"));
    assert_eq!(began.elapsed().as_secs(), 30);
}

/// A quiet peer that answers pings is kept.
#[tokio::test(start_paused = true)]
async fn a_quiet_peer_is_kept() {
    let mut pair = pair().await;
    pair.ledger.add_permits(1);
    pair.say("hello").await;
    let quiet = tokio::time::timeout(Duration::from_secs(3600), pair.hears()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    pair.say("still there").await;
    assert_eq!(pair.hears().await.as_deref(), Some("still there"));
}

/// reach §1.4: a connection that will be ended says so once, and serves on until the peer ends it, or for half a minute.
#[tokio::test(start_paused = true)]
async fn a_recycled_connection_serves_to_its_end() {
    for peer_ends in [true, false] {
        let mut pair = pair().await;
        pair.ledger.add_permits(10);
        for text in ["hello", "bye", "bye", "late"] {
            pair.say(text).await;
        }
        assert_eq!((&mut pair.recycle).await.as_deref(), Ok("bye"));
        assert_eq!(pair.hears().await.as_deref(), Some("late"));
        let began = Instant::now();
        if peer_ends {
            // Without a close frame, as it often happens.
            drop(pair.peer);
            assert_eq!(pair.serving.await.unwrap(), ConnectionEnd::Recycled);
            assert_eq!(began.elapsed().as_secs(), 0);
        } else {
            assert_eq!(pair.hears().await, None, "it is closed");
            assert_eq!(pair.serving.await.unwrap(), ConnectionEnd::Recycled);
            assert!((30..=31).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        }
    }
}

/// A message that is too long, a dropped connection, a peer that takes nothing: each ends the connection, and nothing else.
#[tokio::test(start_paused = true)]
async fn faults_end_it() {
    let mut long = pair().await;
    long.say("hello").await;
    long.say(&"x".repeat(1001)).await;
    assert_eq!(long.serving.await.unwrap(), ConnectionEnd::Lost("a message is too long"));
    for greets in [false, true] {
        let mut dropped = pair().await;
        if greets {
            dropped.say("hello").await;
        }
        drop(dropped.peer);
        assert!(matches!(dropped.serving.await.unwrap(), ConnectionEnd::Lost(_)));
    }
}

/// reach §1.6: asked to stop, it says goodbye with code 1000, and waits a second for the peer's.
#[tokio::test(start_paused = true)]
async fn it_says_goodbye() {
    for answers in [true, false] {
        let mut pair = pair().await;
        pair.say("hello").await;
        (&mut pair.greeted).await.unwrap();
        let began = Instant::now();
        pair.stop.cancel();
        if answers {
            let close = loop {
                match pair.peer.next().await {
                    Some(Ok(Message::Close(close))) => break close,
                    Some(Ok(_)) => {}
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(close.map(|frame| frame.code), Some(CloseCode::Normal));
            assert!(pair.peer.next().await.is_none());
            drop(pair.peer);
        }
        assert_eq!(pair.serving.await.unwrap(), ConnectionEnd::Stopped);
        assert_eq!(began.elapsed().as_secs(), u64::from(!answers));
    }
}

/// A close frame ends the connection, also when the peer leaves its end of the line open.
#[tokio::test(start_paused = true)]
async fn a_close_frame_ends_it() {
    let (began, mut pair) = (Instant::now(), pair().await);
    pair.say("hello").await;
    pair.peer.send(Message::Close(None)).await.unwrap();
    assert_eq!(
        (&mut pair.serving).await.unwrap(),
        ConnectionEnd::Lost("the peer closed the connection")
    );
    assert_eq!(began.elapsed().as_secs(), 0);
}

/// While too many events wait for the ledger, nothing is read: that the peer is not heard then is no fault of the peer.
#[tokio::test(start_paused = true)]
async fn a_slow_ledger_is_not_taken_for_a_silent_peer() {
    let mut pair = pair().await;
    pair.say("hello").await;
    for number in 0..256 {
        pair.say(&number.to_string()).await;
    }
    let early = tokio::time::timeout(Duration::from_secs(60), pair.hears()).await;
    assert!(early.is_err(), "{early:?}");
    pair.ledger.add_permits(256);
    for _ in 0..256 {
        assert!(pair.hears().await.is_some());
    }
}
