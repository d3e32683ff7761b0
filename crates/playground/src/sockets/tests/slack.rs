//! Slack's Socket Mode as a gateway meets it.

use serde_json::{Value, json};

use super::{Client, End, SILENCE, SocketFault, Sockets, event, fails, http, opens, refusal, slack_people, violations};
use crate::fake_slack::FakeSlack;
use crate::people::Words;
use crate::stage::Fault;
use countersign_agent::domain::{Clock, Ids};

const APP_TOKEN: &str = "xapp-1";

struct Bench {
    slack: FakeSlack,
    sockets: Sockets,
}

impl Bench {
    async fn start() -> Self {
        let slack = FakeSlack::start("xoxb-1", Clock::system(), Ids::random()).await.unwrap();
        slack.set_app_token(APP_TOKEN);
        let sockets = slack.sockets();
        Self { slack, sockets }
    }

    async fn call(&self, method: &str, token: &str) -> reqwest::Response {
        let url = format!("{}/{method}", self.slack.base_url());
        http().post(url).bearer_auth(token).send().await.unwrap()
    }

    async fn ask(&self, method: &str, token: &str) -> Value {
        self.call(method, token).await.json().await.unwrap()
    }

    /// The address of a connection.
    async fn address(&self) -> String {
        let told = self.ask("apps.connections.open", APP_TOKEN).await;
        told["url"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    /// A connection that has not read its hello.
    async fn dial(&self) -> Client {
        Client::dial(&self.address().await).await
    }

    /// A connection that is open for events.
    async fn connect(&self) -> Client {
        let mut client = self.dial().await;
        assert_eq!(client.text().await["type"], "hello");
        client
    }
}

/// The acknowledgement of an envelope.
fn ack(envelope: &Value) -> String {
    json!({ "envelope_id": envelope["envelope_id"] }).to_string()
}

fn message() -> crate::Event {
    event("events", json!({ "type": "event_callback", "event_id": "Ev1" }))
}

/// demo: the address of a socket is given for the app-level token, and for no other.
#[tokio::test]
async fn the_address_is_for_the_app_token() {
    let bench = Bench::start().await;
    for (method, token, error) in [
        ("apps.connections.open", "xapp-2", "invalid_auth"),
        ("apps.connections.open", "xoxb-1", "not_allowed_token_type"),
        ("auth.test", APP_TOKEN, "not_allowed_token_type"),
        ("auth.test", "xoxb-2", "invalid_auth"),
    ] {
        assert_eq!(bench.ask(method, token).await["error"], error, "{method} {token}");
    }
    let address = bench.address().await;
    assert!(
        address.starts_with("ws://127.0.0.1:") && address.ends_with("&app_id=A0APP"),
        "{address}"
    );
    let header = Some(("Retry-After".to_owned(), "7".to_owned()));
    let (status, code) = (429, 0);
    bench.slack.fault("socket", Fault::Answer { status, code, header });
    let answer = bench.call("apps.connections.open", APP_TOKEN).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (429, &"7".parse().unwrap())
    );
    bench.slack.fault("socket", Fault::Error("link_disabled"));
    assert_eq!(bench.ask("apps.connections.open", APP_TOKEN).await["error"], "link_disabled");
    assert_eq!(bench.slack.snapshot().count("socket"), 5);
    assert_eq!(bench.slack.snapshot().violations, Vec::<String>::new());
}

/// demo: an address opens one connection.
#[tokio::test]
async fn a_ticket_is_good_once() {
    let bench = Bench::start().await;
    let address = bench.address().await;
    let mut client = Client::dial(&address).await;
    let hello = client.text().await;
    assert_eq!(
        (&hello["num_connections"], &hello["connection_info"]["app_id"]),
        (&json!(1), &json!("A0APP"))
    );
    assert_eq!(refusal(&address).await.0, 403);
    assert!(violations(&bench.slack, 1).await[0].contains("not good any more"));
}

/// demo: an event comes in the envelope of its kind, and its push gives what the acknowledgement says.
#[tokio::test]
async fn an_acknowledgement_is_the_answer() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    for (path, kind, answers) in [
        ("events", "events_api", false),
        ("interactions", "interactive", true),
        ("commands", "slash_commands", true),
    ] {
        let payload = json!({ "text": path });
        let event = event(path, payload.clone());
        for answer in [None, Some(json!({})), Some(json!({ "text": "done" })).filter(|_| answers)] {
            let gateway = async {
                let envelope = client.text().await;
                assert_eq!((&envelope["type"], &envelope["payload"]), (&json!(kind), &payload));
                assert_eq!(envelope["accepts_response_payload"], answers);
                assert_eq!(envelope.get("retry_attempt"), None);
                let mut ack = json!({ "envelope_id": envelope["envelope_id"] });
                if let Some(answer) = &answer {
                    ack["payload"] = answer.clone();
                }
                client.send(ack.to_string()).await;
            };
            let (pushed, ()) = tokio::join!(bench.sockets.push(&event), gateway);
            let expected = answer.clone().filter(|answer| answer["text"].is_string()).unwrap_or_default();
            assert_eq!(pushed.unwrap(), (200, expected));
        }
    }
    fails(&bench.sockets, &event("cards", json!({})), "no events of cards").await;
    assert_eq!(bench.slack.snapshot().violations, Vec::<String>::new());
}

