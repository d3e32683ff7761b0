//! Files and images of the bot: their bytes, before a message names them.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::json;

use super::Shared;
use super::handlers::{begin, failure, finish};

/// The file is empty, or too large.
const BAD_SIZE: i64 = 234_010;
const BAD_FORM: i64 = 234_001;

/// The bytes of a file or an image that a message may name.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) image: bool,
}

/// `POST /im/v1/files`.
pub(super) async fn file(State(shared): State<Shared>, headers: HeaderMap, form: Bytes) -> Response {
    take(&shared, &headers, form, false).await
}

/// `POST /im/v1/images`.
pub(super) async fn image(State(shared): State<Shared>, headers: HeaderMap, form: Bytes) -> Response {
    take(&shared, &headers, form, true).await
}

async fn take(shared: &Shared, headers: &HeaderMap, form: Bytes, image: bool) -> Response {
    let endpoint = if image { "image" } else { "file" };
    let lost = match begin(shared, endpoint, headers, &json!({})).await {
        Ok(lost) => lost,
        Err(answer) => return answer,
    };
    let Some(upload) = read(headers, &form, image) else {
        shared
            .stage
            .lock()
            .violation("a form of a file that is not as the platform wants it");
        return failure(BAD_FORM, "Invalid request param.");
    };
    let most = if image { 10 << 20 } else { 30 << 20 };
    if upload.bytes.is_empty() || upload.bytes.len() > most {
        shared.stage.lock().violation(format!("a file of {} bytes", upload.bytes.len()));
        return failure(BAD_SIZE, "File's size can't be 0.");
    }
    let mut keys = shared.keys();
    let key = format!("{endpoint}_v2_{}", keys.uploads.len());
    keys.uploads.insert(key.clone(), upload);
    drop(keys);
    shared.stage.tell_change();
    finish(json!({ format!("{endpoint}_key"): key }), lost)
}

/// The parts of the form: none missing, none too many.
fn read(headers: &HeaderMap, body: &[u8], image: bool) -> Option<Upload> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let boundary = format!("--{}", kind.strip_prefix("multipart/form-data; boundary=")?);
    let (mut name, mut kind, mut bytes) = (None, None, None);
    for (field, value) in parts(body, boundary.as_bytes())? {
        let text = || String::from_utf8(value.to_vec()).ok();
        match (field.as_str(), image) {
            ("image_type", true) | ("file_type", false) => kind = text(),
            ("file_name", false) => name = text(),
            ("image", true) | ("file", false) => bytes = Some(value.to_vec()),
            _ => return None,
        }
    }
    let kinds: &[&str] = if image {
        &["message"]
    } else {
        &["opus", "mp4", "pdf", "doc", "xls", "ppt", "stream"]
    };
    kinds.contains(&kind?.as_str()).then_some(())?;
    Some(Upload {
        name: if image { String::new() } else { name? },
        bytes: bytes?,
        image,
    })
}

fn parts<'a>(mut rest: &'a [u8], boundary: &[u8]) -> Option<Vec<(String, &'a [u8])>> {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|window| window == what);
    let mut found = Vec::new();
    rest = rest.strip_prefix(boundary)?;
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let (body, end) = (find(part, b"\r\n\r\n")? + 4, find(part, &[b"\r\n", boundary].concat())?);
        let head = std::str::from_utf8(part.get(..body)?).ok()?;
        let name = head.split_once("form-data; name=\"")?.1.split_once('"')?.0;
        found.push((name.to_owned(), part.get(body..end)?));
        rest = part.get(end + 2 + boundary.len()..)?;
    }
    (rest == b"--\r\n").then_some(found)
}
