//! `send_file`: a file of the workspace goes into the task's chat, as it was approved, and once.

use countersign_playground::{Fault, Posted, SharedFile};
use serde_json::{Value, json};

use crate::handshake::actions::{actions, tool_words};
use crate::support::api::eventually;
use crate::support::fake_model::{call, say};
use crate::support::platform::{On, on_both, on_either};
use crate::support::scripts::{clarified, finished, in_order, planned};
use crate::support::world::{GROUP, World};

on_both! {
    an_image_arrives,
    a_post_whose_answer_was_lost_is_one_file,
    what_the_platform_refuses_once_is_uploaded_anew,
    a_file_that_the_platform_refuses_is_told,
    a_missing_permission_is_told_at_once,
    a_file_that_waits_is_withdrawn_at_a_stop,
    a_declared_file_is_sent_after_the_ok,
    a_name_with_odd_characters_arrives_whole,
}

on_either! {
    a_file_that_no_plan_declares_asks_with_its_preview,
    a_file_that_changed_after_the_question_asks_again,
    what_cannot_be_sent_is_told,
    the_console_has_no_such_tool,
}

/// Nobody is asked: these tests are about what follows.
const UNASKED: &[(&str, &str)] = &[("AGENT__APPROVAL", "never")];

fn sends(path: &str) -> Value {
    call([("send_file", json!({ "path": path }))])
}

fn put(world: &World, name: &str, bytes: &[u8]) {
    std::fs::write(world.folder.path().join("workspace").join(name), bytes).unwrap();
}

fn files(world: &World) -> Vec<SharedFile> {
    world.chat.snapshot().files.clone()
}

/// The only file of the chat; it stands where the task was asked for.
fn only_file(world: &World) -> SharedFile {
    let seen = world.chat.snapshot();
    assert_eq!(seen.files.len(), 1, "{:?}", seen.files);
    let file = seen.files[0].clone();
    assert_eq!(file.chat, world.on.chat("c1"));
    let message = seen.messages.iter().find(|message| message.id == file.message).unwrap();
    assert!(message.reply_to.is_some(), "{message:?}");
    file
}

/// Asks for the task, and waits for its answer.
async fn carried_out(world: &World) {
    world.say(world.on.user("u1"), world.on.chat("c1"), "发送", GROUP).await;
    world.hears(world.on.chat("c1"), "好了").await;
}

/// interface §5: an OK covers a declared `send_file` by its path. The file comes with its caption, which calls nobody, and the timeline tells of
/// it.
async fn a_declared_file_is_sent_after_the_ok(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let caption = "这是汇总 <!here> <at user_id=\"all\"></at>";
    let script = vec![
        planned("汇总", &[("发送", &["send_file report.csv"])]),
        clarified(),
        call([("send_file", json!({ "path": "./report.csv", "caption": caption }))]),
        finished(),
        say("好了"),
    ];
    let world = World::start_on(on, &[], in_order(script)).await;
    put(&world, "report.csv", b"x,y\n1,2\n");
    world.say(u, c, "发送", GROUP).await;
    let card = world.plan_card(c).await;
    assert!(
        card.words().contains("确认后会直接执行：发送 `\"report.csv\"`（1 次）"),
        "{}",
        card.words()
    );
    assert_eq!(files(&world), []);
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    let file = only_file(&world);
    assert_eq!((file.name.as_str(), &file.bytes[..]), ("report.csv", &b"x,y\n1,2\n"[..]));
    world.hears(c, "这是汇总").await;
    assert_eq!(world.titled(c, "操作确认"), 0);
    let words = tool_words(&world).await;
    assert!(
        words.iter().any(|words| words.contains("sent `./report.csv` (8 bytes)")),
        "{words:?}"
    );
    let turn = world.api.turn_in(c, "completed").await;
    let path = format!("/api/v1/turns/{}/events?limit=200", turn["id"].as_str().unwrap());
    let events = world.api.get(&path).await["items"].as_array().unwrap().clone();
    let told: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "attachment")
        .map(|event| &event["data"])
        .collect();
    assert_eq!(told, [&json!({ "name": "report.csv", "bytes": 8, "kind": "out" })]);
    world.end().await;
}

