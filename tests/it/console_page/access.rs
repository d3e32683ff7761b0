//! Who may see and press: names, origins, sessions, tries; what the pages forbid the browser.

use super::{OURS, form, say};
use crate::support::api::eventually;
use crate::support::quiet::quiet;
use crate::support::raw::{get, headers, post, send};
use crate::support::scripts::reporter;
use crate::support::world::World;

const TOKEN: &str = "console-token-0123456789abcdef";

/// interface 3: `/` leads to the console; every page forbids what it does not need, and has nothing inline or from elsewhere.
#[tokio::test]
async fn pages_forbid_what_they_do_not_need() {
    let world = World::start(&[], reporter).await;
    for path in ["/", "/console"] {
        let reply = get(&world, path).await;
        assert_eq!((reply.status, reply.header("location")), (302, "/console/"));
    }
    let page = get(&world, "/console/").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(
        page.header("content-security-policy"),
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    for inline in [" style=", "<style", " onclick", "<script>", "https://", "//cdn"] {
        assert!(!page.text.contains(inline), "{inline}");
    }
    let mut weight = page.text.len();
    for mark in ["href=\"/console/static/", "src=\"/console/static/"] {
        let (_, rest) = page.text.split_once(mark).unwrap();
        let name = rest.split('"').next().unwrap();
        let file = get(&world, &format!("/console/static/{name}")).await;
        assert_eq!(
            (file.status, file.header("cache-control")),
            (200, "public, max-age=31536000, immutable")
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        assert!(file.header("content-type").starts_with("text/"), "{file:?}");
        weight += file.text.len();
        assert_eq!(
            get(&world, &format!("/console/static/0{name}")).await.status,
            404,
            "only the newest"
        );
    }
    assert!(weight < 50_000, "the page weighs {weight} bytes");
    assert_eq!(get(&world, "/console/static/../../config.yaml").await.status, 404);
    world.end().await;
}

/// interface 3: errors under the console's paths forbid the browser as much as its pages do; elsewhere nothing is added.
#[tokio::test]
async fn errors_forbid_it_too() {
    let world = World::start(&[], reporter).await;
    let evil = headers(&[("host", "evil.example")]);
    let replies = [
        (404, get(&world, "/console/nothing").await),
        (404, get(&world, "/console/static/x.css").await),
        (405, get(&world, "/console/say").await),
        (403, post(&world, "/console/say", &serde_json::json!({})).await),
        (403, send(&world, "GET", "/console/", &evil, Vec::new()).await),
        (422, get(&world, "/console/?chat=%00").await),
    ];
    for (status, reply) in replies {
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(
            reply.header("content-security-policy").starts_with("default-src 'none'"),
            "{reply:?}"
        );
        assert_eq!(
            (reply.header("x-content-type-options"), reply.header("cache-control")),
            ("nosniff", "no-store"),
            "{reply:?}"
        );
    }
    assert_eq!(get(&world, "/healthz").await.header("content-security-policy"), "");
    world.end().await;
}

/// design: a hundred pages may wait for news; one more is asked to come back, and gets its place when another leaves.
#[tokio::test]
async fn waiting_pages_have_an_end() {
    let world = World::start(&[("CHANNELS__LARK__ENABLED", "false")], reporter).await;
    let first = world.api.get("/console/live").await;
    let path = format!("/console/live?have={}", first["have"].as_str().unwrap());
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let (api, path) = (world.api.clone(), path.clone());
            // Our own look below takes a place for a moment: who finds none asks again, as a page does.
            tokio::spawn(async move { while api.try_get(&path).await.0 == 503 {} })
        })
        .collect();
    eventually("no place left", || async {
        let reply = get(&world, "/console/live").await;
        (reply.status == 503 && reply.code() == "unavailable").then_some(())
    })
    .await;
    for one in &waiting {
        one.abort();
    }
    eventually("a place", || async {
        (get(&world, "/console/live").await.status == 200).then_some(())
    })
    .await;
    world.end().await;
}

