//! The pictures of the documentation: a task done, a plan that waits. What they show stands beside them as text, which a test compares with
//! the console of today.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use similar::TextDiff;

use super::{OK, TASK};
use crate::support::browser::Browser;
use crate::support::raw::get;
use crate::support::scripts::reporter;
use crate::support::world::World;

/// A language of the console: a task that is done, a task that waits, the title of its card.
type Scene = (&'static str, &'static str, &'static str, &'static str);

const SCENES: [Scene; 2] = [
    ("zh-CN", "读一下工作区里的笔记，在聊天里告诉我要点，不写文件", TASK, "计划确认"),
    (
        "en-US",
        "Read the notes in the workspace and tell me the main points here, write no file",
        "Read the weekly reports in the workspace and sum them up in summary.md",
        "Plan confirmation",
    ),
];

fn file(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(name)
}

/// The console as the pictures show it.
async fn pictured((locale, done, waits, _): Scene) -> World {
    let settings = [
        ("MODEL__PROVIDER", "demo"),
        ("CHANNELS__LARK__ENABLED", "false"),
        ("CHANNELS__CONSOLE__LOCALE", locale),
    ];
    let world = World::start(&settings, reporter).await;
    let say = async |text: &str| {
        let message = json!({"chat_id": "demo", "user_id": "lin", "text": text});
        assert_eq!(world.api.post("/api/v1/messages", &message).await.0, 202);
        world.api.review_in("demo").await
    };
    say(done).await;
    let ok = json!({"chat_id": "demo", "user_id": "lin", "text": "OK"});
    assert_eq!(world.api.post("/api/v1/messages", &ok).await.0, 202);
    world.api.turn_in("demo", "completed").await;
    say(waits).await;
    world
}

/// What a page shows, a line for each piece of text, and the name of its style sheet, which changes with it. Times are left out, and the
/// version.
fn text(page: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut unseen = "";
    for part in page.split('<') {
        let (tag, words) = part.split_once('>').unwrap_or(("", part));
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if unseen.is_empty() && ["time", "script", "title"].contains(&name) {
            unseen = name;
        } else if name.strip_prefix('/') == Some(unseen) {
            unseen = "";
        }
        if name == "link" && tag.contains("stylesheet") {
            lines.extend(tag.split('"').find(|part| part.ends_with(".css")).map(str::to_owned));
        }
        if unseen.is_empty() && !words.trim().is_empty() {
            let is_moment = words.contains(" UTC");
            lines.push(words.trim().replace(|c: char| is_moment && c.is_ascii_digit(), "#"));
        }
    }
    let mut text = lines.join("\n");
    for (escaped, shown) in [
        ("&#x2f;", "/"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, shown);
    }
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n"
}

/// interface 3: the pictures of the documentation show the console of today: the text beside them is what its page says.
#[tokio::test]
async fn the_pictures_are_of_today() {
    for scene in SCENES {
        let world = pictured(scene).await;
        let now = text(&get(&world, "/console/").await.text);
        let name = format!("console-{}.txt", scene.0);
        let pictured = fs::read_to_string(file(&name)).unwrap_or_default();
        let changes = TextDiff::from_lines(&pictured, &now).unified_diff().context_radius(1).to_string();
        assert!(
            pictured == now,
            "the console is another one than its pictures show, by docs/images/{name}:\n{changes}\nTo draw them anew: scripts/screenshots"
        );
        world.end().await;
    }
    let page = "<link rel=\"stylesheet\" href=\"/s/a.css\"><title>no</title><p class=\"a\">one <b>two</b> <time datetime=\"x\">21:30</time> by &quot;L&quot; \
                2026-12-01 21:30 UTC</p>";
    assert_eq!(text(page), "/s/a.css\none\ntwo\nby \"L\" ####-##-## ##:## UTC\n");
}

/// interface 3: the pictures themselves, narrow and wide, light and dark.
#[tokio::test]
#[ignore = "writes docs/images: scripts/screenshots runs it"]
async fn drawn() {
    let Some(browser) = Browser::start().await else { return };
    for scene in SCENES {
        let world = pictured(scene).await;
        let (locale, .., title) = scene;
        fs::write(file(&format!("console-{locale}.txt")), text(&get(&world, "/console/").await.text)).unwrap();
        for (scheme, width, height) in [("light", 1440, 900), ("light", 360, 780), ("dark", 1440, 900), ("dark", 360, 780)] {
            browser.look(width, height, scheme).await;
            super::open(&browser, &world, "").await;
            browser.sees(".log .card.wait", title).await;
            browser.find(OK).await;
            fs::write(file(&format!("console-{locale}-{scheme}-{width}.png")), browser.picture().await).unwrap();
        }
        browser.open("about:blank").await;
        world.end().await;
    }
    browser.close().await;
}
