//! How long a request waits for what surrounds it: run it alone, on a machine that does nothing else.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use countersign_playground::Fault;

use super::file;
use crate::support::fake_model::say;
use crate::support::platform::On;
use crate::support::world::{ASIDE, GROUP, To, World};

/// Requests of each kind.
const ROUNDS: usize = 8;
/// How long the played platform takes to answer.
const ANSWER: Duration = Duration::from_millis(80);

/// design: issue I, must show 6: from the mention to the first call of the model, with and without what was said before, and with a file; the platform
/// answers after 80 ms.
#[tokio::test]
#[ignore = "a measurement"]
async fn from_a_mention_to_the_first_call() {
    for on in [On::Lark, On::Slack] {
        let without = median(on, "0", false).await;
        let with = median(on, "20", false).await;
        let file = median(on, "20", true).await;
        println!(
            "{}: median {without:.1} ms without context, {with:.1} ms with it, {file:.1} ms with it and a file, of {ROUNDS} each",
            on.name()
        );
    }
}

/// In milliseconds.
async fn median(on: On, context: &str, with_file: bool) -> f64 {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let clock = Arc::clone(&asked);
    let world = World::start_on(on, &[("CHAT__CONTEXT_MESSAGES", context)], move |_| {
        clock.lock().unwrap().push(Instant::now());
        say("好的。")
    })
    .await;
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let chat = on.chat(&format!("c{round}"));
        for number in 0..20 {
            world.overhears(on.user("wang"), chat, &format!("第 {number} 条"), ASIDE);
        }
        for endpoint in ["said_before", "file", "user"] {
            world.chat.fault(endpoint, Fault::Delay(ANSWER));
        }
        let event = world.message(on.user("u1"), chat, "整理一下", To { thread: None, ..GROUP });
        let sent = file("a.txt", "text/plain", b"abc");
        let event = match (with_file, on) {
            (true, On::Slack) => {
                world.chat.put_file("F1", sent.clone());
                world.tenant.with_files(event, &[("F1", &sent, world.file_url("F1"))])
            }
            // On Lark a file is in the message that is answered: two calls more.
            (true, On::Lark) => {
                world.chat.fault("message", Fault::Delay(ANSWER));
                let message = world.sends(on.user("u1"), chat, "", ASIDE, &[("F1", sent)]).await;
                world.message(
                    on.user("u1"),
                    chat,
                    "整理一下",
                    To {
                        reply_to: Some(&message),
                        ..GROUP
                    },
                )
            }
            (false, _) => event,
        };
        world.lists(chat, &event);
        let begun = Instant::now();
        world.push(&event).await;
        world.hears(chat, "好的").await;
        took.push((asked.lock().unwrap()[round] - begun).as_secs_f64() * 1000.0);
    }
    world.end().await;
    took.sort_by(f64::total_cmp);
    took[ROUNDS / 2]
}
