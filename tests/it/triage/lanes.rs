//! Everything that answers no gate: tasks and their order, commands, and what happens to messages and chats.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_agent::domain::SignalKind;
use countersign_agent::domain::{GateKind, InboundBody, Millis, Notice, Outbound, QueueMode, ReactionMark};
use countersign_gateway::store::OutboxOp;

use super::cards::TTL;
use super::words::{happens, says};
use super::world::{Sent, World};

/// M-1: an event that comes again, by event id or by message id, is one task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_copies_are_one_task() {
    let world = World::new().await;
    let first = says("1", "u1", "写周报").inbound;
    world.receive(first.clone()).await;
    for _ in 0..10 {
        world.receive(first.clone()).await;
    }
    let (a, b) = (world.conversations.clone(), world.conversations.clone());
    let (a, b) = tokio::join!(a.triage(), b.triage());
    assert!(a.unwrap() + b.unwrap() >= 1);
    assert_eq!(world.queue("u1", "").await, ["写周报"]);
}

/// design: any number of workers triage at once; each row is handled once, in order per sender.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_triage_at_once() {
    let mut world = World::new().await;
    for nth in 0..60 {
        world
            .accept(says(&nth.to_string(), &format!("u{}", nth % 4), &format!("任务{nth:02}")))
            .await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let conversations = world.conversations.clone();
        workers.spawn(async move { while conversations.triage().await.unwrap() > 0 {} });
    }
    workers.join_all().await;
    assert_eq!(world.untriaged().await, 0);
    for user in 0..4 {
        let expected: Vec<String> = (0..60).filter(|nth| nth % 4 == user).map(|nth| format!("任务{nth:02}")).collect();
        assert_eq!(world.queue(&format!("u{user}"), "").await, expected);
    }
    let marks = world
        .deliver()
        .await
        .into_iter()
        .filter(|sent| matches!(sent.op, OutboxOp::React { .. }))
        .count();
    assert_eq!(marks, 60);
}

/// F-P2: a process that stops begins no further row, however many it has read: what is left is found by others.
#[tokio::test]
async fn who_stops_leaves_the_rest() {
    let world = World::new().await;
    for nth in 0..5 {
        world.accept(says(&nth.to_string(), "u1", &format!("任务{nth}"))).await;
    }
    let looks = AtomicUsize::new(0);
    let over = || looks.fetch_add(1, Ordering::SeqCst) == 2;
    assert_eq!(world.conversations.triage_until(over).await.unwrap(), 2);
    assert_eq!(world.untriaged().await, 3);
    assert_eq!(world.queue("u1", "").await, ["任务0", "任务1"]);
}

/// design: until the bot knows its own id, group messages wait, in order, and hold up nobody else.
#[tokio::test]
async fn identity_comes_later() {
    let world = World::new().await;
    let other = |words: super::words::Words| {
        let mut words = words;
        "cli_b".clone_into(&mut words.inbound.conversation.app);
        words
    };
    for nth in 0..70 {
        world.accept(other(says(&format!("g{nth}"), "u1", "写周报"))).await;
    }
    world.accept(other(says("d1", "u1", "查天气").direct().chat("oc_p2p"))).await;
    world.accept(other(says("d2", "u1", "在同一个群里").direct())).await;
    assert_eq!(
        world.conversations.triage().await.unwrap(),
        1,
        "alone with the bot no identity is needed"
    );
    assert_eq!(
        world.untriaged().await,
        71,
        "but an older row of the same person and chat goes first"
    );
    let mut tx = world.ledger.begin().await.unwrap();
    tx.set_fact("bot.lark.cli_b", super::words::BOT).await.unwrap();
    tx.commit().await.unwrap();
    while world.conversations.triage().await.unwrap() > 0 {}
    assert_eq!(world.untriaged().await, 0);
}

