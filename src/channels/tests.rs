//! What every platform's card must show: nobody countersigns what they could not see.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{check_card, check_slack, lark_card, slack_message};
use crate::domain::{
    ActionId, ActionStatus, ActionView, ApprovalCard, CardState, Decision, DecisionKind, EffectClass, GateId, Locale, Millis, Outbound,
    Via, on_one_card, visible,
};
use crate::template::Templates;

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| Templates::load(None).unwrap());

/// Strings anywhere in `node`, joiners that break up tags taken out.
fn words(node: &Value, out: &mut Vec<String>) {
    match node {
        Value::String(text) => out.push(text.replace(['\u{200b}', '\u{2060}'], "")),
        Value::Array(list) => list.iter().for_each(|inner| words(inner, out)),
        Value::Object(map) => map.values().for_each(|inner| words(inner, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
        prop_assert!(found.iter().any(|text| text == row.id.as_str()), "the buttons of {}", row.id);
        let count = row.hidden.to_string();
        prop_assert!(row.hidden == 0 || found.iter().any(|text| text.contains("⚠️") && text.contains(&count)));
    }
    prop_assert!(card.later == 0 || found.iter().any(|text| text.contains(&card.later.to_string())));
    Ok(())
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
        status: if danger { ActionStatus::Unknown } else { ActionStatus::Pending },
        output: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// S4-3, S4-12, C2: whatever batch is asked about, the card of every platform has each of its rows with the arguments whole and with
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
                requester: String::from("ou_u1"),
                note: (note > 0).then(|| "说明 **a**\n\n".repeat(note / 10)),
                later: rest.len(),
                group: true,
                ttl_ms: 1,
                state: CardState::Open { votes: 0 },
                actions,
            };
            for locale in [Locale::ZhCn, Locale::EnUs] {
                let content = Outbound::ApprovalCard(card.clone());
                let drawn = lark_card(&TEMPLATES, locale, &content).unwrap();
                prop_assert_eq!(check_card(&drawn), Ok(()));
                prop_assert!(drawn.to_string().len() <= 28_000, "{}", drawn.to_string().len());
                shows(&drawn, &card)?;
                let said = slack_message(&TEMPLATES, locale, &content).unwrap();
                prop_assert_eq!(check_slack(&json!({ "channel": "C1", "text": said.text, "blocks": said.blocks })), Vec::<String>::new());
                shows(&json!(said.blocks), &card)?;
            }
            // Decided, with outputs: it still fits, and still says what was decided about.
            for action in &mut card.actions {
                (action.status, action.output) = (ActionStatus::Executed, Some("line <b>\n".repeat(300)));
            }
            card.state = CardState::Decided {
                decision: Decision { kind: DecisionKind::Approve, by: Some(String::from("ou_u2")), via: Via::Text, text: Some(String::from("OK")), at: Millis(1), event_id: None },
            };
            card.later = 0;
            let content = Outbound::ApprovalCard(card.clone());
            let drawn = lark_card(&TEMPLATES, Locale::EnUs, &content).unwrap();
            prop_assert_eq!(check_card(&drawn), Ok(()));
            let said = slack_message(&TEMPLATES, Locale::EnUs, &content).unwrap();
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
