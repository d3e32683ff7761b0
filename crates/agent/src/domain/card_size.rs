//! What one card holds whole, on every platform: tool calls, or a plan.
//!
//! People decide only on what they see: the agent puts no more rows on a card than this and takes no longer plan, and the
//! channels draw rows and steps whole, whatever else must go. The measure is the larger of what the platforms count (bytes of JSON
//! on Lark, UTF-16 units on Slack).
//!
//! The steps' ids are in the digest and on no card: they are handles of the planner and of the gateway.

use serde_json::Value;

use super::{ActionView, Grant, Outbound, StepView, json_in_code};

/// Rows of one card.
const ROWS: usize = 12;
/// Room for all rows of a card.
const ROOM: usize = 24_500;
/// Room for a plan: its card has a form, and the goal a second time.
const PLAN_ROOM: usize = 22_000;
/// What a step costs besides its foreign text: number, mark, the words between its parts.
const STEP: usize = 64;
/// What a tool's name costs besides its letters, wherever it stands.
const TOOL: usize = 6;
/// What a declared call costs besides its foreign text: a line of its own, what it does, how often.
const CALL: usize = 96;
/// What an argument of it costs besides its name and value.
const ARGUMENT: usize = 24;
/// What a row costs besides its foreign text: labels, buttons, their questions.
const ROW: usize = 1_500;
/// What the button "always here" costs with its question, besides the call in it.
const ALWAYS: usize = 900;
/// People whom a row names at most, bytes of an id that are shown, and what a mention costs besides the id.
const NAMED: usize = 10;
const ID: usize = 128;
const PERSON: usize = 150;
/// What a character costs, by UTF-16 units.
const UNIT: usize = 3;
/// What a character costs beyond that when it is broken up, so that it forms no tag.
const BROKEN: usize = 2;
/// Characters of the line above the arguments that count. It says in short what the arguments say whole, and may be cut to this.
const LINE: usize = 60;
/// What one of them costs at most, as an entity.
const ENTITY: usize = 6;

impl ActionView {
    /// What this row takes of a card's room, whole.
    fn bulk(&self) -> usize {
        self.frame() + self.arguments.chars().map(cost).sum::<usize>()
    }

    fn frame(&self) -> usize {
        let line = self.justification.chars().take(LINE).count() * ENTITY;
        ROW + line + self.tool.chars().map(cost).sum::<usize>() + self.people() + self.offer()
    }

    fn offer(&self) -> usize {
        let offer = self.always.as_ref();
        offer.map_or(0, |offer| ALWAYS + offer.told().chars().map(cost).sum::<usize>())
    }

    /// What the names of those take whom this row asks for itself.
    fn people(&self) -> usize {
        // The requester is not known here. The words of the card leave room for one name.
        let people = self.approvers.as_ref().map(|own| own.deciders("").people);
        let named = people.iter().flatten().filter(|id| !id.is_empty()).take(NAMED);
        named.map(|id| PERSON + UNIT * id.len().min(ID)).sum()
    }

    /// This row as a card of its own holds it: arguments that are too long even for that are cut, and say how much is missing. What nobody sees
    /// whole is not allowed for longer than once.
    fn alone(mut self) -> Self {
        self.always = None;
        let mut left = ROOM.saturating_sub(self.frame());
        let fits = |(_, c): &(usize, char)| {
            let fits = cost(*c) <= left;
            left = left.saturating_sub(cost(*c));
            fits
        };
        let end = self
            .arguments
            .char_indices()
            .take_while(fits)
            .last()
            .map_or(0, |(at, c)| at + c.len_utf8());
        self.hidden += u64::try_from(self.arguments[end..].chars().count()).unwrap_or(u64::MAX);
        self.arguments.truncate(end);
        self
    }
}

/// The first of `rows`, as many as one card holds whole; one at least. A row that no card holds whole stands alone on its card,
/// cut and marked ([`ActionView::hidden`]).
#[must_use]
pub fn on_one_card(rows: Vec<ActionView>) -> Vec<ActionView> {
    let mut left = ROOM;
    let mut card: Vec<ActionView> = Vec::new();
    for row in rows.into_iter().take(ROWS) {
        let bulk = row.bulk();
        if bulk > left {
            if card.is_empty() {
                card.push(row.alone());
            }
            break;
        }
        left -= bulk;
        card.push(row);
    }
    card
}

/// Does a card hold a plan of this goal, these steps and the calls that an approval covers whole?
///
/// # Errors
/// It does not: how much of a card's room the plan takes, in percent.
pub fn plan_fits(goal: &str, steps: &[StepView], grants: &[Grant]) -> Result<(), usize> {
    let bulk = words(goal) + steps.iter().map(StepView::bulk).sum::<usize>() + grants.iter().map(Grant::bulk).sum::<usize>();
    if bulk <= PLAN_ROOM {
        Ok(())
    } else {
        Err((bulk * 100).div_ceil(PLAN_ROOM))
    }
}

impl Outbound {
    /// It shows a plan that no card shows whole.
    #[must_use]
    pub fn overflows(&self) -> bool {
        match self {
            Self::PlanCard(card) => plan_fits(&card.goal, &card.steps, &card.grants).is_err(),
            Self::Progress(view) => plan_fits(&view.goal, &view.steps, &[]).is_err(),
            _ => false,
        }
    }
}

impl StepView {
    fn bulk(&self) -> usize {
        // A tool's name stands at its step, and in the line that says what runs after the OK.
        let tools = self.tools.iter().map(|tool| 2 * (TOOL + words(tool))).sum::<usize>();
        STEP + words(&self.content) + self.intent.as_deref().map_or(0, words) + tools
    }
}

impl Grant {
    fn bulk(&self) -> usize {
        let argument = |(name, value): (&String, &Value)| ARGUMENT + words(name) + words(&json_in_code(value));
        CALL + words(&self.call.tool) + self.call.arguments.iter().map(argument).sum::<usize>()
    }
}

/// What `text` costs among words of ours, where every mark of a platform's syntax becomes an entity.
fn words(text: &str) -> usize {
    let cost = |c: char| if c.is_ascii_punctuation() { ENTITY } else { UNIT * c.len_utf16() };
    text.chars().map(cost).sum()
}

fn cost(c: char) -> usize {
    UNIT * c.len_utf16() + if "<&`".contains(c) { BROKEN } else { 0 }
}
