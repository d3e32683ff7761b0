//! People at work on both platforms while replicas and stores die at moments that nobody chose; the history that the doubles
//! kept is then compared with the promises.

mod checker;
mod courier;
mod dice;
mod fleet;
mod history;
mod people;
mod report;
mod street;
mod violations;
mod weather;

use std::time::Duration;

use futures_util::future::join_all;

use self::checker::check;
use self::dice::Dice;
use self::people::Person;
use self::report::report;
use self::street::Street;
use self::weather::{Stores, on_a_replica, on_the_stores};
use crate::support::platform::On;
use crate::support::servers::{PostgresServer, RedisServer};

/// In the whole run of the tests; `scripts/soak` makes it longer.
const SECONDS: u64 = 20;
const SEED: u64 = 20_260_517;
const PEOPLE: usize = 10;
/// After the last fault.
const RECOVERY: Duration = Duration::from_secs(60);

/// K0 to K18, P1, P2, P4, R2 to R5, R11, H4: two replicas and both stores are killed, stopped and restarted under traffic on
/// both platforms: nothing is lost, done twice, done without a yes, or said to somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_dies() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seconds = number("COUNTERSIGN_SOAK_SECONDS").unwrap_or(SECONDS);
    let seed = number("COUNTERSIGN_SOAK_SEED").unwrap_or(SEED);
    let Some(postgres) = PostgresServer::start().await else { return };
    let redis = RedisServer::start(&["--appendonly", "yes", "--maxmemory-policy", "noeviction"]).await;
    let Some(redis) = redis else { return };
    let settings = [
        ("STORE__DATABASE_URL", postgres.fresh_database().await),
        ("STORE__COORDINATION", "redis".to_owned()),
        ("STORE__REDIS_URL", redis.url()),
    ];
    let settings = settings.map(|(key, value)| (key.to_owned(), value));
    let mut stores = Stores { postgres, redis };
    let folder = tempfile::tempdir().unwrap();
    let street = Street::open(folder.path(), &settings, 2, Duration::from_secs(seconds)).await;
    let first = street.replicas[0].start().await;
    let second = street.replicas[1].start().await;
    let people: Vec<Person<'_>> = (0..PEOPLE)
        .map(|number| Person::new(&street, number, if number % 2 == 0 { On::Lark } else { On::Slack }))
        .collect();
    let (tasks, first, second, ()) = tokio::join!(
        join_all(people.iter().map(|person| person.lives(seed))),
        on_a_replica(&street, &street.replicas[0], first, Dice::of(seed, 1)),
        on_a_replica(&street, &street.replicas[1], second, Dice::of(seed, 2)),
        on_the_stores(&street, &mut stores, Dice::of(seed, 3)),
    );
    street.settle(RECOVERY).await;
    street.push_all_again(RECOVERY + Duration::from_secs(seconds)).await;
    // Whatever came of that would have come before the answers to these.
    let markers: Vec<Person<'_>> = [On::Lark, On::Slack]
        .into_iter()
        .enumerate()
        .map(|(at, on)| Person::new(&street, PEOPLE + at, on))
        .collect();
    let mut dice = Dice::of(seed, 4);
    for person in &markers {
        person.carry_out("OK by word", 1, &mut dice).await;
    }
    street.settle(RECOVERY).await;
    street.collect();
    let entries = street.history.entries();
    let verdict = check(&entries);
    let told = report(seed, seconds, &street, tasks.iter().sum(), &entries, &verdict);
    // Its end: after the last look.
    drop((first, second));
    assert!(verdict.violations.is_empty(), "{told}");
}
