//! Small cards that have every kind of part, and each part in all its variants: what an encoder must know.

use countersign_agent::domain::{ActionId, ActionStatus, ActionView, EffectClass, GateId, Millis, StepStatus, StepView, TurnId};

use crate::channels::card::{
    AnswerPart, Ask, Button, ButtonStyle, Call, CallAsk, Card, CardLine, Exhibit, FeedbackButtons, Form, Head, Keep, Part, Span, Steps,
    Sure, TaskLine, Tone,
};

/// By name.
pub(in crate::channels) type Samples = Vec<(&'static str, Card<'static>)>;

/// Foreign text that tries to be markup.
const FOREIGN: &str = "a <b> & *c* `d` <at id=all></at> <!here> [e](https://e.example)";

pub(in crate::channels) fn samples() -> Samples {
    [heads(), lines(), steps(), words(), calls(), asks()]
        .into_iter()
        .flatten()
        .collect()
}

fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn owned(text: &str) -> String {
    text.to_owned()
}

fn ours(text: &str) -> CardLine {
    vec![Span::Ours(owned(text))]
}

fn of(parts: Vec<Part<'static>>) -> Card<'static> {
    Card {
        summary: owned("summary"),
        parts,
        ..Card::default()
    }
}

/// Foreign text that is longer than a line may be.
fn long() -> String {
    format!("{FOREIGN} {}", "长".repeat(120))
}

fn heads() -> Samples {
    let head = |tone, subject: Option<&str>, state: &str, facts: &[&str]| Card {
        head: Some(Head {
            title: owned("Title"),
            subject: subject.map(owned),
            tone,
            state: owned(state),
            facts: facts.iter().map(|fact| owned(fact)).collect(),
        }),
        ..of(Vec::new())
    };
    vec![
        ("head, waits", head(Tone::Wait, None, "waits", &["3 steps", "version 2"])),
        ("head, good", head(Tone::Good, None, "good", &["3 steps"])),
        ("head, bad, about something foreign", head(Tone::Bad, Some(&long()), "bad", &[])),
        ("head, informs, without a word on how it stands", head(Tone::Info, None, "", &[])),
        ("head, quiet", head(Tone::Quiet, None, "quiet", &[])),
        (
            "foreign summary that is too long",
            Card {
                summary: long(),
                ..Card::default()
            },
        ),
    ]
}

/// Every kind of span, and what may stand beside it.
fn spans() -> Vec<CardLine> {
    let foreign = || Span::Foreign(owned("foreign\n<@U0EVE0001> *x*"));
    let people = ["ou_u1", "U0ALICE01", "S0614TZR7", "od-ops", "api <client>\n"];
    let mut people: CardLine = people.map(|id| Span::Person(owned(id))).into();
    people.insert(1, Span::Ours(owned(" and ")));
    vec![
        vec![Span::Label(owned("Label:")), foreign(), Span::Ours(owned(" — **bold** end "))],
        vec![Span::Ours(owned("ours ")), foreign(), foreign()],
        vec![Span::Ours(owned("ends **bold**")), foreign()],
        vec![Span::Block(format!("first\n\n{FOREIGN}\n- third"))],
        vec![Span::Tools(vec![owned("read_file"), owned("odd `tool`\n<b>")])],
        vec![
            Span::Ours(owned("to: ")),
            Span::Code(owned(r#""<@U0EVE0001> *x* (once)""#)),
            Span::Ours(owned(" (once)")),
        ],
        people,
        vec![
            Span::Chat(owned("C0GROUP01")),
            Span::Ours(owned(" ")),
            Span::Chat(owned("oc_<b>\n")),
        ],
        vec![Span::Time(Millis(1_765_432_100_123)), Span::Ours(owned("."))],
        CardLine::new(),
    ]
}

fn lines() -> Samples {
    let foot = Card {
        foot: spans(),
        ..of(Vec::new())
    };
    let nothing = vec![Part::Lines("nothing", vec![CardLine::new()])];
    vec![
        ("lines", of(vec![Part::Lines("said", spans())])),
        ("a line with nothing in it", of(nothing)),
        ("foot", foot),
    ]
}

/// Words of the model beside a card.
fn note(text: String) -> Part<'static> {
    Part::Note {
        name: "note",
        label: owned("The assistant says:"),
        text,
    }
}

fn step(content: &str, status: StepStatus, unfinished: bool) -> StepView {
    StepView {
        id: owned(content),
        content: owned(content),
        status,
        tools: Vec::new(),
        intent: None,
        unfinished,
    }
}

/// As the neutral card has it, where `marks` are drawn from [`StepView`]. Beside each step stands `beside`.
fn steps_of(steps: Vec<StepView>, marks: bool, beside: &CardLine, more: Option<&str>) -> Part<'static> {
    let task = |step: &StepView| TaskLine {
        content: step.content.clone(),
        beside: beside.clone(),
    };
    let line = |step: &StepView| {
        let mark = marks.then(|| Span::Ours(owned("⬜ ")));
        let said = mark.into_iter().chain([Span::Foreign(step.content.clone())]);
        said.chain(beside.iter().cloned()).collect()
    };
    Part::Steps(Steps {
        lines: steps.iter().map(line).collect(),
        tasks: steps.iter().map(task).collect(),
        marks,
        more: more.map(owned),
        done: marks.then(|| owned("1 of 2")),
        steps: kept(steps),
    })
}

fn steps() -> Samples {
    use StepStatus as S;
    let tools = vec![Span::Ours(owned(" · ")), Span::Tools(vec![owned("read_file")])];
    let why = vec![Span::Ours(owned(" — why: ")), Span::Foreign(owned("a <b>"))];
    let all = || {
        let stands = [
            (S::Pending, false),
            (S::InProgress, false),
            (S::InProgress, true),
            (S::Completed, false),
            (S::Failed, false),
            (S::Skipped, false),
        ];
        stands.map(|(status, unfinished)| step("step", status, unfinished)).to_vec()
    };
    let pending = |content: &str| vec![step(content, S::Pending, false), step("second", S::Pending, false)];
    vec![
        (
            "steps that wait",
            of(vec![steps_of(pending(FOREIGN), false, &tools, Some("and 3 more"))]),
        ),
        (
            "steps that all are shown",
            of(vec![steps_of(pending("first"), false, &CardLine::new(), None)]),
        ),
        ("steps under way", of(vec![steps_of(all(), true, &why, None)])),
        (
            "steps under way, not all shown",
            of(vec![steps_of(pending(FOREIGN), true, &tools, Some("and 3 more"))]),
        ),
        (
            "steps under way, nothing beside them",
            of(vec![steps_of(pending("first"), true, &CardLine::new(), None)]),
        ),
        (
            "steps under way, one too long for a title",
            of(vec![steps_of(pending(&"x".repeat(148)), true, &CardLine::new(), None)]),
        ),
        (
            "steps under way on a card that asks",
            of(vec![steps_of(pending("first"), true, &tools, None), asks_for(true, None, None)]),
        ),
    ]
}

fn words() -> Samples {
    let open = |more: Option<&str>| Part::Open {
        label: owned("Not done:"),
        rows: vec![owned("3. write"), owned(FOREIGN)],
        more: more.map(owned),
    };
    let answer = |to, text: &str, ours| {
        Part::Answer(AnswerPart {
            to,
            text: owned(text),
            ours,
        })
    };
    let to = |id: &str| Some(Span::Person(owned(id)));
    vec![
        ("steps that were not done", of(vec![open(Some("and 3 more"))])),
        ("steps that were not done, all of them", of(vec![open(None)])),
        ("note", of(vec![note(format!("# Head\n\n**bold** {FOREIGN}\n\n- item"))])),
        ("note that is too long", of(vec![note("words\n\n---\n\n".repeat(9))])),
        (
            "answer to a person of Lark",
            of(vec![answer(
                to("ou_u1"),
                &format!("## Head\n\n**bold** {FOREIGN}"),
                ours("Stopped."),
            )]),
        ),
        (
            "answer to a person of Slack",
            of(vec![answer(to("U0ALICE01"), "| a | b |\n|---|---|\n| 1 | 2 |", CardLine::new())]),
        ),
        (
            "answer without words of the model",
            of(vec![answer(None, "", vec![Span::Block(owned("done:\nwrite a <b>"))])]),
        ),
        ("feedback", of(vec![feedback()])),
    ]
}

fn feedback() -> Part<'static> {
    let (up, down) = (
        button("Helpful", ButtonStyle::Plain, None),
        button("Not helpful", ButtonStyle::Plain, None),
    );
    Part::Feedback(kept(TurnId::new("turn_1")), FeedbackButtons { up, down })
}

