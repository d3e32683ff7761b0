//! Commands on the database: `migrate`, `audit verify`, and one process at a time.

use sqlx::Executor;

use super::one_line;
use crate::support::command::run;
use crate::support::quiet::{connect, quiet, stored};
use crate::support::scripts::reporter;
use crate::support::stores::Pairing;
use crate::support::world::{DIRECT, World};

/// design: `migrate` makes the schema, twice is once; with `migrate_on_start: false` only it does.
#[tokio::test(flavor = "multi_thread")]
async fn migrate_makes_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("STORE__MIGRATE_ON_START", "false"), ("SERVER__BIND", "127.0.0.1:0")];
    let ran = run(folder.path(), &env, &["serve"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(
        ran.err.lines().any(|line| line.contains("countersign migrate")),
        "it says what to do: {}",
        ran.err
    );
    for _ in 0..2 {
        let ran = run(folder.path(), &env, &["migrate"]).await;
        assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (0, "", 1), "{ran:?}");
    }
    assert!(folder.path().join("data/countersign.db").exists());
    let ran = run(folder.path(), &[("STORE__DATABASE_URL", "sqlite:///proc/no/such.db")], &["migrate"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    one_line(&ran.err, "/proc/no");
    // What migrate left, serve takes.
    let mut world = World::start(&[], reporter).await;
    world.stop().await;
    world.restart(&[("STORE__MIGRATE_ON_START", "false")]).await;
    world.end().await;
}

/// design: one process a database: a second serve or migrate is refused in a line that names the holder; a taken port too.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_refused() {
    // A server may have as many processes as it likes.
    if !Pairing::Sqlite.runs() {
        return;
    }
    let mut world = World::process(&[], None, reporter).await;
    let url = world.database_url().to_owned();
    let pid = world.child().id().to_string();
    for command in ["serve", "migrate"] {
        let ran = run(
            world.folder.path(),
            &[("STORE__DATABASE_URL", &url), ("SERVER__BIND", "127.0.0.1:0")],
            &[command],
        )
        .await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        one_line(&ran.err, &pid);
    }
    let bind = world.api.url("").trim_start_matches("http://").to_owned();
    let other = tempfile::tempdir().unwrap();
    let ran = run(other.path(), &[("SERVER__BIND", &bind)], &["serve"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    one_line(&ran.err, &bind);
    assert!(!other.path().join("data").exists(), "nothing was touched");
    // Reading the trail beside the running gateway is fine.
    let ran = run(world.folder.path(), &[("STORE__DATABASE_URL", &url)], &["audit", "verify"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// design: `audit verify` proves the trail whole, and finds an entry that was changed, removed, reordered, added or cut off at the end.
#[tokio::test(flavor = "multi_thread")]
async fn audit_verify_finds_every_tampering() {
    let mut world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    world.tap("ou_u2", "oc_p1", &card, "approve", None).await;
    world.tap("ou_u1", "oc_p1", &card, "approve", None).await;
    world.hears("oc_p1", "全部完成").await;
    quiet(&world).await;
    world.stop().await;
    let url = world.database_url();
    let verify = async || run(world.folder.path(), &[("STORE__DATABASE_URL", url)], &["audit", "verify"]).await;
    let rows = stored(&world, "SELECT kind FROM audit ORDER BY seq").await;
    assert!(rows.len() >= 4, "{rows:?}");
    let sound = verify().await;
    assert_eq!((sound.code, sound.err.as_str()), (0, ""), "{sound:?}");
    one_line(&sound.out, &format!("{} entries", rows.len()));
    let mut conn = connect(&world).await;
    conn.execute("CREATE TABLE sound AS SELECT * FROM audit").await.unwrap();
    for (what, sql) in [
        ("another principal", "UPDATE audit SET principal = 'ou_x' WHERE seq = 2"),
        ("another time", "UPDATE audit SET at = at + 1 WHERE seq = 1"),
        (
            "another decision",
            "UPDATE audit SET details = replace(details, 'approve', 'cancel') WHERE kind = 'decision'",
        ),
        ("removed", "DELETE FROM audit WHERE seq = 2"),
        ("cut off", "DELETE FROM audit WHERE seq = (SELECT MAX(seq) FROM audit)"),
        ("all gone", "DELETE FROM audit"),
        (
            "reordered",
            "UPDATE audit SET seq = CASE seq WHEN 1 THEN -2 WHEN 2 THEN -1 END WHERE seq IN (1, 2); UPDATE audit SET seq = -seq WHERE seq < 0",
        ),
        (
            "added",
            "INSERT INTO audit SELECT seq + 1000, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash FROM audit WHERE seq = 1",
        ),
    ] {
        conn.execute(sql).await.unwrap();
        let ran = verify().await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{what}: {ran:?}");
        one_line(&ran.err, "entry");
        conn.execute("DELETE FROM audit").await.unwrap();
        conn.execute("INSERT INTO audit SELECT * FROM sound").await.unwrap();
    }
    assert_eq!(verify().await.code, 0, "whole again");
    let ran = run(
        world.folder.path(),
        &[("STORE__DATABASE_URL", "sqlite://nowhere.db")],
        &["audit", "verify"],
    )
    .await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    one_line(&ran.err, "nowhere.db");
}

/// interface: `audit verify` refuses what the trail contradicts (rows below the first, another approver, another card, a vote or a
/// review that is gone or came from nowhere) and says which; with `--expect` it finds a trail that was cut or written anew as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn audit_verify_compares_what_is_stored_with_the_trail() {
    let env = [
        ("CHANNELS__LARK__PLAN_REVIEW_APPROVERS", "[ou_u2, ou_u3]"),
        ("CHANNELS__LARK__PLAN_REVIEW_QUORUM", "2"),
    ];
    let mut world = World::start(&env, reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    let card = world.plan_card("oc_p1").await;
    world.tap("ou_u2", "oc_p1", &card, "approve", None).await;
    world.tap("ou_u3", "oc_p1", &card, "approve", None).await;
    world.hears("oc_p1", "全部完成").await;
    quiet(&world).await;
    world.stop().await;
    let url = world.database_url();
    let verify = async |more: &[&str]| {
        let args = [&["audit", "verify"], more].concat();
        run(world.folder.path(), &[("STORE__DATABASE_URL", url)], &args).await
    };
    let sound = verify(&[]).await;
    assert_eq!((sound.code, sound.err.as_str()), (0, ""), "{sound:?}");
    let head = sound.out.trim().rsplit(' ').next().unwrap().to_owned();
    let (rows, hash) = head.split_once(':').unwrap();
    assert_eq!(sound.out, format!("{rows} entries, head {rows}:{hash}\n"));
    assert!(hash.len() == 64 && rows.parse::<u64>().unwrap() >= 4, "{head}");
    let mut conn = connect(&world).await;
    let gate = stored(&world, "SELECT id FROM gates").await.remove(0);
    let tables = ["gates", "votes", "decisions", "audit", "audit_head"];
    for table in tables {
        let copy = format!("CREATE TABLE sound_{table} AS SELECT * FROM {table}");
        conn.execute(sqlx::AssertSqlSafe(copy)).await.unwrap();
    }
    for (what, sql, told) in [
        (
            "a row below the first",
            "INSERT INTO audit SELECT -5, at, kind, turn_id, gate_id, action_id, principal, details, prev_hash, hash FROM audit WHERE seq = 1",
            "entry",
        ),
        (
            "another approver",
            "UPDATE decisions SET body = replace(body, 'ou_u3', 'ou_u9')",
            "decision",
        ),
        ("a decision removed", "DELETE FROM decisions", "decision"),
        ("another card", "UPDATE gates SET card = replace(card, '写报告', '删报告')", "card"),
        ("another quorum", "UPDATE gates SET quorum = 1", "card"),
        ("another voter", "UPDATE votes SET body = replace(body, 'ou_u2', 'ou_u9')", "votes"),
        ("a vote removed", "DELETE FROM votes WHERE body LIKE '%ou_u2%'", "votes"),
        (
            "a vote added",
            "INSERT INTO votes (gate_id, person, at, body) SELECT votes.gate_id, hash, audit.at, body FROM votes, audit WHERE audit.seq = 1 AND body LIKE '%ou_u2%'",
            "votes",
        ),
    ] {
        let done = conn.execute(sql).await.unwrap();
        assert!(done.rows_affected() > 0, "{what}");
        let ran = verify(&[]).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{what}: {ran:?}");
        one_line(&ran.err, told);
        assert!(told == "entry" || ran.err.contains(&gate), "{what}: {ran:?}");
        for table in ["votes", "decisions", "audit"] {
            let anew = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM sound_{table}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(anew)).execute(&mut conn).await.unwrap();
        }
        let anew = "UPDATE gates SET card = (SELECT card FROM sound_gates WHERE sound_gates.id = gates.id), quorum = 2";
        conn.execute(anew).await.unwrap();
    }
    // The last entry cut off, and the head set to what the row before says: whole in itself, and not what was kept elsewhere.
    for expected in [head.as_str(), &head.to_uppercase()] {
        assert_eq!(verify(&["--expect", expected]).await.code, 0, "{expected}");
    }
    let wrong = verify(&["--expect", &format!("{rows}:{}", "0".repeat(64))]).await;
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""), "{wrong:?}");
    one_line(&wrong.err, &format!("entry {rows}"));
    for nonsense in ["5", "5:", "x:00", "0:00", "1:zz"] {
        assert_eq!(verify(&["--expect", nonsense]).await.code, 2, "{nonsense}");
    }
    for cut in [
        "DELETE FROM audit WHERE seq = (SELECT MAX(seq) FROM audit)",
        "UPDATE audit_head SET seq = seq - 1, hash = (SELECT hash FROM audit ORDER BY seq DESC LIMIT 1)",
    ] {
        conn.execute(cut).await.unwrap();
    }
    let cut = verify(&["--expect", &head]).await;
    assert_eq!((cut.code, cut.out.as_str()), (1, ""), "{cut:?}");
    one_line(&cut.err, &format!("entry {rows}"));
    // All of it gone: the reviews are still there.
    for cut in ["DELETE FROM audit", "DELETE FROM audit_head"] {
        conn.execute(cut).await.unwrap();
    }
    let gone = verify(&[]).await;
    assert_eq!((gone.code, gone.out.as_str()), (1, ""), "{gone:?}");
    one_line(&gone.err, &gate);
}

/// interface: a review that the trail opened and whose task is still stored cannot be removed unseen.
#[tokio::test(flavor = "multi_thread")]
async fn audit_verify_finds_a_removed_review() {
    let mut world = World::start(&[], reporter).await;
    world.say("ou_u1", "oc_p1", "整理笔记", DIRECT).await;
    world.plan_card("oc_p1").await;
    quiet(&world).await;
    world.stop().await;
    let mut conn = connect(&world).await;
    let gate = stored(&world, "SELECT id FROM gates").await.remove(0);
    conn.execute("DELETE FROM gates").await.unwrap();
    let env = [("STORE__DATABASE_URL", world.database_url())];
    let ran = run(world.folder.path(), &env, &["audit", "verify"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    one_line(&ran.err, &gate);
}
