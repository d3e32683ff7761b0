//! The web console in a real browser: what a person sees and presses, from the first word to the answer.

mod pictures;

use serde_json::json;

use crate::support::api::eventually;
use crate::support::browser::Browser;
use crate::support::scripts::{in_order, planned, reporter};
use crate::support::servers::Port;
use crate::support::world::World;

const TASK: &str = "读一下工作区里的周报，汇总成一份 summary.md";
const OK: &str = ".log .card.wait button[value=approve]";

/// The gateway as it runs after cloning, with a folder to work in.
async fn demo() -> World {
    World::start(&[("MODEL__PROVIDER", "demo"), ("CHANNELS__LARK__ENABLED", "false")], reporter).await
}

async fn open(browser: &Browser, world: &World, query: &str) {
    browser.open(&world.api.url(&format!("/console/{query}"))).await;
}

/// interface 3: a chat from the empty page to the answer: examples to press, the card, a second person who may not decide, changes, a
/// reload in the middle, OK, live steps, the answer; the file is there and the browser has nothing to complain of.
#[tokio::test]
async fn a_task_from_the_first_word_to_the_answer() {
    let Some(browser) = Browser::start().await else { return };
    let world = demo().await;
    open(&browser, &world, "").await;
    browser.sees(".empty", "动手之前，先给你看计划").await;
    browser.click(".try").await;
    browser.sees(".log .bot", "演示模型").await;
    browser.types("#text", TASK).await;
    browser.click(".send").await;
    browser.sees(".log .mine", TASK).await;
    browser.sees(".log .card.wait header", "计划确认").await;
    browser.sees("#part-waiting", "汇总成一份").await;
    eventually("the count of what waits in the title", || async {
        let title = browser.ask("return document.title", &[]).await;
        title
            .as_str()
            .is_some_and(|title| title.starts_with("(1) Countersign"))
            .then_some(())
    })
    .await;
    assert!(
        browser.text("#told").await.contains("计划确认"),
        "how the card stands is said to those who hear the page"
    );

    open(&browser, &world, "?as=zhao").await;
    browser.sees(".persona.on", "赵磊").await;
    browser.sees(".log .card.wait", "等待 林晓 处理").await;
    browser.sees_no(OK).await;
    assert_eq!(world.api.review_in("demo").await["votes"], json!([]));

    open(&browser, &world, "?as=lin").await;
    browser.click(".log .card.wait .edit:has(textarea) summary").await;
    browser.types(".log .card.wait textarea", "先给我看草稿").await;
    browser.click(".log .card.wait button[value=revise]").await;
    browser.sees("#toast", "修改意见已收到").await;
    browser.sees(".log .card.wait", "先给我看草稿").await;
    browser.reload().await;
    browser.sees(".log .card.info", "已提出修改").await;
    browser.click(OK).await;
    browser.sees(".log .card.good .steps .completed", "工作区").await;
    browser.sees(".log .bot div.bubble", "summary.md").await;
    browser.sees("#part-waiting", "没有待处理的事项").await;
    browser.sees("#part-turns .good", "已完成").await;
    let title = browser.ask("return document.title", &[]).await;
    assert!(title.as_str().unwrap().starts_with("Countersign"), "{title}");
    assert!(world.file("summary.md").is_some());
    assert!(browser.text("#banner").await.is_empty());
    browser.end().await;
    world.end().await;
}

/// interface 3: with the keyboard alone: write, send, go to the card, press OK; what is focused can be seen.
#[tokio::test]
async fn the_keyboard_is_enough() {
    let Some(browser) = Browser::start().await else { return };
    let world = demo().await;
    open(&browser, &world, "").await;
    browser.keys("\u{e004}").await;
    browser.keys("\u{e007}").await;
    let focused = "return document.activeElement.id || document.activeElement.value || document.activeElement.tagName";
    assert_eq!(browser.ask(focused, &[]).await, "text", "the first stop leads to the message box");
    browser.keys(TASK).await;
    browser.keys("\u{e007}").await;
    browser.sees(".log .card.wait", "计划确认").await;
    open(&browser, &world, "").await;
    for _ in 0..20 {
        browser.keys("\u{e004}").await;
        if browser.ask(focused, &[]).await == "approve" {
            break;
        }
    }
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(browser.ask(outline, &[]).await, "solid", "the focus is seen");
    browser.keys("\u{e007}").await;
    browser.sees(".log .card.good", "已完成").await;
    browser.sees("#part-turns .good", "已完成").await;
    let near = "return document.activeElement.closest('article').querySelector('.card') !== null";
    assert_eq!(
        browser.ask(near, &[]).await,
        true,
        "the focus stays with the card that lost its buttons"
    );
    browser.end().await;
    world.end().await;
}

