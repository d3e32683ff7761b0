//! The things we say, one of each and in every state, for the tests of cards, text and client.
//!
//! The unit tests of the room `channels` include this file.

mod away;
mod endings;
pub mod copies;
mod left_out;
mod notices;
mod standing;

use countersign_agent::domain::{
    ActionId, ActionStatus, ActionView, Answer, ApprovalCard, ApprovalMode, Approvers, AskedAgain, BudgetCard, CardHead, CardState,
    Complexity, Decision, DecisionKind, DeclaredCall, EffectClass, GateId, Grant, Limit, Millis, Outbound, PlanCard, PlanEnd, PlanWords,
    QuestionCard, StepStatus, StepView, TurnId, TurnReason, UndoneCount, UndoneReason, Via,
};
use serde_json::Value;

pub use self::notices::{declared_notices, notices};
use self::standing::allowed_here;

/// When the cards were decided.
const AT: Millis = Millis(1_765_432_100_123);

pub fn step(id: &str, content: &str, status: StepStatus, tools: &[&str]) -> StepView {
    StepView {
        id: id.to_owned(),
        content: content.to_owned(),
        status,
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        intent: None,
        unfinished: false,
    }
}

pub fn decided(kind: DecisionKind, by: Option<&str>, text: Option<&str>) -> CardState {
    CardState::Decided {
        decision: Decision {
            in_place_of: None,
            kept: Vec::new(),
            kind,
            by: by.map(str::to_owned),
            via: Via::Text,
            through_api: false,
            text: text.map(str::to_owned),
            at: AT,
            event_id: None,
            approvers: Vec::new(),
            standing: None,
        },
    }
}

pub fn plan(state: CardState) -> PlanCard {
    PlanCard {
        left_out: None,
        review_id: Some(GateId::new("rv_1")),
        head: CardHead::new(String::from("ou_u1"), true, 3_600_000, state),
        goal: String::from("整理销售周报"),
        complexity: Complexity::Complex,
        plan_version: 1,
        steps: vec![
            step("1", "读取本周订单表", StepStatus::Pending, &["read_file"]),
            step("2", "汇总各区域销售额", StepStatus::Pending, &[]),
            step("3", "写入周报", StepStatus::Pending, &["write_file", "run_bash"]),
        ],
        grants: vec![grant("write_file", "path", "周报.md")],
        still_asks: vec![String::from("run_bash")],
        approval: ApprovalMode::Write,
        quorum: 1,
        note: None,
        request_edited: false,
        demo: false,
        words: PlanWords::Unknown,
        end: None,
        outage_until: None,
        asked_again: None,
        cut: false,
        undone: Vec::new(),
    }
}

/// `ou_u2` and `ou_u3`.
pub fn listed() -> Approvers {
    Approvers::Listed(vec![String::from("ou_u2"), String::from("ou_u3")])
}

pub fn action(number: u32, tool: &str, effect: EffectClass, status: ActionStatus) -> ActionView {
    ActionView {
        id: ActionId::new(format!("act_{number}")),
        tool: tool.to_owned(),
        effect,
        justification: String::from("Run: ls -l && rm <old>"),
        arguments: String::from("{\n  \"command\": \"ls -l && rm <old>\"\n}"),
        hidden: 0,
        preview: (tool == "write_file").then(|| String::from("--- a.md\n+++ a.md\n@@ -1 +1 @@\n-old\n+<at id=all></at> new")),
        quorum: 1,
        approvers: None,
        votes: 0,
        always: None,
        standing: None,
        status,
        outdated: false,
        edited: false,
        output: (status == ActionStatus::Executed).then(|| String::from("total 0\nexit: 0")),
    }
}

/// A card that several people approve, and one call of it others than the card says.
fn asked_of_several() -> Outbound {
    let Outbound::ApprovalCard(mut card) = approval([ActionStatus::Pending; 2], CardState::Open { votes: 0 }) else {
        panic!("no approval card")
    };
    for row in &mut card.actions {
        (row.quorum, row.votes) = (2, 1);
    }
    card.actions[0].approvers = Some(listed());
    Outbound::ApprovalCard(card)
}