/// design: a form counts only when our own page sent it; over the API a browser's word that another page did it is refused, and
/// programs that say nothing are served.
#[tokio::test]
async fn other_pages_press_nothing() {
    let world = World::start(&[], reporter).await;
    let base = world.api.url("");
    let host = base.split_once("://").unwrap().1.to_owned();
    let own = format!("http://{host}");
    let words = [("chat", "demo"), ("as", "lin"), ("text", "")];
    for (given, console, api) in [
        (&[][..], 403, 202),
        (&[("origin", own.as_str())], 303, 202),
        (&[("sec-fetch-site", "same-origin"), ("origin", own.as_str())], 303, 202),
        (&[("sec-fetch-site", "none")], 403, 202),
        (&[("sec-fetch-site", "same-site")], 403, 403),
        (&[("sec-fetch-site", "cross-site"), ("origin", own.as_str())], 403, 403),
        (&[("origin", "http://evil.example")], 403, 403),
        (&[("origin", "http://localhost:1")], 403, 403),
        (&[("origin", "null")], 403, 403),
        (&[("origin", "")], 403, 403),
        (&[("origin", own.as_str()), ("host", "evil.example")], 403, 403),
        (&[("origin", "http://evil.example"), ("host", "evil.example")], 403, 403),
        (&[("sec-fetch-site", "same-origin"), ("host", "localhost")], 303, 202),
    ] {
        for path in ["/console/say", "/console/logout"] {
            assert_eq!(form(&world, path, &words, given).await.status, console, "{path} {given:?}");
        }
        let decide = form(&world, "/console/decide", &[("review", "rv_x"), ("decision", "approve")], given).await;
        assert_eq!(decide.status, if console == 303 { 404 } else { 403 }, "{given:?}");
        let mut all = vec![("content-type", "application/json")];
        all.extend(given);
        let body = br#"{"chat_id":"c","user_id":"u","text":"/help"}"#.to_vec();
        let reply = send(&world, "POST", "/api/v1/messages", &headers(&all), body).await;
        assert_eq!(reply.status, api, "{given:?}: {reply:?}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "0.0.0.0", ""] {
        for path in ["/console/", "/console/live", "/console/turn/x", "/console/login"] {
            let reply = send(&world, "GET", path, &headers(&[("host", host)]), Vec::new()).await;
            assert_eq!(reply.status, 403, "{path} as {host}");
        }
    }
    let plain = send(
        &world,
        "POST",
        "/console/say",
        &headers(&[("content-type", "text/plain"), OURS]),
        Vec::new(),
    )
    .await;
    assert_eq!(plain.status, 415);
    quiet(&world).await;
    world.end().await;
}

/// design: with a token the console asks for it and keeps a session that is not the token; the API goes on with the token.
#[tokio::test]
async fn a_token_is_asked_for_once() {
    let mut world = World::start(&[("CHANNELS__CONSOLE__TOKEN", TOKEN)], reporter).await;
    let login = get(&world, "/console/login").await;
    assert_eq!(login.status, 200);
    assert!(
        login.text.contains("type=\"password\"") && !login.text.contains(TOKEN),
        "{}",
        login.text
    );
    for (path, login) in [
        ("/console/", "/console/login"),
        ("/console/turn/x", "/console/login?next=%2Fconsole%2Fturn%2Fx"),
    ] {
        let reply = get(&world, path).await;
        assert_eq!((reply.status, reply.header("location")), (303, login), "{path}");
    }
    let asked = get(&world, "/console/login?next=%2Fconsole%2Fturn%2Fx").await;
    assert!(asked.text.contains("name=\"next\""), "{}", asked.text);
    for (next, place) in [("/console/turn/x", "/console/turn/x"), ("//evil.example/", "/console/")] {
        let entered = form(&world, "/console/login", &[("token", TOKEN), ("next", next)], &[OURS]).await;
        assert_eq!((entered.status, entered.header("location")), (303, place));
    }
    assert_eq!(get(&world, "/console/live").await.status, 401);
    assert_eq!(form(&world, "/console/say", &[("text", "hi")], &[OURS]).await.status, 401);
    let wrong = form(&world, "/console/login", &[("token", "nearly")], &[OURS]).await;
    assert!(wrong.status == 403 && wrong.text.contains("令牌不对"), "{wrong:?}");

    let entered = form(&world, "/console/login", &[("token", TOKEN)], &[OURS]).await;
    assert_eq!((entered.status, entered.header("location")), (303, "/console/"));
    let cookie = entered.header("set-cookie").to_owned();
    assert!(!cookie.contains(TOKEN), "{cookie}");
    assert!(!cookie.contains("Secure"), "over http a browser would drop it: {cookie}");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    for way in [("origin", "https://bot.example.com"), ("x-forwarded-proto", "https,http")] {
        let safe = form(&world, "/console/login", &[("token", TOKEN)], &[OURS, way]).await;
        assert!(safe.header("set-cookie").ends_with("; Secure"), "{way:?}: {safe:?}");
    }
    let session = cookie.split(';').next().unwrap().to_owned();
    let with = |value: &str| headers(&[("cookie", value), ("host", "bot.example.com")]);
    let page = send(&world, "GET", "/console/", &with(&session), Vec::new()).await;
    assert!(
        page.status == 200 && page.text.contains("/console/logout"),
        "any name is good with a session"
    );
    for bad in [
        session.replace('=', "=9"),
        format!("{session}0"),
        format!("{}={TOKEN}", session.split('=').next().unwrap()),
        format!("{}=", session.split('=').next().unwrap()),
    ] {
        assert_eq!(send(&world, "GET", "/console/", &with(&bad), Vec::new()).await.status, 303, "{bad}");
    }
    let cookie_only = headers(&[("cookie", &session)]);
    assert_eq!(send(&world, "GET", "/api/v1/turns", &cookie_only, Vec::new()).await.status, 401);
    let left = form(&world, "/console/logout", &[], &[OURS, ("cookie", &session)]).await;
    assert!(left.status == 303 && left.header("set-cookie").contains("Max-Age=0"), "{left:?}");
    let bearer = headers(&[("authorization", &format!("Bearer {TOKEN}"))]);
    assert_eq!(send(&world, "GET", "/api/v1/turns", &bearer, Vec::new()).await.status, 200);
    world.api = world.api.with_token(TOKEN);
    world.end().await;
}

/// design: wrong tokens keep nobody out who has the right one; each is counted, and the log says where it was given.
#[tokio::test]
async fn wrong_tokens_keep_nobody_out() {
    let mut world = World::process(&[("CHANNELS__CONSOLE__TOKEN", TOKEN)], None, reporter).await;
    for at in 0..30 {
        assert_eq!(
            form(&world, "/console/login", &[("token", "x-canary")], &[OURS]).await.status,
            403,
            "{at}"
        );
    }
    assert_eq!(form(&world, "/console/login", &[("token", TOKEN)], &[OURS]).await.status, 303);
    for _ in 0..20 {
        assert_eq!(world.api.try_get("/api/v1/turns").await.0, 401);
    }
    world.api = world.api.with_token(TOKEN);
    let metrics = send(&world, "GET", "/metrics", &[], Vec::new()).await.text;
    for count in ["{at=\"login\"} 30", "{at=\"api\"} 20"] {
        assert!(
            metrics.contains(&format!("countersign_wrong_tokens_total{count}")),
            "{count}: {metrics}"
        );
    }
    let log = world.child().log();
    assert_eq!(log.matches("wrong console token").count(), 20, "ten lines a minute for each: {log}");
    assert!(!log.contains("canary"));
    world.end().await;
}

/// interface 2: a console that is not enabled is not there.
#[tokio::test]
async fn a_disabled_console_is_not_there() {
    let world = World::start(&[("CHANNELS__CONSOLE__ENABLED", "false")], reporter).await;
    for path in [
        "/",
        "/console",
        "/console/",
        "/console/live",
        "/console/login",
        "/console/turn/x",
        "/console/static/x.css",
    ] {
        assert_eq!(get(&world, path).await.code(), "not_found", "{path}");
    }
    for path in ["/console/say", "/console/decide", "/console/logout"] {
        assert_eq!(form(&world, path, &[], &[OURS]).await.code(), "not_found", "{path}");
    }
    world.end().await;
}

/// design: what cannot be is refused with a word on what to mend, and costs nothing.
#[tokio::test]
async fn odd_requests_are_refused() {
    let world = World::start(&[("SERVER__MAX_BODY_BYTES", "2048")], reporter).await;
    for (path, code) in [
        ("/console/?chat=%00", "invalid"),
        ("/console/?chat=a&chat=b", "bad_request"),
        ("/console/?as=%0a", "invalid"),
        ("/console/turn/%ff", "not_found"),
        ("/console/nothing", "not_found"),
    ] {
        assert_eq!(get(&world, path).await.code(), code, "{path}");
    }
    let gone = get(&world, "/console/turn/none").await;
    assert!(
        gone.status == 404 && gone.header("content-type").starts_with("text/html") && gone.text.contains("没有这个任务"),
        "a page for people: {gone:?}"
    );
    let huge = "x".repeat(2000);
    assert_eq!(
        form(&world, "/console/say", &[("text", &huge)], &[OURS]).await.code(),
        "payload_too_large"
    );
    assert_eq!(
        form(&world, "/console/decide", &[("review", "rv_x"), ("decision", "expire?")], &[OURS])
            .await
            .code(),
        "invalid"
    );
    assert_eq!(post(&world, "/console/", &serde_json::json!({})).await.status, 405);
    say(&world, "demo", "lin", "   ").await;
    assert_eq!(
        world.api.get("/api/v1/messages?chat=demo").await["items"],
        serde_json::json!([]),
        "nothing said is nothing sent"
    );
    world.end().await;
}

/// design: with `locale: auto` the page speaks the browser's language, offers the other one, and keeps what its reader chose.
#[tokio::test]
async fn the_reader_chooses_the_language() {
    let world = World::start(&[], reporter).await;
    let first = get(&world, "/console/?chat=demo&as=zhao").await;
    assert!(first.text.contains("<html lang=\"zh-CN\">"), "{}", first.text);
    let link = first.text.split('"').find(|text| text.starts_with("/console/locale")).unwrap();
    let chosen = get(&world, &link.replace("&amp;", "&").replace("&#x2f;", "/")).await;
    assert_eq!((chosen.status, chosen.header("location")), (303, "/console/?chat=demo&as=zhao"));
    let cookie = chosen.header("set-cookie").split(';').next().unwrap().to_owned();
    let back = headers(&[("cookie", &cookie), ("accept-language", "zh")]);
    let second = send(&world, "GET", "/console/", &back, Vec::new()).await;
    assert!(second.text.contains("<html lang=\"en-US\">"), "{}", second.text);
    let foreign = get(&world, "/console/locale?to=en-US&next=https%3A%2F%2Fexample.com%2F").await;
    assert_eq!(foreign.header("location"), "/console/");
    let unknown = get(&world, "/console/locale?to=fr").await;
    assert_eq!((unknown.status, unknown.header("set-cookie")), (303, ""));

    let fixed = World::start(&[("CHANNELS__CONSOLE__LOCALE", "zh-CN")], reporter).await;
    let page = send(&fixed, "GET", "/console/", &back, Vec::new()).await;
    assert!(
        page.text.contains("<html lang=\"zh-CN\">") && !page.text.contains("/console/locale"),
        "{}",
        page.text
    );
}
