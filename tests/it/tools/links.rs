//! Links that somebody puts into the workspace while calls are judged and run.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign_agent::tools::CallHandle;
use serde_json::json;

use super::{names, write};
use crate::support::workspace::toolbox;

/// interface §10: once rules have looked behind the links of a path, a read follows none: one that is met now was put there later.
#[tokio::test]
async fn links_that_were_not_judged_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("secrets")).unwrap();
    fs::write(folder.path().join("secrets/a.md"), "secret").unwrap();
    symlink("secrets", folder.path().join("folder")).unwrap();
    symlink("secrets/a.md", folder.path().join("link.md")).unwrap();
    symlink("gone.md", folder.path().join("dangling.md")).unwrap();
    let tools = toolbox(folder.path());
    let judged = CallHandle {
        links_resolved: true,
        ..CallHandle::default()
    };
    for (name, path, link) in [
        ("read_file", "folder/a.md", "folder"),
        ("read_file", "link.md", "link.md"),
        ("read_file", "dangling.md", "dangling.md"),
        ("list_files", "folder", "folder"),
    ] {
        let arguments = json!({"path": path});
        let tool = tools.get(name).unwrap();
        let told = tool.run(&arguments, &judged).await.unwrap_err().to_string();
        assert_eq!(
            told,
            format!("`{path}` goes through the link `{link}`; give the path of the thing itself")
        );
        let behind = tool.behind_links(&arguments).await;
        if path == "dangling.md" {
            assert_eq!(behind, None);
            continue;
        }
        let behind = behind.unwrap();
        assert!(behind["path"].as_str().unwrap().starts_with("secrets"), "{behind}");
        let output = tool.run(&behind, &judged).await.unwrap();
        assert!(output.text.contains("secret"), "{}", output.text);
        assert!(tool.preview(&arguments).await.unwrap().contains("secrets"));
    }
    let plain = json!({"path": "./secrets//a.md"});
    assert_eq!(tools.get("read_file").unwrap().behind_links(&plain).await, None);
    let write = json!({"path": "link.md", "content": "x"});
    let shown = tools.get("write_file").unwrap().preview(&write).await.unwrap();
    assert!(!shown.contains("-secret"), "{shown}");
}

/// attacks-2 N12: a folder that is swapped for a link while the call runs takes no write elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_swapped_for_a_link_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (out, secret) = (folder.path().join("out"), folder.path().join("secret/a"));
    fs::create_dir_all(out.join("a")).unwrap();
    fs::create_dir_all(&secret).unwrap();
    symlink("../secret/a", out.join("link")).unwrap();
    let tools = toolbox(folder.path());
    let done = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (done, out) = (Arc::clone(&done), out.clone());
        move || {
            while !done.load(Ordering::Relaxed) {
                for (from, to) in [("a", "kept"), ("link", "a"), ("a", "link"), ("kept", "a")] {
                    // A write may have created the folder meanwhile.
                    let _ = fs::rename(out.join(from), out.join(to));
                }
            }
        }
    });
    for at in 0..400 {
        let _ = write(&tools, &format!("out/a/{at}"), "x").await;
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(names(&secret), [""; 0]);
}
