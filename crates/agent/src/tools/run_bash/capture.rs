//! One of a command's outputs: read to its end, its head kept.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::domain::foreign::mark_controls;

/// Bytes that are kept of one output.
const KEPT_BYTES: usize = 64 << 10;

/// An output that is being read, or was.
#[derive(Debug)]
pub(super) struct Capture {
    read: Arc<Mutex<CapturedOutput>>,
    reading: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct CapturedOutput {
    head: Vec<u8>,
    bytes: u64,
}

impl Capture {
    /// Reads what comes, so that the command never stands before a full pipe.
    pub(super) fn of(output: Option<impl AsyncRead + Send + Unpin + 'static>) -> Self {
        let read = Arc::new(Mutex::new(CapturedOutput::default()));
        let into = Arc::clone(&read);
        let reading = tokio::spawn(async move {
            let Some(mut output) = output else { return };
            let mut piece = vec![0; 64 << 10];
            while let Ok(length @ 1..) = output.read(&mut piece).await {
                let mut read = into.lock();
                let room = KEPT_BYTES.saturating_sub(read.head.len()).min(length);
                read.head.extend_from_slice(&piece[..room]);
                read.bytes += length as u64;
            }
        });
        Self {
            read,
            reading: AbortOnDropHandle::new(reading),
        }
    }

    /// Waits until the output ends, or until `moment`.
    pub(super) async fn ended_by(mut self, moment: Instant) -> Self {
        let _ = timeout_at(moment, &mut self.reading).await;
        self
    }

    /// Somebody still holds the other end.
    pub(super) fn is_open(&self) -> bool {
        !self.reading.is_finished()
    }

    /// How many bytes there were.
    pub(super) fn bytes(&self) -> u64 {
        self.read.lock().bytes
    }

    /// Is the head less than the whole?
    pub(super) fn is_cut(&self) -> bool {
        self.bytes() > KEPT_BYTES as u64
    }

    /// The head as text. Bytes that are none, and control characters that a reader cannot see, become U+FFFD.
    pub(super) fn text(&self) -> String {
        let read = self.read.lock();
        let mut head = read.head.as_slice();
        if let (true, Err(error)) = (read.bytes > KEPT_BYTES as u64, std::str::from_utf8(head))
            && error.error_len().is_none()
        {
            // Our own cut, in the middle of a character.
            head = &head[..error.valid_up_to()];
        }
        mark_controls(&String::from_utf8_lossy(head))
    }
}