/// design: a page that nobody sees asks for nothing, and catches up when it is seen again.
#[tokio::test]
async fn a_hidden_page_rests() {
    let Some(browser) = Browser::start().await else { return };
    let world = demo().await;
    open(&browser, &world, "").await;
    browser.sees(".empty", "动手之前").await;
    let hidden = "Object.defineProperty(document, 'hidden', { value: arguments[0] === 'yes', configurable: true });\
                  document.dispatchEvent(new Event('visibilitychange'))";
    browser.ask(hidden, &["yes"]).await;
    let hello = json!({"chat_id": "demo", "user_id": "zhao", "text": "/help"});
    assert_eq!(world.api.post("/api/v1/messages", &hello).await.0, 202);
    eventually("the reply", || async {
        let said = world.api.get("/api/v1/messages?chat=demo").await;
        (said["items"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    assert!(!browser.text(".log").await.contains("/help"));
    browser.ask(hidden, &["no"]).await;
    browser.sees(".log", "/help").await;
    assert!(browser.text("#banner").await.is_empty());
    browser.end().await;
    world.end().await;
}

/// interface 3: the server stops and starts in the middle: the page says so, finds it again by itself, and what was typed stays.
#[tokio::test]
async fn a_restart_in_the_middle_loses_nothing() {
    let Some(browser) = Browser::start().await else { return };
    // While the gateway is down, the page goes on asking: no other test may get its port.
    let port = Port::claim();
    let bind = format!("127.0.0.1:{}", port.number);
    let settings = [
        ("MODEL__PROVIDER", "demo"),
        ("CHANNELS__LARK__ENABLED", "false"),
        ("SERVER__BIND", bind.as_str()),
    ];
    let mut world = World::process(&settings, None, reporter).await;
    open(&browser, &world, "").await;
    browser.types("#text", TASK).await;
    browser.click(".send").await;
    browser.sees(".log .card.wait", "计划确认").await;
    browser.types("#text", "还没发出的话").await;
    world.child().kill();
    browser.sees("#banner", "正在重新连接").await;
    browser.find(".lost #part-status").await;
    world.restart_process(None);
    browser.sees_no("#banner:not([hidden])").await;
    browser.sees_no(".lost").await;
    assert_eq!(
        browser.ask("return document.getElementById('text').value", &[]).await,
        "还没发出的话"
    );
    browser.click(OK).await;
    browser.sees("#part-turns .good", "已完成").await;
    browser.close().await;
    world.end().await;
}

/// interface 3: whatever people, files and models write is shown, never run; nothing is wider than a narrow screen.
#[tokio::test]
async fn foreign_text_stays_text_and_fits() {
    let Some(browser) = Browser::start().await else { return };
    let world = demo().await;
    let evil = "汇总 <img src=x onerror=\"document.title='owned'\"> <script>document.title='owned'</script> [x](javascript:document.title='owned')";
    let long = "汇总".to_owned() + &"W".repeat(300);
    browser.look(360, 740, "dark").await;
    open(
        &browser,
        &world,
        "?chat=%3Cscript%3Ealert(1)%3C%2Fscript%3E&as=%22%3E%3Cimg%20src%3Dx%3E",
    )
    .await;
    for text in [evil, &long] {
        browser.types("#text", text).await;
        browser.click(".send").await;
    }
    browser.sees(".log .card.wait", "<script>").await;
    assert_eq!(
        browser
            .ask(
                "return document.querySelectorAll('.log script, .log img, a[href^=java]').length",
                &[]
            )
            .await,
        0
    );
    assert!(!browser.ask("return document.title", &[]).await.as_str().unwrap().contains("owned"));
    let width = "return document.documentElement.scrollWidth";
    assert_eq!(browser.ask(width, &[]).await, 360, "nothing is wider than the screen");
    let weight = "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))\
                  .filter(one => !one.name.includes('/live')).reduce((sum, one) => sum + one.decodedBodySize, 0)";
    let weight = browser.ask(weight, &[]).await.as_u64().unwrap();
    assert!(weight > 10_000 && weight < 60_000, "the page weighs {weight} bytes");
    let elsewhere = "return performance.getEntriesByType('resource').filter(one => !one.name.startsWith(location.origin)).length";
    assert_eq!(browser.ask(elsewhere, &[]).await, 0, "nothing comes from elsewhere");
    browser.end().await;
    world.end().await;
}

/// interface 3: the login page at every width: one column in the middle, the seal above the title, an input wide enough for a token, a button
/// on one line, nothing over something else.
#[tokio::test]
async fn the_login_page_is_right_at_every_width() {
    let Some(browser) = Browser::start().await else { return };
    let mut world = World::start(
        &[("CHANNELS__CONSOLE__TOKEN", TOKEN), ("CHANNELS__LARK__ENABLED", "false")],
        reporter,
    )
    .await;
    let boxes = "return JSON.stringify(['.seal', 'h1', 'label', '#token', '#why', 'button'].map(css => {\
                 const one = document.querySelector('.login ' + css).getBoundingClientRect();\
                 return [one.left, one.top, one.right, one.bottom] }))";
    for width in [360, 940, 1024, 1440] {
        browser.look(width, 780, "light").await;
        open(&browser, &world, "login").await;
        browser.sees(".login h1", "Countersign").await;
        let boxes = browser.ask(boxes, &[]).await;
        let boxes: Vec<[f64; 4]> = serde_json::from_str(boxes.as_str().unwrap()).unwrap();
        for (above, below) in boxes.iter().zip(&boxes[1..]) {
            assert!(above[3] <= below[1], "{width}: one lies over the next: {boxes:?}");
        }
        let [left, top, right, bottom] = boxes[3];
        assert!(right - left >= 300.0 && bottom - top < 60.0, "{width}: the input: {boxes:?}");
        let middle = f64::from(width) / 2.0;
        assert!(((left + right) / 2.0 - middle).abs() < 2.0, "{width}: not in the middle: {boxes:?}");
        let [_, top, _, bottom] = boxes[5];
        assert!(bottom - top < 50.0, "{width}: the button takes more than a line: {boxes:?}");
        assert_eq!(browser.ask("return document.documentElement.scrollWidth", &[]).await, width);
    }
    browser.types("#token", TOKEN).await;
    browser.click(".login button").await;
    browser.sees(".empty", "动手之前").await;
    browser.end().await;
    world.api = world.api.with_token(TOKEN);
    world.end().await;
}

const TOKEN: &str = "console-token-0123456789abcdef";

/// interface 3: the header is one line on every screen, in both languages, with everything that a token brings; on a narrow one the links to other
/// pages open from a menu.
#[tokio::test]
async fn the_header_is_one_line_on_every_screen() {
    let Some(browser) = Browser::start().await else { return };
    let settings = [("CHANNELS__CONSOLE__TOKEN", TOKEN), ("CHANNELS__LARK__ENABLED", "false")];
    let mut world = World::start(&settings, reporter).await;
    open(&browser, &world, "login").await;
    browser.types("#token", TOKEN).await;
    browser.click(".login button").await;
    browser.sees(".empty", "动手之前").await;
    let seen = "return JSON.stringify([...document.querySelectorAll('.top a, .top button, .top summary')]\
                .filter(one => one.checkVisibility() && !one.classList.contains('off'))\
                .map(one => [one.innerText, one.getBoundingClientRect().height, one.getBoundingClientRect().right]))";
    for (locale, leave) in [("zh-CN", "退出"), ("en-US", "Log out")] {
        for page in ["", "rules", "grants", "turn/turn_none"] {
            for width in [360, 390, 768, 1440] {
                browser.look(width, 780, "light").await;
                open(&browser, &world, &format!("locale?to={locale}&next=/console/{page}")).await;
                let at = format!("{locale}, /console/{page}, {width}");
                let height = browser.ask("return document.querySelector('.top').offsetHeight", &[]).await;
                assert!(height.as_u64().is_some_and(|height| height <= 64), "{at}: {height}");
                if width < 940 {
                    browser.click(".menu summary").await;
                }
                let seen = browser.ask(seen, &[]).await;
                let seen: Vec<(String, f64, f64)> = serde_json::from_str(seen.as_str().unwrap()).unwrap();
                assert!(seen.iter().any(|(text, ..)| text == leave), "{at}: {seen:?}");
                for (text, height, right) in seen {
                    assert!(
                        height <= 50.0 && right <= f64::from(width),
                        "{at}: {text} takes {height}, to {right}"
                    );
                }
                let wide = browser.ask("return document.documentElement.scrollWidth", &[]).await;
                assert_eq!(wide, width, "{at}");
            }
        }
    }
    browser.close().await;
    world.api = world.api.with_token(TOKEN);
    world.end().await;
}

/// interface 3: what is longer than the window begins at its top, with its buttons in reach: when it comes, and when the page is opened.
#[tokio::test]
async fn a_long_card_opens_at_its_top() {
    let Some(browser) = Browser::start().await else { return };
    let steps: Vec<String> = (1..=12).map(|number| format!("写第 {number} 份报告，并核对其中的数字")).collect();
    let steps: Vec<(&str, &[&str])> = steps.iter().map(|step| (step.as_str(), &["read_file", "write_file"][..])).collect();
    let script = in_order(vec![planned("十二份报告", &steps)]);
    let world = World::start(&[("CHANNELS__LARK__ENABLED", "false")], script).await;
    let there = "const [view, card, ok] = ['#scroll', '.log .msg:last-of-type .card.wait', '.log .msg:last-of-type .card.wait .bar button']\
                   .map(css => document.querySelector(css)?.getBoundingClientRect());\
                 return Boolean(view && card && ok && card.height > view.height && card.top >= view.top && card.top < view.top + 80\
                   && ok.top > view.top && ok.bottom <= view.bottom)";
    for (chat, width, height) in [("wide", 1440, 700), ("narrow", 360, 740)] {
        browser.look(width, height, "light").await;
        open(&browser, &world, &format!("?chat={chat}")).await;
        browser.types("#text", "写十二份报告").await;
        browser.click(".send").await;
        browser.sees(".log .card.wait", "核对其中的数字").await;
        for how in ["as it comes", "as the page is opened"] {
            eventually(&format!("{chat}: the top of the card {how}"), || async {
                (browser.ask(there, &[]).await == true).then_some(())
            })
            .await;
            browser.reload().await;
        }
    }
    browser.close().await;
    world.end().await;
}
