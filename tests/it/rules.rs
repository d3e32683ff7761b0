//! The administrator's rules on a running gateway: they deny, ask and allow, whatever plans, people and settings say.

mod replayed;

use serde_json::{Value, json};

use crate::handshake::actions::{WRITE, actions, tool_words};
use crate::support::api::eventually;
use crate::support::fake_model::{call, say};
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::quiet::stored;
use crate::support::scripts::{clarified, finished, in_order, planned, reads, writes};
use crate::support::world::{GROUP, World};

on_either! {
    deny_beats_an_approved_plan,
    deny_beats_an_approval_that_was_given_before_it,
    ask_beats_a_setting_that_asks_nobody,
    allow_spares_asking_where_everything_asks,
    a_destructive_call_is_allowed_by_its_full_name_alone,
    a_rule_says_whom_its_calls_ask,
    a_rule_holds_in_its_chats,
    a_card_asks_those_whom_a_rule_names,
    two_rules_that_ask_different_people_leave_nobody,
    a_rule_that_needs_more_people_than_another_names_leaves_nobody,
    what_was_rejected_is_told_below_the_answer,
}

/// The words to the model about a denied call.
const FORBIDDEN: &str = "a rule of the administrator forbids this call";

/// What the trail says of decisions by rules.
async fn ruled(world: &World) -> Vec<Value> {
    let details = stored(world, "SELECT details FROM audit WHERE kind = 'action_decision' ORDER BY seq").await;
    let details = details.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
    details.filter(|details| details["via"] == "rule").collect()
}

