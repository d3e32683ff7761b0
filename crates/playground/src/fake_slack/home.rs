//! The Home tab of the app: one view a person, the latest.

use serde_json::{Value, json};

use super::handlers::{Answer, Refusal, text};
use super::{FORM_HASH, Shared};
use crate::check_message;
use crate::posted::Posted;

/// `views.publish`.
pub(super) fn publish(shared: &Shared, arguments: &Value) -> Answer {
    super::chat::known(arguments, &["user_id", "view", "hash"])?;
    let user = text(arguments, "user_id")?;
    if !user.starts_with(['U', 'W']) {
        return Err(Refusal::objection("user_not_found", user));
    }
    let view = &arguments["view"];
    let problems = check_message(view);
    if view["type"] != "home" || !problems.is_empty() {
        return Err(Refusal::objection("invalid_arguments", problems.join("; ")));
    }
    let content = json!({ "text": "", "blocks": view["blocks"] });
    let id = format!("V0HOME{user}");
    let mut memory = shared.stage.lock();
    let at = shared.stage.now();
    match memory.homes.iter_mut().find(|home| home.id == id) {
        Some(home) => {
            home.content = content.clone();
            home.versions.push(content);
        }
        None => memory.homes.push(Posted {
            id: id.clone(),
            chat: user.to_owned(),
            reply_to: None,
            in_thread: false,
            kind: String::from("home"),
            versions: vec![content.clone()],
            content,
            uuid: String::new(),
            at,
        }),
    }
    Ok(json!({ "view": { "id": id, "type": "home", "hash": FORM_HASH } }))
}
