//! `/away`: somebody else decides in one's place, until a day or until `/back`.

use std::time::Duration;

use countersign_playground::Posted;
use futures_util::future::join;
use serde_json::{Value, json};

use super::actions::actions;
use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::people::reply;
use crate::support::platform::{On, on_both, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{ASIDE, DIRECT, GROUP, To, World};

on_both! {
    a_deputy_of_a_member_of_a_group,
    what_away_refuses,
}

on_either! {
    a_deputy_approves_and_the_work_is_done,
    after_back_and_after_its_end_a_deputy_is_nobody,
    what_a_deputy_may_is_not_passed_on,
    a_deputy_changes_refuses_and_stops,
    the_requester_is_nobodys_deputy_where_others_must_approve,
    a_deputy_and_the_person_count_once,
    a_deputy_of_two_votes_for_the_one_who_has_not,
    an_absence_that_begins_while_the_card_waits,
    away_in_english_and_how_it_stands,
    a_deputy_and_the_person_press_at_once,
}

const APPROVERS: &str = "CHAT__PLAN_REVIEW_APPROVERS";
const QUORUM: &str = "CHAT__PLAN_REVIEW_QUORUM";
const USERS: &str = "CHAT__ALLOWED_USERS";

/// `person` says, in a chat of their own with the bot, that `deputy` decides in their place.
async fn leaves(world: &World, person: &str, deputy: &str) {
    let direct = world.on.direct(person);
    let said = world.say(person, direct, &format!("/away {{@{deputy}}} for 3d"), DIRECT).await;
    let told = world.word_back(direct, &said).await;
    assert!(
        told.words().contains("代你确认") && told.words().contains(deputy),
        "{}",
        told.words()
    );
}

/// The events `delegated` of the turn of `card`: from whom, to whom.
async fn delegated(world: &World, card: &Posted) -> Vec<(Value, Value)> {
    let turn = world.review_of(card).await["turn_id"].as_str().unwrap().to_owned();
    let events = world.api.get(&format!("/api/v1/turns/{turn}/events?limit=200")).await;
    let of_deputies = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "delegated");
    of_deputies
        .map(|event| {
            assert!(
                event["data"]["gate_id"].is_string() && !event["summary"].as_str().unwrap().is_empty(),
                "{event}"
            );
            (event["data"]["from"].clone(), event["data"]["to"].clone())
        })
        .collect()
}

/// interface (H): the requester is away. The card says who decides in their place and until when, the deputy approves, and the work is done. The settled card,
/// the API, the events and the trail name both.
async fn a_deputy_approves_and_the_work_is_done(on: On) {
    let (c, u1, u2, u3) = (on.chat("c1"), on.user("u1"), on.user("u2"), on.user("u3"));
    let world = World::start_on(on, &[], reporter).await;
    leaves(&world, u1, u2).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let line = format!("{} 暂时不在，", on.at(u1));
    assert!(
        card.words().contains(&line) && card.words().contains(&format!("可由 {} 代为决定", on.at(u2))),
        "{}",
        card.words()
    );
    world.tap(u3, c, &card, "approve", None).await.told("没有生效").await;
    world.tap(u2, c, &card, "approve", None).await.done("已代");
    let settled = world.repainted(&card, "（代 ").await;
    assert!(
        settled.words().contains(&format!("{}（代 {}）", on.at(u2), on.at(u1))),
        "{}",
        settled.words()
    );
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some());
    let decision = world.review_of(&card).await["decision"].clone();
    assert_eq!((&decision["by"], &decision["in_place_of"]), (&json!(u2), &json!(u1)));
    assert_eq!(delegated(&world, &card).await, [(json!(u1), json!(u2))]);
    world.tap(u3, c, &card, "cancel", None).await.told("代 ").await;
    let trail = stored(&world, "SELECT kind || ' ' || details FROM audit ORDER BY seq").await;
    for (kind, name) in [
        ("away ", format!("\"deputy\":\"{u2}\"")),
        ("decision ", format!("\"in_place_of\":\"{u1}\"")),
    ] {
        assert!(
            trail.iter().any(|line| line.starts_with(kind) && line.contains(&name)),
            "{kind}{name} in {trail:?}"
        );
    }
    world.end().await;
}

