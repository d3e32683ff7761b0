//! The Slack client against a Web API that we play: the wire, classes, pauses, and never two messages for one.

mod stub;

use std::time::Duration;

use countersign_agent::domain::{
    CardState, ChannelKind, Clock, Conversation, DecisionKind, Locale, Millis, Notice, Outbound, OutboxOp, ReactionMark, TurnReason,
};
use countersign_gateway::channels::{Channel as _, Delivery, DeliveryError, FormContext, Receipt, SlackClient, revise_form};
use countersign_gateway::config::{EventDelivery, SlackSecrets};
use secrecy::SecretString;
use serde_json::{Value, json};
use stub::{Fault, Stub, TOKEN};

use crate::support::gallery::{answer, decided, in_slack, plan};
use crate::support::templates::templates;

const THREAD: &str = "1779999000.000200";
const NOW: Millis = Millis(1_780_000_005_123);

struct Bench {
    slack: Stub,
    client: SlackClient,
}

impl Bench {
    async fn new() -> Self {
        Self::with_token(TOKEN).await
    }

    async fn with_token(token: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let slack = Stub::start().await;
        let secrets = SlackSecrets {
            base_url: slack.base_url.clone(),
            delivery: EventDelivery::Webhook,
            app_token: "".into(),
            signing_secret: SecretString::from("s"),
            previous_signing_secret: None,
            bot_token: SecretString::from(token),
        };
        let http = countersign_agent::tls::http_client().no_proxy().build().unwrap();
        let client = SlackClient::new(&secrets, templates(), http, &Clock::system());
        Self { slack, client }
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.client.deliver(delivery).await
    }

    fn refuse(&self, method: &str, word: &str) {
        self.slack
            .fault(method, Fault::Answer(200, json!({"ok": false, "error": word}), None));
    }

    fn limit(&self, method: &str, seconds: &'static str) {
        let body = json!({"ok": false, "error": "ratelimited"});
        self.slack.fault(method, Fault::Answer(429, body, Some(seconds)));
    }
}

fn delivery(key: &str, op: OutboxOp) -> Delivery {
    Delivery {
        key: key.to_owned(),
        conversation: Conversation {
            channel: ChannelKind::Slack,
            app: String::from("slack"),
            tenant: String::from("T0CSIGN01"),
            chat: String::from("C0GENERAL"),
            thread: String::from(THREAD),
        },
        op,
        locale: Locale::ZhCn,
        plain: false,
        written_at: NOW,
        again: false,
        upload: None,
        about: None,
    }
}

fn post(key: &str, content: Outbound) -> Delivery {
    delivery(
        key,
        OutboxOp::Post {
            reply_to: Some(String::from("1779999999.000900")),
            content,
        },
    )
}

fn notice(key: &str) -> Delivery {
    post(key, Outbound::Notice(Notice::Done {}))
}

fn again(delivery: Delivery) -> Delivery {
    Delivery { again: true, ..delivery }
}

fn flat(mut delivery: Delivery) -> Delivery {
    delivery.conversation.thread = String::new();
    delivery
}

fn open_plan() -> Outbound {
    in_slack(&Outbound::PlanCard(plan(CardState::Open { votes: 0 })))
}

fn patch(key: &str, message_id: &str) -> Delivery {
    let content = in_slack(&Outbound::PlanCard(plan(decided(DecisionKind::Approve, Some("ou_u2"), None))));
    let message_id = message_id.to_owned();
    delivery(
        key,
        OutboxOp::Patch {
            target: message_id,
            content,
        },
    )
}

fn react(message_id: &str, mark: ReactionMark) -> Delivery {
    let op = OutboxOp::React {
        message_id: message_id.to_owned(),
        mark: Some(mark),
        shown: None,
    };
    delivery("r", op)
}

fn class(outcome: &Result<Receipt, DeliveryError>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(DeliveryError::Retry { .. }) => "retry",
        Err(DeliveryError::Content(_)) => "content",
        Err(DeliveryError::Gone(_)) => "gone",
        Err(DeliveryError::Forbidden(_)) => "forbidden",
    }
}

