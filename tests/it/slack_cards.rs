//! What we say in Slack: every card in every state and both languages, the form, and text that tries to forge.

mod boxes;
mod checker;
mod home;
mod room;

use std::collections::BTreeSet;

use countersign_agent::domain::{
    ActionStatus, ActionView, Answer, ApprovalCard, Approvers, CardHead, CardState, DecisionKind, EffectClass, GateId, Locale, Notice,
    Outbound, PlanCard, QuestionCard, StepStatus, TurnReason,
};
use countersign_gateway::channels::{BlockSet, FormContext, SlackMessage, form_errors, plain_text, revise_form, slack_message};
use countersign_playground::check_message as check_slack;
use proptest::prelude::*;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::support::card_files::write_card;
use crate::support::gallery::{action, answer, approval, budget, copies, decided, gallery, grant, in_slack, notices, plan, step, walk};
use crate::support::printed::printed;
use crate::support::templates::templates;

const LOCALES: [Locale; 2] = [Locale::ZhCn, Locale::EnUs];

fn message(locale: Locale, content: &Outbound) -> SlackMessage {
    slack_message(&templates(), locale, &in_slack(content), BlockSet::All)
}

/// The arguments with which a message is posted.
fn posted(message: &SlackMessage) -> Value {
    json!({"channel": "C0GENERAL", "text": message.text, "blocks": message.blocks})
}

fn faults(message: &SlackMessage) -> Vec<String> {
    check_slack(&posted(message))
}

fn block<'a>(message: &'a SlackMessage, name: &str) -> &'a Value {
    let named = |block: &&Value| block["block_id"].as_str().unwrap().split('.').next() == Some(name);
    message.blocks.iter().find(named).unwrap()
}

/// What a person reads in it.
fn words(node: &Value) -> String {
    let mut said = String::new();
    walk(node, &mut |node| {
        if let Some(text) = node["text"].as_str() {
            said.push_str(text);
        }
    });
    said
}

fn open_plan() -> Outbound {
    Outbound::PlanCard(plan(CardState::Open { votes: 0 }))
}

/// Cards that have every element between them. The room `channels` tests what each card holds and how each part is spelled.
const WHOLE: [&str; 10] = [
    "plan_open_quorum_version_note",
    "plan_left_out",
    "plan_stopped",
    "plan_expired",
    "plan_copy_open",
    "approval_open_always",
    "approval_approved",
    "question_open",
    "budget_open_listed",
    "answer",
];

/// S0-28, M-5: the platform would take every card in every state and both languages; ten of them look as agreed.
#[test]
fn cards_look_as_agreed() {
    let drawn = gallery();
    assert!(
        WHOLE.iter().all(|whole| drawn.iter().any(|(name, _)| name == whole)),
        "a card has another name now"
    );
    for locale in LOCALES {
        for (name, content) in gallery() {
            let message = message(locale, &content);
            assert_eq!(faults(&message), Vec::<String>::new(), "{name} {locale:?}");
            if locale == Locale::EnUs && WHOLE.contains(&name) {
                insta::assert_snapshot!(name, printed(&posted(&message)));
            }
        }
    }
}

/// design: `scripts/cards` draws every card in every state and both languages, the form and the Home tab.
#[test]
#[ignore = "writes files for scripts/cards"]
fn the_cards_are_written() {
    for locale in LOCALES {
        for (name, content) in gallery() {
            write_card("slack", name, locale, &posted(&message(locale, &content)));
        }
        let form = revise_form(&templates(), locale, &form_context());
        for (name, view) in [("form", form)].into_iter().chain(home::tabs(locale)) {
            write_card("slack", name, locale, &view);
        }
    }
}

