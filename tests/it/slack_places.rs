//! Where things stand on Slack: where an answer lands, whose workspace a click comes from, and what its markup says.

use countersign_gateway::conversation::Phrase;
use countersign_playground::Fault;
use serde_json::{Value, json};

use crate::support::fake_model::Script;
use crate::support::lark_push::with;
use crate::support::people::{aside, reply};
use crate::support::platform::On;
use crate::support::quiet::quiet;
use crate::support::scripts::reporter;
use crate::support::slack_push::{message, message_event, push};
use crate::support::world::{ASIDE, DIRECT, GROUP, To, World};

/// design: in a channel everything about a task stands in the thread of its request, also where the request is a reply; a
/// direct chat is flat, and so is what was asked for by a command.
#[tokio::test]
async fn answers_land_where_the_task_is() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    let thread = |chat: &str, root: Option<&str>| {
        let all = world.chat.snapshot();
        let posted: Vec<_> = all.in_chat(chat).map(|posted| posted.reply_to.clone()).collect();
        assert!(posted.len() > 1, "card and answer: {posted:?}");
        assert!(
            posted.iter().all(|place| place.as_deref() == root),
            "{chat}: {posted:?}, not {root:?}"
        );
    };
    // A mention in the channel begins a thread.
    let request = world.say("U0U1", "C0A", "整理笔记", GROUP).await;
    let card = world.plan_card("C0A").await;
    world.say("U0U1", "C0A", "OK", aside(&card.id)).await;
    world.hears("C0A", "全部完成").await;
    thread("C0A", Some(&request));
    // A mention in the thread of something else stays in it.
    let talk = world.say("U0U2", "C0B", "看看这个", ASIDE).await;
    world.say("U0U1", "C0B", "整理笔记", reply(&talk)).await;
    world.plan_card("C0B").await;
    world.say("U0U1", "C0B", "OK", aside(&talk)).await;
    world.hears("C0B", "全部完成").await;
    thread("C0B", Some(&talk));
    // A direct chat, and an OK in the card's own thread there.
    world.say("U0U1", "D0U1", "整理笔记", DIRECT).await;
    let card = world.plan_card("D0U1").await;
    let under = To {
        reply_to: Some(&card.id),
        ..DIRECT
    };
    world.say("U0U1", "D0U1", "OK", under).await;
    world.hears("D0U1", "全部完成").await;
    thread("D0U1", None);
    // A command, and an OK in the thread that its card begins.
    world.push(&world.tenant.command("U0U1", "C0C", "整理笔记").unwrap()).await;
    let card = world.plan_card("C0C").await;
    world.say("U0U1", "C0C", "OK", aside(&card.id)).await;
    world.hears("C0C", "全部完成").await;
    thread("C0C", None);
    quiet(&world).await;
    assert_eq!(world.api.turns().await.len(), 4);
    world.end().await;
}

/// interface §10 Chats: in a direct chat a thread is a conversation of its own, whatever it begins with: a message that the gateway never saw (every
/// conversation of the assistant view), or an earlier answer. Card, notices and answer stand there, and a listed word there means its gate.
#[tokio::test]
async fn a_thread_of_a_direct_chat_is_a_conversation() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    world.model.script("写周报", Script::new().text("写好了"));
    let (u, d) = ("U0U1", "D0U1");
    world.say(u, d, "写周报", DIRECT).await;
    let answer = world.hears(d, "写好了").await;
    let unseen = world.message(u, d, "New chat", DIRECT).message_id;
    for root in [&unseen, &answer.id] {
        let posted = world.chat.posted();
        let there = To {
            reply_to: Some(root),
            ..DIRECT
        };
        world.say(u, d, "整理笔记", there).await;
        let card = world.plan_card(d).await;
        let status = world.say(u, d, "/status", there).await;
        world.word_back(d, &status).await;
        world.say(u, d, "OK", there).await;
        world
            .seen("the answer in that thread", |seen| {
                let mut later = seen.in_chat(d).skip_while(|message| message.id != card.id);
                later.any(|message| message.words().contains("全部完成")).then_some(())
            })
            .await;
        quiet(&world).await;
        let places: Vec<_> = world
            .chat
            .messages_from(posted)
            .into_iter()
            .map(|message| message.reply_to)
            .collect();
        assert!(
            places.len() >= 3 && places.iter().all(|place| place.as_ref() == Some(root)),
            "{places:?}"
        );
        std::fs::remove_file(world.folder.path().join("workspace/report.md")).unwrap();
    }
    assert_eq!(world.api.turns().await.len(), 3);
    world.end().await;
}

