//! The rules that hold between keys, all problems at once.

use std::collections::HashMap;

use countersign_agent::domain::{Approvers, ChannelKind, GateKind, Rule, Ruling};
use countersign_agent::model::{ModelLive, Provider};
use countersign_agent::tools::McpReach;
use secrecy::ExposeSecret;

use super::boot::Boot;
use super::delivery::{EventDelivery, SECRETS, Secret};
use super::live::Live;
use super::problem::Report;
use super::profiles;
use super::rules::most_people;
use super::table::ChannelLive;
use super::values::Values;

/// The warning beside each key that lets commands run while the API wants no token.
const OWN_APPROVAL: &str =
    "runs commands on this machine, and channels.console.token is blank: such a command can approve actions over the API";

/// People who are asked in direct messages when nobody answers.
const MOST_ESCALATED: usize = 10;

/// The fewest characters of the token for the API and the console; a shorter one can be guessed.
const TOKEN: usize = 16;

/// Notes a rule that is broken: the keys that it is about, whether it is, and why.
type Note<'a> = dyn FnMut(&[&str], bool, String) + 'a;

/// Rules between keys. Each is skipped when one of its keys was refused for itself: nothing follows from it.
pub(super) fn check_rules(boot: &Boot, live: &Live, layered: &Values, report: &mut Report) {
    let mut rule = |keys: &[&str], broken: bool, why: String| {
        if broken && !keys.iter().any(|key| report.is_refused(key)) {
            let place = keys.iter().find_map(|key| layered.origin(key)).unwrap_or("default").to_owned();
            report.problem(place, keys.first().copied().unwrap_or_default(), why);
        }
    };
    check_secrets(boot, layered, &mut rule);
    for_each_place(live, &mut |section, channel, own| {
        check_quorum(section, own, &mut rule);
        check_escalation(section, channel, own, &mut rule);
    });
    check_quorums_of_rules(live, &mut rule);
    check_agent(boot, &mut rule);
    check_models(live, layered, &mut rule);
    check_profiles(live, &mut rule);
    warn(boot, live, layered, report);
}

fn check_secrets(boot: &Boot, layered: &Values, rule: &mut Note<'_>) {
    for (channel, secrets) in SECRETS {
        for secret in *secrets {
            check_secret(channel, secret, layered, rule);
        }
    }
    let bind = boot.server.bind;
    rule(
        &["channels.console.token", "server.bind"],
        !bind.ip().is_loopback() && boot.console_token.is_none(),
        format!("found a blank, must be set when server.bind ({bind}) is not loopback"),
    );
    let token = boot.console_token.as_ref().map_or(0, |token| token.expose_secret().chars().count());
    rule(
        &["channels.console.token"],
        (1..TOKEN).contains(&token),
        format!("found {token} characters, needs at least {TOKEN}: whoever guesses it decides for everybody"),
    );
}

/// What an enabled channel needs is there, and what the gateway reads has its form.
fn check_secret(channel: &str, secret: &Secret, layered: &Values, rule: &mut Note<'_>) {
    let Secret { key, prefix, advice, .. } = secret;
    let (enabled, delivery) = (format!("{channel}.enabled"), format!("{channel}.delivery"));
    let chosen = EventDelivery::named(layered.text(&delivery));
    let only = secret.only.map(|only| format!(" and {delivery} is {}", only.as_str()));
    rule(
        &[key, &enabled, &delivery],
        layered.is_on(&enabled) && secret.is_needed(chosen) && layered.is_blank(key),
        format!(
            "found a blank, must be set when {enabled} is true{}{advice}",
            only.unwrap_or_default()
        ),
    );
    let is_odd = !layered.is_blank(key) && layered.text(key).is_some_and(|text| !text.starts_with(prefix));
    rule(
        &[key, &delivery],
        secret.is_read(chosen) && is_odd,
        format!("found a secret that does not begin with {prefix}{advice}"),
    );
}

/// Gives `look` the hot keys of every channel, and of every profile in each of its channels.
fn for_each_place(live: &Live, look: &mut dyn FnMut(&str, ChannelKind, &ChannelLive)) {
    for channel in ChannelKind::ALL {
        look(&profiles::path(channel), channel, live.of_channel(channel));
    }
    for profile in live.profiles.iter() {
        for channel in profile.channels() {
            look(&format!("profiles.{}", profile.name), channel, profile.in_channel(channel));
        }
    }
}

/// Each of `escalate_to` gets a direct message.
fn check_escalation(section: &str, channel: ChannelKind, own: &ChannelLive, rule: &mut Note<'_>) {
    let key = |name: &str| format!("{section}.{name}");
    let people = &own.escalate_to;
    rule(
        &[&key("escalate_to")],
        people.len() > MOST_ESCALATED,
        format!(
            "found {} people, allowed 0 to {MOST_ESCALATED}: each gets a direct message",
            people.len()
        ),
    );
    if let Some(other) = people.iter().find(|id| !channel.is_person(id)) {
        let why = match channel {
            ChannelKind::Lark => "allowed are open ids of people (ou_…)",
            ChannelKind::Slack => "allowed are ids of people (U… or W…)",
            ChannelKind::Console => "the console has no direct messages",
        };
        rule(&[&key("escalate_to")], true, format!("found {other}, {why}"));
    }
}

