//! What the page shows and how it stays true: chat, cards, what waits, tasks, states, and the live request.

use std::time::Duration;

use serde_json::{Value, json};

use super::{OURS, WORDS, form, press, say, toast};
use crate::support::api::eventually;
use crate::support::fake_model::{call, say as words};
use crate::support::raw::get;
use crate::support::scripts::{clarified, finished, planned, writes};
use crate::support::scripts::{in_order, planned_simply, reporter};
use crate::support::world::{DIRECT, World};

pub(super) async fn shows(world: &World, words: &str) -> String {
    eventually(&format!("{words:?} on the page"), || async {
        let page = get(world, "/console/?chat=demo&as=lin").await.text;
        page.contains(words).then_some(page)
    })
    .await
}

/// interface 3: the page works without a script: say, be refused, send changes, approve, read the answer; all by plain forms.
#[tokio::test]
async fn plain_forms_are_enough() {
    let world = World::start(&[], reporter).await;
    let empty = get(&world, "/console/").await.text;
    assert!(
        empty.contains("class=\"empty\"") && empty.contains("class=\"try\""),
        "the first page says what to type"
    );
    say(&world, "demo", "lin", "整理笔记").await;
    let review = world.api.review_in("demo").await;
    let page = shows(&world, "计划确认").await;
    for part in [
        "确认后会直接执行：写入 <code>&quot;report.md&quot;</code>（1 次）",
        "请回复 <strong>OK</strong> 继续",
        "name=\"decision\" value=\"revise\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let id = review["id"].as_str().unwrap();
    let fields = [("chat", "demo"), ("as", "zhao"), ("review", id), ("decision", "approve")];
    let refused = form(&world, "/console/decide", &fields, &[OURS]).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text.contains("只有 林晓 可以决定这件事") && refused.text.contains("id=\"toast\" class=\"toast bad on\""));

    let none = press(&world, "lin", ("review", &review), "revise", " ").await;
    assert_eq!(
        (none.status, toast(&none).as_str()),
        (422, "还没有写修改意见。请填写后再提交，或直接回复。")
    );
    let changed = press(&world, "lin", ("review", &review), "revise", "写到 v2").await;
    assert_eq!((changed.status, toast(&changed).as_str()), (200, "修改意见已收到，正在调整计划。"));
    let again = press(&world, "lin", ("review", &review), "approve", "").await;
    assert_eq!(again.status, 409);
    // As on the platforms: the words are worked on, or the new card is there already.
    let told = toast(&again);
    assert!(told.contains("正在处理") || told.contains("已被新的取代"), "{again:?}");

    let review = world.api.review_in("demo").await;
    let fields = [
        ("chat", "demo"),
        ("as", "lin"),
        ("review", review["id"].as_str().unwrap()),
        ("decision", "approve"),
    ];
    let done = form(&world, "/console/decide", &fields, &[OURS]).await;
    assert_eq!((done.status, done.header("location")), (303, "/console/?chat=demo&as=lin"));
    let turn = world.api.turn_in("demo", "completed").await;
    assert!(world.file("report-v2.md").is_some());
    let page = shows(&world, "全部完成").await;
    assert!(page.contains("没有待处理的事项") && page.contains("class=\"completed\""), "{page}");
    let record = get(&world, &format!("/console/turn/{}", turn["id"].as_str().unwrap())).await;
    assert_eq!(record.status, 200);
    for part in ["整理笔记", "write_file", "plan_feedback", "ship the report", "全部完成"] {
        assert!(record.text.contains(part), "{part}");
    }
    let missing = press(&world, "lin", ("review", &json!({ "id": "rv_none" })), "approve", "").await;
    assert_eq!(missing.status, 404);
    world.end().await;
}

