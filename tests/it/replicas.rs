//! Several processes on one PostgreSQL and one Redis: each event once, each death and each standstill survived. The points are F-K0 to F-K18
//! of the failure matrix, as in `kills`; here another process goes on instead of a restart.

mod drain;
mod finding;
mod killed;
mod outage;
mod rolling;
mod roles;
mod stopped;
mod twice;
mod versions;

pub use self::roles::APART;
