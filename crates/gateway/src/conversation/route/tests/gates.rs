//! Answers to open gates: which one is meant, by whom, and what the words do there.

use countersign_agent::domain::handshake::{Actor, Refusal};
use countersign_agent::domain::{ActionId, ActionStatus, ActionView, ApprovalCard, EffectClass, Via};

use super::*;

/// design: at a plan review listed words approve or cancel, anything else is a change, nothing is nothing.
#[test]
fn plan_review_by_phrase() {
    let gate = gate("g", "u1", "");
    let table = [
        ("OK", approve(&gate)),
        ("好的", approve(&gate)),
        ("取消", does(&gate, Act::Cancel)),
        ("第二步先备份", does(&gate, Act::Revise("第二步先备份".to_owned()))),
        ("行", does(&gate, Act::Revise("行".to_owned()))),
        ("", Meaning::Ignore("empty")),
    ];
    for (text, verdict) in table {
        assert_eq!(route(&said(text).open(&[&gate])), verdict, "{text}");
        assert_eq!(route(&said(text).alone().open(&[&gate])), verdict, "alone: {text}");
    }
}

/// design: any text, verbatim, answers a question; only `/stop` cancels there.
#[test]
fn question_takes_any_text() {
    let gate = kind(GateKind::Question, gate("g", "u1", ""));
    for text in ["OK", "取消", "  月底  那份 "] {
        let context = said(text).open(&[&gate]);
        assert_eq!(route(&context), does(&gate, Act::Revise(text.to_owned())), "{text}");
    }
    assert_eq!(route(&said("/stop").open(&[&gate])), Meaning::Stop(None));
}

/// design: tool_approval: approve word = all open rows, refusal = reject all, other text = reject all with that reason.
#[test]
fn tool_approval_by_phrase() {
    let gate = kind(GateKind::ToolApproval, gate("g", "u1", ""));
    assert_eq!(route(&said("OK").open(&[&gate])), approve(&gate));
    assert_eq!(route(&said("不行").open(&[&gate])), does(&gate, Act::Reject(None)));
    let reason = does(&gate, Act::Reject(Some("路径错了".to_owned())));
    assert_eq!(route(&said("路径错了").open(&[&gate])), reason);
}

/// design: budget: approve / refuse, other text asks again.
#[test]
fn budget_needs_yes_or_no() {
    let gate = kind(GateKind::Budget, gate("g", "u1", ""));
    assert_eq!(route(&said("继续").open(&[&gate])), approve(&gate));
    assert_eq!(route(&said("no").open(&[&gate])), does(&gate, Act::Cancel));
    assert_eq!(
        route(&said("还要多久").open(&[&gate])),
        does(&gate, Act::Revise("还要多久".to_owned()))
    );
}

/// interface: a reply to a card is by somebody who has read it, or an earlier one that asks the same: it counts, even while the newer
/// card is on its way or its time is not known.
#[test]
fn a_reply_to_a_card_needs_no_news_of_its_arrival() {
    let mut under_way = gate("rv_2", "u1", "");
    (under_way.card_at, under_way.delivered_at) = (None, None);
    let mut later = gate("rv_2", "u1", "");
    later.card_at = Some(Millis(5_000));
    for open in [&under_way, &later] {
        let reply = |to| said("OK").open(&[open]).reply(to, undecided(open), TurnStatus::Paused);
        assert_eq!(route(&reply(ReplyTo::Card)), approve(open));
        assert_ne!(
            route(&reply(ReplyTo::Request)),
            approve(open),
            "the request was there before any card"
        );
    }
}

