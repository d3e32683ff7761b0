//! Whole tasks with odd model servers: the handshake with the strictest, and what people and admins are told.

use serde_json::{Value, json};

use crate::support::command::run;
use crate::support::fake_model::{Script, Step, call, offered, say};
use crate::support::model_strict::{Strict, Tears};
use crate::support::played_mcp::{Played, tool};
use crate::support::scripts::reporter;
use crate::support::world::{ASIDE, DIRECT, GROUP, World, user_words};

const U: &str = "ou_u1";
const P: &str = "oc_p1";
const BOTH: [&str; 2] = ["openai", "anthropic"];

/// F3, F8, F9, F11, F12: the handshake in a group that talked before, with the strictest server of each protocol, which ends its answers oddly
/// and tears its streams.
#[tokio::test]
async fn a_handshake_with_the_strictest_server() {
    for provider in BOTH {
        let world = World::start(&[("MODEL__PROVIDER", provider)], |request: &Value| {
            let mut answer = reporter(request);
            answer["reasoning_content"] = json!("hm");
            answer["thinking"] = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]);
            answer
        })
        .await;
        world.model.strict(Strict {
            // Anthropic's own thoughts are its own.
            plain_messages: provider == "openai",
            ..Strict::all()
        });
        world.model.tears(Tears::NewIds);
        world.model.ends_oddly("abort", 2);
        world.overhears("ou_u2", "oc_c1", "周五之前要。", ASIDE);
        world.say(U, "oc_c1", "整理笔记", GROUP).await;
        let card = world.plan_card("oc_c1").await;
        world.tap(U, "oc_c1", &card, "approve", None).await;
        world.hears("oc_c1", "全部完成").await;
        assert!(world.file("report.md").unwrap().contains("报告"));
        let seen = world.model.seen();
        assert!(seen.iter().all(|seen| !offered(&seen.chat).contains("list_files")));
        assert!(user_words(&seen[0].chat).contains("周五之前要。"));
        assert!(!world.model.refused().is_empty());
        let turn = world.api.turn_in("oc_c1", "completed").await;
        let ready = world.api.get("/readyz").await.to_string();
        assert!(ready.contains("the model's server refuses list_files"), "{ready}");
        assert_eq!(turn["reason"], "final_answer");
        world.end().await;
    }
}

/// F3, interface §10 M: the API shows later words of ours as `system`, whatever was sent.
#[tokio::test]
async fn messages_show_system_words_as_such() {
    let world = World::start(&[], |_| say("?")).await;
    world.model.strict(Strict {
        system_first: true,
        ..Strict::default()
    });
    let go_on = json!({"continuation": {"status": "CONTINUE", "reason": "more"}});
    let script = Script::new().text(&format!("Half.\n{go_on}")).text("Done.");
    world.model.script("做", script);
    world.say(U, P, "做一做", DIRECT).await;
    world.hears(P, "Done.").await;
    let turn = world.api.turns().await.remove(0);
    let messages = world.api.messages(&turn).await;
    let ours = messages
        .iter()
        .find(|message| message["content"].as_str().unwrap_or_default().starts_with("<turn-continuation>"));
    assert_eq!(ours.unwrap()["role"], "system", "{messages:#?}");
    world.end().await;
}

/// F8: after three odd ends the task fails, people read the word, and nothing of what came is shown or run.
#[tokio::test]
async fn an_odd_end_is_told() {
    for provider in BOTH {
        let settings = [("MODEL__PROVIDER", provider), ("AGENT__APPROVAL", "never")];
        let world = World::start(&settings, |_| say("?")).await;
        let mut half = call([("write_file", json!({"path": "half.md", "content": "x"}))]);
        half["content"] = json!("CANARY");
        world.model.ends_oddly("abort", 3);
        world.model.script("写", Script::new().message(half));
        world.say(U, P, "写一写", DIRECT).await;
        let told = world.hears(P, "abort").await;
        assert!(!told.words().contains("CANARY"), "{}", told.words());
        assert_eq!(world.api.turn_in(P, "failed").await["reason"], "model_error");
        assert_eq!((world.file("half.md"), world.model.seen().len()), (None, 3));
        world.end().await;
    }
}

