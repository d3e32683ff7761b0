//! The plan's card when steps were left out: the decided one, and that of the next version.

use countersign_agent::domain::{CardState, Decision, DecisionKind, LeftOut, Outbound, PlanCard};

use super::{decided, plan};

pub fn cards() -> [(&'static str, Outbound); 2] {
    let CardState::Decided { decision } = decided(DecisionKind::Revise, Some("ou_u2"), Some("keep only steps 1, 3")) else {
        unreachable!("it is decided")
    };
    let kept = CardState::Decided {
        decision: Decision {
            kept: vec![1, 3],
            ..decision
        },
    };
    let rest = PlanCard {
        plan_version: 2,
        left_out: Some(Box::new(LeftOut {
            by: Some(String::from("ou_u2")),
            through_api: false,
            steps: vec![String::from("2. 汇总 <b>各区域</b> 销售额"), String::from("4. 发送 <!channel>")],
        })),
        ..plan(CardState::Open { votes: 0 })
    };
    [
        ("plan_kept", Outbound::PlanCard(plan(kept))),
        ("plan_left_out", Outbound::PlanCard(rest)),
    ]
}
