//! The command line. Results go to stdout, logs and problems to stderr; exit 0 = done, 1 = failed, 2 = bad usage.

mod output;
mod load;
mod database;
mod check;
#[cfg(feature = "demo")]
mod demo;
mod manifest;
mod mcp;
mod rules;
#[cfg(feature = "demo")]
mod send;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use countersign_gateway::store::AuditHead;
use rustix::process::{Resource, Rlimit, setrlimit};

use load::{load, source};
use output::{failed, problem, result};

const AFTER_HELP: &str = "\
Examples:
  countersign demo                    the whole handshake in this terminal
  countersign check --online          is the configuration right, and does everything answer?
  countersign serve --config /etc/countersign/config.yaml

Every key of config.yaml is also a variable, with two underscores between its parts: COUNTERSIGN__MODEL__NAME;
a secret may stand in a file: COUNTERSIGN__MODEL__API_KEY_FILE.

Exit status: 0 done, 1 failed (stderr says why), 2 bad usage.
Documentation: README.md, docs/running.md, docs/lark.md, docs/slack.md of the source.";

/// AI agents for group chats whose plan is countersigned by people before they act.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    /// Configuration file [default: config.yaml, or the built-in defaults when that is missing]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway until SIGINT or SIGTERM (the default)
    Serve,
    /// Show the whole handshake on this machine: no account, no key, no other server
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    /// Load the configuration; problems to stderr, the effective YAML to stdout
    Check(CheckArgs),
    /// Bring the database to the current schema
    Migrate,
    /// Sign and send one test event to a running gateway
    #[cfg(feature = "demo")]
    Send {
        #[command(subcommand)]
        channel: send::SendChannel,
    },
    /// Print what to paste or tick where the platform's app is made
    Manifest {
        #[command(subcommand)]
        channel: ManifestChannel,
    },
    /// Tools of MCP servers that are new or changed: look at them, confirm them
    Mcp {
        #[command(subcommand)]
        what: McpCommand,
    },
    /// Rules about calls, without putting them in force
    Rules {
        #[command(subcommand)]
        what: RulesCommand,
    },
    /// The approval trail
    Audit {
        #[command(subcommand)]
        what: AuditCommand,
    },
}

/// Arguments of `check`.
#[derive(Debug, Args)]
struct CheckArgs {
    /// Also try the database, the credentials of the enabled channels, the model's server, and the clock
    #[arg(long)]
    online: bool,
    /// Print what holds in this chat, its profile's keys in place of its channel's
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    chat: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ManifestChannel {
    /// The Slack app manifest (YAML)
    Slack(ManifestArgs),
    /// The list of Lark events, callbacks and permissions
    Lark(ManifestArgs),
}

/// Arguments of `manifest`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ManifestArgs {
    /// Events come over sockets that the gateway opens: no public address is needed
    #[arg(long)]
    socket: bool,
    /// Events come by webhook, to this public https address of the gateway
    #[arg(long, value_name = "URL", value_parser = manifest::public_url)]
    public_url: Option<String>,
}

impl ManifestArgs {
    /// `None`: events come over sockets.
    fn public_url(&self) -> Option<&str> {
        if self.socket { None } else { self.public_url.as_deref() }
    }
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Each server of `tools.mcp_servers`, and in full what of it waits for confirmation
    List {
        /// Also each tool that is confirmed, with its effect class
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        args: McpArgs,
    },
    /// Allow what waits, as it was listed
    Confirm {
        /// Name of the server
        server: String,
        /// What `list` shows for exactly these definitions
        confirmation: String,
        #[command(flatten)]
        args: McpArgs,
    },
}

/// Arguments of `mcp`.
#[derive(Debug, Args)]
struct McpArgs {
    /// Base URL of the gateway, which must be running [default: `server.bind`]
    #[arg(long, value_name = "BASE")]
    url: Option<String>,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// Show what rules would have done to the calls that the database knows. It only reads, also beside a running gateway
    Test {
        /// The rules: a list, or a map with `rules` [default: those of the configuration]
        #[arg(long, value_name = "RULES")]
        file: Option<PathBuf>,
        /// How far back: 30d, 12h
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = rules::since)]
        since: std::time::Duration,
    },
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Find entries that were changed, removed or reordered, and reviews that do not agree with them
    Verify {
        /// An entry that was kept elsewhere, as `verify` printed it or the log has it: it must still be in the trail
        #[arg(long, value_name = "SEQ:HASH")]
        expect: Option<AuditHead>,
    },
}

/// Runs the command line of this process.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; everything else is bad usage.
            let code = if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
            let _ = error.print();
            return code;
        }
    };
    close_our_memory();
    countersign_gateway::app::install_crypto();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    let outcome = runtime.block_on(Box::pin(command(cli)));
    // A blocked file operation of a tool must not keep the process from ending.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match outcome {
        Ok(code) => code,
        Err(error) => failed(&format!("{error:#}")),
    }
}

/// Keeps our secrets in this process: no core dump holds them, and other processes of our user read neither our memory nor our
/// environment. The commands that the agent runs are such processes, and so are MCP servers, which `check --online` starts too.
fn close_our_memory() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        problem(&format!("warning: a core dump of this process may hold its secrets: {error}"));
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            problem(&format!(
                "warning: other processes of this user may be able to read this process's memory and environment: {error}"
            ));
        }
    }
}

async fn command(cli: Cli) -> anyhow::Result<ExitCode> {
    let file = cli.config;
    match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => serve::serve(source(file), |_| String::new()).await,
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::demo(args).await,
        Command::Check(CheckArgs { online, chat }) => match load(file) {
            Ok(loaded) => Box::pin(check::check(loaded, online, chat.as_deref())).await,
            Err(code) => Ok(code),
        },
        Command::Migrate => match load(file) {
            Ok(loaded) => database::migrate(loaded).await,
            Err(code) => Ok(code),
        },
        #[cfg(feature = "demo")]
        Command::Send { channel } => match (load(file), channel) {
            (Ok(loaded), send::SendChannel::Lark(args)) => send::lark(loaded, args).await,
            (Ok(loaded), send::SendChannel::Slack(args)) => send::slack(loaded, args).await,
            (Err(code), _) => Ok(code),
        },
        Command::Manifest { channel } => match channel {
            ManifestChannel::Slack(args) => manifest::slack(args.public_url()),
            ManifestChannel::Lark(args) => manifest::lark(args.public_url()),
        },
        Command::Mcp { what } => match (load(file), what) {
            (Ok(loaded), McpCommand::List { all, args }) => mcp::list(&loaded, args.url, all).await,
            (
                Ok(loaded),
                McpCommand::Confirm {
                    server,
                    confirmation,
                    args,
                },
            ) => mcp::confirm(&loaded, args.url, &server, &confirmation).await,
            (Err(code), _) => Ok(code),
        },
        Command::Rules {
            what: RulesCommand::Test { file: rules, since },
        } => match load(file) {
            Ok(loaded) => match rules::test(loaded, rules, since).await? {
                Ok(lines) => {
                    result(&lines.join("\n"))?;
                    Ok(ExitCode::SUCCESS)
                }
                Err(problems) => {
                    problems.iter().for_each(|found| problem(&found.to_string()));
                    Ok(ExitCode::FAILURE)
                }
            },
            Err(code) => Ok(code),
        },
        Command::Audit {
            what: AuditCommand::Verify { expect },
        } => match load(file) {
            Ok(loaded) => database::verify_audit(loaded, expect).await,
            Err(code) => Ok(code),
        },
    }
}
