//! `cargo run -- demo` and `cargo test` share their dependencies: a package with other features would be compiled again.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// design: issue L part D, each dependency of the program has the same features in the build of the program and in that of the tests.
#[test]
fn the_program_and_its_tests_share_their_dependencies() {
    let tests = packages("normal,build,dev");
    let twice: Vec<String> = packages("normal,build").difference(&tests).cloned().collect();
    assert!(
        twice.is_empty(),
        "compiled a second time for the tests, with more features than these; name those in crates/build-once/Cargo.toml: {twice:#?}"
    );
}

/// Each package of the workspace's build over these kinds of edges, with its features.
fn packages(edges: &str) -> BTreeSet<String> {
    let out = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--prefix",
            "none",
            "--format",
            "{p} {f}",
            "--edges",
            edges,
        ])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    // A package that was listed before is marked.
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
