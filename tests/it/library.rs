//! The library by itself: an agent built from parts, tasks as values, journals of one's own. No gateway, no database.

mod examples;
mod failures;
mod gates;
mod journals;
mod outage;
mod played;
mod values;
mod watched;
mod words;
