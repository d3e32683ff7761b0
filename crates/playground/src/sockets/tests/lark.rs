//! Lark's long connection as a gateway meets it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Client, End, SocketFault, Sockets, event, fails, http, lark_people, opens, refusal, violations};
use crate::fake_lark::FakeLark;
use crate::sockets::frame::Frame;
use crate::sockets::{Pieces, client_config};
use crate::stage::Fault;
use countersign_agent::domain::Clock;

struct Bench {
    lark: FakeLark,
    sockets: Sockets,
}

impl Bench {
    async fn start() -> Self {
        let lark = FakeLark::start("cli_1", "as-1", Clock::system()).await.unwrap();
        let sockets = lark.sockets();
        Self { lark, sockets }
    }

    /// The answer to the request for an address: HTTP status and body.
    async fn ask(&self, secret: &str) -> (u16, Value) {
        let url = format!("{}/callback/ws/endpoint", self.lark.base_url());
        let body = json!({ "AppID": "cli_1", "AppSecret": secret });
        let answer = http().post(url).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn address(&self) -> String {
        let (_, told) = self.ask("as-1").await;
        told["data"]["URL"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    async fn dial(&self) -> Client {
        Client::dial(&self.address().await).await
    }

    /// A connection that is open for events.
    async fn connect(&self) -> Client {
        let mut client = self.dial().await;
        client.send(ping().encode()).await;
        assert_eq!(client.frame().await.header("type"), Some("pong"));
        client
    }
}

impl Client {
    async fn frame(&mut self) -> Frame {
        Frame::decode(&self.next().await.unwrap().into_data()).unwrap()
    }
}

fn ping() -> Frame {
    Frame {
        service: 33_554_678,
        headers: vec![("type".to_owned(), "ping".to_owned())],
        ..Frame::default()
    }
}

/// The acknowledgement of a frame, with this payload.
fn ack(mut frame: Frame, payload: &Value) -> Frame {
    frame.headers.push(("biz_rt".to_owned(), "-3".to_owned()));
    frame.payload = Some(payload.to_string().into_bytes());
    frame
}

fn message() -> crate::Event {
    event("events", json!({ "schema": "2.0", "header": { "event_id": "e1" } }))
}

/// demo: the address of a connection is given for the app's secret, with what the gateway must know.
#[tokio::test]
async fn the_address_is_for_the_secret() {
    let bench = Bench::start().await;
    let (status, told) = bench.ask("as-2").await;
    assert_eq!((status, &told["code"]), (200, &json!(514)));
    let (status, told) = bench.ask("as-1").await;
    assert_eq!((status, &told["code"]), (200, &json!(0)));
    assert_eq!(told["data"]["ClientConfig"]["PingInterval"], 120);
    let url = told["data"]["URL"].as_str().unwrap();
    assert!(
        url.starts_with("ws://127.0.0.1:") && url.contains("&device_id=7") && url.ends_with("&service_id=33554678"),
        "{url}"
    );
    for (status, code) in [(200, 1_000_040_350), (503, 1)] {
        bench.lark.fault(
            "socket",
            Fault::Answer {
                status,
                code,
                header: None,
            },
        );
        let (got, told) = bench.ask("as-1").await;
        assert_eq!((got, &told["code"]), (status, &json!(code)));
    }
    assert_eq!(bench.lark.snapshot().count("socket"), 4);
}

/// demo: an app that has as many connections as it may have gets no further upgrade. One more has room when one has gone.
#[tokio::test]
async fn a_full_app_is_refused() {
    let bench = Bench::start().await;
    bench.sockets.allow(1);
    let client = bench.connect().await;
    opens(&bench.sockets, 1).await;
    let (status, headers) = refusal(&bench.address().await).await;
    assert_eq!(status, 403);
    for (name, code) in [("handshake-status", "514"), ("handshake-autherrcode", "1000040350")] {
        assert!(headers.contains(&(name.to_owned(), code.to_owned())), "{headers:?}");
    }
    drop(client);
    opens(&bench.sockets, 0).await;
    bench.connect().await;
    assert_eq!(bench.lark.snapshot().violations, Vec::<String>::new());
}

/// demo: a connection is open for events after its first ping; the pong carries timings, or what a test wants there.
#[tokio::test]
async fn a_ping_is_answered() {
    let bench = Bench::start().await;
    let mut client = bench.dial().await;
    client.hears_nothing().await;
    assert_eq!(bench.sockets.open(), 0);
    bench.sockets.fault(SocketFault::Greeting(r#"{"ReconnectCount":1}"#.to_owned()));
    for told in [json!({ "ReconnectCount": 1 }), client_config()] {
        client.send(ping().encode()).await;
        let pong = client.frame().await;
        assert_eq!((pong.method, pong.header("type")), (0, Some("pong")));
        assert_eq!(serde_json::from_slice::<Value>(&pong.payload.unwrap()).unwrap(), told);
    }
    opens(&bench.sockets, 1).await;
    assert_eq!(bench.sockets.opened(), 1);
    assert_eq!(bench.lark.snapshot().violations, Vec::<String>::new());
}

/// demo: the acknowledgement is the frame that came; its payload says status and answer.
#[tokio::test]
async fn an_acknowledgement_is_the_answer() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    let toast = json!({ "toast": { "content": "已确认" } });
    let data = STANDARD.encode(toast.to_string());
    for (said, answer) in [
        (json!({ "code": 200 }), (200, json!({}))),
        (json!({ "code": 200, "headers": null, "data": null }), (200, json!({}))),
        (json!({ "code": 200, "data": data }), (200, toast)),
        (json!({ "code": 500 }), (500, json!({}))),
    ] {
        let gateway = async {
            let frame = client.frame().await;
            assert_eq!((frame.method, frame.service, frame.header("type")), (1, 33_554_678, Some("event")));
            assert_eq!((frame.header("sum"), frame.header("seq")), (Some("1"), Some("0")));
            let payload = serde_json::from_slice::<Value>(frame.payload.as_deref().unwrap()).unwrap();
            assert_eq!(payload, message().body);
            client.send(ack(frame, &said).encode()).await;
        };
        let message = message();
        let (pushed, ()) = tokio::join!(bench.sockets.push(&message), gateway);
        assert_eq!(pushed.unwrap(), answer);
    }
    assert_eq!(bench.lark.snapshot().violations, Vec::<String>::new());
}

/// demo: frames that the platform would not understand are remembered.
#[tokio::test]
async fn a_wrong_frame_is_a_violation() {
    let bench = Bench::start().await;
    let mut client = bench.dial().await;
    let with = |edit: fn(&mut Frame)| {
        let mut frame = ping();
        edit(&mut frame);
        frame.encode()
    };
    let wrong = [
        (with(|ping| ping.service = 1), "no ping"),
        (with(|ping| ping.seq_id = 1), "no ping"),
        (with(|ping| ping.payload = Some(Vec::new())), "no ping"),
        (with(|ping| ping.headers[0].1 = "pong".to_owned()), "no ping"),
        (with(|ping| ping.method = 1), "without message_id"),
        (with(|ping| ping.method = 2), "method 2"),
        (b"\x08\x00\x10\x00\x20\x00".to_vec(), "required field 3"),
    ];
    let count = wrong.len();
    for (at, (bytes, words)) in wrong.into_iter().enumerate() {
        client.send(bytes).await;
        let told = violations(&bench.lark, at + 1).await.pop().unwrap();
        assert!(told.contains(words), "{told}");
    }
    client.send("text").await;
    assert!(violations(&bench.lark, count + 1).await.pop().unwrap().contains("not binary"));
    assert_eq!(bench.sockets.open(), 0);
}

/// demo: an acknowledgement that is not the whole frame, or whose payload is not the platform's, is remembered.
#[tokio::test]
async fn a_wrong_acknowledgement_is_a_violation() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    type Edit = (fn(&mut Frame), &'static str);
    let edits: [Edit; 9] = [
        (|ack| ack.log_id = 0, "not the frame"),
        (|ack| ack.log_id_new = None, "not the frame"),
        (|ack| ack.payload_type = None, "not the frame"),
        (|ack| drop(ack.headers.remove(0)), "not the frame"),
        (|ack| drop(ack.headers.pop()), "biz_rt"),
        (|ack| ack.payload = None, "says"),
        (|ack| ack.payload = Some(b"{}".to_vec()), "says"),
        (|ack| ack.payload = Some(br#"{"code":200,"data":"{}"}"#.to_vec()), "says"),
        (|ack| ack.payload = Some(br#"{"code":200,"toast":{}}"#.to_vec()), "says"),
    ];
    for (at, (edit, words)) in edits.into_iter().enumerate() {
        let gateway = async {
            let mut ack = ack(client.frame().await, &json!({ "code": 200 }));
            edit(&mut ack);
            client.send(ack.encode()).await;
        };
        let message = message();
        tokio::join!(fails(&bench.sockets, &message, words), gateway);
        violations(&bench.lark, at + 1).await;
    }
}

/// demo: an event in pieces comes as it was asked for; the last piece is acknowledged.
#[tokio::test]
async fn an_event_comes_in_pieces() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    let body = message().body.to_string();
    for (parts, sum, order) in [
        (3, 3, vec![2, 0, 1]),
        (3, 3, vec![0, 0, 1, 2]),
        (3, 3, vec![0, 2]),
        (2, 1000, vec![0, 1]),
    ] {
        let whole = (0..parts).all(|part| order.contains(&part));
        bench.sockets.fault(SocketFault::Pieces(Pieces {
            parts,
            sum,
            order: order.clone(),
        }));
        let gateway = async {
            let mut joined = vec![Vec::new(); parts];
            let mut last = Frame::default();
            for seq in &order {
                last = client.frame().await;
                assert_eq!(last.header("sum"), Some(sum.to_string().as_str()));
                assert_eq!(last.header("seq"), Some(seq.to_string().as_str()));
                joined[*seq] = last.payload.clone().unwrap();
            }
            assert_eq!(joined.concat() == body.as_bytes(), whole);
            client.send(ack(last, &json!({ "code": 200 })).encode()).await;
        };
        let message = message();
        let (pushed, ()) = tokio::join!(bench.sockets.push(&message), gateway);
        assert_eq!(pushed.unwrap().0, 200);
    }
    assert_eq!(bench.lark.snapshot().violations, Vec::<String>::new());
}

/// demo: connections go wrong here as on Slack, and a refusal has the platform's headers.
#[tokio::test]
async fn connections_go_wrong() {
    let bench = Bench::start().await;
    let headers = vec![
        ("Handshake-Status".to_owned(), "514".to_owned()),
        ("Handshake-Autherrcode".to_owned(), "1000040350".to_owned()),
    ];
    bench.sockets.fault(SocketFault::Refuse { status: 200, headers });
    let (status, headers) = refusal(&bench.address().await).await;
    assert_eq!(status, 200);
    assert!(
        headers.contains(&("handshake-autherrcode".to_owned(), "1000040350".to_owned())),
        "{headers:?}"
    );
    bench.sockets.fault(SocketFault::NoGreeting);
    let mut silent = bench.dial().await;
    silent.send(ping().encode()).await;
    silent.is_alive().await;
    silent.hears_nothing().await;
    bench.sockets.fault(SocketFault::BreakAfterGreeting);
    assert_eq!(bench.connect().await.next().await.unwrap_err(), End::Broken);
    assert_eq!((bench.sockets.open(), bench.sockets.opened()), (0, 0));
}

/// demo: people talk through the connection in plain events, cards too.
#[tokio::test]
async fn people_talk_through_them() {
    let bench = Bench::start().await;
    let people = lark_people().through(bench.sockets.clone());
    let press = people.tap("ou_1", "oc_1", "om_1", &json!({ "action": "approve", "review_id": "rv_1" }), None);
    let parcels = people.seal(&press);
    assert_eq!((parcels.len(), parcels[0].path.as_str(), parcels[0].headers.len()), (1, "cards", 0));
    let mut client = bench.connect().await;
    let gateway = async {
        let frame = client.frame().await;
        let payload = serde_json::from_slice::<Value>(frame.payload.as_deref().unwrap()).unwrap();
        assert_eq!((frame.header("type"), &payload), (Some("event"), &press.body));
        client.send(ack(frame, &json!({ "code": 200 })).encode()).await;
    };
    let (posted, ()) = tokio::join!(people.post(&parcels), gateway);
    assert_eq!(posted.unwrap(), (200, json!({})));
}
