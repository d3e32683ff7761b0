//! The marks on requests.

use serde::{Deserialize, Deserializer, Serialize};

/// How a request stands, as a mark on its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactionMark {
    /// Seen.
    Seen,
    /// Being worked on: a platform that has such a mark shows somebody who types.
    Working,
    /// Done.
    Done,
    /// Did not work out.
    Failed,
}

impl ReactionMark {
    /// Reads the form of earlier versions, too: `{"shows":"reaction","seen":null}`.
    pub(super) fn stored<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Now(ReactionMark),
            Before {
                #[serde(flatten)]
                mark: ReactionMark,
            },
        }
        let stored = Option::<Stored>::deserialize(from)?;
        Ok(stored.map(|(Stored::Now(mark) | Stored::Before { mark })| mark))
    }
}
