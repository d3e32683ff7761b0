//! What answers no open gate: late words, words to a running turn, commands and tasks.

use super::*;

/// B5: late words after expiry are told so and run nothing; other text is a new task.
#[test]
fn late_after_expiry() {
    let gate = gate("g", "u1", "");
    let expired = decided(&gate, DecisionKind::Expire);
    let goal = "goal of g".to_owned();
    let told = Meaning::Tell("late", Notice::Expired { goal, again: true });
    for text in ["OK", "取消"] {
        assert_eq!(route(&said(text).closed(expired.clone())), told, "{text}");
    }
    assert_eq!(route(&said("先备份").closed(expired.clone())), Meaning::Task(0));
    let reply = |text: &str| {
        said(text)
            .unmentioned()
            .reply(ReplyTo::Card, expired.clone(), TurnStatus::Cancelled)
    };
    for text in ["OK", "先备份"] {
        assert_eq!(route(&reply(text)), told, "a reply to that card: {text}");
    }
    assert_eq!(
        route(&said("OK").unmentioned().closed(expired.clone())),
        Meaning::Ignore("not for us")
    );
    let again = GateRecord {
        asked_again: Some(AskedAgain {
            by: "u9".to_owned(),
            through_api: false,
            at: Millis(1_600),
            event_id: None,
        }),
        ..expired
    };
    let newer = Notice::AskedBefore {
        by: "u9".to_owned(),
        through_api: false,
        at: Millis(1_600).rfc3339(),
    };
    assert_eq!(
        route(&said("OK").closed(again)),
        Meaning::Tell("late", newer),
        "the plan was asked for again"
    );
    assert_eq!(route(&said("OK")), Meaning::Task(0), "nothing was ever asked");
}

/// B6: the second approver hears who was first; their word is not a task.
#[test]
fn late_after_a_decision() {
    let gate = gate("g", "u1", "");
    let first = decided(&gate, DecisionKind::Approve);
    let told = Meaning::Tell("late", too_late(&first, false));
    assert_eq!(route(&said("OK").closed(first.clone())), told);
    assert_eq!(
        route(&said("OK").closed(first.clone()).runs(turn(&gate, TurnStatus::Running))),
        told
    );
    assert_eq!(route(&said("OK").reply(ReplyTo::Card, first.clone(), TurnStatus::Running)), told);
    let after = said("再加一节").reply(ReplyTo::Card, first, TurnStatus::Completed);
    assert_eq!(route(&after), Meaning::Task(0), "under an approved card people talk on");
}

/// design: a late word means the sender's closed gate before it means a gate that is not theirs to decide.
#[test]
fn own_closed_gate_is_nearer() {
    let (mine, other) = (gate("a", "u1", ""), gate("b", "u3", ""));
    let expired = decided(&mine, DecisionKind::Expire);
    let context = said("OK").open(&[&other]).closed(expired.clone());
    assert_eq!(route(&context), Meaning::Tell("late", too_late(&expired, false)));
    let context = said("OK").open(&[&other]).closed(expired).approvers(Approvers::Anyone);
    assert_eq!(route(&context), approve(&other), "exactly one open gate that they may decide");
}

