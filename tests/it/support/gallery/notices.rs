//! One notice of each kind.

use countersign_agent::domain::{AwayProblem, Barrier, DecisionKind, FileProblem, Notice, StandingLine, StepStatus};

/// How many variants the domain declares, so that a new one cannot be forgotten here.
pub fn declared_notices() -> usize {
    let source = include_str!("../../../../crates/agent/src/domain/notice.rs");
    let body = source.split_once("pub enum Notice {").unwrap().1.split_once("\n}").unwrap().0;
    body.lines()
        .filter(|line| line.starts_with("    ") && line[4..].starts_with(|c: char| c.is_ascii_uppercase()))
        .count()
}

pub fn notices() -> Vec<Notice> {
    let goal = || String::from("整理周报");
    let barred = [Barrier::Chat, Barrier::Organisation, Barrier::Person].map(|barrier| Notice::NotServed { barrier });
    let others = vec![
        Notice::Queued { position: 2 },
        Notice::Steered {},
        Notice::QueueFull { limit: 20 },
        Notice::VoteRecorded { votes: 1, quorum: 2 },
        Notice::Approved {},
        Notice::Revised {},
        Notice::WordsFirst {},
        Notice::Cancelled {},
        Notice::Rejected {},
        Notice::Answered {},
        Notice::FeedbackNoted {},
        Notice::AlreadyDecided {
            in_place_of: None,
            kind: DecisionKind::Approve,
            by: Some(String::from("ou_u2")),
            through_api: false,
            at: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::AlreadyDecided {
            in_place_of: None,
            kind: DecisionKind::Expire,
            by: None,
            through_api: false,
            at: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::NotEntitled {
            requester: String::from("ou_u1"),
        },
        Notice::NotEntitled { requester: String::new() },
        Notice::OwnTask {},
        Notice::NobodyMay {},
        Notice::AlreadyDecided {
            in_place_of: Some(String::from("ou_u1")),
            kind: DecisionKind::Approve,
            by: Some(String::from("ou_u2")),
            through_api: false,
            at: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::DecidedInPlace {
            kind: DecisionKind::Approve,
            person: String::from("ou_u1"),
        },
        Notice::Away {
            deputy: String::from("ou_u2"),
            until: String::from("2026-12-01T23:59:59.999Z"),
            changed: true,
        },
        Notice::AwayRefused {
            problem: AwayProblem::NoEnd,
        },
        Notice::Back {
            deputy: String::from("ou_u2"),
        },
        Notice::NotAway {},
        Notice::GroupUnknown {
            groups: vec![String::from("od-ops"), String::from("S0614TZR7")],
        },
        Notice::Expired { goal: goal(), again: true },
        Notice::Expired {
            goal: goal(),
            again: false,
        },
        Notice::ReviewExpired { goal: goal(), again: true },
        Notice::ReviewExpired {
            goal: goal(),
            again: false,
        },
        Notice::AskingAgain { before: 0 },
        Notice::AskingAgain { before: 2 },
        Notice::TryingAgain { before: 0 },
        Notice::TryingAgain { before: 2 },
        Notice::TriedBefore {},
        Notice::TooOldToTry {},
        Notice::ModelAway {
            until: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::AskedBefore {
            by: String::from("ou_u2"),
            through_api: false,
            at: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::TooOldToAsk {},
        Notice::NoReviews {},
        Notice::Superseded {},
        Notice::UnknownReview {},
        Notice::FewWords {},
        Notice::WhichOne {
            goals: vec![goal(), String::from("两行\n的目标")],
        },
        Notice::NothingToStop {},
        Notice::Stopped {
            goal: goal(),
            done: vec![],
            next: Some(String::from("整理周报")),
        },
        Notice::Stopped {
            goal: String::new(),
            done: vec![String::from("write_file report.md")],
            next: Some(String::from("写周报")),
        },
        Notice::Greeting {},
        Notice::Welcome {},
        Notice::TooLong { limit: 16384 },
        Notice::NotText {},
        Notice::FilesSeen {},
        Notice::FilesNotTaken {
            files: [
                FileProblem::Off,
                FileProblem::TooLarge { most_mb: 20 },
                FileProblem::TooMany { most: 10 },
                FileProblem::NoWorkspace,
                FileProblem::WrongContent,
                FileProblem::NotFetched,
                FileProblem::NoRoom,
            ]
            .map(|problem| (String::from("<b>*报告*</b>.pdf"), problem))
            .to_vec(),
        },
        Notice::AllowedHere {
            number: 3,
            until: String::from("2025-12-11T05:48:20.123Z"),
        },
        Notice::OnceOnly {},
        Notice::StandingFull { limit: 200 },
        Notice::StandingGrants {
            grants: vec![StandingLine {
                number: 3,
                call: String::from(r#"write_file {"path":"<b>周报.md"}"#),
                by: String::from("ou_u2"),
                until: String::from("2025-12-11T05:48:20.123Z"),
                used: 2,
            }],
            more: 1,
            off: false,
        },
        Notice::StandingGrants {
            grants: vec![],
            more: 0,
            off: true,
        },
        Notice::StandingRevoked {
            number: 3,
            tool: String::from("write_file"),
        },
        Notice::NoSuchGrant { number: String::from("7") },
        Notice::NoSuchGrant { number: String::new() },
        Notice::MayNotRevoke {},
        Notice::NotShownWhole {},
        Notice::EmptyFeedback {},
        Notice::AllStepsKept {},
        Notice::NoStepsKept {},
        Notice::TooManyRounds {},
        Notice::ModelUnreachable {},
        Notice::ModelRefused {},
        Notice::ModelNonsense {},
        Notice::ModelOddEnd { word: "abort".to_owned() },
        Notice::CallsAsText {},
        Notice::ModelTimeout {},
        Notice::ModelTooLong {},
        Notice::ModelFiltered {},
        Notice::HookFailed { done: vec![] },
        Notice::HookFailed {
            done: vec![String::from("write_file report.md")],
        },
        Notice::BudgetExhausted {},
        Notice::Status {
            goal: Some(goal()),
            state: String::from("running"),
            steps: vec![(String::from("读取"), StepStatus::Completed)],
        },
        Notice::Status {
            goal: Some(goal()),
            state: String::from("model_away"),
            steps: vec![],
        },
        Notice::Status {
            goal: None,
            state: String::from("idle"),
            steps: vec![],
        },
        Notice::Help {},
        Notice::NothingToSay {},
        Notice::CutShort {},
        Notice::Done {},
        Notice::Internal {
            incident: String::from("a1b2c3"),
        },
    ];
    barred.into_iter().chain(others).chain(super::copies::notices()).collect()
}
