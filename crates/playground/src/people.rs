//! A tenant as seen by a gateway: people who write and press buttons, as the platform's requests.

mod lark;
mod slack;

use anyhow::Context;
use countersign_agent::domain::{Clock, Ids, Millis, Thumb};
use serde_json::{Value, json};

use lark::LarkPeople;
pub use lark::TENANT_KEY;
use slack::SlackPeople;

use super::fake_slack::Workspace;
use super::posted::Form;
use super::sockets::Sockets;
use crate::seal::{LarkApp, SlackApp};
use crate::stage::PlayedFile;

#[derive(Clone, Debug)]
pub struct Tenant {
    door: Door,
    people: People,
}

#[derive(Clone, Debug)]
enum Door {
    /// As signed requests to the gateway at `base`.
    Http { http: reqwest::Client, base: String },
    /// Over the sockets that gateways have opened.
    Sockets(Sockets),
}

#[derive(Clone, Debug)]
enum People {
    Lark(LarkPeople),
    Slack(SlackPeople),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Words<'a> {
    pub user: &'a str,
    pub chat: &'a str,
    /// Text; in groups the mention of the bot is put in front when `mention` is set. `{@ID}` in it is the mention of a person.
    pub text: &'a str,
    /// A group (else a direct chat).
    pub group: bool,
    pub mention: bool,
    /// Message that this one answers; on Slack it is written in that message's thread.
    pub reply_to: Option<&'a str>,
    /// Topic of a topic group; on Slack the root of the thread.
    pub thread: Option<&'a str>,
}

/// An event before it is sealed, so that it can be sent again byte for byte or with another id.
#[derive(Clone, Debug)]
pub struct Event {
    /// Last part of the webhook's path.
    pub path: &'static str,
    /// The plaintext.
    pub body: Value,
    /// Slack tells a mention in a channel twice: the other telling.
    pub twin: Option<Value>,
    /// Message id, for messages.
    pub message_id: String,
}

impl Event {
    /// What is told, in the order in which it arrives. Which of two tellings comes first is not said: half of them the one way.
    fn tellings(&self) -> Vec<&Value> {
        let mut tellings = vec![&self.body];
        tellings.extend(&self.twin);
        if self.message_id.ends_with(['0', '2', '4', '6', '8']) {
            tellings.reverse();
        }
        tellings
    }
}

/// One request as the platform would push it, or one event as it goes over a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Path below `/webhooks/`; for a socket its last part.
    pub path: String,
    pub content_type: &'static str,
    /// The signature's headers; none for a socket.
    pub headers: Vec<(String, String)>,
    /// Body; for a socket the plain payload as JSON.
    pub body: Vec<u8>,
}

/// `text` with each `{@ID}` as `spell` spells it, and the rest as `plain` does.
fn with_mentions(text: &str, plain: impl Fn(&str) -> String, mut spell: impl FnMut(&str) -> String) -> String {
    let mut said = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{@") {
        let (id, after) = after.split_once('}').unwrap_or((after, ""));
        said.push_str(&plain(before));
        said.push_str(&spell(id));
        rest = after;
    }
    said.push_str(&plain(rest));
    said
}

impl Tenant {
    /// A Lark tenant that knows the app's secrets. `bot` is the bot's open id.
    pub fn new(http: reqwest::Client, base: &str, app: LarkApp, bot: &str, clock: Clock, ids: Ids) -> Self {
        let people = People::Lark(LarkPeople {
            app,
            bot: bot.to_owned(),
            clock,
            ids,
        });
        Self {
            door: Door::Http { http, base: trimmed(base) },
            people,
        }
    }

    /// A Slack workspace that knows the app's signing secret. Without `workspace` it has one of its own, in which nobody has
    /// spoken yet.
    pub fn slack(http: reqwest::Client, base: &str, app: SlackApp, workspace: Option<Workspace>, clock: Clock, ids: Ids) -> Self {
        let people = People::Slack(SlackPeople {
            signing_secret: app.signing_secret,
            workspace: workspace.unwrap_or_else(|| Workspace::new(clock.clone(), ids.clone())),
            clock,
            ids,
        });
        Self {
            door: Door::Http { http, base: trimmed(base) },
            people,
        }
    }

