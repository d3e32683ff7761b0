//! How events reach the gateway: which secrets that takes, and which then wait for nothing.

use super::*;

const SOCKETS: &str = "channels:\n  lark: {enabled: true, delivery: socket, app_id: cli_a, app_secret: s3cret}\n  slack: {enabled: true, delivery: socket, app_token: xapp-1, bot_token: xoxb-1}\n";

/// interface (I): events come by webhook unless the configuration says socket; nothing else is a delivery, and a wrong word has no
/// consequences of its own.
#[test]
fn events_come_by_webhook_or_over_a_socket() {
    let boot = loaded("", &[]).boot;
    assert_eq!(
        (boot.lark.delivery, boot.slack.delivery),
        (EventDelivery::Webhook, EventDelivery::Webhook)
    );
    let boot = loaded(SOCKETS, &[]).boot;
    assert_eq!(
        (boot.lark.delivery, boot.slack.delivery),
        (EventDelivery::Socket, EventDelivery::Socket)
    );
    problems(
        "channels: {slack: {enabled: true, delivery: sockets, bot_token: xoxb-1}}\n",
        &[],
        &["config.yaml:1: channels.slack.delivery: found sockets, allowed webhook or socket"],
    );
}

/// interface (I): with sockets no signature secret is needed, and nothing is called unsigned.
#[test]
fn sockets_need_no_signature_secrets() {
    let found = loaded(SOCKETS, &[]);
    assert_eq!(found.warnings, Vec::<String>::new());
    assert!(found.boot.lark.encrypt_key.is_none() && !found.boot.lark.is_unsigned());
    assert_eq!(found.boot.slack.app_token.expose_secret(), "xapp-1");
}

/// interface (I): what the chosen delivery needs must be set on an enabled channel; the app-level token says where it is made.
#[test]
fn each_delivery_has_secrets_of_its_own() {
    let from = "make one under Basic Information → App-Level Tokens, with the scope connections:write";
    problems(
        "channels:\n  lark: {enabled: true, app_id: cli_a, app_secret: s3cret}\n  slack:\n    enabled: true\n    delivery: socket\n    signing_secret: s3cret\n",
        &[],
        &[
            "config.yaml:2: channels.lark.verification_token: found a blank, must be set when channels.lark.enabled is true and channels.lark.delivery is webhook",
            "config.yaml:4: channels.slack.bot_token: found a blank, must be set when channels.slack.enabled is true",
            &format!(
                "config.yaml:4: channels.slack.app_token: found a blank, must be set when channels.slack.enabled is true and channels.slack.delivery is socket: {from}"
            ),
        ],
    );
    // A token of another kind, also before the channel is enabled: an edit may do that while the process runs.
    problems(
        "channels:\n  slack:\n    delivery: socket\n",
        &[("COUNTERSIGN__CHANNELS__SLACK__APP_TOKEN", "xoxb-1")],
        &[&format!(
            "env COUNTERSIGN__CHANNELS__SLACK__APP_TOKEN: channels.slack.app_token: found a secret that does not begin with xapp-: {from}"
        )],
    );
}

/// interface (I): a secret that the chosen delivery does not read is warned about on an enabled channel.
#[test]
fn secrets_of_the_other_delivery_are_warned_about() {
    let yaml = "channels:\n  lark: {enabled: true, app_id: cli_a, app_secret: s, verification_token: t, encrypt_key: k, delivery: DELIVERY}\n  slack: {enabled: true, bot_token: b, signing_secret: s, previous_signing_secret: p, app_token: xapp-1, delivery: DELIVERY}\n";
    let told = |delivery: &str| {
        let warnings = loaded(&yaml.replace("DELIVERY", delivery), &[]).warnings;
        let unused = warnings.iter().map(|warning| {
            let (key, delivery) = warning.split_once(": set, but unused: ").unwrap();
            (key.rsplit('.').next().unwrap().to_owned(), delivery.to_owned())
        });
        unused.collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(&str, &str)]| {
        let owned = pairs.iter().map(|(key, why)| ((*key).to_owned(), (*why).to_owned()));
        owned.collect::<Vec<_>>()
    };
    assert_eq!(
        told("socket"),
        pairs(&[
            ("verification_token", "channels.lark.delivery is socket"),
            ("encrypt_key", "channels.lark.delivery is socket"),
            ("signing_secret", "channels.slack.delivery is socket"),
            ("previous_signing_secret", "channels.slack.delivery is socket"),
        ])
    );
    assert_eq!(told("webhook"), pairs(&[("app_token", "channels.slack.delivery is webhook")]));
    let disabled = yaml.replace("DELIVERY", "socket").replace("enabled: true", "enabled: false");
    assert_eq!(loaded(&disabled, &[]).warnings, Vec::<String>::new());
}

/// interface (I): the summary of `check` and of the start says how events come in.
#[test]
fn the_summary_names_the_delivery() {
    let channels = |yaml: &str| {
        let found = loaded(yaml, &[]);
        summary(&found.boot, &found.live)[0].1.clone()
    };
    assert_eq!(
        channels(SOCKETS),
        "lark (events over sockets), slack (events over sockets), console"
    );
    assert_eq!(channels(LARK), "lark (events by webhook), console");
}
