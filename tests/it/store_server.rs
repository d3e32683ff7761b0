//! A PostgreSQL that starts again, is set up wrongly, or has a schema of another version.

use std::time::Duration;

use countersign_agent::domain::Clock;
use countersign_gateway::config::Stores;
use countersign_gateway::store::{AuditCheck, Ledger, Renewal, SchemaState, StoreError};
use futures_util::future::join_all;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};

use crate::store_kit::{START, accept, all_untriaged, claim, decision, gate, lane_task, open, place, server, simple, working};
use crate::support::api::eventually;
use crate::support::pooler::Pooler;
use crate::support::servers::PostgresServer;
use crate::support::stores::fresh_database;

async fn opened(url: &str) -> Result<Ledger, StoreError> {
    Ledger::open(&Stores::embedded(SecretString::from(url.to_owned())), Clock::system()).await
}

/// design: after the server has started again every verb goes well at the first try, however many connections have broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_again_is_not_noticed() {
    let Some(mut postgres) = PostgresServer::start().await else {
        return;
    };
    let ledger = opened(&postgres.fresh_database().await).await.unwrap();
    let home = place("oc_1", "");
    // Several connections of each kind.
    let writers = join_all((0..6).map(|_| ledger.begin())).await;
    let readers = join_all((0..6).map(|_| ledger.read())).await;
    assert!(writers.iter().all(Result::is_ok) && readers.iter().all(Result::is_ok));
    drop((writers, readers));
    ledger.accept(&simple("a", &home, "ou_1")).await.unwrap();
    postgres.restart().await;
    ledger.accept(&simple("b", &home, "ou_1")).await.unwrap();
    ledger.begin_in(&home).await.unwrap().set_fact("x", "y").await.unwrap();
    assert_eq!(ledger.read().await.unwrap().untriaged(0, 10).await.unwrap().len(), 2);

    postgres.kill().await;
    let refused = ledger.accept(&simple("c", &home, "ou_1")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    postgres.restart().await;
    for round in 0..20 {
        ledger.accept(&simple(&format!("d{round}"), &home, "ou_1")).await.unwrap();
    }
    ledger.close().await;
}

/// design: a server that hangs is told to the platform within the deadline, and forgotten when it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_told_in_time() {
    let Some(postgres) = PostgresServer::start().await else { return };
    let ledger = opened(&postgres.fresh_database().await).await.unwrap();
    let home = place("oc_1", "");
    eventually("a first event", || async { ledger.accept(&simple("a", &home, "ou_1")).await.ok() }).await;
    postgres.stall();
    for name in ["b", "c", "d"] {
        let answer = tokio::time::timeout(Duration::from_millis(1500), ledger.accept(&simple(name, &home, "ou_1"))).await;
        let error = answer.expect("an answer in time").unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
    postgres.resume();
    for name in ["b", "c", "d", "e"] {
        // As platforms do: sent again until it is taken.
        eventually("an event that is taken", || async {
            ledger.accept(&simple(name, &home, "ou_1")).await.ok()
        })
        .await;
    }
    // What was refused may have been committed late: then what was sent again is a copy.
    let rows = all_untriaged(&mut ledger.read().await.unwrap()).await;
    let events: std::collections::BTreeSet<_> = rows.iter().map(|row| row.inbound.event_key.as_str()).collect();
    assert_eq!(events, ["ev_a", "ev_b", "ev_c", "ev_d", "ev_e"].into());
    ledger.close().await;
}

/// design: what is wrong with an address is said, with the server and without the password.
#[tokio::test]
async fn wrong_addresses_are_told() {
    let Some(store) = server().await else { return };
    let url = store.stores.database_url.expose_secret();
    let (server, _) = url.rsplit_once('/').unwrap();
    let error = opened(&format!("{server}/no_such_database")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains("does not exist: create it"), "{error}");
    let error = opened(&format!("{server}/postgres").replace("postgres@", "nobody_here:secret@"))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    assert!(
        error.to_string().contains("refuses the user") && !error.to_string().contains("secret"),
        "{error}"
    );
    let error = opened("postgres://u:secret@127.0.0.1:1/x").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(
        error.to_string().contains("127.0.0.1:1, database `x`") && !error.to_string().contains("secret"),
        "{error}"
    );
}

/// bugs F18: a database in another encoding is refused at the start, by every way to open it, in words that say what to mend.
#[tokio::test]
async fn another_encoding_is_refused() {
    let Some(postgres) = PostgresServer::start().await else { return };
    let mut conn = AnyConnection::connect(&postgres.url("postgres")).await.unwrap();
    for encoding in ["EUC_CN", "LATIN1", "SQL_ASCII"] {
        let name = encoding.to_lowercase();
        let create = format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        conn.execute(AssertSqlSafe(create)).await.unwrap();
        let url = SecretString::from(postgres.url(&name));
        let refused = [
            opened(url.expose_secret()).await.unwrap_err(),
            Ledger::migrate(&url).await.unwrap_err(),
            Ledger::schema_state(&url).await.unwrap_err(),
            Ledger::open_read_only(&url).await.unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
            let wanted = format!("database `{name}`: the database is in {encoding}; it must be UTF8");
            assert!(error.to_string().contains(&wanted), "{error}");
        }
    }
    conn.close().await.unwrap();
}

