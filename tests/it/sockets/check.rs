//! `countersign check --online` tries a connection as well.

use super::over_sockets;
use crate::support::command::{Ran, run};
use crate::support::platform::{On, on_both};
use crate::support::world::World;

on_both! {
    a_connection_is_tried,
}

async fn online(world: &World, changed: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut settings: Vec<(&str, &str)> = world.settings().iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    settings.retain(|(key, _)| {
        !key.starts_with("STORE__") && !key.starts_with("MODEL__") && !changed.iter().any(|(changed, _)| changed == key)
    });
    settings.extend(changed);
    let ran = run(folder.path(), &settings, &["check", "--online"]).await;
    assert!(!format!("{ran:?}").contains("0123456789"), "a secret is shown: {ran:?}");
    ran
}

/// interface (I), reach §0: `check --online` opens a connection and closes it. A token or secret that the platform refuses is told by the key,
/// with exit status 1.
async fn a_connection_is_tried(on: On) {
    let world = World::without_gateway(on, &over_sockets(on, &[]), super::answerer).await;
    let key = format!("channels.{}.delivery: ", on.name());
    let good = online(&world, &[]).await;
    assert_eq!(good.code, 0, "{good:?}");
    assert!(
        good.out.contains(&format!("# online: {key}a connection for events opens")),
        "{good:?}"
    );
    super::opens(&world, 0).await;
    let wrong = match on {
        On::Slack => ("CHANNELS__SLACK__APP_TOKEN", "xapp-wrong-0123456789"),
        On::Lark => ("CHANNELS__LARK__APP_SECRET", "as-wrong-0123456789"),
    };
    let bad = online(&world, &[wrong]).await;
    assert_eq!(bad.code, 1, "{bad:?}");
    let told = match on {
        On::Slack => "not permitted: Slack apps.connections.open: invalid_auth",
        On::Lark => "not permitted: Lark code 514",
    };
    assert!(
        bad.err.lines().any(|line| line.starts_with(&format!("online: {key}{told}"))),
        "{bad:?}"
    );
}
