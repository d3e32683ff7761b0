//! The blocks of a message or view, one rule a block type.

use std::collections::HashSet;

use serde_json::Value;

use super::faults::Faults;
use super::rich::check_rich_text;

/// All blocks; inputs stand in views only.
pub(super) fn check_blocks(faults: &mut Faults, blocks: &[Value], in_view: bool) {
    let mut ids = HashSet::new();
    let mut tables = 0;
    for (number, block) in blocks.iter().enumerate() {
        let kind = block["type"].as_str().unwrap_or_default();
        let at = format!("blocks[{number}] {kind}");
        if let Some(id) = block.get("block_id") {
            let text = faults.string(&at, block, "block_id", 255);
            if !ids.insert(text) {
                faults.add(&at, format_args!("block_id {id} is used twice"));
            }
        }
        match (kind, in_view) {
            ("header", _) => {
                faults.known(&at, block, &["type", "block_id", "text"]);
                faults.plain(&at, &block["text"], 150);
            }
            ("divider", _) => {
                faults.known(&at, block, &["type", "block_id"]);
            }
            ("section", _) => section(faults, &at, block),
            ("context", _) => {
                faults.known(&at, block, &["type", "block_id", "elements"]);
                for element in faults.list(&at, block, "elements", 10) {
                    faults.text(&at, element, 3000);
                }
            }
            ("actions", _) => actions(faults, &at, block),
            ("rich_text", _) => check_rich_text(faults, &at, block),
            ("plan", false) => plan(faults, &at, block),
            ("context_actions", false) => context_actions(faults, &at, block),
            ("markdown", false) => {
                faults.known(&at, block, &["type", "block_id", "text"]);
                faults.string(&at, block, "text", 12_000);
            }
            ("table", false) => {
                tables += 1;
                table(faults, &at, block);
            }
            ("input", true) => input(faults, &at, block),
            _ => faults.add(&at, "a block that has no place here"),
        }
    }
    faults.at_most("tables", tables, 1);
}

const STATUSES: [&str; 4] = ["pending", "in_progress", "complete", "error"];

fn plan(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "title", "tasks"]);
    faults.string(at, block, "title", 150);
    let mut ids = HashSet::new();
    for (number, task) in faults.list(at, block, "tasks", 50).iter().enumerate() {
        let at = format!("{at} task {number}");
        const KNOWN: [&str; 7] = ["type", "task_id", "title", "status", "details", "output", "sources"];
        if task["type"] != "task_card" || !faults.known(&at, task, &KNOWN) {
            faults.add(&at, "a task that is no task_card");
            continue;
        }
        let id = faults.string(&at, task, "task_id", 255);
        if !ids.insert(id) {
            faults.add(&at, format_args!("task_id {id} is used twice"));
        }
        let title = faults.string(&at, task, "title", 150);
        if title.contains("<!") || title.contains("<@") {
            faults.add(&at, "a title that looks like a mention");
        }
        faults.string(&at, task, "status", 20);
        faults.one_of(&at, task, "status", &STATUSES);
        for member in ["details", "output"] {
            let rich = &task[member];
            if !rich.is_null() && rich["type"] != "rich_text" {
                faults.add(&at, format_args!("{member} is no rich text"));
            } else if !rich.is_null() {
                check_rich_text(faults, &at, rich);
            }
        }
        if !task["sources"].is_null() {
            faults.add(&at, "sources, which we do not make");
        }
    }
}

/// Of its elements only the pair of thumbs is known.
fn context_actions(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "elements"]);
    for element in faults.list(at, block, "elements", 5) {
        let known = ["type", "action_id", "positive_button", "negative_button"];
        if element["type"] != "feedback_buttons" || !faults.known(at, element, &known) {
            faults.add(at, "an element that is no feedback_buttons");
            continue;
        }
        faults.string(at, element, "action_id", 255);
        for name in ["positive_button", "negative_button"] {
            let (at, button) = (format!("{at} {name}"), &element[name]);
            if faults.known(&at, button, &["text", "value", "accessibility_label"]) {
                faults.plain(&at, &button["text"], 75);
                faults.string(&at, button, "value", 2000);
            }
        }
    }
}

fn section(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "text", "fields", "expand"]);
    if block["text"].is_null() && block["fields"].is_null() {
        faults.add(at, "neither text nor fields");
    }
    if !block["text"].is_null() {
        faults.text(at, &block["text"], 3000);
    }
    if !block["fields"].is_null() {
        for field in faults.list(at, block, "fields", 10) {
            faults.text(at, field, 2000);
        }
    }
}

