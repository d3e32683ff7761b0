//! One test a ruling: which gate a message means, what it does there, and what becomes of everything else.

use crate::conversation::phrases::is_plain_ok;
use crate::conversation::{commands, rights::Rights};
use crate::domain::{
    Addressed, Approvers, BudgetCard, CardState, ChannelKind, Conversation, Decision, GateId, Millis, Outbound, TurnStatus, Via,
};
use crate::store::TurnRow;

use super::*;

/// When the cards of these tests were shown.
const SHOWN: Millis = Millis(1_000);

fn place(thread: &str) -> Conversation {
    Conversation {
        channel: ChannelKind::Lark,
        app: "cli_a".to_owned(),
        tenant: "t".to_owned(),
        chat: "oc_c1".to_owned(),
        thread: thread.to_owned(),
    }
}

/// A plan review of `requester` in `thread`, card delivered at [`SHOWN`].
fn gate(id: &str, requester: &str, thread: &str) -> Gate {
    let conversation = place(thread);
    Gate {
        id: GateId::new(id),
        turn_id: TurnId::new(format!("turn_{id}")),
        lane_id: conversation.lane(requester),
        kind: GateKind::PlanReview,
        conversation,
        requester: requester.to_owned(),
        request_message: Some(format!("om_request_{id}")),
        digest: "sha256:0".to_owned(),
        plan_version: 1,
        // Any card with a line of its own will do: goals come from it.
        card: Outbound::BudgetCard(BudgetCard {
            gate_id: GateId::new(id),
            requester: requester.to_owned(),
            summary: format!("goal of {id}"),
            open_steps: Vec::new(),
            steps_used: 1,
            ttl_ms: 1,
            state: CardState::Open { votes: 0 },
        }),
        quorum: 1,
        opened_at: Millis(900),
        delivered_at: Some(SHOWN),
        card_at: Some(SHOWN),
        card_message: Some(format!("om_card_{id}")),
        expires_at: Millis(9_000),
        ttl_ms: 8_000,
    }
}

fn kind(kind: GateKind, mut gate: Gate) -> Gate {
    gate.kind = kind;
    gate
}

fn decided(gate: &Gate, kind: DecisionKind) -> GateRecord {
    GateRecord {
        gate: gate.clone(),
        votes: Vec::new(),
        decision: Some(Decision {
            kind,
            by: Some("u9".to_owned()),
            via: Via::Button,
            text: None,
            at: Millis(1_500),
            event_id: None,
        }),
    }
}

fn undecided(gate: &Gate) -> GateRecord {
    GateRecord {
        gate: gate.clone(),
        votes: Vec::new(),
        decision: None,
    }
}

/// The turn behind `gate`.
fn turn(gate: &Gate, status: TurnStatus) -> TurnRow {
    TurnRow {
        id: gate.turn_id.clone(),
        lane_id: gate.lane_id.clone(),
        conversation: gate.conversation.clone(),
        user: gate.requester.clone(),
        text: "task".to_owned(),
        request_message: gate.request_message.clone(),
        inbox_id: 1,
        status,
        reason: None,
        state: serde_json::Value::Null,
        messages: 0,
        events: 0,
        said: 0,
        created_at: Millis(800),
        started_at: None,
        finished_at: None,
    }
}

/// `text` of u1 in the flat group, bot mentioned, nothing open.
fn said(text: &str) -> Scene {
    let said = Addressed {
        text: text.to_owned(),
        to_bot: true,
        to_others: false,
    };
    Scene {
        at: Millis(2_000),
        sender: "u1".to_owned(),
        chat: "oc_c1".to_owned(),
        thread: String::new(),
        lane: place("").lane("u1"),
        direct: false,
        to_all: false,
        phrase: Phrase::read(&said, false),
        plain_ok: is_plain_ok(&said),
        command: commands::read(text),
        said,
        attachment_only: false,
        truncated: false,
        rights: Rights::for_test(Approvers::Requester, &[]),
        group_all: false,
        queue_mode: QueueMode::Followup,
        reply: None,
        open: Vec::new(),
        lane_turn: None,
        queued: 0,
        closed: None,
    }
}

impl Scene {
    fn by(mut self, sender: &str) -> Self {
        sender.clone_into(&mut self.sender);
        self.lane = place(&self.thread).lane(sender);
        self
    }

