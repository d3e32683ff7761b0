//! A proxy on loopback, as companies have them: it opens tunnels by `CONNECT`, perhaps only for those who say a name and a password.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// See above.
pub struct Proxy {
    pub addr: SocketAddr,
    asked: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Proxy {
    /// One whose tunnels all lead to `to`, whatever they are asked for. With `credentials` (`name:password`) it opens none without them.
    pub async fn start(to: SocketAddr, credentials: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::default();
        let book = Arc::clone(&asked);
        let wanted = credentials.map(|credentials| format!("basic {}", STANDARD.encode(credentials)));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (book, wanted) = (Arc::clone(&book), wanted.clone());
                tokio::spawn(async move { tunnel(client, to, wanted, &book).await });
            }
        });
        Self { addr, asked }
    }

    /// What it was asked for, as `host:port`, and whether it opened the tunnel.
    pub fn asked(&self) -> Vec<(String, bool)> {
        self.asked.lock().unwrap().clone()
    }
}

async fn tunnel(client: TcpStream, to: SocketAddr, wanted: Option<String>, book: &Mutex<Vec<(String, bool)>>) -> Option<()> {
    let mut client = BufReader::new(client);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let target = head.first()?.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let given = head.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
    });
    // The scheme's name is no matter of case.
    let given = given
        .and_then(|given| given.split_once(' '))
        .map(|(scheme, rest)| format!("{} {rest}", scheme.to_lowercase()));
    let opens = wanted.is_none() || wanted == given;
    book.lock().unwrap().push((target, opens));
    if !opens {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm=\"p\"\r\ncontent-length: 0\r\n\r\n";
        return client.write_all(refusal).await.ok();
    }
    let mut server = TcpStream::connect(to).await.ok()?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}
