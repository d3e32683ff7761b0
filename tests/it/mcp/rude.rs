//! Servers as they really are: odd results, torn lines, lost sessions, statuses, pages without end, other versions, last words.

use std::time::Duration;

use countersign_agent::domain::ServerStanding;
use countersign_agent::tools::{Servers, ToolError, try_server};
use serde_json::{Value, json};

use super::{call, connected, text, told};
use crate::support::api::eventually;
use crate::support::played_mcp::{Played, PlayedHttp, SECRET, tool};

/// One call, which is answered long before its time is up.
async fn soon(servers: &Servers, name: &str) -> Result<String, ToolError> {
    let answered = tokio::time::timeout(Duration::from_secs(30), call(servers, name, text("x")));
    answered.await.expect("an answer at once").map(|output| output.text)
}

/// interface §10 M, F2, F6, N2: whatever shape a result has, the call was carried out; an error is none; a line that cannot be read ends the call that it
/// names at once.
#[tokio::test]
async fn answers_of_any_shape_end_their_calls() {
    let many = format!(r#"{{"id":$ID,"result":{{"content":[{}0]}}}}"#, "0,".repeat(200_000));
    let cases: [(&[u8], Result<&str, &str>); 13] = [
        (br#"{"jsonrpc":"2.0","id":$ID,"result":{}}"#, Ok("no output")),
        (
            br#"{"id":$ID,"result":{"success":true,"message_id":"m-17"}}"#,
            Ok(r#"{"message_id":"m-17","success":true}"#),
        ),
        (br#"{"id":$ID,"result":{"content":"text"}}"#, Ok(r#"{"content":"text"}"#)),
        (br#"{"id":"$ID","result":null}"#, Ok("no output")),
        (br#"{"id":$ID,"result":{"a":NaN,"b":-Infinity}}"#, Ok(r#"{"a":null,"b":null}"#)),
        (br#"{"id":$ID,"result":{"a":"\udce9.txt"}}"#, Ok("{\"a\":\"\u{fffd}.txt\"}")),
        (b"{\"id\":$ID,\"result\":{\"a\":\"caf\xe9\"}}", Ok("{\"a\":\"caf\u{fffd}\"}")),
        (
            br#"{"id":$ID,"result":{"content":[{"type":"text","text":"torn"#,
            Ok("the MCP server srv carried the call out; its result cannot be read: it is no JSON"),
        ),
        (
            many.as_bytes(),
            Ok("the MCP server srv carried the call out; its result cannot be read: it holds too many values"),
        ),
        (
            br#"{"id":$ID,"result":{},"error":{"code":1,"message":"full"}}"#,
            Err("the MCP server srv refuses the call: full"),
        ),
        (
            br#"{"id":$ID,"error":{"code":"EBUSY"}}"#,
            Err("the MCP server srv refuses the call: it does not say why"),
        ),
        (
            br#"{"id":$ID,"error":{"message":oops}}"#,
            Err("the MCP server srv refuses the call: its error cannot be read: it is no JSON"),
        ),
        (
            br#"{"id":$ID,"result":{"isError":true,"content":[{"type":"text","text":"it ran"}]}}"#,
            Err("it ran"),
        ),
    ];
    for by_http in [false, true] {
        let played = Played::new(&["odd", "echo"]);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        for (answer, words) in &cases {
            played.answer_with("odd", answer);
            let heard = match soon(&servers, "srv__odd").await {
                Ok(text) => Ok(text),
                Err(ToolError::TellModel(text)) => Err(text),
                Err(other) => panic!("{other:?} for {}", String::from_utf8_lossy(answer)),
            };
            let words = words.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(
                heard,
                words,
                "{} by_http={by_http}",
                String::from_utf8_lossy(&answer[..answer.len().min(200)])
            );
        }
        assert_eq!(soon(&servers, "srv__echo").await.unwrap(), "echo x");
        if !by_http {
            assert_eq!(played.heard("initialize").len(), 1, "one connection for all of it");
        }
        servers.stop().await;
    }
}

const NAMELESS: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
const LOST: &str = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}"#;

/// F-T3: however a server says that it does not know our session, nothing was carried out; there is another session
/// at once, and the call is sent over it, once.
#[tokio::test]
async fn a_forgotten_session_is_begun_anew() {
    for (status, body) in [
        (404, ""),
        (410, ""),
        (400, "Invalid session ID"),
        (400, NAMELESS),
        (422, r#"{"id":null,"error":{"code":-32600,"message":"Odd"}}"#),
        (200, LOST),
        (500, LOST),
    ] {
        let played = Played::new(&["note"]);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[http.server(&[])]).await;
        http.forget_with(status, body);
        assert_eq!(soon(&servers, "srv__note").await.unwrap(), "noted", "{status} {body}");
        assert_eq!(soon(&servers, "srv__note").await.unwrap(), "noted");
        assert_eq!((played.calls("note"), played.heard("initialize").len()), (2, 2), "{status} {body}");
        servers.stop().await;
    }
}

/// interface §10 M, F7: a call that finds the session lost, or our credentials refused, ends by itself. Calls beside it get their answers.
#[tokio::test]
async fn a_lost_session_ends_no_other_call() {
    for (status, body) in [(404, ""), (400, NAMELESS), (200, LOST), (401, "")] {
        let played = Played::new(&["held", "note"]);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[http.server(&[])]).await;
        let beside = async {
            eventually("the call", || async { (played.calls("held") == 1).then_some(()) }).await;
            if status == 401 {
                http.refuse(status, body);
                assert!(told(call(&servers, "srv__note", text("x")).await).contains("it refuses our credentials"));
            } else {
                http.forget_with(status, body);
                assert_eq!(soon(&servers, "srv__note").await.unwrap(), "noted", "{status} {body}");
            }
            eventually("the next session", || async {
                (played.heard("initialize").len() == 2).then_some(())
            })
            .await;
            http.release();
        };
        let (held, ()) = tokio::join!(soon(&servers, "srv__held"), beside);
        assert_eq!(held.unwrap(), "held", "{status} {body}");
        servers.stop().await;
    }
}

/// interface §10 M, F6: an answer that holds neither a result nor an error does not say whether the call was carried out.
#[tokio::test]
async fn an_answer_that_says_neither_leaves_the_outcome_unknown() {
    for by_http in [false, true] {
        let played = Played::new(&["odd"]);
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        for answer in [r#"{"jsonrpc":"2.0","id":$ID}"#, r#"{"id":$ID,"res"#, r#"{"id":$ID,"error":null}"#] {
            played.answer_with("odd", answer);
            match soon(&servers, "srv__odd").await {
                Err(ToolError::Unknown(why)) => assert!(why.contains("neither a result nor an error"), "{why}"),
                other => panic!("{other:?} for {answer}"),
            }
        }
        servers.stop().await;
    }
}

/// interface §10 M, F7: a server that never knows our session is asked twice, and no more.
#[tokio::test]
async fn a_session_that_does_not_last_is_told() {
    let played = Played::new(&["note"]);
    let http = PlayedHttp::start(&played).await;
    let servers = connected(&[http.server(&[])]).await;
    http.refuse(404, "");
    http.refuse(404, "");
    let words = told(call(&servers, "srv__note", text("x")).await);
    assert!(
        words.contains("was not reached: it has forgotten our session; nothing was carried out"),
        "{words}"
    );
    assert_eq!(played.calls("note"), 0);
    servers.stop().await;
}

/// interface §10 M, F7: a status below 500 is no unknown outcome; a server that has no time is asked once more; the connection stays.
#[tokio::test]
async fn a_refused_request_was_not_carried_out() {
    let played = Played::new(&["note"]);
    let http = PlayedHttp::start(&played).await;
    let servers = connected(&[http.server(&[])]).await;
    for (status, body, words) in [
        (
            400,
            r#"{"id":$ID,"error":{"code":-32602,"message":"no such argument"}}"#,
            "HTTP 400: no such argument",
        ),
        (403, r#"{"id":null,"error":{"code":1,"message":"not you"}}"#, "HTTP 403: not you"),
        (413, "<html>too large</html>", "HTTP 413"),
        (302, "", "HTTP 302"),
    ] {
        http.refuse(status, body);
        let heard = told(call(&servers, "srv__note", text("x")).await);
        assert!(heard.ends_with(&format!("so that it was not carried out: {words}")), "{heard}");
    }
    http.refuse(429, "");
    assert_eq!(soon(&servers, "srv__note").await.unwrap(), "noted");
    http.refuse(429, "");
    http.refuse(429, "");
    let heard = told(call(&servers, "srv__note", text("x")).await);
    assert!(heard.ends_with("so that it was not carried out: HTTP 429"), "{heard}");
    // Longer than a call has: it is not waited for.
    http.busy_for(3600);
    http.refuse(429, "come back later");
    let heard = told(call(&servers, "srv__note", text("x")).await);
    assert!(
        heard.ends_with("so that it was not carried out: HTTP 429: come back later"),
        "{heard}"
    );
    for status in [500, 503] {
        http.refuse(status, r#"{"id":$ID,"error":{"code":-32603,"message":"oops"}}"#);
        let outcome = call(&servers, "srv__note", text("x")).await;
        assert!(
            matches!(&outcome, Err(ToolError::Unknown(why)) if why.contains(&format!("HTTP {status}"))),
            "{outcome:?}"
        );
    }
    assert_eq!((played.calls("note"), played.heard("initialize").len()), (1, 1));
    let url = http.url.clone();
    drop(http);
    eventually("nobody at the address", || async {
        reqwest::get(&url).await.err().filter(reqwest::Error::is_connect)
    })
    .await;
    let outcome = call(&servers, "srv__note", text("x")).await;
    assert!(!matches!(outcome, Err(ToolError::Unknown(_)) | Ok(_)), "{outcome:?}");
    servers.stop().await;
}

/// interface §10 M, F15: a list ends where it brings nothing new, and what is there counts.
#[tokio::test]
async fn a_list_without_end_ends() {
    for (how, tools, pages) in [("empty", 3, 2), ("same", 3, 2), ("endless", 64, 64)] {
        let played = Played::new(&["a", "b", "c"]);
        played.rude("cursor", how);
        let servers = connected(&[played.by_command(&[])]).await;
        assert_eq!(servers.health()[0].standing, ServerStanding::Good, "{how}");
        assert_eq!((servers.specs().len(), played.heard("tools/list").len()), (tools, pages), "{how}");
        servers.stop().await;
    }
}

/// interface §10 M, F5 of the peers: a server that speaks 2026-07-28 alone is spoken to so, over both transports; every request says what it must.
#[tokio::test]
async fn a_server_of_the_newest_version_is_spoken_to() {
    for by_http in [false, true] {
        let played = Played::new(&["echo", "note"]);
        played.rude("stateless", "2026-07-28");
        if by_http {
            played.rude("picky", "");
        }
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        assert_eq!(soon(&servers, "srv__echo").await.unwrap(), "echo x", "{:?}", servers.health());
        assert_eq!(played.heard("initialize").len(), usize::from(!by_http));
        let heard = played.heard("tools/call").remove(0);
        assert_eq!(
            heard["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"],
            "countersign"
        );
        servers.stop().await;
        played.rude("stateless", "2027-06-01");
        let why = try_server(&if by_http { http.server(&[]) } else { played.by_command(&[]) }, None)
            .await
            .unwrap_err();
        assert_eq!(why, "it speaks only MCP 2027-06-01, which this version does not");
    }
}

/// interface §10 M, F5 of the peers: a server that names its version in place of choosing it is offered that.
#[tokio::test]
async fn a_server_that_names_its_version_gets_it() {
    for by_http in [false, true] {
        let played = Played::new(&["echo"]);
        played.rude("old", "2024-11-05");
        let http = PlayedHttp::start(&played).await;
        let servers = connected(&[if by_http { http.server(&[]) } else { played.by_command(&[]) }]).await;
        assert_eq!(soon(&servers, "srv__echo").await.unwrap(), "echo x", "{:?}", servers.health());
        let offered = played.heard("initialize");
        let versions = offered.iter().map(|request| &request["params"]["protocolVersion"]);
        assert_eq!(versions.collect::<Vec<_>>(), ["2025-11-25", "2024-11-05"]);
        servers.stop().await;
    }
}

/// interface §10 M, F11 of the peers: what a child said before it ended, and a status, are told to the admin, without our secrets.
#[tokio::test]
async fn last_words_and_statuses_are_told() {
    let played = Played::new(&["echo"]);
    played.rude(
        "dies",
        &format!("Traceback …\nTOKEN={SECRET}\n\u{1b}[1mAttributeError: no list_resources"),
    );
    let why = try_server(&played.by_command(&[]), None).await.unwrap_err();
    assert!(why.starts_with("it ended before the handshake (its last words: "), "{why}");
    assert!(
        why.contains("AttributeError: no list_resources") && !why.contains(SECRET) && !why.contains('\u{1b}'),
        "{why}"
    );
    let servers = connected(&[played.by_command(&[])]).await;
    let message = servers.health().remove(0).message.unwrap();
    assert!(
        message.contains("AttributeError: no list_resources") && !message.contains(SECRET),
        "{message}"
    );
    servers.stop().await;
    let http = PlayedHttp::start(&Played::new(&[])).await;
    let mut elsewhere = http.server(&[]);
    if let countersign_agent::tools::McpReach::Url { url, .. } = &mut elsewhere.reach {
        url.push_str("/elsewhere");
    }
    let why = try_server(&elsewhere, None).await.unwrap_err();
    assert_eq!(why, "its address does not answer as an MCP server does (HTTP 404)");
}

/// interface §10 M, F1: what cannot be offered is left out, and the server's row says which tools and why; the others are offered in a form that providers
/// take, and the server gets the arguments as they are.
#[tokio::test]
async fn a_row_says_what_is_left_out() {
    let played = Played::new(&[]);
    let with = |name: &str, schema: Value| {
        let mut tool = tool(name);
        tool["inputSchema"] = schema;
        tool
    };
    played.offer(&[
        with("list", json!({"type": "array"})),
        with("blank", json!({"properties": {"a b": {}}})),
        with(
            "echo",
            json!({"oneOf": [{"properties": {"text": {"type": "any"}}}, {"properties": {"n": {"type": "array"}}}]}),
        ),
    ]);
    let servers = connected(&[played.by_command(&[])]).await;
    let message = servers.health().remove(0).message.unwrap();
    assert!(
        message.starts_with("2 of its tools cannot be offered: list: its arguments are no object; blank: it has an argument"),
        "{message}"
    );
    assert_eq!(
        *servers.specs()[0].parameters,
        json!({"type": "object", "properties": {"text": {}, "n": {"type": "array", "items": {}}}})
    );
    let given = json!({"text": "x", "other": [1, {"a": null}]});
    call(&servers, "srv__echo", given.clone()).await.unwrap();
    assert_eq!(played.heard("tools/call")[0]["params"]["arguments"], given);
    servers.stop().await;
}

/// interface §10 M, N2: a list that would fill the memory is refused before it is read, and the server is none that is offered.
#[tokio::test]
async fn a_list_of_too_many_values_is_refused() {
    let played = Played::new(&["echo"]);
    let zeros = format!("[{}]", json!({"name": "t", "inputSchema": {"enum": vec![0; 150_000]}}));
    std::fs::write(played.folder.path().join("tools.json"), zeros).unwrap();
    for by_http in [false, true] {
        let http = PlayedHttp::start(&played).await;
        let why = try_server(&if by_http { http.server(&[]) } else { played.by_command(&[]) }, None)
            .await
            .unwrap_err();
        assert_eq!(why, "its list of tools cannot be read: it holds too many values");
    }
}
