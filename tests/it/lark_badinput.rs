//! The bad request bodies: that they expand as meant, and what the Lark hook says to each before HTTP comes into it.

use countersign_agent::domain::{Ids, InboundBody};
use countersign_gateway::channels::{EventRefusal, LarkHook, LarkReceived as Received};

use crate::support::badinput::{Record, Request, Secrets, Values, bases, expand, mutations, requests, strict};
use crate::support::sign::{NOW, header_map, lark_secrets};

fn deliveries(record: &Record, ids: &Ids) -> Vec<Request> {
    expand(record, &Secrets::default(), &Values::default(), NOW, ids)
}

fn receive(request: &Request) -> Result<Received, EventRefusal> {
    let (secrets, values) = (Secrets::default(), Values::default());
    let hook = LarkHook::new(&lark_secrets(&values.app, &secrets.lark_vtoken, &secrets.lark_encrypt_key));
    hook.receive(&header_map(&request.headers).unwrap(), &request.body, NOW)
}

/// design: every record expands, and a strict verifier accepts exactly those that are signed as valid.
#[test]
fn records_expand() {
    let ids = Ids::counted();
    let (requests, bases) = (requests(), bases());
    assert_eq!((requests.len(), bases.len()), (75, 5));
    for record in requests.iter().chain(&bases) {
        let deliveries = deliveries(record, &ids);
        assert!(!deliveries.is_empty());
        for request in &deliveries {
            let valid = strict(&record.channel, request, &Secrets::default(), NOW);
            assert_eq!(valid, record.sign == "valid", "{}", record.name);
            assert!(request.path.starts_with(&record.path_kind) && !request.headers.is_empty());
            assert_eq!(request.method, record.method);
        }
    }
    assert_eq!(bases.iter().map(|base| mutations(base).len()).sum::<usize>(), 1844);
}

/// M-1: each Lark record gets the class that it expects, as far as the hook decides it.
#[test]
fn lark_records() {
    let (ids, mut seen) = (Ids::counted(), 0);
    for record in requests().iter().filter(|record| record.channel == "lark") {
        for request in deliveries(record, &ids) {
            let outcome = receive(&request);
            let fits = match record.expect_status_class.split(" then ").next().unwrap() {
                // Decided before the body is read.
                "413" | "415" | "404" | "405" => continue,
                "401" => matches!(outcome, Err(EventRefusal::Unauthorized(_))),
                "400" | "400|413" => matches!(outcome, Err(EventRefusal::Bad(_))),
                "4xx" => outcome.is_err(),
                "2xx-handled" => matches!(outcome, Ok(Received::Event(_))),
                "2xx-ignored" => outcome.is_ok(),
                either => either.contains('|'),
            };
            assert!(fits, "{}: {outcome:?}, expected {}", record.name, record.expect_status_class);
            if let Ok(Received::Event(event)) = outcome {
                let no_turn = record.asserts.iter().any(|assert| assert == "no_turn");
                assert!(!no_turn || matches!(event.body, InboundBody::Click(_)), "{}", record.name);
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 48, "every Lark delivery but those that HTTP decides");
}

/// M-1: the type sweep never panics and never turns into another person's or chat's event.
#[test]
fn lark_type_sweep() {
    let ids = Ids::counted();
    let mut accepted = 0;
    for base in bases().iter().filter(|base| base.channel == "lark") {
        for record in mutations(base) {
            let Ok(Received::Event(event)) = receive(&deliveries(&record, &ids)[0]) else {
                continue;
            };
            accepted += 1;
            let identity = ["open_id", "sender_id", "operator", "chat_id", "open_chat_id", "tenant_key"];
            if !identity.iter().any(|member| record.name.contains(member)) {
                assert_eq!(
                    (event.sender.as_str(), event.conversation.chat.as_str()),
                    ("ou_u1", "oc_c1"),
                    "{}",
                    record.name
                );
            }
        }
    }
    assert!(accepted > 100, "fields that nobody needs may be anything");
}
