//! The demo's wording, in the language of the request.

/// Language of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    Chinese,
    English,
}

use Tongue::{Chinese, English};

/// What stands before all of the demo's words.
const LABELS: [&str; 2] = ["【演示模型 demo】", "[demo model]"];

const MAX_QUOTE_CHARS: usize = 200;

/// A greeting, a thank-you, or a question that asks for no work.
pub(super) fn is_chat(task: &str) -> bool {
    let words = task.to_lowercase();
    let any = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let bare = words.trim_matches(|c: char| c.is_whitespace() || ".。!！,，~～?？…".contains(c));
    if bare.is_empty() {
        return true;
    }
    let greeting = [
        "hi",
        "hello",
        "hey",
        "hi there",
        "hello there",
        "thanks",
        "thank you",
        "good morning",
        "ping",
        "test",
        "你好",
        "您好",
        "嗨",
        "在吗",
        "在么",
        "谢谢",
        "多谢",
        "早",
        "早上好",
        "下午好",
        "晚上好",
        "测试",
    ];
    let work = [
        "summar", "report", "write", "draft", "read", "list", "check", "create", "make", "compile", "collect", "总结", "汇总", "整理",
        "周报", "报告", "写", "生成", "读", "检查", "列出", "统计", "归纳", "准备",
    ];
    greeting.contains(&bare) || (words.contains(['?', '？']) && !any(&work))
}

/// Somebody's words on one line, short enough to be quoted in a plan.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

