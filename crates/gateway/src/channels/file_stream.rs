//! A file on its way from a platform.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};

use super::DeliveryError;
use super::answer::{asked_wait, unreachable};

/// Time for a whole file.
const FILE_TIMEOUT: Duration = Duration::from_secs(60);

/// A file whose first bytes are there. Dropping it ends the transfer.
#[derive(Debug)]
pub struct FileStream {
    platform: &'static str,
    /// Its media type by the platform's word, without parameters, in lower case; may be empty.
    pub media_type: String,
    /// How long the platform asked us to wait.
    pub(super) after: Option<Duration>,
    /// Bytes that were looked at before they are given.
    begun: Bytes,
    response: Response,
}

impl FileStream {
    /// Asks `platform` for a file. The answer may be something else: [`FileStream::is_refusal`]. The first of the headers `waits` that is there
    /// says how long to wait.
    pub(super) async fn open(request: RequestBuilder, platform: &'static str, waits: &[&str]) -> Result<Self, DeliveryError> {
        let response = request.timeout(FILE_TIMEOUT).send().await;
        let response = response.map_err(|error| unreachable(platform, &error))?;
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        Ok(Self {
            platform,
            media_type: media_type.trim().to_ascii_lowercase(),
            after: asked_wait(response.headers(), waits),
            begun: Bytes::new(),
            response,
        })
    }

    /// The platform answered with something else than a file; a redirect, too.
    pub(super) fn is_refusal(&self) -> bool {
        !self.response.status().is_success()
    }

    /// The status of the answer, for the log.
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The platform names it as a file.
    pub(super) fn is_named(&self) -> bool {
        self.response.headers().contains_key(CONTENT_DISPOSITION)
    }

    /// Its length by the platform's word.
    pub fn announced(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Its next bytes. `None` means that it is complete.
    ///
    /// # Errors
    /// When the connection breaks, or a minute has passed since its beginning.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, DeliveryError> {
        if !self.begun.is_empty() {
            return Ok(Some(std::mem::take(&mut self.begun)));
        }
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| unreachable(self.platform, &error))
    }

    /// The beginning of what comes, at least `most` bytes of it where there are so many. They are given again.
    pub(super) async fn beginning(&mut self, most: usize) -> Result<&[u8], DeliveryError> {
        let mut bytes = Vec::new();
        while bytes.len() < most
            && let Some(chunk) = self.chunk().await?
        {
            bytes.extend_from_slice(&chunk);
        }
        self.begun = bytes.into();
        Ok(&self.begun)
    }
}