/// interface §10 Chats: where the thread of a request is lost, card and answer stand outside of it, and name the request.
#[tokio::test]
async fn a_lost_thread_costs_no_task() {
    let world = World::start_on(On::Slack, &[], reporter).await;
    for (chat, word) in [("C0A", "thread_not_found"), ("C0B", "cannot_reply_to_message")] {
        world.chat.fault("reply", Fault::Error(word));
        world.say("U0U1", chat, "整理笔记", GROUP).await;
        let card = world.plan_card(chat).await;
        assert_eq!(card.reply_to, None, "{word}");
        assert!(card.words().contains("关于“整理笔记”"), "{}", card.words());
        world.chat.fault("reply", Fault::Error(word));
        world.say("U0U1", chat, "OK", aside(&card.id)).await;
        let answer = world.hears(chat, "全部完成").await;
        assert_eq!(answer.reply_to, None, "{word}");
        assert!(answer.words().contains("关于“整理笔记”"), "{}", answer.words());
        quiet(&world).await;
    }
    assert!(world.api.turns().await.iter().all(|turn| turn["status"] == "completed"));
    world.end().await;
}

/// M-5: in a channel that workspaces share a click names the person's own workspace, in an enterprise perhaps none;
/// it finds its gate all the same, counts for nobody but that person, and nowhere but in that channel.
#[tokio::test]
async fn a_click_from_another_workspace() {
    for team in [json!({ "id": "T0OTHER", "domain": "other" }), Value::Null] {
        let world = World::start_on(On::Slack, &[("CHAT__ALLOW_EXTERNAL", "true")], reporter).await;
        let press = |user: &str, chat: &str, card: &str, value: &Value| {
            let mut event = world.tenant.tap(user, chat, card, value, None);
            event.body["team"] = team.clone();
            event.body["user"]["team_id"] = json!("T0OTHER");
            event.body["enterprise"] = json!({ "id": "E0GRID" });
            // Forwarded, the card stands in no thread.
            if chat != "C0C1" {
                event.body["container"].as_object_mut().unwrap().remove("thread_ts");
            }
            event
        };
        world.say("U0U1", "C0C1", "整理笔记", GROUP).await;
        let card = world.plan_card("C0C1").await;
        let approve = card.button("approve").unwrap();
        world.push(&press("U0U1", "C0C2", &card.id, &approve)).await;
        world.push(&press("U0U2", "C0C1", &card.id, &approve)).await;
        world
            .seen("a note", |seen| seen.notes.iter().find(|note| note.user == "U0U2").cloned())
            .await;
        assert_eq!(world.api.review_in("C0C1").await["status"], "pending");
        for _ in 0..2 {
            world.push(&press("U0U1", "C0C1", &card.id, &approve)).await;
        }
        world.hears("C0C1", "全部完成").await;
        quiet(&world).await;
        assert_eq!(world.api.turns().await.len(), 1);
        world.end().await;
    }
}

/// design: what Slack's markup says about a card that waits. Emoji are words there; code, bold, quotations and words to
/// somebody else are no consent.
#[test]
fn markup_of_an_answer() {
    let read = |text: &str| {
        let plain = with(message_event(), "/event/text", json!(text));
        Phrase::of(&message(push(&plain)).addressed("UBOT"), false)
    };
    for text in [
        "OK",
        "<@UBOT> OK",
        "<@UBOT|countersign>: ok",
        "OK <@UBOT>",
        ":+1:",
        "OK :+1:",
        ":thumbsup:",
        "\u{ff2f}\u{ff2b}",
    ] {
        assert_eq!(read(text), Phrase::Approve, "{text}");
    }
    for text in [
        "<@UBOT>",
        "<@UBOT> ",
        "<@UBOT>!",
        "ok <@U0OTHER>",
        "<@U0OTHER> OK",
        "OK <!subteam^S1|@ops>",
    ] {
        assert_eq!(read(text), Phrase::Ignore, "{text}");
    }
    for text in [
        "`OK`",
        "```OK```",
        "*OK*",
        "_OK_",
        "&gt; OK",
        "&gt;OK",
        "<https://ok.example|OK>",
        "`<@UBOT>` OK",
    ] {
        assert!(matches!(read(text), Phrase::Other(_)), "{text}: {:?}", read(text));
    }
    for text in ["~OK~", "<@UBOT> ~OK~", "~OK <@UBOT>~", "~~OK~~", "~OK~."] {
        assert!(matches!(read(text), Phrase::Other(_)), "struck out: {text}");
    }
    for text in ["OK~", "OK~~", "~ OK ~", "OK ~ ~"] {
        assert_eq!(read(text), Phrase::Approve, "a tone of voice: {text}");
    }
    assert_eq!(read(":-1:"), Phrase::Cancel);
}
