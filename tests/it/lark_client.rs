//! The Lark client against a Lark that we play: tokens, retries, fall-backs, and what is never said.

use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{
    CardState, ChannelKind, Clock, Conversation, DecisionKind, Locale, Millis, Notice, Outbound, OutboxOp, ReactionMark, TurnReason,
};
use countersign_gateway::channels::{Channel as _, Delivery, DeliveryError, LarkClient, Receipt};
use countersign_gateway::config::{EventDelivery, LarkSecrets};
use countersign_playground::{BOT, FakeLark, Fault, Snapshot};
use secrecy::SecretString;
use serde_json::json;

use crate::support::gallery::{answer, copies, plan};
use crate::support::templates::templates;

const SECRET: &str = "s3cr3t-of-the-app";

struct Bench {
    lark: FakeLark,
    client: LarkClient,
    clock: Clock,
}

impl Bench {
    async fn new() -> Self {
        Self::with_secret(SECRET).await
    }

    async fn with_secret(secret: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Clock::manual(Millis(1_765_432_100_000));
        let lark = FakeLark::start("cli_x", SECRET, clock.clone()).await.unwrap();
        lark.learn("om_request", "oc_1");
        let secrets = LarkSecrets {
            base_url: lark.base_url(),
            delivery: EventDelivery::Webhook,
            app_id: String::from("cli_x"),
            app_secret: SecretString::from(secret),
            verification_token: SecretString::from("v"),
            encrypt_key: None,
        };
        let http = countersign_agent::tls::http_client().no_proxy().build().unwrap();
        let client = LarkClient::new(&secrets, templates(), http, &clock);
        Self { lark, client, clock }
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.client.deliver(delivery).await
    }

    /// Lets the next `count` calls of an endpoint go wrong.
    fn fail(&self, endpoint: &str, count: usize, fault: &Fault) {
        (0..count).for_each(|_| self.lark.fault(endpoint, fault.clone()));
    }

    /// The state at the end: nothing that was sent broke a rule of the platform.
    fn clean(&self) -> Arc<Snapshot> {
        let state = self.lark.snapshot();
        assert_eq!(state.violations, Vec::<String>::new());
        state
    }
}

fn delivery(key: &str, op: OutboxOp) -> Delivery {
    Delivery {
        key: key.to_owned(),
        conversation: Conversation {
            channel: ChannelKind::Lark,
            app: String::from("cli_x"),
            tenant: String::from("t"),
            chat: String::from("oc_1"),
            thread: String::new(),
        },
        op,
        locale: Locale::ZhCn,
        plain: false,
        written_at: Millis(0),
        again: false,
        upload: None,
        about: None,
    }
}

fn post(key: &str, content: Outbound) -> Delivery {
    delivery(
        key,
        OutboxOp::Post {
            reply_to: Some(String::from("om_request")),
            content,
        },
    )
}

fn notice(key: &str) -> Delivery {
    post(key, Outbound::Notice(Notice::Done {}))
}

fn open_plan() -> Outbound {
    Outbound::PlanCard(plan(CardState::Open { votes: 0 }))
}

fn refuse(status: u16, code: i64) -> Fault {
    Fault::Answer {
        status,
        code,
        header: None,
    }
}

/// The request with this mark, in place of the one with the id `shown`.
fn marked(mark: Option<ReactionMark>, shown: Option<String>) -> Delivery {
    let message_id = String::from("om_request");
    delivery("k3", OutboxOp::React { message_id, mark, shown })
}

