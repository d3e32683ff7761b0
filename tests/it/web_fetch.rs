//! `web_fetch` against a played internet on this machine: what it gives, what it refuses, and that nothing leads inside.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_agent::domain::EffectClass;
use countersign_agent::tools::{CallHandle, HaltReason, Reach, Tool, ToolError, ToolOutput};
use countersign_gateway::app::install_crypto;
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::sync::Arc;

use crate::support::internet::Internet;
use crate::support::workspace::boot;

fn tool(reach: &Reach) -> Arc<dyn Tool> {
    install_crypto();
    let mut boot = boot(None);
    boot.tools.web_fetch = true;
    countersign_gateway::app::toolbox(&boot, reach).unwrap().get("web_fetch").unwrap()
}

async fn try_fetch(internet: &Internet, url: &str) -> Result<ToolOutput, String> {
    try_within(&internet.reach(), url).await
}

async fn try_within(reach: &Reach, url: &str) -> Result<ToolOutput, String> {
    match tool(reach).run(&json!({ "url": url }), &CallHandle::default()).await {
        Ok(output) => Ok(output),
        Err(ToolError::TellModel(text)) => Err(text),
        Err(ToolError::Unknown(text) | ToolError::Fatal(text)) => panic!("fatal: {text}"),
    }
}

async fn fetch(internet: &Internet, path: &str) -> ToolOutput {
    try_fetch(internet, &internet.url(path)).await.unwrap()
}

async fn refusal(internet: &Internet, path: &str) -> String {
    try_fetch(internet, &internet.url(path)).await.unwrap_err()
}

fn page(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

fn leads_to(status: u16, place: &str) -> Response {
    (StatusCode::from_u16(status).unwrap(), [(header::LOCATION, place.to_owned())]).into_response()
}

const ARTICLE: &str = include_str!("../data/article.html");

/// What the site has under each path.
async fn site(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    match path.as_str() {
        "/" => page("text/plain; charset=utf-8", "hello 你好\n"),
        "/article" => page("text/html; charset=utf-8", ARTICLE),
        "/json" => page("application/json", "{\"a\": 1}"),
        "/feed" => page("application/atom+xml", "<feed/>"),
        "/missing" => (StatusCode::NOT_FOUND, page("text/html", "<h1>Gone</h1>")).into_response(),
        "/untyped" => Response::new(Body::from("plain")),
        "/empty" => page("text/html", "<script>1</script>"),
        "/gbk" => page("text/html; charset=GBK", b"<p>\xc4\xe3\xba\xc3".to_vec()),
        "/meta" => page(
            "text/html",
            b"<html><head><meta charset='gb2312'><title>\xc4\xe3\xba\xc3</title>".to_vec(),
        ),
        "/marked" => page("text/plain; charset=gbk", "\u{feff}你好"),
        "/odd" => page("text/plain", b"a\xff\0b\x1b[31m".to_vec()),
        "/image" => page("image/png", "\u{89}PNG"),
        "/binary" => page("application/octet-stream", "MZ"),
        "/gzip" => ([(header::CONTENT_ENCODING, "gzip")], page("text/plain", "\u{1f}\u{8b}")).into_response(),
        "/endless" => {
            let piece = Bytes::from(vec![b'x'; 64 << 10]);
            page("text/plain", Body::from_stream(stream::repeat(piece).map(Ok::<_, std::io::Error>)))
        }
        "/silent" => page("text/plain", Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>())),
        "/broken" => {
            let half = stream::once(async { Ok(Bytes::from_static(b"half")) });
            // What was said so far is sent when the rest is not there yet.
            let broken = stream::once(async {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                Err(std::io::Error::other("scripted"))
            });
            page("text/plain", Body::from_stream(half.chain(broken)))
        }
        "/cookie" => ([(header::SET_COOKIE, "a=b; Path=/")], leads_to(302, "/")).into_response(),
        "/again" => leads_to(302, "/again"),
        "/three" => leads_to(301, "/two"),
        "/two" => leads_to(307, "one"),
        "/one" => leads_to(308, "/article#part"),
        "/nowhere" => (StatusCode::FOUND, "no place").into_response(),
        "/same" => leads_to(302, "/"),
        to => leads_to(to.trim_start_matches('/').parse().unwrap(), &query),
    }
}

