//! Everything that the configuration points to, tried side by side. Nothing is paid for, and nothing stays changed but a key of Redis that expires.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::Clock;
use countersign_agent::model::Provider;
use countersign_gateway::app::{Http, socket_platforms};
use countersign_gateway::channels::{Channel, DeliveryError, LarkClient, LarkHook, Signals, SocketAnswer, SocketPlatform};
use countersign_gateway::config::{Boot, Coordination, Live};
use countersign_gateway::lanes;
use countersign_gateway::store::{Ledger, SchemaState, StoreError, try_redis};
use futures_util::future::join_all;
use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::verdict::CheckVerdict;
use super::{clock, mcp, model, slack};
use crate::cli::output::{problem, result};

/// For one trial, all its requests together.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Trial {
    what: String,
    verdict: CheckVerdict,
}

impl Trial {
    /// A good one to stdout, as a comment of the YAML above it; anything else to stderr. A bad one takes `sound` away.
    pub(super) fn print(&self, sound: &mut bool) -> anyhow::Result<()> {
        let what = &self.what;
        match &self.verdict {
            CheckVerdict::Good(text) => result(&format!("# online: {what}: {text}"))?,
            CheckVerdict::Doubtful(text) => problem(&format!("online: {what}: warning: {text}")),
            CheckVerdict::Bad(text) => {
                problem(&format!("online: {what}: {text}"));
                *sound = false;
            }
        }
        Ok(())
    }
}

/// Tries everything that is enabled. `tools` are the names of those that tasks have without a server.
///
/// # Errors
/// When this machine has no HTTP client or no templates to offer.
pub(super) async fn try_all(boot: &Boot, live: &Live, tools: &[String]) -> anyhow::Result<Vec<Trial>> {
    let http = Http::new()?;
    // The admin's own templates were checked before; for a trial the built-in ones do.
    let templates = countersign_gateway::template::load(None)?;
    let mut hosts = Vec::new();
    let lark = live.lark.enabled.then(|| {
        hosts.push(boot.lark.base_url.as_str());
        LarkClient::new(&boot.lark, templates, http.for_url(&boot.lark.base_url), &Clock::system())
    });
    let slack_http = live.slack.enabled.then(|| {
        hosts.push(boot.slack.base_url.as_str());
        http.for_url(&boot.slack.base_url)
    });
    let models: Vec<_> = [("model".to_owned(), &live.model)]
        .into_iter()
        .chain(live.models.iter().map(|(name, model)| (format!("models.{name}"), model)))
        .collect();
    let remote = models.iter().filter(|(_, model)| model.provider != Provider::Demo);
    hosts.extend(remote.map(|(_, model)| model.base_url.as_str()));
    let answers = models
        .iter()
        .map(async |(key, model)| (key.clone(), limited(model::verdict(model, http.for_url(&model.base_url))).await));
    let platforms = socket_platforms(boot, &http, &Arc::new(LarkHook::new(&boot.lark)));
    let platforms = platforms.into_iter().filter(|platform| live.is_enabled(platform.kind()));
    let sockets = platforms.map(async |platform| {
        let key = format!("channels.{}.delivery", platform.kind().as_str());
        (key, limited(try_socket(&*platform)).await)
    });
    let (database, redis, lark, slack, models, sockets, clock, servers) = tokio::join!(
        limited(try_database(&boot.stores.database_url, boot.stores.migrate_on_start)),
        // Its own limits are shorter.
        redis_verdict(&boot.stores.coordination),
        when(lark.as_ref().map(|client| limited(try_lark(client)))),
        when(slack_http.map(|http| limited(slack::verdict(&boot.slack, http)))),
        join_all(answers),
        join_all(sockets),
        limited(clock::verdict(&hosts, &http, Clock::system())),
        mcp::verdicts(&boot.tools.mcp_servers, boot.tools.workspace.as_deref()),
    );
    let tried = [
        ("store.database_url", Some(database)),
        ("store.redis_url", redis),
        ("channels.lark", lark),
        ("channels.slack", slack),
    ];
    let mut names = tools.to_vec();
    let mut listed = Vec::new();
    for (what, verdict, offered) in servers {
        names.extend(offered);
        listed.push((what, verdict));
    }
    let left_out = lanes::left_out(live, &names).into_iter();
    let done = tried
        .into_iter()
        .filter_map(|(what, verdict)| Some((what.to_owned(), verdict?)))
        .chain(sockets)
        .chain(models)
        .chain([("clock".to_owned(), clock)])
        .chain(listed)
        .chain(left_out.map(|line| ("tools".to_owned(), CheckVerdict::Doubtful(line))));
    Ok(done.map(|(what, verdict)| Trial { what, verdict }).collect())
}

