//! Calls that ask: whole on the page, decided in the chat or in the record of their task.

use serde_json::{Value, json};

use super::parts::shows;
use super::{OURS, form, say};
use crate::support::api::eventually;
use crate::support::fake_model::{call, say as words};
use crate::support::raw::get;
use crate::support::scripts::{in_order, planned_simply, writes};
use crate::support::world::World;

/// Calls ask without a plan before them.
const NO_PLANS: (&str, &str) = ("CHANNELS__CONSOLE__PLAN_REVIEW_ENABLED", "false");

async fn waiting_call(world: &World) -> Value {
    eventually("a call that waits", || async {
        let list = world.api.get("/api/v1/actions").await;
        list["items"].as_array().unwrap().first().cloned()
    })
    .await
}

/// interface (M): the record of a task that waits has its card with the buttons, for whoever is played; a press leads back to the record.
#[tokio::test]
async fn a_task_is_decided_in_its_record() {
    let script = in_order(vec![planned_simply("写文件", &[]), writes(&["a.md"]), words("写好了a.md。完毕")]);
    let world = World::start(&[NO_PLANS], script).await;
    say(&world, "c1", "zhao", "写文件").await;
    let row = waiting_call(&world).await;
    let turn = world.api.turn_in("c1", "paused").await["id"].as_str().unwrap().to_owned();
    let path = format!("/console/turn/{turn}?as=zhao");
    let record = get(&world, &path).await.text;
    assert!(
        record.contains("value=\"approve\">批准</button>") && record.contains("name=\"chat\" value=\"c1\"") && record.contains("赵磊"),
        "{record}"
    );
    assert_eq!(
        record.matches("class=\"call\"").count(),
        1,
        "a call that waits is shown once: {record}"
    );
    let fields = |who: &'static str| {
        [
            ("chat", "c1"),
            ("as", who),
            ("record", turn.as_str()),
            ("call", row["id"].as_str().unwrap()),
            ("decision", "approve"),
        ]
    };
    assert_eq!(form(&world, "/console/decide", &fields("lin"), &[OURS]).await.status, 403);
    let pressed = form(&world, "/console/decide", &fields("zhao"), &[OURS]).await;
    assert_eq!((pressed.status, pressed.header("location")), (303, path.as_str()), "{pressed:?}");
    world.api.turn_in("c1", "completed").await;
    let record = get(&world, &path).await.text;
    assert!(!record.contains("name=\"decision\"") && record.contains("a.md"), "{record}");
    // The timeline has our words, in the reader's language.
    let (timeline, _) = record.split_once("模型看到的消息").unwrap_or((&record, ""));
    for part in [
        "调用：write_file",
        "提出操作：write_file",
        "操作：已批准",
        "结果：write_file",
        "助手：写好了a.md。",
    ] {
        assert!(timeline.contains(part), "{part}: {timeline}");
    }
    assert!(!timeline.contains("[Act]") && !timeline.contains("[Obs]"), "{timeline}");
    world.end().await;
}

/// design: a call is approved or rejected. Changes to it, which no button of the page asks for, neither reject nor approve it.
#[tokio::test]
async fn a_call_takes_no_changes() {
    let script = in_order(vec![writes(&["a.md"]), words("写好了")]);
    let world = World::start(&[NO_PLANS], script).await;
    say(&world, "c1", "zhao", "写文件").await;
    let row = waiting_call(&world).await;
    let fields = |decision: &'static str| {
        [
            ("chat", "c1"),
            ("as", "zhao"),
            ("call", row["id"].as_str().unwrap()),
            ("decision", decision),
            ("feedback", "写到 b.md"),
        ]
    };
    let refused = form(&world, "/console/decide", &fields("revise"), &[OURS]).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    assert_eq!(waiting_call(&world).await["status"], row["status"]);
    assert_eq!(form(&world, "/console/decide", &fields("approve"), &[OURS]).await.status, 303);
    world.api.turn_in("c1", "completed").await;
    assert!(world.file("a.md").is_some());
    world.end().await;
}

/// interface (M): the console shows a change whole, line by line, twenty lines of it before the rest is folded; its prompt says that an OK does not
/// count, and how to decide instead. The API has it whole, too.
#[tokio::test]
async fn a_big_change_is_shown_whole() {
    let old: Vec<String> = (0..60)
        .map(|number| format!("old {number}: <done>, {}\n", "o".repeat(60)))
        .collect();
    let new: Vec<String> = (0..160).map(|number| format!("new {number}: <b>, {}\n", "n".repeat(60))).collect();
    let write = call([("write_file", json!({ "path": "tasks.csv", "content": new.concat() }))]);
    let world = World::start(&[NO_PLANS], in_order(vec![write, words("写好了")])).await;
    world.put("tasks.csv", &old.concat());
    say(&world, "demo", "lin", "改写 tasks.csv").await;
    let row = waiting_call(&world).await;
    let page = shows(&world, "操作确认").await;
    let (chat, _) = page.split_once("id=\"part-waiting\"").unwrap();
    let turn = row["turn_id"].as_str().unwrap();
    let record = get(&world, &format!("/console/turn/{turn}")).await.text;
    for (place, text) in [("chat", chat), ("record", &record)] {
        for (kind, line) in [
            ("gone", "-old 59: &lt;done&gt;, o"),
            ("new", "+new 0: &lt;b&gt;, n"),
            ("new", "+new 159: &lt;b&gt;, n"),
        ] {
            let line = format!("<span class=\"{kind}\">{line}");
            assert!(text.contains(&line), "{place}: {line} is missing in {text}");
        }
        assert!(!text.contains("[cut:") && text.contains("显示全部 223 行"), "{place}: {text}");
        assert!(text.contains("请点按钮决定。参数较长，回复 OK 不算批准"), "{place}: {text}");
        let (before, _) = text.split_once("<details class=\"rest\">").unwrap();
        let shown = before.matches("<span class=\"gone\">").count();
        assert_eq!(shown, 17, "{place}: of twenty lines three are the head of the change");
    }
    let preview = row["preview"].as_str().unwrap();
    assert!(preview.contains("\n+new 159: <b>") && !preview.contains("[cut:"), "{preview}");
    let notice = json!({ "chat_id": "demo", "user_id": "lin", "text": "OK" });
    assert_eq!(world.api.post("/api/v1/messages", &notice).await.0, 202);
    shows(&world, "请管理员在控制台看完全文后批准").await;
    world.end().await;
}