/// interface 9: the card of an expired review has its button on the page, too; it works once.
#[tokio::test]
async fn an_expired_plan_is_asked_for_again() {
    let world = World::frozen(&[], reporter).await;
    say(&world, "demo", "lin", "整理笔记").await;
    let review = world.api.review_in("demo").await;
    world.clock.advance(Duration::from_secs(61 * 60));
    let page = shows(&world, "再问一次</button>").await;
    assert!(
        page.contains("name=\"decision\" value=\"ask_again\"") && page.contains("已过期"),
        "{page}"
    );
    let refused = press(&world, "zhao", ("review", &review), "ask_again", "").await;
    assert_eq!((refused.status, toast(&refused).contains("只有 林晓")), (403, true));
    let asked = world.model.seen_of("整理笔记").len();
    let done = press(&world, "lin", ("review", &review), "ask_again", "").await;
    assert_eq!(
        (done.status, toast(&done).as_str()),
        (200, "已再次发起，随后会发出同一份计划的新卡片。")
    );
    let new = world.api.review_in("demo").await;
    assert_eq!((&new["digest"], &new["user_id"]), (&review["digest"], &review["user_id"]));
    let twice = press(&world, "lin", ("review", &review), "ask_again", "").await;
    assert_eq!(
        (twice.status, toast(&twice).contains("林晓 已经再次发起过")),
        (409, true),
        "{twice:?}"
    );
    let open = press(&world, "lin", ("review", &new), "ask_again", "").await;
    assert_eq!(open.status, 404, "a review that waits has no such button");
    assert_eq!(world.model.seen_of("整理笔记").len(), asked);
    let page = shows(&world, "林晓 已再次发起这份计划").await;
    assert!(!page.contains("value=\"ask_again\""), "{page}");
    world.end().await;
}

/// S4-2, S4-12: calls are decided row by row, destructive or not, with what each would change in sight; the record shows
/// arguments and output in full.
#[tokio::test]
async fn calls_are_decided_row_by_row() {
    let script = vec![
        planned("写文件", &[("写", &[])]),
        clarified(),
        writes(&["a.md", "b.md"]),
        finished(),
        words("写好了"),
    ];
    let world = World::start(&[], in_order(script)).await;
    say(&world, "demo", "lin", "写文件").await;
    let review = world.api.review_in("demo").await;
    assert_eq!(press(&world, "lin", ("review", &review), "approve", "").await.status, 200);
    let rows = eventually("two calls that wait", || async {
        let list = world.api.get("/api/v1/actions").await;
        let items = list["items"].as_array().unwrap().clone();
        (items.len() == 2 && world.api.turns().await[0]["status"] == "paused").then_some(items)
    })
    .await;
    let page = shows(&world, "操作确认").await;
    assert_eq!(
        page.matches("name=\"call\"").count(),
        12,
        "two rows, each with its buttons and two forms for its arguments, in the chat and in the list of what waits"
    );
    assert!(
        page.contains("改动预览") && page.contains("<span class=\"at\">@@ -0,0 +1 @@</span>\n<span class=\"new\">+内容 a.md</span>"),
        "{page}"
    );
    let named = |name: &str| rows.iter().find(|row| row["arguments"]["path"] == name).unwrap().clone();
    let foreign = press(&world, "zhao", ("call", &named("a.md")), "approve", "").await;
    assert_eq!(foreign.status, 403, "{foreign:?}");
    let yes = press(&world, "lin", ("call", &named("a.md")), "approve", "").await;
    let no = press(&world, "lin", ("call", &named("b.md")), "reject", "").await;
    assert_eq!((yes.status, no.status), (200, 200), "{yes:?} {no:?}");
    let turn = world.api.turn_in("demo", "completed").await;
    assert!(world.file("a.md").is_some() && world.file("b.md").is_none());
    let page = shows(&world, "写好了").await;
    assert!(page.contains("批准 1 个，拒绝 1 个"), "{page}");
    let record = get(&world, &format!("/console/turn/{}", turn["id"].as_str().unwrap())).await.text;
    assert!(record.contains("内容 b.md") && record.contains("已拒绝"), "{record}");
    world.end().await;
}

