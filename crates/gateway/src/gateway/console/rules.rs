//! `/console/rules`: an administrator tries rules on the recorded calls before they go into the configuration. Nothing is saved here.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use countersign_agent::domain::{LetThrough, Millis, RecordedCall, Replay, ReplayCounts, ReplayReport, Rule};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::form::BrowserForm;
use super::locale::PageLocale;
use super::scene::{head, merge};
use crate::config::parse_rules;
use crate::gateway::error::ApiError;
use crate::gateway::state::Gateway;
use crate::store::StoreError;

/// How far back calls are looked at.
const DAYS: u64 = 30;
/// Time for a replay. One runs at a time, and another waits so long for it.
const TIME: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(15);
/// What problems of the text call it.
const NAME: &str = "rules";

/// `GET /console/rules`: the rules in force.
pub(super) async fn show(State(gateway): State<Gateway>, language: PageLocale) -> Response {
    let rules = &gateway.settings.current().rules;
    let text: String = rules.iter().map(|rule| format!("- {}\n", rule.described())).collect();
    page(&gateway, language, StatusCode::OK, &text, json!({}))
}

/// `POST /console/rules`: the rules of the form, and what they would have done.
pub(super) async fn test(
    State(gateway): State<Gateway>,
    language: PageLocale,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = BrowserForm::read(&gateway, &headers, body).await?;
    let text = form.get("rules");
    let rules = match parse_rules(NAME, text) {
        Ok(rules) => rules,
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let values = json!({ "problems": problems });
            return Ok(page(&gateway, language, StatusCode::UNPROCESSABLE_ENTITY, text, values));
        }
    };
    let Ok(Ok(turn)) = tokio::time::timeout(WAIT, gateway.replays().acquire_owned()).await else {
        return Err(ApiError::unavailable());
    };
    let (behind, runtime) = (gateway.clone(), Handle::current());
    // Away from the threads that answer requests: a replay may be nothing but work. It keeps its turn also when nobody waits for it any more.
    let replaying = move || {
        let replayed = runtime.block_on(replay(&behind, &rules));
        drop(turn);
        replayed
    };
    let replayed = tokio::task::spawn_blocking(replaying).await;
    let (replayed, whole) = replayed.map_err(|_| ApiError::internal())??;
    let cut = (!whole).then(|| {
        let values = json!({ "count": replayed.all.calls });
        gateway.templates.say(language.locale, "console.rules.cut", values)
    });
    let values = json!({ "report": report(&gateway, &language, &replayed), "cut": cut });
    Ok(page(&gateway, language, StatusCode::OK, text, values))
}

/// What the rules would have done to the newest calls, and whether there was time for all of them.
async fn replay(gateway: &Gateway, rules: &[Rule]) -> Result<(ReplayReport, bool), StoreError> {
    let tools = gateway.runner.tool_specs();
    let mut replay = Replay::new(rules, &tools);
    let span = Duration::from_secs(DAYS * 24 * 60 * 60);
    let since = Millis(gateway.clock.now().0.saturating_sub(Millis(0).plus(span).0));
    let until = Instant::now() + TIME;
    let see = |call: &RecordedCall| replay.add(call, || Instant::now() >= until);
    let whole = gateway.ledger.read().await?.each_recorded_call(since, see).await?.is_continue();
    Ok((replay.report(), whole))
}

fn report(gateway: &Gateway, language: &PageLocale, report: &ReplayReport) -> Value {
    let say = |key: &str, values: Value| gateway.templates.say(language.locale, &format!("console.rules.{key}"), values);
    let row = |id: Option<String>, name: &str, counts: &ReplayCounts| {
        json!({ "id": id, "name": name, "counts": {
            "calls": counts.calls, "asked_less": counts.asked_less, "asked_more": counts.asked_more,
            "denied": counts.denied, "let_through": counts.let_through,
        }})
    };
    let rules: Vec<Value> = report
        .rules
        .iter()
        .map(|(rule, counts)| row(Some(rule.id()), &rule.described(), counts))
        .collect();
    let mut tools: Vec<Value> = report.tools.iter().map(|(tool, counts)| row(None, tool, counts)).collect();
    tools.push(row(None, &say("all", json!({})), &report.all));
    let refusal = |one: &LetThrough| {
        let by = one.by.clone().unwrap_or_else(|| say("a_rule", json!({})));
        json!({
            "at": one.at.rfc3339(), "chat": one.chat, "by": say("refused", json!({ "by": by })), "tool": one.tool,
            "arguments": one.arguments, "rule": one.rule, "action": one.action,
        })
    };
    let surplus = report.all.let_through.saturating_sub(report.let_through.len() as u64);
    json!({
        "parts": [
            { "title": say("by_rule", json!({})), "rows": rules },
            { "title": say("by_tool", json!({})), "rows": tools },
        ],
        "refusals": report.let_through.iter().map(refusal).collect::<Vec<_>>(),
        "more": (surplus > 0).then(|| say("more", json!({ "count": surplus }))),
    })
}

fn page(gateway: &Gateway, language: PageLocale, code: StatusCode, text: &str, more: Value) -> Response {
    let mut values = json!({
        "days": DAYS,
        "text": text,
        "problems": [],
        "report": null,
        "cut": null,
    });
    merge(&mut values, head(gateway, language, "/console/rules"));
    merge(&mut values, more);
    (code, Html(gateway.templates.page("rules.html", values))).into_response()
}
