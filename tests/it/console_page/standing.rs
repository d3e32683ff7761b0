//! "Always here" on the console: the button, and the page that lists and revokes.

use serde_json::json;

use super::parts::shows;
use super::{form, press, say, toast};
use crate::support::api::eventually;
use crate::support::fake_model::say as words;
use crate::support::raw::get;
use crate::support::scripts::writes;
use crate::support::world::{World, place};

/// interface §9 H: a press allows such calls in the console's chat; the page lists the grant and takes it back by a form of its own alone.
#[tokio::test]
async fn a_call_is_allowed_and_taken_back_on_the_page() {
    let settings = [
        ("AGENT__STANDING_GRANTS", "true"),
        ("CHANNELS__CONSOLE__PLAN_REVIEW_ENABLED", "false"),
    ];
    let script = |request: &serde_json::Value| {
        if place(request) > 0 {
            words("写好了")
        } else {
            writes(&["a.md"])
        }
    };
    let world = World::start(&settings, script).await;
    say(&world, "demo", "lin", "写文件").await;
    let row = eventually("a call that waits", || async {
        let list = world.api.get("/api/v1/actions").await;
        list["items"].as_array().unwrap().first().cloned()
    })
    .await;
    let page = shows(
        &world,
        "<summary class=\"button plain\"><span>以后不再问</span><span>返回</span></summary>",
    )
    .await;
    assert!(
        page.contains("value=\"approve_always\">允许</button>") && page.contains("30 天内"),
        "{page}"
    );
    let foreign = press(&world, "zhao", ("call", &row), "approve_always", "").await;
    assert_eq!(foreign.status, 403, "{foreign:?}");
    let done = press(&world, "lin", ("call", &row), "approve_always", "").await;
    assert_eq!((done.status, toast(&done).contains("不再询问")), (200, true), "{done:?}");
    world.api.turn_in("demo", "completed").await;
    let listed = get(&world, "/console/grants").await;
    assert!(
        listed.status == 200 && listed.text.contains("林晓") && listed.text.contains("a.md"),
        "{}",
        listed.text
    );
    let id = world.api.get("/api/v1/grants").await["items"][0]["id"].as_str().unwrap().to_owned();
    let fields = [("grant", id.as_str())];
    let elsewhere = form(&world, "/console/grants", &fields, &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(elsewhere.status, 403);
    let revoked = form(&world, "/console/grants", &fields, &[("sec-fetch-site", "same-origin")]).await;
    assert_eq!(revoked.status, 303, "{revoked:?}");
    assert!(get(&world, "/console/grants").await.text.contains("已失效"));
    assert_ne!(world.api.get("/api/v1/grants").await["items"][0]["revoked_at"], json!(null));
    world.end().await;
}