/// M-5: a card is posted as a reply to the request, patched when decided, and the request gets its marks.
#[tokio::test]
async fn a_card_is_posted_patched_and_marked() {
    let bench = Bench::new().await;
    let receipt = bench.deliver(&post("k1", open_plan())).await.unwrap();
    let id = receipt.message_id.unwrap();
    assert!(
        receipt.at.is_some_and(|at| at.0 > 1_600_000_000_000),
        "milliseconds of the platform"
    );
    let decided = Outbound::PlanCard(plan(CardState::Informed));
    bench
        .deliver(&delivery(
            "k2",
            OutboxOp::Patch {
                target: id.clone(),
                content: decided,
            },
        ))
        .await
        .unwrap();
    for mark in [ReactionMark::Seen, ReactionMark::Seen, ReactionMark::Done, ReactionMark::Failed] {
        bench.deliver(&marked(Some(mark), None)).await.unwrap();
    }
    let known = bench.deliver(&marked(Some(ReactionMark::Seen), None)).await.unwrap().message_id;
    // Twice: the second time the mark is gone already.
    for _ in 0..2 {
        let receipt = bench.deliver(&marked(None, known.clone())).await.unwrap();
        assert_eq!(receipt.message_id, None);
    }
    let state = bench.clean();
    let message = state.messages.iter().find(|message| message.id == id).unwrap();
    assert_eq!(
        (message.chat.as_str(), message.reply_to.as_deref(), message.in_thread),
        ("oc_1", Some("om_request"), false)
    );
    assert_eq!(message.versions[0]["header"]["template"], "orange");
    assert_eq!(message.content["header"]["template"], "blue");
    let marks: Vec<&str> = state.reactions.iter().map(|(_, emoji)| emoji.as_str()).collect();
    assert_eq!(marks, ["OnIt", "DONE", "CrossMark"]);
    assert_eq!(state.marks("om_request"), ["DONE", "CrossMark"], "the id of its mark takes it away");
    assert_eq!(state.count("token"), 1);
}

/// F-C4: fifty calls at once share one token.
#[tokio::test]
async fn parallel_calls_fetch_one_token() {
    let bench = Bench::new().await;
    let identities = futures_util::future::join_all((0..50).map(|_| bench.client.identity())).await;
    assert!(identities.iter().all(|identity| identity.as_deref() == Ok(BOT)), "{identities:?}");
    assert_eq!(bench.clean().count("token"), 1);
}

/// F-C4: a token is renewed when less than ten minutes remain, not before.
#[tokio::test]
async fn tokens_are_renewed_early() {
    let bench = Bench::new().await;
    bench.client.identity().await.unwrap();
    bench.clock.advance(Duration::from_secs(7200 - 601));
    bench.client.identity().await.unwrap();
    assert_eq!(bench.lark.snapshot().count("token"), 1);
    bench.clock.advance(Duration::from_secs(2));
    bench.client.identity().await.unwrap();
    assert_eq!(bench.clean().count("token"), 2);
}

/// F-C4: when the early renewal fails, the old token serves to its end.
#[tokio::test]
async fn a_failed_renewal_keeps_the_old_token() {
    let bench = Bench::new().await;
    bench.client.identity().await.unwrap();
    bench.clock.advance(Duration::from_secs(7200 - 300));
    bench.fail("token", 1, &refuse(503, 2200));
    bench.client.identity().await.unwrap();
    bench.fail("token", 1, &refuse(503, 2200));
    bench.clock.advance(Duration::from_secs(301));
    assert!(matches!(bench.client.identity().await, Err(DeliveryError::Retry { .. })));
    assert_eq!(bench.clean().count("bot"), 2);
}

/// F-C4: a stale token (HTTP 400, 99991663) is replaced and the call made once more; parallel calls replace it once.
#[tokio::test]
async fn a_stale_token_is_replaced_once() {
    let bench = Bench::new().await;
    bench.client.identity().await.unwrap();
    bench.lark.expire_tokens();
    let results = futures_util::future::join_all((0..10).map(|_| bench.client.identity())).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(bench.clean().count("token"), 2);
}

/// F-C4: a token that is refused again is not asked for in a loop.
#[tokio::test]
async fn a_token_refused_twice_is_an_admins_matter() {
    let bench = Bench::new().await;
    bench.fail("bot", 2, &refuse(400, 99_991_663));
    assert!(matches!(bench.client.identity().await, Err(DeliveryError::Forbidden(_))));
    let state = bench.clean();
    assert_eq!((state.count("bot"), state.count("token")), (2, 2));
}

/// F-C1: the platform's wish to wait is passed on in seconds, and the message goes out on the next try.
#[tokio::test]
async fn the_rate_header_is_honoured() {
    let bench = Bench::new().await;
    bench.fail(
        "reply",
        1,
        &Fault::Answer {
            status: 429,
            code: 99_991_400,
            header: Some((String::from("x-ogw-ratelimit-reset"), String::from("7"))),
        },
    );
    match bench.deliver(&notice("k1")).await {
        Err(DeliveryError::Retry { after, .. }) => assert_eq!(after, Some(Duration::from_secs(7))),
        other => panic!("{other:?}"),
    }
    bench.deliver(&notice("k1")).await.unwrap();
    assert_eq!(bench.clean().messages.len(), 1);
}

