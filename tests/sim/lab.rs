//! What lives of one thread share: a runtime whose time only moves when it is told to, and a ledger that is emptied between lives.

use std::sync::{Arc, LazyLock, Mutex, mpsc};
use std::time::Duration;

use countersign_agent::domain::{Clock, Millis};
use countersign_agent::template::Templates;
use countersign_gateway::config::Stores;
use countersign_gateway::store::Ledger;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use tokio::runtime::{Builder, Runtime};

use super::stage::{Pacer, Scene, unpaced};
use super::words::{BOT, place};

static TEMPLATES: LazyLock<Arc<Templates>> =
    LazyLock::new(|| countersign_gateway::template::load(None).expect("the embedded templates are sound"));

/// Tables that outlive a life: the schema's own, and what the bot knows of itself.
const KEPT: [&str; 2] = ["_sqlx_migrations", "facts"];
const DAY: i64 = 86_400_000;

/// Everything that is made once a thread.
pub struct Lab {
    pub ledger: Ledger,
    pub clock: Clock,
    pub templates: Arc<Templates>,
    /// Beside the ledger's own connections, for what no verb tells.
    pub conn: AnyConnection,
    /// What a life leaves rows in.
    tables: Vec<String>,
    pacer: Arc<Pacer>,
    _folder: tempfile::TempDir,
}

/// A runtime without a clock of its own. As long as the sender lives, time does not move by itself: the runtime believes that a
/// blocking task may still have something to say.
pub fn runtime() -> (Runtime, mpsc::Sender<()>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let (hold, held) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || held.recv());
    (runtime, hold)
}

impl Lab {
    pub async fn open() -> Self {
        // No disk under it: what a power cut leaves is another test's question.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        }
        .expect("a folder");
        let url = format!("sqlite://{}/ledger.db", folder.path().display());
        let clock = Clock::manual(Millis(1_760_000_000_000));
        let ledger = Ledger::open(&Stores::embedded(url.clone().into()), clock.clone())
            .await
            .expect("a ledger");
        let mut tx = ledger.begin().await.expect("a transaction");
        tx.set_fact(&place("").bot_fact(), BOT).await.expect("the bot knows itself");
        tx.commit().await.expect("a commit");
        let pacer = Arc::new(Pacer(Mutex::new(Arc::default())));
        ledger.simulate(Arc::clone(&pacer) as Arc<_>);
        sqlx::any::install_default_drivers();
        let mut conn = AnyConnection::connect(&format!("{url}?mode=rw")).await.expect("another connection");
        // Whole tables are emptied in any order.
        for pragma in ["PRAGMA busy_timeout = 5000", "PRAGMA foreign_keys = OFF"] {
            conn.execute(pragma).await.expect("a pragma");
        }
        let tables = sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'");
        let mut tables: Vec<String> = tables.fetch_all(&mut conn).await.expect("a schema");
        tables.retain(|table| !KEPT.contains(&table.as_str()));
        Self {
            ledger,
            clock,
            templates: Arc::clone(&TEMPLATES),
            conn,
            tables,
            pacer,
            _folder: folder,
        }
    }

    /// An empty ledger, at the beginning of a day, asked by `scene`.
    pub async fn fresh(&mut self, scene: &Arc<Scene>) {
        *self.pacer.0.lock().expect("nobody panics while holding it") = Arc::clone(scene);
        unpaced(async {
            self.conn.execute("BEGIN IMMEDIATE").await.expect("nobody else writes");
            for table in &self.tables {
                let delete = AssertSqlSafe(format!("DELETE FROM {table}"));
                // As a query, whose statement is kept.
                sqlx::query(delete).execute(&mut self.conn).await.expect("an empty table");
            }
            self.conn.execute("COMMIT").await.expect("a commit");
        })
        .await;
        let today = self.clock.now().0 % DAY;
        self.clock.advance(Duration::from_millis(u64::try_from(DAY - today).unwrap_or(0)));
    }
}
