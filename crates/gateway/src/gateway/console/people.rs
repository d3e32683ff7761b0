//! The people whom one reader of the page can play, and everybody else who speaks.

use countersign_agent::domain::{Approvers, Locale, console_person};
use countersign_agent::template::Templates;
use serde::Serialize;
use serde_json::json;

use crate::config::ChannelLive;
use crate::gateway::error::ApiError;
use crate::gateway::request::check_id;

/// Played from the start; more stand in the list of approvers.
const CAST: [&str; 3] = ["lin", "zhao", "chen"];
/// More listed approvers than these are not offered.
const MOST: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Person {
    pub(super) id: String,
    pub(super) name: String,
    /// The letter in the circle that stands for a portrait.
    pub(super) initial: String,
    /// Which of six colours.
    pub(super) color: usize,
}

/// The people who can be played, and the one who is played now.
#[derive(Debug)]
pub(super) struct People {
    pub(super) me: Person,
    pub(super) all: Vec<Person>,
}

impl People {
    /// `id` is the person who is played; without it the first of the cast.
    pub(super) fn new(templates: &Templates, locale: Locale, approvers: &Approvers, id: Option<&str>) -> Result<Self, ApiError> {
        let id = id.filter(|id| !id.is_empty()).unwrap_or(CAST[0]);
        check_id("as", id)?;
        let id = &*console_person(id);
        let mut ids: Vec<&str> = CAST.to_vec();
        if let Approvers::Listed(listed) = approvers {
            ids.extend(listed.iter().map(String::as_str).filter(|one| !CAST.contains(one)).take(MOST));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
        Ok(Self {
            me: person(templates, locale, id),
            all: ids.into_iter().map(|id| person(templates, locale, id)).collect(),
        })
    }
}

pub(super) fn person(templates: &Templates, locale: Locale, id: &str) -> Person {
    let name = if CAST.contains(&id) {
        templates.say(locale, &format!("console.persona.{id}"), json!({}))
    } else {
        id.to_owned()
    };
    let sum = id
        .bytes()
        .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    Person {
        id: id.to_owned(),
        initial: name.chars().next().map(|first| first.to_uppercase().collect()).unwrap_or_default(),
        color: CAST.iter().position(|one| *one == id).unwrap_or(3 + sum % 3),
        name,
    }
}

/// The bot; its avatar is the seal.
pub(super) fn bot() -> Person {
    Person {
        id: String::new(),
        name: String::from("Countersign"),
        initial: String::new(),
        color: 0,
    }
}

/// The rule of approval in a sentence.
pub(super) fn policy(templates: &Templates, locale: Locale, live: &ChannelLive) -> String {
    let say = |key: &str, values| templates.say(locale, key, values);
    let mut text = match &live.approvers {
        Approvers::Requester => say("console.policy.requester", json!({})),
        Approvers::Anyone | Approvers::All(_) => say("console.policy.anyone", json!({})),
        Approvers::NotRequester => say("console.policy.not_requester", json!({})),
        Approvers::Listed(ids) => {
            let names: Vec<String> = ids.iter().map(|id| person(templates, locale, id).name).collect();
            say("console.policy.listed", json!({"ids": names.join(", ")}))
        }
    };
    if live.quorum > 1 {
        text.push(' ');
        text.push_str(&say("console.policy.quorum", json!({"quorum": live.quorum})));
    }
    text
}
