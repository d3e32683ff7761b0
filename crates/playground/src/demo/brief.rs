//! The demo in plan mode: one step at a time from its brief, a look at the plan, and the conclusion.

use serde_json::json;

use super::draft::Draft;
use super::log::{Log, section, unescape};
use super::words::Tongue;
use super::{ChatRequest, Move, act};
use countersign_agent::domain::Role;

/// What a `<plan-step>` block says.
#[derive(Debug)]
pub(super) struct Brief {
    request: String,
    content: String,
    tools: Vec<String>,
    /// What the steps before gave.
    pub(super) progress: String,
}

impl Brief {
    fn read(block: &str) -> Self {
        // The label tells the number of the step, too.
        let label = block
            .lines()
            .find(|line| line.starts_with("step ") && line.ends_with(':'))
            .unwrap_or("step:");
        let results = steps(block, "progress:").into_iter().map(|step| step.result);
        Self {
            request: section(block, "request:"),
            content: section(block, label),
            tools: section(block, "declared tools:").split(", ").map(str::to_owned).collect(),
            progress: results.filter(|result| !result.is_empty()).collect::<Vec<_>>().join("\n\n"),
        }
    }

    pub(super) fn declares(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    /// The file that the step names.
    fn file(&self) -> Option<String> {
        self.content.split('`').nth(1).map(str::to_owned)
    }
}

/// The next move in plan mode. `None` means the plan is being made, or this is no plan mode.
pub(super) fn next(request: &ChatRequest, log: &Log<'_>, tongue: Tongue, offers: &dyn Fn(&str) -> bool) -> Option<Move> {
    let last = request.messages.last()?;
    let text = last.content.as_str();
    if last.role == Role::System && text.starts_with("<plan-reflection>\n") {
        let failed = steps(text, "step that has just ended:").iter().any(|step| step.status == "failed");
        let words = json!({"outcome": "continue", "reason": tongue.looked_at(failed)});
        return Some(Move::Say(words.to_string()));
    }
    let told = text.starts_with("<plan-conclusion>\n") || text.starts_with("<turn-limit>\n");
    if last.role == Role::System && told && text.contains("\nplan:\n") {
        let lines = steps(text, "plan:").into_iter().map(|step| step.line());
        let mut parts = vec![tongue.carried_out()];
        if text.starts_with("<turn-limit>\n") {
            parts = vec![tongue.cut_short()];
        }
        parts.extend(lines);
        return Some(Move::Say(parts.join("\n")));
    }
    // A brief is the last thing that stands for a person, and so what the log takes for the task.
    let brief = Brief::read(log.task.strip_prefix("<plan-step>\n").map(|_| log.task.as_ref())?);
    let mut draft = Draft::new(&brief.request, Vec::new(), tongue, offers);
    draft.output = brief.file().or(draft.output);
    Some(act::step(&log.said, &brief, &draft, tongue, request.parallel_tool_calls))
}

/// A step as a block tells of it.
struct Told {
    status: String,
    content: String,
    result: String,
}

impl Told {
    fn line(&self) -> String {
        let sign = match self.status.as_str() {
            "completed" => "✓",
            "failed" => "✗",
            "skipped" => "–",
            _ => "○",
        };
        let result = Tongue::unlabelled(self.result.lines().next().unwrap_or_default());
        if result.is_empty() {
            format!("- {sign} {}", self.content)
        } else {
            format!("- {sign} {}: {result}", self.content)
        }
    }
}

/// The steps under `label`: `  [status] 1. (step_id x) words`, below them what came of each.
fn steps(block: &str, label: &str) -> Vec<Told> {
    let lines = block.lines().skip_while(|line| *line != label).skip(1);
    let mut told: Vec<Told> = Vec::new();
    for line in lines.take_while(|line| line.starts_with("  ")) {
        if let Some((status, rest)) = line.strip_prefix("  [").and_then(|line| line.split_once("] ")) {
            let content = rest.split_once(") ").map_or(rest, |(_, content)| content);
            told.push(Told {
                status: status.to_owned(),
                content: unescape(content),
                result: String::new(),
            });
        } else if let Some(step) = told.last_mut() {
            let line = line.trim_start();
            let said = ["result: ", "reason: ", "error: "]
                .iter()
                .find_map(|label| line.strip_prefix(label));
            match said {
                Some(words) if step.result.is_empty() => step.result = unescape(words),
                _ if !step.result.is_empty() => {
                    step.result.push('\n');
                    step.result.push_str(&unescape(line));
                }
                _ => {}
            }
        }
    }
    told
}
