//! What Slack is given for the model's Markdown, and what it can never contain.

use proptest::prelude::*;

use super::*;
use countersign_playground::check_message;

fn only(markdown: &str) -> Value {
    let mut blocks = blocks(markdown, true);
    assert_eq!(blocks.len(), 1, "{blocks:?}");
    blocks.remove(0)["elements"].take()
}

/// M-5: paragraphs share a section with a blank line between them, headings are bold.
#[test]
fn paragraphs_and_headings() {
    assert_eq!(
        only("# 总结\n\n一切**正常**，见 [文档](https://a.example/x)。"),
        json!([{"type": "rich_text_section", "elements": [
            {"type": "text", "text": "总结", "style": {"bold": true}},
            {"type": "text", "text": "\n\n"},
            {"type": "text", "text": "一切"},
            {"type": "text", "text": "正常", "style": {"bold": true}},
            {"type": "text", "text": "，见 "},
            {"type": "link", "url": "https://a.example/x", "text": "文档"},
            {"type": "text", "text": " (a.example)。"},
        ]}])
    );
}

/// M-5: a list inside a list ends the outer one, which goes on with its numbers; code in an item does so too.
#[test]
fn lists_keep_their_numbers() {
    let elements = only("1. a\n   - [x] b\n2. c\n   ```sh\n   ls\n   ```\n3. d");
    let shape: Vec<_> = elements
        .as_array()
        .unwrap()
        .iter()
        .map(|list| format!("{} {} {} {}", list["type"], list["style"], list["indent"], list["offset"]))
        .collect();
    assert_eq!(
        shape,
        [
            r#""rich_text_list" "ordered" 0 null"#,
            r#""rich_text_list" "bullet" 1 null"#,
            r#""rich_text_list" "ordered" 0 1"#,
            r#""rich_text_preformatted" null null null"#,
            r#""rich_text_list" "ordered" 0 2"#,
        ]
    );
    assert_eq!(elements[1]["elements"][0]["elements"][0]["text"], "☑ ");
    assert_eq!(elements[3]["elements"][0]["text"], "ls");
}

/// M-5: the first table is a table, a second one is text in columns; quotes and lines across have their own blocks.
#[test]
fn tables_quotes_and_rules() {
    let table = "| 名 | n |\n|---|---|\n| a | **1** |\n";
    let found = blocks(&format!("{table}\n{table}\n> 引 *用*\n> - x\n\n---\n完"), true);
    let kinds: Vec<_> = found.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["table", "rich_text", "divider", "rich_text"]);
    assert_eq!(found[0]["rows"][0][0]["elements"][0]["elements"][0]["style"]["bold"], true);
    assert_eq!(found[1]["elements"][0]["elements"][0]["text"], "名 | n\n---+--\na  | 1");
    let quote = &found[1]["elements"][1];
    assert_eq!(quote["type"], "rich_text_quote");
    assert_eq!(quote["elements"][2]["text"], "\n• ");
}

/// Every `text` under `value`, and the type of what it stands in.
fn texts(value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get("text") {
                out.push((members["type"].as_str().unwrap_or_default().to_owned(), text.clone()));
            }
            members.values().for_each(|member| texts(member, out));
        }
        _ => (),
    }
}

fn check(markdown: &str) -> Vec<String> {
    let blocks = blocks(markdown, true);
    assert!(blocks.len() <= 50);
    let faults = check_message(&json!({"channel": "C1", "text": "x", "blocks": &blocks}));
    assert_eq!(faults, Vec::<String>::new(), "{markdown}");
    let all = Value::Array(blocks).to_string();
    for kind in ["user", "usergroup", "channel", "team", "broadcast", "mrkdwn"] {
        assert!(!all.contains(&format!(r#""type":"{kind}""#)), "{all}");
    }
    let mut found = Vec::new();
    texts(&serde_json::from_str(&all).unwrap(), &mut found);
    for (_, text) in &found {
        assert!(!text.is_empty() && !text.contains("<!") && !text.contains("<@"), "{text}");
    }
    found.into_iter().map(|(_, text)| text).collect()
}

/// M-5: forged broadcasts and mentions are text.
#[test]
fn forged_mentions_are_text() {
    let said = check("<!channel> <@U1> `<!here>` [<!everyone>](https://a.example) @here\n```\n<!subteam^S1>\n```");
    assert!(said.concat().contains("<\u{2060}!channel>"));
    assert_eq!(blocks(" \n ", true), Vec::<Value>::new());
}

proptest! {
    /// M-5: no text makes a mention, an empty element or too many blocks.
    #[test]
    fn no_text_makes_a_mention(text in r"([*_~`\[\]()!#>|\\\n-]|1\. |    |<!channel>|<@U1>|&lt;!here|\|---\||https://a.b/c|```|---\n|\PC){0,60}") {
        check(&text);
    }

    /// M-5: every letter that was written is shown, in order.
    #[test]
    fn every_letter_is_shown(text in r"([a-z]{1,5}|[计划确认]{1,3}|\*\*|\*|~~|> |- |# |\n|\n\n| |，|：){0,40}") {
        // Two strikes that touch open code, and what stands behind that is a language.
        prop_assume!(!text.contains("~~~"));
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        prop_assert_eq!(letters(&check(&text).concat()), letters(&text));
    }
}
