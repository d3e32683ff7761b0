//! The file tools: what they do inside the workspace, and that nothing leads out of it.

mod links;

use countersign_agent::tools::Reach;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use countersign_agent::domain::EffectClass;
use countersign_agent::tools::{CallHandle, ToolError, Toolbox, unpack_sample};
use serde_json::{Value, json};

use crate::support::workspace::{boot, toolbox};

async fn run(tools: &Toolbox, name: &str, arguments: Value) -> Result<String, String> {
    match tools.get(name).unwrap().run(&arguments, &CallHandle::default()).await {
        Ok(output) => Ok(output.text),
        Err(ToolError::TellModel(text)) => Err(text),
        Err(ToolError::Unknown(text) | ToolError::Fatal(text)) => panic!("fatal: {text}"),
    }
}

async fn read(tools: &Toolbox, path: &str) -> Result<String, String> {
    run(tools, "read_file", json!({"path": path})).await
}

async fn write(tools: &Toolbox, path: &str, content: &str) -> Result<String, String> {
    run(tools, "write_file", json!({"path": path, "content": content})).await
}

async fn list(tools: &Toolbox, path: &str) -> Result<String, String> {
    run(tools, "list_files", json!({"path": path})).await
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// design: interface §5, write, read and list, with nothing left behind beside the files.
#[tokio::test]
async fn write_read_list() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    assert_eq!(list(&tools, ".").await.unwrap(), "(empty)");
    assert_eq!(
        write(&tools, "notes/今天.md", "# 今天\n好\n").await.unwrap(),
        "created `notes/今天.md`: 13 bytes, 2 lines"
    );
    assert_eq!(read(&tools, "notes/今天.md").await.unwrap(), "# 今天\n好\n");
    assert_eq!(read(&tools, "./notes/./今天.md").await.unwrap(), "# 今天\n好\n");
    write(&tools, "a.txt", "").await.unwrap();
    assert_eq!(read(&tools, "a.txt").await.unwrap(), "(empty file)");
    assert_eq!(list(&tools, ".").await.unwrap(), "a.txt\t0 bytes\nnotes/\nnotes/今天.md\t13 bytes");
    assert_eq!(list(&tools, "").await.unwrap(), list(&tools, ".").await.unwrap());
    assert_eq!(list(&tools, "notes").await.unwrap(), "notes/今天.md\t13 bytes");
    assert_eq!(names(folder.path()), ["a.txt", "notes"]);
}

/// design: a replaced file keeps its rights, and a reader that has it open keeps the old text.
#[tokio::test]
async fn replacing_is_a_rename() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let path = folder.path().join("run.md");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let open = fs::File::open(&path).unwrap();
    assert_eq!(write(&tools, "run.md", "new").await.unwrap(), "replaced `run.md`: 3 bytes, 1 lines");
    assert_eq!(std::io::read_to_string(open).unwrap(), "old");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(names(folder.path()), ["run.md"]);
}

/// design: what a tool writes never runs as somebody else: the set-user-ID, set-group-ID and sticky bits of a replaced file go.
#[tokio::test]
async fn replacing_drops_the_set_id_bits() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let path = folder.path().join("run.sh");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o7755)).unwrap();
    write(&tools, "run.sh", "new").await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o755);
}

/// interface §9: what is written is at the path that was approved: never behind a link, and under one spelling of its name.
#[tokio::test]
async fn a_write_lands_at_the_path_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    fs::create_dir(inside.join("hooks")).unwrap();
    symlink("hooks", inside.join("out")).unwrap();
    let tools = toolbox(inside);
    let told = write(&tools, "out/new/a.md", "x").await;
    assert!(format!("{told:?}").contains("goes through the link `out`"), "{told:?}");
    assert_eq!(fs::read_dir(inside.join("hooks")).unwrap().count(), 0);
    write(&tools, "cafe\u{301}.md", "x").await.unwrap();
    assert!(inside.join("caf\u{e9}.md").exists());
}

