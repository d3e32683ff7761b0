//! Who said what to whom: triage of what came in, decisions at gates, commands.
//!
//! [`Conversations::triage`] gives every inbox row its meaning: an answer to a gate becomes a vote and, if it settles, the decision;
//! `/stop` a signal; anything else a task of its sender's lane. Each row is one transaction and needs no lease, so no approval
//! waits behind a running turn. `route` chooses (pure, a table of tests); the rest loads what it chooses from and carries the
//! choice out. Buttons ([`Conversations::click`]) and the API are decided in the request that brings them, by the same code.

mod again;
mod answer;
mod api;
mod away;
mod changes;
mod click;
mod commands;
mod load;
mod mentions;
mod notices;
mod paint;
mod phrases;
mod reactions;
mod rights;
mod route;
mod say;
mod context;
mod groups;
mod home;
mod settle;
mod standing;
mod stop;
mod triage;
mod try_again;
mod verb;

pub use answer::Answered;
pub use api::{ApiDecision, DecideError};
pub use groups::GroupDirectory;
pub use home::{OwnTask, Waiting, WaitingGate};
pub use phrases::Phrase;
pub use settle::GateOutcome;
pub use try_again::{Retry, is_open_to_retry};
pub use verb::{Verb, words_of};

use std::sync::Arc;

use crate::config::Settings;
use crate::store::{Ledger, Read, StoreError};

use countersign_agent::domain::{Clock, Conversation, Notice, Outbound};
use groups::Groups;
use mentions::Mentions;
use rights::Rights;
use tokio::sync::Semaphore;

/// Lists of what waits for a person that are read at once. Presses and pages need the other readers of the ledger.
const LISTS_READ_AT_ONCE: usize = 2;

/// Gives meaning to what came in and settles gates. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Conversations {
    ledger: Ledger,
    settings: Settings,
    clock: Clock,
    groups: Groups,
    /// Places for lists of what waits for a person that are read at this moment.
    home_readers: Arc<Semaphore>,
    mentions: Arc<Mentions>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClickAnswer {
    /// For the one who clicked.
    pub notice: Notice,
    /// What the card shows now, if it changed.
    pub card: Option<Outbound>,
}

impl ClickAnswer {
    fn notice(notice: Notice) -> Self {
        Self { notice, card: None }
    }
}

impl Conversations {
    /// One over `ledger`. Who may decide is read from `settings` at every decision; who belongs to a group that they name, `directory` tells.
    pub fn new(ledger: Ledger, settings: Settings, clock: Clock, directory: Arc<dyn GroupDirectory>) -> Self {
        Self {
            ledger,
            settings,
            groups: Groups::new(directory, clock.clone()),
            clock,
            home_readers: Arc::new(Semaphore::new(LISTS_READ_AT_ONCE)),
            mentions: Arc::default(),
        }
    }

    /// Is `user` heard in this place, by the settings of now?
    pub fn serves(&self, place: &Conversation, user: &str) -> bool {
        let rights = self.rights(place);
        rights.chat(&place.chat) && rights.hears(user).is_given()
    }

    /// Does a person confirm plans in this chat, by the settings of now?
    fn reviews_plans(&self, place: &Conversation) -> bool {
        let policy = self.settings.current().policy(place.channel, &place.chat);
        policy.review_enabled && policy.require_confirmation
    }

    /// The rights of this moment, for `user`: those of people who are away among them, whose deputy the user is.
    async fn rights_of(&self, read: &mut Read, place: &Conversation, user: &str) -> Result<Rights, StoreError> {
        let mut away = read.deputises_for(place, user, self.clock.now()).await?;
        let rights = self.rights(place);
        away.retain(|absence| rights.inside(&absence.teams, &place.tenant));
        Ok(rights.with_absences(away))
    }

    /// The rights of this moment, by what is known of the groups.
    fn rights(&self, place: &Conversation) -> Rights {
        let members = self.groups.known(place.channel);
        Rights::of(place.channel, self.settings.current().in_chat(place.channel, &place.chat), members)
    }
}