/// demo: what Slack would not understand is remembered, and whoever waits for it is told.
#[tokio::test]
async fn a_wrong_acknowledgement_is_a_violation() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    let strange: [(tokio_tungstenite::tungstenite::Message, &str); 4] = [
        ("OK".into(), "no JSON object"),
        ("{}".into(), "no envelope_id"),
        (r#"{"envelope_id":"e1"}"#.into(), "did not bring"),
        (vec![1].into(), "not text"),
    ];
    for (at, (message, words)) in strange.into_iter().enumerate() {
        client.send(message).await;
        let told = violations(&bench.slack, at + 1).await.pop().unwrap();
        assert!(told.contains(words), "{told}");
    }
    for (more, words) in [
        (json!({ "payload": { "text": "x" } }), "a payload that nobody takes"),
        (json!({ "payload": "x" }), "a payload that nobody takes"),
        (json!({ "ok": true }), "unknown members"),
    ] {
        let gateway = async {
            let mut ack = more;
            ack["envelope_id"] = client.text().await["envelope_id"].clone();
            client.send(ack.to_string()).await;
        };
        let message = message();
        tokio::join!(fails(&bench.sockets, &message, words), gateway);
    }
    violations(&bench.slack, 7).await;
    // Acknowledged twice.
    let gateway = async {
        let ack = ack(&client.text().await);
        client.send(ack.clone()).await;
        client.send(ack).await;
    };
    let message = message();
    let (pushed, ()) = tokio::join!(bench.sockets.push(&message), gateway);
    assert_eq!(pushed.unwrap().0, 200);
    violations(&bench.slack, 8).await;
}

/// demo: an app has ten connections; the next is told so, and events go to the ten in turn.
#[tokio::test]
async fn an_app_has_ten_connections() {
    let bench = Bench::start().await;
    let mut clients = Vec::new();
    for count in 1..=10 {
        clients.push(bench.connect().await);
        opens(&bench.sockets, count).await;
    }
    let mut late = bench.dial().await;
    let told = late.text().await;
    assert_eq!(
        (&told["type"], &told["reason"]),
        (&json!("disconnect"), &json!("too_many_websockets"))
    );
    assert_eq!((bench.sockets.open(), bench.sockets.opened()), (10, 10));
    let message = message();
    let pushes = futures_util::future::join_all((0..20).map(|_| bench.sockets.push(&message)));
    let gateway = async {
        for client in &mut clients {
            for _ in 0..2 {
                let ack = ack(&client.text().await);
                client.send(ack).await;
            }
        }
    };
    let (pushed, ()) = tokio::join!(pushes, gateway);
    assert!(pushed.iter().all(Result::is_ok));
    late.hears_nothing().await;
    // One more has room when one of the ten has gone.
    clients.pop();
    opens(&bench.sockets, 9).await;
    clients.push(bench.connect().await);
    opens(&bench.sockets, 10).await;
    drop(clients);
    opens(&bench.sockets, 0).await;
}

