//! Pages of lists, with a cursor that stays right while rows are added.

use std::fmt;
use std::str::FromStr;

use countersign_agent::domain::Millis;

use super::Result;
use super::arg::args;
use super::sql::Row;
use super::transaction::Read;
use crate::store::keys;

/// Filters and page of a list; `None` = any.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Status name as in the API.
    pub status: Option<String>,
    /// Chat id.
    pub chat: Option<String>,
    /// Requester.
    pub user: Option<String>,
    /// Turn id.
    pub turn: Option<String>,
    /// Id of the event that asked for it; of turns alone.
    pub event: Option<String>,
    /// 1 to 200.
    pub limit: i64,
    /// Where the last page ended.
    pub cursor: Option<Cursor>,
}

/// A page, in the order of its list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Cursor of the next page.
    pub next: Option<Cursor>,
}

/// Where a page ended: the next one begins behind it. Spelled as hex, opaque to those who carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) at: i64,
    pub(super) id: String,
}

/// The text is no cursor that we gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of ours")]
pub struct InvalidCursor;

impl Cursor {
    pub(super) fn new(at: Millis, id: &str) -> Self {
        Self {
            at: at.0,
            id: id.to_owned(),
        }
    }

    /// The cursor of a query; without one, a place before the newest row.
    fn of(query: &ListQuery) -> Self {
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
    type Err = InvalidCursor;

    fn from_str(text: &str) -> std::result::Result<Self, InvalidCursor> {
        let bytes = hex::decode(text).map_err(|_| InvalidCursor)?;
        let (at, id) = bytes.split_first_chunk::<8>().ok_or(InvalidCursor)?;
        Ok(Self {
            at: i64::from_be_bytes(*at),
            id: String::from_utf8(id.to_vec()).map_err(|_| InvalidCursor)?,
        })
    }
}

/// A list of the API: which rows it is made of, and the columns that it is filtered and ordered by.
pub(super) struct List {
    /// `SELECT … FROM …`
    pub(super) select: &'static str,
    /// A condition that all rows of the list meet.
    pub(super) only: Option<&'static str>,
    pub(super) status: &'static str,
    pub(super) chat: &'static str,
    pub(super) user: &'static str,
    pub(super) turn: &'static str,
    /// `None`: no event asked for such rows, and none is looked for.
    pub(super) event: Option<&'static str>,
    /// When a row was made.
    pub(super) at: &'static str,
    pub(super) id: &'static str,
}

impl List {
    /// The rows that match the query, newest first, and one more than its limit: so [`page`] knows whether there is another page.
    pub(super) async fn rows(&self, read: &mut Read, query: &ListQuery) -> Result<Vec<Row>> {
        let Self {
            select,
            only,
            status,
            chat,
            user,
            turn,
            event,
            at,
            id,
        } = self;
        let only = only.map(|condition| format!("{condition} AND ")).unwrap_or_default();
        // Only where one is asked for: so its index is used.
        let asked = event.zip(query.event.as_deref());
        let by_event = asked.map(|(column, _)| format!("AND {column} = $8")).unwrap_or_default();
        let text = format!(
            "{select} WHERE {only}(CAST($1 AS TEXT) IS NULL OR {status} = $1) AND (CAST($2 AS TEXT) IS NULL OR {chat} = $2)
               AND (CAST($3 AS TEXT) IS NULL OR {user} = $3) AND (CAST($4 AS TEXT) IS NULL OR {turn} = $4)
               AND ({at} < $5 OR ({at} = $5 AND {id} < $6)) {by_event}
             ORDER BY {at} DESC, {id} DESC LIMIT $7"
        );
        let after = Cursor::of(query);
        let filter = |filter: Option<&str>| filter.map(|text| keys::without_nul(text).into_owned());
        let mut args = args![
            filter(query.status.as_deref()),
            filter(query.chat.as_deref()),
            filter(query.user.as_deref()),
            filter(query.turn.as_deref()),
            after.at,
            after.id,
            query.limit + 1,
        ];
        if let Some((_, event)) = asked {
            args.extend(args![filter(Some(event))]);
        }
        read.all(text, args).await
    }
}

/// A page out of rows of which one more than `limit` was asked for.
pub(super) fn page<T>(rows: &[Row], limit: i64, read: impl Fn(&Row) -> Result<T>, place: impl Fn(&T) -> Cursor) -> Result<Page<T>> {
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
            assert_eq!(wrong.parse::<Cursor>(), Err(InvalidCursor), "{wrong}");
        }
    }
}
