//! The people: each asks for one task after the other in a lane of their own, and deals with what comes of it.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_playground::{Posted, Words};
use serde_json::Value;
use tokio::time::sleep;

use super::courier::{ASKS, file};
use super::dice::Dice;
use super::history::{Verb, What, tasks_in};
use super::street::{Street, all_words, is_given_up, is_last};
use crate::support::people::in_full;
use crate::support::platform::On;

/// Far above what anything takes while faults go on.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks, and before what the platform said no to is pushed again.
const MOMENT: Duration = Duration::from_millis(40);

/// What a person wants of a task; each as often as it stands here.
const KINDS: &[&str] = &[
    "OK by button",
    "OK by button",
    "OK by word",
    "OK by word",
    "revised, then OK",
    "cancelled by button",
    "cancelled by word",
    "another's OK first",
    "question",
    "/stop at the card",
    "OK, then /stop",
];

/// Somebody.
pub struct Person<'a> {
    pub street: &'a Street,
    pub number: usize,
    pub on: On,
    pub user: &'static str,
    pub chat: &'static str,
    pub group: bool,
}

/// One task of one person.
struct Task<'a> {
    person: &'a Person<'a>,
    name: String,
    /// Message id of what was asked.
    request: String,
    /// How many messages of the bot there were before.
    from: usize,
    /// Clicks so far.
    clicks: usize,
}

impl<'a> Person<'a> {
    pub fn new(street: &'a Street, number: usize, on: On) -> Self {
        // Lark's last two have the bot for themselves; the others meet in pairs.
        let group = on == On::Slack || number % 10 < 6;
        Self {
            street,
            number,
            on,
            user: on.user(&format!("s{number}")),
            chat: if group {
                on.chat(&format!("s{}", number / 4))
            } else {
                on.direct(&format!("p{number}"))
            },
            group,
        }
    }

    /// Asks for one task after the other until the faults are over. Returns how many.
    pub async fn lives(&self, seed: u64) -> usize {
        let mut dice = Dice::of(seed, 100 + self.number as u64);
        let mut tasks = 0;
        while tasks == 0 || !self.street.over.load(Ordering::SeqCst) {
            let kind = KINDS[usize::try_from(dice.roll(KINDS.len() as u64)).unwrap()];
            tasks += 1;
            *self.street.kinds.lock().unwrap().entry(kind).or_default() += 1;
            self.carry_out(kind, tasks, &mut dice).await;
            sleep(dice.millis(0..400)).await;
        }
        tasks
    }

    /// Returns `None` when the person waited in vain, or when the gateway gave the task up and said so.
    pub async fn carry_out(&self, kind: &str, number: usize, dice: &mut Dice) -> Option<()> {
        let mut task = Task {
            person: self,
            name: format!("job{}n{number}z", self.number),
            request: String::new(),
            from: self.street.side(self.on).chat.posted(),
            clicks: 0,
        };
        let asks = if kind == "question" { ASKS } else { "写文件" };
        let request = format!("{} {asks}", task.name);
        task.request = task.say(&request, None, Verb::Ask).await?;
        if kind == "question" {
            let card = task.find("the question", |card| card.title() == Some("需要你的回答")).await?;
            task.say("蓝", Some(&card.id), Verb::Answer).await?;
            return task.see_through().await;
        }
        let mut card = task.plan_card(1).await?;
        let mut review = review_of(&card)?;
        match kind {
            "OK by button" => task.press(&card, "approve", Verb::Approve(review)).await?,
            "revised, then OK" => {
                task.say(&in_full("换一个文件名"), Some(&card.id), Verb::Revise(review)).await?;
                card = task.plan_card(2).await?;
                review = review_of(&card)?;
                task.say("OK", Some(&card.id), Verb::Approve(review)).await.map(drop)?;
            }
            "cancelled by button" => task.press(&card, "cancel", Verb::Cancel).await?,
            "cancelled by word" => task.say("取消", Some(&card.id), Verb::Cancel).await.map(drop)?,
            "another's OK first" => {
                let foreign = Verb::Foreign(review.clone());
                task.press(&card, "approve", foreign).await?;
                sleep(dice.millis(0..500)).await;
                task.press(&card, "approve", Verb::Approve(review)).await?;
            }
            "/stop at the card" => task.say("/stop", None, Verb::Stop).await.map(drop)?,
            "OK, then /stop" => {
                task.press(&card, "approve", Verb::Approve(review)).await?;
                sleep(dice.millis(0..300)).await;
                task.say("/stop", None, Verb::Stop).await.map(drop)?;
            }
            _ => task.say("OK", Some(&card.id), Verb::Approve(review)).await.map(drop)?,
        }
        task.see_through().await
    }
}

