//! A test that cannot run here says so: on stderr, and in the file that `COUNTERSIGN_TEST_SKIPS` names, which `scripts/test` counts.

use std::io::Write;

/// What a test needs and does not have. `COUNTERSIGN_TEST_REQUIRE` names those that must be there, separated by commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Redis or PostgreSQL.
    Servers,
    /// Chromium or its driver.
    Browser,
    /// The right to mount a file system.
    Mount,
    /// The program `script`, which plays a terminal.
    Terminal,
    /// The program `openssl`, which makes certificates.
    Openssl,
    /// The other pairing of stores: the test is about that one, and runs there.
    Pairing,
    /// The other way by which events come: the test is about that one, and runs there.
    Delivery,
    /// The other platform: the test looks at none, and runs there.
    Platform,
}

impl Missing {
    fn name(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Browser => "browser",
            Self::Mount => "mount",
            Self::Terminal => "terminal",
            Self::Openssl => "openssl",
            Self::Pairing => "pairing",
            Self::Delivery => "delivery",
            Self::Platform => "platform",
        }
    }
}

/// Tells that the test of this thread is skipped, and why. The test returns next.
pub fn skip(missing: Missing, why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let required = std::env::var("COUNTERSIGN_TEST_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name == missing.name()),
        "COUNTERSIGN_TEST_REQUIRE is {required}, but {why}"
    );
    // Not `eprintln!`: the test runner keeps that to itself when a test does not fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
    if let Some(path) = std::env::var_os("COUNTERSIGN_TEST_SKIPS") {
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        // One write: other tests and processes write here too.
        file.write_all(format!("{}\t{test}\t{why}\n", missing.name()).as_bytes()).unwrap();
    }
}