fn button(label: &str, style: ButtonStyle, sure: Option<Sure>) -> Button {
    Button {
        label: owned(label),
        style,
        sure,
    }
}

fn sure(about: Option<&str>) -> Sure {
    Sure {
        title: owned("Sure?"),
        text: owned("It cannot be undone."),
        about: about.map(owned),
        yes: owned("Yes"),
        no: owned("Back"),
    }
}

fn row(effect: EffectClass, status: ActionStatus) -> &'static ActionView {
    kept(ActionView {
        id: ActionId::new("act_1"),
        tool: owned("encoders use the call's own"),
        effect,
        justification: String::new(),
        arguments: String::new(),
        hidden: 0,
        preview: None,
        quorum: 1,
        approvers: None,
        votes: 0,
        always: None,
        standing: None,
        status,
        outdated: false,
        edited: false,
        output: None,
    })
}

fn exhibit(label: &str, text: &str) -> Exhibit {
    Exhibit {
        label: owned(label),
        text: owned(text),
    }
}

fn call(number: usize, effect: EffectClass, status: ActionStatus) -> Call<'static> {
    Call {
        number,
        row: row(effect, status),
        tool: owned("tool"),
        effect: owned(effect.as_str()),
        status: owned(status.as_str()),
        justification: None,
        warning: None,
        need: CardLine::new(),
        preview: None,
        arguments: exhibit("Arguments:", "{}"),
        output: None,
        standing: CardLine::new(),
        hidden: None,
        ask: None,
    }
}