/// interface §9: `/back` ends an absence, and so does its time.
async fn after_back_and_after_its_end_a_deputy_is_nobody(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let ttl = ("CHAT__PLAN_REVIEW_PENDING_TTL_MINUTES", "1440");
    let world = World::frozen_on(on, &[ttl], reporter).await;
    leaves(&world, u1, u2).await;
    let direct = on.direct(u1);
    let said = world.say(u1, direct, "/back", DIRECT).await;
    assert!(world.word_back(direct, &said).await.words().contains("不再代你"));
    let said = world.say(u1, direct, "/back", DIRECT).await;
    assert!(world.word_back(direct, &said).await.words().contains("现在没有人代你"));
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    assert!(!card.words().contains("暂时不在"), "{}", card.words());
    world.tap(u2, c, &card, "approve", None).await.told("没有生效").await;
    // The same thing is not told twice within five seconds.
    world.clock.advance(Duration::from_secs(5));
    let said = world.say(u1, direct, &format!("/away {{@{u2}}} for 8h"), DIRECT).await;
    world.word_back(direct, &said).await;
    world.clock.advance(Duration::from_millis(8 * 3_600_000 + 1));
    world.tap(u2, c, &card, "approve", None).await.told("没有生效").await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.tap(u1, c, &card, "approve", None).await.done("已确认，开始执行");
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// interface §9: no chains. B decides in A's place; C decides in B's place, and never in A's.
async fn what_a_deputy_may_is_not_passed_on(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (a, b, deputy) = (on.user("a"), on.user("b"), on.user("c"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{a}]"))], reporter).await;
    leaves(&world, a, b).await;
    leaves(&world, b, deputy).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(deputy, c, &card, "approve", None).await.told("没有生效").await;
    let said = world.say(deputy, c, "OK", reply(&card.id)).await;
    assert!(world.word_back(c, &said).await.words().contains("没有生效"));
    world.say(b, c, "OK", reply(&card.id)).await;
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&card).await["decision"]["in_place_of"], a);
    world.end().await;
}

/// interface (H): in the place of a person a deputy may do what the person may, by buttons and by words.
async fn a_deputy_changes_refuses_and_stops(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[(APPROVERS, &format!("[{}]", on.user("boss")))], reporter).await;
    leaves(&world, u1, u2).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let first = world.plan_card(c).await;
    // The requester is no approver: neither is their deputy.
    world.tap(u2, c, &first, "approve", None).await.told("没有生效").await;
    world.say(u2, c, "写到 report-v2.md", reply(&first.id)).await;
    let second = world.card_after(c, &first).await;
    assert_eq!(world.review_of(&first).await["decision"]["in_place_of"], u1);
    world.say(u2, c, "/stop", reply(&second.id)).await;
    world.api.turn_in(c, "cancelled").await;
    let decision = world.review_of(&second).await["decision"].clone();
    assert_eq!((&decision["kind"], &decision["in_place_of"]), (&json!("cancel"), &json!(u1)));
    world.end().await;
}

/// interface (H): a deputy who is the requester approves nothing where `not_requester` holds: no plan, and no call of a rule.
async fn the_requester_is_nobodys_deputy_where_others_must_approve(on: On) {
    let (c, u1, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let rules =
        format!("[{{tool: write_file, then: ask, approvers: not_requester}}, {{tool: write_file, then: ask, approvers: [{boss}]}}]");
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[(APPROVERS, "not_requester"), ("RULES", &rules)], answers).await;
    leaves(&world, boss, u1).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u1, c, &card, "approve", None).await.told("没有生效").await;
    let said = world.say(u1, c, "OK", reply(&card.id)).await;
    assert!(world.word_back(c, &said).await.words().contains("没有生效"));
    assert_eq!(world.file("a.md"), None);
    world.tap(boss, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "好了").await;
    world.end().await;
    let world = World::start_on(on, &[(APPROVERS, "not_requester")], reporter).await;
    leaves(&world, boss, u1).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let plan = world.card_titled(c, "计划确认").await;
    world.tap(u1, c, &plan, "approve", None).await.told("没有生效").await;
    world.end().await;
}

