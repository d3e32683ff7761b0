//! What the reader is asked, by the kind of the gate and the language of the demo.

use countersign_agent::domain::Locale;

/// What one letter stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) letter: &'static str,
    label: &'static str,
    pub(super) effect: DemoEffect,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum DemoEffect {
    Say(&'static str),
    /// Asks for words and sends them. `end` follows words without a question mark.
    Write {
        question: &'static str,
        end: &'static str,
    },
}

/// The question for an answer to one kind of card.
pub(super) struct DemoWords {
    lead: &'static str,
    /// Empty: any words are the answer.
    pub(super) choices: &'static [Choice],
    pub(super) help: &'static str,
}

impl DemoWords {
    /// The line behind which the reader types.
    pub(super) fn question(&self) -> String {
        let letters = self.choices.iter().map(|choice| format!("[{}] {}", choice.letter, choice.label));
        let letters = letters.collect::<Vec<_>>().join(" · ");
        format!("{}{letters} > ", self.lead)
    }
}

const fn say(letter: &'static str, label: &'static str, text: &'static str) -> Choice {
    Choice {
        letter,
        label,
        effect: DemoEffect::Say(text),
    }
}

const fn write(letter: &'static str, label: &'static str, question: &'static str, end: &'static str) -> Choice {
    Choice {
        letter,
        label,
        effect: DemoEffect::Write { question, end },
    }
}

const PLAN: [&[Choice]; 2] = [
    &[
        say("o", "OK", "OK"),
        write("m", "changes", "Your changes", ""),
        write("q", "question", "Your question", "?"),
        say("c", "cancel", "cancel"),
    ],
    &[
        say("o", "OK", "OK"),
        write("m", "修改", "你的修改意见", ""),
        write("q", "提问", "你的问题", "？"),
        say("c", "取消", "取消"),
    ],
];
const CALLS: [&[Choice]; 2] = [
    &[say("a", "approve", "OK"), say("r", "reject", "no")],
    &[say("a", "批准", "OK"), say("r", "拒绝", "拒绝")],
];
const LIMIT: [&[Choice]; 2] = [
    &[say("g", "go on", "OK"), say("c", "end the task", "cancel")],
    &[say("g", "继续", "OK"), say("c", "结束任务", "取消")],
];

/// What is asked about a gate of this kind, as the API names it.
pub(super) fn about(kind: &str, locale: Locale) -> DemoWords {
    let (at, lead) = match locale {
        Locale::EnUs => (0, "Your answer: "),
        Locale::ZhCn => (1, "请答复："),
    };
    let (choices, help): (_, [&str; 2]) = match kind {
        "plan_review" => (
            PLAN[at],
            [
                "Type one of the letters, or your changes or question in words.",
                "请输入方括号里的字母，或直接写修改意见、问题。",
            ],
        ),
        "tool_approval" => (
            CALLS[at],
            [
                "Type one of the letters. Other words reject the calls and are sent as the reason.",
                "请输入方括号里的字母；输入其他内容视为拒绝，并作为拒绝理由。",
            ],
        ),
        "budget" => (LIMIT[at], ["Type one of the letters.", "请输入方括号里的字母。"]),
        // A question takes any words.
        _ => (&[][..], ["Type your answer in words.", "请用文字回答。"]),
    };
    DemoWords {
        lead: if choices.is_empty() {
            lead.trim_end_matches([':', '：', ' '])
        } else {
            lead
        },
        choices,
        help: help[at],
    }
}

/// How the demo ends when the input does.
pub(super) fn input_ended(locale: Locale) -> &'static str {
    match locale {
        Locale::EnUs => "The input has ended, so the demo ends. You did not answer the last card; nothing on it was carried out.",
        Locale::ZhCn => "输入已结束，演示到此为止。最后一张卡片没有得到答复，卡片上的操作都没有执行。",
    }
}

/// How the demo ends when nobody answers.
pub(super) fn nobody_answered(locale: Locale) -> &'static str {
    match locale {
        Locale::EnUs => "Nobody answered for 15 minutes, and the demo ends. Nothing that the last card asks about was done.",
        Locale::ZhCn => "15 分钟内没有人答复，演示结束。最后一张卡片上的操作都没有执行。",
    }
}