pub fn approval(statuses: [ActionStatus; 2], state: CardState) -> Outbound {
    Outbound::ApprovalCard(ApprovalCard {
        gate_id: GateId::new("rv_2"),
        head: CardHead::new(String::from("ou_u1"), true, 90_000, state),
        actions: vec![
            action(1, "write_file", EffectClass::Write, statuses[0]),
            action(2, "run_bash", EffectClass::Destructive, statuses[1]),
        ],
        note: Some(String::from("I clean up **first**.")),
        later: 0,
        cut: false,
    })
}

pub fn question(state: CardState) -> Outbound {
    Outbound::QuestionCard(QuestionCard {
        gate_id: GateId::new("rv_3"),
        head: CardHead {
            approvers: None,
            ..CardHead::new(String::from("ou_u1"), true, 3_600_000, state)
        },
        title: Some(String::from("哪个季度？")),
        question: String::from("要第一季度还是第二季度的数据？"),
        reason: Some(String::from("文件夹里两个都有")),
    })
}

pub fn budget(state: CardState) -> Outbound {
    Outbound::BudgetCard(BudgetCard {
        gate_id: GateId::new("rv_4"),
        head: CardHead {
            group: None,
            ..CardHead::new(String::from("ou_u1"), true, 3_600_000, state)
        },
        summary: String::from("两份文件已写好，第三份没有。"),
        open_steps: vec![String::from("3. 写入周报")],
        steps_used: 50,
        reached: vec![Limit::Steps],
    })
}

pub fn answer(text: &str, reason: TurnReason) -> Answer {
    Answer {
        text: text.to_owned(),
        requester: String::from("ou_u1"),
        reason,
        open_steps: Vec::new(),
        granted: Vec::new(),
        standing: Vec::new(),
        undone: Vec::new(),
        problem: None,
        incident: None,
        group: true,
        demo: false,
        again: None,
        feedback: (reason == TurnReason::FinalAnswer).then(|| TurnId::new("turn_1")),
        at: Millis(0),
    }
}

/// The first step is done, the second is under way.
fn running(mut card: PlanCard) -> PlanCard {
    card.steps[0].status = StepStatus::Completed;
    card.steps[1].status = StepStatus::InProgress;
    card
}