/// demo: an event whose connection goes away before the acknowledgement comes again over another.
#[tokio::test]
async fn an_event_is_sent_again() {
    let bench = Bench::start().await;
    bench.sockets.fault(SocketFault::BreakAfterEvent);
    let gateway = async {
        let mut client = bench.connect().await;
        let first = client.text().await;
        assert_eq!(client.next().await.unwrap_err(), End::Broken);
        // The gateway gives up this one.
        let mut client = bench.connect().await;
        assert_eq!(client.text().await["retry_attempt"], 1);
        drop(client);
        let mut client = bench.connect().await;
        let third = client.text().await;
        assert_eq!((&third["retry_attempt"], &third["payload"]), (&json!(2), &first["payload"]));
        client.send(ack(&third)).await;
    };
    let message = message();
    let (pushed, ()) = tokio::join!(bench.sockets.push(&message), gateway);
    assert_eq!(pushed.unwrap(), (200, Value::Null));
    assert_eq!((bench.sockets.redelivered(), bench.sockets.opened()), (2, 3));
    assert_eq!(bench.slack.snapshot().violations, Vec::<String>::new());
}

/// demo: the next connection goes wrong as it was asked to, and the one after it does not.
#[tokio::test]
async fn connections_go_wrong() {
    let bench = Bench::start().await;
    let headers = vec![("Retry-After".to_owned(), "3".to_owned())];
    bench.sockets.fault(SocketFault::Refuse { status: 503, headers });
    let (status, headers) = refusal(&bench.address().await).await;
    assert_eq!(status, 503);
    assert!(headers.contains(&("retry-after".to_owned(), "3".to_owned())), "{headers:?}");

    bench.sockets.fault(SocketFault::BreakAfterUpgrade);
    assert_eq!(bench.dial().await.next().await.unwrap_err(), End::Broken);
    bench.sockets.fault(SocketFault::BreakAfterGreeting);
    assert_eq!(bench.connect().await.next().await.unwrap_err(), End::Broken);

    bench.sockets.fault(SocketFault::NoGreeting);
    let mut silent = bench.dial().await;
    silent.is_alive().await;
    silent.hears_nothing().await;
    bench.sockets.fault(SocketFault::HalfOpen);
    let mut dead = bench.dial().await;
    dead.send("x").await;
    dead.hears_nothing().await;

    bench.sockets.fault(SocketFault::Greeting(
        r#"{"type":"hello","connection_info":{"app_id":"A1"}}"#.to_owned(),
    ));
    assert_eq!(bench.dial().await.text().await["connection_info"]["app_id"], "A1");
    opens(&bench.sockets, 0).await;
    let mut client = bench.connect().await;
    client.is_alive().await;
    opens(&bench.sockets, 1).await;
    bench.sockets.drop_all();
    for client in [&mut client, &mut silent, &mut dead] {
        assert_eq!(client.next().await.unwrap_err(), End::Broken);
    }
    opens(&bench.sockets, 0).await;
}

