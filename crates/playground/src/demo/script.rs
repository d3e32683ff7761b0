//! The script of the demo model: its scenes, the words that call for them, and its lines in Chinese and English.

/// One line in both languages; `{}` is filled in by the model.
pub(super) type Line = [&'static str; 2];

pub(super) struct Scene {
    /// A request or a change with one of these words calls for the scene. Empty: any words do.
    pub(super) triggers: &'static [&'static str],
    /// Tools that the scene cannot do without.
    pub(super) needs: &'static [&'static str],
    pub(super) steps: &'static [Step],
}

/// A step of a plan; in its words `{}` is the file to write.
pub(super) struct Step {
    pub(super) words: Line,
    /// Tool and path, in the order of the calls. [`EVERY_FILE`] and [`OUTPUT`] stand for paths that are known later.
    pub(super) calls: &'static [(&'static str, &'static str)],
}

/// In a call: one call for each text file of the workspace.
pub(super) const EVERY_FILE: &str = "**";
/// In a call: the file to write.
pub(super) const OUTPUT: &str = "{}";
/// The file to write when nobody names one.
pub(super) const DEFAULT_OUTPUT: &str = "summary.md";

/// The first scene whose words were said and whose tools are there is played.
pub(super) const SCENES: &[Scene] = &[
    Scene {
        triggers: NO_FILE,
        needs: &["list_files", "read_file"],
        steps: &[READ, TELL],
    },
    Scene {
        triggers: &[],
        needs: &["list_files", "read_file", "write_file"],
        steps: &[READ, WRITE, READ_BACK],
    },
    Scene {
        triggers: &[],
        needs: &["list_files", "read_file"],
        steps: &[READ, TELL],
    },
    Scene {
        triggers: &[],
        needs: &[],
        steps: &[LOOK_FOR_TOOLS, TELL],
    },
];

pub(super) const READ: Step = Step {
    words: ["查看工作区，读取相关文件", "Look through the workspace and read the files"],
    calls: &[("list_files", "."), ("read_file", EVERY_FILE)],
};
const WRITE: Step = Step {
    words: ["把要点汇总写入 `{}`", "Write a summary of the main points to `{}`"],
    calls: &[("write_file", OUTPUT)],
};
const READ_BACK: Step = Step {
    words: ["读回 `{}` 核对", "Read `{}` back and compare"],
    calls: &[("read_file", OUTPUT)],
};
pub(super) const TELL: Step = Step {
    words: ["直接在聊天里给出结果，不写文件", "Give the result here in the chat, without a file"],
    calls: &[],
};
const LOOK_FOR_TOOLS: Step = Step {
    words: [
        "确认可用的工具（目前没有文件工具）",
        "Check the tools on offer (no file tools at present)",
    ],
    calls: &[],
};

/// "OK, but leave step 2 out": no file is wanted.
const NO_FILE: &[&str] = &[
    "不写文件",
    "不要写",
    "别写",
    "不用写",
    "第二步别做",
    "不要第二步",
    "去掉第二步",
    "只要草稿",
    "don't write",
    "do not write",
    "write no file",
    "without a file",
    "skip step 2",
    "leave out step 2",
    "remove step 2",
    "draft only",
];
/// What stands before the name of a file that is to be written: "写到 a.md", "save it as a.md".
pub(super) const BEFORE_OUTPUT: &[&str] = &["到", "成", "为", "入", "叫", " to", " as", " into", " in", " called", " named"];
/// A request that is nothing but one of these is answered with [`HELLO`].
pub(super) const GREETINGS: &[&str] = &[
    "",
    "hi",
    "hello",
    "hey",
    "thanks",
    "thank you",
    "ping",
    "test",
    "你好",
    "您好",
    "嗨",
    "在吗",
    "谢谢",
    "早上好",
    "下午好",
    "晚上好",
    "测试",
];
/// A question with one of these is a request; any other is answered with [`HELLO`].
pub(super) const WORK: &[&str] = &[
    "summar", "report", "write", "draft", "read", "list", "check", "create", "make", "compile", "collect", "总结", "汇总", "整理", "周报",
    "报告", "写", "生成", "读", "检查", "列出", "统计", "归纳", "准备",
];
/// A request with one of these is answered with [`WHAT_MATTERS`] before there is a plan.
pub(super) const ASK_FIRST: &[&str] = &["ask me", "问我"];