impl Tongue {
    /// Chinese as soon as a Han character occurs.
    pub(super) fn of(task: &str) -> Self {
        let han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}');
        if task.contains(han) { Chinese } else { English }
    }

    fn pick<'a>(self, chinese: &'a str, english: &'a str) -> &'a str {
        match self {
            Chinese => chinese,
            English => english,
        }
    }

    /// `text` with the mark that all of the demo's words carry.
    pub(super) fn labelled(self, text: &str) -> String {
        format!("{} {text}", self.pick(LABELS[0], LABELS[1]))
    }

    /// Words of the demo without that mark, to be quoted by itself.
    pub(super) fn unlabelled(text: &str) -> &str {
        let bare = LABELS.iter().find_map(|label| text.strip_prefix(label));
        bare.unwrap_or(text).trim_start()
    }

    pub(super) fn introduction(self) -> String {
        self.pick(
            "你好！我是内置的演示模型，不是真正的 AI。给我一个任务（例如“汇总本周周报”），我会先给出计划，等你确认后再动手。",
            "Hello! I am the built-in demo, no real AI. Give me a task (for example \"summarize this week's reports\"): \
             I show my plan first and act once you confirmed it.",
        )
        .to_owned()
    }

    pub(super) fn nothing_done(self) -> String {
        self.pick(
            "什么都还没有做：没有计划，也没有可用的工具。",
            "Nothing was done: there is no plan and no tool on offer.",
        )
        .to_owned()
    }

    pub(super) fn step_read(self) -> String {
        self.pick("查看工作区，读取相关文件", "Look through the workspace and read the files")
            .to_owned()
    }

    pub(super) fn step_write(self, output: &str) -> String {
        match self {
            Chinese => format!("把要点汇总写入 `{output}`"),
            English => format!("Write a summary of the main points to `{output}`"),
        }
    }

    pub(super) fn step_check(self, output: &str) -> String {
        match self {
            Chinese => format!("读回 `{output}` 核对"),
            English => format!("Read `{output}` back and compare"),
        }
    }

    pub(super) fn step_tell(self) -> String {
        self.pick("直接在聊天里给出结果，不写文件", "Give the result here in the chat, without a file")
            .to_owned()
    }

    pub(super) fn step_compare(self) -> String {
        self.pick("对照请求检查结果", "Compare the result with the request").to_owned()
    }

    pub(super) fn step_understand(self) -> String {
        self.pick("梳理请求", "Go through the request").to_owned()
    }

    pub(super) fn step_no_tools(self) -> String {
        self.pick(
            "确认可用的工具（目前没有文件工具）",
            "Check the tools on offer (no file tools at present)",
        )
        .to_owned()
    }

    pub(super) fn changed(self, edit: &str) -> String {
        let edit = one_line(edit);
        match self {
            Chinese => format!("；按修改意见：「{edit}」"),
            English => format!("; with the change asked for: \"{edit}\""),
        }
    }

    pub(super) fn explanation(self, question: &str, steps: &str, output: Option<&str>) -> String {
        let question = one_line(question);
        match (self, output) {
            (Chinese, Some(output)) => format!(
                "关于「{question}」：计划只有下面几步，唯一的写操作是 `{output}`（已有同名文件会被替换），不会删除或修改别的文件。\n{steps}\n计划仍在等待确认。"
            ),
            (Chinese, None) => {
                format!("关于「{question}」：计划只有下面几步，不会写入、修改或删除任何文件。\n{steps}\n计划仍在等待确认。")
            }
            (English, Some(output)) => format!(
                "About \"{question}\": the plan has just these steps. The only file it writes is `{output}` (an existing one is \
                 replaced); nothing is deleted and no other file is changed.\n{steps}\nThe plan still waits for your confirmation."
            ),
            (English, None) => format!(
                "About \"{question}\": the plan has just these steps and writes, changes or deletes no file.\n{steps}\n\
                 The plan still waits for your confirmation."
            ),
        }
    }

    pub(super) fn was_read(self, files: usize) -> String {
        match self {
            Chinese => format!("读取了 {files} 个文件"),
            English => format!("{files} files read"),
        }
    }

    pub(super) fn not_written(self, result: &str) -> String {
        let why = one_line(result.strip_prefix("error: ").unwrap_or(result));
        match self {
            Chinese => format!("没有写入文件：{why}"),
            English => format!("The file was not written: {why}"),
        }
    }

    pub(super) fn not_yet_written(self, output: &str) -> String {
        match self {
            Chinese => format!("还没有做：写入 `{output}`。"),
            English => format!("Not done: writing `{output}`."),
        }
    }

    pub(super) fn finished(self, open: Option<&str>) -> String {
        match (self, open) {
            (Chinese, None) => "全部步骤已执行".to_owned(),
            (Chinese, Some(step)) => format!("第 {step} 步没有完成，其余到此为止"),
            (English, None) => "All steps are carried out".to_owned(),
            (English, Some(step)) => format!("Step {step} was not carried out; the rest ends here"),
        }
    }

    pub(super) fn cut_short(self) -> String {
        self.pick(
            "到了本次任务的上限，先停在这里。",
            "The limit of this task is reached, so I stop here.",
        )
        .to_owned()
    }

    pub(super) fn no_tools(self) -> String {
        self.pick(
            "我没有可用的文件工具，所以没有读取也没有写入任何内容；设置 `tools.workspace` 后可以再试。",
            "I have no file tools, so nothing was read or written; set `tools.workspace` and try again.",
        )
        .to_owned()
    }

    pub(super) fn nothing_read(self) -> String {
        self.pick("没有读到任何文件。", "No file was read.").to_owned()
    }

    pub(super) fn read_these(self, paths: &str) -> String {
        match self {
            Chinese => format!("已读取：{paths}。"),
            English => format!("Read: {paths}."),
        }
    }

    /// `confirmed`: it reads back as written. `None` means it was not read back.
    pub(super) fn written_to(self, output: &str, result: &str, confirmed: Option<bool>) -> String {
        let size = result.trim_end().split_once(": ").map_or("", |(_, size)| size);
        let check = match confirmed {
            Some(true) => self.pick("读回内容一致", "reading it back gave the same text"),
            Some(false) => self.pick(
                "但读回的内容不一样，请检查",
                "but reading it back gave a different text, please check",
            ),
            None => self.pick("没有读回核对", "it was not read back"),
        };
        match self {
            Chinese => format!("汇总已写入 `{output}`（{size}），{check}。"),
            English => format!("The summary is in `{output}` ({size}); {check}."),
        }
    }

    pub(super) fn read_back(self, output: &str, lines: usize) -> String {
        match self {
            Chinese => format!("读回了 `{output}`，共 {lines} 行。"),
            English => format!("`{output}` was read back: {lines} lines."),
        }
    }

    pub(super) fn not_read_back(self, output: &str) -> String {
        match self {
            Chinese => format!("`{output}` 没有读到。"),
            English => format!("`{output}` could not be read."),
        }
    }

    pub(super) fn no_step_tools(self) -> String {
        self.pick("这一步没有可用的工具，什么都没有做。", "This step has no tools; nothing was done.")
            .to_owned()
    }

    /// What the demo thinks of a plan after a step.
    pub(super) fn looked_at(self, failed: bool) -> String {
        match (self, failed) {
            (Chinese, false) => "这一步完成了，计划不变。".to_owned(),
            (Chinese, true) => "这一步没有完成，继续后面的步骤。".to_owned(),
            (English, false) => "The step is done; the plan stays as it is.".to_owned(),
            (English, true) => "The step was not carried out; the next one follows.".to_owned(),
        }
    }

    pub(super) fn carried_out(self) -> String {
        self.pick("计划已按步骤走完：", "The plan was carried out step by step:").to_owned()
    }

    pub(super) fn unreadable(self, files: usize) -> String {
        match self {
            Chinese => format!("有 {files} 个文件没有读到。"),
            English => format!("{files} files could not be read."),
        }
    }

    pub(super) fn left_out(self, text: &str) -> String {
        let text = one_line(text);
        match self {
            Chinese => format!("期间收到的补充没有处理：「{text}」"),
            English => format!("A message that came meanwhile was not taken into account: \"{text}\""),
        }
    }

    pub(super) fn title(self) -> &'static str {
        self.pick("汇总", "Summary")
    }

    pub(super) fn overview(self, files: usize, lines: usize, done: usize, all: usize) -> String {
        let boxes = match (self, all) {
            (_, 0) => String::new(),
            (Chinese, _) => format!("\n- 待办完成 {done}/{all}"),
            (English, _) => format!("\n- Tasks ticked: {done} of {all}"),
        };
        match self {
            Chinese => format!("- 文件 {files} 个，共 {lines} 行{boxes}"),
            English => format!("- Files: {files}, lines: {lines}{boxes}"),
        }
    }

    pub(super) fn page_facts(self, lines: usize, headings: &str) -> String {
        match self {
            Chinese => format!("- {lines} 行；小节：{headings}"),
            English => format!("- {lines} lines; sections: {headings}"),
        }
    }

    pub(super) fn boxes(self, done: usize, all: usize) -> String {
        match self {
            Chinese => format!("- 完成 {done}/{all}"),
            English => format!("- Ticked: {done} of {all}"),
        }
    }

    pub(super) fn open_items(self) -> &'static str {
        self.pick("未完成：", "Open:")
    }

    pub(super) fn points(self) -> &'static str {
        self.pick("要点：", "Points:")
    }

    pub(super) fn table_facts(self, rows: usize, columns: &str) -> String {
        match self {
            Chinese => format!("- {rows} 行数据；列：{columns}"),
            English => format!("- {rows} rows; columns: {columns}"),
        }
    }
}
