//! Files of the bot: the address to write one to, the bytes, and the post that shares it.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::{known, moment, thread};
use super::handlers::{Answer, Refusal, fault_answer, text};
use super::{Shared, Upload};
use crate::posted::{Posted, SharedFile};
use crate::stage::broken;

/// `files.getUploadURLExternal`.
pub(super) fn address(shared: &Shared, arguments: &Value, headers: &HeaderMap) -> Answer {
    known(arguments, &["filename", "length", "alt_txt", "snippet_type"])?;
    let name = text(arguments, "filename")?;
    let length: usize = text(arguments, "length")?.parse().unwrap_or(0);
    if length == 0 {
        return Err(Refusal::objection("invalid_arguments", "a file without a length"));
    }
    let mut uploads = shared.uploads();
    let id = format!("F0FILE{}", uploads.len());
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let url = format!("http://{host}/upload/v1/{id}");
    uploads.insert(
        id.clone(),
        Upload {
            name: name.to_owned(),
            length,
            bytes: None,
            complete: false,
        },
    );
    Ok(json!({ "upload_url": url, "file_id": id }))
}

/// `POST /upload/v1/{id}`: the address itself is the right to write there.
pub(super) async fn bytes(State(shared): State<Shared>, Path(id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let lost = match shared
        .stage
        .begin_call("bytes", &json!({ "id": id, "length": body.len() }), fault_answer)
        .await
    {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    if headers.contains_key(header::AUTHORIZATION) {
        shared.stage.lock().violation("the token was sent to the address of a file");
    }
    let taken = match shared.uploads().get_mut(&id) {
        Some(upload) if upload.length == body.len() => {
            upload.bytes = Some(body.clone());
            true
        }
        Some(_) | None => false,
    };
    shared.stage.tell_change();
    match (taken, lost) {
        (true, true) => broken(),
        (true, false) => format!("OK - {}", body.len()).into_response(),
        (false, _) => {
            shared.stage.lock().violation(format!("bytes for {id} that were not told before"));
            StatusCode::BAD_REQUEST.into_response()
        }
    }
}

/// `files.completeUploadExternal`: the file gets into the chat, as often as this is said.
pub(super) fn complete(shared: &Shared, arguments: &Value) -> Answer {
    known(arguments, &["files", "channel_id", "thread_ts", "initial_comment"])?;
    let channel = text(arguments, "channel_id")?;
    let files: Value = serde_json::from_str(text(arguments, "files")?).unwrap_or_default();
    let id = files[0]["id"]
        .as_str()
        .ok_or_else(|| Refusal::objection("invalid_arguments", format!("files {files}")))?;
    if arguments["initial_comment"].as_str().is_some_and(|words| words.contains("<!")) {
        return Err(Refusal::objection("invalid_arguments", "a caption that calls everybody"));
    }
    let root = thread(shared, channel, arguments)?;
    let (name, bytes) = {
        let mut uploads = shared.uploads();
        let Some(upload) = uploads.get_mut(id) else {
            return Err(Refusal::fair("file_not_found"));
        };
        let Some(bytes) = upload.bytes.clone() else {
            return Err(Refusal::fair("file_not_found"));
        };
        if std::mem::replace(&mut upload.complete, true) {
            shared.stage.lock().violation(format!("{id} was completed twice"));
        }
        (upload.name.clone(), bytes)
    };
    let ts = shared.workspace.stamp(channel, root, None);
    let content = json!({ "text": arguments["initial_comment"].as_str().unwrap_or_default(), "blocks": [] });
    let mut memory = shared.stage.lock();
    memory.files.push(SharedFile {
        chat: channel.to_owned(),
        message: ts.clone(),
        name,
        bytes: bytes.to_vec(),
    });
    memory.messages.push(Posted {
        id: ts.clone(),
        chat: channel.to_owned(),
        reply_to: root.map(str::to_owned),
        in_thread: root.is_some(),
        kind: String::from("file"),
        versions: vec![content.clone()],
        content,
        uuid: id.to_owned(),
        at: moment(&ts),
    });
    // As on the platform: where the file is shared is told later.
    Ok(json!({ "files": [{ "id": id, "title": files[0]["title"], "shares": {} }] }))
}

/// `files.info`. A file of ours that is not complete is not there, unless it is known early; one of a person is.
pub(super) fn info(shared: &Shared, arguments: &Value, headers: &HeaderMap) -> Answer {
    known(arguments, &["file"])?;
    let id = text(arguments, "file")?;
    if let Some(file) = shared.stage.lock().sent.get(id) {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        return Ok(json!({ "file": {
            "id": id, "name": file.name, "mimetype": file.media_type, "size": file.bytes.len(),
            "url_private_download": format!("http://{host}/files/{id}"),
        } }));
    }
    let complete = shared.uploads().get(id).is_some_and(|upload| upload.complete);
    let early = shared.stage.lock().knows_files_early && shared.uploads().contains_key(id);
    if !complete && !early {
        return Err(Refusal::fair("file_not_found"));
    }
    let memory = shared.stage.lock();
    let mut shares = json!({});
    for post in memory.messages.iter().filter(|post| post.uuid == id) {
        shares[&post.chat] = json!([{ "ts": post.id, "thread_ts": post.reply_to }]);
    }
    Ok(json!({ "file": { "id": id, "shares": { "private": shares } } }))
}
