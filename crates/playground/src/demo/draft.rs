//! The plan that the demo proposes: from the request, the changes asked for, and the tools on offer.

use serde_json::{Value, json};

use super::words::Tongue;

const DEFAULT_OUTPUT: &str = "summary.md";
const MAX_GOAL_CHARS: usize = 500;

/// The plan in force, as far as the demo is concerned.
#[derive(Debug)]
pub(super) struct Draft {
    goal: String,
    tongue: Tongue,
    /// `list_files` and `read_file` are there.
    pub(super) reads: bool,
    /// The file to write. `None` when that is not possible or not wanted.
    pub(super) output: Option<String>,
    /// Id, content, tools.
    pub(super) steps: Vec<(&'static str, String, Vec<&'static str>)>,
}

impl Draft {
    /// The plan for `task` after `edits`.
    pub(super) fn new(task: &str, edits: Vec<&str>, tongue: Tongue, offers: &dyn Fn(&str) -> bool) -> Self {
        let reads = offers("list_files") && offers("read_file");
        let mut output = (reads && offers("write_file")).then(|| DEFAULT_OUTPUT.to_owned());
        for words in std::iter::once(&task).chain(&edits) {
            if forbids_writing(words) {
                output = None;
            } else if let (Some(name), true) = (named_output(words), reads && offers("write_file")) {
                output = Some(name);
            }
        }
        let mut steps = match (&output, reads) {
            (Some(output), _) => vec![
                (tongue.step_read(), vec!["list_files", "read_file"]),
                (tongue.step_write(output), vec!["write_file"]),
                (tongue.step_check(output), vec!["read_file"]),
            ],
            (None, true) => vec![
                (tongue.step_read(), vec!["list_files", "read_file"]),
                (tongue.step_tell(), vec![]),
                (tongue.step_compare(), vec![]),
            ],
            (None, false) => vec![
                (tongue.step_understand(), vec![]),
                (tongue.step_no_tools(), vec![]),
                (tongue.step_tell(), vec![]),
            ],
        };
        // A change becomes part of the step that makes the result, in the person's own words.
        for edit in edits {
            steps[1].0.push_str(&tongue.changed(edit));
        }
        Self {
            goal: task.chars().take(MAX_GOAL_CHARS).collect(),
            tongue,
            reads,
            output,
            steps: ["1", "2", "3"]
                .into_iter()
                .zip(steps)
                .map(|(id, (content, tools))| (id, content, tools))
                .collect(),
        }
    }

    /// The plan when there is no file to write: its step only reads.
    pub(super) fn reading_only(draft: &Self) -> Self {
        Self {
            goal: draft.goal.clone(),
            tongue: draft.tongue,
            reads: draft.reads,
            output: None,
            steps: draft.steps.clone(),
        }
    }

    /// Arguments of `plan()`.
    pub(super) fn arguments(&self) -> Value {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|(id, content, tools)| json!({"id": id, "content": content, "tools": tools}))
            .collect();
        json!({"overall_goal_ui": self.goal, "complexity": "complex", "internal_plan": {"steps": steps}})
    }

    /// Arguments of `clarify()` for the first step.
    pub(super) fn clarification(&self) -> Value {
        json!({
            "task_id": self.steps[0].0,
            "task_goal_ui": self.steps[0].1,
            "success_criteria": [self.steps[2].1],
            "needs_user_input": false,
        })
    }

    /// The answer to a question about the plan.
    pub(super) fn explain(&self, question: &str) -> String {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|(id, content, tools)| match tools.as_slice() {
                [] => format!("{id}. {content}"),
                tools => format!("{id}. {content} [{}]", tools.join(", ")),
            })
            .collect();
        self.tongue.explanation(question, &steps.join("\n"), self.output.as_deref())
    }
}

/// Does a plan with these arguments declare the tool `name`?
pub(super) fn declares(arguments: &Value, name: &str) -> bool {
    let steps = arguments.pointer("/internal_plan/steps").and_then(Value::as_array);
    let mut tools = steps
        .into_iter()
        .flatten()
        .filter_map(|step| step.get("tools")?.as_array())
        .flatten();
    tools.any(|tool| tool == name)
}

/// "OK, but leave step 2 out", "不要写文件": the writing step is not wanted.
fn forbids_writing(words: &str) -> bool {
    let words = words.to_lowercase();
    let any = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let refusal = any(&[
        "不要",
        "别",
        "不用",
        "不做",
        "去掉",
        "删掉",
        "don't",
        "do not",
        "without",
        "skip",
        "remove",
        "leave out",
    ]);
    let writing = any(&[
        "第二步",
        "第2步",
        "第 2 步",
        "写文件",
        "写入",
        "step 2",
        "step two",
        "writ",
        "a file",
    ]);
    // "不要写到 a.md，写到 b.md" asks for another place, not for none.
    refusal && writing && named_output(&words).is_none()
}

/// The last `….md` or `….txt` that a person names as the place of the result: "写到 `brief.md`", "save it as brief.md".
fn named_output(words: &str) -> Option<String> {
    let name_char = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let mut found = None;
    let mut rest = words;
    while let Some(at) = rest.find(name_char) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !name_char(c)).unwrap_or(from.len());
        let name = from[..end].trim_end_matches('.');
        let lead = words[..words.len() - rest.len() + before.len()]
            .trim_end_matches(|c: char| c.is_whitespace() || "`\"'“”「《".contains(c))
            .to_lowercase();
        let is_target = ["到", "成", "为", "入", "叫"].iter().any(|word| lead.ends_with(word))
            || lead
                .rsplit(|c: char| !c.is_ascii_alphabetic())
                .next()
                .is_some_and(|word| ["to", "as", "into", "in", "called", "named"].contains(&word));
        let is_path = !name.starts_with(['/', '.']) && !name.contains("..") && !name.contains("//");
        if is_target && is_path && (name.ends_with(".md") || name.ends_with(".txt")) {
            found = Some(name.to_owned());
        }
        rest = &from[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// design: an edit of the plan that names another file, or none, changes the plan.
    #[test]
    fn edits_choose_the_output() {
        for (words, name) in [
            ("写到 brief.md", Some("brief.md")),
            ("汇总写入`out/周`", None),
            ("请改为写到“out/brief.md”。", Some("out/brief.md")),
            ("Save it as brief.md.", Some("brief.md")),
            ("put it in notes/week.txt please", Some("notes/week.txt")),
            ("不要写到 a.md，写到 b.md", Some("b.md")),
            ("read tasks.csv and notes.md", None),
            ("write to ../x.md", None),
            ("write to /etc/x.md", None),
        ] {
            assert_eq!(named_output(words).as_deref(), name, "{words}");
        }
        assert!(forbids_writing("OK 但是第二步别做"));
        assert!(forbids_writing("Please don't write a file"));
        assert!(!forbids_writing("不要写到 a.md，写到 b.md"));
        assert!(!forbids_writing("再加一节风险"));
    }
}