/// Warns of an escalation that can never come.
fn warn_of_escalation(section: &str, own: &ChannelLive, warn: &mut dyn FnMut(&str, &str)) {
    let key = |name: &str| format!("{section}.{name}");
    if own.escalate_after.is_zero() && !own.escalate_to.is_empty() {
        warn(
            &key("escalate_to"),
            "nobody of these is asked: escalate_after_minutes is 0, which means never",
        );
    }
    if !own.escalate_after.is_zero() && own.escalate_to.is_empty() {
        warn(&key("escalate_after_minutes"), "nobody is asked: escalate_to names nobody");
    }
    if !own.escalate_to.is_empty() && own.escalate_after >= own.review_ttl {
        let ttl = own.review_ttl.as_secs() / 60;
        let why = format!("a card expires before that: plan_review_pending_ttl_minutes is {ttl}, so nobody of escalate_to is asked");
        warn(&key("escalate_after_minutes"), &why);
    }
}

fn check_quorum(section: &str, own: &ChannelLive, rule: &mut Note<'_>) {
    let key = |name: &str| format!("{section}.{name}");
    let of_calls = asked_about_calls(own);
    for (quorum, value, named, approvers) in [
        ("plan_review_quorum", own.quorum, "plan_review_approvers", &own.approvers),
        (
            "approval_quorum",
            own.approval_quorum,
            of_calls,
            own.approvers_of(GateKind::ToolApproval),
        ),
    ] {
        let (most, why) = most_approvers(named, approvers);
        rule(
            &[&key(quorum), &key(named), &key("approval_approvers")],
            value > most,
            format!(
                "found {value}, allowed {}: {why}",
                if most == 1 { String::from("1") } else { format!("1 to {most}") }
            ),
        );
    }
}

/// The key that says whom calls ask.
fn asked_about_calls(own: &ChannelLive) -> &'static str {
    match own.approval_approvers {
        Some(_) => "approval_approvers",
        None => "plan_review_approvers",
    }
}

/// The calls of a rule can be approved wherever it holds: by its people, else by those whom the place asks.
fn check_quorums_of_rules(live: &Live, rule: &mut Note<'_>) {
    for one in live.rules.iter() {
        let Ruling::Ask(demand) = &one.then else { continue };
        let mut told = false;
        for_each_place_of(live, one, &mut |section, _, own| {
            let (quorum, people) = (
                format!("{section}.approval_quorum"),
                format!("{section}.{}", asked_about_calls(own)),
            );
            let found = demand.quorum.unwrap_or(1).max(own.approval_quorum);
            if demand.approvers.is_none() && found == own.approval_quorum {
                // The place's own people and quorum: `check_quorum` looks at those.
                return;
            }
            let (most, why) = match &demand.approvers {
                Some(approvers) => (most_people(approvers), String::from("it has no more approvers")),
                None => most_approvers(&people, own.approvers_of(GateKind::ToolApproval)),
            };
            let why = format!("quorum: found {found} for {}, allowed 1 to {most}: {why}", one.described());
            rule(&["rules", &quorum, &people], found > most && !told, why);
            told |= found > most;
        });
    }
}

/// Gives `look` the hot keys of every place where a rule holds: its chats, else the enabled platforms and their profiles. Without a platform
/// people work on the console.
fn for_each_place_of(live: &Live, rule: &Rule, look: &mut dyn FnMut(&str, ChannelKind, &ChannelLive)) {
    let platform = ChannelKind::PLATFORMS.into_iter().any(|kind| live.is_enabled(kind));
    let counts = |kind: ChannelKind| {
        if kind == ChannelKind::Console {
            !platform
        } else {
            live.is_enabled(kind)
        }
    };
    if rule.chats.is_empty() {
        for_each_place(live, &mut |section, channel, own| {
            if counts(channel) {
                look(section, channel, own);
            }
        });
    }
    for chat in &rule.chats {
        let (channel, chat) = profiles::channel_of(chat);
        if counts(channel) {
            let profile = live.profiles.of_chat(channel, chat);
            let section = profile.map_or_else(|| profiles::path(channel), |profile| format!("profiles.{}", profile.name));
            look(&section, channel, live.in_chat(channel, chat));
        }
    }
}

/// How many different people these are at most, and why. `key` names them.
fn most_approvers(key: &str, approvers: &Approvers) -> (u32, String) {
    let most = most_people(approvers);
    let why = match approvers {
        Approvers::Requester => format!("more needs {key}: anyone, not_requester or a list"),
        _ => format!("{key} lists {most}"),
    };
    (most, why)
}