/// design: issue part E, no `..`, no absolute path, no symbolic link out, nothing that is no regular file:
/// every attempt is refused by every tool, changes nothing and reveals nothing.
#[tokio::test]
async fn nothing_leads_out() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "canary").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    fs::create_dir(inside.join("a")).unwrap();
    fs::write(inside.join("real.md"), "real").unwrap();
    symlink(outside.path(), inside.join("folder-out")).unwrap();
    symlink(outside.path().join("secret.md"), inside.join("file-out.md")).unwrap();
    symlink(outside.path().join("new.md"), inside.join("dangling.md")).unwrap();
    symlink("../../../../../../etc", inside.join("a/etc")).unwrap();
    symlink("folder-out", inside.join("twice")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    symlink("/dev/zero", inside.join("zero")).unwrap();
    symlink("/proc/self/environ", inside.join("environ")).unwrap();
    let fifo = Command::new("mkfifo").arg(inside.join("fifo")).status().unwrap();
    assert!(fifo.success());
    let tools = toolbox(inside);
    let absolute = inside.join("real.md").display().to_string();
    for path in [
        "..",
        "../secret.md",
        "a/..",
        "a/../..",
        "a/../../secret.md",
        "a/../real.md",
        "./../x",
        "/",
        "//",
        "/etc/passwd",
        &absolute,
        "real.md\0",
        "a\nb",
        "folder-out/secret.md",
        "folder-out/new.md",
        "folder-out/sub/new.md",
        "file-out.md",
        "dangling.md",
        "a/etc/hostname",
        "twice/secret.md",
        "loop",
        "loop/x",
        "zero",
        "environ",
        "fifo",
        "real.md/x",
        "a",
        "a/",
        "",
        ".",
        &"x".repeat(300),
        &"x/".repeat(1000),
        ".countersign-x.tmp",
    ] {
        let shown = path.escape_debug();
        for refusal in [read(&tools, path).await, write(&tools, path, "evil").await] {
            let refusal = refusal.expect_err(&format!("`{shown}`"));
            assert!(
                !refusal.contains("canary") && !refusal.contains(outside.path().to_str().unwrap()),
                "{refusal}"
            );
        }
    }
    for path in ["..", "/", "folder-out", "twice", "a/etc", "loop", "a/../..", "real.md", "fifo"] {
        list(&tools, path).await.expect_err(path);
    }
    assert_eq!(names(outside.path()), ["secret.md"]);
    assert_eq!(fs::read_to_string(outside.path().join("secret.md")).unwrap(), "canary");
    assert_eq!(fs::read_to_string(inside.join("real.md")).unwrap(), "real");
    let listing = list(&tools, ".").await.unwrap();
    assert!(
        listing.contains("folder-out\tnot a regular file") && !listing.contains("secret"),
        "{listing}"
    );
}

/// design: a link that stays inside is followed for reading, and never written through.
#[tokio::test]
async fn links_inside_are_read_only() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("real.md"), "real").unwrap();
    symlink("real.md", folder.path().join("link.md")).unwrap();
    let tools = toolbox(folder.path());
    assert_eq!(read(&tools, "link.md").await.unwrap(), "real");
    assert_eq!(
        write(&tools, "link.md", "x").await.unwrap_err(),
        "`link.md` is a link or a special file; choose another name"
    );
}

/// design: failures I7, what a tool gives or takes is bounded, and the cut is marked and never inside a character.
#[tokio::test]
async fn sizes_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    fs::write(folder.path().join("exact.txt"), "x".repeat(65_536)).unwrap();
    assert_eq!(read(&tools, "exact.txt").await.unwrap().len(), 65_536);
    for (text, kept) in [
        ("x".repeat(65_537), 65_536),
        ("好".repeat(30_000), 65_535),
        (format!("x{}", "😀".repeat(20_000)), 65_533),
    ] {
        fs::write(folder.path().join("long.txt"), &text).unwrap();
        let shown = read(&tools, "long.txt").await.unwrap();
        let (head, mark) = shown.rsplit_once("\n[cut: ").unwrap();
        assert_eq!(head, &text[..kept]);
        assert_eq!(
            mark,
            format!("the first {kept} of {} bytes; one read gives 65536 at most]", text.len())
        );
    }
    let refusal = write(&tools, "big.txt", &"x".repeat(65_537)).await.unwrap_err();
    assert_eq!(
        refusal,
        "the content has 65537 bytes, allowed are 65536; write it in parts, with append from the second on"
    );
    write(&tools, "big.txt", &"x".repeat(65_536)).await.unwrap();

    let many = tempfile::tempdir().unwrap();
    for n in 0..1005 {
        fs::write(many.path().join(format!("{n:04}.txt")), "").unwrap();
    }
    let listing = list(&toolbox(many.path()), ".").await.unwrap();
    assert_eq!(listing.lines().count(), 1001);
    assert!(listing.ends_with("0999.txt\t0 bytes\n[cut after 1000 entries; list a folder below]"));
}

