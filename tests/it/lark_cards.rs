//! What we say in Lark: every card in every state and both languages, the checker, and text that tries to forge.

mod checker;

use std::collections::BTreeSet;

use countersign_agent::domain::{
    ActionStatus, ActionView, Answer, ApprovalCard, Approvers, BudgetCard, CardHead, CardState, DecisionKind, EffectClass, GateId, LeftOut,
    Locale, Notice, Outbound, PlanCard, PlanEnd, ProgressView, QuestionCard, StepStatus, StepView, TurnReason,
};

use countersign_gateway::channels::{click_response, lark_card, message_kind, notice_text, plain_text};
use countersign_playground::check_card;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::card_files::write_card;
use crate::support::gallery::{
    action, answer, approval, budget, decided, declared_notices, element, gallery, grant, listed, notices, plan, step, walk,
};
use crate::support::printed::printed;
use crate::support::templates::templates;

const LOCALES: [Locale; 2] = [Locale::ZhCn, Locale::EnUs];

/// Cards that have every element between them. The room `channels` tests what each card holds and how each part is spelled.
const WHOLE: [&str; 10] = [
    "plan_open_quorum_version_note",
    "plan_left_out",
    "plan_approved",
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
    let templates = templates();
    let drawn = gallery();
    assert!(
        WHOLE.iter().all(|whole| drawn.iter().any(|(name, _)| name == whole)),
        "a card has another name now"
    );
    for locale in LOCALES {
        for (name, content) in gallery() {
            let card = lark_card(&templates, locale, &content).expect(name);
            check_card(&card).unwrap_or_else(|why| panic!("{name} {locale:?}: {why}"));
            if locale == Locale::ZhCn && WHOLE.contains(&name) {
                insta::assert_snapshot!(name, printed(&card));
            }
        }
    }
}

/// design: `scripts/cards` draws every card in every state and both languages.
#[test]
#[ignore = "writes files for scripts/cards"]
fn the_cards_are_written() {
    for locale in LOCALES {
        for (name, content) in gallery() {
            write_card("lark", name, locale, &lark_card(&templates(), locale, &content).unwrap());
        }
    }
}

/// F-C2: whatever a card says can be read, and answered, as plain text.
#[test]
fn plain_text_says_the_same() {
    let templates = templates();
    for locale in LOCALES {
        let all: Vec<String> = gallery()
            .iter()
            .map(|(name, content)| format!("--- {name}\n{}", plain_text(&templates, locale, content)))
            .collect();
        insta::assert_snapshot!(format!("plain-{}", locale.as_str()), all.join("\n"));
    }
}

/// S0-28: title and prompt are the contract's words, in both languages, on the card and in its plain form.
#[test]
fn title_and_prompt_are_the_contract() {
    let templates = templates();
    let content = Outbound::PlanCard(plan(CardState::Open { votes: 0 }));
    for (locale, title, prompt) in [
        (Locale::ZhCn, "计划确认", "请回复 **OK** 继续，或直接回复修改意见。"),
        (
            Locale::EnUs,
            "Plan confirmation",
            "Reply **OK** to go ahead, or reply with the changes you want.",
        ),
    ] {
        let card = lark_card(&templates, locale, &content).unwrap();
        assert_eq!(card["header"]["title"]["content"], title);
        let lines: Vec<&str> = element(&card, "prompt")["content"].as_str().unwrap().lines().collect();
        assert_eq!(lines[0], prompt);
        assert_eq!(lines.len(), 2, "groups get a second line");
        let plain = plain_text(&templates, locale, &content);
        assert!(plain.contains(title) && plain.lines().any(|line| line == prompt), "{plain}");
    }
}