    /// These people, talking to the gateway at `base` (after a restart on another port). Those who talk through sockets still do.
    pub fn at(&self, base: &str) -> Self {
        let mut moved = self.clone();
        if let Door::Http { base: known, .. } = &mut moved.door {
            *known = trimmed(base);
        }
        moved
    }

    /// These people, talking to whichever gateway has opened `sockets`.
    pub fn through(&self, sockets: Sockets) -> Self {
        Self {
            door: Door::Sockets(sockets),
            people: self.people.clone(),
        }
    }

    pub fn message(&self, words: &Words<'_>) -> Event {
        self.message_at(words, None)
    }

    /// A message with the platform time `at`.
    pub fn message_at(&self, words: &Words<'_>, at: Option<Millis>) -> Event {
        match &self.people {
            People::Lark(people) => people.message(words, at),
            People::Slack(people) => people.message(words, at),
        }
    }

    /// A message as the platform lists it afterwards.
    pub fn listed(&self, event: &Event) -> Value {
        match &self.people {
            People::Lark(_) => lark::listed(&event.body["event"]),
            People::Slack(_) => event.body["event"].clone(),
        }
    }

    /// A message with files, each with its id and the address under which Slack gives it out. On Lark a message is one file, or words.
    pub fn with_files(&self, mut event: Event, files: &[(&str, &PlayedFile, String)]) -> Event {
        match &self.people {
            People::Lark(_) => {
                if let Some((key, file, _)) = files.first() {
                    lark::attach(&mut event.body["event"]["message"], key, file);
                }
            }
            // The other telling of a mention comes without them.
            People::Slack(_) => slack::attach(&mut event.body["event"], files),
        }
        event
    }

    /// Somebody presses the button `value` of a card, as [`super::Posted::button`] gives it. On Lark `feedback` fills the
    /// edit form; Slack's form is sent by [`Tenant::submit`].
    pub fn tap(&self, user: &str, chat: &str, card: &str, value: &Value, feedback: Option<&str>) -> Event {
        match &self.people {
            People::Lark(people) => people.tap(user, chat, card, value, feedback),
            People::Slack(people) => people.tap(user, chat, card, value),
        }
    }

    /// Somebody presses the button `value` on the Home tab `view` of theirs; none on Lark.
    pub fn tap_home(&self, user: &str, view: &str, value: &Value) -> Option<Event> {
        match &self.people {
            People::Lark(_) => None,
            People::Slack(people) => Some(people.tap_home(user, view, value)),
        }
    }

    /// Somebody presses `value`, the button below the boxes of a card's steps, with those of these `ids` ticked.
    pub fn keep(&self, user: &str, chat: &str, card: &str, value: &Value, ids: &[&str]) -> Event {
        let mut event = self.tap(user, chat, card, value, None);
        match &self.people {
            People::Lark(_) => {
                let ticked = ids.iter().map(|id| (format!("step_{id}"), Value::Bool(true)));
                event.body["event"]["action"]["form_value"] = Value::Object(ticked.collect());
            }
            People::Slack(_) => event.body["state"] = slack::ticked(ids),
        }
        event
    }

    /// Somebody ticks or unticks a box, after which those of these `ids` are ticked. Slack tells of it, Lark does not.
    pub fn ticks(&self, user: &str, chat: &str, card: &str, value: &Value, ids: &[&str]) -> Option<Event> {
        let People::Slack(_) = &self.people else { return None };
        let mut event = self.keep(user, chat, card, value, ids);
        let mut boxes = event.body["state"]["values"]["keep.1"]["plan_steps"].take();
        for (name, told) in [("action_id", "plan_steps"), ("block_id", "keep.1")] {
            boxes[name] = json!(told);
        }
        boxes["action_ts"] = event.body["actions"][0]["action_ts"].clone();
        event.body["state"] = slack::ticked(ids);
        event.body["actions"] = json!([boxes]);
        Some(event)
    }

    /// Somebody sends the edit form that their click opened; none on Lark, whose cards hold it.
    pub fn submit(&self, user: &str, form: &Form, feedback: &str) -> Option<Event> {
        match &self.people {
            People::Lark(_) => None,
            People::Slack(people) => Some(people.submit(user, form, feedback)),
        }
    }

