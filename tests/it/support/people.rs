//! What people do in a world besides talking, and how a test sees that nothing more is to come.

use std::time::Duration;

use countersign_agent::domain::{Millis, Thumb};
use countersign_playground::{Event, Posted, Sealed, Sockets, Words};
use serde_json::{Value, json};

use super::api::eventually;
use super::deliveries::Delivery;
use super::fake_model::Script;
use super::heard::Heard;
use super::platform::On;
use super::world::{To, World};

/// What a gateway answers that could not store an event: as a request, and over a socket.
pub const NOT_STORED: [u16; 2] = [503, 500];

/// A reply to `message` in a group, with the bot mentioned.
pub fn reply(message: &str) -> To<'_> {
    To {
        group: true,
        mention: true,
        reply_to: Some(message),
        thread: None,
    }
}

/// A reply to `message` in a group, without a mention.
pub fn aside(message: &str) -> To<'_> {
    To {
        mention: false,
        ..reply(message)
    }
}

impl World {
    /// Lets the millisecond pass in which the bot's last post appeared: nobody answers within it, and it would not count. A
    /// frozen clock is not waited for.
    pub async fn breath(&self) {
        let last = self.chat.snapshot().messages.last().map(|message| message.at);
        for _ in 0..3 {
            if last.is_none_or(|last| self.clock.now() > last) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// How many messages of the bot in `chat` hold `words`.
    pub fn count(&self, chat: &str, words: &str) -> usize {
        self.chat
            .snapshot()
            .in_chat(chat)
            .filter(|message| message.words().contains(words))
            .count()
    }

    /// Somebody says something; gives the message id. The gateway must take it.
    pub async fn say(&self, user: &str, chat: &str, text: &str, to: To<'_>) -> String {
        self.breath().await;
        let event = self.message(user, chat, text, to);
        self.push(&event).await;
        event.message_id
    }

    /// Says something; gives the message id and the status of the answer. `None` means that the connection broke.
    pub async fn try_say(&self, user: &str, chat: &str, text: &str, to: To<'_>) -> (String, Option<u16>) {
        self.breath().await;
        let event = self.message(user, chat, text, to);
        let answer = self.tenant.post(&self.tenant.seal(&event)).await;
        (event.message_id, answer.ok().map(|(status, _)| status))
    }

    /// Says something with the platform time `at`, however late it arrives.
    pub async fn say_at(&self, at: Millis, user: &str, chat: &str, text: &str, to: To<'_>) {
        self.push(&self.message_at(Some(at), user, chat, text, to)).await;
    }

    /// Words as the platform would push them.
    pub fn message(&self, user: &str, chat: &str, text: &str, to: To<'_>) -> Event {
        self.message_at(None, user, chat, text, to)
    }

    /// Words with the platform time `at`.
    pub fn message_at(&self, at: Option<Millis>, user: &str, chat: &str, text: &str, to: To<'_>) -> Event {
        let To {
            group,
            mention,
            reply_to,
            thread,
        } = to;
        let place = (user.to_owned(), chat.to_owned(), thread.unwrap_or_default().to_owned());
        let follows = self.on == On::Slack && group && mention && reply_to.is_none();
        let root = self.threads.lock().unwrap().get(&place).cloned().filter(|_| follows);
        let event = self.tenant.message_at(
            &Words {
                user,
                chat,
                text,
                group,
                mention,
                reply_to,
                thread: match self.on {
                    On::Lark => thread,
                    On::Slack => root.as_deref(),
                },
            },
            at,
        );
        if follows && root.is_none() {
            self.threads.lock().unwrap().insert(place, event.message_id.clone());
        }
        if self.on == On::Lark {
            self.chat.learn(&event.message_id, chat);
        }
        event
    }

    /// The id by which the API knows the topic that `user` opened in `chat`.
    pub fn topic(&self, user: &str, chat: &str, thread: &str) -> String {
        match self.on {
            On::Lark => thread.to_owned(),
            On::Slack => self.threads.lock().unwrap()[&(user.to_owned(), chat.to_owned(), thread.to_owned())].clone(),
        }
    }

    /// Pushes an event that the gateway must take, and gives its answer. An event that a busy machine did not store in time is pushed again.
    pub async fn push(&self, event: &Event) -> Value {
        let taken = || async {
            let (status, body) = self.tenant.post(&self.tenant.seal(event)).await.unwrap();
            if NOT_STORED.contains(&status) {
                return None;
            }
            assert_eq!(status, 200, "{body}");
            Some(body)
        };
        eventually("an event that is stored", taken).await
    }

    /// An event that the gateway cannot read. As a request it is refused. Over a socket it is acknowledged, or it would come again.
    pub async fn push_unreadable(&self, event: &Event) {
        let expected = match Delivery::told(self.settings(), self.on) {
            Delivery::Webhook => 400,
            Delivery::Socket => 200,
        };
        let (status, body) = self.tenant.post(&self.tenant.seal(event)).await.unwrap();
        assert_eq!(status, expected, "{body}");
    }

    /// The played platform's sockets.
    pub fn sockets(&self) -> Sockets {
        match self.on {
            On::Lark => self.lark().sockets(),
            On::Slack => self.slack().sockets(),
        }
    }

    /// The one request of an event on Lark.
    pub fn sealed(&self, event: &Event) -> Sealed {
        let parcel = self.tenant.seal(event).remove(0);
        Sealed {
            headers: parcel.headers,
            body: parcel.body,
        }
    }

    /// Presses a button of a card, or sends its form with `feedback`; gives what the person hears.
    pub async fn tap(&self, user: &str, chat: &str, card: &Posted, verb: &str, feedback: Option<&str>) -> Heard {
        let value = card.button(verb).unwrap_or_else(|| panic!("no button {verb} on {}", card.words()));
        self.press(user, chat, card, &value, feedback).await
    }

    /// Presses a button by an event that `edit` changed.
    pub async fn tap_as(&self, user: &str, chat: &str, card: &Posted, verb: &str, edit: impl FnOnce(&mut Value)) -> Heard {
        let value = card.button(verb).unwrap_or_else(|| panic!("no button {verb} on {}", card.words()));
        let before = self.chat.snapshot().notes.len();
        let mut event = self.tenant.tap(user, chat, &card.id, &value, None);
        edit(&mut event.body);
        Heard::new(self, user, chat, before, &self.push(&event).await)
    }

    /// Presses a button with this value.
    pub async fn press(&self, user: &str, chat: &str, card: &Posted, value: &Value, feedback: Option<&str>) -> Heard {
        let before = self.chat.snapshot().notes.len();
        let event = self.tenant.tap(user, chat, &card.id, value, feedback);
        let answer = self.push(&event).await;
        let heard = |answer: &Value| Heard::new(self, user, chat, before, answer);
        let (On::Slack, Some(feedback)) = (self.on, feedback) else {
            return heard(&answer);
        };
        // The press opens the form, or a note says why not.
        let trigger = event.body["trigger_id"].clone();
        let form = self
            .seen("the form or a note", |seen| {
                let form = seen.forms.iter().find(|form| trigger == form.trigger_id.as_str()).cloned();
                form.map(Some).or_else(|| (seen.notes.len() > before).then_some(None))
            })
            .await;
        match form {
            Some(form) => {
                let event = self.tenant.submit(user, &form, feedback).unwrap();
                heard(&self.push(&event).await)
            }
            None => heard(&answer),
        }
    }

    /// Waits for the bot's word back on a message: its reply; on Slack the next words in the message's thread, or in the
    /// direct chat.
    pub async fn word_back(&self, chat: &str, message: &str) -> Posted {
        let root = match self.on {
            On::Lark => None,
            On::Slack => self.slack().workspace().root_of(message),
        };
        let direct = chat.starts_with('D');
        self.seen("a word back", |seen| {
            let answers = |posted: &&Posted| match self.on {
                On::Lark => posted.reply_to.as_deref() == Some(message),
                On::Slack => posted.id.as_str() > message && (direct || posted.reply_to == root),
            };
            seen.in_chat(chat).find(answers).cloned()
        })
        .await
    }

    /// A message is taken back by who wrote it.
    pub async fn recall(&self, user: &str, chat: &str, message: &str) {
        self.chat.recall(message);
        self.push(&self.tenant.recalled(user, chat, message)).await;
    }

    /// A message is changed to `text`.
    pub async fn edit(&self, user: &str, chat: &str, message: &str, text: &str) {
        self.push(&self.tenant.edited(user, chat, message, text)).await;
    }

    /// Lets a millisecond of the platform's time pass.
    pub async fn tick(&self) {
        let before = self.clock.now();
        while self.clock.now() == before {
            tokio::task::yield_now().await;
        }
    }

    /// Somebody puts a thumb on a message of a chat.
    pub async fn thumb(&self, user: &str, chat: &str, message: &str, thumb: Thumb) {
        self.breath().await;
        self.tick().await;
        self.push(&self.tenant.thumb(user, chat, message, thumb, false)).await;
    }

    /// Somebody takes their thumb away.
    pub async fn unthumb(&self, user: &str, chat: &str, message: &str, thumb: Thumb) {
        self.breath().await;
        self.tick().await;
        self.push(&self.tenant.thumb(user, chat, message, thumb, true)).await;
    }

    /// Comes back when all that was sent before has been triaged, and tasks among it begun: a passer-by's task, asked for now in a place of its
    /// own, has been answered. Tasks may still run; `support::quiet::quiet` waits for their ends.
    pub async fn caught_up(&self) {
        let before = self.passed().await;
        self.model.script("路过", Script::new().text("走好"));
        let (status, body) = self
            .api
            .post(
                "/api/v1/messages",
                &json!({ "chat_id": "passage", "user_id": "passer", "text": "路过" }),
            )
            .await;
        assert_eq!(status, 202, "{body}");
        eventually("the passer-by's answer", || async { (self.passed().await > before).then_some(()) }).await;
    }

    async fn passed(&self) -> usize {
        let said = self.api.get("/api/v1/messages?chat=passage").await;
        said["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["kind"] == "answer")
            .count()
    }

    /// Turns of a chat, oldest first.
    pub async fn turns_in(&self, chat: &str) -> Vec<Value> {
        let mut turns = self.api.turns().await;
        turns.retain(|turn| turn["chat_id"] == chat);
        turns
    }

    /// The review of a card, whatever became of it.
    pub async fn review_of(&self, card: &Posted) -> Value {
        let value = card.button("approve").unwrap();
        self.api
            .get(&format!("/api/v1/reviews/{}", value["review_id"].as_str().unwrap()))
            .await
    }

    /// Waits for the plan card that takes the place of `old`.
    pub async fn card_after(&self, chat: &str, old: &Posted) -> Posted {
        let path = format!("/api/v1/reviews?chat={chat}");
        let id = eventually("the next plan card", || async {
            let list = self.api.get(&path).await;
            let ids = list["items"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|review| review["message_id"].as_str());
            ids.map(str::to_owned).find(|id| *id != old.id)
        })
        .await;
        self.seen("the plan card", |seen| {
            seen.messages.iter().find(|message| message.id == id).cloned()
        })
        .await
    }

    /// Waits for a card titled `title` that waits for a person in `chat`, delivered and known as such: an answer said now
    /// comes after it.
    pub async fn card_titled(&self, chat: &str, title: &str) -> Posted {
        let card = self
            .seen(title, |seen| {
                seen.in_chat(chat)
                    .rfind(|message| message.title() == Some(title) && message.words().contains("分钟内有效"))
                    .cloned()
            })
            .await;
        // The API tells when the gateway has written down that the card is there: then its time to live is one TTL.
        eventually("the card is known to be there", || async {
            let turns = self.turns_in(chat).await;
            let gate = turns.iter().rev().map(|turn| &turn["gate"]).find(|gate| !gate.is_null())?;
            let span = moment(&gate["expires_at"]) - moment(&gate["opened_at"]);
            (span < 100 * 60_000).then_some(())
        })
        .await;
        card
    }

    /// Waits until `card` shows `words`.
    pub async fn repainted(&self, card: &Posted, words: &str) -> Posted {
        self.seen(&format!("{words:?} on the card"), |seen| {
            seen.messages
                .iter()
                .find(|message| message.id == card.id && message.words().contains(words))
                .cloned()
        })
        .await
    }

    /// How many cards titled `title` were posted in `chat`.
    pub fn titled(&self, chat: &str, title: &str) -> usize {
        self.chat
            .snapshot()
            .in_chat(chat)
            .filter(|message| message.title() == Some(title))
            .count()
    }

    /// How many messages the bot posted in `chat`.
    pub fn posts(&self, chat: &str) -> usize {
        self.chat.snapshot().in_chat(chat).count()
    }

    /// Requests to the model whose last message is a person's word on the plan: how often the model was told to go on.
    pub fn continuations(&self) -> usize {
        self.model
            .seen()
            .iter()
            .filter(|seen| seen.chat["messages"].as_array().unwrap().last().is_some_and(is_block))
            .count()
    }
}

/// The approve buttons of an approval card, a row each.
pub fn rows(card: &Posted) -> Vec<Value> {
    let approves = |value: &Value| value["action"] == "approve" && value["action_id"].is_string();
    card.buttons().into_iter().filter(approves).collect()
}

/// Is the message a `<plan_feedback>` block?
pub fn is_block(message: &Value) -> bool {
    message["role"] == "user"
        && message["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("<plan_feedback>\n"))
}

/// Milliseconds since 1970 of an RFC 3339 time of ours.
pub fn moment(time: &Value) -> i64 {
    let text = time.as_str().unwrap();
    let part = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (part(0..4), part(5..7), part(8..10));
    // Days since 1970, with years that begin in March, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + part(11..13)) * 60 + part(14..16)) * 60_000 + part(17..19) * 1000 + part(20..23)
}

/// `words` in a sentence: a few words to a plan get a hint before they count as changes.
pub fn in_full(words: &str) -> String {
    format!("请先看清楚我的这句话再答复：{words}")
}