/// S0-28, S4-3: buttons carry exactly the values of the API's contract; decided cards have none.
#[test]
fn buttons_carry_the_contract() {
    let templates = templates();
    let values = |content: &Outbound| {
        let card = lark_card(&templates, Locale::ZhCn, content).unwrap();
        let mut found = Vec::new();
        walk(&card, &mut |node| {
            if node["type"] == "callback" {
                found.push(node["value"].clone());
            }
        });
        found
    };
    let review = |action: &str| json!({"action": action, "review_id": "rv_1"});
    let act = |action: &str, id: &str| json!({"action": action, "action_id": id});
    let open = Outbound::PlanCard(plan(CardState::Open { votes: 0 }));
    assert_eq!(
        values(&open),
        [review("approve"), review("cancel"), review("revise"), review("keep_steps")]
    );
    assert_eq!(
        values(&approval([ActionStatus::Pending; 2], CardState::Open { votes: 0 })),
        [
            act("approve", "act_1"),
            act("reject", "act_1"),
            act("approve", "act_2"),
            act("reject", "act_2")
        ]
    );
    assert_eq!(
        values(&budget(CardState::Open { votes: 0 })),
        [
            json!({"action": "approve", "review_id": "rv_4"}),
            json!({"action": "cancel", "review_id": "rv_4"})
        ]
    );
    for (name, content) in gallery()
        .iter()
        .filter(|(name, _)| !name.contains("open") && !name.contains("simple") && *name != "plan_left_out")
    {
        if *name == "plan_expired" {
            assert_eq!(values(content), [review("ask_again")]);
            continue;
        }
        if *name == "answer_again" {
            assert_eq!(values(content), [json!({"action": "try_again", "turn_id": "turn_1"})]);
            continue;
        }
        if ["answer", "answer_empty", "answer_undone"].contains(name) {
            let said = |action: &str| json!({"action": action, "turn_id": "turn_1"});
            assert_eq!(values(content), [said("feedback_up"), said("feedback_down")]);
            continue;
        }
        let rows_wait = ["approval_half", "approval_unknown"].contains(name);
        assert_eq!(values(content).is_empty(), !rows_wait, "{name}");
    }
    let card = lark_card(&templates, Locale::ZhCn, &open).unwrap();
    assert_eq!(element(&card, "feedback")["name"], "feedback");
}

/// design: every notice has words in both languages, without holes, and every click answer has a legal toast.
#[test]
fn every_notice_has_words() {
    let templates = templates();
    let notices = notices();
    let keys: BTreeSet<String> = notices.iter().map(Notice::key).collect();
    assert_eq!(keys.len(), declared_notices(), "a variant is missing here: {keys:?}");
    for locale in LOCALES {
        let toast = |notice: &Notice| click_response(&templates, locale, notice, None)["toast"]["type"].take();
        let said: Vec<String> = notices
            .iter()
            .map(|notice| {
                let color = toast(notice);
                format!(
                    "{} ({}): {}",
                    notice.key(),
                    color.as_str().unwrap(),
                    notice_text(&templates, locale, notice)
                )
            })
            .collect();
        for (notice, text) in notices.iter().zip(&said) {
            let words = text.split_once("): ").unwrap().1;
            assert!(
                !words.is_empty() && !words.starts_with("notice.") && !words.contains("{{"),
                "{text}"
            );
            assert!(["info", "success", "warning", "error"].contains(&toast(notice).as_str().unwrap()));
        }
        insta::assert_snapshot!(format!("notices-{}", locale.as_str()), said.join("\n"));
    }
}

/// design: a click is answered with a toast and, if the card changed, the whole new card as an object.
#[test]
fn a_click_is_answered_with_toast_and_card() {
    let templates = templates();
    let shown = Outbound::PlanCard(plan(decided(DecisionKind::Approve, Some("ou_u1"), Some("OK"))));
    let answer = click_response(&templates, Locale::ZhCn, &Notice::Approved {}, Some(&shown));
    assert_eq!(answer["toast"]["type"], "success");
    assert_eq!(answer["card"]["type"], "raw");
    check_card(&answer["card"]["data"]).unwrap();
    assert_eq!(
        click_response(&templates, Locale::ZhCn, &Notice::UnknownReview {}, None).get("card"),
        None
    );
}

/// design: the API's kinds are the six of the contract.
#[test]
fn kinds_are_the_contracts() {
    let known = ["text", "plan_card", "approval_card", "progress", "answer", "notice"];
    for (name, content) in gallery() {
        assert!(known.contains(&message_kind(&content)), "{name}");
    }
}

/// F-C2: however much there is to show, the card fits, and says that something is missing.
#[test]
fn cards_fit_whatever_they_hold() {
    let templates = templates();
    let noise = "<*_[]()&#!\\|~`>-+:={}\u{7}计划🙂 ".repeat(400);
    let steps: Vec<StepView> = (0..200)
        .map(|id| StepView {
            id: id.to_string(),
            content: noise.clone(),
            status: StepStatus::Pending,
            tools: vec![noise.clone(); 30],
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
        note: Some(noise.clone()),
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
        Outbound::Answer(answer(&"<&".repeat(100_000), TurnReason::FinalAnswer)),
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
            let card = lark_card(&templates, locale, &content).unwrap();
            check_card(&card).unwrap();
            let text = card.to_string();
            assert!(text.len() <= 28_000, "{}", text.len());
            assert!(text.contains('…'), "a cut is marked");
        }
    }
}

