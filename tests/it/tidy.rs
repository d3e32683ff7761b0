//! Checks on the source tree itself: who may import whom, and how big a file may grow.

mod cycles;
mod names;
mod one_build;
mod platforms;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Room, and the rooms it may name. Order is bottom to top; those of the package `countersign-agent` begin with `agent::`.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("agent::domain", &[]),
    ("agent::template", &["agent::domain"]),
    ("agent::reducer", &["agent::domain", "agent::template"]),
    ("agent::sse", &[]),
    ("agent::tls", &[]),
    ("agent::model", &["agent::domain", "agent::sse", "agent::tls"]),
    ("agent::tools", &["agent::domain", "agent::sse", "agent::tls"]),
    (
        "agent::engine",
        &["agent::domain", "agent::template", "agent::reducer", "agent::model", "agent::tools"],
    ),
    ("playground", &["agent::domain", "agent::model"]),
    // Which model and which MCP servers there are is told in types of the rooms that use it.
    ("config", &["agent::domain", "agent::template", "agent::model", "agent::tools"]),
    ("telemetry", &["agent::domain", "config"]),
    ("template", &["agent::template"]),
    ("store", &["agent::domain", "config"]),
    (
        "lanes",
        &[
            "agent::domain",
            "agent::template",
            "agent::reducer",
            "agent::model",
            "agent::tools",
            "agent::engine",
            "config",
            "store",
        ],
    ),
    ("channels", &["agent::domain", "agent::template", "config", "template"]),
    (
        "surroundings",
        &["agent::domain", "agent::reducer", "agent::tools", "config", "lanes", "channels"],
    ),
    (
        "conversation",
        &["agent::domain", "agent::template", "config", "template", "store", "lanes"],
    ),
    (
        "gateway",
        &[
            "agent::domain",
            "agent::template",
            "agent::model",
            "config",
            "telemetry",
            "template",
            "store",
            "lanes",
            "channels",
            "conversation",
        ],
    ),
    ("app", EVERYTHING),
    ("cli", EVERYTHING),
];
/// The composition root and the command line on top of it.
const EVERYTHING: &[&str] = &["*"];

/// Names under which things without a home gather.
const DRAWERS: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "types", "manager", "service", "misc", "mod",
];
const MAX_LINES: usize = 500;