/// interface (H): of A, who is away, and B two are needed. A's deputy and B make two. A's deputy and A count once, and A's own vote takes the place of
/// the deputy's.
async fn a_deputy_and_the_person_count_once(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (a, b, deputy) = (on.user("a"), on.user("b"), on.user("c"));
    let list = format!("[{a}, {b}]");
    let world = World::start_on(on, &[(APPROVERS, &list), (QUORUM, "2")], reporter).await;
    leaves(&world, a, deputy).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    for _ in 0..2 {
        world.tap(deputy, c, &card, "approve", None).await.done("1/2");
    }
    let votes = world.review_of(&card).await["votes"].clone();
    assert_eq!((&votes[0]["by"], &votes[0]["in_place_of"]), (&json!(deputy), &json!(a)));
    world.tap(a, c, &card, "approve", None).await.done("1/2");
    let votes = world.review_of(&card).await["votes"].clone();
    assert_eq!(
        (votes.as_array().unwrap().len(), &votes[0]["by"], &votes[0]["in_place_of"]),
        (1, &json!(a), &Value::Null)
    );
    world.tap(deputy, c, &card, "approve", None).await.done("1/2");
    assert_eq!(world.review_of(&card).await["votes"].as_array().unwrap().len(), 1);
    world.tap(b, c, &card, "approve", None).await.done("已确认");
    world.hears(c, "全部完成").await;
    assert_eq!(world.review_of(&card).await["decision"]["approvers"], json!([a, b]));
    // The next plan: the deputy and B.
    world.say(u1, c, "整理笔记", GROUP).await;
    let next = world.card_after(c, &card).await;
    world.tap(deputy, c, &next, "approve", None).await.done("1/2");
    world.tap(b, c, &next, "approve", None).await.done("已确认");
    let settled = world.repainted(&next, "（代 ").await;
    assert!(
        settled.words().contains(&format!("{}（代 {}）", on.at(deputy), on.at(a))),
        "{}",
        settled.words()
    );
    world.end().await;
}

/// Everybody gives one vote. A deputy of two people gives it for the one who has not voted.
async fn a_deputy_of_two_votes_for_the_one_who_has_not(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (a, b, deputy) = (on.user("a"), on.user("b"), on.user("c"));
    let list = format!("[{a}, {b}]");
    let answers = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[(APPROVERS, &list), ("CHAT__APPROVAL_QUORUM", "2")], answers).await;
    leaves(&world, a, deputy).await;
    leaves(&world, b, deputy).await;
    world.say(u1, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    for _ in 0..2 {
        world.tap(deputy, c, &card, "approve", None).await.done("1/2");
    }
    let given_for = actions(&world, "pending").await[0]["votes"][0]["in_place_of"].clone();
    let (first, other) = if given_for == a { (a, b) } else { (b, a) };
    world.tap(first, c, &card, "approve", None).await.done("1/2");
    world.tap(deputy, c, &card, "approve", None).await.done("已");
    world.hears(c, "好了").await;
    let done = actions(&world, "executed").await;
    assert_eq!(done[0]["decision"]["in_place_of"], other, "{}", done[0]);
    world.end().await;
}

