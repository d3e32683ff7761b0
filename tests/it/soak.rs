//! People at work on both platforms while replicas and stores die at moments that nobody chose; the history that the doubles
//! kept is then compared with the promises.

mod checker;
mod courier;
mod dice;
mod history;
mod people;
mod replica;
mod report;
mod street;
mod violations;
mod weather;

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;

use self::checker::check;
use self::dice::Dice;
use self::history::What;
use self::people::Person;
use self::report::report;
use self::street::Street;
use self::weather::{Luck, Stores, on_a_replica, on_the_stores};
use crate::support::platform::On;
use crate::support::servers::{PostgresServer, RedisServer};
use crate::support::stores::Pairing;

/// In the whole run of the tests; `scripts/soak` makes it longer.
const SECONDS: u64 = 20;
const SEED: u64 = 20_260_517;
const PEOPLE: usize = 10;
/// After the last fault.
const RECOVERY: Duration = Duration::from_secs(60);

/// F-K0, F-K2, F-K9, F-K14, F-K18, F-P1, F-P2, F-P4, F-R2, F-R4, F-R5, F-R11: two replicas and both stores are killed, stopped and restarted under traffic on
/// both platforms: nothing is lost, done twice, done without a yes, or said to somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_dies() {
    let number = |name: &str| std::env::var_os(name).map(|text| text.to_str().unwrap().parse::<u64>().unwrap());
    let Some(postgres) = PostgresServer::start().await else { return };
    let Some(redis) = RedisServer::start(&["--appendonly", "yes", "--maxmemory-policy", "noeviction"]).await else {
        return;
    };
    let settings = [
        ("STORE__DATABASE_URL", postgres.fresh_database().await),
        ("STORE__COORDINATION", "redis".to_owned()),
        ("STORE__REDIS_URL", redis.url()),
    ];
    let run = Run {
        settings: settings.map(|(key, value)| (key.to_owned(), value)).into(),
        stores: Some(Stores { postgres, redis }),
        replicas: 2,
        luck: Luck {
            gap: 500..6000,
            only_kills: false,
        },
        seconds: number("COUNTERSIGN_SOAK_SECONDS").unwrap_or(SECONDS),
        seed: number("COUNTERSIGN_SOAK_SEED").unwrap_or(SEED),
    };
    Box::pin(run.judged(tempfile::tempdir().unwrap().path())).await;
}

/// F-K0, F-K2, F-K9, F-K14, F-K18, F-P1, F-H1: one gateway on a file is killed every 400 to 1,200 ms, and the same holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_however_often_the_gateway_dies() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run {
        settings: Pairing::Sqlite.settings(folder.path()).await,
        stores: None,
        replicas: 1,
        luck: Luck {
            gap: 400..1_200,
            only_kills: true,
        },
        seconds: 8,
        seed: SEED,
    };
    Box::pin(run.judged(folder.path())).await;
}

/// One soak.
struct Run {
    /// Of the stores.
    settings: Vec<(String, String)>,
    stores: Option<Stores>,
    replicas: usize,
    luck: Luck,
    seconds: u64,
    seed: u64,
}

impl Run {
    /// The bad time, then what came of it.
    async fn judged(mut self, folder: &Path) {
        let bad_time = Duration::from_secs(self.seconds);
        let street = Street::open(folder, &self.settings, self.replicas, bad_time).await;
        let mut processes = Vec::new();
        for replica in &street.replicas {
            processes.push(replica.start().await);
        }
        let people: Vec<Person<'_>> = (0..PEOPLE)
            .map(|number| Person::new(&street, number, if number % 2 == 0 { On::Lark } else { On::Slack }))
            .collect();
        let suffering = street.replicas.iter().zip(processes).zip(1..);
        let suffering =
            suffering.map(|((replica, process), player)| on_a_replica(&street, replica, process, &self.luck, Dice::of(self.seed, player)));
        let (tasks, processes, ()) = tokio::join!(
            join_all(people.iter().map(|person| person.lives(self.seed))),
            join_all(suffering),
            on_the_stores(&street, &mut self.stores, &self.luck, Dice::of(self.seed, 99)),
        );
        street.settled(RECOVERY).await;
        street.push_all_again(RECOVERY + bad_time).await;
        // Whatever came of that would have come before the answers to these.
        let mut dice = Dice::of(self.seed, 98);
        for (at, on) in [On::Lark, On::Slack].into_iter().enumerate() {
            Person::new(&street, PEOPLE + at, on).carry_out("OK by word", 1, &mut dice).await;
        }
        for turn in street.settled(RECOVERY).await {
            street.history.note("", What::Stuck(turn.to_string()));
        }
        street.collect();
        let entries = street.history.entries();
        let verdict = check(&entries);
        report(&self, &street, tasks.iter().sum(), &entries, &verdict);
        drop(processes);
        assert_eq!(verdict.violations, []);
    }
}