/// F5, interface §10 M: what is appended stands behind what is there, also where there was nothing; a file does not grow without end.
#[tokio::test]
async fn a_long_text_is_written_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let append = async |content: &str| {
        run(
            &tools,
            "write_file",
            json!({"path": "a/long.md", "content": content, "append": true}),
        )
        .await
    };
    assert_eq!(append("one\n").await.unwrap(), "created `a/long.md`: 4 bytes, 1 lines");
    assert_eq!(append("two\n").await.unwrap(), "appended to `a/long.md`: 4 bytes, 1 lines");
    assert_eq!(fs::read_to_string(folder.path().join("a/long.md")).unwrap(), "one\ntwo\n");
    let tool = tools.get("write_file").unwrap();
    let call = json!({"path": "a/long.md", "content": "two\n", "append": true});
    let shown = tool.preview(&call).await.unwrap();
    assert!(shown.contains(" two\n+two\n"), "{shown}");
    let base = tool.base(&call).await.unwrap();
    assert_eq!(base.len(), 64, "the digest of what is there: {base}");
    fs::write(folder.path().join("a/long.md"), "x".repeat((1 << 20) - 1)).unwrap();
    append("y").await.unwrap();
    let told = append("z").await.unwrap_err();
    assert!(told.contains("more than 1048576 bytes"), "{told}");
    assert_eq!(fs::metadata(folder.path().join("a/long.md")).unwrap().len(), 1 << 20);
    let shown = tool.preview(&call).await.unwrap();
    assert!(shown.starts_with("appends to `a/long.md`, 1048576 bytes:\ntwo"), "{shown}");
}

/// design: bytes that are no text, and names that would forge a line of the listing.
#[tokio::test]
async fn odd_files_are_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    fs::write(folder.path().join("bytes.bin"), [b'a', 0xff, 0xfe]).unwrap();
    fs::write(folder.path().join("x\nforged.md\t1 bytes"), "").unwrap();
    assert_eq!(
        read(&tools, "bytes.bin").await.unwrap_err(),
        "`bytes.bin` is not UTF-8 text; it cannot be read here"
    );
    assert_eq!(
        list(&tools, ".").await.unwrap(),
        "bytes.bin\t3 bytes\nx\u{fffd}forged.md\u{fffd}1 bytes\t0 bytes"
    );
}

/// design: errors say what to mend.
#[tokio::test]
async fn errors_say_what_to_mend() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    assert_eq!(
        read(&tools, "no.md").await.unwrap_err(),
        "`no.md`: no such file; use list_files to see what there is"
    );
    assert_eq!(
        list(&tools, "no").await.unwrap_err(),
        "`no`: no such folder; list `.` to see what there is"
    );
    assert_eq!(
        read(&tools, "../x").await.unwrap_err(),
        "the path is refused: `..` is not allowed; give a path below the workspace"
    );
    for (arguments, part) in [
        (json!({}), "missing field `path`"),
        (json!({"path": 3}), "expected a string"),
        (json!({"path": "a", "mode": "w"}), "unknown field `mode`"),
    ] {
        let refusal = run(&tools, "read_file", arguments).await.unwrap_err();
        assert!(refusal.starts_with("wrong arguments: ") && refusal.contains(part), "{refusal}");
    }
}

