//! What the pages show of the demo: `docs/demo.*.txt` and a part of it in both READMEs. `scripts/transcript` writes both anew.

use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::demo;

/// Language, and the page that shows a part of its run.
const PAGES: [(&str, &str); 2] = [("en-US", "README.md"), ("zh-CN", "README.zh-CN.md")];
const BEGIN: &str = "<!-- demo: scripts/transcript writes this -->\n```\n";
const END: &str = "```\n<!-- /demo -->";
/// Above the rows of a card that are new.
const REPAINTED: [&str; 2] = ["  card repainted:", "  卡片已更新："];

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(page)
}

/// A run without what differs from run to run: the bot's marks on the request are left out, and the states in between of a card that is
/// repainted. How many of them there are, and whether they come before the answer, depends on the machine.
fn settled(run: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    let mut repainted = "";
    for line in run.trim().lines() {
        if let Some(row) = line.strip_prefix("    ") {
            match rows.iter_mut().find(|known| stateless(known) == stateless(row)) {
                Some(known) => *known = row,
                None => rows.push(row),
            }
        } else if REPAINTED.contains(&line) {
            repainted = line;
        } else if !line.starts_with("  Countersign: (") {
            lines.push(line.to_owned());
        }
    }
    // Before the answer, with the empty line that it begins with.
    let answer = lines.iter().rposition(|line| line == "Countersign:").expect("an answer") - 1;
    let rows = rows.iter().map(|row| format!("    {row}"));
    lines.splice(answer..answer, [repainted.to_owned()].into_iter().chain(rows));
    lines.join("\n") + "\n"
}

/// What a row of a card says, however far the plan has come.
fn stateless(row: &str) -> String {
    let words = row.split("  [").next().unwrap_or_default();
    words.chars().filter(|c| !c.is_ascii_digit() && !"⬜⏳✅".contains(*c)).collect()
}

/// The part that a README shows: the request, the card down to its buttons, the decision with what became of the plan, the last line.
fn part(settled: &str) -> String {
    let (handshake, answer) = settled.rsplit_once("\nCountersign:\n").expect("an answer");
    let (card, decision) = handshake.split_once("  ╰").expect("a card");
    let (shown, buttons) = card.split_once("  │ ( ").expect("buttons");
    let buttons = buttons.lines().next().unwrap_or_default();
    let figures = answer.lines().last().unwrap_or_default();
    format!("{shown}  │ ( {buttons}\n  ╰{decision}\n{figures}\n")
}

/// `text` without the seconds that the run took, the calls that its repaints took, and the moment of the approval.
fn timeless(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let varies = |at: usize| {
        (at > 1 && word(at - 2).ends_with("completed") && word(at - 1) == "in")
            || (word(at + 1), word(at + 2)) == ("calls", "to")
            || (at > 0 && word(at - 1) == "接口")
            || word(at + 1).starts_with("秒：")
            || [at + 1, at + 2].iter().any(|next| word(*next).starts_with("UTC"))
    };
    let words = words.iter().enumerate().map(|(at, word)| if varies(at) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// A page: what stands before the block between its two marks, the block, and what follows.
fn parts(page: &str) -> [&str; 3] {
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first mark");
    let (block, after) = rest.split_once(END).expect("the page has the second mark");
    [before, block, after]
}

/// issue: what the pages show of the demo is what it prints today.
#[tokio::test]
async fn the_pages_show_the_demo_of_today() {
    for (locale, page) in PAGES {
        let ran = demo(&["--pace", "fast", "--locale", locale]).await;
        let run = settled(&ran.out);
        let (file, page) = (path(&format!("docs/demo.{locale}.txt")), path(page));
        let text = fs::read_to_string(&page).unwrap();
        let [before, block, after] = parts(&text);
        if std::env::var_os("UPDATE_TRANSCRIPT").is_some() {
            fs::write(&file, &run).unwrap();
            fs::write(&page, [before, BEGIN, &part(&run), END, after].concat()).unwrap();
            continue;
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        for (shown, today) in [(written.as_str(), run.clone()), (block, part(&run))] {
            let (shown, today) = (timeless(shown), timeless(&today));
            let changes = TextDiff::from_lines(&shown, &today).unified_diff().context_radius(1).to_string();
            assert!(
                shown == today,
                "{} or {} shows another demo than today's:\n{changes}\nTo write both anew: scripts/transcript",
                file.display(),
                page.display()
            );
        }
    }
}

/// design: two runs of one demo read the same, whatever came in between; a difference that a reader sees stays one.
#[test]
fn what_differs_from_run_to_run_is_left_out() {
    let approved = "  card repainted:\n    ■ Plan  [approved]\n    1. ⬜ Read\n    0/1\n    by lin\n";
    let begun = "  card repainted:\n    1. ⏳ Read\n";
    let done = "  card repainted:\n    ■ Plan  [done]\n    1. ✅ Read\n    1/1\n";
    let whole = "  card repainted:\n    ■ Plan  [done]\n    1. ✅ Read\n    1/1\n    by lin\n";
    let mark = "  Countersign: (DONE)\n";
    let run = |between: &[&str], after: &[&str], figures: &str| {
        let (between, after) = (between.concat(), after.concat());
        let run = format!("\nlin: OK\n{between}\nCountersign:\n  Done.\n{after}\ncompleted in {figures} calls to Lark\n");
        timeless(&settled(&run))
    };
    let expected = format!("lin: OK\n{whole}\nCountersign:\n  Done.\n\ncompleted in … s: 10 model calls, … calls to Lark");
    for run in [
        run(&[approved, begun], &[mark, done], "12.5 s: 10 model calls, 9"),
        run(&[mark, approved, done], &[], "0.3 s: 10 model calls, 15"),
        run(&[], &[mark, whole], "0.3 s: 10 model calls, 8"),
    ] {
        assert_eq!(run.trim(), expected);
    }
    assert_ne!(run(&[whole], &[], "0.3 s: 11 model calls, 8").trim(), expected);
}