    fn alone(mut self) -> Self {
        self.direct = true;
        self.unmentioned()
    }

    fn unmentioned(mut self) -> Self {
        self.said.to_bot = false;
        self.phrase = Phrase::read(&self.said, self.direct);
        self
    }

    fn in_thread(mut self, thread: &str) -> Self {
        thread.clone_into(&mut self.thread);
        self.lane = place(thread).lane(&self.sender);
        self
    }

    fn open(mut self, gates: &[&Gate]) -> Self {
        self.open = gates.iter().copied().cloned().collect();
        self
    }

    fn runs(mut self, turn: TurnRow) -> Self {
        self.lane_turn = Some(turn);
        self
    }

    fn reply(mut self, to: ReplyTo, record: GateRecord, status: TurnStatus) -> Self {
        self.reply = Some(Reply {
            to,
            turn_id: record.gate.turn_id.clone(),
            turn: Some(turn(&record.gate, status)),
            gate: Some(record),
        });
        self
    }

    fn approvers(mut self, approvers: Approvers) -> Self {
        self.rights = Rights::for_test(approvers, &[]);
        self
    }

    fn closed(mut self, record: GateRecord) -> Self {
        self.closed = Some(record);
        self
    }
}

fn approve(gate: &Gate) -> Verdict {
    Verdict::Answer(Box::new(gate.clone()), Act::Approve)
}

fn does(gate: &Gate, act: Act) -> Verdict {
    Verdict::Answer(Box::new(gate.clone()), act)
}

fn refused(gate: &Gate) -> Verdict {
    Verdict::Refuse(Box::new(gate.clone()))
}

fn listed(ids: &[&str]) -> Approvers {
    Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect())
}

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
        ("", Verdict::Ignore("empty")),
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
        let scene = said(text).open(&[&gate]);
        assert_eq!(route(&scene), does(&gate, Act::Revise(text.to_owned())), "{text}");
    }
    assert_eq!(route(&said("/stop").open(&[&gate])), Verdict::Stop(None));
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
    assert_eq!(route(&said("还要多久").open(&[&gate])), does(&gate, Act::Revise("还要多久".to_owned())));
}

/// Twenty-2: a message sent before the card (or at the same moment) never answers it, even when it is read afterwards.
#[test]
fn said_before_the_card() {
    let gate = gate("g", "u1", "");
    for (at, verdict) in [
        (Millis(999), Verdict::Status),
        (SHOWN, Verdict::Status),
        (Millis(1_001), approve(&gate)),
    ] {
        let mut scene = said("OK").open(&[&gate]).runs(turn(&gate, TurnStatus::Paused));
        scene.at = at;
        assert_eq!(route(&scene), verdict, "{at:?}");
    }
    let mut undelivered = gate.clone();
    (undelivered.card_at, undelivered.delivered_at) = (None, None);
    let early = said("第二步先备份").open(&[&undelivered]).runs(turn(&gate, TurnStatus::Paused));
    assert_eq!(route(&early), Verdict::Task(1), "queues behind the turn");
}

/// design: in groups, without mention, reply or thread only `OK` itself counts.
#[test]
fn unmentioned_in_a_group() {
    let gate = gate("g", "u1", "");
    assert_eq!(route(&said("OK").unmentioned().open(&[&gate])), approve(&gate));
    for text in ["好的", "取消", "第二步先备份", "/stop"] {
        assert_eq!(
            route(&said(text).unmentioned().open(&[&gate])),
            Verdict::Ignore("not for us"),
            "{text}"
        );
    }
    let to_others = Verdict::Ignore("said to others");
    let mut scene = said("OK @Li Lei").unmentioned().open(&[&gate]);
    scene.said.to_others = true;
    assert_eq!(route(&scene), to_others);
    let mut scene = said("OK").unmentioned().open(&[&gate]);
    scene.to_all = true;
    assert_eq!(route(&scene), to_others);
}

/// design: in the thread of the gate, or as a reply to the card or the request, no mention is needed.
#[test]
fn thread_and_reply_address_us() {
    let threaded = gate("g", "u1", "omt_1");
    let scene = said("先备份").in_thread("omt_1").unmentioned().open(&[&threaded]);
    assert_eq!(route(&scene), does(&threaded, Act::Revise("先备份".to_owned())));
    let flat = gate("g", "u1", "");
    for to in [ReplyTo::Card, ReplyTo::Request] {
        let scene = said("取消")
            .unmentioned()
            .open(&[&flat])
            .reply(to, undecided(&flat), TurnStatus::Paused);
        assert_eq!(route(&scene), does(&flat, Act::Cancel), "{to:?}");
    }
}

