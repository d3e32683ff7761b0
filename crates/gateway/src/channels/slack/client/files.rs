//! Files: Slack takes the bytes at an address of its own, and posts them when that is told to be complete.
//!
//! Completing has no idempotency key. After a try that may have arrived, Slack is asked first where the file is shared.

use std::time::Duration;

use bytes::Bytes;
use countersign_agent::domain::{FileView, Outbound};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::method::Method;
use super::{SlackClient, receipt, thread};
use crate::channels::answer::ApiAnswer;
use crate::channels::slack::fallback::fallback;
use crate::channels::{BatchSizes, Delivery, DeliveryError, FileUpload, Receipt, UPLOAD_TIMEOUT, is_this_machine};

/// Slack shares a file some time after it was told to; then it is asked again.
const SHARING: Duration = Duration::from_secs(3);

/// Whose hosts take files, beside those of `base_url`.
const HOSTS: [&str; 2] = ["slack.com", "slack-gov.com"];

impl SlackClient {
    /// Has Slack take the bytes; gives its id of the file, which is in no chat yet.
    pub(super) async fn take_in(&self, file: FileUpload) -> Result<String, DeliveryError> {
        let body = json!({"filename": file.name, "length": file.bytes.len().to_string()});
        let answer = self.paced(Method::UploadUrl, "", &body, BatchSizes::MAX_WAIT).await?;
        let (Some(url), Some(id)) = (answer["upload_url"].as_str(), answer["file_id"].as_str()) else {
            return Err(lost("files.getUploadURLExternal names no address", false));
        };
        self.send_bytes(url, file.bytes).await?;
        Ok(id.to_owned())
    }

    /// The address alone says who may write there: the token stays here.
    async fn send_bytes(&self, url: &str, bytes: Bytes) -> Result<(), DeliveryError> {
        let url = upload_address(&self.base_url, url)
            .ok_or_else(|| DeliveryError::Gone(String::from("Slack named an address for the file that is none of its own")))?;
        let request = self.http.post(url).header(CONTENT_TYPE, "application/octet-stream").body(bytes);
        let answer = ApiAnswer::to(request, UPLOAD_TIMEOUT, "Slack", &["retry-after"]).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(DeliveryError::Retry {
            reason: format!("Slack did not take the file: HTTP {}", answer.status.as_u16()),
            after: answer.after,
            // Nothing is in the chat before the upload is completed.
            uncertain: true,
        })
    }

    /// Posts the file that Slack has the bytes of.
    pub(super) async fn complete(&self, delivery: &Delivery, file: &FileView) -> Result<Receipt, DeliveryError> {
        let chat = &delivery.conversation.chat;
        let id = delivery.upload.as_deref().ok_or_else(|| lost("the file was not uploaded", false))?;
        if delivery.again
            && let Some(found) = self.shared(chat, id).await?
        {
            tracing::info!(key = %delivery.key, "an earlier try had arrived");
            return Ok(found);
        }
        let mut body = json!({
            "files": json!([{"id": id, "title": file.name}]).to_string(),
            "channel_id": chat,
        });
        if let Some(thread) = thread(delivery) {
            body["thread_ts"] = json!(thread);
        }
        if let Some(caption) = &file.caption {
            let words = Outbound::Text { text: caption.clone() };
            body["initial_comment"] = json!(fallback(&self.templates, delivery.locale, &words));
        }
        let answer = self.heeding(Method::CompleteUpload, chat, &body).await?;
        // Mostly it is not shared yet, and has no time stamp.
        Ok(share(&answer["files"][0], chat).unwrap_or_default())
    }

    /// Where the file is in `chat`, if it was told to be complete.
    async fn shared(&self, chat: &str, id: &str) -> Result<Option<Receipt>, DeliveryError> {
        match self.paced(Method::FileInfo, chat, &json!({"file": id}), BatchSizes::MAX_WAIT).await {
            Ok(answer) => match share(&answer["file"], chat) {
                Some(receipt) => Ok(Some(receipt)),
                None => Err(lost("the file is not in the chat yet", true)),
            },
            // There is no such file before it is complete.
            Err(refused) if refused.code == "file_not_found" => Ok(None),
            Err(refused) => Err(match refused.error {
                // It may be there. Nobody can say so, and a second one must not be posted.
                DeliveryError::Forbidden(reason) | DeliveryError::Content(reason) => DeliveryError::Gone(reason),
                error @ (DeliveryError::Retry { .. } | DeliveryError::Gone(_)) => error,
            }),
        }
    }
}

fn lost(reason: &str, shared_soon: bool) -> DeliveryError {
    DeliveryError::Retry {
        reason: reason.to_owned(),
        after: shared_soon.then_some(SHARING),
        uncertain: true,
    }
}

/// The message by which the file stands in `chat`.
fn share(file: &Value, chat: &str) -> Option<Receipt> {
    let shares = [&file["shares"]["public"][chat], &file["shares"]["private"][chat]];
    let ts = shares.iter().find_map(|posts| posts[0]["ts"].as_str());
    if let Some(ts) = ts {
        return Some(receipt(ts));
    }
    // In direct chats there may be no time stamp.
    let lists = ["channels", "groups", "ims"].map(|name| file[name].as_array());
    let named = lists.into_iter().flatten().flatten().any(|listed| listed == chat);
    named.then(Receipt::default)
}

/// The address to write a file to, if it is one of Slack's: over TLS, or this machine's when Slack itself is played there.
fn upload_address(base_url: &str, address: &str) -> Option<Url> {
    let (base, url) = (Url::parse(base_url).ok()?, Url::parse(address).ok()?);
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    if is_this_machine(&base) {
        return is_this_machine(&url).then_some(url);
    }
    let host = url.host_str()?;
    let below = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    let ours = HOSTS.iter().any(|domain| below(domain)) || base.host_str().is_some_and(below);
    (url.scheme() == "https" && ours).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// interface §9: a file goes to the platform's own hosts only.
    #[test]
    fn files_go_to_slack_alone() {
        let real = "https://slack.com/api";
        for (base, address, goes) in [
            (real, "https://files.slack.com/upload/v1/abc", true),
            (real, "https://slack.com/upload", true),
            ("https://slack-gov.com/api", "https://files.slack-gov.com/upload/v1/abc", true),
            ("https://slack.corp.example/api", "https://files.slack.com/upload", true),
            (real, "http://files.slack.com/upload", false),
            (real, "https://slack.com.attacker.example/upload", false),
            (real, "https://notslack.com/upload", false),
            (real, "https://files.slack.com@attacker.example/upload", false),
            (real, "https://u:p@files.slack.com/upload", false),
            (real, "http://127.0.0.1:9/upload", false),
            (real, "not an address", false),
            ("http://127.0.0.1:1/api", "http://127.0.0.1:1/upload", true),
            ("http://127.0.0.1:1/api", "https://files.slack.com/upload", false),
        ] {
            assert_eq!(upload_address(base, address).is_some(), goes, "{address} for {base}");
        }
    }

    /// F-K9: a file is in a chat by its time stamp there, or by the chat's name in a list; another chat's share is none.
    #[test]
    fn a_share_is_found_in_its_chat() {
        let shared = json!({"shares": {"private": {"G1": [{"ts": "1780000001.000300"}]}}, "ims": ["D1"], "channels": []});
        assert_eq!(share(&shared, "G1").unwrap().message_id.as_deref(), Some("1780000001.000300"));
        assert_eq!(share(&shared, "D1"), Some(Receipt::default()));
        assert_eq!(share(&shared, "C1"), None);
        assert_eq!(share(&json!({}), "C1"), None);
    }
}
