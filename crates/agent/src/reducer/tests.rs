//! Scenarios of the reducer, each played by a scripted model, scripted tools and scripted people.

mod play;
mod watch;
mod again;
mod admin_rules;
mod approvals;
mod blocks;
mod book_keeping;
mod cards;
mod context;
mod coverage;
mod continuation;
mod endings;
mod guard;
mod left_out;
mod limits;
mod observe;
mod pairing;
mod plan_again;
mod plan_mode;
mod plan_mode_changes;
mod plan_mode_steps;
mod prompts;
mod random;
mod review;
mod rules;