/// design: the replied-to card wins over the sender's lane; across threads of the chat too.
#[test]
fn reply_wins_over_lane() {
    let (here, there) = (gate("a", "u1", ""), gate("b", "u1", "omt_1"));
    let scene = said("OK")
        .open(&[&here, &there])
        .reply(ReplyTo::Card, undecided(&there), TurnStatus::Paused);
    assert_eq!(route(&scene), approve(&there));
    assert_eq!(
        route(&said("OK").open(&[&here, &there])),
        approve(&here),
        "else the lane of the place"
    );
}

/// Twenty-7: consent to an older card of the turn is no consent to the newer one; changes are.
#[test]
fn older_card_takes_no_consent() {
    let newer = gate("b", "u1", "");
    let mut older = gate("a", "u1", "");
    older.turn_id = newer.turn_id.clone();
    for reply in [
        (ReplyTo::Post, undecided(&newer)),
        (ReplyTo::Card, decided(&older, DecisionKind::Revise)),
    ] {
        let scene = |text| said(text).open(&[&newer]).reply(reply.0, reply.1.clone(), TurnStatus::Paused);
        assert_eq!(route(&scene("OK")), Verdict::Tell("outdated card", Notice::Superseded {}));
        assert_eq!(route(&scene("先备份")), does(&newer, Act::Revise("先备份".to_owned())));
    }
}

/// design: without a gate in the lane, a listed word means the sender's only open gate in the chat; several: ask which.
#[test]
fn only_open_gate_of_the_chat() {
    let (a, b) = (gate("a", "u1", "omt_1"), gate("b", "u1", "omt_2"));
    assert_eq!(route(&said("好").open(&[&a])), approve(&a));
    assert_eq!(
        route(&said("先备份").open(&[&a])),
        Verdict::Task(0),
        "only listed words go that far"
    );
    let goals = vec!["goal of a".to_owned(), "goal of b".to_owned()];
    let which = Verdict::Tell("which one", Notice::WhichOne { goals });
    assert_eq!(route(&said("OK").open(&[&a, &b])), which);
    assert_eq!(route(&said("OK").unmentioned().open(&[&a, &b])), which);
}

/// Twenty-1: another member's words leave the gate alone: a listed word is refused in place, other text is their own task.
#[test]
fn other_member_is_not_entitled() {
    let gate = gate("g", "u1", "");
    for text in ["OK", "取消"] {
        assert_eq!(route(&said(text).by("u2").open(&[&gate])), refused(&gate), "{text}");
    }
    assert_eq!(route(&said("查天气").by("u2").open(&[&gate])), Verdict::Task(0));
    let overheard = said("OK").by("u2").unmentioned().open(&[&gate]);
    assert_eq!(route(&overheard), Verdict::Ignore("not entitled"), "people say OK to each other");
    let scene = said("我觉得不行").by("u2").unmentioned().open(&[&gate]);
    let scene = scene.reply(ReplyTo::Card, undecided(&gate), TurnStatus::Paused);
    assert_eq!(route(&scene), refused(&gate), "whatever is replied to the card");
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
        Verdict::Task(0),
        "other text without a reply is a task"
    );
    assert!(matches!(route(&boss("OK").open(&[&a, &b])), Verdict::Tell("which one", _)));
    let scene = boss("先备份")
        .open(&[&a, &b])
        .reply(ReplyTo::Card, undecided(&b), TurnStatus::Paused);
    assert_eq!(route(&scene), does(&b, Act::Revise("先备份".to_owned())));
    let question = kind(GateKind::Question, a);
    assert_eq!(
        route(&boss("OK").open(&[&question])),
        Verdict::Task(0),
        "a bare word answers nobody else's question"
    );
}

/// design: a requester who is not an approver may still revise or cancel, never approve.
#[test]
fn requester_who_is_no_approver() {
    let gate = gate("g", "u1", "");
    let scene = |text: &str| said(text).approvers(listed(&["boss"])).open(&[&gate]);
    assert_eq!(route(&scene("OK")), refused(&gate));
    assert_eq!(route(&scene("取消")), does(&gate, Act::Cancel));
    assert_eq!(route(&scene("先备份")), does(&gate, Act::Revise("先备份".to_owned())));
}

