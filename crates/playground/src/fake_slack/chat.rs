//! What the bot does: it posts, repaints, whispers, opens forms, marks, and reads back people, threads and channels.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use countersign_agent::domain::Millis;
use serde_json::{Value, json};

use super::handlers::{Answer, Refusal, fault_answer, text};
use super::{APP_ID, BOT_ID, FORM_HASH, SLACK_BOT, Shared, TEAM};
use crate::check_message;
use crate::posted::{Form, Note, Posted, words};
use crate::stage::broken;

/// `chat.postMessage`.
pub(super) fn post(shared: &Shared, arguments: &Value) -> Answer {
    known(
        arguments,
        &[
            "channel",
            "text",
            "blocks",
            "thread_ts",
            "metadata",
            "unfurl_links",
            "unfurl_media",
            "mrkdwn",
        ],
    )?;
    let channel = text(arguments, "channel")?;
    if channel.starts_with(['U', 'W']) {
        // The platform takes it. Nobody can look for such a post by that id afterwards.
        return Err(Refusal::objection("channel_not_found", format!("a post to the person {channel}")));
    }
    let content = content(arguments)?;
    let thread = thread(shared, channel, arguments)?;
    let key = match &arguments["metadata"] {
        Value::Null => String::new(),
        metadata => metadata["event_payload"]["k"]
            .as_str()
            .filter(|key| metadata["event_type"].is_string() && !key.is_empty())
            .ok_or_else(|| Refusal::objection("invalid_metadata_format", metadata.to_string()))?
            .to_owned(),
    };
    let ts = shared.workspace.stamp(channel, thread, None);
    let message = seen(&ts, thread, &content, None);
    shared.stage.lock().messages.push(Posted {
        id: ts.clone(),
        chat: channel.to_owned(),
        reply_to: thread.map(str::to_owned),
        in_thread: thread.is_some(),
        kind: String::from(if content["blocks"] == json!([]) { "text" } else { "interactive" }),
        versions: vec![content.clone()],
        content,
        uuid: key,
        at: moment(&ts),
    });
    Ok(json!({ "channel": channel, "ts": ts, "message": message }))
}

/// `conversations.open`: the direct chat with one person, the same one each time.
pub(super) fn open_direct(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["users"])?;
    let user = text(arguments, "users")?;
    if !user.starts_with(['U', 'W']) {
        return Err(Refusal::objection("user_not_found", user));
    }
    if shared.stage.lock().unreachable.contains(user) {
        return Err(Refusal::fair("user_disabled"));
    }
    Ok(json!({ "channel": { "id": direct_chat(user) } }))
}

fn direct_chat(user: &str) -> String {
    format!("D{}", &user[1..])
}

/// `chat.update`: only what the bot posted itself.
pub(super) fn update(shared: &Shared, arguments: &Value) -> Answer {
    known(
        arguments,
        &[
            "channel",
            "ts",
            "text",
            "blocks",
            "metadata",
            "unfurl_links",
            "unfurl_media",
            "mrkdwn",
        ],
    )?;
    let (channel, ts) = (text(arguments, "channel")?, text(arguments, "ts")?);
    let content = content(arguments)?;
    if !arguments["blocks"].is_array() {
        // Without `blocks` the old ones, buttons among them, would stay.
        return Err(Refusal::objection("invalid_arguments", "an update without blocks"));
    }
    let mut memory = shared.stage.lock();
    if memory.posted(ts).is_none_or(|message| message.chat != channel) {
        return Err(Refusal::objection("message_not_found", format!("{ts} in {channel}")));
    }
    if memory.recalled.contains(ts) {
        return Err(Refusal::fair("message_not_found"));
    }
    memory.repaint(ts, content);
    Ok(json!({ "channel": channel, "ts": ts, "text": arguments["text"] }))
}

