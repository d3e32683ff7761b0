//! What we say, as the console's views. What a card shows is decided in [`crate::channels::card`].

use serde_json::{Value, json};

use super::markdown;
use super::shown::Shown;
use super::view::{AlwaysView, AskView, BoxView, CallAskView, CallLine, CardPage, FieldView, KeepView, PageBlock, StepLine, SureView};
use crate::channels::card::{self, Call, Caps, Card, CardLine, CardWords, Head, Part, Span, Surface, Tone};
use crate::channels::wording::{clock_time, notice_text, with_names};
use countersign_agent::domain::{ActionStatus, ActionView, Locale, Outbound, StepStatus, StepView, visible};
use countersign_agent::template::Templates;

/// `content` as the console draws it; none for what is no message. `name` gives people their names.
pub fn card_page(templates: &Templates, locale: Locale, name: &dyn Fn(&str) -> String, content: &Outbound) -> Option<CardPage> {
    if let Outbound::Notice(notice) = content {
        return Some(CardPage {
            shape: "notice",
            text: notice_text(templates, locale, with_names(notice, name).as_ref().unwrap_or(notice)),
            ..CardPage::default()
        });
    }
    let words = words(templates, locale);
    let card = Card::of(words, Caps::ALL, content)?;
    Some(PageEncoder { words, name }.page(&card))
}

fn words(templates: &Templates, locale: Locale) -> CardWords<'_> {
    CardWords {
        templates,
        locale,
        surface: Surface::Console,
        knows: |_| true,
    }
}

/// Plan steps as lines; `marks`: work may have begun.
pub fn step_lines(templates: &Templates, locale: Locale, steps: &[StepView], marks: bool) -> Vec<StepLine> {
    let lines = steps.iter().enumerate().map(|(at, step)| {
        let mark = if step.unfinished { "unfinished" } else { mark(step.status) };
        StepLine {
            number: at + 1,
            mark: if marks { mark } else { "plain" },
            status: if marks {
                templates.say(locale, &format!("console.step.{mark}"), json!({}))
            } else {
                String::new()
            },
            content: step.content.clone(),
            intent: match &step.intent {
                Some(intent) => templates.say(locale, "plan.intent", json!({"intent": intent})),
                None => String::new(),
            },
            tools: step.tools.clone(),
        }
    });
    lines.collect()
}

/// Tool calls as blocks without buttons, for the full record; arguments and outputs are as long as they are.
pub fn call_blocks(templates: &Templates, locale: Locale, calls: &[ActionView]) -> Vec<PageBlock> {
    let words = words(templates, locale);
    let lines = calls.iter().enumerate();
    lines
        .map(|(at, row)| call(&Card::call(words, at + 1, row), String::new()))
        .collect()
}

/// Markdown as safe HTML.
pub fn markdown_html(text: &str) -> String {
    markdown::html(text)
}

fn mark(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Pending => "pending",
        StepStatus::InProgress => "in_progress",
        StepStatus::Completed => "completed",
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "skipped",
    }
}

fn prose(text: &str) -> PageBlock {
    PageBlock::Prose {
        html: markdown::html(text),
        quiet: false,
    }
}

/// Words of the model, as a quotation under a label of ours.
fn quote(label: &str, text: &str) -> PageBlock {
    let mut html = String::from("<p><strong>");
    markdown::escape(label, &mut html);
    html.push_str("</strong></p><blockquote>");
    html.push_str(&markdown::html(text));
    html.push_str("</blockquote>");
    PageBlock::Prose { html, quiet: false }
}

struct PageEncoder<'a> {
    words: CardWords<'a>,
    name: &'a dyn Fn(&str) -> String,
}