/// interface: `allowed_chats` and `allowed_users` refuse silently; a listed approver may decide although not a user.
#[test]
fn allow_lists() {
    let gate = gate("g", "u1", "");
    let mut scene = said("写周报");
    scene.rights = Rights::for_test(Approvers::Anyone, &["u7"]);
    assert_eq!(route(&scene), Verdict::Ignore("not allowed"));
    let mut scene = said("OK").by("u2").open(&[&gate]);
    scene.rights = Rights::for_test(Approvers::Anyone, &["u1"]);
    assert_eq!(route(&scene), Verdict::Ignore("not allowed"), "anyone means anyone whom we serve");
    scene.rights = Rights::for_test(listed(&["u2"]), &["u1"]);
    assert_eq!(route(&scene), approve(&gate));
    let mut scene = said("写周报").by("u2");
    scene.rights = Rights::for_test(listed(&["u2"]), &["u1"]);
    assert_eq!(route(&scene), Verdict::Ignore("not allowed"));
}

/// Twenty-5: late words after expiry are told so and run nothing; other text is a new task.
#[test]
fn late_after_expiry() {
    let gate = gate("g", "u1", "");
    let expired = decided(&gate, DecisionKind::Expire);
    let goal = "goal of g".to_owned();
    let told = Verdict::Tell("late", Notice::Expired { goal });
    for text in ["OK", "取消"] {
        assert_eq!(route(&said(text).closed(expired.clone())), told, "{text}");
    }
    assert_eq!(route(&said("先备份").closed(expired.clone())), Verdict::Task(0));
    let reply = |text: &str| {
        said(text)
            .unmentioned()
            .reply(ReplyTo::Card, expired.clone(), TurnStatus::Cancelled)
    };
    for text in ["OK", "先备份"] {
        assert_eq!(route(&reply(text)), told, "a reply to that card: {text}");
    }
    assert_eq!(route(&said("OK").unmentioned().closed(expired)), Verdict::Ignore("not for us"));
    assert_eq!(route(&said("OK")), Verdict::Task(0), "nothing was ever asked");
}

/// Twenty-6: the second approver hears who was first; their word is not a task.
#[test]
fn late_after_a_decision() {
    let gate = gate("g", "u1", "");
    let first = decided(&gate, DecisionKind::Approve);
    let told = Verdict::Tell("late", told(&first));
    assert_eq!(route(&said("OK").closed(first.clone())), told);
    assert_eq!(
        route(&said("OK").closed(first.clone()).runs(turn(&gate, TurnStatus::Running))),
        told
    );
    assert_eq!(route(&said("OK").reply(ReplyTo::Card, first.clone(), TurnStatus::Running)), told);
    let after = said("再加一节").reply(ReplyTo::Card, first, TurnStatus::Completed);
    assert_eq!(route(&after), Verdict::Task(0), "under an approved card people talk on");
}

/// design: a late word means the sender's closed gate before it means a gate that is not theirs to decide.
#[test]
fn own_closed_gate_is_nearer() {
    let (mine, other) = (gate("a", "u1", ""), gate("b", "u3", ""));
    let expired = decided(&mine, DecisionKind::Expire);
    let scene = said("OK").open(&[&other]).closed(expired.clone());
    assert_eq!(route(&scene), Verdict::Tell("late", told(&expired)));
    let scene = said("OK").open(&[&other]).closed(expired).approvers(Approvers::Anyone);
    assert_eq!(route(&scene), approve(&other), "exactly one open gate that they may decide");
}

/// design: while a turn runs, messages queue, steer or interrupt; the queue has an end.
#[test]
fn while_a_turn_runs() {
    let running = turn(&gate("g", "u1", ""), TurnStatus::Running);
    let scene = |mode, queued| {
        let mut scene = said("再加一节").runs(running.clone());
        (scene.queue_mode, scene.queued) = (mode, queued);
        scene
    };
    assert_eq!(route(&scene(QueueMode::Followup, 0)), Verdict::Task(1));
    assert_eq!(route(&scene(QueueMode::Followup, 19)), Verdict::Task(20));
    let full = Verdict::Tell("queue full", Notice::QueueFull { limit: 20 });
    assert_eq!(route(&scene(QueueMode::Followup, 20)), full);
    assert_eq!(route(&scene(QueueMode::Steer, 0)), Verdict::Steer(running.id.clone()));
    assert_eq!(route(&scene(QueueMode::Interrupt, 0)), Verdict::Instead);
    let mut waiting = said("第二件事");
    waiting.queued = 1;
    assert_eq!(route(&waiting), Verdict::Task(1), "accepted, not begun: still behind it");
}

