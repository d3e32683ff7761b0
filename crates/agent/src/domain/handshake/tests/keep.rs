//! Leaving steps out.

use super::*;

/// A plan of four steps, the first of which is done.
fn steps() -> Vec<StepView> {
    let step = |(at, status): (usize, StepStatus)| StepView {
        id: format!("s{at}"),
        content: format!("step {at}"),
        status,
        tools: Vec::new(),
        intent: None,
        unfinished: false,
    };
    let statuses = [StepStatus::Completed, StepStatus::Pending, StepStatus::Failed, StepStatus::Pending];
    (1..).zip(statuses).map(step).collect()
}

/// issue H: who leaves steps out settles the review at once as changes, with the numbers of those that stay; the requester may, too.
#[test]
fn leaving_steps_out_is_a_change_of_a_fixed_meaning() {
    let steps = steps();
    let gate = GateStanding {
        steps: &steps,
        ..plan(2, &[])
    };
    let keep = |ids: &[&str]| Act::Keep(ids.iter().map(|id| (*id).to_owned()).collect());
    assert_eq!(optional_steps(&steps).map(|(number, _)| number).collect::<Vec<_>>(), [2, 3, 4]);
    for user in ["a", "u1"] {
        match says(&gate, &keep(&["s4", "s2"]), &person(user)) {
            Ok(Settlement::Decided(decision)) => {
                assert_eq!((decision.kind, &decision.kept[..]), (DecisionKind::Revise, &[1, 2, 4][..]));
                assert_eq!(decision.text.as_deref(), Some("keep only steps 1, 2, 4"));
                assert_eq!((decision.by.as_deref(), decision.approvers.len()), (Some(user), 0));
            }
            other => panic!("{other:?}"),
        }
    }
    for (ids, why) in [
        (&["s2", "s3", "s4"][..], BadChoice::AllKept),
        (&[], BadChoice::NoneKept),
        (&["s1", "s2"], BadChoice::NoSuchStep),
        (&["s9"], BadChoice::NoSuchStep),
        (&["s2", "s2"], BadChoice::NoSuchStep),
        (&["s2", "s2", "s3"], BadChoice::NoSuchStep),
    ] {
        assert_eq!(says(&gate, &keep(ids), &person("a")), Err(Refusal::BadChoice(why)), "{ids:?}");
    }
    let (stranger, decided) = (person("x"), GateStanding { decided: true, ..gate });
    assert_eq!(says(&gate, &keep(&["s2"]), &stranger), Err(Refusal::NotEntitled));
    assert_eq!(says(&decided, &keep(&["s2"]), &person("a")), Err(Refusal::Decided));
    for kind in [GateKind::Question, GateKind::ToolApproval, GateKind::Budget] {
        assert_eq!(keep(&["s2"]).at(kind), None, "{kind:?}");
    }
}