/// F-C1: an answer that got lost leads to no second message: the key is the platform's uuid.
#[tokio::test]
async fn a_lost_answer_makes_no_second_message() {
    let bench = Bench::new().await;
    bench.fail("reply", 1, &Fault::LoseAnswer);
    assert!(matches!(bench.deliver(&notice("k1")).await, Err(DeliveryError::Retry { .. })));
    let receipt = bench.deliver(&notice("k1")).await.unwrap();
    let state = bench.clean();
    assert_eq!(state.messages.len(), 1);
    assert_eq!(receipt.message_id.as_deref(), Some(state.messages[0].id.as_str()));
}

/// M-5: a recalled request is not answered in place; the word goes to the chat.
#[tokio::test]
async fn a_gone_request_is_answered_in_the_chat() {
    let bench = Bench::new().await;
    bench.lark.recall("om_request");
    bench.deliver(&notice("k1")).await.unwrap();
    for (at, code) in [230_110, 231_003, 230_019, 230_050, 99_992_354].into_iter().enumerate() {
        bench.fail("reply", 1, &refuse(400, code));
        bench.deliver(&notice(&format!("c{at}"))).await.unwrap();
    }
    let state = bench.clean();
    assert_eq!(state.messages.len(), 6);
    assert!(
        state
            .messages
            .iter()
            .all(|message| message.chat == "oc_1" && message.reply_to.is_none())
    );
}

/// M-5: an id that cannot be the platform's never enters a path.
#[tokio::test]
async fn odd_ids_never_enter_a_path() {
    let bench = Bench::new().await;
    let odd = || String::from("om_x/../../auth?x=1");
    let content = Outbound::Notice(Notice::Done {});
    bench
        .deliver(&delivery(
            "k1",
            OutboxOp::Post {
                reply_to: Some(odd()),
                content,
            },
        ))
        .await
        .unwrap();
    let patch = bench
        .deliver(&delivery(
            "k2",
            OutboxOp::Patch {
                target: odd(),
                content: open_plan(),
            },
        ))
        .await;
    assert!(matches!(patch, Err(DeliveryError::Gone(_))));
    assert_eq!(bench.clean().messages[0].reply_to, None);
}

/// M-5: an answer in a topic stays in the topic, and where no thread is possible it still arrives.
#[tokio::test]
async fn replies_stay_in_their_thread() {
    let bench = Bench::new().await;
    let mut in_topic = notice("k1");
    in_topic.conversation.thread = String::from("omt_1");
    bench.deliver(&in_topic).await.unwrap();
    bench.fail("reply", 1, &refuse(400, 230_071));
    in_topic.key = String::from("k2");
    bench.deliver(&in_topic).await.unwrap();
    let threads: Vec<bool> = bench.clean().messages.iter().map(|message| message.in_thread).collect();
    assert_eq!(threads, [true, false]);
}

