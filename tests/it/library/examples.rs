//! The examples show what their first lines promise. They run inside this binary, as they are.

#[expect(dead_code, reason = "its `main` is for people at a terminal")]
#[path = "../../../crates/agent/examples/approvals.rs"]
mod approvals;
#[expect(dead_code, reason = "its `main` is for people at a terminal")]
#[path = "../../../crates/agent/examples/mcp.rs"]
mod mcp;
#[expect(dead_code, reason = "its `main` is for people at a terminal")]
#[path = "../../../crates/agent/examples/plan_mode.rs"]
mod plan_mode;
#[expect(dead_code, reason = "its `main` is for people at a terminal")]
#[path = "../../../crates/agent/examples/react.rs"]
mod react;
#[expect(dead_code, reason = "its `main` is for people at a terminal")]
#[path = "../../../crates/agent/examples/resume.rs"]
mod resume;

/// The ` ```text ` block of an example's first lines.
fn promised(source: &str) -> String {
    let docs = source.lines().take_while(|line| line.starts_with("//!"));
    let lines = docs.map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default());
    let block = lines
        .skip_while(|line| *line != "```text")
        .skip(1)
        .take_while(|line| *line != "```");
    block.map(|line| format!("{line}\n")).collect()
}

/// Runs an example and compares.
macro_rules! shows {
    ($example:ident) => {{
        let mut shown = Vec::new();
        $example::play(&mut shown).await.unwrap();
        let source = include_str!(concat!("../../../crates/agent/examples/", stringify!($example), ".rs"));
        assert_eq!(String::from_utf8(shown).unwrap(), promised(source));
    }};
}

/// S2-3: the smallest agent.
#[tokio::test]
async fn react_shows_what_it_says() {
    shows!(react);
}

/// S2-3, S2-4: a plan that is changed, approved and carried out step by step.
#[tokio::test]
async fn plan_mode_shows_what_it_says() {
    shows!(plan_mode);
}

/// S4-3: a write that is rejected, and one that is approved.
#[tokio::test]
async fn approvals_shows_what_it_says() {
    shows!(approvals);
}

/// S2-14: tools of an MCP server and a model of one's own.
#[tokio::test]
async fn mcp_shows_what_it_says() {
    shows!(mcp);
}

/// S2-5, S2-12: a crash while a write is out.
#[tokio::test]
async fn resume_shows_what_it_says() {
    shows!(resume);
}
