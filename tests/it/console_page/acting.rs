//! What is done with tasks on the page: stopped, tried again, found; and what those see who may not decide.

use std::time::Duration;

use serde_json::{Value, json};

use super::parts::shows;
use super::{OURS, WORDS, form, press, say, toast};
use crate::support::api::eventually;
use crate::support::fake_model::{Gate, Script, Step, call, say as words};
use crate::support::quiet::quiet;
use crate::support::raw::get;
use crate::support::scripts::{gated, in_order, reporter};
use crate::support::world::World;

const NO_PLANS: (&str, &str) = ("CHANNELS__CONSOLE__PLAN_REVIEW_ENABLED", "false");

/// interface (M): a task that ended because the model's server was away is tried again with its button: under the answer, in the list of tasks and in its
/// record. It works once, for those who may, and what waits in a lane is told by its words and its place.
#[tokio::test]
async fn a_task_that_an_outage_ended_is_tried_again() {
    let world = World::frozen(&[("MODEL__RETRY_MINUTES", "0"), NO_PLANS], |_| words("整理好了")).await;
    let away = json!({"error": {"message": "overloaded"}});
    world.model.goes_away(0, Step::Status(503, Vec::new(), away));
    say(&world, "demo", "lin", "整理笔记").await;
    for _ in 0..40 {
        quiet(&world).await;
        world.clock.advance(Duration::from_secs(1));
    }
    let turn = world.api.turn_in("demo", "failed").await;
    let page = shows(&world, "再试一次</button>").await;
    let name = format!("name=\"turn\" value=\"{}\"", turn["id"].as_str().unwrap());
    assert_eq!(
        (page.matches(&name).count(), page.matches("value=\"try_again\"").count()),
        (2, 2),
        "under the answer and in the list: {page}"
    );
    assert!(page.contains("24 小时内可以点下面的按钮接着做"), "{page}");
    let record = format!("/console/turn/{}", turn["id"].as_str().unwrap());
    assert!(
        get(&world, &record).await.text.contains("value=\"try_again\""),
        "the record has the button"
    );
    world.model.comes_back();
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, words("慢慢做完了"))));
    say(&world, "demo", "lin", "慢任务").await;
    gate.reached().await;
    let foreign = press(&world, "zhao", ("turn", &turn), "try_again", "").await;
    assert_eq!((foreign.status, toast(&foreign).contains("只有 林晓")), (403, true), "{foreign:?}");
    let done = press(&world, "lin", ("turn", &turn), "try_again", "").await;
    assert_eq!((done.status, toast(&done).contains("接着做这个任务")), (200, true), "{done:?}");
    let twice = press(&world, "lin", ("turn", &turn), "try_again", "").await;
    assert_eq!((twice.status, toast(&twice).contains("已经有人点过")), (409, true), "{twice:?}");
    let page = shows(&world, "排队中，第 1 位").await;
    let (_, queued) = page.split_once("排队中，第 1 位").unwrap();
    assert!(queued.split("</article>").next().unwrap().contains("整理笔记"), "{queued}");
    let queue = world.api.get("/api/v1/queue").await;
    assert_eq!(
        (&queue["items"][0]["text"], &queue["items"][0]["event_id"]),
        (&json!("整理笔记"), &turn["id"])
    );
    gate.open();
    shows(&world, "整理好了").await;
    world.end().await;
}

/// interface (M): a running task is stopped on the page by those who may stop it, and says itself that it was.
#[tokio::test]
async fn a_running_task_is_stopped() {
    let world = World::start(&[], reporter).await;
    let gate = Gate::new();
    world.model.script("慢任务", Script::new().then(gated(&gate, words("做完了"))));
    say(&world, "demo", "lin", "慢任务").await;
    gate.reached().await;
    let turn = world.api.turn_in("demo", "running").await;
    let page = shows(&world, "value=\"stop\">停止</button>").await;
    assert_eq!(
        page.matches("value=\"stop\"").count(),
        2,
        "at the end of the chat and in the list: {page}"
    );
    let foreign = press(&world, "zhao", ("turn", &turn), "stop", "").await;
    assert_eq!((foreign.status, toast(&foreign).contains("只有 林晓")), (403, true), "{foreign:?}");
    let wrong = press(&world, "lin", ("turn", &turn), "approve", "").await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    assert_eq!(press(&world, "lin", ("turn", &turn), "stop", "").await.status, 200);
    world.api.turn_in("demo", "cancelled").await;
    let page = shows(&world, "已停止：慢任务").await;
    assert!(!page.contains("value=\"stop\""), "{page}");
    let none = press(&world, "lin", ("turn", &json!({"id": "turn_none"})), "stop", "").await;
    assert_eq!(none.status, 404, "{none:?}");
    world.end().await;
}