fn actions(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "elements"]);
    let (mut ids, mut primary) = (HashSet::new(), 0);
    for button in faults.list(at, block, "elements", 25) {
        if button["type"] == "checkboxes" {
            checkboxes(faults, at, button);
            let id = faults.string(at, button, "action_id", 255);
            if !ids.insert(id) {
                faults.add(at, format_args!("action_id {id} is used twice"));
            }
            continue;
        }
        const KNOWN: [&str; 8] = [
            "type",
            "action_id",
            "value",
            "text",
            "style",
            "confirm",
            "url",
            "accessibility_label",
        ];
        if button["type"] != "button" || !faults.known(at, button, &KNOWN) {
            faults.add(at, "an element that is no button");
            continue;
        }
        let id = faults.string(at, button, "action_id", 255);
        if !ids.insert(id) {
            faults.add(at, format_args!("action_id {id} is used twice"));
        }
        faults.string(at, button, "value", 2000);
        faults.plain(at, &button["text"], 75);
        faults.one_of(at, button, "style", &["primary", "danger"]);
        primary += usize::from(button["style"] == "primary");
        if let Some(label) = button["accessibility_label"].as_str() {
            faults.at_most("accessibility_label", label.encode_utf16().count(), 75);
        }
        if !button["confirm"].is_null() {
            confirm(faults, &format!("{at} confirm"), &button["confirm"]);
        }
    }
    faults.at_most("primary buttons of one block", primary, 1);
}

/// Ten options at most; those that are ticked at first are among them, word for word.
fn checkboxes(faults: &mut Faults, at: &str, boxes: &Value) {
    faults.known(
        at,
        boxes,
        &["type", "action_id", "options", "initial_options", "confirm", "focus_on_load"],
    );
    let options = faults.list(at, boxes, "options", 10);
    let mut values = HashSet::new();
    for option in options {
        faults.known(at, option, &["text", "value", "description"]);
        faults.plain(at, &option["text"], 75);
        let value = faults.string(at, option, "value", 150);
        if !values.insert(value) {
            faults.add(at, format_args!("option {value} is there twice"));
        }
    }
    if !boxes["initial_options"].is_null() {
        for option in faults.list(at, boxes, "initial_options", 10) {
            if !options.contains(option) {
                faults.add(at, "an initial option that is no option");
            }
        }
    }
}

fn confirm(faults: &mut Faults, at: &str, dialog: &Value) {
    faults.known(at, dialog, &["title", "text", "confirm", "deny", "style"]);
    faults.plain(at, &dialog["title"], 100);
    faults.text(at, &dialog["text"], 300);
    faults.plain(at, &dialog["confirm"], 30);
    faults.plain(at, &dialog["deny"], 30);
    faults.one_of(at, dialog, "style", &["primary", "danger"]);
}

fn table(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(at, block, &["type", "block_id", "rows", "column_settings"]);
    for row in faults.list(at, block, "rows", 100) {
        let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
        if cells.is_empty() {
            faults.add(at, "a row without cells");
        }
        faults.at_most("cells of a row", cells.len(), 20);
        for cell in cells {
            if cell["type"] == "rich_text" {
                check_rich_text(faults, at, cell);
            } else if cell["type"] != "raw_text" || cell["text"].as_str().is_none_or(str::is_empty) {
                faults.add(at, "a cell without text");
            }
        }
    }
}

fn input(faults: &mut Faults, at: &str, block: &Value) {
    faults.known(
        at,
        block,
        &["type", "block_id", "label", "hint", "element", "optional", "dispatch_action"],
    );
    faults.plain(at, &block["label"], 2000);
    if !block["hint"].is_null() {
        faults.plain(at, &block["hint"], 2000);
    }
    const KNOWN: [&str; 8] = [
        "type",
        "action_id",
        "multiline",
        "min_length",
        "max_length",
        "focus_on_load",
        "placeholder",
        "initial_value",
    ];
    let element = &block["element"];
    if element["type"] != "plain_text_input" || !faults.known(at, element, &KNOWN) {
        faults.add(at, "an element that is no text input");
        return;
    }
    faults.string(at, element, "action_id", 255);
    if !element["placeholder"].is_null() {
        faults.plain(at, &element["placeholder"], 150);
    }
    if element["max_length"].as_u64().is_some_and(|max| !(1..=3000).contains(&max)) {
        faults.add(at, "max_length is not 1 to 3000");
    }
}
