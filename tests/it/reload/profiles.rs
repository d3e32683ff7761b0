//! Profiles of chats on the running binary: what differs there, from the first task after an edit on.

use serde_json::Value;

use super::{logged, save, writer};
use crate::support::api::eventually;
use crate::support::fake_model::offered;
use crate::support::people::reply;
use crate::support::platform::{On, on_either};
use crate::support::world::{GROUP, World};

on_either! {
    two_chats_of_different_profiles,
    a_review_that_waits_keeps_the_profile_it_began_under,
}

/// The requests of the task that holds these words.
fn requests(world: &World, words: &str) -> Vec<Value> {
    let of_task = |seen: &Value| seen["messages"].to_string().contains(words);
    let all = world.model.seen().into_iter().map(|seen| seen.body);
    all.filter(of_task).collect()
}

/// interface (H): two chats have different instructions, tools, models and approvers, and a third one has no profile: it is as it was. The
/// edit that brings the profiles needs no restart.
async fn two_chats_of_different_profiles(on: On) {
    let (u1, boss) = (on.user("u1"), on.user("boss"));
    let (ops, quiet, plain) = (on.chat("ops"), on.chat("quiet"), on.chat("plain"));
    let mut world = World::by_file_on(on, &[], &[], "# nothing yet\n", writer()).await;
    let yaml = format!(
        "\
agent:
  system_prompt: 全公司的守则。
models:
  small: {{provider: openai, base_url: '{}', name: tiny}}
profiles:
  - name: ops
    chats: [{ops}]
    system_prompt: 你在值班群里。
    model: small
    plan_review_approvers: [{boss}]
    locale: en-US
  - name: quiet
    chats: [{quiet}]
    tools: ['read_*']
    plan_review_enabled: false
",
        world.model.base_url()
    );
    save(&world, &yaml);
    logged(
        &mut world,
        "in force for every turn that starts now: agent.system_prompt, models, profiles",
    )
    .await;

    world.say(u1, ops, "值班报告", GROUP).await;
    let card = world.plan_card(ops).await;
    assert!(
        card.words().contains("Plan confirmation"),
        "the profile's language: {}",
        card.words()
    );
    world.tap(u1, ops, &card, "approve", None).await;
    world.caught_up().await;
    assert_eq!(
        world.review_of(&card).await["status"],
        "pending",
        "the requester is no approver there"
    );
    assert_eq!(world.review_of(&card).await["approvers"], serde_json::json!([boss]));
    world.tap(boss, ops, &card, "approve", None).await;
    world.hears(ops, "全部完成").await;
    for request in requests(&world, "值班报告") {
        let prompt = request["messages"][0]["content"].as_str().unwrap();
        assert!(prompt.contains("全公司的守则。\n\n你在值班群里。"), "{prompt}");
        assert_eq!(request["model"], "tiny");
        assert!(offered(&request).contains("write_file"));
    }

    std::fs::remove_file(world.folder.path().join("workspace/report.md")).unwrap();
    world.say(u1, quiet, "安静报告", GROUP).await;
    world.hears(quiet, "全部完成").await;
    assert_eq!(
        (world.file("report.md"), world.titled(quiet, "操作确认")),
        (None, 0),
        "the tool is not there"
    );
    let seen = requests(&world, "安静报告");
    let told = seen.last().unwrap()["messages"].to_string();
    let has = "there is no tool write_file; there are: plan, clarify, request_user, plan_progress, write_todos, read_file";
    assert!(told.contains(has), "the model hears which tools it has");
    for request in seen {
        let names = offered(&request);
        assert!(
            names.contains("read_file") && names.contains("plan") && !names.contains("write_file"),
            "{names:?}"
        );
        assert!(!request["messages"][0]["content"].as_str().unwrap().contains("值班群"));
        assert_eq!(request["model"], "fake");
    }

    world.say(u1, plain, "普通报告", GROUP).await;
    let card = world.plan_card(plain).await;
    world.tap(u1, plain, &card, "approve", None).await;
    world.hears(plain, "全部完成").await;
    world.end().await;
}

/// interface (H): a review that waits keeps the policy and the profile it began under; who may approve is read at the decision, the words and the
/// model of the profile at every call.
async fn a_review_that_waits_keeps_the_profile_it_began_under(on: On) {
    let (u1, boss, c) = (on.user("u1"), on.user("boss"), on.chat("a"));
    let profile = |prompt: &str, more: &str| format!("profiles:\n  - {{name: p, chats: [{c}], system_prompt: {prompt}, {more}}}\n");
    let first = profile("第一版", "tools: ['*_file'], plan_review_approvers: anyone, plan_review_quorum: 2");
    let mut world = World::by_file_on(on, &[], &[], &first, writer()).await;
    world.say(u1, c, "整理笔记", GROUP).await;
    let card = world.plan_card(c).await;
    save(&world, &profile("第二版", &format!("tools: [], plan_review_approvers: [{boss}]")));
    logged(&mut world, "in force for every turn that starts now: profiles").await;
    world.tap(u1, c, &card, "approve", None).await;
    world.tap(boss, c, &card, "approve", None).await;
    world.caught_up().await;
    let review = world.review_of(&card).await;
    assert_eq!(
        (&review["status"], &review["quorum"]),
        (&"pending".into(), &2.into()),
        "the quorum is the one of the beginning"
    );
    save(&world, &profile("第三版", "tools: [], plan_review_approvers: anyone"));
    let process = world.child();
    eventually("both edits in the log", || async {
        let words = "in force for every turn that starts now: profiles";
        (process.log().matches(words).count() == 2).then_some(())
    })
    .await;
    world.say(u1, c, "OK", reply(&card.id)).await;
    world.hears(c, "全部完成").await;
    assert!(world.file("report.md").is_some(), "the tools are those of the beginning");
    let prompts: Vec<String> = requests(&world, "整理笔记")
        .iter()
        .map(|request| request["messages"][0]["content"].to_string())
        .collect();
    assert!(prompts[0].contains("第一版") && prompts[1].contains("第三版"), "{prompts:?}");
    world.end().await;
}