/// interface (H): the arguments of a call are edited on the page: what cannot be is told beside the form, with what was typed; then the call runs with
/// what was typed, and its record says so.
#[tokio::test]
async fn arguments_are_edited_on_the_page() {
    let script = in_order(vec![planned_simply("写文件", &[]), writes(&["a.md"]), words("写好了")]);
    let world = World::start(&[("CHANNELS__CONSOLE__PLAN_REVIEW_ENABLED", "false")], script).await;
    say(&world, "demo", "lin", "写文件").await;
    let row = eventually("a call that waits", || async {
        let list = world.api.get("/api/v1/actions").await;
        list["items"].as_array().unwrap().first().cloned()
    })
    .await;
    let page = shows(&world, "操作确认").await;
    assert!(
        page.contains("修改参数") && page.contains("按这些参数批准") && page.contains("name=\"arguments\""),
        "{page}"
    );
    let fields = |text: &'static str| {
        [
            ("chat", "demo"),
            ("as", "lin"),
            ("call", row["id"].as_str().unwrap()),
            ("decision", "approve"),
            ("arguments", text),
        ]
    };
    let wrong = r#"{"path": "b.md", "text": "<人的话>"}"#;
    let told = form(&world, "/console/decide", &fields(wrong), &[OURS]).await;
    assert_eq!(told.status, 422);
    assert!(
        told.text.contains("arguments: `content` is required; unknown parameter `text`"),
        "{}",
        told.text
    );
    assert!(
        told.text.contains("&lt;人的话&gt;") && told.text.contains("<details class=\"edit\" open>"),
        "what was typed is still there"
    );
    let told = form(&world, "/console/decide", &fields("{path"), &[OURS, WORDS]).await;
    assert_eq!(told.status, 422);
    assert!(told.text.contains("not valid JSON"), "{}", told.text);
    assert_eq!(world.api.turns().await[0]["status"], "paused");
    let mut foreign = fields(r#"{"path": "b.md", "content": "人的话"}"#);
    foreign[1] = ("as", "zhao");
    assert_eq!(form(&world, "/console/decide", &foreign, &[OURS, WORDS]).await.status, 403);
    let right = fields(r#"{"path": "b.md", "content": "人的话"}"#);
    assert_eq!(form(&world, "/console/decide", &right, &[OURS, WORDS]).await.status, 200);
    let turn = world.api.turn_in("demo", "completed").await;
    assert_eq!((world.file("b.md").as_deref(), world.file("a.md")), (Some("人的话"), None));
    let record = get(&world, &format!("/console/turn/{}", turn["id"].as_str().unwrap())).await.text;
    assert!(record.contains("批准时修改了参数") && record.contains("b.md"), "{record}");
    assert!(
        record.contains("林晓 修改了 write_file 的参数，原来是：{") && record.contains("a.md"),
        "{record}"
    );
    world.end().await;
}

/// S4-2: a destructive call is asked for twice, in the list of what waits too; what hides or reorders words is seen.
#[tokio::test]
async fn nothing_destructive_goes_by_one_press() {
    let write = call([("write_file", json!({ "path": "a.md", "content": "rm \u{202e}txt.a" }))]);
    let script = vec![
        planned("删除", &[("删 \u{202e}a", &[])]),
        clarified(),
        write,
        finished(),
        words("没有执行"),
    ];
    let world = World::start(&[("TOOLS__EFFECTS", "{write_file: destructive}")], in_order(script)).await;
    say(&world, "demo", "lin", "删除").await;
    let review = world.api.review_in("demo").await;
    let page = shows(&world, "删 \u{fffd}a").await;
    let (_, list) = page.split_once("id=\"part-waiting\"").unwrap();
    assert!(list.contains("value=\"approve\">OK，继续"), "a plan takes one press: {list}");
    assert_eq!(press(&world, "lin", ("review", &review), "approve", "").await.status, 200);
    let page = shows(&world, "操作确认").await;
    let (_, list) = page.split_once("id=\"part-waiting\"").unwrap();
    assert!(
        list.contains("<summary class=\"button danger\"><span>全部批准</span>") && !list.contains("value=\"approve\">批准</button><button"),
        "{list}"
    );
    let (_, question) = list.split_once("<span>全部批准</span>").unwrap();
    let (question, _) = question.split_once("</details>").unwrap();
    assert!(
        question.contains("执行这个高风险操作？") && question.contains("value=\"approve\">全部批准</button>"),
        "the button that counts stands behind the question: {question}"
    );
    assert!(page.contains("rm \u{fffd}txt.a") && !page.contains('\u{202e}'), "{page}");
    let turn = world.api.turn_in("demo", "paused").await;
    assert_eq!(press(&world, "lin", ("review", &turn["gate"]), "cancel", "").await.status, 200);
    world.api.turn_in("demo", "completed").await;
    assert!(world.file("a.md").is_none());
    world.end().await;
}

/// interface 3: a message whose answer got lost on the way is sent again by the page, and said once.
#[tokio::test]
async fn a_message_sent_twice_is_said_once() {
    let world = World::start(&[], reporter).await;
    let fields = [("chat", "demo"), ("as", "lin"), ("text", "/help"), ("key", "k1.5")];
    for _ in 0..2 {
        assert_eq!(form(&world, "/console/say", &fields, &[OURS, WORDS]).await.status, 200);
    }
    let page = shows(&world, "放下当前任务").await;
    assert_eq!(page.matches("help</p>").count(), 1, "{page}");
    let items = world.api.get("/api/v1/messages?chat=demo").await;
    assert_eq!(items["items"].as_array().unwrap().len(), 2, "{items}");
    world.end().await;
}

/// interface 3: of what waits the newest are on the page, and it says that there are more.
#[tokio::test]
async fn what_is_not_listed_is_told() {
    let world = World::start(&[("CHANNELS__LARK__ENABLED", "false")], reporter).await;
    for at in 0..21 {
        assert!(!get(&world, "/console/").await.text.contains("id=\"w-more\""), "{at}");
        let chat = format!("c{at}");
        say(&world, &chat, "lin", "整理笔记").await;
        world.api.review_in(&chat).await;
    }
    let page = get(&world, "/console/").await.text;
    assert!(
        page.matches("class=\"gate wait\"").count() == 20 && page.contains("id=\"w-more\""),
        "{page}"
    );
    world.end().await;
}

/// design: a question is answered with words, by the form on its card.
#[tokio::test]
async fn a_question_is_answered_on_the_page() {
    let ask = call([("request_user", json!({ "message": "哪一个 <b>文件夹</b>？", "title": "文件夹" }))]);
    let world = World::start(&[], in_order(vec![ask, words("好的，就用 docs。")])).await;
    say(&world, "demo", "lin", "整理").await;
    let page = shows(&world, "需要你的回答").await;
    assert!(page.contains("哪一个 &lt;b&gt;文件夹&lt;/b&gt;？"), "{page}");
    let turn = world.api.turn_in("demo", "paused").await;
    let answered = press(&world, "lin", ("review", &turn["gate"]), "revise", "docs").await;
    assert_eq!((answered.status, toast(&answered).as_str()), (200, "收到你的回答，继续处理。"));
    shows(&world, "就用 docs").await;
    world.api.turn_in("demo", "completed").await;
    world.end().await;
}

/// interface 3: what waits in other channels stands on the page and is decided there, in the name of the console.
#[tokio::test]
async fn other_channels_are_decided_too() {
    let world = World::start(&[], reporter).await;
    world.say("ou_a", "oc_a", "整理笔记", DIRECT).await;
    world.plan_card("oc_a").await;
    let page = shows(&world, "oc_a").await;
    assert!(page.contains("飞书") && page.contains("ou_a"), "{page}");
    let review = world.api.review_in("oc_a").await;
    assert_eq!(press(&world, "chen", ("review", &review), "approve", "").await.status, 200);
    world.hears("oc_a", "全部完成").await;
    let review = world.api.get(&format!("/api/v1/reviews/{}", review["id"].as_str().unwrap())).await;
    assert_eq!(
        (&review["decision"]["by"], &review["decision"]["via"]),
        (&json!("console"), &json!("api"))
    );
    world.end().await;
}

/// design: the live request answers at once what the reader does not have, then waits; every reader hears of every change.
#[tokio::test]
async fn news_reach_every_reader() {
    // Without a platform, whose state would be news of its own.
    let world = World::start(&[("CHANNELS__LARK__ENABLED", "false")], reporter).await;
    let first = world.api.get("/console/live?chat=demo&as=lin").await;
    let parts: Vec<&String> = first["parts"].as_object().unwrap().keys().collect();
    assert_eq!(parts, ["chat", "part-status", "part-turns", "part-waiting"]);
    let have = first["have"].as_str().unwrap().to_owned();
    let ask = |who: &'static str| {
        let (api, path) = (world.api.clone(), format!("/console/live?chat=demo&as={who}&have={have}"));
        tokio::spawn(async move { api.get(&path).await })
    };
    let readers: Vec<_> = (0..3).map(|_| ask("lin")).collect();
    say(&world, "demo", "zhao", "整理笔记").await;
    for reader in readers {
        let news = reader.await.unwrap();
        assert!(
            news["parts"]["chat"].as_str().is_some_and(|chat| chat.contains("整理笔记")),
            "{news}"
        );
        assert_ne!(news["have"], have.as_str());
    }
    world.api.review_in("demo").await;
    world.end().await;
}