/// Stands before everything that the demo says.
pub(super) const LABEL: Line = ["【演示模型 demo】 ", "[demo model] "];
pub(super) const HELLO: Line = [
    "你好！我是内置的演示模型，不是真正的 AI。给我一个任务（例如“汇总本周周报”），我会先给出计划，等你确认后再动手。",
    "Hello! I am the built-in demo, no real AI. Give me a task (for example \"summarize this week's reports\"): I show my plan first and \
     act once you confirmed it.",
];
pub(super) const WHAT_MATTERS: Line = ["这次最重要的是什么？", "What matters most to you here?"];
pub(super) const CHANGED: Line = ["；按修改意见：「{}」", "; with the change asked for: \"{}\""];
pub(super) const ABOUT_WRITING: Line = [
    "关于「{}」：计划只有下面几步，唯一的写操作是 `{}`（已有同名文件会被替换），不会删除或修改别的文件。\n{}\n计划仍在等待确认。",
    "About \"{}\": the plan has just these steps. The only file it writes is `{}` (an existing one is replaced); nothing is deleted and \
     no other file is changed.\n{}\nThe plan still waits for your confirmation.",
];
pub(super) const ABOUT_READING: Line = [
    "关于「{}」：计划只有下面几步，不会写入、修改或删除任何文件。\n{}\n计划仍在等待确认。",
    "About \"{}\": the plan has just these steps and writes, changes or deletes no file.\n{}\nThe plan still waits for your confirmation.",
];

pub(super) const FILES_READ: Line = ["已读取：{}。", "Read: {}."];
pub(super) const FILES_UNREADABLE: Line = ["有 {} 个文件没有读到。", "{} files could not be read."];
pub(super) const NOTHING_READ: Line = ["没有读到任何文件。", "No file was read."];
pub(super) const WRITTEN: Line = ["汇总已写入 `{}`（{}）。", "The summary is in `{}` ({})."];
pub(super) const NOT_WRITTEN: Line = ["没有写入文件：{}", "The file was not written: {}"];
pub(super) const NOT_DONE: Line = ["还没有做：写入 `{}`。", "Not done: writing `{}`."];
pub(super) const READ_AGAIN: Line = ["读回了 `{}`，共 {} 行。", "`{}` was read back: {} lines."];
pub(super) const READ_AGAIN_SAME: Line = ["读回了 `{}`，内容一致。", "`{}` was read back: it is the same text."];
pub(super) const READ_AGAIN_OTHER: Line = [
    "读回了 `{}`，但内容不一样，请检查。",
    "`{}` was read back: it is a different text, please check.",
];
pub(super) const NOT_READ_AGAIN: Line = ["没有读回 `{}`。", "`{}` was not read back."];
pub(super) const NO_FILE_WRITTEN: Line = ["没有写文件。", "No file was written."];
pub(super) const NO_TOOLS: Line = [
    "我没有可用的文件工具，所以没有读取也没有写入任何内容；设置 `tools.workspace` 后可以再试。",
    "I have no file tools, so nothing was read or written; set `tools.workspace` and try again.",
];
pub(super) const NOTHING_DONE: Line = [
    "什么都还没有做：没有计划，也没有可用的工具。",
    "Nothing was done: there is no plan and no tool on offer.",
];
pub(super) const CUT_SHORT: Line = [
    "到了本次任务的上限，先停在这里。",
    "The limit of this task is reached, so I stop here.",
];
pub(super) const MAIL: Line = [
    "期间收到的补充没有处理：「{}」",
    "A message that came meanwhile was not taken into account: \"{}\"",
];
pub(super) const STEP_DONE: Line = ["这一步完成了，计划不变。", "The step is done; the plan stays as it is."];
pub(super) const STEP_FAILED: Line = [
    "这一步没有完成，继续后面的步骤。",
    "The step was not carried out; the next one follows.",
];
pub(super) const CARRIED_OUT: Line = ["计划已按步骤走完：", "The plan was carried out step by step:"];
/// How a step ended, as the agent and as the demo writes it.
pub(super) const SIGNS: &[(&str, &str)] = &[("completed", "✓"), ("failed", "✗"), ("skipped", "–")];

pub(super) const TITLE: Line = ["汇总", "Summary"];
pub(super) const OVERVIEW: Line = ["- 文件 {} 个，共 {} 行", "- Files: {}, lines: {}"];
pub(super) const TICKED: Line = ["- 待办完成 {}/{}", "- Tasks ticked: {} of {}"];
pub(super) const LINES: Line = ["共 {} 行", "{} lines"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    Chinese,
    English,
}

impl Tongue {
    /// Chinese as soon as a Han character occurs.
    pub(super) fn of(words: &str) -> Self {
        if words.contains(is_han) { Self::Chinese } else { Self::English }
    }

    /// `line` in this language, its gaps filled with `parts` one after the other.
    pub(super) fn say(self, line: Line, parts: &[&str]) -> String {
        let mut pieces = line[self as usize].split("{}");
        let mut said = pieces.next().unwrap_or_default().to_owned();
        for (piece, part) in pieces.zip(parts.iter().chain(std::iter::repeat(&""))) {
            said.push_str(part);
            said.push_str(piece);
        }
        said
    }
}

pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}