/// S0-28: title and prompt are the contract's words, in both languages, and channels get a second line.
#[test]
fn title_and_prompt_are_the_contract() {
    for (locale, title, prompt) in [
        (Locale::ZhCn, "计划确认", "请回复 OK 继续，或直接回复修改意见。"),
        (
            Locale::EnUs,
            "Plan confirmation",
            "Reply OK to go ahead, or reply with the changes you want.",
        ),
    ] {
        let message = message(locale, &open_plan());
        assert_eq!(block(&message, "header")["text"]["text"], title);
        let said = words(block(&message, "prompt"));
        assert_eq!(said.lines().next(), Some(prompt));
        assert_eq!(said.lines().count(), 2, "channels get a second line");
        let bold = &block(&message, "prompt")["elements"][0]["elements"][1];
        assert_eq!((&bold["text"], &bold["style"]["bold"]), (&json!("OK"), &json!(true)));
        assert!(message.text.contains(title) && message.text.contains("*OK*"), "{}", message.text);
    }
}

/// (action_id, value) of every button, and whether it asks first.
fn buttons(content: &Outbound) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for block in message(Locale::ZhCn, content).blocks {
        walk(&block, &mut |node| {
            if node["type"] == "button" {
                let text = |key: &str| node[key].as_str().unwrap().to_owned();
                found.push((text("action_id"), text("value"), node["confirm"].is_object()));
            }
        });
    }
    found
}

/// S0-28, S4-3: buttons carry exactly the names and the one id of the API's contract; decided cards have none.
#[test]
fn buttons_carry_the_contract() {
    let button = |action: &str, id: &str, asks: bool| (String::from(action), String::from(id), asks);
    assert_eq!(
        buttons(&open_plan()),
        [
            button("plan_approve", "rv_1", false),
            button("plan_revise", "rv_1", false),
            button("plan_cancel", "rv_1", true),
            button("plan_keep_steps", "rv_1", false),
        ]
    );
    assert_eq!(
        buttons(&approval([ActionStatus::Pending; 2], CardState::Open { votes: 0 })),
        [
            button("action_approve", "act_1", false),
            button("action_reject", "act_1", true),
            // The second one is destructive.
            button("action_approve", "act_2", true),
            button("action_reject", "act_2", true)
        ]
    );
    assert_eq!(
        buttons(&budget(CardState::Open { votes: 0 })),
        [button("plan_approve", "rv_4", false), button("plan_cancel", "rv_4", false)]
    );
    for (name, content) in gallery() {
        let waits = [
            "plan_open",
            "plan_simple",
            "plan_left_out",
            "plan_copy_open",
            "approval_copy_open",
            "approval_open",
            "approval_half",
            "approval_unknown",
            "budget_open",
        ]
        .iter()
        .any(|start| name.starts_with(start));
        if name == "plan_expired" {
            assert_eq!(buttons(&content), [button("plan_ask_again", "rv_1", false)]);
            continue;
        }
        if name == "answer_again" {
            assert_eq!(buttons(&content), [button("turn_try_again", "turn_1", false)]);
            continue;
        }
        assert_eq!(buttons(&content).is_empty(), !waits, "{name}");
    }
}

/// design: a repainted card has new block ids throughout, and the same card the same ones on every try.
#[test]
fn a_repaint_has_new_block_ids() {
    let ids = |content: &Outbound| -> BTreeSet<String> {
        let blocks = message(Locale::ZhCn, content).blocks;
        blocks.iter().map(|block| block["block_id"].as_str().unwrap().to_owned()).collect()
    };
    let row = |first| approval([first, ActionStatus::Pending], CardState::Open { votes: 0 });
    let (before, after) = (row(ActionStatus::Pending), row(ActionStatus::Rejected));
    assert!(ids(&before).is_disjoint(&ids(&after)));
    assert_eq!(ids(&before), ids(&before));
    assert!(ids(&before).iter().any(|id| id.starts_with("row_2.")));
}