/// A profile's model exists, and a chat has one profile.
fn check_profiles(live: &Live, rule: &mut Note<'_>) {
    let mut owner: HashMap<&str, &str> = HashMap::new();
    for profile in live.profiles.iter() {
        let key = |name: &str| format!("profiles.{}.{name}", profile.name);
        if let Some(model) = &profile.model {
            let names: Vec<&str> = live.models.keys().map(String::as_str).collect();
            let known = match names[..] {
                [] => "models has none".to_owned(),
                _ => format!("models has {}", names.join(", ")),
            };
            rule(
                &[&key("model"), "models"],
                !live.models.contains_key(model),
                format!("found {model}, which is no model: {known}"),
            );
        }
        for chat in &profile.chats {
            let other = owner.insert(chat, &profile.name);
            rule(
                &[&key("chats")],
                other.is_some_and(|other| other != profile.name),
                format!(
                    "{chat} is in the profiles {} and {}: a chat has one profile at most",
                    other.unwrap_or_default(),
                    profile.name
                ),
            );
        }
    }
}

fn check_agent(boot: &Boot, rule: &mut Note<'_>) {
    rule(
        &["tools.run_bash", "tools.workspace"],
        boot.tools.run_bash && boot.tools.workspace.is_none(),
        "found true, needs tools.workspace: the folder that commands run in".into(),
    );
}

fn check_models(live: &Live, layered: &Values, rule: &mut Note<'_>) {
    check_model("model", &live.model, rule);
    for (name, model) in &live.models {
        let section = format!("models.{name}");
        let provider = format!("{section}.provider");
        rule(
            &[&provider, &section],
            layered.at(&provider).is_none(),
            "must be set: demo, openai or anthropic".into(),
        );
        check_model(&section, model, rule);
    }
}

fn check_model(section: &str, model: &ModelLive, rule: &mut Note<'_>) {
    let key = |name: &str| format!("{section}.{name}");
    rule(
        &[&key("provider")],
        cfg!(not(feature = "demo")) && model.provider == Provider::Demo,
        "found demo, and this program was built without it (cargo feature `demo`): use openai or anthropic".into(),
    );
    let provider = match model.provider {
        Provider::Demo => return,
        Provider::OpenAi => "openai",
        Provider::Anthropic => "anthropic",
    };
    for (name, value) in [("base_url", &model.base_url), ("name", &model.name)] {
        rule(
            &[&key(name), &key("provider")],
            value.is_empty(),
            format!("found a blank, must be set when {section}.provider is {provider}"),
        );
    }
}

/// What is allowed and may surprise.
fn warn(boot: &Boot, live: &Live, layered: &Values, report: &mut Report) {
    let place = |key: &str| layered.origin(key).unwrap_or("default");
    let is_file = boot.stores.database_url.expose_secret().starts_with("sqlite:");
    for (runs, half) in [
        (boot.server.has_webhooks(), "takes events in"),
        (boot.server.has_workers(), "works on them"),
    ] {
        if is_file && !runs {
            let why = format!("nobody {half}: a SQLite file has one process, which should run both halves");
            report.warning(place("server.roles"), "server.roles", &why);
        }
    }
    let has_program = boot
        .tools
        .mcp_servers
        .iter()
        .any(|server| matches!(server.reach, McpReach::Command { .. }));
    for (key, runs_commands) in [("tools.run_bash", boot.tools.run_bash), ("tools.mcp_servers", has_program)] {
        if runs_commands && boot.console_token.is_none() {
            report.warning(place(key), key, OWN_APPROVAL);
        }
    }
    for_each_place(live, &mut |section, _, own| {
        warn_of_escalation(section, own, &mut |key, why| report.warning(place(key), key, why));
    });
    warn_of_unused(layered, report);
    let key = "channels.lark.encrypt_key";
    if live.lark.enabled && boot.lark.is_unsigned() && !report.is_refused(key) {
        report.warning(
            place(key),
            key,
            "blank: Lark events arrive UNSIGNED, anybody who knows the verification token can forge them",
        );
    }
}

/// Secrets that an enabled channel has and does not read: an admin may believe that they protect it.
fn warn_of_unused(layered: &Values, report: &mut Report) {
    for (channel, secrets) in SECRETS {
        let delivery = format!("{channel}.delivery");
        let chosen = EventDelivery::named(layered.text(&delivery));
        let is_enabled = layered.is_on(&format!("{channel}.enabled"));
        let is_unused = |secret: &&Secret| is_enabled && !secret.is_read(chosen) && !layered.is_blank(secret.key);
        for Secret { key, .. } in secrets.iter().filter(is_unused) {
            let why = format!("set, but unused: {delivery} is {}", chosen.as_str());
            report.warning(layered.origin(key).unwrap_or("default"), key, &why);
        }
    }
}
