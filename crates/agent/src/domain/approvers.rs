//! Who may approve.

use serde::{Deserialize, Serialize};

/// People named on one card or in one message; more are counted.
pub const MOST_NAMED: usize = 10;

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
    /// Those whom all of these allow. Several rules ask for one call.
    All(Vec<Approvers>),
}

impl Approvers {
    /// Is anybody in the chat as good as another?
    #[must_use]
    pub fn is_open_to_all(&self) -> bool {
        match self {
            Self::Anyone | Self::NotRequester => true,
            Self::Requester | Self::Listed(_) => false,
            Self::All(all) => all.iter().all(Self::is_open_to_all),
        }
    }

    /// May `user` approve what `requester` asked for? Members of groups are not known here.
    #[must_use]
    pub fn allow(&self, user: &str, requester: &str) -> bool {
        match self {
            Self::Requester => user == requester,
            Self::Anyone => true,
            Self::NotRequester => user != requester,
            Self::Listed(_) => self.names(user),
            Self::All(all) => all.iter().all(|each| each.allow(user, requester)),
        }
    }

    /// May nobody approve what they asked for themselves, in whosever place?
    #[must_use]
    pub fn bars_requester(&self) -> bool {
        match self {
            Self::NotRequester => true,
            Self::All(all) => all.iter().any(Self::bars_requester),
            Self::Requester | Self::Anyone | Self::Listed(_) => false,
        }
    }

    /// What a card names: of several, those that name people, else those who are not the requester.
    #[must_use]
    pub fn named(&self) -> &Self {
        let Self::All(all) = self else { return self };
        let rank = |each: &&Self| match each {
            Self::Listed(_) => 0,
            Self::NotRequester => 1,
            Self::Requester => 2,
            Self::Anyone | Self::All(_) => 3,
        };
        all.iter().min_by_key(rank).unwrap_or(self)
    }

    /// Is this id of a person or a group in the list?
    #[must_use]
    pub fn names(&self, id: &str) -> bool {
        match self {
            Self::Listed(ids) => ids.iter().any(|listed| listed == id),
            Self::All(all) => all.iter().any(|each| each.names(id)),
            Self::Requester | Self::Anyone | Self::NotRequester => false,
        }
    }
}