/// B2: while nobody knows whether the card arrived, what may be an answer to it waits; a stop does not, and neither does what
/// others say about something else.
#[test]
fn a_message_waits_for_the_news_of_the_cards_arrival() {
    let mut undelivered = gate("rv_1", "u1", "");
    (undelivered.card_at, undelivered.delivered_at) = (None, None);
    let heard = |text: &str| said(text).open(&[&undelivered]).runs(turn(&undelivered, TurnStatus::Paused));
    for text in ["OK", "第二步先备份", "取消"] {
        assert_eq!(route(&heard(text)), Meaning::Wait, "{text}");
    }
    assert_eq!(route(&heard("/stop")), Meaning::Stop(None), "a stop needs no card");
    let of_another = |fresh: bool, replies_to_unknown: bool| {
        let mut context = said("写周报").by("u2").open(&[&undelivered]);
        (context.fresh, context.replies_to_unknown) = (fresh, replies_to_unknown);
        route(&context)
    };
    assert_eq!(of_another(true, true), Meaning::Wait, "this may be the card");
    assert_eq!(of_another(false, true), Meaning::Task(0), "long enough");
    assert_eq!(of_another(true, false), Meaning::Task(0), "about nothing of this");
    let mut unmentioned = said("OK").unmentioned().open(&[&undelivered]);
    unmentioned.replies_to_unknown = true;
    assert_eq!(route(&unmentioned), Meaning::Wait, "a reply to the card needs no mention");
    let delivered = gate("rv_1", "u1", "");
    assert_eq!(route(&said("OK").open(&[&delivered])), approve(&delivered));
}

/// B2: a message sent before the card (or at the same moment) never answers it, even when it is read afterwards.
#[test]
fn said_before_the_card() {
    let gate = gate("g", "u1", "");
    for (at, verdict) in [
        (Millis(999), Meaning::Status),
        (SHOWN, Meaning::Status),
        (Millis(1_001), approve(&gate)),
    ] {
        let mut context = said("OK").open(&[&gate]).runs(turn(&gate, TurnStatus::Paused));
        context.at = at;
        assert_eq!(route(&context), verdict, "{at:?}");
    }
}

/// design: in groups, without mention, reply or thread only `OK` itself counts.
#[test]
fn unmentioned_in_a_group() {
    let gate = gate("g", "u1", "");
    assert_eq!(route(&said("OK").unmentioned().open(&[&gate])), approve(&gate));
    for text in ["好的", "取消", "第二步先备份", "/stop"] {
        assert_eq!(
            route(&said(text).unmentioned().open(&[&gate])),
            Meaning::Ignore("not for us"),
            "{text}"
        );
    }
    let to_others = Meaning::Ignore("said to others");
    let mut context = said("OK @Li Lei").unmentioned().open(&[&gate]);
    context.said.to_others = true;
    assert_eq!(route(&context), to_others);
    let mut context = said("OK").unmentioned().open(&[&gate]);
    context.to_all = true;
    assert_eq!(route(&context), to_others);
}

/// design: in the thread of the gate, or as a reply to the card or the request, no mention is needed.
#[test]
fn thread_and_reply_address_us() {
    let threaded = gate("g", "u1", "omt_1");
    let context = said("先备份").in_thread("omt_1").unmentioned().open(&[&threaded]);
    assert_eq!(route(&context), does(&threaded, Act::Revise("先备份".to_owned())));
    let flat = gate("g", "u1", "");
    for to in [ReplyTo::Card, ReplyTo::Request] {
        let context = said("取消")
            .unmentioned()
            .open(&[&flat])
            .reply(to, undecided(&flat), TurnStatus::Paused);
        assert_eq!(route(&context), does(&flat, Act::Cancel), "{to:?}");
    }
}

/// design: the replied-to card wins over the sender's lane; across threads of the chat too.
#[test]
fn reply_wins_over_lane() {
    let (here, there) = (gate("a", "u1", ""), gate("b", "u1", "omt_1"));
    let context = said("OK")
        .open(&[&here, &there])
        .reply(ReplyTo::Card, undecided(&there), TurnStatus::Paused);
    assert_eq!(route(&context), approve(&there));
    assert_eq!(
        route(&said("OK").open(&[&here, &there])),
        approve(&here),
        "else the lane of the place"
    );
}

