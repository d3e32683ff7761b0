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

/// Makes two tests of each function, like `on_either!`, but on several threads: what happens at once happens at once.
macro_rules! races {
    ($($name:ident),+ $(,)?) => {
        crate::support::platform::on_each! {
            (flavor = "multi_thread", worker_threads = 4), crate::support::platform::has_its_turn, $($name),+
        }
    };
}
use races;

/// The same for races that look at the platform.
macro_rules! races_on_both {
    ($($name:ident),+ $(,)?) => {
        crate::support::platform::on_each! {
            (flavor = "multi_thread", worker_threads = 4), crate::support::platform::always, $($name),+
        }
    };
}
use races_on_both;
