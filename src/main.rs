//! The program `countersign`: its command line, on top of the gateway.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
