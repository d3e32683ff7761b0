//! What the tree holds, for Markdown as models write it.

use proptest::prelude::*;

use super::*;

fn paragraph(markdown: &str) -> Vec<StyledText> {
    match parse(markdown).into_iter().next() {
        Some(Block::Paragraph(spans)) => spans,
        other => panic!("{other:?}"),
    }
}

fn bold(markdown: &str) -> Vec<String> {
    let bold = |span: &StyledText| span.style.bold.then(|| span.text.clone());
    paragraph(markdown).iter().filter_map(bold).collect()
}

/// M-5: bold works beside Chinese punctuation and without blanks, where CommonMark's rule alone would show stars.
#[test]
fn marks_work_in_chinese() {
    assert_eq!(bold("**重点：**请看"), ["重点："]);
    assert_eq!(bold("他说**“重点”**的时候"), ["“重点”"]);
    assert_eq!(bold("这是**粗体**字，也是**“引用”。**好"), ["粗体", "“引用”。"]);
    let Some(Block::List { items, .. }) = parse("* **步骤一：**打开\n* **步骤二：**关上").into_iter().next() else {
        panic!("no list");
    };
    assert_eq!(words_of(&items[1].blocks), "步骤二：关上");
}

fn words_of(blocks: &[Block]) -> String {
    match blocks.first() {
        Some(Block::Paragraph(spans)) => words(spans),
        other => panic!("{other:?}"),
    }
}

/// M-5: a single tilde means "to"; two strike out.
#[test]
fn a_range_is_not_struck_out() {
    assert_eq!(words(&paragraph("3~5 天，最多 6~8 天")), "3~5 天，最多 6~8 天");
    assert!(paragraph("~~旧的~~")[0].style.strike);
}

/// M-5: links lead to the web and to mail only; words that hide a host get it named; bare addresses are links.
#[test]
fn links_lead_where_they_say() {
    let shown = |markdown: &str| words(&paragraph(markdown));
    let leads = |markdown: &str| paragraph(markdown).iter().filter_map(|span| span.link.clone()).collect::<Vec<_>>();
    assert_eq!(shown("[bank](https://bank.example@evil.example/x)"), "bank (evil.example)");
    assert_eq!(shown("[a.example](https://a.example/x)"), "a.example");
    for (words, host) in [
        ("bank.example", "ank.example"),
        ("a.example.org", "a.example"),
        ("a.example", "example"),
    ] {
        assert_eq!(shown(&format!("[{words}](https://{host})")), format!("{words} ({host})"));
    }
    assert_eq!(shown("[see a.example.](https://a.example/x)"), "see a.example.");
    assert_eq!(shown("[x](javascript:alert(1))"), "x (javascript:alert(1))");
    assert_eq!(
        leads("[x](javascript:alert(1)) [y](file:///etc/passwd) [z](slack://x)"),
        Vec::<String>::new()
    );
    assert_eq!(leads("![图](https://a.example/i.png)"), ["https://a.example/i.png"]);
    assert_eq!(
        leads("见 https://a.example/b_c_d?x=1&y=2。再见(https://b.example)"),
        ["https://a.example/b_c_d?x=1&y=2", "https://b.example"]
    );
    assert_eq!(leads("<me@a.example>"), ["mailto:me@a.example"]);
    assert_eq!(leads("`https://a.example`"), Vec::<String>::new());
}

/// M-5: nothing vanishes: definitions of links, HTML, and what is nested too deep are read as text.
#[test]
fn nothing_vanishes() {
    assert_eq!(words(&paragraph("[1]: https://a.example/x")), "[1]: https://a.example/x");
    assert_eq!(words(&paragraph("<at id=all></at> a<br>b")), "<at id=all></at> a\nb");
    assert!(format!("{:?}", parse(&format!("{}深处", "> ".repeat(50)))).contains("深处"));
    assert!(format!("{:?}", parse(&format!("{}深处", "- ".repeat(50)))).contains("深处"));
}

/// M-5: lists keep their numbers, tasks their boxes, code its language, tables their cells.
#[test]
fn blocks_are_read() {
    let blocks = parse("# 一\n\n3. a\n   - [x] b\n\n```rust ignore\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| `c` | |\n\n---");
    assert!(matches!(&blocks[0], Block::Heading(1, _)));
    let Block::List { start: Some(3), items } = &blocks[1] else {
        panic!("{blocks:?}");
    };
    assert!(matches!(&items[0].blocks[1], Block::List { start: None, items } if items[0].done == Some(true)));
    assert_eq!(
        blocks[2],
        Block::Code {
            language: "rust".to_owned(),
            text: "let a = 1;".to_owned()
        }
    );
    assert!(matches!(&blocks[3], Block::Table(table) if table.columns() == 2 && table.rows.len() == 2));
    assert_eq!(blocks[4], Block::Rule);
}

/// M-5: columns of a table in text stand under each other, in Chinese too; one huge cell does not blow up the rest.
#[test]
fn tables_align() {
    let Some(Block::Table(table)) = parse("| 名称 | n |\n|---|---|\n| a | 12 |").into_iter().next() else {
        panic!("no table");
    };
    assert_eq!(aligned(&table), "名称 | n\n-----+---\na    | 12");
    let long = format!("|{}|\n|---|\n{}", "x|".repeat(60), "a|b\n".repeat(200));
    for block in parse(&long) {
        if let Block::Table(table) = block {
            assert!(aligned(&table).len() < 6 * long.len());
        }
    }
}

fn depth(block: &Block) -> usize {
    match block {
        Block::Quote(blocks) => 1 + blocks.iter().map(depth).max().unwrap_or(0),
        Block::List { items, .. } => 1 + items.iter().flat_map(|item| &item.blocks).map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

proptest! {
    /// M-5: any text is read, to a bounded depth, without panics; no span is empty.
    #[test]
    fn any_text_is_read(text in r"([*_~`\[\]()!#>|\\\n-]|1\. |    |<at id=all>|https://a.b/c|```|\PC){0,60}") {
        let blocks = parse(&text);
        prop_assert!(blocks.iter().map(depth).max().unwrap_or(0) <= MAX_DEPTH);
        let shown = format!("{blocks:?}");
        prop_assert!(!shown.contains("text: \"\", style"), "{}", shown);
    }
}
