//! The fake Lark's endpoints.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{BOT, Shared};
use crate::check_card;
use crate::posted::{Posted, SharedFile};
use crate::sockets::{SERVICE, client_config};
use crate::stage::{Fault, broken};

/// Stale or unknown tenant token; comes with HTTP 400.
const STALE_TOKEN: i64 = 99_991_663;
const BAD_CONTENT: i64 = 230_001;
/// Wrong parameters of a list of members.
const BAD_MEMBERS: i64 = 40_003;
/// The app may not see the department.
const NO_DEPARTMENT: i64 = 40_004;
/// The person may not use the bot.
const NO_AVAILABILITY: i64 = 230_013;
/// The app's id or secret is wrong, for a long connection; comes with HTTP 200.
const BAD_APP: i64 = 514;
const NO_MARK: i64 = 231_010;
const GONE: i64 = 230_011;

/// `POST /auth/v3/tenant_access_token/internal`.
pub(super) async fn token(State(shared): State<Shared>, Json(body): Json<Value>) -> Response {
    if let Err(answer) = shared.stage.begin_call("token", &body, fault_answer).await {
        return answer;
    }
    if body["app_id"] != *shared.app_id || body["app_secret"] != *shared.app_secret {
        return failure(10_014, "app secret invalid");
    }
    let mut keys = shared.keys();
    keys.issued += 1;
    let token = format!("t-tenant-token-{:010}", keys.issued);
    keys.tokens.insert(token.clone());
    Json(json!({ "code": 0, "msg": "ok", "tenant_access_token": token, "expire": 7200 })).into_response()
}

/// `POST /callback/ws/endpoint`: the address of one long connection.
pub(super) async fn endpoint(State(shared): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let lost = match shared.stage.begin_call("socket", &body, fault_answer).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    if body["AppID"] != *shared.app_id || body["AppSecret"] != *shared.app_secret {
        return Json(json!({ "code": BAD_APP, "msg": "auth failed" })).into_response();
    }
    let address = shared.sockets.address(&headers);
    let url = format!("{address}&device_id=7{:018}&service_id={SERVICE}", shared.stage.now().0);
    finish(json!({ "URL": url, "ClientConfig": client_config() }), lost)
}

/// `GET /bot/v3/info`.
pub(super) async fn bot(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if let Err(answer) = begin(&shared, "bot", &headers, &Value::Null).await {
        return answer;
    }
    Json(json!({ "code": 0, "msg": "ok", "bot": { "app_name": "Countersign", "open_id": BOT, "activate_status": 2 } })).into_response()
}

#[derive(Debug, Deserialize)]
pub(super) struct CreateQuery {
    receive_id_type: Option<String>,
}

/// `POST /im/v1/messages`.
pub(super) async fn create(
    State(shared): State<Shared>,
    Query(query): Query<CreateQuery>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let lost = match begin(&shared, "create", &headers, &body).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let receiver = body["receive_id"].as_str().unwrap_or_default();
    let chat = match query.receive_id_type.as_deref() {
        Some("chat_id") if !receiver.is_empty() && !receiver.starts_with("ou_") => receiver.to_owned(),
        Some("open_id") if receiver.starts_with("ou_") => {
            if shared.stage.lock().unreachable.contains(receiver) {
                return failure(NO_AVAILABILITY, "Bot has NO availability to this user.");
            }
            // The bot's direct chat with this person, the same one each time.
            format!("oc_p2p_{}", &receiver[3..])
        }
        _ => {
            shared
                .stage
                .lock()
                .violation("create to a receive_id that is not of its receive_id_type");
            return failure(BAD_CONTENT, "receive_id");
        }
    };
    store(&shared, &body, chat, None, lost)
}

/// `POST /im/v1/messages/{id}/reply`.
pub(super) async fn reply(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let lost = match begin(&shared, "reply", &headers, &body).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    if shared.stage.lock().recalled.contains(&id) {
        return failure(GONE, "The message was withdrawn.");
    }
    let chat = {
        let state = shared.stage.lock();
        let ours = || state.posted(&id).map(|message| message.chat.clone());
        state.chats.get(&id).cloned().or_else(ours).unwrap_or_default()
    };
    store(&shared, &body, chat, Some(id), lost)
}