/// B7: consent to an older card of the turn is no consent to the newer one; changes are.
#[test]
fn older_card_takes_no_consent() {
    let newer = gate("b", "u1", "");
    let mut older = gate("a", "u1", "");
    older.turn_id = newer.turn_id.clone();
    for reply in [
        (ReplyTo::Post, undecided(&newer)),
        (ReplyTo::Card, decided(&older, DecisionKind::Revise)),
    ] {
        let context = |text| said(text).open(&[&newer]).reply(reply.0, reply.1.clone(), TurnStatus::Paused);
        assert_eq!(route(&context("OK")), Meaning::Tell("outdated card", Notice::Superseded {}));
        assert_eq!(route(&context("先备份")), does(&newer, Act::Revise("先备份".to_owned())));
    }
}

/// S4-3, S4-12: no word approves what its card could not show whole; a refusal needs no reading.
#[test]
fn a_word_approves_only_what_was_shown() {
    for (hidden, allowed) in [(0, true), (1, false)] {
        let mut gate = gate("a", "u1", "");
        gate.kind = GateKind::ToolApproval;
        gate.card = Outbound::ApprovalCard(ApprovalCard {
            gate_id: gate.id.clone(),
            head: CardHead::new(gate.requester.clone(), true, 1, CardState::Open { votes: 0 }),
            actions: vec![ActionView {
                id: ActionId::new("act_1"),
                tool: "write_file".to_owned(),
                effect: EffectClass::Write,
                justification: String::new(),
                arguments: "{".to_owned(),
                hidden,
                preview: None,
                quorum: 1,
                approvers: None,
                votes: 0,
                always: None,
                standing: None,
                status: ActionStatus::Pending,
                outdated: false,
                edited: false,
                output: None,
            }],
            note: None,
            later: 0,
            cut: false,
        });
        let ok = said("OK").open(&[&gate]);
        assert_eq!(route(&ok), does(&gate, Act::Approve));
        let actor = Actor::person("u1", Via::Text, "evt", Millis(1_000));
        // What is hidden counts wherever a card is approved as a whole.
        let whole = undecided(&Gate {
            kind: GateKind::Budget,
            ..gate.clone()
        });
        let settled = ok.rights.settle(&whole, &[], None, &Act::Approve, None, &actor);
        assert_eq!(settled.err(), (!allowed).then_some(Refusal::NotShownWhole));
        assert_eq!(route(&said("不行").open(&[&gate])), does(&gate, Act::Reject(None)));
    }
}

/// B7, design: a listed word in reply to a post of another task, which waits for nothing, is none on the gate that happens to be open,
/// whosever it is.
#[test]
fn a_word_on_another_task_settles_nothing_here() {
    let old = gate("a", "u1", "");
    let record = decided(&old, DecisionKind::Approve);
    for whose in ["u1", "u2"] {
        let open = gate("b", whose, "");
        for (to, text) in [(ReplyTo::Card, "OK"), (ReplyTo::Card, "取消"), (ReplyTo::Post, "OK")] {
            let context = said(text).approvers(Approvers::Anyone).open(&[&open]);
            let context = context.reply(to, record.clone(), TurnStatus::Completed);
            assert_eq!(
                route(&context),
                Meaning::Tell("late", too_late(&record, false)),
                "{text} to {to:?}, open is one of {whose}"
            );
        }
        let beside = said("OK").approvers(Approvers::Anyone).open(&[&open]);
        assert_eq!(
            route(&beside),
            approve(&open),
            "without a reply it is the only one that can be meant"
        );
    }
}