/// interface (M): who may decide nothing at a card sees whom it waits for, and no buttons: in the chat, in the list and in the record.
#[tokio::test]
async fn bystanders_see_no_buttons() {
    let world = World::start(&[], reporter).await;
    say(&world, "demo", "lin", "整理笔记").await;
    let turn = world.api.review_in("demo").await["turn_id"].as_str().unwrap().to_owned();
    shows(&world, "计划确认").await;
    for (who, may) in [("lin", true), ("zhao", false)] {
        for path in [format!("/console/?chat=demo&as={who}"), format!("/console/turn/{turn}?as={who}")] {
            let page = get(&world, &path).await.text;
            for (part, of_deciders) in [
                ("value=\"approve\"", true),
                ("请回复 <strong>OK</strong> 继续", true),
                ("等待 林晓 处理", false),
            ] {
                assert_eq!(page.contains(part), may == of_deciders, "{path}: {part} in {page}");
            }
        }
    }
    world.end().await;
}

/// interface (M): each argument of a call has a field of its own; a text stays a text, line by line, and another value what it is.
#[tokio::test]
async fn arguments_are_edited_one_by_one() {
    let write = call([("write_file", json!({"path": "a.md", "content": "一\n", "append": false}))]);
    let world = World::start(&[NO_PLANS], in_order(vec![write, words("写好了")])).await;
    say(&world, "demo", "lin", "写文件").await;
    let row = eventually("a call that waits", || async {
        let list = world.api.get("/api/v1/actions").await;
        list["items"].as_array().unwrap().first().cloned()
    })
    .await;
    let page = shows(&world, "name=\"argument:content\"").await;
    assert!(page.contains("name=\"argument:append\"") && page.contains("<b>path</b>"), "{page}");
    let fields = |append: &'static str| {
        [
            ("chat", "demo"),
            ("as", "lin"),
            ("call", row["id"].as_str().unwrap()),
            ("decision", "approve"),
            ("argument%3Apath", "b.md"),
            ("argument%3Acontent", "人的话\r\n{\"x\": 1}\r\n"),
            ("argument%3Aappend", append),
        ]
    };
    let wrong = form(&world, "/console/decide", &fields("maybe"), &[OURS, WORDS]).await;
    assert_eq!((wrong.status, wrong.text.contains("append")), (422, true), "{wrong:?}");
    assert_eq!(form(&world, "/console/decide", &fields("true"), &[OURS, WORDS]).await.status, 200);
    world.api.turn_in("demo", "completed").await;
    assert_eq!(world.file("b.md").as_deref(), Some("人的话\n{\"x\": 1}\n"));
    let row = world.api.get(&format!("/api/v1/actions/{}", row["id"].as_str().unwrap())).await;
    assert_eq!(
        (&row["arguments"]["append"], row["edited"]["by"].as_str()),
        (&json!(true), Some("lin"))
    );
    world.end().await;
}

/// interface (M): all tasks are on a page of their own, by state, chat and person, thirty at a time.
#[tokio::test]
async fn all_tasks_are_listed() {
    let world = World::start(&[NO_PLANS], |_| words("好了")).await;
    for number in 0..31 {
        let message = json!({ "chat_id": format!("c{number}"), "user_id": "lin", "text": format!("任务{number}。") });
        assert_eq!(world.api.post("/api/v1/messages", &message).await.0, 202);
    }
    say(&world, "c31", "zhao", "任务31。").await;
    eventually("all are done", || async {
        let done: Value = world.api.get("/api/v1/turns?status=completed&limit=200").await;
        (done["items"].as_array().unwrap().len() == 32).then_some(())
    })
    .await;
    let listed = async |query: &str| get(&world, &format!("/console/tasks?{query}")).await.text;
    let count = |page: &str| page.matches("<article").count();
    let first = listed("status=&chat=&user=").await;
    assert_eq!(count(&first), 30, "{first}");
    let (_, older) = first.split_once("<a href=\"&#x2f;console&#x2f;tasks?&amp;cursor=").unwrap();
    let cursor = older.split('"').next().unwrap();
    let second = listed(&format!("cursor={}", cursor.replace("&#x2f;", "/"))).await;
    assert_eq!((count(&second), second.contains("cursor=")), (2, false), "{second}");
    let of_zhao = listed("status=completed&user=zhao").await;
    assert!(count(&of_zhao) == 1 && of_zhao.contains("任务31。"), "{of_zhao}");
    assert_eq!(count(&listed("chat=c7").await), 1);
    assert!(listed("status=failed").await.contains("没有符合条件的任务"));
    assert_eq!(get(&world, "/console/tasks?state=failed").await.status, 400);
    world.end().await;
}
