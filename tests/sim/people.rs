//! What people say and press, and the platform that carries it: late, twice, in any order.

use std::collections::HashMap;

use countersign_agent::domain::{ActionId, Click, ClickTarget, ClickVerb, GateId, GateKind, Inbound, InboundBody, Millis};

use super::cards::TTL;
use super::chat::{Card, Chat};
use super::dice::Dice;
use super::words::{BOT, Words, happens, says};

/// The first two ask; all may try to decide.
pub const PEOPLE: [&str; 3] = ["u1", "u2", "u3"];

const CONSENT: [&str; 4] = ["OK", "好的", "yes!", "👍"];
const REFUSAL: [&str; 3] = ["取消", "no", "不行"];

/// What an event would be taken for if it were evidence.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub by: String,
    /// It is a word or a button of consent.
    pub consents: bool,
    /// It is the button that asks for the plan of an expired review again.
    pub asks_again: bool,
    /// Ids of the steps to keep, from the button that leaves the others out.
    pub keeps: Option<Vec<String>>,
    /// What was pressed.
    pub target: Option<ClickTarget>,
    /// On the card of which gate.
    pub pressed: Option<GateId>,
    /// What the words reply to.
    pub replies_to: Vec<String>,
    /// When, by the platform's clock.
    pub at: Millis,
}

/// The people of a life and what they have sent off.
#[derive(Debug, Default)]
pub struct People {
    said: usize,
    /// On its way to us.
    pub network: Vec<Inbound>,
    /// Every event that was ever sent off, by key.
    pub evidence: HashMap<String, Evidence>,
    /// Requests, by message id: who.
    requests: Vec<(String, String)>,
}

impl People {
    /// Somebody does something. `tasks`: how many more may be asked for.
    pub fn act(&mut self, dice: &mut Dice, chat: &Chat, now: Millis, tasks: &mut usize) {
        let cards = chat.cards();
        let cards_weight = if cards.is_empty() { 0 } else { 40 };
        let asked = if self.requests.is_empty() { 0 } else { 1 };
        let ask = if *tasks > 0 { 3 + 20 * (1 - asked) } else { 0 };
        // While there is nothing to answer, most people wait.
        let idle = if cards.is_empty() { 30 * asked } else { 0 };
        let answers = [cards_weight, cards_weight / 2, 4 * asked];
        let others = [asked, asked, asked, 2 * asked, asked, 2 * asked, idle, 2 * asked];
        let weights: Vec<usize> = [&[ask][..], &answers, &others].concat();
        let who = PEOPLE[dice.weighted(&[6, 3, 1])];
        match dice.weighted(&weights) {
            0 => {
                *tasks -= 1;
                let who = PEOPLE[dice.below(2)];
                let (id, words) = self.words(who, &format!("do it this way {}", self.said));
                self.requests.push((id, who.to_owned()));
                self.send(dice, words, now);
            }
            1 => {
                // Mostly the newest card, by its requester.
                let newest = dice.weighted(&[6, 2, 1]).min(cards.len() - 1);
                let card = &cards[cards.len() - 1 - newest];
                let who = if dice.percent(85) { card.requester.clone() } else { who.to_owned() };
                self.press(dice, &who, card, now);
            }
            2 => {
                let card = dice.pick(&cards).clone();
                let who = if dice.percent(85) { card.requester.clone() } else { who.to_owned() };
                let text = decision_words(dice, self.said);
                let (_, words) = self.words(&who, &text);
                let words = words.plain().reply(&[&card.message]);
                self.send(dice, words, now);
            }
            3 => {
                let text = decision_words(dice, self.said);
                let (_, words) = self.words(who, &text);
                let words = if dice.percent(30) { words.plain() } else { words };
                self.send(dice, words, now);
            }
            4 => {
                let (_, words) = self.words(who, "/stop");
                self.send(dice, words, now);
            }
            5 if *tasks > 0 => {
                *tasks -= 1;
                let (id, words) = self.words(who, &format!("/new other {}", self.said));
                self.requests.push((id, who.to_owned()));
                self.send(dice, words, now);
            }
            5 | 6 => {
                let (_, words) = self.words(who, "/status");
                self.send(dice, words, now);
            }
            7 => {
                // More words while the task runs: queued, handed over or in its place, as the settings say.
                let (id, words) = self.words(who, &format!("also this as well {}", self.said));
                if *tasks > 0 {
                    *tasks -= 1;
                    self.requests.push((id, who.to_owned()));
                    self.send(dice, words, now);
                }
            }
            8 => {
                let (message_id, who) = dice.pick(&self.requests).clone();
                self.said += 1;
                let body = if dice.percent(50) {
                    InboundBody::Recalled { message_id }
                } else {
                    InboundBody::Edited { message_id, new: None }
                };
                let words = happens(&format!("h{}", self.said), &who, body);
                self.send(dice, words, now);
            }
            10 => {}
            11 => self.agree(dice, who, chat, now),
            _ => {
                // A reply to any post of ours.
                let posts: Vec<String> = chat.posts().map(|posted| posted.id.clone()).collect();
                if let Some(post) = posts.get(dice.below(posts.len())) {
                    let (_, words) = self.words(who, &format!("mind this as well {}", self.said));
                    self.send(dice, words.plain().reply(&[post]), now);
                }
            }
        }
    }

