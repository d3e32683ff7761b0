//! A played internet: pages on an address of this machine that counts as public, names as the test says, and a canary on every
//! other address of this machine, which nobody may ever connect to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use countersign_agent::tools::Reach;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// The one address of this machine that counts as public.
const SITE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 77));

type Names = Mutex<HashMap<String, Vec<Vec<IpAddr>>>>;

/// The internet; it ends with the value.
pub struct Internet {
    site: SocketAddr,
    canary: SocketAddr,
    caught: Arc<AtomicUsize>,
    names: Arc<Names>,
    seen: Arc<Mutex<Vec<Request<()>>>>,
    _servers: [AbortOnDropHandle<()>; 2],
}

impl Internet {
    /// With a site that answers every path so.
    pub async fn with_site<F: Future<Output = Response> + Send>(page: impl Fn(Request) -> F + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((SITE, 0)).await.unwrap();
        let site = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        let router = Router::new().fallback(move |request: Request| {
            let (parts, body) = request.into_parts();
            requests.lock().unwrap().push(Request::from_parts(parts.clone(), ()));
            page(Request::from_parts(parts, body))
        });
        let served = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        // Both families; what is not the site's own address lands here.
        let trap = TcpListener::bind("[::]:0").await.unwrap();
        let canary = trap.local_addr().unwrap();
        let caught = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&caught);
        let trapped = tokio::spawn(async move {
            while trap.accept().await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self {
            site,
            canary,
            caught,
            names: Arc::default(),
            seen,
            _servers: [AbortOnDropHandle::new(served), AbortOnDropHandle::new(trapped)],
        }
    }

    /// What `name` resolves to, the first time, the second time and so on; the last stays.
    pub fn resolves(&self, name: &str, answers: &[&[IpAddr]]) {
        let mut answers: Vec<Vec<IpAddr>> = answers.iter().map(|answer| answer.to_vec()).collect();
        answers.reverse();
        self.names.lock().unwrap().insert(name.to_owned(), answers);
    }

    /// What a fetch may reach here. Names that no test spoke of lead to the site if they end in `site.example.com`.
    pub fn reach(&self) -> Reach {
        let names = Arc::clone(&self.names);
        let resolve = move |name: &str| {
            let mut names = names.lock().unwrap();
            match names.get_mut(name) {
                Some(answers) if answers.len() > 1 => answers.pop().unwrap(),
                Some(answers) => answers.last().cloned().unwrap_or_default(),
                None if name.ends_with("site.example.com") => vec![SITE],
                None => Vec::new(),
            }
        };
        Reach::played(resolve, &[SITE], &[self.site.port(), self.canary.port()])
    }

    /// An address of the site.
    pub fn url(&self, path: &str) -> String {
        format!("http://site.example.com:{}{path}", self.site.port())
    }

    /// Its IP address.
    pub fn site(&self) -> IpAddr {
        self.site.ip()
    }

    /// The canary's port.
    pub fn trap(&self) -> u16 {
        self.canary.port()
    }

    /// How many connections the canary saw.
    pub fn caught(&self) -> usize {
        self.caught.load(Ordering::SeqCst)
    }

    /// What the site was asked.
    pub fn seen(&self) -> Vec<Request<()>> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}