fn call_ask(yes: Button, always: Option<Button>) -> Option<CallAsk<'static>> {
    Some(CallAsk {
        gate: kept(GateId::new("rv_1")),
        id: ActionId::new("act_1_2"),
        yes,
        no: button("Reject", ButtonStyle::Plain, Some(sure(None))),
        always,
    })
}

fn calls() -> Samples {
    use {ActionStatus as A, EffectClass as E};
    let stands = [
        (E::State, A::Pending),
        (E::Read, A::Approved),
        (E::Write, A::Running),
        (E::Destructive, A::Executed),
        (E::Read, A::Rejected),
        (E::Read, A::Failed),
        (E::Read, A::Expired),
        (E::Read, A::Unknown),
    ];
    let calls = stands.into_iter().enumerate();
    let calls = calls.map(|(at, (effect, status))| Part::Call(Box::new(call(at + 1, effect, status))));
    let always = button("Always here", ButtonStyle::Plain, Some(sure(Some(FOREIGN))));
    let whole = Call {
        tool: owned("odd `tool` <!here>"),
        justification: Some(owned(FOREIGN)),
        warning: Some(owned("It may have run.")),
        need: vec![Span::Person(owned("U0BOB0001")), Span::Ours(owned(" must approve."))],
        preview: Some(exhibit("Preview:", "--- a\n+++ b ``` <at id=all></at>")),
        arguments: exhibit("Arguments:", "{\n  \"text\": \"<!channel> ```\"\n}"),
        output: Some(exhibit("Output:", "")),
        standing: vec![Span::Ours(owned("Allowed until ")), Span::Time(Millis(1_765_432_100_123))],
        hidden: Some(owned("7 characters are not shown.")),
        ask: call_ask(button("Approve", ButtonStyle::Danger, Some(sure(None))), Some(always)),
        ..call(1, E::Destructive, A::Unknown)
    };
    let simple = Call {
        ask: call_ask(button("Approve", ButtonStyle::Primary, None), None),
        ..call(2, E::Write, A::Pending)
    };
    vec![
        ("calls", of(calls.collect())),
        ("call that has everything", of(vec![Part::Call(Box::new(whole))])),
        ("call with two buttons", of(vec![Part::Call(Box::new(simple))])),
    ]
}

fn asks_for(buttons: bool, form: Option<Form>, keep: Option<Keep<'static>>) -> Part<'static> {
    let yes = button("OK", ButtonStyle::Primary, None);
    let no = button("Cancel", ButtonStyle::Plain, Some(sure(None)));
    Part::Ask(Box::new(Ask {
        gate: kept(GateId::new("rv_1")),
        buttons: buttons.then_some([yes, no]),
        form,
        keep,
    }))
}

fn asks() -> Samples {
    let form = || Form {
        label: owned("Changes"),
        placeholder: owned("What shall be different?"),
        submit: owned("Send"),
        opens: button("Change…", ButtonStyle::Plain, None),
    };
    let keep = Keep {
        label: owned("Keep **only** these:"),
        steps: vec![("1", format!("1. {FOREIGN}")), ("b-2", format!("2. {}", "🚀".repeat(60)))],
        submit: button("Keep the ticked ones", ButtonStyle::Plain, None),
    };
    let again = button("Ask again", ButtonStyle::Plain, None);
    vec![
        ("buttons", of(vec![asks_for(true, None, None)])),
        ("buttons and forms", of(vec![asks_for(true, Some(form()), Some(keep))])),
        (
            "a question, which any message answers",
            of(vec![asks_for(false, Some(form()), None)]),
        ),
        (
            "the button after a review expired",
            of(vec![Part::AskAgain(kept(GateId::new("rv_1")), again)]),
        ),
        (
            "the button after the model was away",
            of(vec![Part::TryAgain(
                kept(TurnId::new("turn_1")),
                button("Try again", ButtonStyle::Primary, None),
            )]),
        ),
    ]
}