/// peers F7: what a start would meet is told before it: no right to make tables, none to write them, tables of somebody else; and nothing is left behind.
#[tokio::test]
async fn rights_are_tried_before_the_start() {
    let Some(postgres) = PostgresServer::start().await else { return };
    let url = postgres.fresh_database().await;
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    conn.execute("CREATE ROLE app LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        .await
        .unwrap();
    let app = SecretString::from(url.replace("postgres@", "app@"));
    let tried = async |migrate: bool| Ledger::try_start(&app, migrate).await.map_err(|error| error.to_string());
    let told = tried(true).await.unwrap_err();
    assert!(told.contains("permission denied for schema public"), "{told}");
    conn.execute("GRANT CREATE ON SCHEMA public TO app").await.unwrap();
    for _ in 0..2 {
        assert_eq!(tried(true).await, Ok(SchemaState::Behind), "nothing was made");
    }

    Ledger::migrate(&url.clone().into()).await.unwrap();
    conn.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO app").await.unwrap();
    let told = tried(true).await.unwrap_err();
    assert!(told.contains("permission denied for table facts"), "{told}");
    conn.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app; REVOKE DELETE ON outbox FROM app")
        .await
        .unwrap();
    let told = tried(true).await.unwrap_err();
    assert!(told.contains("the user may not read and write the table `outbox`"), "{told}");
    conn.execute("GRANT DELETE ON outbox TO app").await.unwrap();
    assert_eq!(tried(true).await, Ok(SchemaState::Current));
    // An older schema of another owner cannot be brought up to date.
    conn.execute("DELETE FROM _sqlx_migrations WHERE version > 14").await.unwrap();
    let told = tried(true).await.unwrap_err();
    assert!(told.contains("the user does not own the table `"), "{told}");
    assert_eq!(tried(false).await, Ok(SchemaState::Behind));
    conn.close().await.unwrap();
}

/// peers F8: a pooler that hands out transactions is named by the trial before the start, by `/readyz` each time and by every refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_of_transactions_is_named() {
    const NAMED: &str = "hands out transactions, it must hand out sessions";
    let Some(postgres) = PostgresServer::start().await else { return };
    let url = postgres.fresh_database().await;
    Ledger::migrate(&url.clone().into()).await.unwrap();
    assert_eq!(Ledger::try_start(&url.clone().into(), true).await.unwrap(), SchemaState::Current);
    let pooler = Pooler::start(postgres.port(), url.rsplit('/').next().unwrap()).await;
    let told = Ledger::try_start(&pooler.url().into(), true).await.unwrap_err().to_string();
    assert!(told.contains(NAMED), "{told}");
    let ledger = opened(&pooler.url()).await.unwrap();
    for round in 0..3 {
        let told = ledger.ping().await.unwrap_err().to_string();
        assert!(told.contains(NAMED), "{round}: {told}");
        let refused = ledger.accept(&simple(&round.to_string(), &place("oc_1", ""), "ou_1")).await;
        if let Err(refused) = refused {
            assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
        }
    }
    let direct = opened(&url).await.unwrap();
    direct.ping().await.unwrap();
    direct.close().await;
}

/// design: processes that start at once on an empty database migrate it once, and all of them run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_is_migrated_once() {
    let Some(url) = fresh_database().await else { return };
    let secret = SecretString::from(url.clone());
    assert_eq!(Ledger::schema_state(&secret).await.unwrap(), SchemaState::Behind);
    let read_only = Ledger::open_read_only(&secret).await.unwrap_err().to_string();
    assert!(read_only.contains("run `countersign migrate`"), "{read_only}");
    let ledgers: Vec<Ledger> = join_all((0..4).map(|_| opened(&url)))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(Ledger::schema_state(&secret).await.unwrap(), SchemaState::Current);
    Ledger::migrate(&secret).await.unwrap();
    let look = Ledger::open_read_only(&secret).await.unwrap();
    let found = look.read().await.unwrap().verify_audit(None).await.unwrap();
    assert!(matches!(found, AuditCheck::Sound(head) if head.seq == 0));
    assert!(look.begin().await.is_err());
    for (number, ledger) in ledgers.iter().enumerate() {
        ledger
            .accept(&simple(&number.to_string(), &place("oc_1", ""), "ou_1"))
            .await
            .unwrap();
    }
}