/// Every card in every state, by the name of its snapshot.
pub fn gallery() -> Vec<(&'static str, Outbound)> {
    use ActionStatus as A;
    let open = CardState::Open { votes: 0 };
    let ok = |by| decided(DecisionKind::Approve, by, Some("OK"));
    let expired = || decided(DecisionKind::Expire, None, None);
    let ended = |end| Outbound::PlanCard(running(plan(ok(Some("ou_u2"))))).ended(end);
    let asked_of_others = |mut card: Outbound| {
        card.ask(listed());
        card
    };
    let mut all = vec![
        ("plan_open", Outbound::PlanCard(plan(open.clone()))),
        (
            "plan_open_direct_demo",
            Outbound::PlanCard(PlanCard {
                head: CardHead {
                    group: Some(false),
                    ..plan(open.clone()).head
                },
                demo: true,
                still_asks: vec![],
                grants: vec![],
                ..plan(open.clone())
            }),
        ),
        (
            "plan_open_quorum_version_note",
            Outbound::PlanCard(PlanCard {
                quorum: 2,
                plan_version: 2,
                request_edited: true,
                note: Some(String::from("不会删除数据：\n只读取 <orders>。")),
                ..plan(CardState::Open { votes: 1 })
            }),
        ),
        (
            "plan_simple",
            Outbound::PlanCard(PlanCard {
                complexity: Complexity::Simple,
                steps: vec![step("1", "整理销售周报", StepStatus::Pending, &["write_file"])],
                ..plan(open.clone())
            }),
        ),
        (
            "plan_open_changed",
            Outbound::PlanCard(PlanCard {
                plan_version: 2,
                note: Some(String::from("订单表不全\n\n➕ 补齐华东区订单\n\n⏭️ 汇总各区域销售额")),
                steps: vec![
                    step("1", "读取本周订单表", StepStatus::Completed, &["read_file"]),
                    step("2", "汇总各区域销售额", StepStatus::Skipped, &[]),
                    step("5", "读取上周订单表", StepStatus::Failed, &["read_file"]),
                    StepView {
                        intent: Some(String::from("周报要包含 <所有> 区域")),
                        ..step("4", "补齐华东区订单", StepStatus::Pending, &["web_fetch"])
                    },
                    step("3", "写入周报", StepStatus::Pending, &["write_file"]),
                ],
                grants: vec![
                    grant("web_fetch", "url", "https://example.com/orders?week=*"),
                    grant("write_file", "path", "周报/*.md"),
                    grant("jira__create_issue", "project", "OPS"),
                ],
                still_asks: vec![],
                ..plan(open.clone())
            }),
        ),
        ("plan_open_away", away::open()),
        ("plan_approved_in_place", away::approved()),
        ("plan_approved", Outbound::PlanCard(running(plan(ok(Some("ou_u2")))))),
        (
            "plan_revised",
            Outbound::PlanCard(PlanCard {
                words: PlanWords::Changes,
                ..plan(decided(DecisionKind::Revise, Some("ou_u1"), Some("第 3 步先给我看草稿")))
            }),
        ),
        (
            "plan_asked",
            Outbound::PlanCard(PlanCard {
                words: PlanWords::Question,
                ..plan(decided(DecisionKind::Revise, Some("ou_u2"), Some("会覆盖已有文件吗？")))
            }),
        ),
        (
            "plan_cancelled",
            Outbound::PlanCard(plan(decided(DecisionKind::Cancel, Some("api client"), None))),
        ),
        ("plan_expired", Outbound::PlanCard(plan(expired()))),
        (
            "plan_asked_again",
            Outbound::PlanCard(PlanCard {
                asked_again: Some(Box::new(AskedAgain {
                    by: String::from("ou_u2"),
                    through_api: false,
                    at: AT,
                    event_id: None,
                })),
                ..plan(expired())
            }),
        ),
        (
            "plan_superseded",
            Outbound::PlanCard(plan(decided(DecisionKind::Supersede, None, None))),
        ),
        (
            "plan_informed",
            Outbound::PlanCard(running(PlanCard {
                review_id: None,
                ..plan(CardState::Informed)
            })),
        ),
        ("plan_stopped", ended(PlanEnd::Early(TurnReason::Cancelled))),
        ("plan_failed", ended(PlanEnd::Early(TurnReason::ModelError))),
        ("plan_unfinished", ended(PlanEnd::Unfinished)),
        ("plan_replaced", ended(PlanEnd::Replaced)),
        (
            "plan_done",
            Outbound::PlanCard(PlanCard {
                steps: vec![
                    step("1", "读取本周订单表", StepStatus::Completed, &["read_file"]),
                    step("2", "写入周报", StepStatus::Completed, &["write_file"]),
                ],
                ..plan(ok(Some("ou_u2")))
            })
            .ended(PlanEnd::Done),
        ),
        (
            "plan_done_rejected",
            Outbound::PlanCard(PlanCard {
                steps: vec![step("1", "写入周报", StepStatus::Completed, &["write_file"])],
                undone: vec![UndoneCount {
                    why: UndoneReason::Rejected,
                    count: 1,
                }],
                ..plan(ok(Some("ou_u2")))
            })
            .ended(PlanEnd::Done),
        ),
        (
            "plan_done_simple",
            Outbound::PlanCard(PlanCard {
                complexity: Complexity::Simple,
                steps: vec![step("1", "整理销售周报", StepStatus::Pending, &["write_file"])],
                ..plan(ok(Some("ou_u1")))
            })
            .ended(PlanEnd::Done),
        ),
        (
            "plan_revised_failed",
            Outbound::PlanCard(plan(decided(DecisionKind::Revise, Some("ou_u1"), Some("第 3 步先给我看草稿"))))
                .ended(PlanEnd::Early(TurnReason::ModelError)),
        ),
        (
            "plan_model_away",
            Outbound::PlanCard(running(PlanCard {
                outage_until: Some(Millis(1_767_232_800_000)),
                ..plan(ok(Some("ou_u1")))
            })),
        ),
        (
            "plan_informed_stopped",
            Outbound::PlanCard(running(PlanCard {
                review_id: None,
                ..plan(CardState::Informed)
            }))
            .ended(PlanEnd::Early(TurnReason::Cancelled)),
        ),
        (
            "plan_open_listed_quorum",
            Outbound::PlanCard(PlanCard {
                head: CardHead {
                    approvers: Some(listed()),
                    ..plan(CardState::Open { votes: 1 }).head
                },
                approval: ApprovalMode::Always,
                quorum: 2,
                ..plan(CardState::Open { votes: 1 })
            }),
        ),
        (
            "plan_open_anyone",
            Outbound::PlanCard(PlanCard {
                head: CardHead {
                    approvers: Some(Approvers::Anyone),
                    ..plan(open.clone()).head
                },
                approval: ApprovalMode::Never,
                ..plan(open.clone())
            }),
        ),
        (
            "approval_open_listed",
            asked_of_others(approval([A::Pending, A::Pending], open.clone())),
        ),
        ("budget_open_listed", asked_of_others(budget(open.clone()))),
        ("approval_open", approval([A::Pending, A::Pending], open.clone())),
        ("approval_open_several", asked_of_several()),
        ("approval_half", approval([A::Rejected, A::Pending], open.clone())),
        ("approval_unknown", approval([A::Executed, A::Unknown], open.clone())),
        ("approval_approved", approval([A::Executed, A::Failed], ok(Some("ou_u1")))),
        ("approval_mixed", approval([A::Executed, A::Rejected], ok(Some("ou_u1")))),
        (
            "approval_rejected",
            approval(
                [A::Rejected, A::Rejected],
                decided(DecisionKind::Revise, Some("ou_u1"), Some("不要删")),
            ),
        ),
        ("approval_expired", approval([A::Expired, A::Expired], expired())),
        ("question_open", question(open.clone())),
        (
            "question_answered",
            question(decided(DecisionKind::Revise, Some("ou_u1"), Some("第二季度"))),
        ),
        ("question_expired", question(expired())),
        ("budget_open", budget(open)),
        ("budget_approved", budget(ok(Some("ou_u1")))),
        (
            "budget_cancelled",
            budget(decided(DecisionKind::Cancel, Some("ou_u1"), Some("取消"))),
        ),
        ("approval_open_always", allowed_here(false)),
        ("approval_always_made", allowed_here(true)),
    ];
    all.extend(endings::cards());
    all.extend(left_out::cards());
    all.extend(copies::cards());
    all
}