/// design: while a turn runs, messages queue, steer or interrupt; the queue has an end.
#[test]
fn while_a_turn_runs() {
    let running = turn(&gate("g", "u1", ""), TurnStatus::Running);
    let context = |mode, queued| {
        let mut context = said("再加一节").runs(running.clone());
        (context.queue_mode, context.queued, context.waiting) = (mode, queued, queued);
        context
    };
    assert_eq!(route(&context(QueueMode::Followup, 0)), Meaning::Task(1));
    assert_eq!(route(&context(QueueMode::Followup, 19)), Meaning::Task(20));
    let full = Meaning::Tell("queue full", Notice::QueueFull { limit: 20 });
    assert_eq!(route(&context(QueueMode::Followup, 20)), full.clone());
    assert_eq!(route(&context(QueueMode::Steer, 0)), Meaning::Steer(running.id.clone()));
    assert_eq!(route(&context(QueueMode::Interrupt, 0)), Meaning::Instead);
    let mut elsewhere = said("第二件事");
    elsewhere.waiting = 20;
    assert_eq!(
        route(&elsewhere),
        full,
        "the limit is of a person in a chat: threads have no queues of their own to fill"
    );
    let mut anew = said("/new 第二件事");
    (anew.queued, anew.waiting) = (3, 22);
    assert_eq!(route(&anew), Meaning::Instead, "three of them are dropped");
    anew.waiting = 23;
    assert_eq!(route(&anew), full, "`/new` is no way round the limit");
    let mut dropping = said("/new");
    dropping.waiting = 23;
    assert_eq!(route(&dropping), Meaning::Instead, "it asks for nothing");
    let mut waiting = said("第二件事");
    waiting.queued = 1;
    assert_eq!(route(&waiting), Meaning::Task(1), "accepted, not begun: still behind it");
}

/// design: a reply to the running card always steers, for its requester; for others it is a task of their own.
#[test]
fn reply_to_the_running_card_steers() {
    let gate = gate("g", "u1", "");
    for to in [ReplyTo::Card, ReplyTo::Post] {
        let context = said("数字用千分位").unmentioned();
        let context = context.reply(to, decided(&gate, DecisionKind::Approve), TurnStatus::Running);
        assert_eq!(route(&context), Meaning::Steer(gate.turn_id.clone()), "{to:?}");
        assert_eq!(route(&context.by("u2")), Meaning::Task(0), "{to:?}");
    }
    let mut unplanned = said("数字用千分位").unmentioned();
    unplanned.reply = Some(Reply {
        to: ReplyTo::Post,
        turn_id: gate.turn_id.clone(),
        turn: Some(turn(&gate, TurnStatus::Running)),
        gate: None,
    });
    assert_eq!(route(&unplanned), Meaning::Steer(gate.turn_id), "a turn without any gate too");
}

/// design: `/stop` overtakes, `/new …` supersedes, the others tell; a stop word to a running task means stop.
#[test]
fn commands_are_carried_out() {
    let gate = gate("g", "u1", "");
    let running = turn(&gate, TurnStatus::Running);
    assert_eq!(route(&said("/stop").runs(running.clone())), Meaning::Stop(None));
    assert_eq!(route(&said("/new 写日报").runs(running.clone())), Meaning::Instead);
    assert_eq!(route(&said("/plan 写日报")), Meaning::Task(0));
    let mut steered = said("/plan 写日报").runs(running.clone());
    steered.queue_mode = QueueMode::Steer;
    assert_eq!(route(&steered), Meaning::Task(1), "a task of its own, never words for what runs");
    steered.queue_mode = QueueMode::Interrupt;
    assert_eq!(route(&steered), Meaning::Instead);
    assert_eq!(route(&said("/plan").runs(running.clone())), Meaning::Status);
    assert_eq!(route(&said("/status")), Meaning::Status);
    assert_eq!(route(&said("/dance")), Meaning::Tell("help", Notice::Help {}));
    assert_eq!(route(&said("/stop").unmentioned()), Meaning::Ignore("not for us"));
    assert_eq!(route(&said("停下 /stop")), Meaning::Task(0));
    let approved = decided(&gate, DecisionKind::Approve);
    assert_eq!(route(&said("取消").runs(running.clone()).closed(approved)), Meaning::Stop(None));
    for word in ["停止", "停", "停下", "终止", "中止", "stop"] {
        assert_eq!(
            route(&said(word).runs(running.clone())),
            Meaning::Stop(None),
            "{word}, with a mention"
        );
        assert_eq!(
            route(&said(word).alone().runs(running.clone())),
            Meaning::Stop(None),
            "{word}, alone with us"
        );
        let inside = said(word).unmentioned().in_thread("om_t").runs(running.clone());
        assert_eq!(route(&inside), Meaning::Stop(None), "{word}, in the task's thread");
        let replied = said(word)
            .unmentioned()
            .reply(ReplyTo::Post, decided(&gate, DecisionKind::Approve), TurnStatus::Running);
        assert_eq!(route(&replied), Meaning::Stop(None), "{word}, in reply to a post of the task");
        let overheard = said(word).unmentioned().runs(running.clone());
        assert_eq!(route(&overheard), Meaning::Ignore("not for us"), "{word}, said to nobody");
    }
}