/// F-C2: a long answer keeps its head and says that it was cut; a short one is whole.
#[test]
fn a_long_answer_is_cut_with_a_mark() {
    let text = "很长的答复。".repeat(3000);
    let card = lark_card(
        &templates(),
        Locale::ZhCn,
        &Outbound::Answer(answer(&text, TurnReason::FinalAnswer)),
    )
    .unwrap();
    let content = element(&card, "answer")["content"].as_str().unwrap();
    assert!(
        content.contains("很长的答复。很长的答复。") && content.ends_with("……内容过长，已截断"),
        "{content}"
    );
}

/// M-5: words of the model on their own are a card, so that their Markdown renders; it has neither head nor mention.
#[test]
fn parts_of_an_answer_are_cards_too() {
    let part = |text: &str| Outbound::Text { text: text.to_owned() };
    let card = lark_card(&templates(), Locale::ZhCn, &part("## 节\n\n**要点：**说明 <at id=all></at>")).unwrap();
    check_card(&card).unwrap();
    assert_eq!(
        element(&card, "answer")["content"],
        "## 节\n\n**要点：\u{200b}**说明 &#60;at id=all&#62;&#60;/at&#62;"
    );
    assert_eq!((card.get("header"), mentions(&card)), (None, Vec::new()));
    check_card(&lark_card(&templates(), Locale::ZhCn, &part(&"<&|*".repeat(875))).unwrap()).unwrap();
}

/// Mentions anywhere in the card.
fn mentions(card: &Value) -> Vec<String> {
    let text = card.to_string().to_lowercase();
    text.split("<at")
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap_or_default().trim().to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// M-5: whatever goal, steps, tools, notes, arguments and answers say, a card mentions exactly the people that we
    /// mention and tells the moments that we tell, and the platform would take it.
    #[test]
    fn foreign_text_forges_nothing(
        text in r#"(<at id=all></at>|<at|</at>|<local_datetime millisecond='1' format_type='time'></local_datetime>|<local_datetime|<font color='red'>|<link url='x'>|</|&lt;|&#60;|\*\*|`|```|\n|\]\(https://e.example\)|!\[|\[|\PC){0,30}"#,
        approver in prop_oneof![Just(String::from("ou_u2")), r"[<>a-z_ =]{0,12}"],
    ) {
        let templates = templates();
        let open = CardState::Open { votes: 0 };
        let closed = decided(DecisionKind::Revise, Some(&approver), Some(&text));
        let by_id = usize::from(approver == "ou_u2");
        let plan = |state| Outbound::PlanCard(PlanCard {
            goal: text.clone(),
            steps: vec![step("1", &text, StepStatus::Pending, &[&text])],
            grants: vec![grant(&text, &text, &text), grant("write_file", "path", &text)],
            still_asks: vec![text.clone()],
            note: Some(text.clone()),
            ..plan(state)
        });
        let act = ActionView { tool: text.clone(), justification: text.clone(), arguments: text.clone(), preview: Some(text.clone()), output: Some(text.clone()), ..action(1, "x", EffectClass::Write, ActionStatus::Pending) };
        let approval = Outbound::ApprovalCard(ApprovalCard { gate_id: GateId::new("rv_2"), head: CardHead { approvers: Some(Approvers::Listed(vec![text.clone()])), ..CardHead::new(text.clone(), true, 1, closed.clone()) }, actions: vec![act], note: Some(text.clone()), later: 0, cut: false });
        let question = Outbound::QuestionCard(QuestionCard { gate_id: GateId::new("rv_3"), head: CardHead { approvers: None, ..CardHead::new(String::from("ou_u1"), true, 1, open.clone()) }, title: Some(text.clone()), question: text.clone(), reason: Some(text.clone()) });
        let answer = Outbound::Answer(Answer { open_steps: vec![text.clone()], granted: vec![grant(&text, &text, &text).call], incident: Some(text.clone()), ..answer(&text, TurnReason::FinalAnswer) });
        for (content, trusted, moments) in
            [(plan(open), 1, 0), (plan(closed), by_id, 1), (approval, by_id, 1), (question, 1, 0), (answer, 1, 0)]
        {
            let card = lark_card(&templates, Locale::EnUs, &content).unwrap();
            prop_assert_eq!(check_card(&card), Ok(()));
            let found = mentions(&card);
            prop_assert_eq!(found.len(), trusted, "{:?}", found);
            // Day and time of each.
            prop_assert_eq!(card.to_string().matches("<local_datetime").count(), 2 * moments);
            prop_assert!(found.iter().all(|id| ["id=ou_u1", "id=ou_u2"].contains(&id.as_str())), "{:?}", found);
        }
    }
}