/// design: issue must-show 5 and failures §3.5, a hundred spellings of places inside, and redirections and names that lead
/// there: every one is refused, and the canary that listens on all addresses of this machine sees no connection.
#[tokio::test]
async fn nothing_leads_inside() {
    let internet = Internet::with_site(site).await;
    let port = internet.trap().to_string();
    let table = include_str!("../data/refused_urls.tsv");
    let mut rows = 0;
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        let &[how, url, addresses, words] = row.split('\t').collect::<Vec<_>>().as_slice() else {
            panic!("{row}");
        };
        let url = url.replace("{port}", &port);
        let addresses: Vec<IpAddr> = addresses.split(' ').filter_map(|address| address.parse().ok()).collect();
        if let Some(name) = reqwest::Url::parse(&url).ok().and_then(|url| url.domain().map(str::to_owned)) {
            internet.resolves(&name, &[&addresses]);
        }
        let told = match how {
            "url" => try_fetch(&internet, &url).await.expect_err(row),
            // A redirection to another place is told to the model, whatever the place is: nothing is asked there.
            status => match try_fetch(&internet, &internet.url(&format!("/{status}?{url}"))).await {
                Ok(output) => output.text,
                Err(refused) => refused,
            },
        };
        assert!(words == "-" || told.contains(words), "{row}: {told}");
        assert_eq!(internet.caught(), 0, "{row}");
        rows += 1;
    }
    assert!(rows >= 60, "{rows}");
    // The canary sings when somebody does come.
    let _connected = tokio::net::TcpStream::connect(("127.0.0.1", internet.trap())).await.unwrap();
    crate::support::api::eventually("the canary", || async { (internet.caught() == 1).then_some(()) }).await;
}

/// design: failures §3.5, a name that means the public internet when it is looked at and this machine afterwards: what was
/// looked at is what is connected to, and each hop is looked at anew.
#[tokio::test]
async fn a_name_that_changes_its_mind_leads_nowhere_else() {
    let internet = Internet::with_site(site).await;
    let inside: IpAddr = "127.0.0.1".parse().unwrap();
    let (name, port) = (
        "rebind.example.com",
        internet.url("/").rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned(),
    );
    internet.resolves(name, &[&[internet.site()], &[inside]]);
    let fetched = try_fetch(&internet, &format!("http://{name}:{port}/")).await.unwrap();
    assert!(fetched.text.contains("hello"), "{}", fetched.text);
    // The second hop asks again, and hears something else.
    internet.resolves(name, &[&[internet.site()], &[inside]]);
    let refused = try_fetch(&internet, &format!("http://{name}:{port}/same")).await.unwrap_err();
    assert!(refused.contains("does not lead to the public internet"), "{refused}");
    internet.resolves(name, &[&[internet.site()], &[internet.site(), inside]]);
    try_fetch(&internet, &format!("http://{name}:{port}/same")).await.unwrap_err();
    assert_eq!(internet.caught(), 0);
}

/// design: failures §3.5, a public address that this machine has leads inside like any other: spelled out, by name and by redirection.
#[tokio::test]
async fn our_own_public_address_leads_nowhere() {
    let internet = Internet::with_site(site).await;
    let own: IpAddr = "93.184.215.14".parse().unwrap();
    internet.resolves("own.example.com", &[&[internet.site(), own]]);
    let reach = internet.reach().from_behind(&[own]);
    let port = internet.trap();
    for url in [
        format!("http://93.184.215.14:{port}/"),
        format!("http://0x5db8d70e:{port}/"),
        format!("http://own.example.com:{port}/"),
        internet.url(&format!("/302?http://93.184.215.14:{port}/")),
    ] {
        let refused = try_within(&reach, &url).await.unwrap_err();
        assert!(refused.contains("leads back to this machine"), "{url}: {refused}");
    }
    assert!(try_within(&reach, &internet.url("/")).await.is_ok());
}

