//! A card before a platform encodes it, as text: everything that it holds, in its order.
//!
//! Words of ours stand bare. `[label]`, `«foreign»`, `«¶foreign, of several lines»`, `{tool, tool}`, `@person`, `#chat`, `⟨moment⟩`. Every
//! value is taken apart by name: a new one does not compile before it is shown here.

use crate::channels::card::{
    AnswerPart, Ask, Button, Call, CallAsk, Card, CardLine, Exhibit, FeedbackButtons, Form, Head, Keep, Part, Span, Steps, Sure, TaskLine,
};

/// The card, a line each.
pub(super) fn outline(card: &Card<'_>) -> String {
    let Card {
        head,
        summary,
        ahead,
        parts,
        foot,
    } = card;
    let mut out = Outline::default();
    if let Some(head) = head {
        out.head(head);
    }
    out.row("summary", summary);
    out.lines("ahead", ahead);
    parts.iter().for_each(|part| out.part(part));
    out.lines("foot", foot);
    out.0
}

#[derive(Default)]
struct Outline(String);

impl Outline {
    /// What goes over several lines stands further in from its second line on.
    fn row(&mut self, name: &str, text: &str) {
        let mut lines = text.trim_end().lines();
        self.0.push_str(format!("{name}: {}", lines.next().unwrap_or_default()).trim_end());
        for line in lines {
            self.0.push_str(format!("\n    {line}").trim_end_matches(' '));
        }
        self.0.push('\n');
    }

    fn lines(&mut self, name: &str, lines: &[CardLine]) {
        lines.iter().for_each(|said| self.row(name, &line(said)));
    }

    fn rows(&mut self, name: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        texts.into_iter().for_each(|text| self.row(name, text.as_ref()));
    }

    fn head(&mut self, head: &Head) {
        let Head {
            title,
            subject,
            tone,
            state,
            facts,
        } = head;
        let facts: String = facts.iter().map(|fact| format!(" | {fact}")).collect();
        self.row("head", &format!("{tone:?} | {title} ({state}){facts}"));
        self.rows("subject", subject.as_ref().map(|subject| format!("«{subject}»")));
    }

    fn part(&mut self, part: &Part<'_>) {
        match part {
            Part::Lines(name, said) => self.lines(name, said),
            Part::Steps(steps) => self.steps(steps),
            Part::Open { label, rows, more } => {
                self.row("open", &format!("[{label}]"));
                self.rows("not done", rows.iter().map(|row| format!("«{row}»")));
                self.rows("more", more);
            }
            Part::Note { name, label, text } => self.row(name, &format!("[{label}] model's «¶{text}»")),
            Part::Answer(AnswerPart { to, text, ours }) => {
                self.rows("to", to.as_ref().map(span));
                self.row("answer", &format!("model's «¶{text}»"));
                self.row("ours", &line(ours));
            }
            Part::Call(row) => self.call(row),
            Part::Ask(asked) => self.ask(asked),
            Part::AskAgain(gate, again) => {
                self.row("asks again about", gate.as_str());
                self.button("again", again);
            }
            Part::TryAgain(turn, again) => {
                self.row("tries again", turn.as_str());
                self.button("again", again);
            }
            Part::Feedback(turn, FeedbackButtons { up, down }) => {
                self.row("feedback on", turn.as_str());
                self.button("up", up);
                self.button("down", down);
            }
        }
    }

    fn steps(&mut self, all: &Steps<'_>) {
        let Steps {
            steps,
            marks,
            lines,
            tasks,
            more,
            done,
        } = all;
        for (at, (said, TaskLine { content, beside })) in lines.iter().zip(tasks).enumerate() {
            let step = &steps[at];
            let stands = if step.unfinished { "; left off" } else { "" };
            let name = if *marks {
                format!("{} ({:?}{stands})", at + 1, step.status)
            } else {
                (at + 1).to_string()
            };
            let said = line(said);
            self.row(&name, &said);
            // The same step without its mark.
            let task = format!("«{content}»{}", line(beside));
            if !said.ends_with(&task) {
                self.row("as a task", &task);
            }
        }
        self.rows("more", more);
        self.rows("done", done);
    }

    fn call(&mut self, call: &Call<'_>) {
        let Call {
            number,
            row,
            tool,
            effect,
            status,
            justification,
            warning,
            need,
            preview,
            arguments,
            output,
            standing,
            hidden,
            ask,
        } = call;
        let name = format!("call {number}");
        let classes = format!("{} {}", row.effect.as_str(), row.status.as_str());
        self.row(&name, &format!("{} «{tool}» | {effect}, {status} ({classes})", row.id));
        self.rows("why", justification.as_ref().map(|why| format!("«{why}»")));
        self.rows("warning", warning);
        self.rows("need", (!need.is_empty()).then(|| line(need)));
        self.rows("standing", (!standing.is_empty()).then(|| line(standing)));
        for (name, shown) in [
            ("preview", preview.as_ref()),
            ("arguments", Some(arguments)),
            ("output", output.as_ref()),
        ] {
            self.rows(name, shown.map(|Exhibit { label, text }| format!("[{label}] «¶{text}»")));
        }
        self.rows("hidden", hidden);
        if let Some(CallAsk { gate, id, yes, no, always }) = ask {
            self.row("asks about", &format!("{gate} {id}"));
            self.button("yes", yes);
            self.button("no", no);
            always.iter().for_each(|always| self.button("always", always));
        }
    }

    fn ask(&mut self, ask: &Ask<'_>) {
        let Ask { gate, buttons, form, keep } = ask;
        self.row("asks about", gate.as_str());
        if let Some([yes, no]) = buttons {
            self.button("yes", yes);
            self.button("no", no);
        }
        if let Some(Form {
            label,
            placeholder,
            submit,
            opens,
        }) = form
        {
            self.row("form", &format!("{label} | {placeholder} | {submit}"));
            self.button("opens it", opens);
        }
        if let Some(Keep { label, steps, submit }) = keep {
            self.row("boxes", label);
            self.rows("☑", steps.iter().map(|(id, line)| format!("{id} «{line}»")));
            self.button("keeps them", submit);
        }
    }

    fn button(&mut self, name: &str, button: &Button) {
        let Button { label, style, sure } = button;
        self.row(name, &format!("({label}) {style:?}"));
        if let Some(Sure {
            title,
            text,
            about,
            yes,
            no,
        }) = sure
        {
            let about = about.as_ref().map(|about| format!(" «{about}»")).unwrap_or_default();
            self.row("  sure", &format!("{title} | {text}{about} | ({yes}) ({no})"));
        }
    }
}

fn line(spans: &[Span]) -> String {
    spans.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Ours(words) => words.clone(),
        Span::Label(words) => format!("[{words}]"),
        Span::Foreign(text) => format!("«{text}»"),
        Span::Block(text) => format!("«¶{text}»"),
        Span::Code(text) => format!("`{text}`"),
        Span::Tools(names) => format!("{{{}}}", names.join(", ")),
        Span::Person(id) => format!("@{id}"),
        Span::Chat(id) => format!("#{id}"),
        Span::Time(at) => format!("⟨{}⟩", at.0),
    }
}
