//! Files and images: Lark takes the bytes first, and a message names them.
//!
//! Messages have an idempotency key. Bytes that no message names stay unseen.

use bytes::Bytes;
use countersign_agent::domain::{FileView, Outbound};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::{LarkClient, LarkFailure, rates};
use crate::channels::{BatchSizes, Delivery, DeliveryError, FileUpload, Receipt, UPLOAD_TIMEOUT};

/// Longer images go as files.
const MAX_IMAGE_BYTES: u64 = 10 << 20;
/// What becomes of the idempotency key in the message that says the caption.
const CAPTION: &str = "_c";

/// Is it posted as an image, which people see at once, or as a file, which has its name?
fn is_image(media_type: &str, bytes: u64) -> bool {
    bytes <= MAX_IMAGE_BYTES && media_type.starts_with("image/")
}

impl LarkClient {
    /// Has Lark take the bytes; gives its key of the file or image, which is in no chat yet.
    pub(super) async fn take_in(&self, file: FileUpload) -> Result<String, DeliveryError> {
        let image = is_image(&file.media_type, file.bytes.len() as u64);
        let (path, fields, part, key) = if image {
            ("images", vec![("image_type", "message")], "image", "image_key")
        } else {
            let fields = vec![("file_type", kind_of(&file.name)), ("file_name", file.name.as_str())];
            ("files", fields, "file", "file_key")
        };
        let form = UploadForm::new(&fields, part, &file.bytes);
        self.limiter.wait(rates(None), BatchSizes::MAX_WAIT).await?;
        let url = format!("{}/open-apis/im/v1/{path}", self.base_url);
        let request = || {
            let request = self.http.request(Method::POST, &url);
            request.header(CONTENT_TYPE, &form.content_type).body(form.body.clone())
        };
        let answer = self.send_within(UPLOAD_TIMEOUT, request).await?;
        answer["data"][key]
            .as_str()
            .filter(|key| super::is_id(key))
            .map(str::to_owned)
            .ok_or_else(|| LarkFailure::nonsense("Lark took the file and gave it no key").into())
    }

    /// Posts the file that Lark has the bytes of, and its caption below it.
    pub(super) async fn post_file(&self, delivery: &Delivery, reply_to: Option<&str>, file: &FileView) -> Result<Receipt, DeliveryError> {
        let key = delivery.upload.as_deref();
        let key = key.ok_or_else(|| DeliveryError::from(LarkFailure::nonsense("the file was not uploaded")))?;
        let (kind, content) = if is_image(&file.media_type, file.bytes) {
            ("image", json!({"image_key": key}))
        } else {
            ("file", json!({"file_key": key}))
        };
        let body = json!({"msg_type": kind, "content": content.to_string()});
        let receipt = self.post(delivery, &delivery.key, reply_to, body).await?;
        if let Some(caption) = &file.caption {
            let words = self.compose(&Outbound::Text { text: caption.clone() }, delivery)?;
            let said = self.post(delivery, &format!("{}{CAPTION}", delivery.key), reply_to, words).await;
            match said {
                // Tried again, the file itself is not posted twice. It is there: nobody may take its row for one that never left.
                Err(DeliveryError::Retry { reason, after, .. }) => {
                    let uncertain = true;
                    return Err(DeliveryError::Retry { reason, after, uncertain });
                }
                Err(error) => tracing::warn!(key = %delivery.key, %error, "the caption of a file was refused"),
                Ok(_) => (),
            }
        }
        Ok(receipt)
    }
}

/// `file_type` of the API.
fn kind_of(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("pdf") => "pdf",
        Some("doc" | "docx") => "doc",
        Some("xls" | "xlsx") => "xls",
        Some("ppt" | "pptx") => "ppt",
        Some("mp4") => "mp4",
        _ => "stream",
    }
}

/// A body of `multipart/form-data`. It may be sent twice.
#[derive(Clone, Debug)]
struct UploadForm {
    content_type: String,
    body: Bytes,
}

impl UploadForm {
    /// These fields, and `file` as the part `part`.
    fn new(fields: &[(&str, &str)], part: &str, file: &Bytes) -> Self {
        let boundary = Self::boundary(fields, file);
        let mut body = Vec::with_capacity(file.len() + 1024);
        for (name, value) in fields {
            let field = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend_from_slice(field.as_bytes());
        }
        // The file's own name is a field: what stands here may hold no quotes.
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"file\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(file);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        Self {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            body: body.into(),
        }
    }

    /// A line that is in none of the parts: made of all of them, so that nobody can write a file that holds it.
    fn boundary(fields: &[(&str, &str)], file: &Bytes) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for (name, value) in fields {
            hash.update(name.as_bytes());
            hash.update(value.as_bytes());
        }
        hash.update(file);
        format!("countersign-{}", &hex::encode(hash.finalize())[..40])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface: a name is a field as it is, whatever stands in it.
    #[test]
    fn a_form_holds_name_and_bytes_as_they_are() {
        let name = "a\"b 汇总; name=x.csv";
        let form = UploadForm::new(
            &[("file_type", "stream"), ("file_name", name)],
            "file",
            &Bytes::from_static(b"\0\r\n--x"),
        );
        let boundary = form.content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let text = String::from_utf8(form.body.to_vec()).unwrap();
        let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
        assert_eq!(parts.len(), 5, "{text}");
        assert_eq!(
            parts[2],
            format!("\r\nContent-Disposition: form-data; name=\"file_name\"\r\n\r\n{name}\r\n")
        );
        assert!(parts[3].ends_with("\r\n\r\n\0\r\n--x\r\n"), "{text}");
        assert_eq!(parts[4], "--\r\n");
    }

    /// reach: Lark names the kind of a file by its extension; images have a limit of their own.
    #[test]
    fn kinds_are_larks() {
        for (name, kind) in [
            ("a.PDF", "pdf"),
            ("a.docx", "doc"),
            ("a.xls", "xls"),
            ("a.csv", "stream"),
            ("pdf", "stream"),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
        assert!(is_image("image/png", 10 << 20) && !is_image("image/png", (10 << 20) + 1) && !is_image("text/plain", 1));
    }
}
