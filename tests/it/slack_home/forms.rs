//! Changes to a plan, asked for on the Home tab.

use countersign_playground::{Fault, Form, Posted};
use serde_json::Value;

use super::{APPROVERS, ON, UNKNOWN, drawn_after, notice, opened, press, pressing, times_shown};
use crate::support::scripts::reporter;
use crate::support::world::{GROUP, World};

/// `user` presses the button for changes on their tab; gives the form that opens.
async fn form(world: &World, user: &str, home: &Posted) -> Form {
    let event = pressing(world, user, home, &home.button("revise").unwrap());
    world.push(&event).await;
    let trigger = event.body["trigger_id"].as_str().unwrap().to_owned();
    world
        .seen("the form", |seen| {
            seen.forms.iter().find(|form| form.trigger_id == trigger).cloned()
        })
        .await
}

/// reach §3: the form that opens on the tab changes the plan. The tab shows the new plan then, and a press on the tab as it was approves nothing.
#[tokio::test]
async fn a_form_changes_the_plan_and_an_old_tab_approves_nothing() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let old = opened(&world, boss).await;
    let form = form(&world, boss, &old).await;
    let sent = world.tenant.submit(boss, &form, "写到 report-v2.md").unwrap();
    assert_eq!(notice(&drawn_after(&world, boss, &sent).await), "修改意见已收到，正在调整计划。");
    world.repainted(&card, "已提出修改").await;
    let second = world.card_after(c, &card).await;
    let told = press(&world, boss, &old, &old.button("approve").unwrap()).await;
    assert!(notice(&told).contains("已被新的取代"), "{}", notice(&told));
    assert_eq!(world.review_of(&second).await["status"], "pending");
    assert!(told.words().contains("report-v2.md") && told.button("approve") == second.button("approve"));
    press(&world, boss, &told, &told.button("approve").unwrap()).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report-v2.md").is_some() && world.file("report.md").is_none());
    world.end().await;
}

/// reach §3: a form counts only for those who find its plan on their tab; one without words stays open with its fault; one that does not open is told on the tab.
#[tokio::test]
async fn a_form_counts_for_those_who_are_meant() {
    let (c, u1, boss) = (ON.chat("c1"), ON.user("u1"), ON.user("boss"));
    let world = World::start_on(ON, &[(APPROVERS, &format!("[{boss}]"))], reporter).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    let home = opened(&world, boss).await;
    let form = form(&world, boss, &home).await;
    let errors = |answer: &Value| answer["errors"]["feedback"].as_str().unwrap_or_default().to_owned();
    let stranger = world.tenant.submit(ON.user("u9"), &form, "全部删除").unwrap();
    assert!(errors(&world.push(&stranger).await).contains(UNKNOWN));
    let empty = world.tenant.submit(boss, &form, " ").unwrap();
    let before = times_shown(&world, boss);
    assert!(errors(&world.push(&empty).await).contains("还没有写修改意见"));
    world
        .seen("the tab", |seen| {
            seen.home(boss).filter(|home| home.versions.len() > before).map(|_| ())
        })
        .await;
    assert_eq!(world.review_of(&card).await["status"], "pending");
    world.chat.fault("form", Fault::Error("internal_error"));
    let told = press(&world, boss, &home, &home.button("revise").unwrap()).await;
    assert!(notice(&told).contains("表单没有打开"), "{}", notice(&told));
    world.end().await;
}