    /// Another word for a task that is under way, on its way in already: in reply to a post of ours, or to us by name.
    pub fn interject(&mut self, dice: &mut Dice, chat: &Chat, now: Millis) -> Option<Inbound> {
        let who = PEOPLE[dice.weighted(&[6, 3])];
        let newest: Vec<String> = chat.posts().rev().take(3).map(|posted| posted.id.clone()).collect();
        let (_, words) = self.words(who, &format!("mind this as well {}", self.said));
        let words = match newest.as_slice() {
            [] => words,
            posts => words.plain().reply(&[dice.pick(posts).as_str()]),
        };
        self.send(dice, words, now);
        self.network.pop()
    }

    fn words(&mut self, who: &str, text: &str) -> (String, Words) {
        self.said += 1;
        let id = format!("m{}", self.said);
        let words = says(&id, who, text);
        (format!("om_{id}"), words)
    }

    fn press(&mut self, dice: &mut Dice, who: &str, card: &Card, now: Millis) {
        let verbs = match card.kind {
            GateKind::PlanReview => [ClickVerb::Approve, ClickVerb::Revise, ClickVerb::Cancel],
            GateKind::ToolApproval => [ClickVerb::Approve, ClickVerb::Reject, ClickVerb::Reject],
            GateKind::Question => [ClickVerb::Revise, ClickVerb::Revise, ClickVerb::Cancel],
            GateKind::Budget => [ClickVerb::Approve, ClickVerb::Approve, ClickVerb::Cancel],
        };
        let mut verb = verbs[dice.weighted(&[10, 2, 1])];
        // Only the card of an expired review has this button; whoever sends it for another one is told so.
        let old = now.since(card.at) > TTL;
        if card.kind == GateKind::PlanReview && dice.percent(if old { 60 } else { 5 }) {
            verb = ClickVerb::AskAgain;
        }
        let mut kept = Vec::new();
        if card.kind == GateKind::PlanReview && dice.percent(10) {
            verb = ClickVerb::KeepSteps;
            kept = card.steps.clone();
            kept.retain(|_| dice.percent(60));
        }
        let rows: &[ActionId] = &card.rows;
        let target = if !rows.is_empty() && dice.percent(60) {
            ClickTarget::Action(dice.pick(rows).clone())
        } else {
            ClickTarget::Gate(card.gate.clone())
        };
        self.said += 1;
        let told = dice.percent(80);
        let click = Click {
            verb,
            target: Some(target),
            feedback: (verb == ClickVerb::Revise).then(|| format!("rather so {}", self.said)),
            kept,
            card: told.then(|| card.message.clone()),
        };
        let words = happens(&format!("k{}", self.said), who, InboundBody::Click(click));
        let key = self.send(dice, words, now);
        if let Some(evidence) = self.evidence.get_mut(&key) {
            evidence.pressed = Some(card.gate.clone());
        }
    }

    /// A yes to something else that was said in the chat: a post of ours, a request, or words among people.
    fn agree(&mut self, dice: &mut Dice, who: &str, chat: &Chat, now: Millis) {
        let posts: Vec<String> = chat.posts().map(|posted| posted.id.clone()).collect();
        let to = match dice.below(3) {
            0 if !posts.is_empty() => dice.pick(&posts).clone(),
            1 if !self.requests.is_empty() => dice.pick(&self.requests).0.clone(),
            _ => String::from("om_talk"),
        };
        let word = *dice.pick::<&str>(&CONSENT);
        let (_, words) = self.words(who, word);
        let words = if dice.percent(70) { words.plain() } else { words };
        self.send(dice, words.reply(&[&to]), now);
    }

    /// Is it a message that asked for a task?
    pub fn is_request(&self, message: &str) -> bool {
        self.requests.iter().any(|(id, _)| id == message)
    }

    /// Gives the key of the event.
    fn send(&mut self, dice: &mut Dice, words: Words, now: Millis) -> String {
        let inbound = words.at(now).inbound;
        let consents = match &inbound.body {
            InboundBody::Message(message) => CONSENT.contains(&message.addressed(BOT).text.as_str()),
            InboundBody::Click(click) => click.verb == ClickVerb::Approve,
            InboundBody::Again { .. }
            | InboundBody::TryAgain { .. }
            | InboundBody::Recalled { .. }
            | InboundBody::Edited { .. }
            | InboundBody::Reaction(_)
            | InboundBody::Joined
            | InboundBody::Left => false,
        };
        let (target, replies_to) = match &inbound.body {
            InboundBody::Message(message) => (None, message.replies_to.clone()),
            InboundBody::Click(click) => (click.target.clone(), Vec::new()),
            InboundBody::Again { .. }
            | InboundBody::TryAgain { .. }
            | InboundBody::Recalled { .. }
            | InboundBody::Edited { .. }
            | InboundBody::Reaction(_)
            | InboundBody::Joined
            | InboundBody::Left => (None, Vec::new()),
        };
        let evidence = Evidence {
            by: inbound.sender.clone(),
            consents,
            keeps: match &inbound.body {
                InboundBody::Click(click) if click.verb == ClickVerb::KeepSteps => Some(click.kept.clone()),
                _ => None,
            },
            asks_again: matches!(&inbound.body, InboundBody::Click(click) if click.verb == ClickVerb::AskAgain),
            target,
            pressed: None,
            replies_to,
            at: inbound.at,
        };
        let key = inbound.event_key.clone();
        self.evidence.insert(key.clone(), evidence);
        if dice.percent(12) {
            self.network.push(inbound.clone());
        }
        self.network.push(inbound);
        key
    }
}

/// Words to a card; those that are no listed word are never said twice.
fn decision_words(dice: &mut Dice, number: usize) -> String {
    match dice.weighted(&[8, 1, 2]) {
        0 => (*dice.pick(&CONSENT)).to_owned(),
        1 => (*dice.pick(&REFUSAL)).to_owned(),
        _ => format!("change step {number} please"),
    }
}