pub fn element<'a>(card: &'a Value, id: &str) -> &'a Value {
    fn find<'a>(node: &'a Value, id: &str) -> Option<&'a Value> {
        if node["element_id"] == id {
            return Some(node);
        }
        match node {
            Value::Object(map) => map.values().find_map(|inner| find(inner, id)),
            Value::Array(list) => list.iter().find_map(|inner| find(inner, id)),
            _ => None,
        }
    }
    find(card, id).unwrap()
}

pub fn walk(node: &Value, see: &mut impl FnMut(&Value)) {
    see(node);
    match node {
        Value::Object(map) => map.values().for_each(|inner| walk(inner, see)),
        Value::Array(list) => list.iter().for_each(|inner| walk(inner, see)),
        _ => {}
    }
}

/// `content` as Slack knows the people in it: `ou_u1` is `U0ALICE01`, `ou_u2` is `U0BOB0001`, `ou_u3` is `U0CAROL01`.
pub fn in_slack(content: &Outbound) -> Outbound {
    let text = serde_json::to_string(content).unwrap();
    serde_json::from_str(
        &text
            .replace("ou_u1", "U0ALICE01")
            .replace("ou_u2", "U0BOB0001")
            .replace("ou_u3", "U0CAROL01"),
    )
    .unwrap()
}

/// A call that an approval covers: of one argument, once.
pub(crate) fn grant(tool: &str, name: &str, value: &str) -> Grant {
    Grant {
        step_id: String::from("1"),
        call: DeclaredCall {
            tool: tool.to_owned(),
            arguments: [(name.to_owned(), value.into())].into_iter().collect(),
            times: 1,
        },
        used: 0,
    }
}