/// design: issue part E, text comes as text, with where it came from and how the server answered.
#[tokio::test]
async fn text_is_given_with_its_source() {
    let internet = Internet::with_site(site).await;
    for (path, status, body) in [
        ("/", "200 OK", "hello 你好"),
        ("/json", "200 OK", "{\"a\": 1}"),
        ("/feed", "200 OK", "<feed/>"),
        ("/untyped", "200 OK", "plain"),
        ("/missing", "404 Not Found", "# Gone"),
        ("/empty", "200 OK", "(no text)"),
        ("/gbk", "200 OK", "你好"),
        ("/marked", "200 OK", "你好"),
        ("/odd", "200 OK", "a\u{fffd}\u{fffd}b\u{fffd}[31m"),
        ("/nowhere", "302 Found", "no place"),
    ] {
        let output = fetch(&internet, path).await;
        assert_eq!(output.text, format!("url: {}\nstatus: {status}\n\n{body}", internet.url(path)));
        assert!(!output.truncated);
    }
    let output = fetch(&internet, "/meta").await;
    assert_eq!(
        output.text,
        format!("url: {}\nstatus: 200 OK\ntitle: 你好\n\n(no text)", internet.url("/meta"))
    );
    assert_eq!(internet.caught(), 0);
}

/// design: HTML becomes what a reader would see.
#[tokio::test]
async fn html_becomes_text() {
    let internet = Internet::with_site(site).await;
    let output = fetch(&internet, "/article").await;
    insta::assert_snapshot!(output.text.replace(&internet.url(""), "http://site"));
}

/// design: failures I7, hostile HTML costs its length: elements that are opened without end, unclosed ones, one huge attribute.
#[tokio::test]
async fn hostile_html_costs_its_length() {
    let bad = [
        "<div>".repeat(80_000),
        "<a href=x>".repeat(40_000),
        format!("{}text", "<svg><li><table>".repeat(25_000)),
        format!("<p title=\"{}\">end</p>", "x".repeat(400_000)),
        format!("<b {}>end", (0..30_000).map(|n| format!("a{n}=1 ")).collect::<String>()),
        format!("<!-- {}", "<!--".repeat(100_000)),
        "&amp;".repeat(80_000),
        "<".repeat(400_000),
        "<pre>\n".repeat(60_000),
    ];
    for html in bad {
        let start: String = html.chars().take(20).collect();
        let internet = Internet::with_site(move |_| {
            let html = html.clone();
            async move { page("text/html", html) }
        })
        .await;
        let began = Instant::now();
        let output = fetch(&internet, "/").await;
        assert!(output.text.len() <= 64 << 10);
        assert!(began.elapsed() < Duration::from_secs(60), "{start}: {:?}", began.elapsed());
    }
}

