//! A model's server that is away: when it is tried again, what it costs, when the turn gives up.

use std::time::Duration;

use serde_json::json;

use super::play::*;
use crate::domain::{Event, Millis, Notice, Role, TurnReason, TurnStatus};
use crate::reducer::{FailedTry, Input, Next, OutageStep};

const HOUR: Duration = Duration::from_secs(3600);

fn away(wait: Option<Duration>, patience: Duration) -> Input {
    Input::ModelAway(FailedTry {
        wait,
        patience,
        error: "HTTP 503".into(),
        incident: "inc7".into(),
        millis: 0,
        tokens: 0,
    })
}

impl Play {
    /// The clock goes on to the next try; gives how long that took. What is due in between is fed.
    fn until_next_try(&mut self) -> Duration {
        let failed = self.now();
        loop {
            match self.state().outage_step(self.now()) {
                OutageStep::Try => return self.now().since(failed),
                OutageStep::Tick => {
                    self.feed(Input::Tick);
                }
                OutageStep::WaitUntil(at) => {
                    let span = at.since(self.now());
                    assert!(!span.is_zero());
                    self.wait(span);
                }
            }
        }
    }

    /// The server is away at every try; the pauses between them, until the turn is over.
    fn pauses(&mut self, wait: Option<Duration>, patience: Duration) -> Vec<f64> {
        let mut pauses = Vec::new();
        loop {
            self.feed(away(wait, patience));
            if self.state().status.is_final() {
                return pauses;
            }
            pauses.push(self.until_next_try().as_secs_f64());
        }
    }
}

/// interface §10 M, bugs F4: tried after about 1, 2, 4, 8, 15 and 30 seconds, then each minute, to the end of the time; then the turn fails, with
/// what failed, and remembers that the server was away.
#[test]
fn a_server_that_is_away_is_tried_with_growing_pauses() {
    let mut play = Play::at_work();
    let pauses = play.pauses(None, HOUR);
    for (at, about) in [1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 60.0, 60.0].into_iter().enumerate() {
        assert!((pauses[at] - about).abs() <= about * 0.1 + 0.1, "{at}: {pauses:?}");
    }
    let whole: f64 = pauses.iter().sum();
    assert!((whole - 3600.0).abs() < 1.0, "the last try is at the end: {whole}");
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
    assert_eq!(play.answer().problem, Some(Notice::ModelUnreachable {}));
    assert_eq!(
        (play.answer().incident.as_deref(), play.state().error.as_deref()),
        (Some("inc7"), Some("HTTP 503"))
    );
    assert!(play.state().outage.is_some());
    let mut other = Play::at_work();
    other.turn.state.seed = "another seed".into();
    assert_ne!(other.pauses(None, HOUR)[..6], pauses[..6], "turns do not come back at one moment");
}

/// interface §10 M: without a time the first half minute of tries stays; the time is that of the settings of the last failure.
#[test]
fn the_first_half_minute_stays_and_an_edit_holds_from_the_next_try_on() {
    let mut play = Play::at_work();
    let whole: f64 = play.pauses(None, Duration::ZERO).iter().sum();
    assert!((29.9..30.5).contains(&whole), "{whole}");
    let mut play = Play::at_work();
    play.feed(away(None, Duration::ZERO));
    let since = play.state().outage.clone().unwrap().since;
    play.until_next_try();
    play.feed(away(None, HOUR));
    assert_eq!(play.state().outage.as_ref().map(|outage| outage.until), Some(since.plus(HOUR)));
    play.wait(Duration::from_secs(120)).feed(away(None, Duration::from_secs(60)));
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
}

/// interface §10 M: or when it says, also at once (nearly), also later than we would; never past the end.
#[test]
fn the_servers_own_wait_counts() {
    for (asked, wait) in [(9.0, 9.0), (0.0, 1.0), (240.0, 240.0), (600.0, 300.0)] {
        let mut play = Play::at_work();
        play.feed(away(Some(Duration::from_secs_f64(asked)), Duration::from_secs(300)));
        let pause = play.until_next_try().as_secs_f64();
        assert!((pause - wait).abs() < 0.1, "{asked}: {pause}");
    }
}

