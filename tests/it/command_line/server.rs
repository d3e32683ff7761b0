//! The commands on a PostgreSQL, of which nothing but its address tells them.

use super::one_line;
use crate::support::command::run;
use crate::support::stores::fresh_database;

/// design: `migrate` makes the schema on a server, twice is once; `audit verify` reads the trail; both name a server that is not there.
#[tokio::test]
async fn commands_work_on_a_server() {
    let Some(url) = fresh_database().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let env = [("STORE__DATABASE_URL", url.as_str())];
    let early = run(folder.path(), &env, &["audit", "verify"]).await;
    assert_eq!((early.code, early.out.as_str()), (1, ""), "{early:?}");
    one_line(&early.err, "countersign migrate");
    for _ in 0..2 {
        let ran = run(folder.path(), &env, &["migrate"]).await;
        assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (0, "", 1), "{ran:?}");
    }
    let ran = run(folder.path(), &env, &["audit", "verify"]).await;
    assert_eq!((ran.code, ran.err.as_str(), ran.out.lines().count()), (0, "", 1), "{ran:?}");
    let gone = [("STORE__DATABASE_URL", "postgres://u:canary-password@127.0.0.1:1/x")];
    for command in [&["migrate"][..], &["audit", "verify"]] {
        let ran = run(folder.path(), &gone, command).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
        one_line(&ran.err, "127.0.0.1:1");
        assert!(!ran.err.contains("canary"), "{ran:?}");
    }
    assert!(!folder.path().join("data").exists(), "nothing is written here");
}