/// F-P10: a newer program may add columns and tables while an older one runs; the older one goes on, and is refused only at its next start.
#[tokio::test]
async fn an_older_program_goes_on_beside_a_newer_schema() {
    let Some(mut store) = server().await else { return };
    let url = store.stores.database_url.expose_secret().to_owned();
    let home = place("oc_1", "");
    for round in 0..2 {
        // Every text is prepared in the first round and used again after the change.
        let (lease, turn) = working(&store, &format!("t{round}"), &home, &format!("ou_{round}")).await;
        let opened = open(&store, &lease, &turn, &format!("rv_{round}")).await;
        let mut tx = store.ledger.begin_in(&home).await.unwrap();
        tx.insert_action(
            &lease,
            &crate::store_kit::action(
                &turn,
                &format!("act_{round}"),
                countersign_agent::domain::ActionStatus::Pending,
                START,
            ),
        )
        .await
        .unwrap();
        assert!(tx.turn(&turn.id).await.unwrap().is_some());
        assert!(tx.gate(&opened.id).await.unwrap().is_some());
        assert_eq!(tx.actions_of_turn(&turn.id).await.unwrap().len(), 1);
        assert_eq!(tx.open_turns(&home).await.unwrap().len(), round + 1);
        assert!(tx.events(&turn.id, 0, 10).await.unwrap().is_empty());
        assert!(tx.anything_waits(&home, &turn.user).await.unwrap());
        tx.verify_audit(None).await.unwrap();
        tx.backlog().await.unwrap();
        assert!(
            tx.decide(&opened, &decision(countersign_agent::domain::DecisionKind::Approve, "ou_9", START))
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
        if round == 0 {
            let mut newer = AnyConnection::connect(&url).await.unwrap();
            let tables = newer
                .fetch_all(
                    "SELECT CAST(tablename AS TEXT) AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_sqlx_migrations'",
                )
                .await
                .unwrap();
            assert!(tables.len() > 10);
            for table in tables {
                let name: String = table.get("name");
                let add = format!("ALTER TABLE {name} ADD COLUMN newer BIGINT NOT NULL DEFAULT 0");
                newer.execute(AssertSqlSafe(add)).await.unwrap();
            }
            newer.execute("CREATE TABLE newer (id BIGINT PRIMARY KEY)").await.unwrap();
            newer
                .execute("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'x', TRUE, '', 0)")
                .await
                .unwrap();
            newer.close().await.unwrap();
        }
    }
    accept(&store, &simple("last", &home, "ou_1")).await;
    store.ledger.close().await;
    for migrate_on_start in [true, false] {
        store.stores.migrate_on_start = migrate_on_start;
        let error = Ledger::open(&store.stores, store.clock.clone()).await.unwrap_err().to_string();
        assert!(error.contains("version 9999, newer than this program's"), "{error}");
    }
}

/// F-X2, design: leases and expiries go by the server's time, not by the machine's.
#[tokio::test]
async fn time_is_the_servers() {
    let Some(url) = fresh_database().await else { return };
    let ledger = opened(&url).await.unwrap();
    let mut conn = AnyConnection::connect(&url).await.unwrap();
    let before = ledger.clock().now();
    let row = conn
        .fetch_one("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now")
        .await
        .unwrap();
    let after = ledger.clock().now();
    let there: i64 = row.get("now");
    // What the first questions took is what it can be wrong by.
    assert!((before.0 - 250..=after.0 + 250).contains(&there), "{before:?} {there} {after:?}");
}

/// design: a stale fence of another process writes nothing; it says so and stops.
#[tokio::test]
async fn a_stale_fence_of_another_process_writes_nothing() {
    let Some(store) = server().await else { return };
    let home = place("oc_1", "");
    let (lease, mut turn) = working(&store, "a", &home, "ou_1").await;
    let other = store.another(&store.clock).await;
    store.pass(crate::store_kit::LEASE_MS + 1);
    let taken = claim(&other).await.unwrap();
    turn.said = 9;
    let mut tx = store.ledger.begin_in(&home).await.unwrap();
    assert!(matches!(tx.save_turn(&lease, &turn).await, Err(StoreError::Stale)));
    assert!(matches!(
        tx.open_gate(&lease, &gate(&turn, "rv_1", START)).await,
        Err(StoreError::Stale)
    ));
    assert_eq!(tx.renew(&[&lease], 1).await.unwrap(), [Renewal::Lost]);
    tx.commit().await.unwrap();
    let mut read = other.ledger.read().await.unwrap();
    assert_eq!(read.turn(&turn.id).await.unwrap().unwrap().said, 0);
    assert_eq!(read.open_gate_of_lane(&taken.lane_id).await.unwrap(), None);
    lane_task(&other, &simple("b", &home, "ou_2")).await;
}
