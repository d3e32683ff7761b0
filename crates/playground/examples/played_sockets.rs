//! Both played platforms with their sockets, for one gateway or client of each: `scripts/sockets-official` runs the vendors' clients
//! against it.
//!
//! Prints the addresses and credentials as one line of JSON. Then people of each platform say something and press a button; each
//! acknowledgement is a line, and so is the end. Exits with 1 when an event is not acknowledged with 200, or a platform objects.

#![expect(clippy::print_stdout, reason = "its lines are its result")]

use countersign_agent::domain::{Clock, Ids};
use countersign_playground::{BOT, Event, FakeLark, FakeSlack, LarkApp, Pieces, SlackApp, SocketFault, Sockets, Stage, Tenant, Words};
use secrecy::SecretString;
use serde_json::{Value, json};

const BOT_TOKEN: &str = "xoxb-played";
const APP_TOKEN: &str = "xapp-played";
/// In the form of a real app's: some clients take no other.
const APP_ID: &str = "cli_0123456789abcdef";
const APP_SECRET: &str = "as-played";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (clock, ids) = (Clock::system(), Ids::random());
    let slack = FakeSlack::start(BOT_TOKEN, clock.clone(), ids.clone()).await?;
    slack.set_app_token(APP_TOKEN);
    let lark = FakeLark::start(APP_ID, APP_SECRET, clock.clone()).await?;
    let addresses = json!({
        "slack": { "base": slack.base_url(), "app_token": APP_TOKEN, "bot_token": BOT_TOKEN },
        "lark": { "base": lark.base_url(), "app_id": APP_ID, "app_secret": APP_SECRET },
    });
    println!("{addresses}");
    let http = reqwest::Client::new();
    let app = SlackApp {
        signing_secret: SecretString::from(""),
    };
    let slackers = Tenant::slack(http.clone(), "", app, Some(slack.workspace()), clock.clone(), ids.clone());
    let app = LarkApp {
        app_id: APP_ID.to_owned(),
        verification_token: SecretString::from(""),
        encrypt_key: None,
    };
    let larkers = Tenant::new(http, "", app, BOT, clock, ids);
    // Lark's first event comes in three pieces, the last one first.
    let order = vec![2, 0, 1];
    lark.sockets().fault(SocketFault::Pieces(Pieces { parts: 3, sum: 3, order }));
    let fine = [
        talk("slack", &slackers, ["U0LIN", "C0WEEKLY"], slack.sockets(), &slack).await?,
        talk("lark", &larkers, ["ou_lin", "oc_weekly"], lark.sockets(), &lark).await?,
    ];
    anyhow::ensure!(fine == [true, true], "something went wrong");
    Ok(())
}

/// A message, a command where there are any, and a press. Gives whether all were taken and nothing was objected to.
async fn talk(name: &str, people: &Tenant, [user, chat]: [&str; 2], sockets: Sockets, stage: &Stage) -> anyhow::Result<bool> {
    let people = people.through(sockets);
    let words = Words {
        user,
        chat,
        text: "hello",
        group: true,
        mention: true,
        ..Words::default()
    };
    let said = people.message(&words);
    let press = people.tap(user, chat, "1.2", &json!({ "action": "approve", "review_id": "rv_1" }), None);
    let events = [Some(said), people.command(user, chat, "/status"), Some(press)];
    let mut fine = true;
    for event in events.into_iter().flatten() {
        let Event { path, .. } = event;
        let (status, answer): (u16, Value) = people.post(&people.seal(&event)).await?;
        println!("{name} {path}: {status} {answer}");
        fine &= status == 200;
    }
    let violations = &stage.snapshot().violations;
    println!("{name} objects to: {violations:?}");
    Ok(fine && violations.is_empty())
}
