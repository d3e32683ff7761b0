//! The checker sees each kind of broken promise in a history made by hand, and none in a good one.

use std::time::Duration;

use super::checker::{Violation, check};
use super::history::{Entry, Fault, Post, Verb, What, tasks_in};

const TASK: &str = "job1n1z";
const FILE: &str = "job1n1zv1.md";

fn deliver(event: &str, verb: Verb) -> What {
    What::Deliver {
        event: event.to_owned(),
        chat: "c".to_owned(),
        verb,
    }
}

fn ack(event: &str, status: Option<u16>) -> What {
    What::Ack {
        event: event.to_owned(),
        status,
    }
}

fn post(id: &str, key: &str) -> Post {
    Post {
        id: id.to_owned(),
        key: key.to_owned(),
        chat: "c".to_owned(),
        ..Post::default()
    }
}

fn card() -> What {
    What::Posted(Post {
        review: Some("rv_1".to_owned()),
        words: format!("写 {FILE}"),
        ..post("1", "a")
    })
}

fn answer(id: &str, key: &str) -> What {
    What::Posted(Post {
        last: true,
        words: format!("做完了 {TASK}"),
        ..post(id, key)
    })
}

fn asked(tasks: &[&str], answers: usize) -> What {
    What::Asked {
        tasks: tasks.iter().map(|&task| task.to_owned()).collect(),
        answers,
    }
}

fn executed() -> What {
    What::Executed { file: FILE.to_owned() }
}

/// One task, carried out.
fn good() -> Vec<What> {
    vec![
        deliver("e1", Verb::Ask),
        ack("e1", None),
        ack("e1", Some(503)),
        ack("e1", Some(200)),
        asked(&[TASK], 0),
        card(),
        deliver("e2", Verb::Approve("rv_1".to_owned())),
        ack("e2", Some(200)),
        asked(&[TASK], 1),
        executed(),
        answer("2", "b"),
    ]
}

fn broken(history: Vec<What>) -> Vec<Violation> {
    let entries: Vec<Entry> = history
        .into_iter()
        .enumerate()
        .map(|(at, what)| Entry {
            at: Duration::from_millis(at as u64),
            task: match what {
                What::Fault(_) | What::Objection(_) | What::Stuck(_) => String::new(),
                _ => TASK.to_owned(),
            },
            what,
        })
        .collect();
    check(&entries).violations
}

/// The checker objects to this history, by this rule and in these words.
#[track_caller]
fn sees(rule: &str, words: &str, history: Vec<What>) {
    let seen = broken(history);
    assert!(
        seen.iter().any(|seen| seen.rule == rule && seen.what.contains(words)),
        "no {rule} {words:?} in {seen:#?}"
    );
}

fn with(more: Vec<What>) -> Vec<What> {
    [good(), more].concat()
}

fn without(gone: &What) -> Vec<What> {
    let mut history = good();
    history.retain(|what| what != gone);
    history
}

#[test]
fn a_good_history_is_good() {
    assert_eq!(broken(good()), []);
    // A request of which nobody heard that it was taken may come to nothing.
    assert_eq!(broken(vec![deliver("e1", Verb::Ask), ack("e1", None)]), []);
    assert_eq!(
        tasks_in("写 job1n1zv1.md, job22n3z job4 jobn"),
        ["job1n1z", "job22n3z"].map(str::to_owned).into()
    );
}

/// F-I1: everything taken ends in a word to the person.
#[test]
fn what_is_lost_is_seen() {
    sees("I1", "never a last word", without(&answer("2", "b")));
    sees("I1", "in vain", with(vec![What::Missed("the answer".to_owned())]));
    sees("I1", "answered Some(500)", with(vec![ack("e1", Some(500))]));
    sees("I1", "left behind", with(vec![What::Stuck("turn_1".to_owned())]));
}

/// F-I2: nothing happens twice.
#[test]
fn what_happens_twice_is_seen() {
    sees("I2", "written 2 times", with(vec![executed()]));
    sees("I2", "2 last words", with(vec![answer("3", "c")]));
    sees("I2", "2 continuations of 1", with(vec![asked(&[TASK], 2)]));
    let second = What::Posted(Post {
        review: Some("rv_1".to_owned()),
        ..post("3", "c")
    });
    sees("I2", "2 cards of rv_1", with(vec![second]));
    // On a platform with keys the same key gives the same message.
    let keyed = |id: &str| {
        What::Posted(Post {
            last: true,
            keyed: true,
            ..post(id, "k")
        })
    };
    sees("I2", "last words", with(vec![keyed("8"), keyed("9")]));
}

/// F-I2: a person may let a lost call run again, once for each time that they said so.
#[test]
fn a_write_that_a_person_let_run_again_is_none() {
    let again = deliver("e3", Verb::RunAgain("act_1".to_owned()));
    let mut history = good();
    history.splice(10..10, [again.clone(), executed()]);
    assert_eq!(broken(history.clone()), []);
    history.push(executed());
    sees("I2", "written 3 times, 2 allowed", history);
}

/// F-I2: one doubled message for each cut, where the platform has no keys.
#[test]
fn doubled_posts_are_counted_against_the_cuts() {
    let doubled = || with(vec![answer("3", "b")]);
    sees("I2", "1 doubled posts, 0 cuts", doubled());
    let cut = || What::Fault(Fault::Kill);
    assert_eq!(broken([doubled(), vec![cut()]].concat()), []);
    sees(
        "I2",
        "stands there 3 times",
        [doubled(), vec![answer("4", "b"), cut(), cut()]].concat(),
    );
}

/// F-I3: no write before the requester's yes to a review that shows it.
#[test]
fn what_nobody_decided_is_seen() {
    let approve = deliver("e2", Verb::Approve("rv_1".to_owned()));
    sees("I3", "no review that shows it", without(&approve));
    let mut early = without(&executed());
    early.insert(6, executed());
    sees("I3", "no review that shows it", early);
    let mut other = without(&approve);
    other.insert(6, deliver("e2", Verb::Approve("rv_2".to_owned())));
    sees("I3", "no review that shows it", other);
    let mut foreign = without(&approve);
    foreign.insert(6, deliver("e2", Verb::Foreign("rv_1".to_owned())));
    sees("I3", "no review that shows it", foreign);
}

/// F-I6: nobody's card, answer or words at somebody else's.
#[test]
fn what_is_elsewhere_is_seen() {
    let mut elsewhere = post("9", "z");
    elsewhere.chat = "other".to_owned();
    sees("I6", "in other instead", with(vec![What::Posted(elsewhere)]));
    sees("I6", "a prompt with words", with(vec![asked(&[TASK, "job2n1z"], 0)]));
}

/// The doubles' own objections count.
#[test]
fn what_a_double_objects_to_is_seen() {
    sees("protocol", "no uuid", with(vec![What::Objection("no uuid".to_owned())]));
}

/// F-I1: a task that is given up saw three deaths.
#[test]
fn a_task_that_is_given_up_too_soon_is_seen() {
    let given_up = |kills: usize| {
        let kills = std::iter::repeat_n(What::Fault(Fault::Kill), kills);
        let says = |id: &str, last: bool| {
            What::Posted(Post {
                last,
                words: "@u\n处理这个任务时服务三次异常退出，任务已结束。".to_owned(),
                ..post(id, id)
            })
        };
        let asked = vec![deliver("e1", Verb::Ask), ack("e1", Some(200)), says("1", false)];
        [asked, kills.collect(), vec![says("2", true)]].concat()
    };
    assert_eq!(broken(given_up(3)), []);
    sees("I1", "given up after 2 deaths", given_up(2));
}
