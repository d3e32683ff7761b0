//! More than a message holds: what is cut is told.

use countersign_agent::domain::{
    ActionStatus, Answer, ApprovalCard, BudgetCard, CardHead, CardState, DecisionKind, EffectClass, GateId, LeftOut, Locale, Outbound,
    PlanCard, PlanEnd, ProgressView, StepStatus, StepView, TurnReason,
};

use super::{LOCALES, faults, message, words};
use crate::support::gallery::{action, answer, decided, grant, listed, plan};

/// F-C2: however much there is to show, the message fits, and says that something is missing.
#[test]
fn messages_fit_whatever_they_hold() {
    let noise = "<!here>*_[]()&#|~`>-+:={}\u{7}计划🙂 ".repeat(100);
    let steps: Vec<StepView> = (0..60)
        .map(|id| StepView {
            id: id.to_string(),
            content: noise.clone(),
            status: StepStatus::Pending,
            tools: vec![noise.clone(); 10],
            intent: Some(noise.clone()),
            unfinished: true,
        })
        .collect();
    let open = CardState::Open { votes: 0 };
    let many = vec![noise.clone(); 60];
    let mut loud = action(1, &noise, EffectClass::Destructive, ActionStatus::Unknown);
    (loud.justification, loud.arguments, loud.output) = (noise.clone(), noise.clone(), Some(noise.clone()));
    let said = || decided(DecisionKind::Revise, Some(&noise), Some(&noise));
    let plan = |state| PlanCard {
        goal: noise.clone(),
        steps: steps.clone(),
        grants: many.iter().map(|text| grant(text, text, text)).collect(),
        still_asks: many.clone(),
        note: Some(noise.clone()),
        plan_version: 3,
        quorum: 2,
        request_edited: true,
        demo: true,
        left_out: Some(Box::new(LeftOut {
            by: Some(noise.clone()),
            through_api: true,
            steps: many.clone(),
        })),
        ..plan(state)
    };
    let approval = |state| ApprovalCard {
        gate_id: GateId::new("rv_2"),
        head: CardHead {
            approvers: Some(listed()),
            ..CardHead::new(String::from("ou_u1"), true, 1, state)
        },
        actions: vec![loud.clone(); 60],
        note: Some("a\n\n".repeat(900)),
        later: 0,
        cut: false,
    };
    let contents = [
        Outbound::PlanCard(plan(open.clone())),
        Outbound::PlanCard(plan(said())),
        Outbound::ApprovalCard(approval(open.clone())),
        Outbound::ApprovalCard(approval(said())),
        Outbound::Progress(ProgressView {
            goal: noise.clone(),
            steps: steps.clone(),
            finished: false,
            outage_until: None,
            end: Some(PlanEnd::Early(TurnReason::Cancelled)),
            undone: Vec::new(),
        }),
        Outbound::Answer(Answer {
            open_steps: many.clone(),
            granted: many.iter().map(|text| grant(text, text, text).call).collect(),
            incident: Some(String::from("x")),
            ..answer(&noise, TurnReason::FinalAnswer)
        }),
        Outbound::Answer(answer(&"<&🙂".repeat(100_000), TurnReason::FinalAnswer)),
        Outbound::Text { text: noise.repeat(6) },
        Outbound::BudgetCard(BudgetCard {
            gate_id: GateId::new("rv_4"),
            head: CardHead {
                approvers: Some(listed()),
                group: None,
                ..CardHead::new(noise.clone(), true, 1, open)
            },
            summary: noise.clone(),
            open_steps: many.clone(),
            steps_used: 1,
            reached: Vec::new(),
        }),
    ];
    for content in contents {
        for locale in LOCALES {
            let message = message(locale, &content);
            assert_eq!(faults(&message), Vec::<String>::new());
            assert!(message.text.encode_utf16().count() <= 3_900);
            let shown: String = message.blocks.iter().map(words).collect();
            assert!(shown.contains('…') && message.text.contains('…'), "a cut is marked");
        }
    }
}

/// F-C2: a long answer keeps its head and says that it was cut; one that fits is whole.
#[test]
fn a_long_answer_is_cut_with_a_mark() {
    let said = |text: &str| -> String {
        let message = message(Locale::ZhCn, &Outbound::Answer(answer(text, TurnReason::FinalAnswer)));
        message.blocks.iter().map(words).collect()
    };
    let long = said(&"很长的答复。".repeat(3000));
    assert!(long.contains("很长的答复。很长的答复。") && long.contains("……内容过长，已截断"));
    let whole = "很长的答复。".repeat(1500);
    assert!(said(&whole).contains(&whole));
}