/// S0-28: a decided card says who, when and what, and an approved plan shows how far it is.
#[test]
fn a_decided_card_says_how_it_was_decided() {
    let mut card = plan(decided(DecisionKind::Approve, Some("ou_u2"), Some("OK")));
    card.steps[0].status = StepStatus::Completed;
    let message = message(Locale::EnUs, &Outbound::PlanCard(card));
    assert!(words(block(&message, "status")).starts_with("approved · 1/3"));
    let settled = block(&message, "settled");
    let date = &settled["elements"][0]["elements"][3];
    assert_eq!((&date["type"], &date["timestamp"]), (&json!("date"), &json!(1_765_432_100)));
    assert_eq!(date["fallback"], "2025-12-11 05:48 UTC");
    assert_eq!(
        settled["elements"][0]["elements"][1],
        json!({"type": "user", "user_id": "U0BOB0001"})
    );
    let steps = block(&message, "steps");
    let statuses: Vec<&str> = steps["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|task| task["status"].as_str())
        .collect();
    assert_eq!(
        (steps["type"].as_str(), statuses),
        (Some("plan"), vec!["complete", "pending", "pending"])
    );
}

/// design: notices are text alone, name people, and have words; a reaction is no message.
#[test]
fn notices_are_text() {
    for locale in LOCALES {
        for notice in notices() {
            let key = notice.key();
            let message = message(locale, &Outbound::Notice(notice));
            assert_eq!(message.blocks, Vec::<Value>::new());
            assert_eq!(faults(&message), Vec::<String>::new(), "{key}");
            assert!(!message.text.contains("U0") || message.text.contains("<@U0"), "{}", message.text);
        }
    }
}

/// interface §9: a reminder mentions people, and so does the word that others were asked.
#[test]
fn reminders_mention_people() {
    for locale in LOCALES {
        let said = copies::notices()
            .into_iter()
            .map(|notice| message(locale, &Outbound::Notice(notice)).text);
        let said: Vec<String> = said.collect();
        insta::assert_snapshot!(format!("reminders-{}", locale.as_str()), said.join("\n"));
    }
}

/// F-C2: whatever a message shows can be read in its plain text too.
#[test]
fn the_text_says_the_same() {
    for (name, content) in gallery() {
        let message = message(Locale::EnUs, &content);
        let plain = plain_text(&templates(), Locale::EnUs, &in_slack(&content));
        let first = plain.lines().next().unwrap().replace('&', "&amp;");
        // Slack mentions those whom the plain text names by their ids, and calls a group a channel.
        let mentioned = |word: &str| {
            if word.starts_with("U0") {
                format!("<@{word}>")
            } else {
                word.to_owned()
            }
        };
        let first = first
            .split(' ')
            .map(mentioned)
            .collect::<Vec<_>>()
            .join(" ")
            .replace("this group", "this channel");
        assert!(message.text.contains(&first), "{name}: {first} is not in {}", message.text);
    }
}

/// F-C2, M-5: a message's text says what the plain text says. Where the two differ is agreed: mentions, escapes, words about threads.
#[test]
fn texts_differ_from_plain_text_as_agreed() {
    for locale in LOCALES {
        let mut told = String::new();
        for (name, content) in gallery() {
            let plain = plain_text(&templates(), locale, &in_slack(&content));
            let text = message(locale, &content).text;
            let lines = [&plain, &text].map(|text| text.lines().collect::<Vec<_>>());
            told.push_str(&format!("--- {name}\n"));
            for change in TextDiff::from_slices(&lines[0], &lines[1]).iter_all_changes() {
                if change.tag() != ChangeTag::Equal {
                    told.push_str(&format!("{}{}\n", change.tag(), change.value()));
                }
            }
        }
        insta::assert_snapshot!(format!("text-{}", locale.as_str()), told);
    }
}

/// reach §3: the Home tab looks as agreed in both languages, and the platform would take it.
#[test]
fn the_home_tab_looks_as_agreed() {
    for locale in LOCALES {
        for (name, view) in home::tabs(locale) {
            assert_eq!(check_slack(&view), Vec::<String>::new(), "{name} {}", locale.as_str());
            insta::assert_snapshot!(format!("{name}-{}", locale.as_str()), printed(&view));
        }
    }
}

fn form_context() -> FormContext {
    FormContext {
        review_id: String::from("rv_1"),
        chat: String::from("C0GENERAL"),
        card: String::from("1780000001.000300"),
    }
}

/// S0-28, M-5: the form names the gate, the chat and the card, has the contract's names, and the platform would take it.
#[test]
fn the_form_is_the_contract() {
    let context = form_context();
    for locale in LOCALES {
        let view = revise_form(&templates(), locale, &context);
        assert_eq!(check_slack(&view), Vec::<String>::new());
        assert_eq!(view["callback_id"], "plan_revise_submit");
        let carried: FormContext = serde_json::from_str(view["private_metadata"].as_str().unwrap()).unwrap();
        assert_eq!(carried, context);
        assert_eq!(view["blocks"][0]["block_id"], "feedback");
        assert_eq!(view["blocks"][0]["element"]["action_id"], "feedback");
        insta::assert_snapshot!(format!("form-{}", locale.as_str()), printed(&view));
        let errors = form_errors(&templates(), locale, &Notice::EmptyFeedback {});
        assert_eq!(errors["response_action"], "errors");
        assert!(!errors["errors"]["feedback"].as_str().unwrap().is_empty());
    }
}

/// Whom the message calls: user elements, and mentions in mrkdwn.
fn called(message: &SlackMessage) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut see = |node: &Value| {
        if let Some(id) = node["user_id"].as_str() {
            found.push(id.to_owned());
        }
        if node["type"] == "mrkdwn" {
            found.extend(mentions(node["text"].as_str().unwrap()));
        }
    };
    message.blocks.iter().for_each(|block| walk(block, &mut see));
    found.extend(mentions(&message.text));
    found
}

