//! Where people and the platform reach a fleet: what is pushed goes to all processes at once, byte for byte, and the first good
//! answer is the answer; a question goes to whoever answers it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::sync::mpsc;

use crate::support::api::PATIENCE;

/// See above.
pub struct Front {
    pub base: String,
    replicas: Arc<Mutex<Vec<Option<String>>>>,
}

#[derive(Clone)]
struct Shared {
    http: reqwest::Client,
    replicas: Arc<Mutex<Vec<Option<String>>>>,
}

impl Front {
    /// A front before `places` processes, none of which is there yet.
    pub async fn start(places: usize) -> Self {
        let replicas = Arc::new(Mutex::new(vec![None; places]));
        let http = countersign_agent::tls::http_client().no_proxy().timeout(PATIENCE).build().unwrap();
        let shared = Shared {
            http,
            replicas: Arc::clone(&replicas),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(forward).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base, replicas }
    }

    /// From now on this process stands in this place. `None` means no process.
    pub fn put(&self, place: usize, base: Option<&str>) {
        self.replicas.lock().unwrap()[place] = base.map(str::to_owned);
    }
}

async fn forward(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let replicas: Vec<String> = shared.replicas.lock().unwrap().iter().flatten().cloned().collect();
    let (tell, mut told) = mpsc::unbounded_channel();
    for base in replicas {
        let request = shared
            .http
            .request(method.clone(), format!("{base}{uri}"))
            .headers(headers.clone())
            .body(body.clone());
        let tell = tell.clone();
        // A task of its own: nobody's death or silence holds up what the others get.
        tokio::spawn(async move {
            let Ok(response) = request.send().await else { return };
            let (status, kind) = (response.status(), response.headers().get("content-type").cloned());
            // An answer that breaks off is none.
            if let Ok(body) = response.bytes().await {
                let _ = tell.send((status, kind, body));
            }
        });
    }
    drop(tell);
    let mut answer = (StatusCode::BAD_GATEWAY, None, Bytes::from_static(b"nobody answers"));
    while let Some(next) = told.recv().await {
        let good = next.0.is_success();
        answer = next;
        if good {
            break;
        }
    }
    let (status, kind, body) = answer;
    let mut response = (status, body).into_response();
    if let Some(kind) = kind {
        response.headers_mut().insert("content-type", kind);
    }
    response
}