/// Does a connection for events open, and does the platform greet it? It is closed then. An event that comes in between is not acknowledged, so
/// that the platform sends it to the gateway.
async fn try_socket(platform: &dyn SocketPlatform) -> CheckVerdict {
    let socket = match platform.open().await {
        Ok(socket) => socket,
        Err(error) => return CheckVerdict::Bad(error.to_string()),
    };
    let (greeted, is_greeted) = oneshot::channel();
    let (recycle, _) = oneshot::channel();
    let stop = CancellationToken::new();
    let signals = Signals {
        greeted,
        recycle,
        stop: stop.clone(),
    };
    let clock = Clock::system();
    let mut serving = std::pin::pin!(socket.serve(&clock, signals, async |_| SocketAnswer::NotTaken));
    tokio::select! {
        biased;
        ending = &mut serving => CheckVerdict::Bad(ending.why().to_owned()),
        Ok(()) = is_greeted => {
            stop.cancel();
            serving.await;
            CheckVerdict::Good(String::from("a connection for events opens"))
        }
    }
}

async fn limited(trial: impl Future<Output = CheckVerdict>) -> CheckVerdict {
    let late = || CheckVerdict::Bad(format!("no answer in {} s", LIMIT.as_secs()));
    tokio::time::timeout(LIMIT, trial).await.unwrap_or_else(|_| late())
}

async fn when<T>(trial: Option<impl Future<Output = T>>) -> Option<T> {
    match trial {
        Some(trial) => Some(trial.await),
        None => None,
    }
}

/// Would a start go well with the database? It is left as it is, beside a gateway that may be running.
async fn try_database(url: &SecretString, migrate_on_start: bool) -> CheckVerdict {
    match Ledger::try_start(url, migrate_on_start).await {
        Ok(SchemaState::Current) => CheckVerdict::Good(String::from("the database answers and has the current schema")),
        Ok(SchemaState::Absent) if migrate_on_start => CheckVerdict::Good(String::from("the file does not exist yet and will be created")),
        Ok(SchemaState::Behind) if migrate_on_start => {
            CheckVerdict::Good(String::from("the database answers; its schema is brought up to date at start"))
        }
        Ok(SchemaState::Absent) => CheckVerdict::Bad(String::from("the file does not exist: run `countersign migrate`")),
        Ok(SchemaState::Behind) => CheckVerdict::Bad(String::from("the schema is older than this program: run `countersign migrate`")),
        Err(error) => CheckVerdict::Bad(error.to_string()),
    }
}

/// How Redis stands; `None` without a configured one.
async fn redis_verdict(coordination: &Coordination) -> Option<CheckVerdict> {
    let Coordination::Redis { url, prefix } = coordination else {
        return None;
    };
    Some(match try_redis(url, prefix).await {
        Ok(()) => CheckVerdict::Good(String::from("the server takes keys and wake-ups")),
        // What the server says of its own; a password is in none of it.
        Err(StoreError::Unavailable(why)) => CheckVerdict::Bad(why),
        Err(error) => CheckVerdict::Bad(error.to_string()),
    })
}

/// The tenant token and the bot's own id.
async fn try_lark(client: &LarkClient) -> CheckVerdict {
    match client.identity().await {
        Ok(bot) => CheckVerdict::Good(format!("the credentials are good; the bot is {bot}")),
        Err(DeliveryError::Forbidden(reason)) => CheckVerdict::Bad(format!("the credentials or permissions are refused: {reason}")),
        Err(DeliveryError::Retry { reason, .. } | DeliveryError::Content(reason) | DeliveryError::Gone(reason)) => {
            CheckVerdict::Bad(reason)
        }
    }
}
