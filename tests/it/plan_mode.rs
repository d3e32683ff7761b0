//! Plan mode over HTTP: a plan is countersigned, carried out step by step, changed on the way, and survives every kill.

mod asked;
mod chat;
mod demo;
mod kills;
