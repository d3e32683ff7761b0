//! What a tool says a call would change: the preview that people see before they approve it.

use std::fs;
use std::os::unix::fs::symlink;

use countersign_agent::tools::Toolbox;
use serde_json::{Value, json};

use crate::support::workspace::toolbox;

async fn preview(tools: &Toolbox, name: &str, arguments: Value) -> Option<String> {
    tools.get(name).unwrap().preview(&arguments).await
}

async fn write(tools: &Toolbox, path: &str, content: &str) -> Option<String> {
    preview(tools, "write_file", json!({"path": path, "content": content})).await
}

/// S4-12: a write is previewed as a unified diff of what is there: changed lines with three lines around them, a new file whole, and
/// in a sentence what cannot be compared. Nothing is written by looking.
#[tokio::test]
async fn a_write_is_previewed_as_a_diff() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let old: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    fs::write(folder.path().join("a.md"), &old).unwrap();
    let diff = write(&tools, "a.md", &old.replace("line 10\n", "line ten\n")).await.unwrap();
    assert_eq!(
        diff,
        "--- a.md\n+++ a.md\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n"
    );
    assert_eq!(
        write(&tools, "notes/new.md", "eins\nzwei").await.unwrap(),
        "--- /dev/null\n+++ notes/new.md\n@@ -0,0 +1,2 @@\n+eins\n+zwei\n\\ No newline at end of file\n"
    );
    assert_eq!(
        write(&tools, "a.md", &old).await.unwrap(),
        "changes nothing: `a.md` holds exactly this"
    );
    fs::write(folder.path().join("picture.png"), [0xff, 0xd8, 0xff]).unwrap();
    let told = write(&tools, "picture.png", "x").await.unwrap();
    assert!(told.contains("no text that could be compared"), "{told}");
    fs::write(folder.path().join("long.txt"), "x\n".repeat(40_000)).unwrap();
    let told = write(&tools, "long.txt", "x").await.unwrap();
    assert_eq!(told, "replaces `long.txt`, 80000 bytes, too long to compare");
    assert_eq!(fs::read_to_string(folder.path().join("a.md")).unwrap(), old);
    assert!(!folder.path().join("notes").exists());
}

/// S4-12: where a write would be refused there is no preview, and what lies outside the workspace is not looked at; reads have none.
#[tokio::test]
async fn what_is_refused_has_no_preview() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "canary").unwrap();
    let folder = tempfile::tempdir().unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    let tools = toolbox(folder.path());
    for path in ["../secret", "/etc/passwd", "out/secret", "", "a/"] {
        assert_eq!(write(&tools, path, "x").await, None, "{path}");
    }
    let told = write(&tools, "link", "x").await;
    assert!(told.is_none_or(|told| !told.contains("canary")));
    assert_eq!(
        preview(&tools, "write_file", json!({"path": "a"})).await,
        None,
        "arguments that do not fit"
    );
    assert_eq!(preview(&tools, "read_file", json!({"path": "link"})).await, None);
}

/// S4-12: two files that have nothing in common are compared in time that a person waits for.
#[tokio::test]
async fn a_comparison_is_quick() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let numbered = |from: u32, to: u32| (from..to).map(|number| format!("{number}\n")).collect::<String>();
    fs::write(folder.path().join("a"), numbered(100_000, 109_000)).unwrap();
    let started = std::time::Instant::now();
    let diff = write(&tools, "a", &numbered(200_000, 209_000)).await.unwrap();
    assert!(diff.len() > 100_000 && started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
}
