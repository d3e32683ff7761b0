//! Pages of lists, newest first, with a cursor that stays right while rows are added.

use std::fmt;
use std::str::FromStr;

use countersign_agent::domain::Millis;
use sqlx::any::AnyRow;

use super::Result;
use crate::store::{ListQuery, Page};

/// Where a page ended: the next one has older rows only. Spelled as hex, opaque to those who carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) at: i64,
    pub(super) id: String,
}

/// The text is no cursor that we gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of ours")]
pub struct NoCursor;

impl Cursor {
    pub(super) fn new(at: Millis, id: &str) -> Self {
        Self {
            at: at.0,
            id: id.to_owned(),
        }
    }

    /// The cursor of a query; without one, a place before the newest row.
    pub(super) fn of(query: &ListQuery) -> Self {
        query.cursor.clone().unwrap_or(Self {
            at: i64::MAX,
            id: String::new(),
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.at.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.id.as_bytes());
        f.write_str(&hex::encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> std::result::Result<Self, NoCursor> {
        let bytes = hex::decode(text).map_err(|_| NoCursor)?;
        let (at, id) = bytes.split_first_chunk::<8>().ok_or(NoCursor)?;
        Ok(Self {
            at: i64::from_be_bytes(*at),
            id: String::from_utf8(id.to_vec()).map_err(|_| NoCursor)?,
        })
    }
}

/// A page out of rows of which one more than `limit` was asked for.
pub(super) fn page<T>(rows: &[AnyRow], limit: i64, read: impl Fn(&AnyRow) -> Result<T>, place: impl Fn(&T) -> Cursor) -> Result<Page<T>> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let items: Vec<T> = rows.iter().take(limit).map(read).collect::<Result<_>>()?;
    let next = match items.last() {
        Some(last) if rows.len() > limit => Some(place(last)),
        _ => None,
    };
    Ok(Page { items, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: a cursor reads back as it was given; anything else is refused.
    #[test]
    fn cursors_read_back() {
        let cursor = Cursor::new(Millis(1_700_000_000_123), "turn_ä");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for wrong in ["", "zz", "0011", "00000000000000ffff"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(NoCursor), "{wrong}");
        }
    }
}
