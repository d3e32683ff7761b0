//! How a card changes: its state, and its calls as their rows stand.

use super::{Action, ActionView, CardCopy, CardState, Gate, GateId, Outbound};

/// Lines of a tool's output that a settled approval card shows; the API has all of it.
const SHOWN_OUTPUT_LINES: usize = 10;
/// Bytes of a preview on a card; the console and the API have all of it.
const CARD_PREVIEW: usize = 4 * 1024;

impl Outbound {
    /// This card in another state; rows of an approval card stand as `rows` do now, with the first lines of
    /// what they put out. What has no state stays as it is.
    #[must_use]
    pub fn painted(&self, new: CardState, rows: &[Action]) -> Self {
        let mut card = self.clone();
        if let Some(head) = card.head_mut() {
            head.state = new;
        }
        if let Self::ApprovalCard(approval) = &mut card {
            for view in &mut approval.actions {
                let Some(row) = rows.iter().find(|row| row.id == view.id) else {
                    continue;
                };
                view.status = row.status;
                view.standing = row.decision.as_ref().and_then(|decision| decision.standing.clone());
                if row.edited.is_some() {
                    view.show_edit(row);
                }
                view.output = row.result.as_ref().map(|result| first_lines(&result.text));
            }
        }
        card
    }

    /// This card of `gate` as `person` has it in the direct chat with the bot. `None` means that such a card has no copies.
    #[must_use]
    pub fn copy_for(&self, person: &str, gate: &Gate) -> Option<Self> {
        let mut card = self.clone();
        match &mut card {
            Self::PlanCard(_) => (),
            // What is allowed "here" would be allowed in the chat that the card is a copy from.
            Self::ApprovalCard(approval) => approval.actions.iter_mut().for_each(|row| row.always = None),
            _ => return None,
        }
        let head = card.head_mut()?;
        head.copy = Some(Box::new(CardCopy {
            person: person.to_owned(),
            chat: head.in_group().then(|| gate.conversation.chat.clone()),
            since: gate.delivered_at.unwrap_or(gate.opened_at),
            until: Some(gate.expires_at),
        }));
        head.group = Some(false);
        Some(card)
    }

    /// The gate whose card this is a copy of, and the person who has it.
    #[must_use]
    pub fn copied(&self) -> Option<(&GateId, &str)> {
        let copy = self.head()?.copy.as_ref()?;
        let gate = match self {
            Self::PlanCard(plan) => plan.review_id.as_ref()?,
            Self::ApprovalCard(approval) => &approval.gate_id,
            _ => return None,
        };
        Some((gate, &copy.person))
    }
}

impl ActionView {
    /// Shows the call with the arguments of the person who edited it. They take no more room than those that the card was made for.
    fn show_edit(&mut self, row: &Action) {
        const LEAST: usize = 400;
        let room = self.arguments.chars().count().max(LEAST);
        let whole = serde_json::to_string_pretty(&row.arguments).unwrap_or_default();
        self.arguments = whole.chars().take(room).collect();
        self.hidden = u64::try_from(whole.chars().count().saturating_sub(room)).unwrap_or(u64::MAX);
        self.justification.clone_from(&row.justification);
        self.preview = row.preview.as_deref().map(preview_for_card);
        self.edited = true;
    }
}

/// As much of a call's preview as a card shows.
pub(crate) fn preview_for_card(text: &str) -> String {
    first_whole_lines(text, CARD_PREVIEW)
}

/// At most `most` bytes, whole lines where there are any, and what is missing is told.
pub(crate) fn first_whole_lines(text: &str, most: usize) -> String {
    let text = text.trim_end();
    if text.len() <= most {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(most)];
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    format!("{head}\n[cut: {} more bytes]", text.len() - head.len())
}

fn first_lines(text: &str) -> String {
    let mut lines = text.lines();
    let mut shown: Vec<&str> = lines.by_ref().take(SHOWN_OUTPUT_LINES).collect();
    if lines.next().is_some() {
        shown.push("…");
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{CARD_PREVIEW, preview_for_card};

    /// S4-12: a long preview keeps its first whole lines and says how much is missing; one endless line is cut inside.
    #[test]
    fn long_previews_are_cut_and_say_so() {
        assert_eq!(preview_for_card("+a\n+b\n"), "+a\n+b");
        let lines = "+一行很长的文字\n".repeat(1000);
        let shown = preview_for_card(&lines);
        let (kept, told) = shown.rsplit_once('\n').unwrap();
        assert!(shown.len() < CARD_PREVIEW + 40 && kept.ends_with("文字"), "{shown}");
        assert_eq!(told, format!("[cut: {} more bytes]", lines.trim_end().len() - kept.len()));
        let endless = preview_for_card(&"字".repeat(10_000));
        assert!(endless.starts_with("字字") && endless.ends_with(" more bytes]") && endless.len() < CARD_PREVIEW + 40);
    }
}
