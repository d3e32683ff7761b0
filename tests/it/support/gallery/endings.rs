//! Progress and the final answer.

use countersign_agent::domain::{
    Answer, CardState, Notice, Outbound, PlanEnd, ProgressView, StepStatus, TurnId, TurnReason, UndoneCall, UndoneReason,
};

use super::{AT, answer, grant, plan, running, step};

pub fn cards() -> Vec<(&'static str, Outbound)> {
    vec![
        (
            "progress_running",
            Outbound::Progress(ProgressView {
                goal: String::from("整理销售周报"),
                steps: running(plan(CardState::Informed)).steps,
                finished: false,
                outage_until: None,
                end: None,
                undone: Vec::new(),
            }),
        ),
        (
            "progress_outage",
            Outbound::Progress(ProgressView {
                goal: String::from("整理销售周报"),
                steps: running(plan(CardState::Informed)).steps,
                finished: false,
                outage_until: Some(AT),
                end: None,
                undone: Vec::new(),
            }),
        ),
        (
            "progress_stopped",
            Outbound::Progress(ProgressView {
                goal: String::from("整理销售周报"),
                steps: running(plan(CardState::Informed)).steps,
                finished: true,
                outage_until: None,
                end: None,
                undone: Vec::new(),
            })
            .ended(PlanEnd::Early(TurnReason::Cancelled)),
        ),
        (
            "progress_finished",
            Outbound::Progress(ProgressView {
                goal: String::from("整理销售周报"),
                steps: vec![
                    step("1", "读取", StepStatus::Completed, &[]),
                    step("2", "汇总", StepStatus::Skipped, &[]),
                ],
                finished: true,
                outage_until: None,
                end: Some(PlanEnd::Done),
                undone: Vec::new(),
            }),
        ),
        (
            "answer",
            Outbound::Answer(Answer {
                demo: true,
                granted: vec![
                    grant("write_file", "path", "周报.md").call,
                    grant("jira__create_issue", "project", "OPS").call,
                ],
                standing: vec![grant("write_file", "path", "日报.md").call],
                ..answer("# 周报\n- **华东** 100\n- a < b & <at id=all></at>", TurnReason::FinalAnswer)
            }),
        ),
        (
            "answer_undone",
            Outbound::Answer(Answer {
                undone: vec![
                    UndoneCall {
                        call: grant("write_file", "path", "旧表.csv").call,
                        why: UndoneReason::Rejected,
                    },
                    UndoneCall {
                        call: grant("mail__send", "to", "all@team.example, to: me) (once").call,
                        why: UndoneReason::Denied,
                    },
                ],
                ..answer("都写好了。", TurnReason::FinalAnswer)
            }),
        ),
        (
            "answer_budget",
            Outbound::Answer(Answer {
                open_steps: vec![String::from("3. 写入周报")],
                group: false,
                ..answer("写好两份。", TurnReason::BudgetExhausted)
            }),
        ),
        (
            "answer_model_error",
            Outbound::Answer(Answer {
                problem: Some(Notice::ModelUnreachable {}),
                incident: Some(String::from("a1b2c3")),
                ..answer("", TurnReason::ModelError)
            }),
        ),
        (
            "answer_again",
            Outbound::Answer(Answer {
                problem: Some(Notice::ModelUnreachable {}),
                incident: Some(String::from("a1b2c3")),
                again: Some(TurnId::new("turn_1")),
                ..answer("", TurnReason::ModelError)
            }),
        ),
        ("answer_empty", Outbound::Answer(answer(" ", TurnReason::FinalAnswer))),
    ]
}
