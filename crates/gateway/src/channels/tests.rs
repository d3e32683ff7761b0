//! What every platform's card must show: nobody countersigns what they could not see.

mod neutral;
mod outline;
pub(super) mod samples;

/// What the tests of the whole program have too.
#[expect(dead_code, unreachable_pub, unused_imports, reason = "the tests here need a part of it")]
#[path = "../../../../tests/it/support"]
pub(super) mod support {
    pub mod gallery;
    pub mod printed;
}

use std::sync::{Arc, LazyLock};

use countersign_agent::domain::{
    ActionId, ActionStatus, ActionView, ApprovalCard, ApprovalMode, Approvers, CardHead, CardState, Complexity, Decision, DecisionKind,
    DeclaredCall, EffectClass, GateId, Grant, Locale, Millis, Outbound, PlanCard, PlanWords, Scope, StandingOffer, StepStatus, StepView,
    Via, on_one_card, plan_fits, visible,
};
use countersign_agent::template::Templates;
use proptest::prelude::*;
use serde_json::{Value, json};

use countersign_playground::{check_card, check_message as check_slack};

use super::{BlockSet, card_page, lark_card, slack_message};

pub(super) static TEMPLATES: LazyLock<Arc<Templates>> = LazyLock::new(|| crate::template::load(None).unwrap());