    /// A slash command; none on Lark.
    pub fn command(&self, user: &str, chat: &str, text: &str) -> Option<Event> {
        match &self.people {
            People::Lark(_) => None,
            People::Slack(people) => Some(people.command(user, chat, text)),
        }
    }

    /// A message is taken back by who wrote it.
    pub fn recalled(&self, user: &str, chat: &str, message: &str) -> Event {
        match &self.people {
            People::Lark(people) => people.other(
                "im.message.recalled_v1",
                json!({ "message_id": message, "chat_id": chat, "recall_time": "1", "recall_type": "message_owner" }),
            ),
            People::Slack(people) => people.deleted(user, chat, message),
        }
    }

    /// A message is changed to `text` by who wrote it. `{@ID}` in it is the mention of a person.
    pub fn edited(&self, user: &str, chat: &str, message: &str, text: &str) -> Event {
        match &self.people {
            People::Lark(people) => people.edited(user, chat, message, text),
            People::Slack(people) => people.edited(user, chat, message, text),
        }
    }

    /// Somebody puts a thumb on a message, or takes it away.
    pub fn thumb(&self, user: &str, chat: &str, message: &str, thumb: Thumb, taken_away: bool) -> Event {
        match &self.people {
            People::Lark(people) => people.thumb(user, message, thumb, taken_away),
            People::Slack(people) => people.thumb(user, chat, message, thumb, taken_away),
        }
    }

    /// Any other event: of schema v2 on Lark; on Slack an inner event of this type.
    pub fn other(&self, kind: &str, event: Value) -> Event {
        match &self.people {
            People::Lark(people) => people.other(kind, event),
            People::Slack(people) => {
                let mut event = event;
                event["type"] = json!(kind);
                people.told(event)
            }
        }
    }

    /// The requests that the platform makes of an event: signed, and on Lark encrypted. A socket needs neither.
    pub fn seal(&self, event: &Event) -> Vec<Parcel> {
        let seal = |body: &Value| match (&self.door, &self.people) {
            (Door::Sockets(_), _) => Parcel {
                path: event.path.to_owned(),
                content_type: "application/json",
                headers: Vec::new(),
                body: body.to_string().into_bytes(),
            },
            (Door::Http { .. }, People::Lark(people)) => people.seal(event.path, body),
            (Door::Http { .. }, People::Slack(people)) => people.seal(event.path, body),
        };
        event.tellings().into_iter().map(seal).collect()
    }

    /// Posts the parcels one after the other; gives status and body (null when it is empty) of the first that was not taken, else
    /// of the last. See [`Sockets::push`] for what they are over a socket.
    ///
    /// # Errors
    /// When the gateway cannot be reached, or acknowledges wrongly over a socket.
    pub async fn post(&self, parcels: &[Parcel]) -> anyhow::Result<(u16, Value)> {
        let mut answer = (0, Value::Null);
        for parcel in parcels {
            answer = match &self.door {
                Door::Http { http, base } => request(http, base, parcel).await?,
                Door::Sockets(sockets) => sockets.carry(&parcel.path, &serde_json::from_slice(&parcel.body)?).await?,
            };
            if answer.0 != 200 {
                break;
            }
        }
        Ok(answer)
    }

    /// Seals and sends a message; gives its id.
    pub async fn say(&self, words: &Words<'_>) -> anyhow::Result<String> {
        let event = self.message(words);
        let (status, body) = self.post(&self.seal(&event)).await?;
        anyhow::ensure!(status == 200, "the gateway answered {status}: {body}");
        Ok(event.message_id)
    }
}

async fn request(http: &reqwest::Client, base: &str, parcel: &Parcel) -> anyhow::Result<(u16, Value)> {
    let mut request = http
        .post(format!("{base}/webhooks/{}", parcel.path))
        .header("content-type", parcel.content_type);
    for (name, value) in &parcel.headers {
        request = request.header(name, value);
    }
    let response = request.body(parcel.body.clone()).send().await.context("no gateway answers there")?;
    let status = response.status().as_u16();
    let text = response.text().await.unwrap_or_default();
    let body = match text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    Ok((status, body))
}

fn trimmed(base: &str) -> String {
    base.trim_end_matches('/').to_owned()
}