/// F-H10: while a turn runs the requester's messages queue, at most twenty in all threads of the chat, and "queue full" is told once a minute;
/// other people's lanes run beside it.
#[tokio::test]
async fn queue_has_an_end() {
    let mut world = World::new().await;
    world.hear(says("0", "u1", "写周报")).await;
    world.begin().await;
    world.deliver().await;
    for nth in 1..=20 {
        world.hear(says(&nth.to_string(), "u1", &format!("任务{nth}"))).await;
        assert_eq!(world.notices().await, [Notice::Queued { position: nth }]);
    }
    world.hear(says("21", "u1", "任务21")).await;
    assert_eq!(world.notices().await, [Notice::QueueFull { limit: 20 }]);
    for nth in 22..=50 {
        world.hear(says(&nth.to_string(), "u1", "再来").thread(&format!("omt_{nth}"))).await;
        assert_eq!(world.notices().await, [], "threads share the limit, and a minute has not passed");
    }
    world.clock.advance(Duration::from_secs(40));
    world.hear(says("51", "u1", "再来")).await;
    assert_eq!(
        world.notices().await,
        [Notice::QueueFull { limit: 20 }],
        "a minute later it is told again"
    );
    assert_eq!(world.queue("u1", "").await.len(), 20);
    assert_eq!(
        world.queue("u1", "omt_22").await,
        Vec::<String>::new(),
        "a thread of its own gets nobody past the limit"
    );
    world.hear(says("52", "u2", "查天气")).await;
    assert_eq!(world.notices().await, []);
    assert_eq!(world.begin().await.user, "u2");
}

/// design: `steer` hands words to the running turn, `interrupt` lets them take its place, a reply to its card always steers.
#[tokio::test]
async fn words_for_a_running_turn() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", "OK")).await;
    world.deliver().await;
    let card = gate.card_message.unwrap();
    world.hear(says("3", "u1", "数字用千分位").plain().reply(&[&card])).await;
    assert_eq!(world.notices().await, [Notice::Steered {}]);
    world.conversations = world.conversations_with(|live| live.agent.queue_mode = QueueMode::Steer);
    world.hear(says("4", "u1", "再加一节")).await;
    assert_eq!(world.signals(&turn).await, [SignalKind::Steer, SignalKind::Steer]);
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new());
    world.conversations = world.conversations_with(|live| live.agent.queue_mode = QueueMode::Interrupt);
    world.hear(says("5", "u1", "改写日报")).await;
    assert_eq!(world.signals(&turn).await.last(), Some(&SignalKind::Supersede));
    assert_eq!(world.queue("u1", "").await, ["改写日报"]);
}

/// design: words for a turn that was told to stop, or whose gate was refused or has lapsed, are a task of their own, whether or not
/// anybody has read that: the turn would take them along.
#[tokio::test]
async fn words_for_an_ending_turn_are_a_task() {
    let steering = async || World::with(|live| live.agent.queue_mode = QueueMode::Steer).await;
    let world = steering().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.hear(says("2", "u1", "/stop")).await;
    world.hear(says("3", "u1", "写日报")).await;
    assert_eq!(world.signals(&turn).await, [SignalKind::Cancel]);
    assert_eq!(world.queue("u1", "").await, ["写日报"]);

    for lapses in [false, true] {
        let mut world = steering().await;
        world.hear(says("1", "u1", "写周报")).await;
        let turn = world.begin().await;
        let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
        if lapses {
            world.clock.advance(TTL * 3);
        } else {
            world.hear(says("2", "u1", "取消")).await;
            assert_eq!(world.decision(&gate).await, "cancel u1");
        }
        world.hear(says("3", "u1", "写日报")).await;
        assert_eq!(world.signals(&turn).await, []);
        assert_eq!(world.queue("u1", "").await, ["写日报"]);
    }

    // Refused actions end nothing: the turn goes on and reads.
    let mut world = steering().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::ToolApproval, 1).await;
    world.hear(says("2", "u1", "取消")).await;
    assert_eq!(world.decision(&gate).await, "reject u1");
    world.hear(says("3", "u1", "先写提纲")).await;
    assert_eq!(world.signals(&turn).await, [SignalKind::Steer]);
}

