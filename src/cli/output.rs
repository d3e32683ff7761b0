//! What a command prints: results to stdout, problems to stderr.

use std::io::Write;
use std::process::ExitCode;

pub(super) fn failed(message: &str) -> ExitCode {
    problem(&format!("error: {message}"));
    ExitCode::FAILURE
}

/// One line to stderr.
pub(super) fn problem(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// One line to stdout. A closed pipe ends the program quietly, as for any other tool.
pub(super) fn result(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
