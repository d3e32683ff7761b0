//! Who may approve.

use serde::{Deserialize, Serialize};

/// Who may approve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approvers {
    /// Only the person whose task it is.
    #[default]
    Requester,
    /// Everybody in the chat.
    Anyone,
    /// Everybody in the chat but the person whose task it is.
    NotRequester,
    /// These user ids, and the members of these groups.
    Listed(Vec<String>),
}

impl Approvers {
    /// May `user` approve what `requester` asked for? Members of groups are not known here.
    #[must_use]
    pub fn allow(&self, user: &str, requester: &str) -> bool {
        match self {
            Self::Requester => user == requester,
            Self::Anyone => true,
            Self::NotRequester => user != requester,
            Self::Listed(_) => self.names(user),
        }
    }

    /// Is this id of a person or a group in the list?
    #[must_use]
    pub fn names(&self, id: &str) -> bool {
        matches!(self, Self::Listed(ids) if ids.iter().any(|listed| listed == id))
    }
}