/// design: `/stop` acts on what is older than itself and overtakes the queue; a waiting gate is cancelled with its turn.
#[tokio::test]
async fn stop_overtakes() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::ToolApproval, 1).await;
    world.hear(says("2", "u2", "查天气")).await;
    let other = world.begin().await;
    world.accept(says("3", "u2", "再查一次")).await;
    world.accept(says("4", "u1", "/stop")).await;
    world.accept(says("5", "u1", "写日报")).await;
    while world.conversations.triage().await.unwrap() > 0 {}
    assert_eq!(world.signals(&turn).await, [SignalKind::Cancel]);
    assert_eq!(world.decision(&gate).await, "cancel u1");
    assert!(
        world.actions(&gate).await.iter().all(|row| row.status.as_str() == "rejected"),
        "no row stays open"
    );
    assert_eq!(world.queue("u1", "").await, ["写日报"], "what came after it stays");
    assert_eq!(
        (world.signals(&other).await, world.queue("u2", "").await),
        (vec![], vec!["再查一次".to_owned()])
    );
}

/// interface: `/stop` ends the running task and drops nothing: what waits behind it is done next, as was promised.
#[tokio::test]
async fn stop_leaves_the_queue() {
    let world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.hear(says("2", "u1", "写日报")).await;
    world.hear(says("3", "u1", "/stop")).await;
    assert_eq!(world.signals(&turn).await, [SignalKind::Cancel]);
    assert_eq!(world.queue("u1", "").await, ["写日报"]);
}

/// design: `/stop` with nothing to stop says so; with only waiting tasks it drops them, and marks each.
#[tokio::test]
async fn stop_without_a_turn() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "/stop")).await;
    assert_eq!(world.notices().await, [Notice::NothingToStop {}]);
    world.hear(says("2", "u1", "写周报")).await;
    world.hear(says("3", "u1", "/stop")).await;
    let sent = world.deliver().await;
    let marks = sent.iter().filter_map(|sent| match &sent.op {
        OutboxOp::React { message_id, mark, .. } => Some((message_id.as_str(), *mark)),
        _ => None,
    });
    let marks: Vec<_> = marks.collect();
    assert!(marks.iter().any(|(_, mark)| *mark == Some(ReactionMark::Failed)), "{marks:?}");
    let stopped = |sent: &Sent| matches!(&sent.op, OutboxOp::Post { content: Outbound::Notice(Notice::Stopped { goal, done, .. }), .. } if goal == "写周报" && done.is_empty());
    assert!(sent.iter().any(stopped), "{sent:?}");
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new());
}

/// design: `/new …` supersedes what runs or waits and becomes the task.
#[tokio::test]
async fn new_supersedes() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u1", "/new 写月报")).await;
    assert_eq!(world.decision(&gate).await, "supersede u1");
    assert_eq!(world.signals(&turn).await, [SignalKind::Supersede]);
    assert_eq!(world.queue("u1", "").await, ["写月报"]);
    assert_eq!(world.notices().await, [], "no word about a queue: it is next");
}

/// design: `/status` tells goal and state; `/help` helps.
#[tokio::test]
async fn status_and_help() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "/status")).await;
    let status = |goal: Option<&str>, state: &str| Notice::Status {
        goal: goal.map(str::to_owned),
        state: state.to_owned(),
        steps: vec![],
    };
    assert_eq!(world.notices().await, [status(None, "idle")]);
    world.hear(says("2", "u1", "写周报")).await;
    let turn = world.begin().await;
    world.hear(says("3", "u1", "/status")).await;
    assert_eq!(world.notices().await, [status(Some("写周报"), "running")]);
    world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("4", "u1", "/plan")).await;
    world.hear(says("5", "u1", "/help")).await;
    assert_eq!(world.notices().await, [status(Some("写周报"), "plan_review"), Notice::Help {}]);
}

/// design: of a task of somebody else `/status` tells nothing.
#[tokio::test]
async fn status_is_about_ones_own_tasks() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    world.begin().await;
    world.hear(says("2", "u2", "/status")).await;
    let told = world.notices().await;
    assert!(
        matches!(&told[..], [Notice::Status { goal: None, state, .. }] if state == "idle"),
        "{told:?}"
    );
}

