//! What the Slack hook says to every bad request, before HTTP comes into it.

use countersign_agent::domain::{Ids, Inbound, InboundBody};
use countersign_gateway::channels::{EventRefusal, SlackHook, SlackReceived as Received};

use crate::support::badinput::{Record, Request, Secrets, Values, bases, expand, mutations, requests};
use crate::support::sign::{NOW, header_map};
use crate::support::slack_push::slack_secrets;

fn deliveries(record: &Record, ids: &Ids) -> Vec<Request> {
    expand(record, &Secrets::default(), &Values::default(), NOW, ids)
}

fn receive(request: &Request) -> Result<Received, EventRefusal> {
    let hook = SlackHook::new(&slack_secrets(&Secrets::default().slack_signing_secret, ""));
    hook.receive(&header_map(&request.headers).unwrap(), &request.body, NOW)
}

/// What somebody did, if the request is that.
fn done(outcome: Result<Received, EventRefusal>) -> Option<Inbound> {
    match outcome {
        Ok(Received::Event(inbound) | Received::Command(inbound) | Received::Press { inbound, .. } | Received::Submit(inbound)) => {
            Some(inbound)
        }
        Ok(
            Received::Challenge(_)
            | Received::Probe
            | Received::EmptyCommand { .. }
            | Received::Opened { .. }
            | Received::Home { .. }
            | Received::Ignored(_)
            | Received::Trouble(_),
        )
        | Err(_) => None,
    }
}

/// M-1: each Slack record gets the class that it expects, as far as the hook decides it.
#[test]
fn slack_records() {
    let (ids, mut seen) = (Ids::counted(), 0);
    for record in requests().iter().filter(|record| record.channel == "slack") {
        for request in deliveries(record, &ids) {
            let outcome = receive(&request);
            let fits = match record.expect_status_class.split(" then ").next().unwrap() {
                "401" => matches!(outcome, Err(EventRefusal::Unauthorized(_))),
                "400" | "4xx" => matches!(outcome, Err(EventRefusal::Bad(_))),
                "2xx-handled" | "2xx-ignored" => outcome.is_ok(),
                either => either.contains('|'),
            };
            assert!(fits, "{}: {outcome:?}, expected {}", record.name, record.expect_status_class);
            let no_turn = record.asserts.iter().any(|assert| assert == "no_turn");
            if let Some(inbound) = done(outcome).filter(|_| no_turn) {
                assert!(!matches!(inbound.body, InboundBody::Message(_)), "{}", record.name);
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 29, "every Slack delivery");
}

/// M-1: the type sweep never panics and never turns into another person's or chat's event.
#[test]
fn slack_type_sweep() {
    let (ids, mut accepted) = (Ids::counted(), 0);
    for base in bases().iter().filter(|base| base.channel == "slack") {
        for record in mutations(base) {
            let Some(event) = done(receive(&deliveries(&record, &ids)[0])) else {
                continue;
            };
            accepted += 1;
            let identity = ["user", "channel", "team", "container", "authorizations"];
            if !identity.iter().any(|member| record.name.contains(member)) {
                let who = (
                    event.sender.as_str(),
                    event.conversation.chat.as_str(),
                    event.conversation.tenant.as_str(),
                );
                // What a click names is the person's workspace, which is no place.
                let click = matches!(event.body, InboundBody::Click(_));
                let tenant = if click { "" } else { "T_TEST" };
                assert_eq!(who, ("U1", "C1", tenant), "{}", record.name);
            }
        }
    }
    assert!(accepted > 100, "fields that nobody needs may be anything: {accepted}");
}