/// design: both languages say everything: no key instead of a text, and in English no Chinese but the seal.
#[tokio::test]
async fn both_languages_are_complete() {
    for (locale, title) in [("zh-CN", "计划确认"), ("en-US", "Plan confirmation")] {
        let english = locale == "en-US";
        let answers = vec![planned("Tidy", &[("Write", &["write_file"])]), words("Done")];
        let settings = [("CHANNELS__CONSOLE__LOCALE", locale), ("CHANNELS__LARK__ENABLED", "false")];
        let world = World::start(&settings, in_order(answers)).await;
        let empty = get(&world, "/console/").await.text;
        let database = if english { "<dt>Database</dt>" } else { "<dt>数据库</dt>" };
        assert!(empty.contains(database) && !empty.contains("<dt>ledger"), "{empty}");
        say(&world, "demo", "lin", "Tidy up").await;
        let review = world.api.review_in("demo").await;
        let full = shows(&world, title).await;
        assert_eq!(press(&world, "lin", ("review", &review), "cancel", "").await.status, 200);
        let turn = world.api.turn_in("demo", "cancelled").await;
        let record = get(&world, &format!("/console/turn/{}", turn["id"].as_str().unwrap())).await.text;
        for page in [empty, full, record] {
            assert!(page.contains(&format!("<html lang=\"{locale}\">")), "{page}");
            let keys = ["console.", "notice.", "state.", "plan.", "foot."];
            let texts = page.replace("channels.console", "");
            assert!(!keys.iter().any(|key| texts.contains(&format!(">{key}"))), "{page}");
            let han = page.chars().filter(|c| ('\u{4e00}'..'\u{9fff}').contains(c) && *c != '签').count();
            assert_eq!(han == 0, english, "{locale}: {page}");
        }
        world.end().await;
    }
}