impl PageEncoder<'_> {
    fn page(&self, card: &Card<'_>) -> CardPage {
        let mut page = card.head.as_ref().map_or_else(
            || CardPage {
                shape: "prose",
                ..CardPage::default()
            },
            head,
        );
        for part in &card.parts {
            match part {
                Part::Ask(asked) => page.ask = Some(ask(asked)),
                Part::AskAgain(gate, asked) => {
                    page.ask = Some(AskView {
                        id: gate.to_string(),
                        again: asked.label.clone(),
                        ..AskView::default()
                    });
                }
                Part::TryAgain(turn, asked) => {
                    page.ask = Some(AskView {
                        turn: turn.to_string(),
                        again: asked.label.clone(),
                        ..AskView::default()
                    });
                }
                // The page has no buttons for them.
                Part::Feedback(..) => (),
                Part::Lines(name, lines) => self.lines(name, lines, &mut page.blocks),
                Part::Steps(steps) => page.blocks.push(PageBlock::Steps {
                    items: step_lines(self.words.templates, self.words.locale, steps.steps, steps.marks),
                }),
                Part::Open { label, rows, .. } => page.blocks.push(PageBlock::List {
                    label: label.clone(),
                    items: rows.clone(),
                }),
                Part::Note { label, text, .. } => page.blocks.push(quote(label, text)),
                Part::Answer(answer) => {
                    page.blocks.extend((!answer.text.is_empty()).then(|| prose(&answer.text)));
                    self.quiet(&answer.ours, &mut page.blocks);
                }
                Part::Call(row) => {
                    let told = [&row.need, &row.standing].into_iter().filter(|line| !line.is_empty());
                    let told: Vec<String> = told.map(|line| self.plain(line)).collect();
                    page.blocks.push(call(row, told.join(" ")));
                }
            }
        }
        page.foot = card.foot.iter().map(|line| self.plain(line)).collect();
        page
    }

    /// A label with its text, the model's words, or words of ours.
    fn lines(&self, name: &str, lines: &[CardLine], blocks: &mut Vec<PageBlock>) {
        for line in lines {
            match line.as_slice() {
                [Span::Label(label), text @ ..] => blocks.push(PageBlock::Labelled {
                    label: label.clone(),
                    text: self.plain(text),
                }),
                [Span::Block(text)] => blocks.push(prose(text)),
                line if name == "prompt" => blocks.push(PageBlock::Prompt { html: self.html(line) }),
                line => self.quiet(line, blocks),
            }
        }
    }

    /// Words of ours around the matter.
    fn quiet(&self, line: &[Span], blocks: &mut Vec<PageBlock>) {
        if line.is_empty() {
            return;
        }
        let said = self.html(line);
        if let Some(PageBlock::Prose { html, quiet: true }) = blocks.last_mut() {
            html.push_str(&said);
        } else {
            blocks.push(PageBlock::Prose { html: said, quiet: true });
        }
    }

    /// A line as safe HTML.
    fn html(&self, line: &[Span]) -> String {
        let mut html = String::from("<p>");
        for span in line {
            match span {
                Span::Ours(words) | Span::Label(words) => bold_words(words, &mut html),
                Span::Foreign(text) | Span::Block(text) => markdown::words(text, &mut html),
                Span::Code(text) => {
                    html.push_str("<code>");
                    markdown::escape(text, &mut html);
                    html.push_str("</code>");
                }
                Span::Tools(names) => {
                    for (at, name) in names.iter().enumerate() {
                        html.push_str(if at > 0 { " <code>" } else { "<code>" });
                        markdown::escape(name, &mut html);
                        html.push_str("</code>");
                    }
                }
                Span::Person(id) => markdown::escape(&(self.name)(id), &mut html),
                Span::Chat(id) => markdown::escape(id, &mut html),
                Span::Time(at) => html.push_str(&clock_time(*at)),
            }
        }
        html.push_str("</p>");
        html
    }

    /// A line without markup, for the template to escape.
    fn plain(&self, line: &[Span]) -> String {
        let spell = |span: &Span| match span {
            Span::Ours(text) | Span::Label(text) | Span::Foreign(text) | Span::Block(text) | Span::Code(text) => text.clone(),
            Span::Tools(names) => names.join(" "),
            Span::Person(id) => (self.name)(id),
            Span::Chat(id) => id.clone(),
            Span::Time(at) => clock_time(*at),
        };
        line.iter().map(spell).collect()
    }
}

/// Our wording is Markdown, and bold is the only mark that it uses.
fn bold_words(said: &str, html: &mut String) {
    for (at, piece) in said.split("**").enumerate() {
        let (open, close) = if at % 2 == 1 { ("<strong>", "</strong>") } else { ("", "") };
        html.push_str(open);
        markdown::escape(piece, html);
        html.push_str(close);
    }
}

