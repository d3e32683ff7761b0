//! `kill -9` at every point of a turn, then a restart: one card, one continuation, each write once or a person is
//! asked, one final answer. The points are F-K0 to F-K18 of the failure matrix; what they mean is beside each test.

mod again;
mod answer;
mod crash;
mod file;
pub mod kit;
mod left_out;
mod outage;
mod limit;
pub mod remind;
mod repaint;
mod reply;
mod request;
mod standing;
mod stop;
mod typing;
mod write;
