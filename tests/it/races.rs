//! F-H1 to F-H23 of the failure matrix as races: the same moment again and again, by random offsets of a seed that is printed.
//!
//! Three rounds each in the suite; `scripts/races` runs a hundred and prints the table. On PostgreSQL and Redis every
//! race is run against two gateways, and who hears of what is drawn by lot.

mod edges;
pub mod kit;
mod members;
mod settings;
mod taps;
mod thumbs;
mod words;

/// Makes two tests of each function that takes an [`On`](crate::support::platform::On), like `on_both!`, but on several
/// threads: what happens at once happens at once.
macro_rules! races {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                use crate::support::platform::On;

                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn lark() {
                    Box::pin(super::$name(On::Lark)).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn slack() {
                    Box::pin(super::$name(On::Slack)).await;
                }
            }
        )+
    };
}
use races;