fn head(head: &Head) -> CardPage {
    CardPage {
        shape: "card",
        tone: match head.tone {
            Tone::Wait => "wait",
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Info => "info",
            Tone::Quiet => "quiet",
        },
        title: head.title.clone(),
        subtitle: head.subject.clone().unwrap_or_else(|| head.facts.join(" · ")),
        tag: head.state.clone(),
        ..CardPage::default()
    }
}

/// `need`: who must approve it, how many have, and what it allows from now on, in words.
fn call(call: &Call<'_>, need: String) -> PageBlock {
    PageBlock::Call(Box::new(CallLine {
        number: call.number,
        tool: call.row.tool.clone(),
        effect: call.row.effect,
        effect_word: call.effect.clone(),
        status: call.row.status,
        status_word: call.status.clone(),
        justification: call.justification.clone().unwrap_or_default(),
        warning: call.warning.clone(),
        need: Some(need).filter(|need| !need.is_empty()),
        hidden: call.hidden.clone(),
        open: call.ask.is_some(),
        preview: call.preview.as_ref().map(Shown::of),
        arguments: Shown::of(&call.arguments),
        output: call.output.as_ref().map(Shown::of),
        ask: call.ask.as_ref().map(|ask| CallAskView {
            id: call.row.id.to_string(),
            gate: ask.gate.to_string(),
            ok: ask.yes.label.clone(),
            no: ask.no.label.clone(),
            sure: ask.yes.sure.as_ref().map(sure),
            always: ask.always.as_ref().and_then(|always| {
                Some(AlwaysView {
                    label: always.label.clone(),
                    sure: sure(always.sure.as_ref()?),
                })
            }),
            editable: call.row.status == ActionStatus::Pending,
            fields: fields(&call.arguments.text),
        }),
    }))
}

/// The arguments of a call, one by one. A page shows a text without what cannot be seen, and ends each line with the same mark. Where that
/// would change an argument, there are no fields, and the call is edited as JSON.
fn fields(arguments: &str) -> Vec<FieldView> {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else {
        return Vec::new();
    };
    let fields: Option<Vec<FieldView>> = arguments
        .into_iter()
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) if text.contains('\r') || visible(&text) != text => return None,
                Value::String(text) => text,
                other => other.to_string(),
            };
            let rows = text.lines().count().clamp(1, 12);
            Some(FieldView { name, text, rows })
        })
        .collect();
    fields.unwrap_or_default()
}

fn sure(sure: &card::Sure) -> SureView {
    SureView {
        title: sure.title.clone(),
        text: sure.text.clone(),
        about: sure.about.clone(),
        yes: sure.yes.clone(),
        no: sure.no.clone(),
    }
}

fn ask(ask: &card::Ask<'_>) -> AskView {
    let mut view = AskView {
        id: ask.gate.to_string(),
        ..AskView::default()
    };
    if let Some([ok, no]) = &ask.buttons {
        (view.ok, view.no) = (ok.label.clone(), no.label.clone());
        view.no_sure = no.sure.as_ref().map(sure);
    }
    if let Some(form) = &ask.form {
        (view.label, view.placeholder, view.submit) = (form.label.clone(), form.placeholder.clone(), form.submit.clone());
    }
    view.keep = ask.keep.as_ref().map(|keep| KeepView {
        steps: keep
            .steps
            .iter()
            .map(|(id, line)| BoxView {
                id: (*id).to_owned(),
                line: line.clone(),
            })
            .collect(),
    });
    view
}

#[cfg(test)]
mod tests {
    use super::fields;

    /// A field that a page would change is none: an edit of another argument would change this one, too.
    #[test]
    fn an_argument_that_cannot_be_seen_whole_has_no_field() {
        let names = |arguments: &str| fields(arguments).into_iter().map(|field| field.name).collect::<Vec<_>>();
        assert_eq!(names(r#"{"path":"a.csv","count":2,"text":"一\n二"}"#), ["count", "path", "text"]);
        for hidden in [r"\ufeffid", r"\u001b[31m", r"a\u200cb", r"a\u2028b", r"a\r\nb"] {
            assert_eq!(
                names(&format!(r#"{{"path":"a.csv","text":"{hidden}"}}"#)),
                Vec::<String>::new(),
                "{hidden}"
            );
        }
    }
}