impl Task<'_> {
    /// Says something in the task's place; the platform pushes it until it is taken. Gives the message's id.
    async fn say(&self, text: &str, reply_to: Option<&str>, verb: Verb) -> Option<String> {
        let Person {
            street,
            on,
            user,
            chat,
            group,
            ..
        } = *self.person;
        // Nobody answers within the millisecond of the bot's post.
        sleep(Duration::from_millis(2)).await;
        let thread = (on == On::Slack && !self.request.is_empty()).then_some(self.request.as_str());
        let event = street.side(on).tenant.message(&Words {
            user,
            chat,
            text,
            group,
            mention: group,
            reply_to,
            thread,
        });
        street.learn(on, &self.name, chat, &event);
        self.note(&event.message_id, verb);
        let until = street.history.now() + PATIENCE;
        while street.history.now() < until {
            match street.push(on, &self.name, &event, &event.message_id).await {
                Some((200, _)) => return Some(event.message_id),
                Some((503, _)) | None => sleep(MOMENT).await,
                Some(_) => return None,
            }
        }
        self.missed(&format!("somebody who takes {text:?}"))
    }

    /// Taps until a toast says that it is decided, or, for somebody else's tap, that it is not. A tap is not pushed again by
    /// the platform: each is a new event.
    async fn press(&mut self, card: &Posted, button: &str, verb: Verb) -> Option<()> {
        let Person {
            street, on, user, chat, ..
        } = *self.person;
        let foreign = matches!(verb, Verb::Foreign(_));
        let user = if foreign { on.user("stranger") } else { user };
        let value = card.button(button)?;
        let until = street.history.now() + PATIENCE;
        while street.history.now() < until {
            self.clicks += 1;
            let click = format!("{}-click{}", self.name, self.clicks);
            let event = street.side(on).tenant.tap(user, chat, &card.id, &value, None);
            street.pushed.lock().unwrap().push((on, event.clone()));
            self.note(&click, verb.clone());
            match street.push(on, &self.name, &event, &click).await {
                Some((200, answer)) => {
                    self.heard(&answer, foreign);
                    return Some(());
                }
                Some((503, _)) | None => sleep(MOMENT).await,
                Some(_) => return None,
            }
        }
        self.missed(&format!("somebody who takes a press of {button}"))
    }

    /// Slack's answer to a click says nothing.
    fn heard(&self, answer: &Value, foreign: bool) {
        let Some(toast) = answer["toast"]["content"].as_str() else { return };
        let decided = ["已确认", "已拒绝", "已取消", "已经处理过了"]
            .iter()
            .any(|done| toast.contains(done));
        if decided == foreign {
            let complaint = format!("{}, foreign: {foreign}, was told: {toast}", self.name);
            self.person.street.history.note("", What::Objection(complaint));
        }
    }

    /// The card of the `version`th plan.
    async fn plan_card(&self, version: usize) -> Option<Posted> {
        let shows = file(&self.name, version);
        self.find(&format!("the card of plan {version}"), |card| {
            review_of(card).is_some() && card.words().contains(&shows)
        })
        .await
    }

    /// Waits for the last word; a call whose outcome was lost is run again by even numbers and left by odd ones. It may be lost
    /// again: each card is a question of its own.
    async fn see_through(&mut self) -> Option<()> {
        let mut settled = HashSet::new();
        loop {
            let seen = self
                .find("the last word", |seen| {
                    is_last(&all_words(seen)) || (asks_of_a_lost_call(seen) && !settled.contains(&seen.uuid))
                })
                .await?;
            if is_last(&all_words(&seen)) {
                return Some(());
            }
            if self.person.number.is_multiple_of(2) {
                self.press(&seen, "approve", Verb::RunAgain(seen.uuid.clone())).await?;
            } else {
                self.press(&seen, "reject", Verb::Leave(seen.uuid.clone())).await?;
            }
            settled.insert(seen.uuid);
        }
    }

    /// Waits for a message of the bot about this task; the last word comes first.
    async fn find(&self, what: &str, found: impl Fn(&Posted) -> bool) -> Option<Posted> {
        let Person { street, on, .. } = *self.person;
        let until = street.history.now() + PATIENCE;
        while street.history.now() < until {
            let mut mine = street.side(on).chat.messages_from(self.from);
            mine.retain(|seen| self.owns(seen));
            mine.sort_by_key(|seen| !is_last(&all_words(seen)));
            let given_up = mine.iter().any(|seen| is_given_up(&all_words(seen)));
            if let Some(seen) = mine.into_iter().find(|seen| found(seen)) {
                return Some(seen);
            }
            if given_up {
                return None;
            }
            sleep(MOMENT).await;
        }
        self.missed(what)
    }

    fn owns(&self, seen: &Posted) -> bool {
        let named = tasks_in(&all_words(seen));
        named.contains(&self.name) || (named.is_empty() && seen.reply_to.as_ref() == Some(&self.request))
    }

    fn note(&self, event: &str, verb: Verb) {
        let what = What::Deliver {
            event: event.to_owned(),
            chat: self.person.chat.to_owned(),
            verb,
        };
        self.person.street.history.note(&self.name, what);
    }

    fn missed<T>(&self, what: &str) -> Option<T> {
        self.person.street.history.note(&self.name, What::Missed(what.to_owned()));
        None
    }
}

fn review_of(card: &Posted) -> Option<String> {
    Some(card.first().button("approve")?["review_id"].as_str()?.to_owned())
}

/// An open card that asks about an action.
fn asks_of_a_lost_call(card: &Posted) -> bool {
    card.button("approve").is_some_and(|value| value["action_id"].is_string())
}