/// B19: a recalled request cancels its turn, or is dropped while it waits; other recalls change nothing.
#[tokio::test]
async fn recall() {
    let recall = |id: &str, message: &str| {
        let message_id = message.to_owned();
        happens(id, "", InboundBody::Recalled { message_id })
    };
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u2", "查天气")).await;
    world.hear(recall("r2", "om_2")).await;
    assert_eq!(world.queue("u2", "").await, Vec::<String>::new());
    world.hear(recall("r0", &gate.card_message.clone().unwrap())).await;
    assert_eq!(
        (world.signals(&turn).await, world.decision(&gate).await),
        (vec![], "open".to_owned())
    );
    world.hear(recall("r1", "om_1")).await;
    assert_eq!(
        (world.signals(&turn).await, world.decision(&gate).await),
        (vec![SignalKind::Cancel], "cancel ".to_owned())
    );
}

/// design: rows of earlier programs read back: an edit that told nothing but its message, a mark, one that is taken away.
#[test]
fn rows_of_earlier_programs_read_back() {
    let edit: InboundBody = serde_json::from_str(r#"{"kind":"edited","message_id":"om_1"}"#).unwrap();
    let message_id = "om_1".to_owned();
    assert_eq!(edit, InboundBody::Edited { message_id, new: None });
    let row = r#"{"op":"react","message_id":"om_1","content":{"shows":"reaction","done":null}}"#;
    let mark: OutboxOp = serde_json::from_str(row).unwrap();
    let (done, key) = (Some(ReactionMark::Done), Some("o_1"));
    assert!(matches!(mark, OutboxOp::React { mark, shown: None, .. } if mark == done));
    let away: OutboxOp = serde_json::from_str(&row.replace("}}", r#"},"undoes":"o_1","working":true}"#)).unwrap();
    assert!(matches!(away, OutboxOp::React { shown, .. } if shown.as_deref() == key));
}

/// B19, F-H14: an edited request is noted on the card; an edit never decides.
#[tokio::test]
async fn edit() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    let message_id = "om_1".to_owned();
    world.hear(happens("e1", "u1", InboundBody::Edited { message_id, new: None })).await;
    assert_eq!(world.signals(&turn).await, [SignalKind::Edited]);
    assert_eq!(world.decision(&gate).await, "open");
    let noted = world
        .deliver()
        .await
        .into_iter()
        .any(|sent| matches!(sent.op, OutboxOp::Patch { content: Outbound::PlanCard(card), .. } if card.request_edited));
    assert!(noted);
}

/// B19: of two edits of a request that waits the later one counts, in whatever order they come; a recall still drops it.
#[tokio::test]
async fn edits_of_a_request_that_waits() {
    let world = World::new().await;
    world.hear(says("0", "u1", "写周报")).await;
    world.begin().await;
    world.hear(says("1", "u1", "查天气")).await;
    let edit = |id: &str, text: &str, at: Millis| {
        let InboundBody::Message(new) = says("1", "u1", text).inbound.body else {
            unreachable!()
        };
        let message_id = "om_1".to_owned();
        happens(
            id,
            "u1",
            InboundBody::Edited {
                message_id,
                new: Some(Box::new(new)),
            },
        )
        .at(at)
    };
    let now = world.clock.now();
    world.hear(edit("e2", "查明天的天气", now.plus(Duration::from_secs(20)))).await;
    world.hear(edit("e1", "查今天的天气", now.plus(Duration::from_secs(10)))).await;
    assert_eq!(world.queue("u1", "").await, ["查明天的天气"]);
    let message_id = "om_1".to_owned();
    world.hear(happens("e3", "u1", InboundBody::Edited { message_id, new: None })).await;
    assert_eq!(world.queue("u1", "").await, ["查明天的天气"], "nothing is known of it");
    let message_id = "om_1".to_owned();
    world.hear(happens("r1", "", InboundBody::Recalled { message_id })).await;
    assert_eq!(world.queue("u1", "").await, Vec::<String>::new());
}

/// F-H16: the bot is welcomed into a chat; when it is removed everything there ends.
#[tokio::test]
async fn joined_and_left() {
    let mut world = World::new().await;
    world.hear(happens("j", "u9", InboundBody::Joined)).await;
    assert_eq!(world.notices().await, [Notice::Welcome {}]);
    world.hear(says("1", "u1", "写周报").thread("omt_a")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.hear(says("2", "u2", "查天气")).await;
    let other = world.begin().await;
    world.hear(says("3", "u2", "再查一次")).await;
    world.hear(says("4", "u3", "谁也没开始")).await;
    world.hear(happens("l", "u9", InboundBody::Left)).await;
    assert_eq!(
        (world.signals(&turn).await, world.signals(&other).await),
        (vec![SignalKind::Cancel], vec![SignalKind::Cancel])
    );
    assert_eq!(world.decision(&gate).await, "cancel ");
    assert_eq!(world.queue("u2", "").await, Vec::<String>::new());
    assert_eq!(world.queue("u3", "").await, Vec::<String>::new(), "a lane without a turn, too");
}

/// interface: `allowed_chats` and `allowed_users` refuse silently.
#[tokio::test]
async fn allow_lists_are_silent() {
    let mut world = World::with(|live| {
        live.lark.allowed_chats = vec!["oc_c1".to_owned()];
        live.lark.allowed_users = vec!["u1".to_owned()];
    })
    .await;
    world.hear(says("1", "u2", "写周报")).await;
    world.hear(says("2", "u1", "写周报").chat("oc_c2")).await;
    world.hear(says("3", "u2", "/stop")).await;
    assert_eq!((world.untriaged().await, world.deliver().await), (0, vec![]));
    world.hear(says("4", "u1", "写周报")).await;
    assert_eq!(world.queue("u1", "").await, ["写周报"]);
}

/// M-5: what people in a group say to each other is none of our business, open review or not.
#[tokio::test]
async fn group_chatter() {
    let mut world = World::new().await;
    world.hear(says("1", "u1", "中午吃什么").plain()).await;
    world.hear(says("2", "u1", "OK").plain()).await;
    assert_eq!(world.deliver().await, []);
    world.hear(says("3", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    world.deliver().await;
    world.hear(says("4", "u1", "中午吃什么").plain()).await;
    world.hear(says("5", "u2", "OK").plain()).await;
    assert_eq!((world.decision(&gate).await, world.deliver().await), ("open".to_owned(), vec![]));
    world.hear(says("6", "u1", "OK").plain()).await;
    assert_eq!(world.decision(&gate).await, "approve u1");
}

/// attacks N7: the same command or refusal is answered to one person once in five seconds; another one, another person, and a later time are not
/// held back by it.
#[tokio::test]
async fn a_flood_of_commands_is_answered_once() {
    let mut world = World::new().await;
    for nth in 0..4 {
        world.hear(says(&format!("a{nth}"), "u1", "/help")).await;
        world.receive(says(&format!("b{nth}"), "u1", "/dance").inbound).await;
    }
    world.conversations.triage().await.unwrap();
    let told = world.notices().await;
    assert!(
        (1..=2).contains(&told.len()) && told.iter().all(|told| *told == Notice::Help {}),
        "{told:?}"
    );
    world.clock.advance(Duration::from_secs(5));
    for nth in 0..3 {
        world.accept(says(&format!("c{nth}"), "u2", "/help")).await;
        world.accept(says(&format!("d{nth}"), "u2", "/grants revoke 7")).await;
    }
    world.conversations.triage().await.unwrap();
    let told = world.notices().await;
    let count = |wanted: &Notice| told.iter().filter(|told| *told == wanted).count();
    let number = String::from("7");
    assert!((1..=2).contains(&count(&Notice::Help {})), "{told:?}");
    assert!((1..=2).contains(&count(&Notice::NoSuchGrant { number })), "{told:?}");
    world.hear(says("e1", "u1", "写周报")).await;
    let turn = world.begin().await;
    let gate = world.gate(&turn, GateKind::PlanReview, 1).await;
    for nth in 0..3 {
        world.hear(says(&format!("f{nth}"), "u3", "OK")).await;
    }
    let requester = String::from("u1");
    assert_eq!(world.notices().await, [Notice::NotEntitled { requester }]);
    assert_eq!(world.decision(&gate).await, "open");
}
