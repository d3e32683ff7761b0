//! An edit of `config.yaml` under a running gateway: the real binary, a real file, messages flowing.

mod busy;
mod files;
mod profiles;
mod refused;
mod waiting;

use std::path::PathBuf;

use serde_json::Value;

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::scripts::{clarified, finished, in_order, planned, writes};
use crate::support::world::World;

/// A model that plans, writes `report.md` and is done, whether or not somebody confirms its plan.
fn writer() -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    let plan = planned("写报告", &[("写报告", &["write_file"])]);
    in_order(vec![plan, clarified(), writes(&["report.md"]), finished(), say("全部完成")])
}

/// The configuration file of a world.
fn file(world: &World) -> PathBuf {
    world.folder.path().join("config.yaml")
}

/// Saves it as `echo >` does.
fn save(world: &World, yaml: &str) {
    std::fs::write(file(world), yaml).unwrap();
}

/// Waits until the log holds `words`.
async fn logged(world: &mut World, words: &str) {
    let process = world.child();
    eventually(&format!("{words:?} in the log"), || async {
        process.log().contains(words).then_some(())
    })
    .await;
}

/// How many lines of the log hold `words`.
fn lines(world: &mut World, words: &str) -> usize {
    world.child().log().lines().filter(|line| line.contains(words)).count()
}

/// The row `config` of `/readyz`.
async fn row(world: &World) -> Value {
    let (status, ready) = world.api.try_get("/readyz").await;
    assert_eq!(status, 200, "an edit never stops us from accepting: {ready}");
    let parts = ready["parts"].as_array().unwrap();
    parts.iter().find(|part| part["name"] == "config").unwrap().clone()
}

/// Waits until the row is of this status and its message holds `words`.
async fn shows(world: &World, status: &str, words: &str) -> Value {
    eventually(&format!("config {status}: {words}"), || async {
        let row = row(world).await;
        (row["status"] == status && row["message"].as_str().unwrap_or_default().contains(words)).then_some(row)
    })
    .await
}

/// `plan_review_enabled` of Lark.
fn review(on: bool) -> String {
    format!("channels:\n  lark:\n    plan_review_enabled: {on}\n")
}