/// B7, design: a yes in reply to a message that is not ours (somebody else's, or a card of ours that we never heard of again) is none to
/// the gate that happens to be open; said to us it is asked about. In a thread, where all replies go to its first message, it counts, and
/// while a card is under way it waits, for it may be that card.
#[test]
fn a_yes_to_an_unknown_message_settles_nothing() {
    for whose in ["u1", "u2"] {
        let open = gate("a", whose, "");
        let unknown = |context: MessageContext| {
            let mut context = context.approvers(Approvers::Anyone);
            context.replies_to_unknown = true;
            context
        };
        let talk = unknown(said("OK").unmentioned().open(&[&open]));
        assert_eq!(route(&talk), Meaning::Ignore("not for us"), "open is one of {whose}");
        let goals = vec![String::from("goal of a")];
        let which = Meaning::Tell("which one", Notice::WhichOne { goals });
        let called = route(&unknown(said("OK").open(&[&open])));
        assert_eq!(called, which, "open is one of {whose}");
        let alone = if whose == "u1" { approve(&open) } else { which };
        assert_eq!(route(&unknown(said("OK").alone().open(&[&open]))), alone, "open is one of {whose}");
        let mut under_way = open.clone();
        (under_way.card_at, under_way.delivered_at) = (None, None);
        assert_eq!(
            route(&unknown(said("OK").unmentioned().open(&[&under_way]))),
            Meaning::Wait,
            "{whose}"
        );
        let threaded = gate("b", whose, "omt_1");
        let context = unknown(said("OK").in_thread("omt_1").unmentioned().open(&[&threaded]));
        assert_eq!(route(&context), approve(&threaded), "open is one of {whose}");
    }
    let own = gate("a", "u1", "");
    let mut refusal = said("取消").open(&[&own]);
    refusal.replies_to_unknown = true;
    assert_eq!(route(&refusal), does(&own, Act::Cancel), "a no needs no certainty");
}

/// interface §10 Chats: alone with us, in a thread that is a conversation of its own, a listed word means the gate of that thread, else the
/// person's only open gate, whatever the thread begins with: a message that we do not know, or an earlier answer of ours.
#[test]
fn a_listed_word_in_a_thread_of_a_direct_chat() {
    let (there, outside) = (gate("a", "u1", "omt_1"), gate("b", "u1", ""));
    let done = gate("done", "u1", "");
    let unknown = |text: &str| {
        let mut context = said(text).in_thread("omt_1").alone();
        context.replies_to_unknown = true;
        context
    };
    let below_an_answer = |text: &str| {
        let context = said(text).in_thread("omt_1").alone();
        context.reply(ReplyTo::Post, decided(&done, DecisionKind::Approve), TurnStatus::Completed)
    };
    for (text, act) in [("OK", Act::Approve), ("取消", Act::Cancel)] {
        for context in [unknown(text), below_an_answer(text)] {
            assert_eq!(route(&context.clone().open(&[&there])), does(&there, act.clone()), "{text}");
            assert_eq!(
                route(&context.clone().open(&[&there, &outside])),
                does(&there, act.clone()),
                "{text}"
            );
            assert_eq!(route(&context.clone().open(&[&outside])), does(&outside, act.clone()), "{text}");
        }
    }
    let other = gate("c", "u1", "omt_2");
    let goals = vec![String::from("goal of b"), String::from("goal of c")];
    let which = Meaning::Tell("which one", Notice::WhichOne { goals });
    assert_eq!(route(&unknown("OK").open(&[&outside, &other])), which);
    let changes = unknown("先备份数据库").open(&[&outside]);
    assert_eq!(
        route(&changes),
        Meaning::Task(0),
        "other words there are a task of that conversation"
    );
}

/// design: without a gate in the lane, a listed word means the sender's only open gate in the chat; several: ask which.
#[test]
fn only_open_gate_of_the_chat() {
    let (a, b) = (gate("a", "u1", "omt_1"), gate("b", "u1", "omt_2"));
    assert_eq!(route(&said("好").open(&[&a])), approve(&a));
    assert_eq!(
        route(&said("先备份").open(&[&a])),
        Meaning::Task(0),
        "only listed words go that far"
    );
    let goals = vec!["goal of a".to_owned(), "goal of b".to_owned()];
    let which = Meaning::Tell("which one", Notice::WhichOne { goals });
    assert_eq!(route(&said("OK").open(&[&a, &b])), which);
    assert_eq!(route(&said("OK").unmentioned().open(&[&a, &b])), which);
}

