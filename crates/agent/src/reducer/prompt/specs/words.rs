//! What the turn's own tools and their parameters are for, in both languages of the prompts.

use serde_json::{Value, json};

use crate::domain::PromptLanguage;

/// By tool, or by tool and parameter: English, Chinese. A parameter whose name says it all is not in here.
const WORDS: [(&str, &str, &str); 14] = [
    (
        "plan",
        "State the goal and the steps before acting. People may be asked to countersign the plan, so write steps they can judge and name \
         in `tools` every tool a step will use. Declare in a step's `calls` each call that changes something, with the arguments that say \
         where: approving the plan approves exactly these calls, any other change asks again. \
         When complexity=\"complex\", after completing each major step, call plan_progress() to record progress. When all steps are done, \
         call plan_progress(plan_status=\"completed\") to finalize. Must be the only call of its reply.",
        "动手之前说明目标和步骤。计划可能要由人会签，因此步骤要写得让人看了就能判断，并在 `tools` 里列出该步骤要用的每个工具。\
         会改动东西的调用都在步骤的 `calls` 里声明，写明作用位置的参数：批准计划就是批准这些调用，其他改动会再次询问。complexity=\"complex\" 时，每完成一个主要步骤，调用 plan_progress() 记录进度；\
         全部步骤完成后，调用 plan_progress(plan_status=\"completed\") 收尾。本次回复里只能有这一个调用。",
    ),
    (
        "plan.overall_goal_ui",
        "The goal as the user reads it; one line if simple",
        "给用户看的目标；简单计划只写一行",
    ),
    ("plan.complexity", "complex: several steps", "complex：有多个步骤"),
    ("plan.internal_plan", "The steps in order", "按顺序排列的步骤"),
    ("plan.session_title", "One line", "一行文字"),
    (
        "clarify",
        "Declare the task you work on now. Under a complex plan, once before the first action. With needs_user_input=true it asks the user \
         question_to_user and waits for the answer. Needs a plan. Must be the only call of its reply.",
        "声明你现在要做的任务。计划为 complex 时，在第一个操作之前调用一次。needs_user_input=true 时会把 question_to_user 发给用户，\
         并等待回答。必须先有计划。本次回复里只能有这一个调用。",
    ),
    (
        "request_user",
        "Ask the user something that you cannot find out yourself and wait for the answer. Must be the only call of its reply.",
        "向用户询问你自己查不到的事，并等待回答。本次回复里只能有这一个调用。",
    ),
    (
        "plan_progress",
        "Record progress on the plan: step_id for a step just completed (or, with step_status, failed or skipped), step_summary for what came \
         of it or why, next_step for the step that comes next, plan_status=\"completed\" once everything is done. Must be the only call of its reply.",
        "记录计划的进度：step_id 是刚完成的步骤（或配合 step_status，表示失败或跳过），step_summary 写结果或原因，next_step 是接下来的步骤，\
         全部完成后用 plan_status=\"completed\"。本次回复里只能有这一个调用。",
    ),
    ("plan_progress.step_id", "The step just completed", "刚结束的步骤"),
    (
        "plan_progress.step_status",
        "How it ended; completed if left out",
        "结束状态；不写即为 completed",
    ),
    (
        "plan_progress.step_summary",
        "What came of it, or why it failed or was skipped",
        "得到了什么结果；失败或跳过时写原因",
    ),
    ("plan_progress.next_step", "The step that comes next", "接下来的步骤"),
    ("plan_progress.plan_status", "Everything is done", "全部完成"),
    (
        "write_todos",
        "Keep a short working list of your own; each call replaces the whole list. Use it for two or more meaningful actions, first of \
         all before the first expensive one. Items are short and say what is done; keep the statuses current, do not rewrite an \
         unchanged list. It may come together with action calls.",
        "给自己列一份简短的工作清单；每次调用都会替换整份清单。有两个以上实质操作时使用，第一次要在第一个耗时操作之前。\
         条目要短，写清做什么；状态随时更新，没有变化就不要重写。可以和操作类调用放在同一次回复里。",
    ),
];

/// Those of a step of `internal_plan`.
const STEP: [(&str, &str, &str); 5] = [
    ("id", "Short and unique, e.g. \"1\"", "简短且不重复，如 \"1\""),
    ("content", "What is done, in the user's language", "做什么，用用户的语言写"),
    ("intent", "Why, if it is not obvious", "为什么要做，不言自明时可省略"),
    ("tools", "Names of the tools this step uses", "本步骤要用的工具名"),
    (
        "calls",
        "The calls of this step that change something, e.g. {\"tool\": \"write_file\", \"arguments\": {\"path\": \"notes.md\"}, \"times\": 1}. \
         In a text `*` stands for a part without /, `**` for anything. times is 1 if left out",
        "本步骤里会改动东西的调用，如 {\"tool\": \"write_file\", \"arguments\": {\"path\": \"notes.md\"}, \"times\": 1}。\
         文字里 `*` 代表不含 / 的一段，`**` 代表任意内容；不写 times 就是 1 次",
    ),
];

/// The words of `key`; blank if it has none.
pub(in crate::reducer) fn of(key: &str, language: PromptLanguage) -> &'static str {
    WORDS
        .iter()
        .find(|(known, ..)| *known == key)
        .map_or("", |(_, english, chinese)| pick(language, english, chinese))
}

/// Puts the words into the schema of `tool`.
pub(in crate::reducer) fn describe(schema: &mut Value, tool: &str, language: PromptLanguage) {
    if let Some(parameters) = schema["properties"].as_object_mut() {
        for (name, own) in parameters {
            let words = of(&format!("{tool}.{name}"), language);
            if !words.is_empty() {
                own["description"] = json!(words);
            }
        }
    }
    for (name, english, chinese) in STEP {
        if let Some(own) = schema.pointer_mut(&format!("/properties/internal_plan/anyOf/0/items/properties/{name}")) {
            own["description"] = json!(pick(language, english, chinese));
        }
    }
}

fn pick<'a>(language: PromptLanguage, english: &'a str, chinese: &'a str) -> &'a str {
    match language {
        PromptLanguage::En => english,
        PromptLanguage::Zh => chinese,
    }
}
