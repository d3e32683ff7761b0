//! The container files agree with each other and with the program: what is copied, ports, Rust's version, keys.

use std::collections::BTreeMap;
use std::path::Path;

use countersign_gateway::config;
use serde_json::Value;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Instructions of the Dockerfile: word, rest; continued lines in one.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile").replace("\\\n", " ");
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn all(word: &str) -> Vec<String> {
    let found: Vec<String> = instructions()
        .into_iter()
        .filter(|(each, _)| each == word)
        .map(|(_, rest)| rest)
        .collect();
    assert!(!found.is_empty(), "the Dockerfile has no {word}");
    found
}

fn compose() -> Value {
    serde_saphyr::from_str(&read("compose.yaml")).unwrap()
}

fn image_config() -> Value {
    serde_saphyr::from_str(&read("deploy/config.yaml")).unwrap()
}

fn gateways() -> Vec<Value> {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let found: Vec<Value> = services
        .iter()
        .filter(|(name, _)| name.starts_with("gateway"))
        .map(|(_, service)| service.clone())
        .collect();
    assert_eq!(found.len(), 2);
    found
}

/// design 5: the image is built with the Rust that the package asks for, on the Debian that it runs on.
#[test]
fn the_image_is_built_with_our_rust() {
    let manifest = read("Cargo.toml");
    let rust = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"');
    let from = all("FROM");
    assert_eq!(from[0], format!("rust:{rust}-bookworm AS build"));
    assert_eq!(from[1], "debian:bookworm-slim");
}

/// design 5: what the build reads is copied, what is copied is there and is not ignored, and nothing else is let in.
#[test]
fn what_is_built_is_copied() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut copied = Vec::new();
    for line in all("COPY").iter().filter(|line| !line.starts_with("--from")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        copied.extend(words[..words.len() - 1].iter().map(|&word| word.to_owned()));
    }
    // What is copied for the dependencies is copied again with its folder.
    let folders = copied.clone();
    copied.retain(|path| !folders.iter().any(|folder| path.starts_with(&format!("{folder}/"))));
    let allowed: Vec<String> = read(".dockerignore")
        .lines()
        .filter_map(|line| line.strip_prefix('!').map(str::to_owned))
        .collect();
    assert_eq!(copied, allowed, "left: copied by the Dockerfile; right: let in by .dockerignore");
    for path in copied.iter() {
        assert!(root.join(path).exists(), "{path}");
    }
    // What the sources take from outside of `src` when they are compiled.
    for needed in ["crates", "templates", "migrations", "samples"] {
        assert!(copied.iter().any(|path| path == needed), "{needed} is not copied");
    }
    // cargo refuses a package whose manifest names an example or a bench that is not there.
    let empty = &all("RUN")[0];
    for manifest in folders.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let folder = manifest.trim_end_matches("Cargo.toml");
        for (kind, name) in named_targets(&read(manifest)) {
            assert!(
                empty.contains(&format!("{folder}{kind}/{name}")),
                "the empty package has no {folder}{kind}/{name}"
            );
        }
    }
}

/// The examples and benches that a manifest names: their folder, and their name.
fn named_targets(manifest: &str) -> Vec<(&'static str, String)> {
    let named = manifest.split("\n[[").skip(1).filter_map(|table| {
        let kind = match table.split("]]").next()? {
            "example" => "examples",
            "bench" => "benches",
            _ => return None,
        };
        let name = table.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((kind, name.trim_matches('"').to_owned()))
    });
    named.collect()
}

/// design 5: one port everywhere: the image's configuration, EXPOSE, the health check, what compose publishes.
#[test]
fn one_port() {
    let config = image_config();
    let (host, port) = config["server"]["bind"].as_str().unwrap().split_once(':').unwrap();
    assert_eq!(host, "0.0.0.0");
    assert_eq!(all("EXPOSE"), [port]);
    let check = &all("HEALTHCHECK")[0];
    assert!(check.contains(&format!("/dev/tcp/127.0.0.1/{port} ")) && check.contains("GET /healthz "));
    for gateway in gateways() {
        let published = gateway["ports"][0].as_str().unwrap();
        assert!(
            published.starts_with("127.0.0.1:") && published.ends_with(&format!(":{port}")),
            "{published}"
        );
    }
}

/// design 5: not root, nothing writable but the volume, and no longer grace than compose waits.
#[test]
fn a_container_may_do_little() {
    assert_eq!(all("USER"), ["10001:10001"]);
    assert_eq!(all("VOLUME"), all("WORKDIR")[1..]);
    let database = image_config()["store"]["database_url"].as_str().unwrap().to_owned();
    assert!(database.starts_with("sqlite:///data/"));
    for gateway in gateways() {
        assert_eq!(gateway["read_only"], true);
        assert_eq!(gateway["cap_drop"][0], "ALL");
        let patience: u64 = gateway["stop_grace_period"]
            .as_str()
            .unwrap()
            .trim_end_matches('s')
            .parse()
            .unwrap();
        let Ok(loaded) = config::load(None, std::iter::empty()) else {
            panic!("the defaults do not load")
        };
        assert!(patience > loaded.boot.server.shutdown_grace.as_secs());
    }
}

/// interface 2: the image's configuration with compose's environment is one that starts, on PostgreSQL and Redis; the keys that
/// wait behind a `#` are real, too.
#[test]
fn the_environment_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let secret = |name: &str, value: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, value).unwrap();
        path.display().to_string()
    };
    let text = read("compose.yaml");
    let mut waiting = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("# COUNTERSIGN__")) {
        let (name, value) = line.split_once(": ").unwrap();
        waiting.insert(format!("COUNTERSIGN__{name}"), value.trim_matches('"').to_owned());
    }
    assert!(!waiting.is_empty());
    for gateway in gateways() {
        let mut env: BTreeMap<String, String> = waiting.clone();
        for (name, value) in gateway["environment"].as_object().unwrap() {
            env.insert(name.clone(), value.as_str().unwrap().to_owned());
        }
        for (name, value) in &mut env {
            let Some(file) = value.strip_prefix("/run/secrets/") else {
                continue;
            };
            assert!(name.ends_with("_FILE"), "{name}");
            *value = match file {
                "database_url" => secret(file, "postgres://countersign:pw@postgres/countersign\n"),
                "slack_app_token" => secret(file, "xapp-0123456789abcdef\n"),
                other => secret(other, "xoxb-0123456789abcdef\n"),
            };
        }
        let loaded = config::load(
            Some(&Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/config.yaml")),
            env.into_iter(),
        );
        if let Err(problems) = loaded {
            panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        }
        for file in gateway["secrets"].as_array().unwrap() {
            assert!(compose()["secrets"][file.as_str().unwrap()]["file"].is_string(), "{file}");
        }
    }
}
