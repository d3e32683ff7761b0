//! Standing grants: calls that a person allowed in a chat from a card ("always here"), until a date.
//!
//! Pure: which call one can be made for at all, and which call one covers. How a call is compared is [`DeclaredCall`]'s.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Arguments, Conversation, DeclaredCall, EffectClass, Millis, Scope, ToolSpec};

/// What a person allowed in a chat until a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingGrant {
    /// `sg_…`.
    pub id: String,
    /// The chat, without a thread.
    pub place: Conversation,
    /// What people of the chat call it. No other grant of the chat ever has the same number.
    pub number: u32,
    /// The tool.
    pub tool: String,
    /// The arguments that say where the call acts. A call has to have exactly these.
    pub arguments: Arguments,
    /// [`ToolSpec::digest`] of the tool as the person saw it.
    pub definition: String,
    /// Who.
    pub by: String,
    /// When.
    pub created_at: Millis,
    /// From then on it does not hold.
    pub expires_at: Millis,
    /// When somebody took it back.
    pub revoked_at: Option<Millis>,
    /// How many calls were sent under it.
    pub used: u32,
}

impl StandingGrant {
    /// The most that hold in one chat at a time.
    pub const MOST: u32 = 200;

    /// Does it hold at this moment?
    #[must_use]
    pub fn holds(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// The call on one line: `write_file {"path":"summary.md"}`. Foreign text.
    #[must_use]
    pub fn told(&self) -> String {
        told(&self.tool, &self.arguments)
    }

    /// How the card tells it.
    #[must_use]
    pub fn made(&self) -> StandingMade {
        StandingMade {
            id: self.id.clone(),
            number: self.number,
            by: self.by.clone(),
            until: self.expires_at,
        }
    }

    /// The call that it allows.
    #[must_use]
    pub fn call(&self) -> DeclaredCall {
        DeclaredCall {
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            times: 1,
        }
    }
}

/// The standing grants of a chat, where the settings let them hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandingGrants {
    /// Those that may cover calls of this turn, oldest first.
    pub grants: Vec<StandingGrant>,
    /// How many days a new one holds.
    pub days: u32,
}

impl StandingGrants {
    /// The grant that covers a call of `spec` now; with `only`, the one of this id if it does. A tool that changed since the grant was made is
    /// another tool.
    #[must_use]
    pub fn covering(&self, now: Millis, spec: &ToolSpec, arguments: &Arguments, only: Option<&str>) -> Option<&StandingGrant> {
        let asked = |grant: &&StandingGrant| only.is_none_or(|id| grant.id == id);
        let fits = |grant: &&StandingGrant| grant.tool == spec.name && grant.holds(now);
        let mut held = self.grants.iter().filter(asked).filter(fits).peekable();
        held.peek()?;
        let definition = spec.digest();
        held.find(|grant| grant.definition == definition && grant.call().covers(spec, arguments))
    }
}

/// What the button of a waiting call offers: to allow this call in the chat from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingOffer {
    /// The call, as far as its arguments say where it acts.
    pub call: DeclaredCall,
    /// [`ToolSpec::digest`] of the tool.
    pub definition: String,
    /// How the tool uses its arguments.
    pub scope: Scope,
    /// How many days it would hold.
    pub days: u32,
}

impl StandingOffer {
    /// The longest [`StandingOffer::told`], in UTF-16 units. Slack's question before a button has 300, our words among them.
    const LONGEST: usize = 140;

    /// The offer for a call of `spec`; `None` where there is none: every call of such a tool asks, the arguments do not say where it acts, one
    /// of them would be read as a pattern, or the question before the button cannot show all of it.
    #[must_use]
    pub fn of(spec: &ToolSpec, arguments: &Arguments, days: u32) -> Option<Self> {
        let call = DeclaredCall::made(spec, arguments);
        let exact = spec.effect == EffectClass::Write && call.wildcards() == 0 && call.gap(spec).is_none() && call.covers(spec, arguments);
        let offer = Self {
            call,
            definition: spec.digest(),
            scope: spec.scope.clone(),
            days,
        };
        let told = offer.told();
        // What looks like markup of a platform is broken up there by one more character.
        let units = told.encode_utf16().count() + told.matches(['<', ']']).count();
        let whole = super::visible(&told) == told && units <= Self::LONGEST;
        (exact && whole).then_some(offer)
    }

    /// The whole call on one line: `write_file {"path":"summary.md"}`. Foreign text.
    #[must_use]
    pub fn told(&self) -> String {
        told(&self.call.tool, &self.call.arguments)
    }
}

fn told(tool: &str, arguments: &Arguments) -> String {
    format!("{tool} {}", Value::Object(arguments.clone()))
}

/// A standing grant that was made with a decision, as its card tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingMade {
    /// `sg_…`.
    pub id: String,
    /// Its number in the chat.
    pub number: u32,
    /// Who made it.
    pub by: String,
    /// Until then it holds.
    pub until: Millis,
}

#[cfg(test)]
mod tests;
