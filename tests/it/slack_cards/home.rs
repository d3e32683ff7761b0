//! The Home tab: how it looks, and that it keeps the platform's bounds with its cards whole.

use countersign_agent::domain::{ActionStatus, CardState, Locale, Outbound, PlanCard, StepStatus, UndoneCount, UndoneReason};
use countersign_gateway::channels::{HomeCard, HomePage, HomeTask, home_view};
use countersign_playground::check_message as check_slack;
use serde_json::Value;

use super::{LOCALES, words};
use crate::support::gallery::{approval, budget, in_slack, plan, step};
use crate::support::templates::templates;

const OPEN: CardState = CardState::Open { votes: 0 };

/// A plan of 60 steps whose goal is `goal`.
fn long_plan(goal: &str) -> Outbound {
    let steps = (1..=60).map(|at| step(&at.to_string(), &format!("{goal} 第 {at} 步"), StepStatus::Pending, &["read_file"]));
    in_slack(&Outbound::PlanCard(PlanCard {
        goal: goal.to_owned(),
        steps: steps.collect(),
        ..plan(OPEN)
    }))
}

/// The tab with what waits, the person's tasks and the notice after a press; and with nothing.
pub(super) fn tabs(locale: Locale) -> [(&'static str, Value); 2] {
    let table = "订单：\n\n| 区域 | 数量 |\n|---|---|\n| 华东 | 3 |\n";
    let noted = PlanCard {
        note: Some(table.to_owned()),
        ..plan(OPEN)
    };
    let cards = [
        ("C0SALES", "整理销售周报 <!here>", Outbound::PlanCard(noted)),
        ("D0DIRECT", "清理", approval([ActionStatus::Pending; 2], OPEN)),
        ("C0OPS", "三份文件", budget(OPEN)),
    ];
    let cards = cards.map(|(chat, goal, card)| (chat, goal, in_slack(&card)));
    let waits = cards.iter().map(|(chat, goal, card)| HomeCard { chat, locale, goal, card });
    let task = |state, goal| HomeTask {
        chat: "C0SALES",
        goal,
        state,
        undone: &[],
    };
    let rejected = [UndoneCount {
        why: UndoneReason::Rejected,
        count: 1,
    }];
    let ended = HomeTask {
        undone: &rejected,
        ..task("completed", "清理旧文件")
    };
    let page = HomePage {
        notice: Some("Only U0ALICE01 can decide <!here>."),
        cards: waits.collect(),
        tasks: vec![task("plan_review", "整理销售周报"), task("queued", "<@U0BOB0001> 下周的"), ended],
        more: true,
    };
    let draw = |page: &HomePage<'_>| home_view(&templates(), locale, page);
    [("home", draw(&page)), ("home_empty", draw(&HomePage::default()))]
}

/// reach §3: however much waits, the view has 100 blocks at most and not too many bytes. A plan is there with its steps as in the chat and its buttons, or as a line
/// without any.
#[test]
fn cards_are_whole_or_a_line() {
    for long in [false, true] {
        let cards: Vec<(String, Outbound)> = (0..100)
            .map(|at| {
                let goal = if long {
                    format!("计划{at}号 {}", "长".repeat(150))
                } else {
                    format!("计划{at}号 ")
                };
                (goal.clone(), long_plan(&goal))
            })
            .collect();
        for locale in LOCALES {
            let waits = cards.iter().map(|(goal, card)| HomeCard {
                chat: "C0SALES",
                locale,
                goal,
                card,
            });
            let page = HomePage {
                notice: Some("好"),
                cards: waits.collect(),
                tasks: vec![
                    HomeTask {
                        chat: "C0SALES",
                        goal: "任务",
                        state: "running",
                        undone: &[],
                    };
                    40
                ],
                more: false,
            };
            let view = home_view(&templates(), locale, &page);
            assert_eq!(check_slack(&view), Vec::<String>::new());
            let (said, shown) = (words(&view), approved(&view));
            assert!((3..100).contains(&shown), "{shown}");
            for at in 0..100 {
                let whole = said.contains(&format!("计划{at}号"));
                let last = said.matches(&format!("计划{at}号")).count();
                // A card names its goal and, as in the chat, 50 steps; a line only the goal; behind the last line they are counted.
                assert!(!whole || last == 1 || last > 50, "{at}: {last}");
            }
        }
    }
}

/// How many plans can be approved in the view.
fn approved(view: &Value) -> usize {
    view.to_string().matches("plan_approve").count()
}
