//! The ways in which a file is saved, and what each setting needs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::{file, lines, logged, review, row, save, shows, writer};
use crate::support::api::eventually;
use crate::support::process::signal;
use crate::support::quiet::quiet;
use crate::support::world::{DIRECT, World};

const IN_FORCE: &str = "settings are in force";

/// A slow writer's pause; it is well under what the gateway waits for a file to rest.
const PAUSE: Duration = Duration::from_millis(50);

/// F-A4: an editor that writes another file and renames it into place, one that moves the old file away first, and a mounted ConfigMap
/// whose link is swapped are all seen.
#[tokio::test]
async fn editors_and_mounts_are_seen() {
    let mut world = World::by_file(&[], &[], &review(true), writer()).await;
    let config = file(&world);
    let folder = world.folder.path().to_owned();
    // A temporary file, renamed over the old one.
    fs::write(folder.join(".config.yaml.swp"), "agent: {max_iterations: 11}\n").unwrap();
    fs::rename(folder.join(".config.yaml.swp"), &config).unwrap();
    logged(&mut world, "turn that starts now: agent.max_iterations").await;
    assert_eq!(lines(&mut world, "channels.lark.plan_review_enabled"), 0, "it was the default");
    // A backup first, then a new file of the name.
    fs::rename(&config, folder.join("config.yaml~")).unwrap();
    fs::write(&config, "agent: {history_limit: 12}\n").unwrap();
    logged(&mut world, "agent.max_iterations, agent.history_limit").await;
    // A link to a link to a folder, as a ConfigMap is mounted.
    for (at, yaml) in ["agent: {max_turn_tokens: 13}\n", "agent: {turn_timeout_seconds: 14}\n"]
        .iter()
        .enumerate()
    {
        let data = folder.join(format!("..2026_{at}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("config.yaml"), yaml).unwrap();
        symlink(&data, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        if at == 0 {
            fs::remove_file(&config).unwrap();
            symlink("..data/config.yaml", &config).unwrap();
            logged(&mut world, "agent.max_turn_tokens").await;
        }
    }
    logged(&mut world, "agent.turn_timeout_seconds, agent.max_turn_tokens").await;
    // A link to a file in another folder, of which the system tells nothing: the look of every second finds it.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("mine.yaml"), "agent: {max_iterations: 15}\n").unwrap();
    symlink(elsewhere.path().join("mine.yaml"), folder.join("link")).unwrap();
    fs::rename(folder.join("link"), &config).unwrap();
    logged(&mut world, "agent.max_iterations, agent.turn_timeout_seconds").await;
    fs::write(
        elsewhere.path().join("mine.yaml"),
        "agent: {max_iterations: 15, queue_mode: steer}\n",
    )
    .unwrap();
    logged(&mut world, "turn that starts now: agent.queue_mode").await;
    assert_eq!(lines(&mut world, "is refused"), 0, "{}", world.child().log());
    world.end().await;
}

/// F-A4: a file that is emptied and written in pieces is read when it is whole: neither its emptiness nor its half is an edit.
#[tokio::test]
async fn a_half_written_file_is_no_edit() {
    let mut world = World::by_file(&[], &[], &review(false), writer()).await;
    let pause = || tokio::time::sleep(PAUSE);
    for round in 0..3 {
        let mut out = fs::File::create(file(&world)).unwrap();
        pause().await;
        out.write_all(b"channels:\n  lark:\n    plan_review_enabled: fal").unwrap();
        pause().await;
        out.write_all(b"se\nagent:\n  max_iterations: [").unwrap();
        pause().await;
        out.set_len(u64::try_from("channels:\n  lark:\n    plan_review_enabled: false\nagent:\n  max_iterations: ".len()).unwrap())
            .unwrap();
        std::io::Seek::seek(&mut out, std::io::SeekFrom::End(0)).unwrap();
        out.write_all(format!("2{round}\n").as_bytes()).unwrap();
        drop(out);
        let process = world.child();
        eventually("the edit in force", || async {
            let log = process.log();
            (log.lines()
                .filter(|line| line.contains("turn that starts now: agent.max_iterations"))
                .count()
                == round + 1)
                .then_some(())
        })
        .await;
    }
    let log = world.child().log();
    assert!(!log.contains("is refused") && !log.contains("plan_review_enabled"), "{log}");
    world.end().await;
}

/// design: a save that changes nothing is silent.
#[tokio::test]
async fn a_save_without_a_change_is_silent() {
    let mut world = World::by_file(&[], &[], &review(false), writer()).await;
    for (round, text) in [format!("# a comment\n{}", review(false)), review(false)].iter().enumerate() {
        save(&world, text);
        // The signal's line shows that the gateway has come by.
        signal(world.child().id(), "HUP");
        let process = world.child();
        eventually("the signal", || async {
            (process.log().matches("because a signal asks for it").count() == round + 1).then_some(())
        })
        .await;
    }
    save(&world, &format!("{}agent: {{max_iterations: 9}}\n", review(false)));
    logged(&mut world, "turn that starts now: agent.max_iterations").await;
    assert_eq!(lines(&mut world, IN_FORCE), 1);
    assert_eq!(lines(&mut world, "configuration file is good") + lines(&mut world, "restart"), 0);
    assert_eq!(row(&world).await["message"], serde_json::Value::Null);
    world.end().await;
}

/// design: a default file that was not there may appear.
#[tokio::test]
async fn a_file_may_appear() {
    let mut world = World::process(&[], None, writer()).await;
    save(&world, &review(false));
    logged(&mut world, "turn that starts now: channels.lark.plan_review_enabled").await;
    world.end().await;
}

/// design: SIGHUP has everything read again, also the files of secrets that the environment names; the process goes on.
#[tokio::test]
async fn a_signal_has_secrets_read_again() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key");
    fs::write(&key, "sk-first-0123456789\n").unwrap();
    let by_file = [("MODEL__API_KEY_FILE", key.to_str().unwrap())];
    let mut world = World::by_file(&by_file, &[], "# empty\n", writer()).await;
    world.say("ou_u1", "oc_a", "整理笔记", DIRECT).await;
    world.plan_card("oc_a").await;
    fs::write(&key, "sk-second-0123456789\n").unwrap();
    signal(world.child().id(), "HUP");
    logged(&mut world, "turn that starts now: model.api_key").await;
    world.say("ou_u1", "oc_b", "整理笔记", DIRECT).await;
    world.plan_card("oc_b").await;
    let sent: Vec<String> = world
        .model
        .seen()
        .iter()
        .map(|seen| seen.headers["authorization"].to_str().unwrap().to_owned())
        .collect();
    assert_eq!(sent.first().unwrap(), "Bearer sk-first-0123456789");
    assert_eq!(sent.last().unwrap(), "Bearer sk-second-0123456789");
    assert!(!world.child().log().contains("0123456789"), "no secret in the log");
    signal(world.child().id(), "HUP");
    logged(&mut world, "because a signal asks for it").await;
    assert_eq!(world.api.try_get("/healthz").await.0, 200);
    world.end().await;
}

/// S0-35: keys that need a restart are named in the log and in `/readyz` and change nothing else; taken back, nothing waits.
#[tokio::test]
async fn restart_keys_are_named() {
    let mut world = World::by_file(&[], &[], &review(true), writer()).await;
    let secret = "canary-8c1f";
    save(
        &world,
        &format!("server:\n  max_body_bytes: 2048\nchannels:\n  slack:\n    bot_token: {secret}\nagent:\n  max_iterations: 9\n"),
    );
    let told = shows(&world, "ok", "restart needed: server.max_body_bytes, channels.slack.bot_token").await;
    logged(&mut world, "needs a restart: server.max_body_bytes, channels.slack.bot_token").await;
    logged(&mut world, "turn that starts now: agent.max_iterations").await;
    assert!(!told.to_string().contains(secret) && !world.child().log().contains(secret));
    let big = "长".repeat(4000);
    world.say("ou_u1", "oc_a", &big, DIRECT).await;
    save(&world, "agent:\n  max_iterations: 9\n");
    assert_eq!(shows(&world, "ok", "").await["status"], "ok");
    logged(&mut world, "what waited for a restart was taken back").await;
    assert_eq!(row(&world).await["message"], serde_json::Value::Null);
    assert_eq!(lines(&mut world, IN_FORCE), 1, "one edit of a hot key");
    quiet(&world).await;
    world.end().await;
}

/// design: the level of the log is a setting like others: `debug` shows more, `warn` less, at once.
#[tokio::test]
async fn the_log_level_takes_effect() {
    let mut world = World::by_file(&[], &[], "telemetry: {log_level: warn}\n", writer()).await;
    world.say("ou_u1", "oc_a", "整理笔记", DIRECT).await;
    world.plan_card("oc_a").await;
    assert_eq!(lines(&mut world, "triaged"), 0);
    save(&world, "telemetry: {log_level: info}\n");
    logged(&mut world, "turn that starts now: telemetry.log_level").await;
    world.say("ou_u1", "oc_b", "整理笔记", DIRECT).await;
    logged(&mut world, "triaged").await;
    world.plan_card("oc_b").await;
    quiet(&world).await;
    save(&world, "telemetry: {log_level: error}\n");
    let process = world.child();
    eventually("the change back", || async {
        (process.log().matches("turn that starts now: telemetry.log_level").count() == 2).then_some(())
    })
    .await;
    let before = lines(&mut world, "triaged");
    world.say("ou_u1", "oc_c", "整理笔记", DIRECT).await;
    world.plan_card("oc_c").await;
    assert_eq!(lines(&mut world, "triaged"), before);
    world.end().await;
}