/// M-5: a card is posted into its thread with text, blocks and its key, without previews, and replaced when decided.
#[tokio::test]
async fn a_card_is_posted_and_replaced() {
    let bench = Bench::new().await;
    let receipt = bench.deliver(&post("k1", open_plan())).await.unwrap();
    assert_eq!(receipt.message_id.as_deref(), Some("1780000001.000300"));
    assert_eq!(receipt.at, Some(Millis(1_780_000_001_000)));
    bench.deliver(&patch("k2", "1780000001.000300")).await.unwrap();

    let posted = &bench.slack.calls("chat.postMessage")[0];
    assert_eq!(posted.content_type, "application/json; charset=utf-8");
    let body = &posted.body;
    assert_eq!(
        (&body["channel"], &body["thread_ts"], &body["unfurl_links"], &body["unfurl_media"]),
        (&json!("C0GENERAL"), &json!(THREAD), &json!(false), &json!(false))
    );
    assert_eq!(
        body["metadata"],
        json!({"event_type": "countersign_outbox", "event_payload": {"k": "k1"}})
    );
    assert!(body["text"].as_str().unwrap().contains("计划确认"));
    assert!(body["blocks"].to_string().contains("plan_approve"));

    let updated = &bench.slack.calls("chat.update")[0].body;
    assert_eq!(updated["ts"], "1780000001.000300");
    assert!(!updated["blocks"].to_string().contains("plan_approve"), "no buttons left over");
    assert_eq!(updated.get("thread_ts"), None);
}

/// M-5: in a direct or flat chat nothing opens a thread, whatever message is answered.
#[tokio::test]
async fn a_flat_chat_stays_flat() {
    let bench = Bench::new().await;
    bench.deliver(&flat(notice("k1"))).await.unwrap();
    let body = &bench.slack.calls("chat.postMessage")[0].body;
    assert_eq!(body.get("thread_ts"), None);
    assert_eq!((&body["text"], &body["blocks"]), (&json!("已完成。"), &json!([])));
}

/// M-5: a message gets its marks; one that has the mark already is fine, and what is no message gets none.
#[tokio::test]
async fn a_message_gets_its_marks() {
    let bench = Bench::new().await;
    bench.refuse("reactions.add", "already_reacted");
    for mark in [ReactionMark::Seen, ReactionMark::Done, ReactionMark::Failed] {
        bench.deliver(&react("1780000001.000300", mark)).await.unwrap();
    }
    bench.deliver(&react("cmd_1234", ReactionMark::Seen)).await.unwrap();
    let calls = bench.slack.calls("reactions.add");
    assert_eq!(calls[0].content_type, "application/x-www-form-urlencoded");
    assert_eq!(
        calls[0].body,
        json!({"channel": "C0GENERAL", "timestamp": "1780000001.000300", "name": "eyes"})
    );
    let names: Vec<&Value> = calls.iter().map(|call| &call.body["name"]).collect();
    assert_eq!(names, ["eyes", "white_check_mark", "x"]);
}

/// interface (I): a mark is taken away by its name; one that is gone already is fine.
#[tokio::test]
async fn a_mark_is_taken_away() {
    let bench = Bench::new().await;
    let mut delivery = react("1780000001.000300", ReactionMark::Seen);
    let known = bench.deliver(&delivery).await.unwrap().message_id;
    assert_eq!(known.as_deref(), Some("eyes"));
    if let OutboxOp::React { mark, shown, .. } = &mut delivery.op {
        (*mark, *shown) = (None, known);
    }
    bench.refuse("reactions.remove", "no_reaction");
    for _ in 0..2 {
        bench.deliver(&delivery).await.unwrap();
    }
    let calls = bench.slack.calls("reactions.remove");
    assert_eq!(calls[1].content_type, "application/x-www-form-urlencoded");
    assert_eq!(
        calls[1].body,
        json!({"channel": "C0GENERAL", "timestamp": "1780000001.000300", "name": "eyes"})
    );
}