/// interface §5: a call that no plan declares asks, and its card shows name, size, kind and the first lines.
async fn a_file_that_no_plan_declares_asks_with_its_preview(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![sends("report.csv"), say("好了")])).await;
    put(&world, "report.csv", b"x,y\n1,2\n");
    world.say(u, c, "发送", GROUP).await;
    let card = world.card_titled(c, "操作确认").await;
    for words in ["report.csv · 8 bytes · text/plain", "x,y"] {
        assert!(card.words().contains(words), "{words} in {}", card.words());
    }
    assert_eq!(files(&world), []);
    world.tap(u, c, &card, "approve", None).await;
    world.hears(c, "好了").await;
    only_file(&world);
    world.end().await;
}

/// interface §5: what was approved is what is sent: a file that changed after the question is not sent, and the same call asks about it anew.
async fn a_file_that_changed_after_the_question_asks_again(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, &[], in_order(vec![sends("report.csv"), say("好了")])).await;
    put(&world, "report.csv", b"harmless\n");
    world.say(u, c, "发送", GROUP).await;
    let first = world.card_titled(c, "操作确认").await;
    put(&world, "report.csv", b"secret\n");
    world.tap(u, c, &first, "approve", None).await;
    let asks = |message: &&Posted| message.title() == Some("操作确认") && message.id != first.id && message.words().contains("secret");
    let second = world
        .seen("the card that asks again", |seen| seen.in_chat(c).rfind(asks).cloned())
        .await;
    assert_eq!(files(&world), []);
    world.tap(u, c, &second, "approve", None).await;
    world.hears(c, "好了").await;
    assert_eq!(only_file(&world).bytes, b"secret\n");
    world.end().await;
}

