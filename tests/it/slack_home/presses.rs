//! What a press on the Home tab decides, and for whom.

use countersign_playground::Snapshot;
use serde_json::{Value, json};

use super::{APPROVERS, ON, UNKNOWN, drawn_after, notice, opened, opening, press, pressing};
use crate::support::fake_model::{call, say};
use crate::support::people::rows;
use crate::support::scripts::{in_order, reporter, writes};
use crate::support::world::{GROUP, World};

/// More looks at once than the platform's rate lets through.
const MANY: usize = 70;

/// reach §3: an OK on the tab approves as one on the card does, and repaints that card. Nobody gets a note: the tab says it. A second press hears that it
/// was decided.
#[tokio::test]
async fn an_ok_on_the_tab_approves_the_plan() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let review = world.review_of(&card).await;
    let home = opened(&world, boss).await;
    let ok = home.button("approve").unwrap();
    let after = press(&world, boss, &home, &ok).await;
    assert_eq!((notice(&after).as_str(), after.button("approve")), ("已确认，开始执行。", None));
    world.repainted(&card, "已确认").await;
    world.hears(c, "全部完成").await;
    let decision = world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await["decision"].clone();
    assert_eq!((&decision["by"], &decision["via"]), (&json!(boss), &json!("button")));
    assert!(notice(&press(&world, boss, &home, &ok).await).contains("已经处理过了：已确认"));
    assert!(world.chat.snapshot().notes.is_empty());
    world.end().await;
}

/// reach §3: whoever presses hears what came of it, though more people look at their tabs at this moment than the platform's rate allows.
#[tokio::test]
async fn a_press_is_answered_while_many_look() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    let home = opened(&world, boss).await;
    let before = world.chat.snapshot().count("home");
    world.chat.hold("home");
    for number in 0..MANY {
        world.push(&opening(&world, &format!("U0LOOKS{number}"))).await;
    }
    world
        .seen("tabs on their way", |seen| (seen.count("home") > before).then_some(()))
        .await;
    world.push(&pressing(&world, boss, &home, &home.button("approve").unwrap())).await;
    world.chat.release("home");
    let told = |seen: &Snapshot| seen.home(boss).filter(|home| notice(home) == "已确认，开始执行。").map(|_| ());
    world.seen("the notice", told).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// reach §3: what the platform delivers again is the same press: one vote, and the same word.
#[tokio::test]
async fn a_repeated_delivery_is_the_same_press() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{u1}, {boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    world.plan_card(c).await;
    let home = opened(&world, boss).await;
    let event = pressing(&world, boss, &home, &home.button("approve").unwrap());
    for _ in 0..3 {
        assert_eq!(notice(&drawn_after(&world, boss, &event).await), "已确认，开始执行。");
    }
    world.hears(c, "全部完成").await;
    world.caught_up().await;
    assert_eq!((world.continuations(), world.count(c, "全部完成")), (1, 1));
    world.end().await;
}

/// reach §3: a press decides only what the tab would list for that person. From anybody else, and from another workspace, it is a press on something unknown.
#[tokio::test]
async fn a_press_decides_only_what_is_listed_for_that_person() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, "anyone")], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let home = opened(&world, u1).await;
    for verb in ["approve", "cancel"] {
        let value = home.button(verb).unwrap();
        // On the card anybody may press; on the tab the plan was shown to its requester only.
        assert!(notice(&press(&world, boss, &home, &value).await).contains(UNKNOWN), "{verb}");
        let mut foreign = pressing(&world, u1, &home, &value);
        foreign.body["view"]["team_id"] = json!("T0OTHER");
        assert!(notice(&drawn_after(&world, u1, &foreign).await).contains(UNKNOWN), "{verb}");
        let mut visitor = pressing(&world, u1, &home, &value);
        visitor.body["user"]["team_id"] = json!("T0OTHER");
        assert!(notice(&drawn_after(&world, u1, &visitor).await).contains(UNKNOWN), "{verb}");
    }
    let mut nothing = home.button("approve").unwrap();
    nothing["review_id"] = json!("rv_nothing");
    assert!(notice(&press(&world, u1, &home, &nothing).await).contains(UNKNOWN));
    assert_eq!(world.review_of(&card).await["status"], "pending");
    press(&world, u1, &home, &home.button("approve").unwrap()).await;
    world.hears(c, "全部完成").await;
    world.end().await;
}

/// reach §3: calls are decided on the tab one by one, and "always" there allows such calls in the chat of the card.
#[tokio::test]
async fn calls_are_decided_on_the_tab() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let files = ["a.md", "b.md", "c.md"];
    let standing = [("AGENT__STANDING_GRANTS", "true")];
    let world = World::start_on(ON, &standing, in_order(vec![writes(&files), say("都写好了")])).await;
    world.say(u1, c, "写三个文件", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    let home = opened(&world, u1).await;
    assert_eq!(rows(&home), rows(&card));
    let of = |verb: &str| -> Vec<Value> { home.buttons().into_iter().filter(|value| value["action"] == verb).collect() };
    let after = press(&world, u1, &home, &of("approve")[0]).await;
    assert_eq!(rows(&after), rows(&card)[1..], "two calls wait");
    press(&world, u1, &after, &of("reject")[1]).await;
    press(&world, u1, &after, &of("approve_always")[2]).await;
    world.hears(c, "都写好了").await;
    assert_eq!(files.map(|name| world.file(name).is_some()), [true, false, true]);
    let grants = world.api.get("/api/v1/grants").await["items"].clone();
    assert_eq!((grants.as_array().unwrap().len(), &grants[0]["chat_id"]), (1, &json!(c)));
    world.end().await;
}

/// reach §3: a call that is asked about again keeps its id. A press on a tab that shows its first preview does not approve the second.
#[tokio::test]
async fn a_press_on_an_old_preview_approves_no_new_one() {
    let (c, u1) = (ON.chat("c1"), ON.user("u1"));
    let write = call([("write_file", json!({ "path": "notes.md", "content": "eins\nzwei\n" }))]);
    let world = World::start_on(ON, &[], in_order(vec![write, say("好了")])).await;
    let file = world.folder.path().join("workspace/notes.md");
    std::fs::write(&file, "eins\n").unwrap();
    world.say(u1, c, "写", GROUP).await;
    let first = world.card_titled(c, "操作确认").await;
    let old = opened(&world, u1).await;
    std::fs::write(&file, "eins\nvon Alice\n").unwrap();
    world.tap(u1, c, &first, "approve", None).await;
    world.hears(c, "-von Alice").await;
    let approve = rows(&old)[0].clone();
    assert!(notice(&press(&world, u1, &old, &approve).await).contains("已被新的取代"));
    let mut marked = approve.clone();
    marked["action_id"] = json!(format!("{}-0a1b2c3d", approve["action_id"].as_str().unwrap()));
    assert!(
        notice(&press(&world, u1, &old, &marked).await).contains("已被新的取代"),
        "the mark of another gate"
    );
    assert_eq!(world.file("notes.md").as_deref(), Some("eins\nvon Alice\n"));
    let new = opened(&world, u1).await;
    press(&world, u1, &new, &rows(&new)[0]).await;
    world.hears(c, "好了").await;
    assert_eq!(world.file("notes.md").as_deref(), Some("eins\nzwei\n"));
    world.end().await;
}
