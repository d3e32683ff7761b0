//! What a restart keeps, what it makes void on a file, and which files are refused.
#![expect(clippy::unwrap_used, reason = "outside test functions too, a step that fails fails its test")]

use countersign_agent::domain::{Clock, Millis};
use countersign_gateway::config::Stores;
use countersign_gateway::store::{Ledger, Renewal, StoreError};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{AnyConnection, Connection, Executor, Row};

use crate::store_kit::{
    LEASE_MS, START, Store, accept, all_untriaged, claim, file, handle_all, lane_task, next_task, open, place, simple, store, working,
};

async fn refused(url: &SecretString) -> String {
    let error = Ledger::open(&Stores::embedded(url.clone()), Clock::manual(START))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    error.to_string()
}

/// design: the schema before copies were told apart at triage is brought up to date with all that came in: what waits still waits,
/// and what was handled is known when it comes again.
#[tokio::test]
async fn an_older_inbox_keeps_what_waits_and_what_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    let older = folder.path().join("migrations");
    std::fs::create_dir(&older).unwrap();
    for name in ["0001_ledger.sql", "0002_outbox_uncertain.sql"] {
        let text = format!("{}/migrations/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(text, older.join(name)).unwrap();
    }
    let url = SecretString::from(format!("sqlite://{}", folder.path().join("x.db").display()));
    // A file of the newest schema names the keys that the older one is to hold.
    let newest = file().await;
    let home = place("oc_1", "");
    let events = ["new", "laned", "done"].map(|name| simple(name, &home, "ou_1"));
    for event in &events {
        accept(&newest, event).await;
    }
    let mut from = AnyConnection::connect(newest.stores.database_url.expose_secret()).await.unwrap();
    let mut into = AnyConnection::connect(&format!("{}?mode=rwc", url.expose_secret())).await.unwrap();
    sqlx::migrate::Migrator::new(older).await.unwrap().run(&mut into).await.unwrap();
    let rows = from.fetch_all("SELECT id, event_key, message_key, person_key, received_at, payload FROM inbox ORDER BY id");
    for (row, state) in rows.await.unwrap().iter().zip(["new", "laned", "done"]) {
        let insert = "INSERT INTO inbox (id, event_key, message_key, channel, chat, person_key, kind, state, received_at, payload)
            VALUES ($1, $2, $3, 'lark', 'oc_1', $4, 'message', $5, $6, $7)";
        sqlx::query(insert)
            .bind(row.get::<i64, _>(0))
            .bind(row.get::<Vec<u8>, _>(1))
            .bind(row.get::<Vec<u8>, _>(2))
            .bind(row.get::<Vec<u8>, _>(3))
            .bind(state)
            .bind(row.get::<i64, _>(4))
            .bind(row.get::<String, _>(5))
            .execute(&mut into)
            .await
            .unwrap();
    }
    into.close().await.unwrap();

    let mut store = newest;
    store.ledger.close().await;
    store.ledger = Ledger::open(&Stores::embedded(url), store.clock.clone()).await.unwrap();
    for event in &events {
        accept(&store, event).await;
    }
    let rows = all_untriaged(&mut store.ledger.read().await.unwrap()).await;
    assert_eq!(rows.iter().filter(|row| row.inbound == events[0]).count(), 2);
    assert_eq!(handle_all(&store).await, [rows[0].id], "the one that waited; all others are copies");
}