/// interface (H): a member of a group is away: their deputy decides, as far as the group can be looked up.
async fn a_deputy_of_a_member_of_a_group(on: On) {
    let (c, u1, member, deputy) = (on.chat("c1"), on.user("u1"), on.user("member"), on.user("deputy"));
    let group = match on {
        On::Lark => "od-0a1b2c3d",
        On::Slack => "S0614TZR7",
    };
    let world = World::start_on(on, &[(APPROVERS, &format!("[{group}]"))], reporter).await;
    leaves(&world, member, deputy).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    world.tap(deputy, c, &card, "approve", None).await.told("没有计入").await;
    world.chat.set_group(group, &[member]);
    world.tap(deputy, c, &card, "approve", None).await.done("已代");
    world.hears(c, "全部完成").await;
    let decision = world.review_of(&card).await["decision"].clone();
    assert_eq!((&decision["by"], &decision["in_place_of"]), (&json!(deputy), &json!(member)));
    // The card named nobody: the event comes with the decision.
    assert_eq!(delegated(&world, &card).await, [(json!(member), json!(deputy))]);
    world.end().await;
}

/// interface (H): the press of a deputy counts at once; a card that waits already names them when it is painted next.
async fn an_absence_that_begins_while_the_card_waits(on: On) {
    let (c, u1) = (on.chat("c1"), on.user("u1"));
    let (a, b, deputy) = (on.user("a"), on.user("b"), on.user("c"));
    let list = format!("[{a}, {b}]");
    let world = World::start_on(on, &[(APPROVERS, &list), (QUORUM, "2")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    // In a thread of the chat, with the bot mentioned.
    let said = world.say(a, c, &format!("/away {{@{deputy}}} 3天"), reply(&card.id)).await;
    assert!(world.word_back(c, &said).await.words().contains("代你确认"));
    world.tap(b, c, &card, "approve", None).await.done("1/2");
    let shown = world.repainted(&card, "暂时不在").await;
    assert!(shown.words().contains(&on.at(deputy)), "{}", shown.words());
    world.tap(deputy, c, &card, "approve", None).await.done("已代");
    world.hears(c, "全部完成").await;
    assert_eq!(delegated(&world, &card).await, [(json!(a), json!(deputy))]);
    world.end().await;
}

/// interface §9: each wrong `/away` says what to mend, and changes nothing.
async fn what_away_refuses(on: On) {
    let (u1, u2, u3, stranger) = (on.user("u1"), on.user("u2"), on.user("u3"), on.user("u9"));
    let users = format!("[{u1}, {u2}, {u3}]");
    let world = World::frozen_on(on, &[(USERS, &users)], reporter).await;
    let direct = on.direct(u1);
    let group = match on {
        On::Lark => "od-1",
        On::Slack => "S0614TZR7",
    };
    let table = [
        (format!("/away @{u2} for 3d"), "请 @ 一位同事"),
        (format!("/away {{@{u2}}} {{@{u3}}} for 3d"), "请只 @ 一位"),
        (format!("/away {{@{u1}}} for 3d"), "另一位同事"),
        (format!("/away {{@{group}}} for 3d"), "不能是群组"),
        (format!("/away {{@{stranger}}} for 3d"), "管理员的设置"),
        (format!("/away {{@{u2}}}"), "请写明到什么时候"),
        (format!("/away {{@{u2}}} until tomorrow"), "请写明到什么时候"),
        (format!("/away {{@{u2}}} until 2020-01-01"), "已经过去"),
        (format!("/away {{@{u2}}} for 9999d"), "最长 366 天"),
    ];
    for (words, answer) in table {
        // The same thing is not told twice within five seconds.
        world.clock.advance(Duration::from_secs(5));
        let said = world.say(u1, direct, &words, DIRECT).await;
        let told = world.word_back(direct, &said).await;
        assert!(
            told.words().contains(answer) && told.words().contains("没有设置"),
            "{words}: {}",
            told.words()
        );
    }
    let said = world.say(u1, direct, "/away", DIRECT).await;
    assert!(world.word_back(direct, &said).await.words().contains("现在没有人代你"));
    // Nobody speaks for others, and a stranger is nobody here.
    world
        .say(stranger, on.direct(stranger), &format!("/away {{@{u2}}} for 3d"), DIRECT)
        .await;
    world.say(u1, on.chat("c1"), &format!("/away {{@{u2}}} for 3d"), ASIDE).await;
    world.caught_up().await;
    assert_eq!(stored(&world, "SELECT body FROM absences").await, Vec::<String>::new());
    world.end().await;
}

/// The command and its answers in English; a second `/away` takes the place of the first; `/away` alone tells how it stands.
async fn away_in_english_and_how_it_stands(on: On) {
    let (c, u1, u2, u3) = (on.chat("c1"), on.user("u1"), on.user("u2"), on.user("u3"));
    let world = World::start_on(on, &[("CHAT__LOCALE", "en-US")], reporter).await;
    let end = jiff::Timestamp::from_millisecond(world.clock.now().0 + 30 * 86_400_000)
        .unwrap()
        .strftime("%Y-%m-%d")
        .to_string();
    let says = async |words: String| {
        let said = world
            .say(
                u1,
                c,
                &words,
                To {
                    thread: Some("omt_1"),
                    ..GROUP
                },
            )
            .await;
        world.word_back(c, &said).await.words()
    };
    says(format!("/away {{@{u2}}} until {end}")).await;
    let told = says(format!("/away {{@{u3}}} until {end}")).await;
    assert!(
        told.contains(&format!("Until {end} 23:59 UTC, ")) && told.contains(u3) && !told.contains(u2),
        "{told}"
    );
    let told = says(String::from("/away")).await;
    assert!(told.contains(u3) && !told.contains("Noted"), "{told}");
    assert_eq!(stored(&world, "SELECT body FROM absences").await.len(), 1);
    let help = says(String::from("/help")).await;
    assert!(help.contains("/away") && help.contains("/back"), "{help}");
    let told = says(String::from("/back")).await;
    assert!(told.contains("Welcome back"), "{told}");
    world.end().await;
}

/// F-H: a deputy and the person press at once: one decision, and the other hears who was first.
async fn a_deputy_and_the_person_press_at_once(on: On) {
    let (c, u1, u2) = (on.chat("c1"), on.user("u1"), on.user("u2"));
    let world = World::start_on(on, &[], reporter).await;
    leaves(&world, u1, u2).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    join(world.tap(u1, c, &card, "approve", None), world.tap(u2, c, &card, "approve", None)).await;
    world.hears(c, "全部完成").await;
    let decisions = stored(&world, "SELECT body FROM decisions").await;
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    let decision = world.review_of(&card).await["decision"].clone();
    let by_deputy = decision["by"] == u2;
    assert_eq!(decision["in_place_of"] == u1, by_deputy, "{decision}");
    world.end().await;
}

/// On the console, which has no mentions, `/away` takes the name; people are who they say they are, in one form.
#[tokio::test]
async fn away_on_the_console() {
    let world = World::start(&[], reporter).await;
    let says = async |user: &str, text: &str| {
        let request = json!({"chat_id": "demo", "user_id": user, "text": text});
        assert_eq!(world.api.post("/api/v1/messages", &request).await.0, 202, "{text}");
    };
    let reads = async |words: &'static str| {
        let look = || async {
            let said = world.api.get("/api/v1/messages?chat=demo").await;
            let mut said = said["items"].as_array().unwrap().iter().map(|one| one["text"].to_string());
            said.find(|text| text.contains(words))
        };
        eventually(words, look).await
    };
    says("anna", "/away @Bob").await;
    reads("请写明到什么时候").await;
    says("Anna", "/away @Bob 3天").await;
    reads("由 bob 代你确认").await;
    says("anna", "整理笔记").await;
    let review = world.api.review_in("demo").await;
    reads("可由 bob 代为决定").await;
    assert_eq!(world.api.decide(&review, "approve", "carl").await.0, 403);
    let (status, decided) = world.api.decide(&review, "approve", "bob").await;
    assert_eq!((status, &decided["decision"]["in_place_of"]), (200, &json!("anna")), "{decided}");
    world.end().await;
}