/// design: `/stop` as a reply to somebody else's card is a refusal by those who may, and refused to the others.
#[test]
fn stop_under_somebody_elses_card() {
    let gate = gate("g", "u1", "");
    let context = |approvers| {
        let context = said("/stop").by("u2").approvers(approvers).open(&[&gate]);
        context.reply(ReplyTo::Card, undecided(&gate), TurnStatus::Paused)
    };
    assert_eq!(route(&context(listed(&["u2"]))), Meaning::Stop(Some(gate.turn_id.clone())));
    assert_eq!(route(&context(Approvers::Requester)), refused(&gate));
}

/// design: attachments never answer a gate; whoever spoke to us hears why. Texts longer than we read run nothing.
#[test]
fn attachments_and_long_texts() {
    let gate = gate("g", "u1", "");
    let mut context = said("[image]").open(&[&gate]);
    context.attachment_only = true;
    assert_eq!(route(&context), Meaning::Tell("no text", Notice::NotText {}));
    assert_eq!(route(&context.unmentioned()), Meaning::Ignore("no text"));
    let mut context = said("很长").open(&[&gate]);
    context.truncated = true;
    assert_eq!(route(&context), Meaning::Tell("too long", Notice::TooLong { limit: 16_384 }));
}

/// M-5: in groups only what is said to us is a task; a bare mention gets a greeting; `group_trigger: all` takes everything.
#[test]
fn tasks_in_groups() {
    assert_eq!(route(&said("写周报")), Meaning::Task(0));
    assert_eq!(route(&said("写周报").unmentioned()), Meaning::Ignore("not for us"));
    assert_eq!(route(&said("写周报").alone()), Meaning::Task(0));
    assert_eq!(route(&said("")), Meaning::Tell("greeting", Notice::Greeting {}));
    assert_eq!(route(&said("").alone()), Meaning::Ignore("empty"));
    let mut all = said("写周报").unmentioned();
    all.group_all = true;
    assert_eq!(route(&all), Meaning::Task(0));
}

/// interface (I): `group_trigger: thread` takes the words of somebody with a task in the thread as said to us, whatever waits or runs there.
#[test]
fn words_in_a_thread_of_ones_own() {
    let thread = "1780000000.000100";
    let gate = gate("g", "u1", thread);
    let own = |text: &str| MessageContext {
        own_thread: true,
        ..said(text).in_thread(thread).unmentioned()
    };
    assert_eq!(route(&own("再短一点")), Meaning::Task(0));
    assert_eq!(route(&own("/status")), Meaning::Status);
    assert_eq!(route(&own("")), Meaning::Ignore("empty"), "nobody called");
    assert_eq!(
        route(&own("再短一点").open(&[&gate])),
        does(&gate, Act::Revise("再短一点".to_owned()))
    );
    assert_eq!(route(&own("再短一点").runs(turn(&gate, TurnStatus::Running))), Meaning::Task(1));
    let below = own("再短一点").reply(ReplyTo::Request, decided(&gate, DecisionKind::Approve), TurnStatus::Completed);
    assert_eq!(route(&below), Meaning::Task(0), "after the end a task of its own");
    let mut others = own("小李你看呢");
    others.said.to_others = true;
    assert_eq!(route(&others), Meaning::Ignore("said to others"));
    let mut all = own("大家看呢");
    all.to_all = true;
    assert_eq!(route(&all), Meaning::Ignore("said to others"));
    let mut picture = own("[image]");
    picture.attachment_only = true;
    assert_eq!(route(&picture), Meaning::Tell("no text", Notice::NotText {}));
}