/// `chat.postEphemeral`.
pub(super) fn whisper(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["channel", "user", "text", "blocks", "thread_ts"])?;
    let (channel, user) = (text(arguments, "channel")?, text(arguments, "user")?);
    let content = content(arguments)?;
    let thread = thread(shared, channel, arguments)?;
    shared.stage.lock().notes.push(Note {
        chat: channel.to_owned(),
        user: user.to_owned(),
        thread: thread.map(str::to_owned),
        text: words(&content),
    });
    Ok(json!({ "message_ts": shared.workspace.stamp("", None, None) }))
}

/// `views.open`.
pub(super) fn open(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["trigger_id", "view"])?;
    let trigger = text(arguments, "trigger_id")?;
    let view = &arguments["view"];
    let problems = check_message(view);
    if !view.is_object() || !problems.is_empty() {
        return Err(Refusal::objection("invalid_arguments", problems.join("; ")));
    }
    match shared.workspace.spend(trigger) {
        Ok(()) => (),
        Err("expired_trigger_id") => return Err(Refusal::fair("expired_trigger_id")),
        Err(error) => return Err(Refusal::objection(error, trigger)),
    }
    let mut stage = shared.stage.lock();
    let id = format!("V0VIEW{}", stage.forms.len());
    stage.forms.push(Form {
        id: id.clone(),
        trigger_id: trigger.to_owned(),
        view: view.clone(),
    });
    Ok(json!({ "view": { "id": id, "type": "modal", "hash": FORM_HASH } }))
}

/// `reactions.add`.
pub(super) fn react(shared: &Shared, arguments: &Value) -> Answer {
    let (ts, name) = marked(shared, arguments)?;
    let mut memory = shared.stage.lock();
    if memory.marks(ts).contains(&name) {
        return Err(Refusal::fair("already_reacted"));
    }
    memory.mark(ts.to_owned(), name.to_owned());
    Ok(json!({}))
}

/// `reactions.remove`.
pub(super) fn unreact(shared: &Shared, arguments: &Value) -> Answer {
    let (ts, name) = marked(shared, arguments)?;
    if !shared.stage.lock().unmark(ts, name) {
        return Err(Refusal::fair("no_reaction"));
    }
    Ok(json!({}))
}

/// The message and the name of the mark that a call is about.
fn marked<'a>(shared: &Shared, arguments: &'a Value) -> Result<(&'a str, &'a str), Refusal> {
    known(arguments, &["channel", "timestamp", "name"])?;
    let (channel, ts, name) = (text(arguments, "channel")?, text(arguments, "timestamp")?, text(arguments, "name")?);
    if !name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_+-".contains(&b))
    {
        return Err(Refusal::objection("invalid_name", name));
    }
    if !shared.workspace.knows(channel, ts) {
        return Err(Refusal::objection("message_not_found", format!("{ts} in {channel}")));
    }
    if shared.stage.lock().recalled.contains(ts) {
        return Err(Refusal::fair("message_not_found"));
    }
    Ok((ts, name))
}

/// `agents.sessions.setStatus`.
pub(super) fn set_status(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["channel_id", "status", "thread_ts", "title", "initiator_user_id"])?;
    let (channel, status) = (text(arguments, "channel_id")?, text(arguments, "status")?);
    if !["processing", "active", "suspended", "closed"].contains(&status) {
        return Err(Refusal::objection("invalid_status", status));
    }
    if thread(shared, channel, arguments)?.is_none() && !channel.starts_with('D') {
        return Err(Refusal::objection("thread_ts_required", channel));
    }
    Ok(json!({ "status": status, "agent_status": status }))
}

