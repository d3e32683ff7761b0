//! A headless Chromium, driven as a person would: started on a free port, with a profile of its own, gone at the end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use super::api::eventually;
use super::skips::{Missing, skip};

/// One browser at a time: they are heavy.
static TURN: Mutex<()> = Mutex::const_new(());

/// A browser with one page.
pub struct Browser {
    client: Client,
    driver: Driver,
    session: String,
    profile: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Browser {
    /// A test that failed has not closed it, and the driver's death does not: its pages would go on asking ports that other tests have by
    /// now.
    fn drop(&mut self) {
        let profile = self.profile.path().to_str().unwrap();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&command).contains(profile) {
                // It may have ended by itself.
                let _ = Command::new("sh")
                    .arg("-c")
                    .arg(format!("kill -KILL {process}"))
                    .stderr(Stdio::null())
                    .status();
            }
        }
    }
}

/// `chromedriver`; killed when dropped.
struct Driver {
    child: Child,
    base: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a program is.
fn program(names: &[&str]) -> Option<String> {
    let folders = ["/usr/bin", "/usr/local/bin", "/usr/lib/chromium"];
    let paths = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| format!("{folder}/{name}")));
    paths.into_iter().find(|path| Path::new(path).exists())
}

impl Driver {
    fn start(program: &str) -> Self {
        // The port that it takes for IPv4 may be somebody else's for IPv6: then it ends at once.
        let mut starts = std::iter::repeat_with(|| Self::try_start(program)).take(5);
        starts.find_map(|driver| driver).expect("chromedriver does not start")
    }

    fn try_start(program: &str) -> Option<Self> {
        let mut child = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            line.split_once("successfully on port ")
                .map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        let Some(port) = port else {
            let _ = child.wait();
            return None;
        };
        // Somebody must read on, or the driver blocks when its pipe is full.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Some(Self {
            child,
            base: format!("http://127.0.0.1:{port}"),
        })
    }
}

impl Browser {
    /// A new browser. `None` means that Chromium or its driver is not installed; the test is reported as skipped.
    pub async fn start() -> Option<Self> {
        let (Some(chromium), Some(driver)) = (
            program(&["chromium", "chromium-browser", "google-chrome"]),
            program(&["chromedriver"]),
        ) else {
            skip(Missing::Browser, "chromium or chromedriver is not installed");
            return None;
        };
        let turn = TURN.lock().await;
        let profile = tempfile::tempdir().unwrap();
        let driver = Driver::start(&driver);
        let profile_arg = format!("--user-data-dir={}", profile.path().display());
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-proxy-server",
            "--hide-scrollbars",
            // Its reader reads Chinese: the console speaks the language of the browser.
            "--accept-lang=zh-CN",
            &profile_arg,
        ];
        let capabilities = json!({
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "binary": chromium, "args": flags },
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!()
        };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&driver.base)
            .await
            .unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Some(Self {
            client,
            driver,
            session,
            profile,
            _turn: turn,
        })
    }

    /// A command that WebDriver itself does not have.
    async fn own(&self, path: &str, body: Value) -> Value {
        let http = countersign_agent::tls::http_client().no_proxy().build().unwrap();
        let url = format!("{}/session/{}/{path}", self.driver.base, self.session);
        let answer: Value = http.post(url).json(&body).send().await.unwrap().json().await.unwrap();
        answer["value"].clone()
    }

    /// Opens an address.
    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    /// What a script gives back.
    pub async fn ask(&self, script: &str, given: &[&str]) -> Value {
        let given = given.iter().map(|one| Value::from(*one)).collect();
        self.client.execute(script, given).await.unwrap()
    }

    /// Text of all that `css` finds, as it is seen.
    pub async fn text(&self, css: &str) -> String {
        let script = "return [...document.querySelectorAll(arguments[0])].map(one => one.innerText).join('\\n')";
        self.ask(script, &[css]).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until something that `css` finds holds `words`.
    pub async fn sees(&self, css: &str, words: &str) {
        eventually(&format!("{words:?} in {css}"), || async {
            self.text(css).await.contains(words).then_some(())
        })
        .await;
    }

    /// Waits until nothing that `css` finds is there.
    pub async fn sees_no(&self, css: &str) {
        eventually(&format!("no {css}"), || async {
            let found = self.ask("return document.querySelector(arguments[0]) === null", &[css]).await;
            (found == true).then_some(())
        })
        .await;
    }

    /// Waits for an element.
    pub async fn find(&self, css: &str) -> Element {
        eventually(css, || async { self.client.find(Locator::Css(css)).await.ok() }).await
    }

    /// Clicks the last visible element that `css` finds; drawn anew meanwhile: again.
    pub async fn click(&self, css: &str) {
        eventually(&format!("a click on {css}"), || async {
            let found = self.client.find_all(Locator::Css(css)).await.ok()?;
            found.last()?.click().await.ok()
        })
        .await;
    }

    /// Types into what `css` finds.
    pub async fn types(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap();
    }

    /// Types wherever the focus is.
    pub async fn keys(&self, text: &str) {
        self.client.active_element().await.unwrap().send_keys(text).await.unwrap();
    }

    /// What the browser complained of so far: script errors, refused resources, breaches of the page's policy.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.own("se/log", json!({ "type": "browser" })).await;
        let entries = log.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// A window of this size, in this colour scheme.
    pub async fn look(&self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.cdp("Emulation.setDeviceMetricsOverride", size).await;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.cdp("Emulation.setEmulatedMedia", media).await;
    }

    /// The window as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        self.client.screenshot().await.unwrap()
    }

    async fn cdp(&self, command: &str, params: Value) -> Value {
        self.own("goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    /// Closes it; it must not have complained.
    pub async fn end(self) {
        assert_eq!(self.complaints().await, Vec::<String>::new(), "the browser complains");
        self.close().await;
    }

    /// Closes it, whatever it said.
    pub async fn close(self) {
        self.client.clone().close().await.unwrap();
    }
}