/// F5, interface §10 M: a call that the output limit cut is answered to the model, and nothing of its reply runs; the model writes in parts.
#[tokio::test]
async fn a_cut_write_is_written_in_parts() {
    for provider in BOTH {
        let settings = [("MODEL__PROVIDER", provider), ("AGENT__APPROVAL", "never")];
        let world = World::start(&settings, |_| say("?")).await;
        let write = |content: &str, append: bool| call([("write_file", json!({"path": "long.md", "content": content, "append": append}))]);
        let cut = call([
            ("write_file", json!({"path": "other.md", "content": "x"})),
            ("write_file", json!(r#"{"path": "long.md", "content": "one t"#)),
        ]);
        let script = Script::new()
            .then(Step::Message(cut, Some("length")))
            .message(write("one\n", false))
            .message(write("two\n", true))
            .text("写好了。");
        world.model.script("写", script);
        world.say(U, P, "写一写", DIRECT).await;
        world.hears(P, "写好了。").await;
        assert_eq!(world.file("long.md").as_deref(), Some("one\ntwo\n"));
        assert_eq!(world.file("other.md"), None);
        let told = world.model.seen()[1].chat["messages"].to_string();
        assert!(told.contains("cut at the output limit, not run; write it in parts"), "{told}");
        assert!(told.contains("another call of the same reply"), "{told}");
        world.model.assert_clean();
        world.end().await;
    }
}

/// F5: the card of a call that appends says so, and shows the change.
#[tokio::test]
async fn an_appending_call_says_so() {
    let world = World::start(&[], |_| say("?")).await;
    let append = call([("write_file", json!({"path": "notes.md", "content": "最后一行\n", "append": true}))]);
    world.model.script("加", Script::new().message(append).text("加好了。"));
    let before = world.file("notes.md").unwrap();
    world.say(U, P, "加一行", DIRECT).await;
    let card = world.card_titled(P, "操作确认").await;
    let shown = card.words();
    assert!(shown.contains("Append") && shown.contains("+最后一行"), "{shown}");
    world.tap(U, P, &card, "approve", None).await;
    world.hears(P, "加好了。").await;
    assert_eq!(world.file("notes.md").unwrap(), format!("{before}最后一行\n"));
    world.end().await;
}

/// F13, interface §10 M: a call that came as text ends no task: the model is told twice, then people and the log are. Nothing of it runs.
#[tokio::test]
async fn a_call_as_text_is_no_answer() {
    let world = World::start(&[("AGENT__APPROVAL", "never")], |_| say("?")).await;
    let markup = "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"x.md\", \"content\": \"x\"}}\n</tool_call>";
    world
        .model
        .script("好", Script::new().text(markup).text(markup).text("`<tool_call>` is not needed."));
    world.say(U, P, "好不好", DIRECT).await;
    world.hears(P, "is not needed.").await;
    let told = world.model.seen()[2].chat["messages"].to_string();
    assert_eq!(told.matches("Nothing was run").count(), 2, "{told}");
    world.model.script("坏", Script::new().text(markup).text(markup).text(markup));
    world.say(U, P, "坏不坏", DIRECT).await;
    let told = world.hears(P, "没有解析工具调用").await;
    assert!(!told.words().contains("tool_call"), "{}", told.words());
    assert_eq!(world.api.turn_in(P, "failed").await["reason"], "model_error");
    assert_eq!(world.file("x.md"), None);
    world.model.assert_clean();
    world.end().await;
}

/// F10: a fold that wins nothing goes on to the next, and clips the newest output at last.
#[tokio::test]
async fn folding_goes_on_to_the_newest_output() {
    let world = World::start(&[], |_| say("?")).await;
    let long = "一行笔记，很长很长很长很长。\n".repeat(1100);
    for name in ["a.md", "b.md"] {
        std::fs::write(world.folder.path().join("workspace").join(name), &long).unwrap();
    }
    let read = |name: &str| call([("read_file", json!({"path": name}))]);
    let too_long = || {
        Step::Status(
            400,
            Vec::new(),
            json!({"error": "This model's maximum prompt length is 8192 but the request contains 30000 tokens."}),
        )
    };
    let script = Script::new()
        .message(read("a.md"))
        .message(read("b.md"))
        .then(too_long())
        .then(too_long())
        .text("读完了。");
    world.model.script("读", script);
    world.say(U, P, "读一读", DIRECT).await;
    world.hears(P, "读完了。").await;
    let seen = world.model.seen_of("读");
    let (folded, clipped) = (seen[3]["messages"].to_string(), seen[4]["messages"].to_string());
    assert!(
        folded.contains("[folded: ") && !folded.contains("[cut here: "),
        "the older output first"
    );
    assert!(clipped.contains("[folded: ") && clipped.contains("[cut here: "), "then the newest");
    world.model.assert_clean();
    world.end().await;
}

/// F9, interface §10 M: 128 tools are offered at most, ours first, then the servers' in their order; `/readyz` and `check` name the rest.
#[tokio::test]
async fn tools_past_the_most_are_named() {
    let played = Played::new(&[]);
    played.offer(&(0..126).map(|at| tool(&format!("t{at:03}"))).collect::<Vec<_>>());
    let setting = played.setting(&json!({}));
    let world = World::start(&[("TOOLS__MCP_SERVERS", &setting)], |_| say("好的。")).await;
    world.say(U, P, "你好", DIRECT).await;
    world.hears(P, "好的。").await;
    let seen = world.model.seen().remove(0);
    let names = offered(&seen.chat);
    assert_eq!(names.len(), 128);
    assert!(names.contains("plan") && names.contains("send_file") && names.contains("srv__t117") && !names.contains("srv__t118"));
    let ready = world.api.get("/readyz").await;
    let parts = ready["parts"].as_array().unwrap();
    let row = parts.iter().find(|part| part["name"] == "tools").unwrap();
    let told = row["message"].as_str().unwrap();
    assert_eq!(row["status"], "degraded");
    assert!(
        told.ends_with("left out: srv__t118, srv__t119, srv__t120, srv__t121, srv__t122, srv__t123, srv__t124, srv__t125"),
        "{told}"
    );
    world.end().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workspace")).unwrap();
    let settings = [("TOOLS__MCP_SERVERS", setting.as_str()), ("TOOLS__WORKSPACE", "workspace")];
    let ran = run(folder.path(), &settings, &["check", "--online"]).await;
    assert!(
        ran.err.contains("online: tools: warning: more tools than one request takes") && ran.err.contains("srv__t118"),
        "{ran:?}"
    );
}