/// design: failures §3.5, redirections are followed five times at most and say where they end; nothing is sent along.
#[tokio::test]
async fn redirections_are_followed_by_hand() {
    let internet = Internet::with_site(site).await;
    let output = fetch(&internet, "/three").await;
    assert!(
        output.text.starts_with(&format!("url: {}\n", internet.url("/article#part"))),
        "{}",
        output.text
    );
    internet.seen();
    let refused = refusal(&internet, "/again").await;
    assert_eq!(
        refused,
        format!("more than 5 redirections; the last one to {}", internet.url("/again"))
    );
    assert_eq!(internet.seen().len(), 6);
    fetch(&internet, "/cookie").await;
    for request in internet.seen() {
        let mut names: Vec<&str> = request.headers().keys().map(axum::http::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
        assert_eq!(request.headers()["accept-encoding"], "identity");
    }
}

/// interface §5: a person's OK was for one address. A redirection to another scheme, host or port is told to the model, and nobody is asked there.
#[tokio::test]
async fn a_redirection_to_another_place_is_told() {
    let internet = Internet::with_site(site).await;
    let port = internet.url("").rsplit_once(':').unwrap().1.to_owned();
    for place in [
        format!("http://other.site.example.com:{port}/?d=secret"),
        format!("http://127.0.0.77:{port}/"),
        format!("https://site.example.com:{port}/"),
        format!("http://site.example.com:{}/", internet.trap()),
        "https://site.example.com/".to_owned(),
    ] {
        let first = internet.url(&format!("/302?{place}"));
        let output = try_fetch(&internet, &first).await.expect(&place);
        assert_eq!(
            output.text,
            format!("url: {first}\nstatus: 302 Found\n\nIt leads on to {place}. Call web_fetch with that address if you need it.")
        );
        assert_eq!(internet.seen().len(), 1, "{place}");
    }
    assert_eq!(internet.caught(), 0);
}

/// design: issue part E, two MiB are read and the cut is told; what is no text, packed or broken off is refused in words.
#[tokio::test]
async fn sizes_and_kinds_are_bounded() {
    let internet = Internet::with_site(site).await;
    let output = fetch(&internet, "/endless").await;
    assert!(output.truncated && output.text.len() <= 64 << 10);
    assert!(output.text.ends_with("x\n[cut: the page goes on]"));
    for (path, words) in [
        ("/image", "is no text: image/png"),
        ("/binary", "is no text: application/octet-stream"),
        ("/gzip", "comes encoded"),
        ("/broken", "broke off"),
    ] {
        let refused = refusal(&internet, path).await;
        assert!(
            refused.starts_with(&format!("{} (status 200 OK)", internet.url(path))) && refused.contains(words),
            "{refused}"
        );
    }
    let refused = try_fetch(&internet, "http://unknown.example.com/").await.unwrap_err();
    assert_eq!(
        refused,
        "http://unknown.example.com/ cannot be fetched: there is no such name, nobody answers, or the connection failed"
    );
}

/// design: issue part E, a body that does not come is waited for as long as everything else: twenty seconds, really.
#[tokio::test]
async fn a_silent_body_is_given_up() {
    let internet = Internet::with_site(site).await;
    let tool = tool(&internet.reach());
    let arguments = json!({ "url": internet.url("/silent") });
    let call = CallHandle::default();
    let began = Instant::now();
    let fetched = async {
        let fetched = tool.run(&arguments, &call).await;
        (fetched, began.elapsed())
    };
    let asked = crate::support::api::eventually("the request", || async { (!internet.seen().is_empty()).then_some(()) });
    let ((fetched, took), ()) = tokio::join!(fetched, asked);
    assert_eq!(fetched.unwrap_err().to_string(), "no whole answer within 20 s");
    assert!((19..28).contains(&took.as_secs()), "{took:?}");
}

/// design: issue part F, a fetch ends at once when a person stops the turn.
#[tokio::test]
async fn a_stop_ends_a_fetch_at_once() {
    let internet = Internet::with_site(site).await;
    let (tool, arguments, call) = (
        tool(&internet.reach()),
        json!({ "url": internet.url("/silent") }),
        CallHandle::default(),
    );
    let stopped = async {
        crate::support::api::eventually("the request", || async { (!internet.seen().is_empty()).then_some(()) }).await;
        call.halt.tell(HaltReason::ByPerson);
        Instant::now()
    };
    let (fetched, told) = tokio::join!(tool.run(&arguments, &call), stopped);
    assert_eq!(fetched.unwrap_err().to_string(), "stopped; the request may have reached the server");
    assert!(told.elapsed() < Duration::from_millis(900), "{:?}", told.elapsed());
}

/// design: interface §5, `web_fetch` is a write, there only when it is switched on, and then without any allowance.
#[tokio::test]
async fn it_is_a_write_and_off_unless_switched_on() {
    assert!(
        countersign_gateway::app::toolbox(&boot(None), &Reach::default())
            .unwrap()
            .specs()
            .is_empty()
    );
    let tool = tool(&Reach::default());
    assert_eq!(tool.spec().effect, EffectClass::Write);
    for url in [
        "http://127.0.0.77/",
        "http://localhost/",
        "http://[::1]/",
        "http://example.com:8080/",
    ] {
        tool.run(&json!({ "url": url }), &CallHandle::default()).await.expect_err(url);
    }
}