/// `PATCH /im/v1/messages/{id}`.
pub(super) async fn patch(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let lost = match begin(&shared, "patch", &headers, &body).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let mut state = shared.stage.lock();
    let content = match read_content("interactive", &body["content"]) {
        Ok(content) => content,
        Err(problem) => {
            state.violation(problem);
            return failure(230_099, "Failed to create card content");
        }
    };
    match state.posted(&id).map(|message| message.kind == "interactive") {
        None => return failure(GONE, "no such message"),
        Some(false) => {
            state.violation("patch of a message that is no card");
            return failure(BAD_CONTENT, "not a card");
        }
        Some(true) => state.repaint(&id, content),
    }
    drop(state);
    shared.stage.tell_change();
    finish(json!({}), lost)
}

/// `POST /im/v1/messages/{id}/reactions`.
pub(super) async fn react(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let lost = match begin(&shared, "react", &headers, &body).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let emoji = body
        .pointer("/reaction_type/emoji_type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if !["OK", "OnIt", "Typing", "DONE", "CrossMark", "Get", "THUMBSUP"].contains(&emoji.as_str()) {
        shared.stage.lock().violation(format!("reaction type {emoji}"));
        return failure(231_001, "unknown reaction");
    }
    let mut state = shared.stage.lock();
    state.mark(id.clone(), emoji.clone());
    let at = state.reactions.iter().position(|mark| *mark == (id.clone(), emoji.clone()));
    drop(state);
    shared.stage.tell_change();
    finish(json!({ "reaction_id": format!("r_{}", at.unwrap_or_default()) }), lost)
}

/// `DELETE /im/v1/messages/{id}/reactions/{mark}`.
pub(super) async fn unreact(State(shared): State<Shared>, Path((id, mark)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let lost = match begin(&shared, "unreact", &headers, &Value::Null).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let mut state = shared.stage.lock();
    let at = mark.strip_prefix("r_").and_then(|at| at.parse::<usize>().ok());
    let found = at
        .and_then(|at| state.reactions.get(at).cloned())
        .filter(|(message, _)| *message == id);
    let Some((_, emoji)) = found else {
        state.violation(format!("{mark} is no mark of {id}"));
        return failure(NO_MARK, "reaction not found");
    };
    let gone = state.unmark(&id, &emoji);
    drop(state);
    shared.stage.tell_change();
    if !gone {
        return failure(NO_MARK, "reaction not found");
    }
    finish(json!({ "reaction_id": mark, "reaction_type": { "emoji_type": emoji } }), lost)
}

/// Query of the members of a department. No other parameter is known here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MembersQuery {
    department_id: String,
    department_id_type: String,
    user_id_type: String,
    page_size: usize,
    page_token: Option<String>,
}

/// `GET /contact/v3/users/find_by_department`.
pub(super) async fn members(
    State(shared): State<Shared>,
    query: Result<Query<MembersQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let query = match query {
        Ok(Query(query)) if query.is_right() => query,
        other => {
            shared.stage.lock().violation(format!("members of a department: {other:?}"));
            return failure(BAD_MEMBERS, "param error");
        }
    };
    let lost = match begin(&shared, "members", &headers, &Value::Null).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let Some(all) = shared.stage.lock().groups.get(&query.department_id).cloned() else {
        return failure(NO_DEPARTMENT, "no dept authority error");
    };
    let Some(from) = query
        .page_token
        .as_deref()
        .map_or(Some(0), |token| token.strip_prefix("from_")?.parse().ok())
    else {
        return failure(BAD_MEMBERS, "page_token");
    };
    let rest = all.get(from..).unwrap_or_default();
    let page: Vec<Value> = rest
        .iter()
        .take(query.page_size)
        .map(|id| json!({ "open_id": id, "name": id }))
        .collect();
    let mut data = json!({ "has_more": rest.len() > page.len(), "items": page });
    if rest.len() > page.len() {
        data["page_token"] = json!(format!("from_{}", from + page.len()));
    }
    finish(data, lost)
}

impl MembersQuery {
    fn is_right(&self) -> bool {
        self.department_id.starts_with("od-")
            && self.department_id_type == "open_department_id"
            && self.user_id_type == "open_id"
            && (1..=50).contains(&self.page_size)
    }
}

/// Every call but the one for a token: its fault, then its token. `Err` is the answer; `Ok(true)`: do the work, lose the answer.
pub(super) async fn begin(shared: &Shared, endpoint: &str, headers: &HeaderMap, body: &Value) -> Result<bool, Response> {
    let lost = shared.stage.begin_call(endpoint, body, fault_answer).await?;
    refuse(shared, headers).map_or(Ok(lost), Err)
}