/// F-C2: a refused card is content, and the plain form says all that is needed to answer by text.
#[tokio::test]
async fn a_refused_card_becomes_plain_text() {
    let bench = Bench::new().await;
    bench.fail("reply", 1, &refuse(400, 230_099));
    let mut card = post("k1", open_plan());
    assert!(matches!(bench.deliver(&card).await, Err(DeliveryError::Content(_))));
    card.plain = true;
    bench.deliver(&card).await.unwrap();
    let state = bench.clean();
    let text = state.messages[0].content["text"].as_str().unwrap();
    for part in [
        "<at user_id=\"ou_u1\"></at>",
        "计划确认",
        "1. 读取本周订单表",
        "write_file",
        "请回复 **OK** 继续，或直接回复修改意见。",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

/// F-C5: a decided card that cannot be updated is said under it.
#[tokio::test]
async fn a_card_that_cannot_be_updated_gets_a_word_below() {
    let bench = Bench::new().await;
    let id = bench.deliver(&post("k1", open_plan())).await.unwrap().message_id.unwrap();
    let op = OutboxOp::Patch {
        target: id.clone(),
        content: Outbound::PlanCard(plan(CardState::Informed)),
    };
    bench
        .deliver(&Delivery {
            plain: true,
            ..delivery("k2", op)
        })
        .await
        .unwrap();
    let state = bench.clean();
    assert_eq!(
        (state.messages[1].reply_to.as_deref(), state.messages[1].kind.as_str()),
        (Some(id.as_str()), "text")
    );
}

/// F-C3, F-C6: classes come from the code, also under HTTP 200.
#[tokio::test]
async fn refusals_have_their_class() {
    let bench = Bench::new().await;
    for (status, code, expected) in [
        (200, 230_002, "gone"),
        (400, 99_991_672, "forbidden"),
        (500, 0, "retry"),
        (200, 230_022, "content"),
    ] {
        bench.fail("reply", 1, &refuse(status, code));
        let class = match bench.deliver(&notice("k")).await {
            Err(DeliveryError::Gone(_)) => "gone",
            Err(DeliveryError::Forbidden(_)) => "forbidden",
            Err(DeliveryError::Retry { .. }) => "retry",
            Err(DeliveryError::Content(_)) => "content",
            Ok(_) => "ok",
        };
        assert_eq!(class, expected, "{status} {code}");
    }
}

/// M-5: words of the model call nobody, whatever they hold; the requester of an answer is mentioned once.
#[tokio::test]
async fn text_messages_call_nobody() {
    let bench = Bench::new().await;
    let evil = "<at user_id=\"all\">Everyone</at> [OK](https://evil.example)";
    bench.deliver(&post("k1", Outbound::Text { text: evil.to_owned() })).await.unwrap();
    bench
        .deliver(&post("k2", Outbound::Answer(answer(evil, TurnReason::FinalAnswer))))
        .await
        .unwrap();
    let plain = post("k3", Outbound::Answer(answer(evil, TurnReason::FinalAnswer)));
    bench.deliver(&Delivery { plain: true, ..plain }).await.unwrap();
    let decided = Notice::AlreadyDecided {
        in_place_of: None,
        kind: DecisionKind::Approve,
        by: Some(String::from("ou_u2")),
        through_api: false,
        at: String::new(),
    };
    bench.deliver(&post("k4", Outbound::Notice(decided))).await.unwrap();
    let state = bench.clean();
    let mentions: Vec<usize> = state
        .messages
        .iter()
        .map(|message| message.words().matches("<at").count())
        .collect();
    assert_eq!(mentions, [0, 1, 1, 1]);
}

/// interface §9: a reminder mentions people, and so does the word that others were asked.
#[tokio::test]
async fn reminders_mention_people() {
    for locale in [Locale::ZhCn, Locale::EnUs] {
        let bench = Bench::new().await;
        for (number, notice) in copies::notices().into_iter().enumerate() {
            let delivery = post(&format!("k{number}"), Outbound::Notice(notice));
            bench.deliver(&Delivery { locale, ..delivery }).await.unwrap();
        }
        let said: Vec<String> = bench.clean().messages.iter().map(|message| message.words().to_string()).collect();
        insta::assert_snapshot!(format!("reminders-{}", locale.as_str()), said.join("\n"));
    }
}

/// design: secrets and tokens appear in no error and no debug output.
#[tokio::test]
async fn secrets_stay_inside() {
    let bench = Bench::with_secret("wrong-secret").await;
    let error = bench.client.identity().await.unwrap_err();
    assert!(matches!(error, DeliveryError::Forbidden(_)), "{error:?}");
    let said = format!("{error:?} {error} {:?}", bench.client);
    assert!(!said.contains("wrong-secret") && !said.contains("127.0.0.1/"), "{said}");
}

/// F-C1: nobody there, or nobody who answers: try again, with a reason that holds no address.
#[tokio::test]
async fn an_unreachable_platform_is_retried() {
    let bench = Bench::new().await;
    bench.client.identity().await.unwrap();
    let base_url = bench.lark.base_url();
    let Bench { lark, client, .. } = bench;
    drop(lark);
    // The listener goes with its task; until it is gone a connection may still be taken, and broken.
    match client.identity().await {
        Err(DeliveryError::Retry { reason, .. }) => assert!(!reason.contains(&base_url["http://".len()..]), "{reason}"),
        other => panic!("{other:?}"),
    }
}

/// design: the fake wakes its waiters by change, gives up at the time limit, and stays while a gateway comes and goes.
#[tokio::test]
async fn the_fake_waits_for_a_state() {
    let bench = Bench::new().await;
    let waiting = bench
        .lark
        .wait_for(Duration::from_secs(10), |state| (state.messages.len() == 1).then(|| state.clone()));
    let message = notice("k1");
    let (state, sent) = tokio::join!(waiting, bench.deliver(&message));
    sent.unwrap();
    assert_eq!(state.unwrap().messages[0].content, json!({"text": "已完成。"}));
    let never = bench
        .lark
        .wait_for(Duration::from_millis(1), |state| (state.messages.len() == 2).then(|| state.clone()))
        .await;
    assert!(never.is_none());
}
