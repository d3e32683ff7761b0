//! What the cards show, decided once for all platforms, in every state and both languages.

use countersign_agent::domain::{Locale, Outbound};
use similar::{ChangeTag, TextDiff};

use super::outline::outline;
use super::support::gallery::gallery;
use super::{TEMPLATES, agreed};
use crate::channels::card::{Caps, Card, CardWords, Surface};

fn shown(surface: Surface, caps: Caps, locale: Locale, content: &Outbound) -> String {
    let words = CardWords {
        templates: &TEMPLATES,
        locale,
        surface,
        knows: |id| id.starts_with("ou_"),
    };
    outline(&Card::of(words, caps, content).unwrap())
}

/// The card for both platforms. A line that one of them alone has begins with its letter.
fn for_both(locale: Locale, content: &Outbound) -> String {
    let [lark, slack] = [Surface::Lark, Surface::Slack].map(|surface| shown(surface, Caps::ALL, locale, content));
    let marked = |(tag, line): (ChangeTag, &str)| match tag {
        ChangeTag::Equal => format!("  {line}"),
        ChangeTag::Delete => format!("L {line}"),
        ChangeTag::Insert => format!("S {line}"),
    };
    let changes = TextDiff::from_lines(&lark, &slack);
    changes
        .iter_all_changes()
        .map(|change| marked((change.tag(), change.value())))
        .collect()
}

/// S0-28, M-5: every card in every state and both languages holds what was agreed: words, order, tones, buttons with what they ask first,
/// people, moments.
#[test]
fn cards_hold_what_was_agreed() {
    for locale in [Locale::ZhCn, Locale::EnUs] {
        let all = gallery();
        let mut families: Vec<&str> = all.iter().map(|(name, _)| family(name)).collect();
        families.sort_unstable();
        families.dedup();
        for one in families {
            let of_it = all.iter().filter(|(name, _)| family(name) == one);
            let states: Vec<String> = of_it
                .map(|(name, content)| format!("# {name}\n{}", for_both(locale, content)))
                .collect();
            agreed(&format!("{one}-{}", locale.as_str()), &states.join("\n"));
        }
    }
}

/// `approval_open` is one of the approval cards.
fn family(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// F-C2: where there is little room, what is cut is said, and what is left out is counted.
#[test]
fn cuts_are_told() {
    let names = [
        "plan_left_out",
        "plan_revised",
        "approval_unknown",
        "question_answered",
        "budget_open",
        "progress_running",
        "answer",
    ];
    let tight = Caps::of(1, 9, 12, 6).cut();
    let mut told = String::new();
    for (name, content) in gallery().iter().filter(|(name, _)| names.contains(name)) {
        told.push_str(&format!("# {name}\n{}\n", shown(Surface::Slack, tight, Locale::EnUs, content)));
    }
    agreed("cut-en-US", &told);
}