/// design: at start on SQLite every lease and hold is void, so that nothing waits for a dead worker; nothing is lost.
#[tokio::test]
async fn a_restart_keeps_rows_and_voids_leases() {
    let mut store = file().await;
    let home = place("oc_1", "");
    let (lease, turn) = working(&store, "a", &home, "ou_1").await;
    let gate = open(&store, &lease, &turn, "rv_1").await;
    let waiting = lane_task(&store, &simple("b", &home, "ou_2")).await;
    let other = claim(&store).await.unwrap();
    let fresh = accept(&store, &simple("c", &home, "ou_3")).await;
    let mut tx = store.ledger.begin().await.unwrap();
    tx.enqueue(&countersign_gateway::store::NewOutbox {
        key: "k".to_owned(),
        queue: "q".to_owned(),
        gate_id: None,
        turn_id: None,
        conversation: home.clone(),
        op: countersign_gateway::store::OutboxOp::Post {
            reply_to: None,
            content: countersign_agent::domain::Outbound::Text { text: "x".to_owned() },
        },
    })
    .await
    .unwrap();
    assert_eq!(tx.claim_outbox("d", LEASE_MS, 10, &[]).await.unwrap().len(), 1);
    tx.set_fact("bot", "ou_bot").await.unwrap();
    tx.set_fact("bot", "ou_bot2").await.unwrap();
    tx.commit().await.unwrap();

    store.restart().await;

    let mut tx = store.ledger.begin().await.unwrap();
    assert_eq!(tx.renew(&[&lease, &other], LEASE_MS).await.unwrap(), [Renewal::Lost; 2]);
    assert_eq!(tx.turn(&turn.id).await.unwrap(), Some(turn.clone()));
    assert_eq!(tx.open_gate_of_lane(&lease.lane_id).await.unwrap(), Some(gate));
    assert_eq!(all_untriaged(&mut tx).await[0].id, fresh);
    assert_eq!(tx.claim_outbox("d", LEASE_MS, 10, &[]).await.unwrap().len(), 1);
    assert_eq!(tx.fact("bot").await.unwrap().as_deref(), Some("ou_bot2"));
    assert_eq!(tx.fact("nothing").await.unwrap(), None);
    let mut leases = Vec::new();
    while let Some(lease) = tx.claim_lane("w2", LEASE_MS, 10).await.unwrap() {
        leases.push(lease);
    }
    assert_eq!(leases.len(), 2);
    for lease in leases {
        match lease.turn_id.clone() {
            Some(id) => assert_eq!(id, turn.id),
            None => assert_eq!(next_task(&mut tx, &lease).await.unwrap().id, waiting),
        }
    }
    tx.commit().await.unwrap();
    // Ids go on above those that were there.
    assert!(accept(&store, &simple("d", &home, "ou_3")).await > fresh);
}

/// The process dies: nobody closes the file in order. Its lock is what it leaves behind.
async fn restart_after_a_death(store: &mut Store) {
    store.ledger.close().await;
    let path = store
        .stores
        .database_url
        .expose_secret()
        .strip_prefix("sqlite://")
        .unwrap()
        .to_owned();
    std::fs::write(format!("{path}.lock"), "4711").unwrap();
    store.restart().await;
}

/// design: a lane that slept until a far moment with an unfinished turn is looked at after a death; an idle one is not, and after an end
/// in order each sleeps on until its moment.
#[tokio::test]
async fn a_restart_wakes_what_is_unfinished() {
    let mut store = file().await;
    let (paused, _) = working(&store, "a", &place("oc_1", ""), "ou_1").await;
    lane_task(&store, &simple("b", &place("oc_2", ""), "ou_1")).await;
    let idle = claim(&store).await.unwrap();
    let mut tx = store.ledger.begin().await.unwrap();
    let task = next_task(&mut tx, &idle).await.unwrap();
    tx.finish_task(task.id, "nothing").await.unwrap();
    assert!(tx.release(&idle, Millis::NEVER).await.unwrap());
    assert!(tx.release(&paused, Millis(START.0 + 3_600_000)).await.unwrap());
    tx.commit().await.unwrap();
    assert!(claim(&store).await.is_none());
    store.restart().await;
    assert!(claim(&store).await.is_none());
    restart_after_a_death(&mut store).await;
    assert_eq!(claim(&store).await.unwrap().lane_id, paused.lane_id);
    assert!(claim(&store).await.is_none());
}

/// design: a second process on the file is refused with the holder's pid; a look without the lock is not, and
/// writes nothing.
#[tokio::test]
async fn the_file_has_one_holder() {
    let store = file().await;
    accept(&store, &simple("a", &place("oc_1", ""), "ou_1")).await;
    let error = Ledger::open(&store.stores, store.clock.clone()).await.unwrap_err();
    let StoreError::Held { path, pid } = error else { panic!("{error}") };
    assert!(path.ends_with("ledger.db"), "{path}");
    assert_eq!(pid, std::process::id().to_string());

    let look = Ledger::open_read_only(&store.stores.database_url).await.unwrap();
    assert_eq!(look.read().await.unwrap().untriaged(0, 10).await.unwrap().len(), 1);
    assert!(matches!(look.begin().await, Err(StoreError::Unavailable(_))));
    assert!(look.accept(&simple("b", &place("oc_1", ""), "ou_1")).await.is_err());
    look.close().await;

    store.ledger.close().await;
    assert!(store.ledger.ping().await.is_err());
    assert!(store.ledger.accept(&simple("c", &place("oc_1", ""), "ou_1")).await.is_err());
    let again = Ledger::open(&store.stores, store.clock.clone()).await.unwrap();
    again.ping().await.unwrap();
    again.close().await;
    // Nobody holds it: a look still works.
    Ledger::open_read_only(&store.stores.database_url)
        .await
        .unwrap()
        .ping()
        .await
        .unwrap();
}

