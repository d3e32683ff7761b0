//! A server that is a child process: a message a line, over its standard input and output.

use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::message::reply;
use super::waiting::{MAX_MESSAGE, RpcConnection, RpcTrouble};

/// Messages that the server has not taken yet. We offer nothing that it could ask for but signs of life: who asks for more of them than this
/// without taking any is left.
const MOST: usize = 64;

/// The way to a child process.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    lines: mpsc::Sender<PipeLine>,
}

#[derive(Debug)]
struct PipeLine {
    text: Vec<u8>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

impl PipeLine {
    fn of(message: &Value, written: Option<oneshot::Sender<io::Result<()>>>) -> Self {
        let mut text = message.to_string().into_bytes();
        text.push(b'\n');
        Self { text, written }
    }
}

impl Pipe {
    /// Begins to speak.
    pub(super) fn over<R, W>(output: R, input: W, waiting: &Arc<RpcConnection>) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (lines, queue) = mpsc::channel(MOST);
        tokio::spawn(write(input, queue, Arc::clone(waiting)));
        tokio::spawn(read(output, lines.clone(), Arc::clone(waiting)));
        Self { lines }
    }

    /// Sends one message.
    pub(super) async fn send(&self, message: &Value) -> Result<(), RpcTrouble> {
        let ended = || RpcTrouble::NotSent(String::from("it has ended"));
        let (written, told) = oneshot::channel();
        self.lines.send(PipeLine::of(message, Some(written))).await.map_err(|_| ended())?;
        match told.await {
            Ok(Ok(())) => Ok(()),
            // A message ends with its line; of one whose line was not taken nothing is carried out.
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Err(ended()),
            Ok(Err(_)) | Err(_) => Err(RpcTrouble::Broken(String::from("the request broke off"))),
        }
    }
}

/// Ends the server's input when we leave.
async fn write(mut input: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<PipeLine>, waiting: Arc<RpcConnection>) {
    let sending = async {
        while let Some(line) = queue.recv().await {
            let mut done = input.write_all(&line.text).await;
            if done.is_ok() {
                done = input.flush().await;
            }
            let failed = done.is_err();
            if let Some(written) = line.written {
                let _ = written.send(done);
            }
            if failed {
                break;
            }
        }
    };
    tokio::select! {
        () = sending => (),
        () = waiting.over.cancelled() => (),
    }
}

async fn read(output: impl AsyncRead + Unpin, lines: mpsc::Sender<PipeLine>, waiting: Arc<RpcConnection>) {
    let mut output = BufReader::new(output);
    let listening = async {
        let mut line = Vec::new();
        while let Ok(true) = next_line(&mut output, &mut line).await {
            for (id, alive) in waiting.take(&line, None) {
                if lines.try_send(PipeLine::of(&reply(&id, alive), None)).is_err() {
                    warn!("an MCP server asks and does not take the answers; leaving it");
                    return;
                }
            }
        }
    };
    tokio::select! {
        () = listening => (),
        () = waiting.leave.cancelled() => (),
    }
    waiting.end();
}

/// The next line into `line`, the last one also without its end; false when there is none. A longer one than [`MAX_MESSAGE`] is an error before it is kept in memory.
async fn next_line(output: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<bool> {
    // What a long line took is given back.
    if line.capacity() > MAX_KEPT {
        *line = Vec::new();
    }
    line.clear();
    loop {
        let piece = output.fill_buf().await?;
        if piece.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        if line.len() + taken > MAX_MESSAGE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        line.extend_from_slice(&piece[..taken]);
        output.consume(taken);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Bytes that are kept from one line to the next.
const MAX_KEPT: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// F-T2: lines pass as they are however many there are; one without an end is an error before it fills the memory.
    #[tokio::test]
    async fn a_message_without_end_is_an_error() {
        let many = ("x".repeat(1 << 20) + "\n").repeat(20) + "the last one";
        let (mut output, mut line, mut read) = (BufReader::new(many.as_bytes()), Vec::new(), 0);
        while next_line(&mut output, &mut line).await.unwrap() {
            read += line.len();
        }
        assert_eq!(read, many.len());
        let mut endless = BufReader::new(tokio::io::repeat(b'x'));
        let error = next_line(&mut endless, &mut line).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(line.len() <= MAX_MESSAGE, "{}", line.len());
    }
}