/// S0-36, design: modules import only what their row of the table allows, and every module has a row.
#[test]
fn modules_import_only_downwards() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let Some(home) = home(&file) else { continue };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == home) else {
            wrong.push(format!("{file}: module `{home}` has no row in MAY_IMPORT"));
            continue;
        };
        for used in named_rooms(&file, &text) {
            if used != home && *allowed != EVERYTHING && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{file}: `{home}` must not import `{used}`"));
            }
        }
        if code(&text).contains("super::super") {
            wrong.push(format!("{file}: `super::super` hides where it goes, write `crate::…`"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// design: a file says in its first line what it is for and has at most 500 lines; no drawers.
#[test]
fn files_open_with_a_purpose_and_stay_small() {
    let mut wrong = Vec::new();
    for (file, text) in sources().into_iter().chain(rust_files("tests")) {
        if !text.starts_with("//! ") {
            wrong.push(format!("{file}: no `//!` first line"));
        }
        if text.lines().count() > MAX_LINES {
            wrong.push(format!("{file}: over {MAX_LINES} lines"));
        }
        let name = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if DRAWERS.contains(&name) {
            wrong.push(format!("{file}: name it for what is in it"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// design: only `config` reads the environment.
#[test]
fn only_config_reads_the_environment() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(file, text)| {
            // A child process gets `PATH` and `HOME` of this one.
            let reads = file.starts_with("crates/gateway/src/config") || file == "crates/agent/src/tools/mcp/child.rs";
            !reads
                && ["env::var", "env::vars", "env::var_os"]
                    .iter()
                    .any(|call| code(text).contains(call))
        })
        .map(|(file, _)| file)
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

/// design: SQL names its columns: a prepared `*` breaks on PostgreSQL when a newer version adds one while this one runs.
#[test]
fn sql_names_its_columns() {
    let stars = ["SELECT *", "RETURNING *", ".* FROM"];
    let lazy: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| stars.iter().any(|star| code(text).contains(star)))
        .map(|(file, _)| file)
        .collect();
    assert!(lazy.is_empty(), "{lazy:?}");
}

/// What tells the test as skipped whenever it gives nothing.
const TELLS_OF_THE_SKIP: &[&str] = &[
    "skip(",
    "Pairing::Sqlite.runs()",
    "Pairing::Postgres.runs()",
    "Delivery::Webhook.runs()",
    "RedisServer::start(",
    "PostgresServer::start(",
    "Browser::start(",
    "Small::mount(",
    "Fleet::open(",
    "Fleet::prepare(",
    " redis()",
    "fresh_database()",
    "server().await",
    "Outside::start(",
    "Terminal::start(",
    // Each passes on what one of the above gave.
    "two(",
    "waiting(",
    "one().await",
    "first(&redis)",
    "found(",
];

/// design: no test returns in silence: what cannot run here is told as skipped.
#[test]
fn no_test_returns_in_silence() {
    let mut silent = Vec::new();
    for (file, text) in rust_files("tests/it").into_iter().filter(|(file, _)| !file.contains("/support/")) {
        for (at, line) in early_returns(&text) {
            if !TELLS_OF_THE_SKIP.iter().any(|tells| line.contains(tells)) {
                silent.push(format!("{file}:{at}: {line}"));
            }
        }
    }
    assert!(silent.is_empty(), "\n{}\n", silent.join("\n"));
    let text = "#[tokio::test]\nasync fn a() {\n    let Some(b) = c().await else {\n        return;\n    };\n    if d {\n        // Why.\n        return;\n    }\n    if e {\n        return f();\n    }\n}\n";
    let found: Vec<String> = early_returns(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(found, ["let Some(b) = c().await else {", "if d {", "if e {"]);
}

/// Statements of test functions that end the test before its end: line and first words of each. A test is a function that gives nothing:
/// what `rustfmt` leaves shows its statements by how far they stand in.
fn early_returns(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut inside, mut statement) = (Vec::new(), false, String::new());
    for (at, line) in text.lines().enumerate() {
        let words = line.trim_start();
        let depth = line.len() - words.len();
        if depth == 0 && words.contains("fn ") {
            inside = words.starts_with("fn ") || words.starts_with("async fn ");
            inside &= !words.contains("->");
        }
        if depth == 4 && !words.starts_with(['}', '/']) {
            words.clone_into(&mut statement);
        }
        let returns = (words.starts_with("return") || words.contains("{ return")) && !words.contains("return Err(");
        if inside && returns && (depth == 8 || depth == 4) {
            found.push((at + 1, statement.clone()));
        }
    }
    found
}

/// design: the scan sees every spelling of an import.
#[test]
fn the_scan_sees_imports() {
    let text =
        "use crate::{domain::{Plan, x}, store};\nlet a = crate::agent::Step; // crate::gateway\n/// crate::app\nuse crate::\n    {config};";
    assert_eq!(
        named_modules(text, "crate::").into_iter().collect::<Vec<_>>(),
        ["agent", "config", "domain", "store"]
    );
    let text = "use crate::store::Ledger;\nuse countersign_agent::domain::Plan;";
    assert_eq!(
        named_rooms("crates/gateway/src/app.rs", text).into_iter().collect::<Vec<_>>(),
        ["agent::domain", "store"]
    );
    assert_eq!(
        named_rooms("crates/agent/src/tools.rs", "use crate::domain::Plan;")
            .into_iter()
            .collect::<Vec<_>>(),
        ["agent::domain"]
    );
    assert_eq!(home("crates/agent/src/reducer/step.rs").as_deref(), Some("agent::reducer"));
    assert_eq!(
        named_rooms("src/cli/serve.rs", "use countersign_gateway::{app, store};")
            .into_iter()
            .collect::<Vec<_>>(),
        ["app", "store"]
    );
    assert_eq!(home("crates/gateway/src/store/ledger/inbox.rs").as_deref(), Some("store"));
    assert_eq!(home("crates/gateway/src/store.rs").as_deref(), Some("store"));
    assert_eq!(home("crates/gateway/src/lib.rs"), None);
    assert_eq!(home("src/cli/serve.rs").as_deref(), Some("cli"));
}

/// The room a file belongs to; `None` for `lib.rs` and `main.rs`.
fn home(file: &str) -> Option<String> {
    if file.starts_with("crates/playground/") {
        return Some("playground".to_owned());
    }
    let (package, inside) = match file.strip_prefix("crates/agent/src/") {
        Some(inside) => ("agent::", inside),
        None => ("", file.strip_prefix("crates/gateway/src/").or(file.strip_prefix("src/"))?),
    };
    let first = inside.split('/').next()?.trim_end_matches(".rs");
    (first != "lib" && first != "main").then(|| format!("{package}{first}"))
}

/// The rooms that a file names.
fn named_rooms(file: &str, text: &str) -> BTreeSet<String> {
    let of_agent = |root: &str| named_modules(text, root).into_iter().map(|name| format!("agent::{name}"));
    if file.starts_with("crates/agent/") {
        return of_agent("crate::").collect();
    }
    let mut named: BTreeSet<String> = of_agent("countersign_agent::").collect();
    if !file.starts_with("crates/playground/") {
        named.extend(named_modules(text, "crate::"));
        named.extend(named_modules(text, "countersign_gateway::"));
    }
    named
}

/// The text without comments.
fn code(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every `x` in `root::x` and in `root::{x, y::z}`.
fn named_modules(text: &str, root: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for after in code(text).split(root).skip(1) {
        let after = after.trim_start();
        let Some(group) = after.strip_prefix('{') else {
            found.extend(leading_name(after));
            continue;
        };
        let (mut depth, mut start) = (1, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => start = true,
                c if start && depth == 1 && !c.is_whitespace() => {
                    found.extend(leading_name(&group[at..]));
                    start = false;
                }
                _ => (),
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

fn leading_name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

fn sources() -> Vec<(String, String)> {
    let mut all = rust_files("src");
    all.extend(rust_files("crates"));
    all
}

/// Path from the package's root and text of every Rust file under `folder`.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let shown = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                found.push((shown, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty());
    found.sort();
    found
}
