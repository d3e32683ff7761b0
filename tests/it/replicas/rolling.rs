//! A rolling update: each process is replaced by a new one while people go on talking.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::api::eventually;
use crate::support::fake_model::say;
use crate::support::fleet::{Fleet, LONG};
use crate::support::platform::{On, on_either};
use crate::support::world::DIRECT;

on_either! {
    every_message_is_answered_once_through_a_rolling_update,
}

/// F-P2: start B, drain A, start A', drain B: every message is answered once, and whoever pushes meets no refusal.
async fn every_message_is_answered_once_through_a_rolling_update(on: On) {
    let answer = |request: &serde_json::Value| {
        let asked = crate::support::world::user_words(request);
        say(&format!("好：{}", asked.rsplit('\n').next().unwrap()))
    };
    let Some((mut fleet, world)) = Fleet::prepare(on, LONG, &[&[], &[]], &[], answer).await else {
        return;
    };
    fleet.start(0).await;
    let over = AtomicBool::new(false);
    let people = async {
        let mut said = 0_usize;
        while !over.load(Ordering::SeqCst) || said < 10 {
            let word = format!("第{said}件");
            // The front gives an answer as long as one of the processes does; a refused connection is not one.
            let (user, chat) = (on.user(&format!("r{}", said % 5)), on.direct(&format!("r{}", said % 5)));
            let sealed = world.tenant.seal(&world.message(user, chat, &word, DIRECT));
            eventually("a message that is taken", || async {
                let (status, _) = world.tenant.post(&sealed).await.unwrap();
                // Not in time on a busy machine: the platform pushes it again.
                assert!([200, 503].contains(&status), "{status}");
                (status == 200).then_some(())
            })
            .await;
            said += 1;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        said
    };
    let update = async {
        for (new, old) in [(1, 0), (0, 1)] {
            fleet.start(new).await;
            let (status, took) = fleet.drain(old).await;
            assert_eq!(status.code(), Some(0));
            println!("F-P10 {}: drained in {:.1} s", on.name(), took.as_secs_f32());
        }
        over.store(true, Ordering::SeqCst);
    };
    let (said, ()) = tokio::join!(people, update);
    for number in 0..said {
        let chat = on.direct(&format!("r{}", number % 5));
        let words = format!("好：第{number}件");
        world.hears(chat, &words).await;
        assert_eq!(world.count(chat, &words), 1, "answers to {number}");
    }
    println!("F-P10 {}: {said} messages, each answered once", on.name());
    world.end().await;
}