/// design: a reply to the running card always steers, for its requester; for others it is a task of their own.
#[test]
fn reply_to_the_running_card_steers() {
    let gate = gate("g", "u1", "");
    for to in [ReplyTo::Card, ReplyTo::Post] {
        let scene = said("数字用千分位").unmentioned();
        let scene = scene.reply(to, decided(&gate, DecisionKind::Approve), TurnStatus::Running);
        assert_eq!(route(&scene), Verdict::Steer(gate.turn_id.clone()), "{to:?}");
        assert_eq!(route(&scene.by("u2")), Verdict::Task(0), "{to:?}");
    }
    let mut unplanned = said("数字用千分位").unmentioned();
    unplanned.reply = Some(Reply {
        to: ReplyTo::Post,
        turn_id: gate.turn_id.clone(),
        turn: Some(turn(&gate, TurnStatus::Running)),
        gate: None,
    });
    assert_eq!(route(&unplanned), Verdict::Steer(gate.turn_id), "a turn without any gate too");
}

/// design: `/stop` overtakes, `/new …` supersedes, the others tell; a stop word to a running task means stop.
#[test]
fn commands_are_carried_out() {
    let gate = gate("g", "u1", "");
    let running = turn(&gate, TurnStatus::Running);
    assert_eq!(route(&said("/stop").runs(running.clone())), Verdict::Stop(None));
    assert_eq!(route(&said("/new 写日报").runs(running.clone())), Verdict::Instead);
    assert_eq!(route(&said("/status")), Verdict::Status);
    assert_eq!(route(&said("/dance")), Verdict::Tell("help", Notice::Help {}));
    assert_eq!(route(&said("/stop").unmentioned()), Verdict::Ignore("not for us"));
    assert_eq!(route(&said("停下 /stop")), Verdict::Task(0));
    let approved = decided(&gate, DecisionKind::Approve);
    assert_eq!(route(&said("取消").runs(running).closed(approved)), Verdict::Stop(None));
}

/// design: `/stop` as a reply to somebody else's card is a refusal by those who may, and refused to the others.
#[test]
fn stop_under_somebody_elses_card() {
    let gate = gate("g", "u1", "");
    let scene = |approvers| {
        let scene = said("/stop").by("u2").approvers(approvers).open(&[&gate]);
        scene.reply(ReplyTo::Card, undecided(&gate), TurnStatus::Paused)
    };
    assert_eq!(route(&scene(listed(&["u2"]))), Verdict::Stop(Some(gate.turn_id.clone())));
    assert_eq!(route(&scene(Approvers::Requester)), refused(&gate));
}

/// design: attachments never answer a gate; whoever spoke to us hears why. Texts longer than we read run nothing.
#[test]
fn attachments_and_long_texts() {
    let gate = gate("g", "u1", "");
    let mut scene = said("[image]").open(&[&gate]);
    scene.attachment_only = true;
    assert_eq!(route(&scene), Verdict::Tell("no text", Notice::NotText {}));
    assert_eq!(route(&scene.unmentioned()), Verdict::Ignore("no text"));
    let mut scene = said("很长").open(&[&gate]);
    scene.truncated = true;
    assert_eq!(route(&scene), Verdict::Tell("too long", Notice::TooLong { limit: 16_384 }));
}

/// M-5: in groups only what is said to us is a task; a bare mention gets a greeting; `group_trigger: all` takes everything.
#[test]
fn tasks_in_groups() {
    assert_eq!(route(&said("写周报")), Verdict::Task(0));
    assert_eq!(route(&said("写周报").unmentioned()), Verdict::Ignore("not for us"));
    assert_eq!(route(&said("写周报").alone()), Verdict::Task(0));
    assert_eq!(route(&said("")), Verdict::Tell("greeting", Notice::Greeting {}));
    assert_eq!(route(&said("").alone()), Verdict::Ignore("empty"));
    let mut all = said("写周报").unmentioned();
    all.group_all = true;
    assert_eq!(route(&all), Verdict::Task(0));
}