/// interface §5: nothing outside of the workspace is sent, nor through a link; no empty file, and none that is too long for the platforms. The
/// model is told why.
async fn what_cannot_be_sent_is_told(on: On) {
    let paths = [
        "../secret.txt",
        "/etc/passwd",
        "out",
        "folder/notes.md",
        "empty",
        "big",
        "missing",
        ".",
    ];
    let sends = call(paths.map(|path| ("send_file", json!({ "path": path }))));
    let world = World::start_on(on, UNASKED, in_order(vec![sends, say("好了")])).await;
    let workspace = world.folder.path().join("workspace");
    std::fs::write(world.folder.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(world.folder.path().join("secret.txt"), workspace.join("out")).unwrap();
    std::os::unix::fs::symlink(".", workspace.join("folder")).unwrap();
    put(&world, "empty", b"");
    std::fs::File::create(workspace.join("big"))
        .unwrap()
        .set_len((30 << 20) + 1)
        .unwrap();
    carried_out(&world).await;
    let words = tool_words(&world).await;
    let reasons = [
        "`..` is not allowed",
        "it is absolute",
        "goes through the link `out`",
        "goes through the link `folder`",
        "is empty",
        "is longer than 30 MiB",
        "no such file",
        "names no file",
    ];
    for (words, reason) in words.iter().zip(reasons) {
        assert!(words.contains(reason), "{reason} in {words}");
    }
    assert_eq!((words.len(), files(&world)), (paths.len(), Vec::new()));
    world.end().await;
}

/// interface §5: a name arrives as it is.
async fn a_name_with_odd_characters_arrives_whole(on: On) {
    let name = "报 告\"; filename=x& <!here>.csv";
    let world = World::start_on(on, UNASKED, in_order(vec![sends(name), say("好了")])).await;
    put(&world, name, b"1\n");
    carried_out(&world).await;
    assert_eq!(only_file(&world).name, name);
    world.end().await;
}

/// reach §5: an image is one by its bytes.
async fn an_image_arrives(on: On) {
    let world = World::start_on(on, UNASKED, in_order(vec![sends("chart"), say("好了")])).await;
    put(&world, "chart", b"\x89PNG\r\n\x1a\n\0\0");
    carried_out(&world).await;
    assert_eq!(only_file(&world).bytes, b"\x89PNG\r\n\x1a\n\0\0");
    let images = if on == On::Lark { 1 } else { 0 };
    assert_eq!(world.chat.snapshot().count("image"), images);
    world.end().await;
}

/// The calls that take the bytes of a file, and the one that shows it.
fn endpoints(on: On) -> (&'static str, &'static str) {
    match on {
        On::Lark => ("file", "reply"),
        On::Slack => ("bytes", "complete"),
    }
}

/// interface §9: a post that arrived although its answer was lost is not made twice.
async fn a_post_whose_answer_was_lost_is_one_file(on: On) {
    let world = World::start_on(on, UNASKED, in_order(vec![sends("notes.md"), say("好了")])).await;
    world.chat.fault(endpoints(on).1, Fault::LoseAnswer);
    carried_out(&world).await;
    only_file(&world);
    world.end().await;
}

/// F-C2: bytes that were refused, and an upload that the platform has forgotten, are sent once more.
async fn what_the_platform_refuses_once_is_uploaded_anew(on: On) {
    let world = World::start_on(on, UNASKED, in_order(vec![sends("notes.md"), say("好了")])).await;
    let (bytes, post) = endpoints(on);
    let refusal = |status, code| Fault::Answer {
        status,
        code,
        header: None,
    };
    world.chat.fault(bytes, refusal(503, 1500));
    match on {
        On::Lark => world.chat.fault(post, refusal(400, 230_001)),
        On::Slack => world.chat.fault(post, Fault::Error("file_not_found")),
    }
    carried_out(&world).await;
    only_file(&world);
    assert_eq!(world.chat.snapshot().count(bytes), 3);
    world.end().await;
}

/// F-C2: a file that the platform does not take is not said to be there.
async fn a_file_that_the_platform_refuses_is_told(on: On) {
    let world = World::start_on(on, UNASKED, in_order(vec![sends("notes.md"), say("好了")])).await;
    for _ in 0..2 {
        match on {
            On::Lark => world.chat.fault(
                "file",
                Fault::Answer {
                    status: 400,
                    code: 234_001,
                    header: None,
                },
            ),
            On::Slack => world.chat.fault("address", Fault::Error("file_type_not_allowed")),
        }
    }
    carried_out(&world).await;
    let words = tool_words(&world).await;
    assert!(words[0].contains("`notes.md` was not sent: content refused"), "{words:?}");
    assert_eq!(files(&world), []);
    world.end().await;
}

/// F-C6: while an admin has not given the permission, the agent hears which one is missing, and its answer does not wait.
async fn a_missing_permission_is_told_at_once(on: On) {
    let world = World::start_on(on, UNASKED, in_order(vec![sends("notes.md"), say("好了")])).await;
    match on {
        On::Lark => world.chat.fault(
            "file",
            Fault::Answer {
                status: 400,
                code: 99_991_672,
                header: None,
            },
        ),
        On::Slack => world.chat.fault("address", Fault::Error("missing_scope")),
    }
    carried_out(&world).await;
    let words = tool_words(&world).await;
    let reason = if on == On::Lark { "99991672" } else { "missing_scope" };
    assert!(words[0].contains("was not sent") && words[0].contains(reason), "{words:?}");
    world.end().await;
}

/// interface §9: a file that waits for the platform is taken back when a person stops the task.
async fn a_file_that_waits_is_withdrawn_at_a_stop(on: On) {
    let (c, u) = (on.chat("c1"), on.user("u1"));
    let world = World::start_on(on, UNASKED, in_order(vec![sends("notes.md"), say("好了")])).await;
    let wait = Some((String::from("retry-after"), String::from("60")));
    let first = if on == On::Lark { "file" } else { "address" };
    world.chat.fault(
        first,
        Fault::Answer {
            status: 429,
            code: 99_991_400,
            header: wait,
        },
    );
    world.say(u, c, "发送", GROUP).await;
    world
        .seen("the upload that is put off", |seen| (seen.count(first) == 1).then_some(()))
        .await;
    world.say(u, c, "/stop", GROUP).await;
    world.api.turn_in(c, "cancelled").await;
    let failed = actions(&world, "failed").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    let told = failed[0]["result"]["text"].as_str().unwrap();
    assert!(told.contains("was not sent: the task was stopped"), "{told}");
    assert_eq!(files(&world), []);
    world.end().await;
}

/// interface §5: the tool is offered in chats of a platform, and in no other.
async fn the_console_has_no_such_tool(on: On) {
    let world = World::start_on(on, &[], |_| say("好了")).await;
    carried_out(&world).await;
    let body = json!({ "chat_id": "web", "user_id": "u", "text": "在控制台" });
    assert_eq!(world.api.post("/api/v1/messages", &body).await.0, 202);
    let request = eventually("the console's request", || async { world.model.seen_of("在控制台").pop() }).await;
    let offered = |request: &Value| {
        let tools = request["tools"].as_array().unwrap();
        tools.iter().any(|tool| tool["function"]["name"] == "send_file")
    };
    assert!(!offered(&request));
    assert!(offered(&world.model.seen_of("发送")[0]));
    world.end().await;
}
