//! What one approval card holds whole, on every platform.
//!
//! Nobody countersigns what they could not see: the agent puts no more rows on a card than this, and the channels draw these rows
//! whole, whatever else must go. The measure is the larger of what the platforms count (bytes of JSON on Lark, UTF-16 units on Slack).

use super::ActionView;

/// Rows of one card.
const ROWS: usize = 12;
/// Room for all rows of a card.
const ROOM: usize = 24_500;
/// What a row costs besides its foreign text: labels, buttons, their questions.
const ROW: usize = 1_500;
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
        ROW + line + self.tool.chars().map(cost).sum::<usize>()
    }

    /// This row as a card of its own holds it: arguments that are too long even for that are cut, and say how much is missing.
    fn alone(mut self) -> Self {
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

fn cost(c: char) -> usize {
    UNIT * c.len_utf16() + if "<&`".contains(c) { BROKEN } else { 0 }
}