/// interface §9 H: a denied call does not run under an approved plan, reads included; nobody is asked, the model hears why, the trail has it.
async fn deny_beats_an_approved_plan(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let rules = "[{tool: write_file, where: {path: 'secret/**'}, then: deny}, {tool: write_file, then: allow}, {tool: read_file, where: {path: notes.md}, then: deny}]";
    let script = in_order(vec![
        planned("写", WRITE),
        clarified(),
        writes(&["./secret/a.md"]),
        reads(),
        finished(),
        say("写不了"),
    ]);
    let world = World::start_on(on, &[("RULES", rules)], script).await;
    world.say(u, c, "写", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    world.hears(c, "写不了").await;
    assert_eq!((world.file("secret/a.md"), world.titled(c, "操作确认")), (None, 0));
    let words = tool_words(&world).await;
    let told = words.iter().filter(|word| word.contains(FORBIDDEN)).count();
    assert_eq!(told, 2, "{words:?}");
    let denied = actions(&world, "rejected").await;
    assert_eq!(denied.len(), 2);
    for row in &denied {
        assert_eq!(
            (&row["decision"]["via"], &row["decision"]["kind"], &row["covered_by"]),
            (&json!("rule"), &json!("reject"), &Value::Null)
        );
    }
    let trail = ruled(&world).await;
    assert!(
        trail.len() == 2
            && trail
                .iter()
                .all(|entry| entry["status"] == "rejected" && entry["rule"].as_str().unwrap().len() == 8),
        "{trail:?}"
    );
    world.end().await;
}

/// interface §9 H: a rule that is saved while people are asked beats the approval that they give afterwards; the card says that the call did not run.
async fn deny_beats_an_approval_that_was_given_before_it(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let script = in_order(vec![writes(&["a.md", "b.md"]), say("好了")]);
    let mut world = World::by_file_on(on, &[], &[], "rules: []\n", script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let rule = "rules:\n  - {tool: write_file, where: {path: a.md}, then: deny}\n";
    std::fs::write(world.folder.path().join("config.yaml"), rule).unwrap();
    let process = world.child();
    eventually("the rule in force", || async {
        process
            .log()
            .contains("in force for every turn that starts now: rules")
            .then_some(())
    })
    .await;
    world.say(u, c, "同意", reply(&card.id)).await;
    world.hears(c, "好了").await;
    assert_eq!((world.file("a.md"), world.file("b.md").is_some()), (None, true));
    let denied = actions(&world, "rejected").await;
    assert_eq!((denied.len(), &denied[0]["decision"]["via"]), (1, &json!("rule")));
    assert!(denied[0]["gate_id"].is_string(), "it stays a row of its card");
    assert!(tool_words(&world).await[0].contains(FORBIDDEN));
    assert_eq!(ruled(&world).await.len(), 1);
    world.repainted(&card, "已拒绝").await;
    world.end().await;
}

/// interface §9 H: `ask` beats `approval: never`; it asks for reads too.
async fn ask_beats_a_setting_that_asks_nobody(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let rules = "[{tool: '*_file', then: ask}, {tool: write_file, then: allow}]";
    let script = in_order(vec![writes(&["a.md"]), reads(), say("好了")]);
    let world = World::start_on(on, &[("RULES", rules), ("AGENT__APPROVAL", "never")], script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert_eq!(world.file("a.md"), None);
    world.tap(u, c, &card, "approve", None).await;
    let card = world
        .seen("the card of the read", |seen| {
            let cards: Vec<_> = seen.in_chat(c).filter(|card| card.title() == Some("操作确认")).cloned().collect();
            (cards.len() == 2).then(|| cards[1].clone())
        })
        .await;
    assert!(card.words().contains("notes.md"), "{}", card.words());
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    let executed = actions(&world, "executed").await;
    let effects: Vec<&Value> = executed.iter().map(|row| &row["effect"]).collect();
    assert_eq!(effects, ["read", "write"]);
    assert!(tool_words(&world).await[1].contains("ship the report"));
    world.end().await;
}

/// interface §9 H: `allow` spares asking under `approval: always`; the API and the trail name the rule.
async fn allow_spares_asking_where_everything_asks(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let rules = "[{tool: write_file, where: {path: 'out/*'}, then: allow}]";
    let script = in_order(vec![writes(&["out/a.md"]), writes(&["out/b/c.md"]), say("好了")]);
    let world = World::start_on(on, &[("RULES", rules), ("AGENT__APPROVAL", "always")], script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(
        world.file("out/a.md").is_some() && card.words().contains("out/b/c.md"),
        "{}",
        card.words()
    );
    let ran = actions(&world, "executed").await.remove(0);
    assert_eq!(
        (&ran["decision"]["via"], &ran["covered_by"]["kind"]),
        (&json!("rule"), &json!("rule"))
    );
    let trail = ruled(&world).await;
    assert_eq!((trail.len(), &trail[0]["rule"]), (1, &ran["covered_by"]["id"]));
    assert_eq!(trail[0]["status"], "approved");
    world.tap(u, c, &card, "reject", None).await;
    world.hears(c, "好了").await;
    world.end().await;
}

/// interface §9 H: a pattern never allows a command; its full name does.
async fn a_destructive_call_is_allowed_by_its_full_name_alone(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let command = || call([("run_bash", json!({ "command": "echo done > made.md" }))]);
    for (rules, asks) in [
        ("[{tool: '*', then: allow}]", true),
        ("[{tool: run_bash, where: {command: 'echo done > made.md'}, then: allow}]", false),
    ] {
        let script = in_order(vec![command(), say("好了")]);
        let world = World::start_on(on, &[("RULES", rules), ("TOOLS__RUN_BASH", "true")], script).await;
        world.say(u, c, "写", GROUP).await;
        if asks {
            let card = world.card_titled(c, "操作确认").await;
            assert_eq!(world.file("made.md"), None);
            world.tap(u, c, &card, "reject", None).await;
        }
        world.hears(c, "好了").await;
        assert_eq!(world.file("made.md").is_some(), !asks, "{rules}");
        world.end().await;
    }
}

/// interface §2: `chats` names where a rule holds.
async fn a_rule_holds_in_its_chats(on: On) {
    let (c1, c2, u) = (on.chat("c1"), on.chat("c2"), on.user("u1"));
    let rules = format!("[{{tool: write_file, chats: [{c1}], then: deny}}]");
    let script = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[("RULES", &rules), ("AGENT__APPROVAL", "never")], script).await;
    world.say(u, c1, "写", GROUP).await;
    world.hears(c1, "好了").await;
    assert_eq!(world.file("a.md"), None);
    world.say(u, c2, "写", GROUP).await;
    world.hears(c2, "好了").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}

/// interface §2: `approvers` and `quorum` of a rule hold for the calls that it has asking; beside them a call asks as the channel says.
async fn a_rule_says_whom_its_calls_ask(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (boss, chief) = (on.user("boss"), on.user("chief"));
    let rules = format!("[{{tool: write_file, where: {{path: 'hr/*'}}, then: ask, approvers: [{boss}, {chief}], quorum: 2}}]");
    let script = in_order(vec![writes(&["hr/pay.md", "a.md"]), say("好了")]);
    let world = World::start_on(on, &[("RULES", &rules)], script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let row = |path: &'static str| {
        let world = &world;
        async move {
            let pending = actions(world, "pending").await;
            pending.into_iter().find(|row| row["arguments"]["path"] == path)
        }
    };
    let ruled = row("hr/pay.md").await.unwrap();
    assert_eq!((&ruled["approvers"], &ruled["quorum"]), (&json!([boss, chief]), &json!(2)));
    assert_eq!(row("a.md").await.unwrap()["quorum"], 1);
    let press = json!({ "action": "approve", "action_id": ruled["id"] });
    world.press(u, c, &card, &press, None).await;
    assert_eq!(row("hr/pay.md").await.unwrap()["votes"], json!([]), "the requester is not asked");
    world.press(boss, c, &card, &press, None).await;
    assert_eq!(row("hr/pay.md").await.unwrap()["votes"].as_array().unwrap().len(), 1);
    let other = json!({ "action": "approve", "action_id": row("a.md").await.unwrap()["id"] });
    world.press(u, c, &card, &other, None).await;
    assert_eq!((world.file("hr/pay.md"), world.file("a.md")), (None, None));
    world.press(chief, c, &card, &press, None).await;
    world.hears(c, "好了").await;
    assert!(world.file("hr/pay.md").is_some() && world.file("a.md").is_some());
    world.end().await;
}

/// outside A 1: the head of the card, and the refusal of a word, name the people of the rule.
async fn a_card_asks_those_whom_a_rule_names(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let rules = format!("[{{tool: write_file, then: ask, approvers: [{boss}]}}]");
    let script = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[("RULES", &rules)], script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let words = card.words();
    assert!(words.contains(&format!("{} 请批准", on.at(boss))), "{words}");
    assert!(!words.contains("需要你批准"), "{words}");
    world.say(u, c, "OK", reply(&card.id)).await;
    let refused = world.hears(c, "可以决定这件事").await;
    assert!(
        refused.words().contains(boss) && !refused.words().contains(&format!("只有 {}", on.at(u))),
        "{}",
        refused.words()
    );
    assert_eq!(world.file("a.md"), None);
    world.tap(boss, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}

/// outside A 4: a call that nobody can approve says so, to everybody who tries; rejecting it goes.
async fn two_rules_that_ask_different_people_leave_nobody(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let (boss, vice) = (on.user("boss"), on.user("vice"));
    let rules = format!("[{{tool: write_file, then: ask, approvers: [{boss}]}}, {{tool: '*_file', then: ask, approvers: [{vice}]}}]");
    let script = in_order(vec![writes(&["a.md"]), say("好了")]);
    let world = World::start_on(on, &[("RULES", &rules)], script).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let words = card.words();
    assert!(words.contains("没有人能批准") && !words.contains("只有"), "{words}");
    world.say(boss, c, "OK", reply(&card.id)).await;
    world.hears(c, "没有人能批准这个操作").await;
    world.tap(u, c, &card, "reject", None).await;
    world.hears(c, "好了").await;
    assert_eq!(world.file("a.md"), None);
    world.end().await;
}

/// outside A 4: one rule names one person, and another one needs two. The card and whoever presses are told the same: nobody can approve.
async fn a_rule_that_needs_more_people_than_another_names_leaves_nobody(on: On) {
    let (c, u, boss) = (on.chat("c1"), on.user("u1"), on.user("boss"));
    let rules = format!("[{{tool: write_file, then: ask, approvers: [{boss}]}}, {{tool: '*_file', then: ask, quorum: 2}}]");
    let settings = [("RULES", rules.as_str()), ("CHAT__APPROVAL_APPROVERS", "anyone")];
    let world = World::start_on(on, &settings, in_order(vec![writes(&["a.md"]), say("好了")])).await;
    world.say(u, c, "写", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    assert!(card.words().contains("没有人能批准"), "{}", card.words());
    world.tap(u, c, &card, "approve", None).await.told("没有人能批准这个操作").await;
    world.tap(u, c, &card, "reject", None).await;
    world.hears(c, "好了").await;
    assert_eq!(world.file("a.md"), None);
    world.end().await;
}

/// ux A5: whatever the model says, the answer has a line of ours on what was not carried out, and the plan's card counts it.
async fn what_was_rejected_is_told_below_the_answer(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let rules = "[{tool: write_file, where: {path: b.md}, then: deny}]";
    let script = in_order(vec![
        planned("写", &[("写", &["list_files"])]),
        clarified(),
        writes(&["a.md", "b.md"]),
        finished(),
        say("都写好了"),
    ]);
    let world = World::start_on(on, &[("RULES", rules)], script).await;
    world.say(u, c, "写", GROUP).await;
    let plan = world.plan_card(c).await;
    world.tap(u, c, &plan, "approve", None).await;
    let card = world.card_titled(c, "操作确认").await;
    world.tap(u, c, &card, "reject", None).await;
    let answer = world.hears(c, "都写好了").await;
    let words = answer.words();
    assert!(
        words.contains("未执行或结果不明：") && words.contains("`\"a.md\"`（已拒绝）") && words.contains("`\"b.md\"`（被规则禁止）"),
        "{words}"
    );
    world.repainted(&plan, "1 个被拒绝，1 个被规则禁止").await;
    world.end().await;
}

/// outside A 2: a rule about a path holds for every link that leads there.
#[tokio::test]
async fn a_rule_about_a_path_holds_behind_links() {
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let looks = || {
        call([
            read("folder/a.txt"),
            read("report.txt"),
            ("list_files", json!({"path": "folder"})),
            read("fine.txt"),
        ])
    };
    for then in ["deny", "ask"] {
        let rules = format!(
            "[{{tool: '*_file', where: {{path: 'secrets/**'}}, then: {then}}}, {{tool: list_files, where: {{path: secrets}}, then: {then}}}]"
        );
        let world = World::start(&[("RULES", &rules)], in_order(vec![looks(), say("好了")])).await;
        let workspace = world.folder.path().join("workspace");
        std::fs::create_dir(workspace.join("secrets")).unwrap();
        std::fs::write(workspace.join("secrets/a.txt"), "the secret\n").unwrap();
        std::fs::write(workspace.join("real.txt"), "for everybody\n").unwrap();
        for (link, to) in [("folder", "secrets"), ("report.txt", "secrets/a.txt"), ("fine.txt", "real.txt")] {
            std::os::unix::fs::symlink(to, workspace.join(link)).unwrap();
        }
        world.say("ou_u1", "oc_c1", "看看", GROUP).await;
        if then == "ask" {
            let card = world.card_titled("oc_c1", "操作确认").await;
            assert!(card.words().contains("secrets/a.txt"), "where it leads: {}", card.words());
            world.say("ou_u1", "oc_c1", "OK", reply(&card.id)).await;
        }
        world.hears("oc_c1", "好了").await;
        let words = tool_words(&world).await;
        let secret = words.iter().filter(|word| word.contains("the secret")).count();
        let forbidden = words.iter().filter(|word| word.contains(FORBIDDEN)).count();
        assert_eq!((secret, forbidden), if then == "ask" { (2, 0) } else { (0, 3) }, "{words:?}");
        assert!(words.iter().any(|word| word.contains("for everybody")), "{words:?}");
        world.end().await;
    }
}

/// attacks-2 N11: callers of the API choose the names of chats of the console. A rule of a platform's chat holds in none of them.
#[tokio::test]
async fn a_console_chat_that_is_named_like_another_has_none_of_its_rules() {
    let rules = "[{tool: write_file, chats: [oc_ops, C0OPS, 'console:mine'], then: allow}]";
    let world = World::start(&[("RULES", rules)], in_order(vec![writes(&["a.md"]), say("好了")])).await;
    for chat in ["oc_ops", "C0OPS", "console:mine"] {
        let request = json!({"chat_id": chat, "user_id": "mallory", "text": "写"});
        assert_eq!(world.api.post("/api/v1/messages", &request).await.0, 202);
        world.api.turn_in(chat, "paused").await;
        assert_eq!(world.file("a.md"), None, "{chat}");
    }
    let request = json!({"chat_id": "mine", "user_id": "mallory", "text": "写"});
    assert_eq!(world.api.post("/api/v1/messages", &request).await.0, 202);
    world.api.turn_in("mine", "completed").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}