/// `assistant.threads.setSuggestedPrompts`: up to four, in the chat with the bot.
pub(super) fn suggest(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["channel_id", "thread_ts", "prompts", "title"])?;
    let channel = text(arguments, "channel_id")?;
    if !channel.starts_with('D') {
        return Err(Refusal::objection("channel_not_found", channel));
    }
    thread(shared, channel, arguments)?;
    let prompts = arguments["prompts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !(1..=4).contains(&prompts.len()) {
        return Err(Refusal::objection("invalid_arguments", format!("{} prompts", prompts.len())));
    }
    for prompt in prompts {
        known(prompt, &["title", "message"])?;
        text(prompt, "title")?;
        text(prompt, "message")?;
    }
    Ok(json!({}))
}

/// Text and blocks, if the platform takes them.
fn content(arguments: &Value) -> Answer {
    let problems = check_message(arguments);
    if !problems.is_empty() {
        return Err(Refusal::objection("invalid_blocks", problems.join("; ")));
    }
    let text = text(arguments, "text")?;
    let blocks = match &arguments["blocks"] {
        Value::Null => json!([]),
        blocks @ Value::Array(_) => blocks.clone(),
        other => return Err(Refusal::objection("invalid_blocks_format", other.to_string())),
    };
    Ok(json!({ "text": text, "blocks": blocks }))
}

/// The thread to post in: that of a message that is there, by its root.
pub(super) fn thread<'a>(shared: &Shared, channel: &str, arguments: &'a Value) -> Result<Option<&'a str>, Refusal> {
    let Some(thread) = arguments["thread_ts"].as_str() else {
        return Ok(None);
    };
    if !shared.workspace.knows(channel, thread) || shared.workspace.root_of(thread).as_deref() != Some(thread) {
        return Err(Refusal::objection("invalid_thread_ts", format!("{thread} in {channel}")));
    }
    Ok(Some(thread))
}

pub(super) fn known(arguments: &Value, members: &[&str]) -> Result<(), Refusal> {
    let odd = arguments
        .as_object()
        .and_then(|map| map.keys().find(|key| !members.contains(&key.as_str())));
    odd.map_or(Ok(()), |odd| {
        Err(Refusal::objection("invalid_arguments", format!("argument {odd}")))
    })
}

/// A message of the bot as the platform shows it.
pub(super) fn seen(ts: &str, thread: Option<&str>, content: &Value, key: Option<&str>) -> Value {
    let mut message = json!({
        "type": "message", "user": SLACK_BOT, "bot_id": BOT_ID, "app_id": APP_ID, "team": TEAM, "ts": ts,
        "text": content["text"], "blocks": content["blocks"],
    });
    if let Some(thread) = thread {
        message["thread_ts"] = json!(thread);
    }
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        message["metadata"] = json!({ "event_type": "countersign_outbox", "event_payload": { "k": key } });
    }
    message
}

/// When a message was made, by its time stamp.
pub(super) fn moment(ts: &str) -> Millis {
    let (seconds, micros) = ts.split_once('.').unwrap_or((ts, "0"));
    Millis(seconds.parse::<i64>().unwrap_or(0) * 1000 + micros.parse::<i64>().unwrap_or(0) / 1000)
}

/// `users.info`.
pub(super) fn user(arguments: &Value) -> Answer {
    let id = text(arguments, "user")?;
    Ok(json!({ "user": { "id": id, "name": id.to_lowercase(), "real_name": id, "is_bot": false } }))
}

/// `usergroups.users.list`.
pub(super) fn members(shared: &Shared, arguments: &Value) -> Answer {
    let group = text(arguments, "usergroup")?;
    let known = ["usergroup", "include_disabled", "team_id"];
    if let Some(name) = arguments
        .as_object()
        .and_then(|all| all.keys().find(|name| !known.contains(&name.as_str())))
    {
        return Err(Refusal::objection("invalid_arguments", name.as_str()));
    }
    let members = shared.stage.lock().groups.get(group).cloned();
    members
        .map(|users| json!({ "users": users }))
        .ok_or_else(|| Refusal::fair("no_such_subteam"))
}

