//! The checker of Card JSON 2.0: what the platform refuses, it refuses, one broken rule at a time.

use countersign_agent::domain::{CardState, Locale, Outbound};
use countersign_gateway::channels::lark_card;
use countersign_playground::check_card;
use serde_json::{Value, json};

use crate::support::gallery::plan;
use crate::support::templates::templates;

/// design: the checker refuses what Card JSON 2.0 refuses.
#[test]
fn the_checker_refuses_what_the_platform_refuses() {
    let good = lark_card(&templates(), Locale::ZhCn, &Outbound::PlanCard(plan(CardState::Open { votes: 0 }))).unwrap();
    check_card(&good).unwrap();
    let refused = |change: &dyn Fn(&mut Value), why: &str| {
        let mut card = good.clone();
        change(&mut card);
        let error = check_card(&card).expect_err(why);
        assert!(error.contains(why), "{error} does not name {why}");
    };
    let push = |card: &mut Value, element: Value| card["body"]["elements"].as_array_mut().unwrap().push(element);
    let form = |card: &mut Value| -> usize {
        card["body"]["elements"]
            .as_array()
            .unwrap()
            .iter()
            .position(|element| element["tag"] == "form")
            .unwrap()
    };
    refused(&|card| card["schema"] = json!("1.0"), "schema");
    refused(&|card| card["config"]["wide_screen_mode"] = json!(true), "wide_screen_mode");
    refused(&|card| card["config"]["update_multi"] = json!(false), "update_multi");
    refused(&|card| card["elements"] = json!([]), "elements");
    refused(&|card| card["i18n_elements"] = json!({}), "i18n_elements");
    refused(&|card| push(card, json!({"tag": "action", "actions": []})), "action");
    refused(&|card| push(card, json!({"tag": "note", "elements": []})), "note");
    refused(
        &|card| push(card, json!({"tag": "markdown", "content": "x", "element_id": "goal"})),
        "used twice",
    );
    refused(
        &|card| push(card, json!({"tag": "markdown", "content": "x", "element_id": "1x"})),
        "not legal",
    );
    refused(
        &|card| push(card, json!({"tag": "markdown", "content": "x", "element_id": "a".repeat(21)})),
        "not legal",
    );
    refused(
        &|card| push(card, json!({"tag": "markdown", "content": "<at id=all></at>"})),
        "mention",
    );
    refused(&|card| push(card, json!({"tag": "markdown", "content": "<script>"})), "script");
    refused(
        &|card| {
            push(
                card,
                json!({"tag": "button", "text": {"tag": "plain_text", "content": "x".repeat(101)}}),
            );
        },
        "101 characters",
    );
    refused(
        &|card| {
            push(
                card,
                json!({"tag": "button", "text": {"tag": "plain_text", "content": "x"}, "value": {}}),
            );
        },
        "value",
    );
    refused(
        &|card| push(card, json!({"tag": "markdown", "content": "x".repeat(31_000)})),
        "bytes",
    );
    refused(&|card| (0..200).for_each(|_| push(card, json!({"tag": "hr"}))), "components");
    refused(
        &|card| {
            let at = form(card);
            let inner = card["body"]["elements"].as_array_mut().unwrap().remove(at);
            push(
                card,
                json!({"tag": "column_set", "columns": [{"tag": "column", "elements": [inner]}]}),
            );
        },
        "root",
    );
    refused(
        &|card| {
            let at = form(card);
            card["body"]["elements"][at]["elements"][1]["name"] = json!("");
        },
        "no name",
    );
    refused(
        &|card| {
            let at = form(card);
            card["body"]["elements"][at]["elements"][1]["name"] = json!("feedback");
        },
        "used twice",
    );
    refused(
        &|card| {
            let at = form(card);
            card["body"]["elements"][at]["elements"].as_array_mut().unwrap().pop();
        },
        "no submit",
    );
    refused(
        &|card| {
            let at = form(card);
            card["body"]["elements"][at]["elements"][0]["max_length"] = json!(1001);
        },
        "max_length",
    );
    refused(
        &|card| {
            let mut inner = json!({"tag": "hr"});
            for _ in 0..5 {
                inner = json!({"tag": "column_set", "columns": [{"tag": "column", "elements": [inner]}]});
            }
            push(card, inner);
        },
        "nested",
    );
}