/// design: events accepted while the ledger closes are either committed or refused, never answered and lost.
#[tokio::test]
async fn closing_flushes_what_was_accepted() {
    let mut store = store().await;
    let home = place("oc_1", "");
    let events: Vec<_> = (0..50).map(|number| simple(&number.to_string(), &home, "ou_1")).collect();
    let ledger = store.ledger.clone();
    let (answers, ()) = futures_util::future::join(
        futures_util::future::join_all(events.iter().map(|event| ledger.accept(event))),
        store.ledger.close(),
    )
    .await;
    drop(ledger);
    store.restart().await;
    let stored = store.ledger.read().await.unwrap().untriaged(0, 100).await.unwrap().len();
    assert_eq!(stored, answers.iter().filter(|answer| answer.is_ok()).count());
}

/// F-Q6, design: a file that is no database, or a damaged one, is refused by name and left as it is.
#[tokio::test]
async fn a_damaged_file_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let url = SecretString::from(format!("sqlite://{}", path.display()));
    std::fs::write(&path, "this is a letter, not a database; ".repeat(100)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let message = refused(&url).await;
    assert!(message.contains("x.db"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    std::fs::remove_file(&path).unwrap();
    let ledger = Ledger::open(&Stores::embedded(url.clone()), Clock::manual(START)).await.unwrap();
    ledger.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0x5a);
    }
    std::fs::write(&path, &bytes).unwrap();
    let message = refused(&url).await;
    assert!(message.contains("x.db"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// F-Q6, design: a file whose holder died is read through before anything else, although nothing tells that it was changed.
#[tokio::test]
async fn a_file_that_was_not_closed_is_read_through_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let url = SecretString::from(format!("sqlite://{}", path.display()));
    let ledger = Ledger::open(&Stores::embedded(url.clone()), Clock::manual(START)).await.unwrap();
    let mut tx = ledger.begin().await.unwrap();
    for number in 0..50 {
        tx.set_fact(&format!("fact {number:02}"), &"x".repeat(1000)).await.unwrap();
    }
    tx.commit().await.unwrap();
    ledger.close().await;
    // As a process leaves it that dies.
    std::fs::write(folder.path().join("x.db.lock"), "4711").unwrap();
    let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes.windows(7).rposition(|text| text == b"fact 25").unwrap() / 4096;
    bytes[page * 4096..][..4096].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(changed)
        .unwrap();
    let message = refused(&url).await;
    assert!(message.contains("x.db") && message.contains("damaged"), "{message}");
}

/// F-Q3, design: a schema that is newer than the program, half applied or not there is refused with both versions named.
#[tokio::test]
async fn other_schemas_are_refused() {
    let migrations = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations")).unwrap();
    let newest = migrations.map(|file| file.unwrap().file_name().to_str().unwrap()[..4].parse::<u32>().unwrap());
    let newest = newest.max().unwrap();
    let needs = format!("needs {newest}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let url = SecretString::from(format!("sqlite://{}", path.display()));
    let error = Ledger::open(
        &Stores {
            migrate_on_start: false,
            ..Stores::embedded(url.clone())
        },
        Clock::manual(START),
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("version 0") && error.contains(&needs) && error.contains("migrate"),
        "{error}"
    );
    assert!(Ledger::open_read_only(&url).await.unwrap_err().to_string().contains(&needs));
    Ledger::open(&Stores::embedded(url.clone()), Clock::manual(START))
        .await
        .unwrap()
        .close()
        .await;
    Ledger::open(
        &Stores {
            migrate_on_start: false,
            ..Stores::embedded(url.clone())
        },
        Clock::manual(START),
    )
    .await
    .unwrap()
    .close()
    .await;

    let mut admin = AnyConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    admin
        .execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'x', TRUE, x'00', 0)",
        )
        .await
        .unwrap();
    for migrate in [true, false] {
        let error = Ledger::open(
            &Stores {
                migrate_on_start: migrate,
                ..Stores::embedded(url.clone())
            },
            Clock::manual(START),
        )
        .await
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("version 9999") && error.contains(&format!("program's {newest}")),
            "{error}"
        );
    }
    admin.execute("DELETE FROM _sqlx_migrations WHERE version = 9999").await.unwrap();
    admin.execute("UPDATE _sqlx_migrations SET success = FALSE").await.unwrap();
    let message = refused(&url).await;
    assert!(message.contains("migration 1 is half applied"), "{message}");

    let missing = SecretString::from(format!("sqlite://{}/none.db", folder.path().display()));
    assert!(Ledger::open_read_only(&missing).await.is_err());
    assert!(!folder.path().join("none.db").exists());
}
