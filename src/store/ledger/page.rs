//! Pages of lists, newest first, with a cursor that stays right while rows are added.

use sqlx::any::AnyRow;

use super::Result;
use crate::domain::Millis;
use crate::store::{ListQuery, Page, StoreError};

/// Where a page ended: the next one has older rows only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) at: i64,
    pub(super) id: String,
}

impl Cursor {
    pub(super) fn new(at: Millis, id: &str) -> Self {
        Self {
            at: at.0,
            id: id.to_owned(),
        }
    }

    /// The cursor of a query; without one, a place before the newest row.
    pub(super) fn of(query: &ListQuery) -> Result<Self> {
        let Some(text) = &query.cursor else {
            return Ok(Self {
                at: i64::MAX,
                id: String::new(),
            });
        };
        let read = || {
            let bytes = hex::decode(text).ok()?;
            let (at, id) = bytes.split_first_chunk::<8>()?;
            Some(Self {
                at: i64::from_be_bytes(*at),
                id: String::from_utf8(id.to_vec()).ok()?,
            })
        };
        read().ok_or_else(|| StoreError::Corrupt("not a cursor of ours".to_owned()))
    }

    /// As callers carry it: opaque to them.
    fn spell(&self) -> String {
        let mut bytes = self.at.to_be_bytes().to_vec();
        bytes.extend_from_slice(self.id.as_bytes());
        hex::encode(bytes)
    }
}

/// A page out of rows of which one more than `limit` was asked for.
pub(super) fn page<T>(rows: &[AnyRow], limit: i64, read: impl Fn(&AnyRow) -> Result<T>, place: impl Fn(&T) -> Cursor) -> Result<Page<T>> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let items: Vec<T> = rows.iter().take(limit).map(read).collect::<Result<_>>()?;
    let next = match items.last() {
        Some(last) if rows.len() > limit => Some(place(last).spell()),
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
        let query = ListQuery {
            cursor: Some(cursor.spell()),
            ..ListQuery::default()
        };
        assert_eq!(Cursor::of(&query).unwrap(), cursor);
        for wrong in ["", "zz", "0011", "00000000000000ffff"] {
            let query = ListQuery {
                cursor: Some(wrong.to_owned()),
                ..ListQuery::default()
            };
            assert!(Cursor::of(&query).is_err(), "{wrong}");
        }
    }
}
