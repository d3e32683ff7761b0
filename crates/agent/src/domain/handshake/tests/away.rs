//! The rules of deputies.

use super::*;

/// An absence of each of these pairs: who is away, and who decides in their place.
pub(super) fn absences(pairs: &[(&str, &str)]) -> Vec<Absence> {
    let absence = |(person, deputy): &(&str, &str)| Absence {
        person: (*person).to_owned(),
        deputy: (*deputy).to_owned(),
        since: Millis(0),
        until: Millis(1_000),
        teams: Vec::new(),
    };
    pairs.iter().map(absence).collect()
}

/// interface §9: a deputy has the person's own right for each act, and no more: nothing is passed on, and where the requester must not approve they
/// do not in another's place either.
#[test]
fn a_deputy_has_the_persons_own_right() {
    let away = absences(&[
        ("a", "d"),
        ("d", "e"),
        ("m", "g"),
        ("n", "h"),
        ("a", "u1"),
        ("u1", "r"),
        ("zed", "z"),
    ]);
    let of = |person: &str, group: Option<&str>| {
        Right::Given(Basis {
            group: group.map(str::to_owned),
            in_place_of: Some(person.to_owned()),
            escalated: false,
        })
    };
    let others = |approvers| Approvers::All(vec![approvers, Approvers::NotRequester]);
    // As `right`, for all of several too.
    fn each(user: &str, approvers: &Approvers) -> Right {
        match approvers {
            Approvers::All(all) => all.iter().map(|each_of| each(user, each_of)).fold(Right::OWN, Right::and),
            Approvers::NotRequester if user == "u1" => Right::No,
            Approvers::NotRequester => Right::OWN,
            _ => right(user, approvers),
        }
    }
    let listed = list(&["a", "G"]);
    let table = [
        (Act::Approve, "d", listed.clone(), of("a", None)),
        (Act::Cancel, "d", listed.clone(), of("a", None)),
        (Act::Approve, "e", listed.clone(), Right::No),
        (Act::Approve, "g", listed.clone(), of("m", Some("G"))),
        (Act::Approve, "h", list(&["H"]), Right::Unknown(vec!["H".to_owned()])),
        (Act::Approve, "z", listed.clone(), Right::No),
        (Act::Approve, "a", listed.clone(), Right::OWN),
        (Act::Approve, "r", listed.clone(), Right::No),
        (Act::Cancel, "r", listed.clone(), of("u1", None)),
        (Act::Approve, "u1", listed.clone(), of("a", None)),
        (Act::Approve, "u1", others(listed.clone()), Right::No),
        (Act::Cancel, "u1", others(listed.clone()), Right::OWN),
        (Act::Approve, "d", others(listed), of("a", None)),
    ];
    for (act, user, approvers, expected) in table {
        let found = may(&act, user, "u1", &approvers, &away, each);
        assert_eq!(found, expected, "{user} {act:?} {approvers:?}");
    }
}

/// Everybody gives one vote, and for everybody one is given: a person's own vote stands above their deputy's, a deputy's above the API's.
#[test]
fn a_person_and_their_deputy_are_one_voice() {
    let two = list(&["a", "b"]);
    let away = absences(&[("a", "d")]);
    let in_place = Right::OWN.in_place_of("a");
    let of_deputy = || person("d").vote(&in_place, None).unwrap();
    let count = |votes: &[Vote], actor: &Actor| {
        let gate = GateStanding {
            approvers: &two,
            away: &away,
            ..plan(2, votes)
        };
        match says(&gate, &Act::Approve, actor).unwrap() {
            Settlement::Voted { votes } => votes,
            Settlement::Decided(decision) => u32::try_from(decision.approvers.len()).unwrap(),
        }
    };
    assert_eq!(count(&[of_deputy()], &person("a")), 1);
    assert_eq!(count(&[vote(&person("a"))], &person("d")), 1);
    assert_eq!(count(&[of_deputy()], &person("b")), 2);
    assert_eq!(count(&[vote(&person("b"))], &person("d")), 2);
    assert_eq!(count(&[vote(&token("a"))], &person("d")), 1);
    assert_eq!(count(&[of_deputy()], &token("a")), 1);
    assert!(of_deputy().outranks(&vote(&token("a"))) && vote(&person("a")).outranks(&of_deputy()));
    // The person is asked no more: what was given in their place falls.
    let others = list(&["b", "c"]);
    let given = [of_deputy()];
    let gate = GateStanding {
        approvers: &others,
        away: &away,
        ..plan(2, &given)
    };
    assert_eq!(says(&gate, &Act::Approve, &person("b")), Ok(Settlement::Voted { votes: 1 }));
    // Nor does it count of the requester once others must approve.
    let by_requester = person("u1").vote(&in_place, None).unwrap();
    assert!(stands(&by_requester, "u1", &two, right));
    assert!(!stands(
        &by_requester,
        "u1",
        &Approvers::All(vec![two.clone(), Approvers::NotRequester]),
        |_, _| Right::OWN
    ));
}

/// A deputy of two people votes for the one for whom nobody has voted yet, by themselves or through another deputy.
#[test]
fn a_deputy_of_two_lends_the_voice_that_is_free() {
    let two = list(&["a", "c"]);
    let away = absences(&[("a", "b"), ("c", "b")]);
    let through_another = person("d").vote(&Right::OWN.in_place_of("a"), None).unwrap();
    let given = [through_another];
    let gate = GateStanding {
        approvers: &two,
        away: &away,
        ..plan(2, &given)
    };
    match says(&gate, &Act::Approve, &person("b")) {
        Ok(Settlement::Decided(decision)) => assert_eq!(decision.in_place_of.as_deref(), Some("c")),
        other => panic!("{other:?}"),
    }
}
