//! What we say, as plain text for a terminal or a log: everything that a person decides about, and nothing that is markup.

use std::fmt;

use super::{ActionView, ApprovalCard, Outbound, PlanCard, StepView};
use crate::domain::{StepStatus, visible};

/// In English. Foreign text stands indented below words of ours, without characters that hide or move text.
impl fmt::Display for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlanCard(card) => plan(f, card),
            Self::ApprovalCard(card) => approval(f, card),
            Self::QuestionCard(card) => {
                f.write_str("A question:")?;
                for words in [card.title.as_ref(), Some(&card.question), card.reason.as_ref()]
                    .into_iter()
                    .flatten()
                {
                    foreign(f, words)?;
                }
                Ok(())
            }
            Self::BudgetCard(card) => {
                write!(f, "A limit is reached after {} calls of the model. Go on?", card.steps_used)?;
                foreign(f, &card.summary)?;
                card.open_steps.iter().try_for_each(|step| foreign(f, &format!("open: {step}")))
            }
            Self::Progress(view) => {
                f.write_str("Under way:")?;
                foreign(f, &view.goal)?;
                steps(f, &view.steps)
            }
            Self::Answer(answer) => f.write_str(&visible(&answer.text)),
            Self::Text { text } => f.write_str(&visible(text)),
            Self::Notice(notice) => write!(f, "A notice: {}", notice.key()),
            Self::File(file) => write!(f, "A file: {} ({} bytes)", visible(&file.name), file.bytes),
        }
    }
}

fn plan(f: &mut fmt::Formatter<'_>, card: &PlanCard) -> fmt::Result {
    f.write_str("A plan:")?;
    foreign(f, &card.goal)?;
    steps(f, &card.steps)?;
    if card.grants.is_empty() {
        f.write_str("\nThe OK covers no call.")?;
    } else {
        f.write_str("\nThe OK covers:")?;
        card.grants.iter().try_for_each(|grant| foreign(f, &grant.call.to_string()))?;
    }
    if let Some(note) = &card.note {
        f.write_str("\nThe assistant says:")?;
        foreign(f, note)?;
    }
    Ok(())
}

fn steps(f: &mut fmt::Formatter<'_>, steps: &[StepView]) -> fmt::Result {
    steps.iter().zip(1..).try_for_each(|(step, number)| {
        let mark = if step.status == StepStatus::Pending {
            String::new()
        } else {
            format!(" ({:?})", step.status)
        };
        foreign(f, &format!("{number}. {}{mark}", step.content))
    })
}

fn approval(f: &mut fmt::Formatter<'_>, card: &ApprovalCard) -> fmt::Result {
    f.write_str("Calls that wait for an OK:")?;
    card.actions.iter().try_for_each(|row| call(f, row))?;
    if card.later > 0 {
        write!(f, "\n{} more are asked about later.", card.later)?;
    }
    if let Some(note) = &card.note {
        f.write_str("\nThe assistant says:")?;
        foreign(f, note)?;
    }
    Ok(())
}

fn call(f: &mut fmt::Formatter<'_>, row: &ActionView) -> fmt::Result {
    foreign(f, &format!("{} ({:?}): {}", row.tool, row.effect, row.justification))?;
    foreign(f, &row.arguments)?;
    if row.hidden > 0 {
        write!(f, "\n  ({} characters of the arguments are not shown)", row.hidden)?;
    }
    row.preview.as_ref().map_or(Ok(()), |preview| foreign(f, preview))
}

/// Each line of `text` on one of its own, indented.
fn foreign(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    visible(text).lines().try_for_each(|line| write!(f, "\n  {line}"))
}