/// design: 40 writers of one file leave one of their texts, whole, and no debris.
#[tokio::test]
async fn writers_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let tool = tools.get("write_file").unwrap();
    let writers: Vec<_> = (0..40)
        .map(|n| {
            let tool = Arc::clone(&tool);
            tokio::spawn(async move {
                let arguments = json!({"path": "one.md", "content": format!("{n:02}").repeat(1000)});
                tool.run(&arguments, &CallHandle::default()).await
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let text = fs::read_to_string(folder.path().join("one.md")).unwrap();
    assert_eq!(text, text[..2].repeat(1000));
    assert_eq!(names(folder.path()), ["one.md"]);
}

/// interface §5: other people hear of a file, so `send_file` can be made no read; whoever lists tools knows its class.
#[tokio::test]
async fn sending_a_file_is_no_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut configured = boot(Some(folder.path()));
    let mut class = |effect| {
        configured.tools.effects = [("send_file".to_owned(), effect)].into();
        let specs = countersign_gateway::app::tool_specs(&configured, &Reach::default()).map_err(|error| error.to_string())?;
        Ok(specs.into_iter().find(|spec| spec.name == "send_file").unwrap().effect)
    };
    assert_eq!(class(EffectClass::Destructive), Ok(EffectClass::Destructive));
    let refused = "tools.effects.send_file: found read, allowed write, destructive: other people hear of it";
    assert_eq!(class(EffectClass::Read), Err(refused.to_owned()));
}

/// design: interface §2 and §5, the file tools are there only with a workspace, in the classes of the contract;
/// `tools.effects` overrides a class but never takes a tool out of review.
#[tokio::test]
async fn the_box_follows_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let mut configured = boot(None);
    assert!(
        countersign_gateway::app::toolbox(&configured, &Reach::default())
            .unwrap()
            .specs()
            .is_empty()
    );
    configured.tools.workspace = Some(folder.path().to_owned());
    configured.tools.effects = [("read_file".to_owned(), EffectClass::Write)].into();
    let tools = countersign_gateway::app::toolbox(&configured, &Reach::default()).unwrap();
    let classes: Vec<_> = tools.specs().into_iter().map(|spec| (spec.name, spec.effect)).collect();
    assert_eq!(
        classes,
        [
            ("list_files".to_owned(), EffectClass::Read),
            ("read_file".to_owned(), EffectClass::Write),
            ("write_file".to_owned(), EffectClass::Write)
        ]
    );
    for spec in tools.specs() {
        assert_eq!(spec.parameters["additionalProperties"], json!(false), "{}", spec.name);
        assert_eq!(spec.parameters["required"][0], "path", "{}", spec.name);
    }
    assert!(tools.get("run_bash").is_none());
    configured.tools.effects = [("write_file".to_owned(), EffectClass::State)].into();
    assert_eq!(
        countersign_gateway::app::toolbox(&configured, &Reach::default())
            .unwrap_err()
            .to_string(),
        "tools.effects.write_file: found state, allowed read, write, destructive"
    );
}

/// design: a workspace that is not there is an error at start, not a new folder.
#[test]
fn a_missing_workspace_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no");
    let problem = |path: &Path| {
        countersign_gateway::app::toolbox(&boot(Some(path)), &Reach::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        problem(&missing),
        format!(
            "tools.workspace: `{}` does not exist: create the folder or mend the path",
            missing.display()
        )
    );
    assert!(!missing.exists());
    fs::write(&missing, "").unwrap();
    assert_eq!(problem(&missing), format!("tools.workspace: `{}` is no folder", missing.display()));
}

/// design: issue part E, the bundled workspace unpacks whole, once, and can be read by the tools.
#[tokio::test]
async fn the_sample_unpacks() {
    let folder = tempfile::tempdir().unwrap();
    unpack_sample(folder.path()).unwrap();
    let tools = toolbox(folder.path());
    let listing = list(&tools, ".").await.unwrap();
    for path in [
        "README.md",
        "tasks.csv",
        "metrics.csv",
        "weekly/2026-W46-maria.md",
        "notes/2026-11-13-standup.md",
    ] {
        assert!(
            listing.lines().any(|line| line.starts_with(&format!("{path}\t"))),
            "{path} in {listing}"
        );
        assert!(!read(&tools, path).await.unwrap().is_empty());
    }
    let again = unpack_sample(folder.path()).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists, "nobody's edits are overwritten");
}

/// bugs F16: a file from a Mac has a decomposed name. Either spelling of each part of the path finds it, and a write makes no second file of the
/// same look; of two files that look alike, the one that is named exactly counts.
#[tokio::test]
async fn names_of_a_mac_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(folder.path());
    let (composed, decomposed) = ("\u{dc}ber/\u{30d1}.md", "U\u{308}ber/\u{30cf}\u{309a}.md");
    fs::create_dir(folder.path().join("U\u{308}ber")).unwrap();
    fs::write(folder.path().join(decomposed), "from a Mac").unwrap();
    for path in [composed, decomposed, "\u{dc}ber/\u{30cf}\u{309a}.md"] {
        assert!(read(&tools, path).await.unwrap().contains("from a Mac"), "{path}");
    }
    assert!(list(&tools, "\u{dc}ber").await.is_ok());
    write(&tools, composed, "mended").await.unwrap();
    assert_eq!(fs::read_to_string(folder.path().join(decomposed)).unwrap(), "mended");
    assert_eq!(names(folder.path()), ["U\u{308}ber"]);
    fs::write(folder.path().join("U\u{308}ber/\u{30d1}.md"), "composed").unwrap();
    assert!(read(&tools, composed).await.unwrap().contains("composed"));
    assert!(read(&tools, decomposed).await.unwrap().contains("mended"));
    fs::write(folder.path().join("\u{e9}.txt"), "from elsewhere").unwrap();
    assert!(read(&tools, "e\u{301}.txt").await.unwrap().contains("from elsewhere"));
}