/// interface (I): in a thread below somebody else's request a person's words are about their own task there, never a change to the other's plan.
#[test]
fn words_below_somebody_elses_request_are_about_ones_own() {
    let thread = "1780000000.000100";
    let (theirs, own) = (gate("g", "u1", thread), gate("own", "u2", thread));
    let below = |text: &str, open: &[&Gate]| {
        let context = said(text)
            .by("u2")
            .in_thread(thread)
            .approvers(Approvers::Anyone)
            .unmentioned()
            .open(open);
        let context = context.reply(ReplyTo::Request, undecided(&theirs), TurnStatus::Paused);
        MessageContext {
            own_thread: true,
            ..context
        }
    };
    assert_eq!(
        route(&below("先备份", &[&theirs, &own])),
        does(&own, Act::Revise("先备份".to_owned()))
    );
    assert_eq!(route(&below("先备份", &[&theirs])), Meaning::Task(0));
}

/// design: where a flat message has a thread of its own, a listed word or a command beside the thread means the task inside it.
#[test]
fn words_beside_the_thread() {
    let gate = gate("g", "u1", "1780000000.000100");
    let running = turn(&gate, TurnStatus::Running);
    let beside = |text| {
        said(text)
            .in_thread("1780000009.000100")
            .runs_elsewhere(std::slice::from_ref(&running))
    };
    assert_eq!(route(&beside("cancel")), Meaning::Stop(None));
    assert_eq!(route(&beside("/stop")), Meaning::Stop(None));
    assert_eq!(route(&beside("OK")), Meaning::Status, "as a task of its own it would make no sense");
    assert_eq!(route(&beside("写日报")), Meaning::Task(0), "anything else is a task of its own");
    assert_eq!(route(&beside("cancel").unmentioned()), Meaning::Ignore("not for us"));
    let several = said("cancel").runs_elsewhere(&[running.clone(), running]);
    assert_eq!(route(&several), Meaning::Stop(None), "which one is asked there");
    let waiting = said("no").in_thread("1780000009.000100").open(&[&gate]);
    assert_eq!(route(&waiting), does(&gate, Act::Cancel), "an open gate is nearer");
}

/// design: in a thread every message is a reply to the request; what others say there without our name is talk among people.
#[test]
fn talk_below_somebody_elses_request() {
    let gate = gate("g", "u1", "1780000000.000100");
    let below = |text| {
        let context = said(text)
            .by("u2")
            .in_thread("1780000000.000100")
            .approvers(Approvers::Anyone)
            .open(&[&gate]);
        context.reply(ReplyTo::Request, undecided(&gate), TurnStatus::Paused)
    };
    assert_eq!(route(&below("步骤太多了吧").unmentioned()), Meaning::Ignore("not for us"));
    assert_eq!(route(&below("OK").unmentioned()), approve(&gate));
    assert_eq!(route(&below("先备份")), does(&gate, Act::Revise("先备份".to_owned())), "said to us");
    let own = said("先备份").in_thread("1780000000.000100").unmentioned().open(&[&gate]);
    let own = own.reply(ReplyTo::Request, undecided(&gate), TurnStatus::Paused);
    assert_eq!(route(&own), does(&gate, Act::Revise("先备份".to_owned())));
}

/// A bare word in somebody's own chat with us is about what they asked for there: a card of another chat that was sent to them is not
/// decided by a second `OK`, or by a word that stops their own task.
#[test]
fn own_matters_come_before_a_card_that_was_sent_here() {
    let mut sent = gate("g", "u2", "");
    sent.conversation.chat = "another".to_owned();
    let own = gate("own", "u1", "");
    let closed = decided(&own, DecisionKind::Approve);
    let told = |text: &str| said(text).alone().approvers(Approvers::Anyone).open(&[&sent]);
    assert_eq!(route(&told("OK")), approve(&sent), "nothing of their own is there");
    assert!(matches!(route(&told("OK").closed(closed)), Meaning::Tell("which one", _)));
    let running = || turn(&own, TurnStatus::Running);
    assert!(matches!(route(&told("OK").runs(running())), Meaning::Tell("which one", _)));
    assert!(matches!(route(&told("停").runs(running())), Meaning::Stop(_)));
}