pub(super) fn fault_answer(fault: &Fault) -> (StatusCode, Value) {
    match fault {
        Fault::Answer { status, code, .. } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, json!({ "code": code, "msg": "fault" }))
        }
        Fault::Error(name) => (StatusCode::BAD_REQUEST, json!({ "code": BAD_CONTENT, "msg": name })),
        Fault::LoseAnswer | Fault::Delay(_) => (StatusCode::OK, Value::Null),
    }
}

fn refuse(shared: &Shared, headers: &HeaderMap) -> Option<Response> {
    let given = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let known = given
        .strip_prefix("Bearer ")
        .is_some_and(|token| shared.keys().tokens.contains(token));
    (!known).then(|| failure(STALE_TOKEN, "Invalid access token for authorization"))
}

fn store(shared: &Shared, body: &Value, chat: String, reply_to: Option<String>, lost: bool) -> Response {
    let mut state = shared.stage.lock();
    let uuid = body["uuid"].as_str().unwrap_or_default().to_owned();
    if uuid.is_empty() || uuid.len() > 50 {
        state.violation(format!("uuid of {} characters", uuid.len()));
        return failure(BAD_CONTENT, "uuid");
    }
    // The same uuid within an hour gives the first message again.
    let known = shared.keys().by_uuid.get(&uuid).cloned();
    let id = match known {
        Some(id) => id,
        None => {
            let id = format!("om_bot_{}", state.messages.len() + 1);
            let kind = body["msg_type"].as_str().unwrap_or_default().to_owned();
            let content = match read_content(&kind, &body["content"]) {
                Ok(content) => content,
                Err(problem) => {
                    state.violation(problem);
                    return failure(230_099, "Failed to create card content");
                }
            };
            if ["file", "image"].contains(&kind.as_str()) {
                let Some(file) = shared_file(shared, &kind, &content, &chat, &id) else {
                    state.violation(format!("a message with the {kind} {content}"));
                    return failure(BAD_CONTENT, "no such key");
                };
                state.files.push(file);
            }
            shared.keys().by_uuid.insert(uuid.clone(), id.clone());
            state.messages.push(Posted {
                id: id.clone(),
                chat,
                reply_to,
                in_thread: body["reply_in_thread"] == true,
                kind,
                versions: vec![content.clone()],
                content,
                uuid,
                at: shared.stage.now(),
            });
            id
        }
    };
    let (chat, at) = state
        .posted(&id)
        .map(|message| (message.chat.clone(), message.at.0))
        .unwrap_or_default();
    drop(state);
    shared.stage.tell_change();
    finish(json!({ "message_id": id, "chat_id": chat, "create_time": at.to_string() }), lost)
}

/// The file or image of the message `id`. `None` means that there is none with its key.
fn shared_file(shared: &Shared, kind: &str, content: &Value, chat: &str, id: &str) -> Option<SharedFile> {
    let key = content[format!("{kind}_key")].as_str()?;
    let upload = shared.keys().uploads.get(key).cloned()?;
    (upload.image == (kind == "image")).then(|| SharedFile {
        chat: chat.to_owned(),
        message: id.to_owned(),
        name: upload.name,
        bytes: upload.bytes,
    })
}

pub(super) fn finish(data: Value, lost: bool) -> Response {
    if lost {
        return broken();
    }
    Json(json!({ "code": 0, "msg": "success", "data": data })).into_response()
}

pub(super) fn failure(code: i64, message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "code": code, "msg": message }))).into_response()
}

/// Content as the platform takes it: a JSON string that is a text message or a card of version 2.0. Else what is wrong with it.
fn read_content(kind: &str, content: &Value) -> Result<Value, String> {
    let parsed = content
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .ok_or_else(|| String::from("content is not a JSON string"))?;
    match kind {
        "text" => match parsed.get("text").and_then(Value::as_str) {
            None => Err(String::from("a text message without text")),
            Some(text) if calls_everybody(text) => Err(String::from("a text message that calls everybody")),
            Some(text) if text.len() > 150 * 1024 => Err(String::from("a text message over 150 KB")),
            Some(_) => Ok(parsed),
        },
        "interactive" => check_card(&parsed).map(|()| parsed),
        "file" | "image" if parsed[format!("{kind}_key")].is_string() => Ok(parsed),
        other => Err(format!("msg_type {other}")),
    }
}

/// Does a text message hold an active mention of everybody?
fn calls_everybody(text: &str) -> bool {
    text.split("<at")
        .skip(1)
        .any(|tag| tag.split('>').next().is_some_and(|inside| inside.contains("all")))
}