fn mentions(text: &str) -> impl Iterator<Item = String> {
    text.split('<')
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap_or_default().trim_start_matches('@').to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// M-5: whatever goal, steps, tools, notes, arguments and answers say, a message calls nobody but the people that we
    /// mention, and the platform would take it.
    #[test]
    fn foreign_text_forges_nothing(
        text in r#"(<!here>|<!channel|<!subteam\^S1>|<@U0EVE0001>|<#C1>|@here|&lt;!here&gt;|&amp;|<https://e.example\|x>|\*\*|`|```|\n|\]\(https://e.example\)|\[|\PC){0,30}"#,
        approver in prop_oneof![Just(String::from("U0BOB0001")), r"[<>@!UW0-9 ]{0,12}"],
    ) {
        let open = CardState::Open { votes: 0 };
        let closed = decided(DecisionKind::Revise, Some(&approver), Some(&text));
        let plan = |state| Outbound::PlanCard(PlanCard {
            goal: text.clone(),
            steps: vec![step("1", &text, StepStatus::Pending, &[&text])],
            grants: vec![grant(&text, &text, &text), grant("write_file", "path", &text)],
            still_asks: vec![text.clone()],
            note: Some(text.clone()),
            ..plan(state)
        });
        let act = ActionView { tool: text.clone(), justification: text.clone(), arguments: text.clone(), preview: Some(text.clone()), output: Some(text.clone()), ..action(1, "x", EffectClass::Write, ActionStatus::Pending) };
        let approval = |state| Outbound::ApprovalCard(ApprovalCard { gate_id: GateId::new("rv_2"), head: CardHead { approvers: Some(Approvers::Listed(vec![text.clone()])), ..CardHead::new(text.clone(), true, 1, state) }, actions: vec![act.clone()], note: Some(text.clone()), later: 0, cut: false });
        let question = Outbound::QuestionCard(QuestionCard { gate_id: GateId::new("rv_3"), head: CardHead { approvers: None, ..CardHead::new(String::from("ou_u1"), true, 1, open.clone()) }, title: Some(text.clone()), question: text.clone(), reason: Some(text.clone()) });
        let answer = Outbound::Answer(Answer { open_steps: vec![text.clone()], granted: vec![grant(&text, &text, &text).call], incident: Some(text.clone()), ..answer(&text, TurnReason::FinalAnswer) });
        let goal = Outbound::Notice(Notice::Expired { goal: text.clone(), again: true });
        let said = Outbound::Text { text: format!("x{text}") };
        for content in [plan(open.clone()), plan(closed.clone()), approval(open), approval(closed), question, answer, goal, said] {
            let message = message(Locale::EnUs, &content);
            prop_assert_eq!(faults(&message), Vec::<String>::new());
            let trusted = ["U0ALICE01", "U0BOB0001", approver.trim()];
            let strangers: Vec<String> = called(&message).into_iter().filter(|id| !trusted.contains(&id.as_str())).collect();
            prop_assert_eq!(strangers, Vec::<String>::new());
        }
    }
}
