//! Who may approve.

use serde::{Deserialize, Serialize};

use super::ChannelKind;

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
    /// May every person in the chat approve?
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

    /// Who may approve what `requester` asked for, where all of these have to allow it.
    #[must_use]
    pub fn deciders<'a>(&'a self, requester: &'a str) -> Deciders<'a> {
        let parts = self.parts();
        let is_one = |part: &Self, id: &str| match part {
            // The members of a group are not known here. So a list with a group does not rule out anybody.
            Self::Listed(ids) => ids.iter().any(|listed| listed == id || ChannelKind::is_group_anywhere(listed)),
            other => other.allow(id, requester),
        };
        let named = parts.iter().copied().flat_map(|part| match part {
            Self::Requester => vec![requester],
            Self::Listed(ids) => ids.iter().map(String::as_str).collect(),
            Self::Anyone | Self::NotRequester | Self::All(_) => Vec::new(),
        });
        let allowed = named.filter(|id| parts.iter().all(|part| is_one(part, id)));
        let is_open = parts.iter().all(|part| part.is_open_to_all());
        let bars_requester = self.bars_requester();
        Deciders {
            others: is_open && bars_requester,
            anyone: is_open && !bars_requester,
            ..Deciders::of(allowed)
        }
    }

    /// Who may approve a call of `requester` that needs `quorum` people: the call's `own`, else `ours`. Own people who are fewer than the
    /// quorum can approve nothing; the configuration is checked for ours.
    #[must_use]
    pub fn deciders_of_call<'a>(own: Option<&'a Self>, quorum: u32, ours: &'a Self, requester: &'a str) -> Deciders<'a> {
        match own {
            Some(own) => own.deciders(requester).for_quorum(quorum),
            None => ours.deciders(requester),
        }
    }

    /// Without those that stand for several.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(all) => all.iter().flat_map(Self::parts).collect(),
            one => vec![one],
        }
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

/// Who may decide something, worked out for one requester.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deciders<'a> {
    /// Ids of people and groups, each once. The requester may be one of them.
    pub people: Vec<&'a str>,
    /// Everybody but the requester.
    pub others: bool,
    /// Everybody.
    pub anyone: bool,
}

impl<'a> Deciders<'a> {
    /// These people.
    fn of(ids: impl Iterator<Item = &'a str>) -> Self {
        let mut people = Vec::new();
        for id in ids {
            if !people.contains(&id) {
                people.push(id);
            }
        }
        Self { people, ..Self::default() }
    }

    /// Those who may decide one of the two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            others: self.others || other.others,
            anyone: self.anyone || other.anyone,
            ..Self::of(self.people.into_iter().chain(other.people))
        }
    }

    /// Is there nobody at all?
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.people.is_empty() && !self.others && !self.anyone
    }

    /// How many different people these are at most. `None` where that is not known: everybody, or the members of a group.
    #[must_use]
    pub fn most(&self) -> Option<usize> {
        let open = self.others || self.anyone || self.people.iter().any(|id| ChannelKind::is_group_anywhere(id));
        (!open).then_some(self.people.len())
    }

    /// These people if there are enough of them for the quorum, else nobody.
    #[must_use]
    pub fn for_quorum(self, quorum: u32) -> Self {
        let needed = usize::try_from(quorum.max(1)).unwrap_or(usize::MAX);
        match self.most() {
            Some(most) if most < needed => Self::default(),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(ids: &[&str]) -> Approvers {
        Approvers::Listed(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    fn all(parts: &[Approvers]) -> Approvers {
        Approvers::All(parts.to_vec())
    }

    /// `alice` asked: the people as words, then `others` and `anyone`.
    fn deciders(approvers: &Approvers) -> String {
        let Deciders { people, others, anyone } = approvers.deciders("alice");
        let mut words = people;
        words.extend(others.then_some("others"));
        words.extend(anyone.then_some("anyone"));
        words.join(" ")
    }

    /// outside A 4: under several rules only those count whom each of them allows; where there is nobody, it is said.
    #[test]
    fn who_may_decide_is_worked_out() {
        use Approvers::{Anyone, NotRequester, Requester};
        for (approvers, expected) in [
            (Requester, "alice"),
            (Anyone, "anyone"),
            (NotRequester, "others"),
            (listed(&["boss", "vice", "boss"]), "boss vice"),
            (listed(&["boss", "od-ops"]), "boss od-ops"),
            (all(&[listed(&["boss"]), listed(&["vice"])]), ""),
            (all(&[listed(&["boss", "vice"]), listed(&["vice", "chief"])]), "vice"),
            (all(&[listed(&["boss"]), listed(&["od-ops"])]), "boss"),
            (all(&[listed(&["od-ops"]), listed(&["SOPS"])]), "od-ops SOPS"),
            (all(&[Requester, listed(&["boss"])]), ""),
            (all(&[Requester, listed(&["alice", "boss"])]), "alice"),
            (all(&[NotRequester, listed(&["alice", "boss"])]), "boss"),
            (all(&[NotRequester, Requester]), ""),
            (all(&[NotRequester, listed(&["alice"])]), ""),
            (all(&[Anyone, NotRequester]), "others"),
            (all(&[Anyone, Requester]), "alice"),
            (all(&[Anyone, Anyone]), "anyone"),
            (all(&[all(&[Anyone, listed(&["boss"])]), listed(&["boss"])]), "boss"),
        ] {
            assert_eq!(deciders(&approvers), expected, "{approvers:?}");
        }
    }

    /// Without groups, the people that `deciders` gives are exactly those whom `allow` lets approve.
    #[test]
    fn the_people_are_those_who_may() {
        let parts = [
            Approvers::Requester,
            Approvers::Anyone,
            Approvers::NotRequester,
            listed(&["boss"]),
            listed(&["vice", "alice"]),
        ];
        for one in &parts {
            for other in &parts {
                let both = all(&[one.clone(), other.clone()]);
                let found = both.deciders("alice");
                for user in ["alice", "boss", "vice", "carl"] {
                    let told = found.anyone || (found.others && user != "alice") || found.people.contains(&user);
                    assert_eq!(told, both.allow(user, "alice"), "{both:?} {user}");
                }
            }
        }
    }

    /// A call that needs more people than may approve it can be approved by nobody; of several calls everybody counts who may decide one.
    #[test]
    fn quorums_and_unions() {
        let (boss, two, group) = (listed(&["boss"]), listed(&["boss", "vice", "boss"]), listed(&["od-ops"]));
        for (approvers, most) in [
            (&boss, Some(1)),
            (&two, Some(2)),
            (&group, None),
            (&Approvers::Requester, Some(1)),
            (&Approvers::Anyone, None),
            (&Approvers::NotRequester, None),
        ] {
            let deciders = || approvers.deciders("alice");
            assert_eq!(deciders().most(), most, "{approvers:?}");
            for quorum in 0..4 {
                let enough = most.is_none_or(|most| most >= quorum.max(1));
                let nobody = deciders().for_quorum(u32::try_from(quorum).unwrap()).is_nobody();
                assert_eq!(nobody, !enough, "{approvers:?} {quorum}");
            }
        }
        assert!(Deciders::default().for_quorum(0).is_nobody() && Deciders::default().is_nobody());
        let both = boss.deciders("alice").or(Approvers::Requester.deciders("alice"));
        assert_eq!(both.people, ["boss", "alice"]);
        assert!(!both.or(Approvers::NotRequester.deciders("alice")).is_nobody());
    }
}
