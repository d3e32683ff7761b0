//! The boxes of the form that leaves steps out.

use countersign_agent::domain::{CardState, Locale, Outbound, PlanCard, StepStatus, StepView};

use super::{faults, message};
use crate::support::gallery::{plan, step, walk};

/// issue H: the form that leaves steps out has a ticked box for each of two to ten steps that wait, each with an id that may stand in a name.
#[test]
fn boxes_are_offered_where_they_fit() {
    let boxes = |steps: Vec<StepView>| {
        let card = Outbound::PlanCard(PlanCard {
            steps,
            ..plan(CardState::Open { votes: 0 })
        });
        let message = message(Locale::EnUs, &card);
        assert!(faults(&message).is_empty(), "{:?}", faults(&message));
        let mut found = Vec::new();
        message.blocks.iter().for_each(|block| {
            walk(block, &mut |node| {
                if node["type"] == "checkboxes" {
                    assert_eq!(node["options"], node["initial_options"]);
                    let options = node["options"].as_array().unwrap().iter();
                    found.extend(options.map(|option| option["value"].as_str().unwrap().to_owned()));
                }
            });
        });
        found
    };
    let named = |ids: &[&str]| {
        ids.iter()
            .map(|id| step(id, &"🚀 long <!channel> ".repeat(20), StepStatus::Pending, &[]))
            .collect()
    };
    let counted = |count: usize| {
        let ids: Vec<String> = (1..=count).map(|at| at.to_string()).collect();
        boxes(named(&ids.iter().map(String::as_str).collect::<Vec<_>>())).len()
    };
    assert_eq!([1, 2, 10, 11, 30].map(counted), [0, 2, 10, 0, 0]);
    assert_eq!(boxes(named(&["a-1", "B_2"])), ["a-1", "B_2"]);
    assert!(boxes(named(&["a", "b c"])).is_empty() && boxes(named(&["a", "步骤"])).is_empty());
    let done = step("1", "read", StepStatus::Completed, &[]);
    let waits: Vec<StepView> = named(&["2", "3"]);
    assert_eq!(boxes([vec![done], waits].concat()), ["2", "3"], "what is done is not offered");
}
