//! A played pooler in front of a PostgreSQL that hands out transactions: all clients share one session of the server, a transaction each.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

/// The number that asks for TLS in the place of a version.
const TLS: u32 = 80_877_103;

/// A pooler; it ends with this.
pub struct Pooler {
    port: u16,
    _accepting: AbortOnDropHandle<()>,
}

impl Pooler {
    /// In front of `database` of the server on this port of this machine, as the user `postgres`.
    pub async fn start(server: u16, database: &str) -> Self {
        let session = Arc::new(Mutex::new(session(server, database).await));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&session)));
            }
        });
        Self {
            port,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    /// The database's address through it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/pooled?sslmode=disable", self.port)
    }
}

/// A session of the server, ready for the first question.
async fn session(server: u16, database: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
    let mut hello = vec![0, 3, 0, 0];
    for word in ["user", "postgres", "database", database, "client_encoding", "UTF8"] {
        hello.extend(word.bytes());
        hello.push(0);
    }
    hello.push(0);
    let length = u32::try_from(hello.len() + 4).unwrap();
    stream.write_all(&length.to_be_bytes()).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    while message(&mut stream).await.unwrap().0 != b'Z' {}
    stream
}

/// One message: its type, and all of it.
async fn message(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await?;
    let length = stream.read_u32().await?;
    let mut whole = vec![kind];
    whole.extend(length.to_be_bytes());
    whole.resize(usize::try_from(length).unwrap() + 1, 0);
    stream.read_exact(&mut whole[5..]).await?;
    Ok((kind, whole))
}

async fn serve(client: TcpStream, session: Arc<Mutex<TcpStream>>) {
    // It ends when either side does.
    let _ended = pass_on(client, session).await;
}

async fn pass_on(mut client: TcpStream, session: Arc<Mutex<TcpStream>>) -> std::io::Result<()> {
    loop {
        let length = client.read_u32().await?;
        let mut hello = vec![0; usize::try_from(length).unwrap() - 4];
        client.read_exact(&mut hello).await?;
        if hello != TLS.to_be_bytes() {
            break;
        }
        client.write_all(b"N").await?;
    }
    // Welcome, and ready.
    client.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await?;
    let mut asked = Vec::new();
    let mut held: Option<OwnedMutexGuard<TcpStream>> = None;
    loop {
        let (kind, whole) = message(&mut client).await?;
        if kind == b'X' {
            return Ok(());
        }
        asked.extend(whole);
        if kind != b'Q' && kind != b'S' {
            continue;
        }
        let mut server = match held.take() {
            Some(server) => server,
            None => Arc::clone(&session).lock_owned().await,
        };
        server.write_all(&asked).await?;
        asked.clear();
        loop {
            let (kind, whole) = message(&mut server).await?;
            client.write_all(&whole).await?;
            if kind == b'Z' {
                // In a transaction the client keeps the session.
                if whole.last() != Some(&b'I') {
                    held = Some(server);
                }
                break;
            }
        }
    }
}