/// reach §3: a workspace that refuses a plan's tasks gets the rows at once, in the same delivery, and is not asked again; another workspace is. A plan that
/// is refused in rows too is no word about the workspace.
#[tokio::test]
async fn tasks_of_a_plan_become_rows() {
    let bench = Bench::new().await;
    let shown = |at: usize| {
        let call = &bench.slack.calls("chat.update")[at];
        let kinds = call.body["blocks"].as_array().unwrap().iter().map(|block| block["type"].clone());
        kinds.collect::<Vec<Value>>().contains(&json!("plan"))
    };
    let at_work = |team: &str| {
        let mut delivery = patch("k1", "1780000001.000300");
        delivery.conversation.tenant = team.to_owned();
        delivery
    };
    bench.refuse("chat.update", "invalid_blocks");
    bench.refuse("chat.update", "invalid_blocks");
    let twice = bench.deliver(&at_work("T0CSIGN01")).await;
    assert!(matches!(twice, Err(DeliveryError::Content(_))), "{twice:?}");
    bench.refuse("chat.update", "invalid_blocks");
    bench.deliver(&at_work("T0CSIGN01")).await.unwrap();
    assert_eq!([0, 1, 2, 3].map(shown), [true, false, true, false]);
    bench.deliver(&at_work("T0CSIGN01")).await.unwrap();
    bench.deliver(&at_work("T0OTHER01")).await.unwrap();
    assert_eq!([4, 5].map(shown), [false, true]);
    assert_eq!(bench.slack.calls("chat.update").len(), 6);
}

/// F-C2: refused blocks are content; the plain form is text alone, and replaces a card whose blocks were refused.
#[tokio::test]
async fn refused_blocks_become_text() {
    let bench = Bench::new().await;
    let pointer = json!({
        "ok": false, "error": "invalid_blocks",
        "response_metadata": {"messages": ["[ERROR] must be less than 76 characters [json-pointer:/blocks/3]"]},
    });
    bench.slack.fault("chat.postMessage", Fault::Answer(200, pointer, None));
    let card = post("k1", open_plan());
    match bench.deliver(&card).await {
        Err(DeliveryError::Content(reason)) => assert!(reason.contains("json-pointer:/blocks/3"), "{reason}"),
        other => panic!("{other:?}"),
    }
    bench.deliver(&Delivery { plain: true, ..card }).await.unwrap();
    let plain = Delivery {
        plain: true,
        ..patch("k2", "1780000001.000300")
    };
    bench.deliver(&plain).await.unwrap();
    let text = &bench.slack.calls("chat.postMessage")[1].body;
    assert_eq!(text["blocks"], json!([]));
    let said = text["text"].as_str().unwrap();
    for part in ["<@U0ALICE01>", "计划确认", "1. 读取本周订单表", "write_file", "请回复 *OK* 继续"] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    assert_eq!(bench.slack.calls("chat.update")[0].body["blocks"], json!([]));
}

/// F-C3, F-C6: classes come from Slack's word, also under HTTP 200.
#[tokio::test]
async fn refusals_have_their_class() {
    let bench = Bench::new().await;
    for (at, (word, expected)) in [
        ("not_in_channel", "gone"),
        ("is_archived", "gone"),
        ("missing_scope", "forbidden"),
        ("token_revoked", "forbidden"),
        ("internal_error", "retry"),
        ("msg_blocks_too_long", "content"),
    ]
    .into_iter()
    .enumerate()
    {
        bench.refuse("chat.postMessage", word);
        let mut delivery = notice("k");
        // A chat each: its pace is another test's.
        delivery.conversation.chat = format!("C{at}");
        assert_eq!(class(&bench.deliver(&delivery).await), expected, "{word}");
    }
    let gone = bench.deliver(&patch("k", "om_x")).await;
    assert_eq!(class(&gone), "gone");
}