/// B1: another member's words leave the gate alone: a listed word is refused in place, other text is their own task.
#[test]
fn other_member_is_not_entitled() {
    let gate = gate("g", "u1", "");
    for text in ["OK", "取消"] {
        assert_eq!(route(&said(text).by("u2").open(&[&gate])), refused(&gate), "{text}");
    }
    assert_eq!(route(&said("查天气").by("u2").open(&[&gate])), Meaning::Task(0));
    let overheard = said("OK").by("u2").unmentioned().open(&[&gate]);
    assert_eq!(route(&overheard), Meaning::Ignore("not entitled"), "people say OK to each other");
    let context = said("我觉得不行").by("u2").unmentioned().open(&[&gate]);
    let context = context.reply(ReplyTo::Card, undecided(&gate), TurnStatus::Paused);
    assert_eq!(route(&context), refused(&gate), "whatever is replied to the card");
}

/// design: a non-requester decides only by click, reply, or a listed word with exactly one open gate.
#[test]
fn approver_who_did_not_ask() {
    let (a, b) = (gate("a", "u1", ""), gate("b", "u3", ""));
    let boss = |text: &str| said(text).by("boss").approvers(listed(&["boss"]));
    assert_eq!(route(&boss("OK").open(&[&a])), approve(&a));
    assert_eq!(route(&boss("OK").unmentioned().open(&[&a])), approve(&a));
    assert_eq!(
        route(&boss("先备份").open(&[&a])),
        Meaning::Task(0),
        "other text without a reply is a task"
    );
    assert!(matches!(route(&boss("OK").open(&[&a, &b])), Meaning::Tell("which one", _)));
    let context = boss("先备份")
        .open(&[&a, &b])
        .reply(ReplyTo::Card, undecided(&b), TurnStatus::Paused);
    assert_eq!(route(&context), does(&b, Act::Revise("先备份".to_owned())));
    let question = kind(GateKind::Question, a);
    assert_eq!(
        route(&boss("OK").open(&[&question])),
        Meaning::Task(0),
        "a bare word answers nobody else's question"
    );
}

/// design: a requester who is not an approver may still revise or cancel, never approve.
#[test]
fn requester_who_is_no_approver() {
    let gate = gate("g", "u1", "");
    let context = |text: &str| said(text).approvers(listed(&["boss"])).open(&[&gate]);
    assert_eq!(route(&context("OK")), refused(&gate));
    assert_eq!(route(&context("取消")), does(&gate, Act::Cancel));
    assert_eq!(route(&context("先备份")), does(&gate, Act::Revise("先备份".to_owned())));
}

/// interface: `allowed_chats` and `allowed_users` refuse silently; a listed approver may decide although not a user.
#[test]
fn allow_lists() {
    let gate = gate("g", "u1", "");
    let mut context = said("写周报");
    context.rights = Rights::for_test(Approvers::Anyone, &["u7"]);
    assert_eq!(route(&context), Meaning::Ignore("not allowed"));
    let mut context = said("OK").by("u2").open(&[&gate]);
    context.rights = Rights::for_test(Approvers::Anyone, &["u1"]);
    assert_eq!(route(&context), Meaning::Ignore("not allowed"), "anyone means anyone whom we serve");
    context.rights = Rights::for_test(listed(&["u2"]), &["u1"]);
    assert_eq!(route(&context), approve(&gate));
    let mut context = said("写周报").by("u2");
    context.rights = Rights::for_test(listed(&["u2"]), &["u1"]);
    assert_eq!(route(&context), Meaning::Ignore("not allowed"));
}