/// demo: a test writes to one connection, closes it, breaks it and lets it go silent.
#[tokio::test]
async fn one_connection_is_told_and_ended() {
    let bench = Bench::start().await;
    let mut clients = [bench.connect().await, bench.connect().await, bench.connect().await];
    opens(&bench.sockets, 3).await;
    let [first, second, third] = bench.sockets.links().try_into().unwrap();
    first.disconnect("warning");
    assert_eq!(clients[0].text().await["reason"], "warning");
    first.send("no JSON");
    assert_eq!(clients[0].next().await.unwrap().to_text().unwrap(), "no JSON");
    first.send(vec![1, 2]);
    assert_eq!(clients[0].next().await.unwrap().into_data()[..], [1, 2]);
    assert_eq!(bench.sockets.open(), 3);
    first.close();
    assert_eq!(clients[0].next().await.unwrap_err(), End::Closed);
    opens(&bench.sockets, 2).await;
    assert_eq!(clients[0].next().await.unwrap_err(), End::Broken, "both have said that it is over");
    second.cut();
    assert_eq!(clients[1].next().await.unwrap_err(), End::Broken);
    third.freeze();
    third.send("never sent");
    clients[2].hears_nothing().await;
    opens(&bench.sockets, 1).await;
    drop(bench.slack);
    assert_eq!(clients[2].next().await.unwrap_err(), End::Broken, "its platform is gone");
}

/// demo: an event that is not acknowledged in ten seconds counts as not stored. Its late acknowledgement is no fault.
#[tokio::test]
async fn silence_means_not_stored() {
    let bench = Bench::start().await;
    let mut client = bench.connect().await;
    let event = message();
    let pushing = bench.sockets.push(&event);
    let silent_gateway = async {
        let envelope = client.text().await;
        tokio::time::pause();
        tokio::time::advance(SILENCE).await;
        tokio::time::resume();
        envelope
    };
    let (pushed, unacknowledged) = tokio::join!(pushing, silent_gateway);
    assert_eq!(pushed.unwrap(), (503, Value::Null));
    let pushing = bench.sockets.push(&event);
    let gateway = async {
        let envelope = client.text().await;
        client.send(ack(&unacknowledged)).await;
        client.send(ack(&envelope)).await;
    };
    let (pushed, ()) = tokio::join!(pushing, gateway);
    assert_eq!(pushed.unwrap(), (200, Value::Null));
    assert_eq!((bench.sockets.unacknowledged(), bench.sockets.redelivered()), (1, 0));
    assert_eq!(bench.slack.snapshot().violations, Vec::<String>::new());
}

/// demo: people talk through sockets as over HTTP: both tellings of a mention, presses and commands, unsigned.
#[tokio::test]
async fn people_talk_through_them() {
    let bench = Bench::start().await;
    let people = slack_people().through(bench.sockets.clone()).at("http://127.0.0.1:2");
    let words = Words {
        user: "U1",
        chat: "C1",
        text: "hi",
        group: true,
        mention: true,
        ..Words::default()
    };
    let said = people.message(&words);
    let parcels = people.seal(&said);
    let bodies: Vec<Value> = parcels.iter().map(|parcel| serde_json::from_slice(&parcel.body).unwrap()).collect();
    assert!(bodies.contains(&said.body) && bodies.contains(said.twin.as_ref().unwrap()));
    assert!(parcels.iter().all(|parcel| parcel.headers.is_empty() && parcel.path == "events"));
    let command = people.command("U1", "C1", "/status").unwrap();
    let press = people.tap("U1", "C1", "1.2", &json!({ "action": "approve", "review_id": "rv_1" }), None);
    let mut client = bench.connect().await;
    let gateway = async {
        let mut kinds = Vec::new();
        for _ in 0..4 {
            let envelope = client.text().await;
            kinds.push(envelope["type"].as_str().unwrap().to_owned());
            client.send(ack(&envelope)).await;
        }
        kinds
    };
    let speaking = async {
        for event in [&said, &command, &press] {
            assert_eq!(people.post(&people.seal(event)).await.unwrap(), (200, Value::Null));
        }
    };
    let (kinds, ()) = tokio::join!(gateway, speaking);
    assert_eq!(kinds, ["events_api", "events_api", "slash_commands", "interactive"]);
}
