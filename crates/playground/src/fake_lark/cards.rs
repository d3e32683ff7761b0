//! Card entities: cards that the platform keeps apart from the messages that show them.
//! <https://open.feishu.cn/document/uAjLw4CM/ukTMukTMukTM/cardkit-v1/card/batch_update>

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::handlers::{begin, failure, finish};
use super::{Keys, Shared};
use crate::check_card;

const BAD_FIELD: i64 = 99_992_402;
/// The card is not as the platform wants it.
const BAD_CARD: i64 = 200_621;
const NO_CARD: i64 = 200_740;
/// The tag of an element cannot be changed.
const TAG_CHANGED: i64 = 300_312;
const NO_ELEMENT: i64 = 300_313;
/// The number of an update does not rise.
const SEQUENCE: i64 = 300_317;

/// A card, and the message that shows it.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    card: Value,
    message: Option<String>,
    sequence: i64,
    uuids: BTreeSet<String>,
    /// Its message shows something else by now: what follows would not be seen.
    replaced: bool,
}

/// A refusal: its code and why.
type Refusal = (i64, String);

impl Keys {
    /// The message `message` shows the card `id` from now on.
    pub(super) fn show(&mut self, id: &str, message: &str) -> Result<Value, String> {
        let entity = self.cards.get_mut(id).ok_or_else(|| format!("no card {id}"))?;
        if entity.message.is_some() {
            return Err(format!("the card {id} is in a message already"));
        }
        entity.message = Some(message.to_owned());
        Ok(entity.card.clone())
    }

    /// `message` shows `card` by the answer to a press: for its entity that is the newest state.
    pub(super) fn answered(&mut self, message: &str, card: &Value) {
        if let Some(entity) = self.of_message(message) {
            entity.card = card.clone();
        }
    }

    /// `message` was replaced as a whole, past its entity.
    pub(super) fn replaced(&mut self, message: &str) {
        if let Some(entity) = self.of_message(message) {
            entity.replaced = true;
        }
    }

    fn of_message(&mut self, message: &str) -> Option<&mut Entity> {
        self.cards.values_mut().find(|entity| entity.message.as_deref() == Some(message))
    }
}

/// `POST /cardkit/v1/cards`.
pub(super) async fn create(State(shared): State<Shared>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let lost = match begin(&shared, "card", &headers, &body).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let card = match read_card(&body) {
        Ok(card) => card,
        Err(refusal) => return refuse(&shared, refusal),
    };
    let mut keys = shared.keys();
    let id = format!("7355{:015}", keys.cards.len());
    let entity = Entity {
        card,
        message: None,
        sequence: 0,
        uuids: BTreeSet::new(),
        replaced: false,
    };
    keys.cards.insert(id.clone(), entity);
    drop(keys);
    shared.stage.tell_change();
    finish(json!({ "card_id": id }), lost)
}

/// `PUT /cardkit/v1/cards/{id}`.
pub(super) async fn replace(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    match begin(&shared, "card_whole", &headers, &body).await {
        Ok(lost) => update(&shared, &id, &body, lost, |_| read_card(&body["card"])),
        Err(answer) => answer,
    }
}

/// `POST /cardkit/v1/cards/{id}/batch_update`.
pub(super) async fn batch(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    match begin(&shared, "card_elements", &headers, &body).await {
        Ok(lost) => update(&shared, &id, &body, lost, |card| changed(card, &body["actions"])),
        Err(answer) => answer,
    }
}

fn refuse(shared: &Shared, (code, why): Refusal) -> Response {
    // A process that is slow may be overtaken by those who went on.
    if code != SEQUENCE {
        shared.stage.lock().violation(why.clone());
    }
    failure(code, &why)
}

fn update(shared: &Shared, id: &str, body: &Value, lost: bool, change: impl FnOnce(&Value) -> Result<Value, Refusal>) -> Response {
    let outcome = apply(shared, id, body, change);
    shared.stage.tell_change();
    match outcome {
        Ok(()) => finish(json!({}), lost),
        Err(refusal) => refuse(shared, refusal),
    }
}

fn apply(shared: &Shared, id: &str, body: &Value, change: impl FnOnce(&Value) -> Result<Value, Refusal>) -> Result<(), Refusal> {
    let mut state = shared.stage.lock();
    let mut keys = shared.keys();
    let entity = keys.cards.get_mut(id).ok_or_else(|| (NO_CARD, format!("no card {id}")))?;
    let uuid = body["uuid"].as_str().unwrap_or_default();
    if uuid.is_empty() || uuid.len() > 64 {
        return Err((BAD_FIELD, format!("uuid of {} characters", uuid.len())));
    }
    // What was done once is not done again.
    if entity.uuids.contains(uuid) {
        return Ok(());
    }
    let sequence = body["sequence"].as_i64().unwrap_or_default();
    if sequence > i64::from(i32::MAX) {
        return Err((BAD_FIELD, format!("sequence {sequence}")));
    }
    if sequence <= entity.sequence {
        return Err((SEQUENCE, format!("sequence {sequence} after {}", entity.sequence)));
    }
    if entity.replaced {
        return Err((NO_CARD, format!("an update of the card {id}, whose message was replaced")));
    }
    entity.card = change(&entity.card)?;
    entity.sequence = sequence;
    entity.uuids.insert(uuid.to_owned());
    if let Some(message) = &entity.message {
        state.repaint(message, entity.card.clone());
    }
    Ok(())
}

fn read_card(body: &Value) -> Result<Value, Refusal> {
    let bad = |why: &str| (BAD_CARD, why.to_owned());
    if body["type"] != "card_json" {
        return Err(bad("a card that is no card_json"));
    }
    let data = body["data"].as_str().ok_or_else(|| bad("data is not a string"))?;
    let card = serde_json::from_str(data).map_err(|_| bad("data is no JSON"))?;
    check_card(&card).map_err(|why| (BAD_CARD, why))?;
    Ok(card)
}

/// `card` after these actions. Those that the bot has no use for are refused.
fn changed(card: &Value, actions: &Value) -> Result<Value, Refusal> {
    let bad = |why: String| (BAD_FIELD, why);
    let actions: Vec<Value> = actions
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| bad(String::from("actions are no JSON string of a list")))?;
    if actions.is_empty() {
        return Err(bad(String::from("no actions")));
    }
    let mut card = card.clone();
    for action in &actions {
        let (params, kind) = (&action["params"], &action["action"]);
        if kind != "partial_update_element" {
            return Err(bad(format!("the action {kind}")));
        }
        let id = params["element_id"].as_str().unwrap_or_default();
        let parts = params["partial_element"].as_object();
        let parts = parts.ok_or_else(|| bad(String::from("partial_element is no object")))?;
        let element = find(&mut card, id).ok_or_else(|| (NO_ELEMENT, format!("no element {id:?}")))?;
        for (name, value) in parts {
            if name == "tag" {
                return Err((TAG_CHANGED, format!("the tag of {id}")));
            }
            element[name.as_str()] = value.clone();
        }
    }
    check_card(&card).map_err(|why| (BAD_CARD, why))?;
    Ok(card)
}

/// The element with this id, wherever it is.
fn find<'a>(node: &'a mut Value, id: &str) -> Option<&'a mut Value> {
    if node["element_id"] == id {
        return Some(node);
    }
    match node {
        Value::Array(items) => items.iter_mut().find_map(|item| find(item, id)),
        Value::Object(members) => members.values_mut().find_map(|item| find(item, id)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