/// interface §10 M: waiting costs no working time and no step; only what was spent before is charged.
#[test]
fn waiting_costs_nothing() {
    let mut play = Play::at_work();
    let before = play.state().budget;
    for _ in 0..40 {
        play.feed(away(None, HOUR)).until_next_try();
    }
    assert_eq!(play.state().budget, before);
    let spent = FailedTry {
        wait: None,
        patience: HOUR,
        error: String::new(),
        incident: String::new(),
        millis: 70,
        tokens: 7,
    };
    play.feed(Input::ModelAway(spent));
    let budget = play.state().budget;
    assert_eq!(
        (budget.millis.used, budget.tokens.used),
        (before.millis.used + 70, before.tokens.used + 7)
    );
    play.says("back at work").calls_model();
    assert_eq!(
        (play.state().outage.clone(), play.state().budget.steps.used),
        (None, before.steps.used + 1)
    );
    let told = |event: &&&Event| matches!(event, Event::ModelAway { .. } | Event::ModelBack {});
    assert_eq!(play.events().iter().filter(told).count(), 2, "away and back, once each");
    let notices = play.notices();
    assert!(matches!(notices.as_slice(), [Notice::ModelAway { .. }]), "{notices:?}");
}

/// interface §10 M: what the requester says meanwhile reaches the model with the next try, and wakes nothing before; another error ends the turn
/// as one, and is no outage.
#[test]
fn words_wait_for_the_next_try_and_other_errors_end_the_turn() {
    let mut play = Play::at_work();
    play.feed(away(None, HOUR));
    let outage = play.state().outage.clone().unwrap();
    play.feed(Input::Steer("and quickly".into()));
    assert_eq!(play.state().outage_step(Millis(0)), OutageStep::WaitUntil(outage.next_try));
    assert!(play.log(Role::User).last().unwrap().contains("and quickly"));
    play.feed(Input::ModelFailed {
        notice: Notice::ModelRefused {},
        error: "HTTP 401".into(),
        incident: "inc8".into(),
        millis: 5,
    });
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
    assert_eq!(
        (play.state().outage.clone(), play.state().error.as_deref()),
        (None, Some("HTTP 401"))
    );
}

/// A server that takes the request and gives no answer in time is not asked again by itself, and people may have the task tried again.
#[test]
fn no_answer_in_time_ends_the_turn_and_can_be_tried_again() {
    let mut play = Play::at_work();
    play.feed(Input::ModelFailed {
        notice: Notice::ModelTimeout {},
        error: "no answer in time".into(),
        incident: "inc9".into(),
        millis: 5,
    });
    play.ended(TurnStatus::Failed, TurnReason::ModelError);
    assert_eq!(play.answer().problem, Some(Notice::ModelTimeout {}));
    assert_eq!(
        play.answer().again.as_ref().map(ToString::to_string),
        Some(play.state().turn_id.clone())
    );
}

/// design: the flagged last call has little time of its own: it is tried as long as any server is, and no longer.
#[test]
fn the_last_call_is_not_waited_for() {
    let mut play = Play::with(|policy| policy.max_iterations = 2);
    play.calls("plan", three_steps())
        .approves()
        .calls("plan_progress", json!({"step_id": "1"}));
    assert_eq!(play.state().next, Next::CallModel { last: true });
    let since = play.now();
    while play.state().next == (Next::CallModel { last: true }) {
        play.feed(away(None, HOUR));
        play.until_next_try();
    }
    play.waits_for(crate::domain::GateKind::Budget);
    assert!(play.now().since(since) < Duration::from_secs(32));
    play.wait(HOUR).approves().calls_model();
    assert_eq!(
        play.state().outage_step(play.now()),
        OutageStep::Try,
        "the next call has time of its own"
    );
}