/// design: foreign text is data: in names, messages, plans, arguments and answers, whatever it tries.
#[tokio::test]
async fn foreign_text_is_escaped() {
    let evil = "\"><script>x()</script><img src=x onerror=x()>{{ 7*7 }}";
    let write = call([("write_file", json!({ "path": format!("{evil}.md"), "content": evil }))]);
    let plan = planned(evil, &[(evil, &["write_file", evil])]);
    let answer = words(&format!("{evil}\n\n[x](javascript:x()) ![y](javascript:x()) <javascript:x()>"));
    let world = World::start(&[], in_order(vec![plan, clarified(), write, finished(), answer])).await;
    let fields = [("chat", evil), ("as", evil), ("text", evil)];
    assert_eq!(form(&world, "/console/say", &fields, &[OURS, WORDS]).await.status, 200);
    let page = |path: &'static str| {
        let world = &world;
        async move {
            let query: String = evil.bytes().map(|byte| format!("%{byte:02x}")).collect();
            get(world, &path.replace("EVIL", &query)).await.text
        }
    };
    let clean = |page: &str| {
        assert!(page.contains("&lt;script&gt;"), "{page}");
        for bad in ["<script>x", "<img", "href=\"java", "\"><script"] {
            assert!(!page.contains(bad), "{bad} in {page}");
        }
        assert!(page.contains("{{ 7*7 }}"), "no template of ours: {page}");
    };
    let review = eventually("the review", || async {
        let list = world.api.get("/api/v1/reviews").await["items"].as_array().unwrap().clone();
        list.first().filter(|review| !review["message_id"].is_null()).cloned()
    })
    .await;
    clean(&page("/console/?chat=EVIL&as=EVIL").await);
    let id = review["id"].as_str().unwrap();
    let approve = [("chat", evil), ("as", evil), ("review", id), ("decision", "approve")];
    assert_eq!(form(&world, "/console/decide", &approve, &[OURS, WORDS]).await.status, 200);
    eventually("the end", || async {
        (world.api.turns().await[0]["status"] == "completed").then_some(())
    })
    .await;
    clean(&page("/console/?chat=EVIL&as=EVIL").await);
    let turn: Value = world.api.turns().await[0].clone();
    clean(&get(&world, &format!("/console/turn/{}", turn["id"].as_str().unwrap())).await.text);
    world.end().await;
}

/// design: who may approve is said on the page, and listed approvers can be played.
#[tokio::test]
async fn the_rule_is_told() {
    let rule = [
        ("CHANNELS__CONSOLE__PLAN_REVIEW_APPROVERS", "[zhao, boss]"),
        ("CHANNELS__CONSOLE__PLAN_REVIEW_QUORUM", "2"),
    ];
    let world = World::start(&rule, reporter).await;
    let page = get(&world, "/console/").await.text;
    assert!(
        page.contains("计划由这些人确认：赵磊, boss。 需要 2 个不同的人。") && page.contains("as=boss"),
        "{page}"
    );
    say(&world, "demo", "lin", "整理笔记").await;
    let review = world.api.review_in("demo").await;
    assert_eq!(press(&world, "lin", ("review", &review), "approve", "").await.status, 403);
    let vote = press(&world, "zhao", ("review", &review), "approve", "").await;
    assert_eq!((vote.status, toast(&vote).as_str()), (200, "已记录你的确认（1/2）。"));
    shows(&world, "需要 2 人确认，已有 1 人").await;
    assert_eq!(press(&world, "boss", ("review", &review), "approve", "").await.status, 200);
    world.api.turn_in("demo", "completed").await;
    world.end().await;
}
