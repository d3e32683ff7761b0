//! A person's right to approve, and on what it rests.

/// May a person approve, by the settings of this moment?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// They may, for this reason.
    Given(Basis),
    /// They may not.
    No,
    /// Nobody knows: they may be in these groups, which could not be looked up.
    Unknown(Vec<String>),
}

/// Why a person may approve. Without any of these they are an approver themselves.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Basis {
    /// The group as whose member they may approve, or the person in whose place they do.
    pub group: Option<String>,
    /// The person who is away, and whose right it is.
    pub in_place_of: Option<String>,
    /// The gate was escalated to them; they are none of its approvers. Nobody may approve in their place.
    pub escalated: bool,
}

impl Basis {
    /// How far from an approver's own right it is: of several rights the nearest is used, and all that are needed are as good as the farthest.
    fn distance(&self) -> u8 {
        match self {
            Self { in_place_of: Some(_), .. } => 3,
            Self { escalated: true, .. } => 2,
            Self { group: Some(_), .. } => 1,
            Self { group: None, .. } => 0,
        }
    }
}

impl Right {
    /// They are an approver themselves.
    pub const OWN: Self = Self::Given(Basis {
        group: None,
        in_place_of: None,
        escalated: false,
    });

    /// They may as a member of this group.
    pub fn through(group: &str) -> Self {
        Self::Given(Basis {
            group: Some(group.to_owned()),
            ..Basis::default()
        })
    }

    /// They may because the gate was escalated to them.
    pub fn escalated() -> Self {
        Self::Given(Basis {
            escalated: true,
            ..Basis::default()
        })
    }

    /// Why they may, if it is known that they may.
    pub fn basis(&self) -> Option<&Basis> {
        match self {
            Self::Given(basis) => Some(basis),
            Self::No | Self::Unknown(_) => None,
        }
    }

    /// Is it known that they may?
    pub fn is_given(&self) -> bool {
        self.basis().is_some()
    }

    /// This right of `person`, used by their deputy. It passes on once: what a deputy may is not theirs to pass on. Nor is an escalated
    /// gate: other people were asked by name.
    #[must_use]
    pub fn in_place_of(self, person: &str) -> Self {
        match self {
            Self::Given(Basis {
                group,
                in_place_of: None,
                escalated: false,
            }) => Self::Given(Basis {
                group,
                in_place_of: Some(person.to_owned()),
                escalated: false,
            }),
            Self::Given(_) | Self::No => Self::No,
            Self::Unknown(groups) => Self::Unknown(groups),
        }
    }

    /// The lesser of two rights.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown(groups), Self::Unknown(more)) => Self::Unknown(all_of(groups, more)),
            (Self::Unknown(groups), Self::Given(_)) | (Self::Given(_), Self::Unknown(groups)) => Self::Unknown(groups),
            (Self::Given(one), Self::Given(other)) if other.distance() > one.distance() => Self::Given(other),
            (Self::Given(one), Self::Given(_)) => Self::Given(one),
        }
    }

    /// The better of two rights.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Given(one), Self::Given(other)) if other.distance() < one.distance() => Self::Given(other),
            (Self::Given(given), _) | (Self::No | Self::Unknown(_), Self::Given(given)) => Self::Given(given),
            (Self::Unknown(groups), Self::Unknown(more)) => Self::Unknown(all_of(groups, more)),
            (Self::Unknown(groups), Self::No) | (Self::No, Self::Unknown(groups)) => Self::Unknown(groups),
            (Self::No, Self::No) => Self::No,
        }
    }
}

/// These groups and `more`, each once.
fn all_of(mut groups: Vec<String>, more: Vec<String>) -> Vec<String> {
    for group in more {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}
