//! The recipes of docs/policy.md do what the page says. Each test configures a gateway with the YAML that stands on the page.

mod asked;
mod refused;

use std::path::Path;

use countersign_agent::domain::Clock;
use countersign_gateway::config::Loaded;
use serde_json::Value;

use crate::support::platform::On;
use crate::support::settings::load;
use crate::support::world::World;

/// The recipes, as their headings name them.
const READING: &str = "A bot that only reads";
const TWO_PEOPLE: &str = "Operations with two people";
const ONE_FOLDER: &str = "Writes in one folder only";
const NIGHTS: &str = "Nights and absence";
const GUESTS: &str = "Guests of another organisation";

/// Heading and text of each recipe.
fn recipes() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policy.md")).unwrap();
    let (_, section) = page.split_once("\n## Recipes\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let parts = section.split("\n### ").skip(1).map(|part| part.split_once('\n').unwrap());
    parts.map(|(heading, text)| (heading.to_owned(), text.to_owned())).collect()
}

/// The YAML of a recipe. For Slack its ids and its channel are changed as the page tells the reader to.
fn yaml(on: On, heading: &str) -> String {
    let (_, text) = recipes().into_iter().find(|(name, _)| *name == heading).unwrap();
    let blocks: Vec<&str> = text.split("```").skip(1).step_by(2).collect();
    let [block] = blocks[..] else {
        panic!("{heading}: {} blocks", blocks.len())
    };
    let block = block.strip_prefix("yaml\n").unwrap();
    match on {
        On::Lark => block.to_owned(),
        On::Slack => for_slack(block),
    }
}

fn for_slack(block: &str) -> String {
    let (mut yaml, mut rest) = (String::new(), block);
    while let Some((at, lark, slack)) = [("oc_", "C0"), ("ou_", "U0"), ("od-", "S0"), ("lark:", "slack:")]
        .iter()
        .filter_map(|(lark, slack)| rest.find(lark).map(|at| (at, *lark, *slack)))
        .min()
    {
        let after = &rest[at + lark.len()..];
        let id = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        yaml += &rest[..at];
        yaml += slack;
        yaml += &after[..id].to_uppercase();
        rest = &after[id..];
    }
    yaml + rest
}

/// A gateway that is configured by this recipe and by what every test needs; `more` is what the recipe builds on.
async fn cooked(on: On, heading: &str, more: &[(&str, &str)], answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> World {
    World::by_yaml_on(on, more, &yaml(on, heading), Clock::system(), answer).await
}

/// Every recipe of the page has its tests here, and is a configuration without a mistake or a warning on both platforms.
#[test]
fn each_recipe_is_a_configuration() {
    let headings: Vec<String> = recipes().into_iter().map(|(heading, _)| heading).collect();
    assert_eq!(headings, [READING, TWO_PEOPLE, ONE_FOLDER, NIGHTS, GUESTS]);
    let plain = load(&[], "").warnings;
    for heading in headings {
        for on in [On::Lark, On::Slack] {
            let Loaded { warnings, .. } = load(&[], &yaml(on, &heading));
            assert_eq!(warnings, plain, "{heading}");
        }
    }
    assert_eq!(
        for_slack("lark: [oc_a1, od-b]\n- ou_c, cloud: 1\n"),
        "slack: [C0A1, S0B]\n- U0C, cloud: 1\n"
    );
}