/// F-C1: the wish to wait is passed on, the channel keeps the pause without asking again, and other channels go on. Neither
/// what Slack held back nor what we did can have arrived: there is nothing to look for later.
#[tokio::test]
async fn a_rate_limit_pauses_its_channel() {
    let bench = Bench::new().await;
    bench.limit("chat.postMessage", "30");
    match bench.deliver(&notice("k1")).await {
        Err(DeliveryError::Retry { after, uncertain, .. }) => {
            assert_eq!((after, uncertain), (Some(Duration::from_secs(30)), false));
        }
        other => panic!("{other:?}"),
    }
    match bench.deliver(&notice("k2")).await {
        Err(DeliveryError::Retry { after, uncertain, .. }) => {
            assert!(after.is_some_and(|after| after > Duration::from_secs(20)), "{after:?}");
            assert!(!uncertain);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.slack.calls("chat.postMessage").len(), 1);
    let mut elsewhere = notice("k3");
    elsewhere.conversation.chat = String::from("C0OTHER");
    bench.deliver(&elsewhere).await.unwrap();
}

/// F-C1, design: a limit on other methods does not keep a form from opening, and a note never makes a click wait.
#[tokio::test]
async fn a_click_never_waits() {
    let bench = Bench::new().await;
    bench.limit("chat.postEphemeral", "30");
    bench.limit("views.open", "30");
    let note = || {
        bench
            .client
            .whisper("C0GENERAL", "U0ALICE01", Some(THREAD), "已记录：U0BOB0001 <!here>")
    };
    assert!(note().await.is_err());
    assert!(matches!(note().await, Err(DeliveryError::Retry { .. })));
    assert_eq!(bench.slack.calls("chat.postEphemeral").len(), 1);
    let body = &bench.slack.calls("chat.postEphemeral")[0].body;
    assert_eq!(
        (&body["user"], &body["thread_ts"], &body["text"]),
        (
            &json!("U0ALICE01"),
            &json!(THREAD),
            &json!("已记录：<@U0BOB0001> &lt;\u{2060}!here&gt;")
        )
    );
    let context = FormContext {
        review_id: String::from("rv_1"),
        chat: String::from("C0GENERAL"),
        card: String::from("1780000001.000300"),
    };
    let view = revise_form(&templates(), Locale::ZhCn, &context);
    assert!(bench.client.open_form("1.2.abc", &view).await.is_err());
    bench.client.open_form("1.2.abc", &view).await.unwrap();
    let opened = bench.slack.calls("views.open");
    assert_eq!((opened.len(), &opened[1].body["trigger_id"]), (2, &json!("1.2.abc")));
    assert_eq!(opened[1].body["view"], view);
}

/// F-C1, design: an answer that got lost leads to no second message: the next try finds the first by its key.
#[tokio::test]
async fn a_lost_answer_makes_no_second_message() {
    let bench = Bench::new().await;
    let mut direct = flat(notice("k2"));
    direct.conversation.chat = String::from("D0DM00001");
    for (delivery, method) in [(notice("k1"), "conversations.replies"), (direct, "conversations.history")] {
        let chat = delivery.conversation.chat.clone();
        bench.slack.fault("chat.postMessage", Fault::LoseAnswer);
        assert_eq!(class(&bench.deliver(&delivery).await), "retry");
        let before = bench.slack.messages();
        let receipt = bench.deliver(&again(delivery)).await.unwrap();
        assert_eq!(bench.slack.messages(), before, "nothing was posted again");
        assert_eq!(receipt.message_id.as_deref(), before.last().unwrap()["ts"].as_str());
        let look = &bench.slack.calls(method)[0];
        assert_eq!(look.content_type, "application/x-www-form-urlencoded");
        assert_eq!(
            (&look.body["channel"], &look.body["oldest"], &look.body["include_all_metadata"]),
            (&json!(chat), &json!("1780000000.123000"), &json!("true"))
        );
    }
    assert_eq!(bench.slack.calls("conversations.replies")[0].body["ts"], THREAD);
}

/// F-C1: what never arrived is posted by the next try, once; another message's key is not taken for ours.
#[tokio::test]
async fn what_never_arrived_is_posted_again() {
    let bench = Bench::new().await;
    bench.deliver(&notice("another")).await.unwrap();
    bench.slack.fault("chat.postMessage", Fault::Answer(503, json!({}), None));
    let delivery = notice("k1");
    assert_eq!(class(&bench.deliver(&delivery).await), "retry");
    bench.deliver(&again(delivery)).await.unwrap();
    assert_eq!(bench.slack.calls("conversations.replies").len(), 1);
    assert_eq!(bench.slack.messages().len(), 2);
}

/// F-C1, F-C4: Slack's own trouble says nothing about what became of the post: it may have arrived.
#[tokio::test]
async fn trouble_leaves_it_uncertain() {
    let bench = Bench::new().await;
    bench.refuse("chat.postMessage", "internal_error");
    match bench.deliver(&notice("k1")).await {
        Err(DeliveryError::Retry { uncertain, .. }) => assert!(uncertain),
        other => panic!("{other:?}"),
    }
}

/// F-C1: who may not look posts again; who must wait before looking waits.
#[tokio::test]
async fn looking_may_be_forbidden_or_late() {
    let bench = Bench::new().await;
    bench.refuse("conversations.replies", "missing_scope");
    bench.deliver(&again(notice("k1"))).await.unwrap();
    assert_eq!(bench.slack.messages().len(), 1);
    bench.limit("conversations.replies", "60");
    match bench.deliver(&again(notice("k2"))).await {
        Err(DeliveryError::Retry { after, .. }) => assert_eq!(after, Some(Duration::from_secs(60))),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.slack.messages().len(), 1);
}

/// F-C1: what must wait for its turn is not looked for before it: reading a chat's history is dear.
#[tokio::test]
async fn what_is_held_back_is_not_looked_for() {
    let bench = Bench::new().await;
    bench.limit("chat.postMessage", "30");
    let delivery = notice("k1");
    assert_eq!(class(&bench.deliver(&delivery).await), "retry");
    assert_eq!(class(&bench.deliver(&again(delivery)).await), "retry");
    assert_eq!(bench.slack.calls("conversations.replies").len(), 0);
    assert_eq!(bench.slack.calls("chat.postMessage").len(), 1);
}

/// M-5: words of the model call nobody, whatever they hold; the requester of an answer is mentioned once.
#[tokio::test]
async fn the_models_words_call_nobody() {
    let bench = Bench::new().await;
    let evil = "<!channel> <@U0EVE0001> [OK](https://evil.example) @here";
    let answer = || in_slack(&Outbound::Answer(answer(evil, TurnReason::FinalAnswer)));
    bench.deliver(&post("k1", Outbound::Text { text: evil.to_owned() })).await.unwrap();
    bench.deliver(&post("k2", answer())).await.unwrap();
    let plain = post("k3", answer());
    bench.deliver(&Delivery { plain: true, ..plain }).await.unwrap();
    for call in bench.slack.calls("chat.postMessage") {
        let said = call.body.to_string();
        assert!(!said.contains("<!") && !said.contains("<@U0EVE0001"), "{said}");
    }
    let plain = bench.slack.calls("chat.postMessage")[2].body["text"].as_str().unwrap().to_owned();
    assert_eq!(plain.matches("<@").count(), 1, "{plain}");
}

/// design: the bot asks who it is; its token appears in no error and no debug output, even if Slack repeats it.
#[tokio::test]
async fn the_token_stays_inside() {
    let bench = Bench::new().await;
    assert_eq!(bench.client.identity().await.as_deref(), Ok("U0BOT0001"));
    let wrong = Bench::with_token("xoxb-wrong").await;
    assert!(matches!(wrong.client.identity().await, Err(DeliveryError::Forbidden(_))));
    let repeated = json!({"ok": false, "error": "invalid_arguments", "response_metadata": {"messages": [format!("[ERROR] {TOKEN}")]}});
    bench.slack.fault("chat.postMessage", Fault::Answer(200, repeated, None));
    let refused = bench.deliver(&notice("k1")).await;
    assert_eq!(class(&refused), "content");
    let said = format!("{refused:?} {:?} {:?}", bench.client, wrong.client.identity().await);
    assert!(!said.contains("xoxb"), "{said}");
}

/// F-C1: nobody there: try again, with a reason that holds no address.
#[tokio::test]
async fn an_unreachable_platform_is_retried() {
    let bench = Bench::new().await;
    let base_url = bench.slack.base_url.clone();
    let Bench { slack, client } = bench;
    drop(slack);
    // The listener goes with its task; until it is gone a connection may still be taken, and broken.
    match client.deliver(&notice("k1")).await {
        Err(DeliveryError::Retry { reason, .. }) => assert!(!reason.contains(&base_url["http://".len()..]), "{reason}"),
        other => panic!("{other:?}"),
    }
}
