//! The body of a refused request is still read for a while, so that its sender gets the refusal and not a broken pipe:
//! closing a socket with unread bytes resets it, and a reset may overtake the answer.
//!
//! It cannot be replaced by reading first: a request is refused for its path, its headers or its length before a byte of its body is
//! read, and what is too long must not be held in memory.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// So much of a refused body is read, and no more.
const MOST: usize = 64 << 20;
/// Reading on ends after this time.
const TIME: Duration = Duration::from_secs(5);
/// So many are read on at a time. In a flood the others hear a broken pipe.
static PLACES: Semaphore = Semaphore::const_new(64);

/// Wraps the body of every request that has one.
pub(super) async fn linger(request: Request, next: Next) -> Response {
    let wrap = |body: Body| {
        if body.is_end_stream() {
            body
        } else {
            Body::from_stream(Lingering::of(body))
        }
    };
    next.run(request.map(wrap)).await
}

/// A body that is read on in the background when it is dropped before its end. The webhooks make it themselves: to wrap it into
/// another body, and every route into another layer, is dear where thousands of requests come in a second.
pub(super) struct Lingering(Option<BodyDataStream>);

impl Lingering {
    /// Reads `body` on when it is dropped.
    pub(super) fn of(body: Body) -> Self {
        Self((!body.is_end_stream()).then(|| body.into_data_stream()))
    }
}

impl Stream for Lingering {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.0 else { return Poll::Ready(None) };
        let polled = stream.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let (Some(stream), Ok(runtime), Ok(place)) = (self.0.take(), Handle::try_current(), PLACES.try_acquire()) {
            runtime.spawn(async move {
                // Over or not, nobody waits for it.
                let _ = tokio::time::timeout(TIME, discard(stream)).await;
                drop(place);
            });
        }
    }
}

async fn discard(mut stream: BodyDataStream) {
    let mut read = 0;
    while let Some(Ok(chunk)) = stream.next().await {
        read += chunk.len();
        if read > MOST {
            return;
        }
    }
}