/// `conversations.replies`: the root first, then its replies, oldest first.
pub(super) fn replies(shared: &Shared, arguments: &Value) -> Answer {
    let (channel, root) = (text(arguments, "channel")?, text(arguments, "ts")?);
    if !shared.workspace.knows(channel, root) {
        return Err(Refusal::fair("thread_not_found"));
    }
    let mut messages = listed(shared, channel, arguments, |thread, ts| thread == Some(root) && ts != root);
    let head = listed(shared, channel, &json!({}), |_, ts| ts == root).pop();
    messages.insert(
        0,
        head.unwrap_or_else(|| json!({ "type": "message", "ts": root, "thread_ts": root })),
    );
    page(messages, arguments)
}

/// `conversations.history`: what stands in the channel itself, newest first.
pub(super) fn history(shared: &Shared, arguments: &Value) -> Answer {
    let channel = text(arguments, "channel")?;
    let mut messages = listed(shared, channel, arguments, |thread, _| thread.is_none());
    messages.reverse();
    page(messages, arguments)
}

/// The messages of a channel between `oldest` and `latest`, oldest first; the bot's with their metadata if that is asked for.
fn listed(shared: &Shared, channel: &str, arguments: &Value, wanted: impl Fn(Option<&str>, &str) -> bool) -> Vec<Value> {
    let flag = |name: &str| ["true", "1"].contains(&arguments[name].as_str().unwrap_or_default());
    let oldest = micros(arguments["oldest"].as_str().unwrap_or("0"));
    let latest = arguments["latest"].as_str().map_or(i64::MAX, micros);
    let between = |ts: &str| {
        let at = micros(ts);
        (at > oldest && at < latest) || (flag("inclusive") && (at == oldest || at == latest))
    };
    let memory = shared.stage.lock();
    let ours = memory
        .in_channel(channel)
        .filter(|message| wanted(message.reply_to.as_deref(), &message.id));
    let ours = ours.filter(|message| between(&message.id)).map(|message| {
        let key = flag("include_all_metadata").then_some(message.uuid.as_str());
        seen(&message.id, message.reply_to.as_deref(), &message.content, key)
    });
    let theirs = memory.heard.iter().filter(|heard| heard.chat == channel).filter(|heard| {
        let ts = heard.message["ts"].as_str().unwrap_or_default();
        wanted(heard.thread.as_deref(), ts) && between(ts)
    });
    let mut messages: Vec<Value> = ours.chain(theirs.map(|heard| heard.message.clone())).collect();
    messages.sort_by_key(|message| micros(message["ts"].as_str().unwrap_or_default()));
    messages
}

/// A file of a person, for whoever has the bot's token; for others a page to sign in at, as the platform gives it.
pub(super) async fn file(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    match shared.stage.begin_call("file", &json!({ "file": id }), fault_answer).await {
        Ok(false) => (),
        Ok(true) => return broken(),
        Err(answer) => return answer,
    }
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let page = || ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], "<html>Sign in</html>").into_response();
    if given.and_then(|value| value.strip_prefix("Bearer ")) != Some(&*shared.token) {
        return page();
    }
    let file = shared.stage.lock().sent.get(&id).cloned();
    match file {
        Some(file) => ([(header::CONTENT_TYPE, file.media_type)], file.bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn page(mut messages: Vec<Value>, arguments: &Value) -> Answer {
    let number = |name: &str, default: usize| arguments[name].as_str().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (from, limit) = (number("cursor", 0), number("limit", 100).clamp(1, 1000));
    let end = messages.len().min(from + limit);
    let more = end < messages.len();
    messages.truncate(end);
    messages.drain(..from.min(end));
    let next = if more { end.to_string() } else { String::new() };
    Ok(json!({ "messages": messages, "has_more": more, "response_metadata": { "next_cursor": next } }))
}

fn micros(ts: &str) -> i64 {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(6).collect();
    seconds.parse::<i64>().unwrap_or(0) * 1_000_000 + fraction.parse::<i64>().unwrap_or(0)
}