/// `text` is what was agreed: the snapshot `name` beside these tests.
pub(super) fn agreed(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Strings anywhere in `node`.
fn strings(node: &Value, out: &mut Vec<String>) {
    match node {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|inner| strings(inner, out)),
        Value::Object(map) => map.values().for_each(|inner| strings(inner, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same, joiners that break up tags taken out.
fn words(node: &Value, out: &mut Vec<String>) {
    let mut found = Vec::new();
    strings(node, &mut found);
    out.extend(found.iter().map(|text| unbroken(text)));
}

fn unbroken(text: &str) -> String {
    text.replace(['\u{200b}', '\u{2060}'], "")
}

/// `shown` has every row's arguments in one piece, its buttons, and a mark where something is missing.
fn shows(shown: &Value, card: &ApprovalCard) -> Result<(), TestCaseError> {
    let mut found = Vec::new();
    words(shown, &mut found);
    for row in &card.actions {
        let arguments = visible(&row.arguments).replace(['\u{200b}', '\u{2060}'], "");
        prop_assert!(
            found.iter().any(|text| text.contains(&arguments)),
            "{} of {}",
            row.id,
            card.actions.len()
        );
        let button = row.button_id(&card.gate_id);
        prop_assert!(found.iter().any(|text| text == button.as_str()), "the buttons of {button}");
        let count = row.hidden.to_string();
        prop_assert!(row.hidden == 0 || found.iter().any(|text| text.contains("⚠️") && text.contains(&count)));
    }
    prop_assert!(card.later == 0 || found.iter().any(|text| text.contains(&card.later.to_string())));
    Ok(())
}

/// An offer with as much of `piece` as the question before its button may show.
fn longest_offer(piece: &str) -> StandingOffer {
    let offer = |count: usize| StandingOffer {
        call: DeclaredCall {
            tool: "x".repeat(10),
            arguments: [(String::from("p"), piece.repeat(count).into())].into_iter().collect(),
            times: 1,
        },
        definition: String::new(),
        scope: Scope::Every,
        days: 365,
    };
    let fits = |offer: &StandingOffer| {
        let told = offer.told();
        told.encode_utf16().count() + told.matches(['<', ']']).count() <= 140
    };
    (0..140).map(offer).take_while(fits).last().unwrap()
}

fn row(number: usize, piece: &str, times: usize, preview: usize, danger: bool) -> ActionView {
    ActionView {
        id: ActionId::new(format!("act_{number:032}")),
        tool: "x".repeat(if danger { 64 } else { 10 }),
        effect: if danger { EffectClass::Destructive } else { EffectClass::Write },
        justification: piece.repeat(times.min(300)),
        arguments: format!("{number}{}", piece.repeat(times)),
        hidden: 0,
        preview: (preview > 0).then(|| "+预览 <b>\n".repeat(preview)),
        quorum: 10,
        // Rules may ask others for one call.
        approvers: danger.then(|| Approvers::Listed((0..12).map(|number| format!("ou_{number:032}")).collect())),
        votes: 9,
        always: (!danger).then(|| Box::new(longest_offer(piece))),
        standing: None,
        status: if danger { ActionStatus::Unknown } else { ActionStatus::Pending },
        outdated: !danger,
        edited: false,
        output: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// S4-3, S4-12, F-C2: whatever batch is asked about, the card of every platform has each of its rows with the arguments whole and with
    /// buttons, or the row is marked; notes and previews make room. All rows come on some card, and the platforms would take it.
    #[test]
    fn every_row_of_a_card_is_shown_whole(
        batch in prop::collection::vec((
            prop_oneof![Just("a"), Just("字"), Just("🙂"), Just("<a&b `"), Just("\"\\\n"), Just("```"), Just("&#60;"), Just("\u{202e}"), Just("a字<"), Just("*_[]")],
            prop_oneof![3 => 0..60_usize, 3 => 0..800_usize, 1 => 0..16_000_usize],
            prop_oneof![Just(0_usize), Just(300_usize)],
            any::<bool>(),
        ), 1..24),
        note in prop_oneof![Just(0_usize), Just(3000_usize)],
    ) {
        let mut rest: Vec<ActionView> =
            batch.iter().enumerate().map(|(number, (piece, times, preview, danger))| row(number, piece, *times, *preview, *danger)).collect();
        while !rest.is_empty() {
            let actions = on_one_card(rest.clone());
            prop_assert!(!actions.is_empty());
            for (shown, whole) in actions.iter().zip(&rest) {
                prop_assert!(whole.arguments.starts_with(&shown.arguments));
                prop_assert!(shown.hidden == 0 || actions.len() == 1, "what is cut stands alone");
                prop_assert_eq!(shown.arguments.chars().count() as u64 + shown.hidden, whole.arguments.chars().count() as u64);
            }
            rest.drain(..actions.len());
            let mut card = ApprovalCard {
                gate_id: GateId::new("rv_1"),
                head: CardHead {
                    approvers: Some(Approvers::Listed((0..40).map(|number| format!("ou_{number:032}")).collect())),
                    ..CardHead::new(String::from("ou_u1"), true, 1, CardState::Open { votes: 0 })
                },
                note: (note > 0).then(|| "说明 **a**\n\n".repeat(note / 10)),
                later: rest.len(),
                actions,
                cut: false,
            };
            for locale in [Locale::ZhCn, Locale::EnUs] {
                let content = Outbound::ApprovalCard(card.clone());
                let drawn = lark_card(&TEMPLATES, locale, &content).unwrap();
                prop_assert_eq!(check_card(&drawn), Ok(()));
                prop_assert!(drawn.to_string().len() <= 28_000, "{}", drawn.to_string().len());
                shows(&drawn, &card)?;
                let said = slack_message(&TEMPLATES, locale, &content, BlockSet::All);
                prop_assert_eq!(check_slack(&json!({ "channel": "C1", "text": said.text, "blocks": said.blocks })), Vec::<String>::new());
                shows(&json!(said.blocks), &card)?;
            }
            // Decided, with outputs: it still fits, and still says what was decided about.
            for action in &mut card.actions {
                (action.status, action.output) = (ActionStatus::Executed, Some("line <b>\n".repeat(300)));
            }
            card.head.state = CardState::Decided {
                decision: Decision { in_place_of: None, kept: Vec::new(), kind: DecisionKind::Approve, by: Some(String::from("ou_u2")), via: Via::Text, through_api: false, text: Some(String::from("OK")), at: Millis(1), event_id: None, approvers: Vec::new(), standing: None },
            };
            card.later = 0;
            let content = Outbound::ApprovalCard(card.clone());
            let drawn = lark_card(&TEMPLATES, Locale::EnUs, &content).unwrap();
            prop_assert_eq!(check_card(&drawn), Ok(()));
            let said = slack_message(&TEMPLATES, Locale::EnUs, &content, BlockSet::All);
            prop_assert_eq!(check_slack(&json!({ "channel": "C1", "text": said.text, "blocks": said.blocks })), Vec::<String>::new());
            for shown in [&drawn, &json!(said.blocks)] {
                let mut found = Vec::new();
                words(shown, &mut found);
                for action in &card.actions {
                    let arguments = visible(&action.arguments).replace(['\u{200b}', '\u{2060}'], "");
                    prop_assert!(found.iter().any(|text| text.contains(&arguments)), "{}", action.id);
                }
            }
        }
    }
}

/// Foreign text as it stands on one line of a card.
fn line(text: &str) -> String {
    let text = visible(text).replace(['\u{200b}', '\u{2060}'], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What people read in `node`: entities as the characters that they stand for. In code, where they are shown as they are, they are broken up.
fn read(node: &Value) -> Vec<String> {
    let mut found = Vec::new();
    strings(node, &mut found);
    let plain = |text: String| {
        let mut pieces = text.split("&#");
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (number, rest) = piece.split_once(';').unwrap_or(("x", piece));
            match number.parse().ok().and_then(char::from_u32) {
                Some(c) => out.extend([c.to_string().as_str(), rest]),
                None => out.extend(["&#", piece]),
            }
        }
        unbroken(&out)
    };
    found.into_iter().map(plain).collect()
}

/// Everything that the approval of the plan covers stands in one piece among `found`.
fn tells(found: &[String], card: &PlanCard, line: impl Fn(&str) -> String) -> Result<(), TestCaseError> {
    let stands = |text: &str| found.iter().any(|shown| shown.contains(&line(text)));
    prop_assert!(stands(&card.goal), "the goal: {}", card.goal);
    for step in &card.steps {
        prop_assert!(stands(&step.content), "step {} of {}: {}", step.id, card.steps.len(), step.content);
        prop_assert!(step.intent.as_deref().is_none_or(stands), "the intent of {}", step.id);
        for tool in &step.tools {
            prop_assert!(stands(tool), "{tool} of {}", step.id);
        }
    }
    for tool in &card.still_asks {
        prop_assert!(stands(tool), "{tool} in the rules");
    }
    for grant in &card.grants {
        for value in grant.call.arguments.values() {
            let value = value.to_string().replace('`', "\\u0060");
            prop_assert!(stands(&value), "{} in the rules", grant.call);
        }
    }
    Ok(())
}

/// What a step of the property below is made of: a piece, how often it stands in its words and its intent, how many tools it declares.
type Made = (&'static str, usize, usize, usize);

/// A plan of these steps, shorter until a card holds it. Every text has an end of its own, so that none is found within another.
fn planned(goal: (&str, usize), made: &[Made]) -> PlanCard {
    let text = |name: &str, piece: &str, times: usize| format!("§{name}:{}:{name}§", piece.repeat(times));
    let step = |(number, (piece, content, intent, tools)): (usize, &Made)| StepView {
        id: format!("s{number}"),
        content: text(&number.to_string(), piece, *content),
        status: StepStatus::Pending,
        tools: (0..*tools)
            .map(|tool| format!("{}_{number}_{tool}", if tools % 2 == 0 { "tool" } else { "<b>&*" }))
            .collect(),
        intent: (*intent > 0).then(|| text(&format!("i{number}"), piece, *intent)),
        unfinished: false,
    };
    let mut steps: Vec<StepView> = made.iter().enumerate().map(step).collect();
    let goal = text("goal", goal.0, goal.1);
    let covered = |(number, (piece, _, intent, tools)): (usize, &Made)| Grant {
        step_id: format!("s{number}"),
        call: DeclaredCall {
            tool: String::from(["write_file", "web_fetch", "tool<b>&*"][tools % 3]),
            arguments: json!({
                "path": text(&format!("p{number}"), piece, *intent).replace(char::is_control, " "),
                "url": text(&format!("u{number}"), piece, 1).replace(char::is_control, " "),
                "n": number,
            })
            .as_object()
            .cloned()
            .unwrap_or_default(),
            times: 1000,
        },
        used: 0,
    };
    let mut grants: Vec<Grant> = made.iter().enumerate().filter(|(_, made)| made.3 > 0).map(covered).collect();
    while plan_fits(&goal, &steps, &grants).is_err() {
        grants.pop();
        let last = steps.pop().expect("a goal has room");
        if steps.is_empty() {
            let half = text("half", made[0].0, made[0].1 / 4);
            steps.push(StepView {
                content: half,
                intent: None,
                tools: Vec::new(),
                ..last
            });
        }
    }
    let still_asks = steps.iter().flat_map(|step| step.tools.clone()).collect();
    PlanCard {
        left_out: None,
        review_id: Some(GateId::new("rv_1")),
        head: CardHead {
            approvers: Some(Approvers::Listed((0..40).map(|number| format!("ou_{number:032}")).collect())),
            ..CardHead::new(String::from("ou_u1"), true, 86_400_000, CardState::Open { votes: 8 })
        },
        goal,
        complexity: Complexity::Complex,
        plan_version: 12,
        steps,
        grants,
        still_asks,
        approval: ApprovalMode::Write,
        quorum: 9,
        note: Some("说明 **a** <b>\n\n".repeat(300)),
        request_edited: true,
        demo: true,
        words: PlanWords::Unknown,
        end: None,
        outage_until: None,
        asked_again: None,
        cut: false,
        undone: Vec::new(),
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("a"),
        Just("字"),
        Just("🙂"),
        Just("<a&b `"),
        Just("\"\\ "),
        Just("```"),
        Just("&#60;"),
        Just("\u{202e}"),
        Just("{|}~"),
        Just("*_[]"),
        Just("é\n- "),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// S0-T13, design: whatever plan is taken, the card of every platform shows all that an approval of it covers, whole: the goal, each
    /// step's words, intent and tools, what runs after the OK. Notes make room; so do repaints while it waits and after it was decided.
    #[test]
    fn every_step_of_a_plan_is_shown_whole(
        goal in (piece(), 0..250_usize),
        made in prop::collection::vec((
            piece(),
            prop_oneof![4 => 0..40_usize, 2 => 0..330_usize, 1 => 0..1900_usize],
            prop_oneof![2 => Just(0_usize), 2 => 0..60_usize, 1 => 0..500_usize],
            prop_oneof![3 => 0..3_usize, 1 => 0..20_usize],
        ), 1..50),
    ) {
        let mut card = planned(goal, &made);
        let said = |kind| CardState::Decided {
            decision: Decision { in_place_of: None, kept: Vec::new(), kind, by: Some(String::from("ou_u2")), via: Via::Text, through_api: false, text: Some("改 <b>\n".repeat(400)), at: Millis(1), event_id: None, approvers: Vec::new(), standing: None },
        };
        for state in [CardState::Open { votes: 8 }, said(DecisionKind::Approve), said(DecisionKind::Revise), CardState::Informed] {
            card.head.state = state;
            let content = Outbound::PlanCard(card.clone());
            prop_assert!(!content.hides());
            for locale in [Locale::ZhCn, Locale::EnUs] {
                let drawn = lark_card(&TEMPLATES, locale, &content).unwrap();
                prop_assert_eq!(check_card(&drawn), Ok(()));
                prop_assert!(drawn.to_string().len() <= 28_000, "{}", drawn.to_string().len());
                let said = slack_message(&TEMPLATES, locale, &content, BlockSet::All);
                prop_assert_eq!(check_slack(&json!({ "channel": "C1", "text": said.text, "blocks": said.blocks })), Vec::<String>::new());
                let page = card_page(&TEMPLATES, locale, &str::to_owned, &content).unwrap();
                let mut shown = card.clone();
                if !matches!(card.head.state, CardState::Open { .. }) {
                    // What will run is said while it can still be refused.
                    (shown.grants, shown.still_asks) = (Vec::new(), Vec::new());
                }
                tells(&read(&drawn), &shown, line)?;
                let mut found = Vec::new();
                words(&json!(said.blocks), &mut found);
                tells(&found, &shown, line)?;
                // The console escapes these lines for its page.
                shown.grants.clear();
                shown.still_asks.clear();
                let mut found = Vec::new();
                words(&json!(page), &mut found);
                tells(&found, &shown, |text| text.replace(['\u{200b}', '\u{2060}'], ""))?;
            }
            // Work has begun.
            card.steps[0].status = StepStatus::Skipped;
        }
    }
}

/// ux A5: a row that was approved and did not run is not counted as rejected.
#[test]
fn a_row_that_did_not_run_is_not_called_rejected() {
    let mixed = support::gallery::gallery().into_iter().find(|(name, _)| *name == "approval_mixed");
    let Some((_, Outbound::ApprovalCard(mut card))) = mixed else {
        panic!("no such card")
    };
    for (status, told) in [(ActionStatus::Rejected, true), (ActionStatus::Expired, false)] {
        card.actions[1].status = status;
        let drawn = lark_card(&TEMPLATES, Locale::EnUs, &Outbound::ApprovalCard(card.clone())).unwrap();
        assert_eq!(drawn.to_string().contains("1 approved, 1 rejected"), told, "{drawn}");
    }
}
