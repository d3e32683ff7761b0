//! The demo at work on its plan: the next call after those that were made, and the final report.

use serde_json::{Value, json};

use super::brief::Brief;
use super::draft::Draft;
use super::log::Said;
use super::summary::{self, Source};
use super::words::Tongue;
use super::{Move, progress};

/// Files that one summary takes in.
const MAX_FILES: usize = 8;

/// What was called since the plan, sorted by purpose. A call counts once, whatever came back: the demo
/// tells of failures, it never insists.
#[derive(Default)]
struct Work<'a> {
    clarified: bool,
    listing: Option<&'a str>,
    reads: Vec<(&'a str, &'a str)>,
    written: Option<(&'a str, &'a str)>,
    checked: Option<&'a str>,
    /// Reports so far.
    reports: usize,
    completed: bool,
    /// The agent asked to go on after the last report.
    nudged: bool,
    mail: Vec<&'a str>,
}

impl<'a> Work<'a> {
    fn of(after: &'a [Said<'a>], draft: &Draft) -> Self {
        let mut work = Self::default();
        for said in after {
            match said {
                Said::Call { name, arguments, result } => work.call(name, arguments, result.unwrap_or_default(), draft),
                Said::Nudge => work.nudged = true,
                Said::Mail(text) => work.mail.push(text),
                Said::Text | Said::Feedback(_) => {}
            }
        }
        work
    }

    fn call(&mut self, name: &str, arguments: &'a Value, result: &'a str, draft: &Draft) {
        let text = |member| arguments.get(member).and_then(Value::as_str).unwrap_or_default();
        match name {
            "clarify" => self.clarified = true,
            "list_files" => self.listing = Some(result),
            "read_file" if self.written.is_some() && draft.output.as_deref() == Some(text("path")) => self.checked = Some(result),
            "read_file" => self.reads.push((text("path"), result)),
            "write_file" => self.written = Some((text("content"), result)),
            "plan_progress" => {
                self.reports += 1;
                self.nudged = false;
                self.completed |= text("plan_status") == "completed";
            }
            _ => {}
        }
    }

    /// Did the write happen? Only its own words count; everything else (refused, lapsed, failed) does not.
    fn wrote(&self) -> bool {
        self.written
            .is_some_and(|(_, result)| result.contains("created `") || result.contains("replaced `"))
    }

    /// Whether the file reads back as written. `None` means it was not read.
    fn confirmed(&self) -> Option<bool> {
        let (content, _) = self.written?;
        Some(self.checked?.trim_end() == content.trim_end())
    }

    /// The files that were really read.
    fn sources(&self) -> Vec<Source<'a>> {
        let read = self.reads.iter().filter(|(_, text)| !is_refusal(text));
        read.map(|(path, text)| Source { path, text }).collect()
    }
}

/// The next move on an approved (or not reviewed) plan.
pub(super) fn next(after: &[Said<'_>], draft: &Draft, tongue: Tongue, offers: &dyn Fn(&str) -> bool, parallel: bool) -> Move {
    let work = Work::of(after, draft);
    if !work.clarified && offers("clarify") {
        return Move::Call(vec![("clarify", draft.clarification())]);
    }
    if draft.reads
        && work.reports == 0
        && let Some(reading) = reading(&work, draft, parallel)
    {
        return reading;
    }
    if offers("plan_progress")
        && let Some(report) = due(&work, draft, tongue)
    {
        return Move::Call(vec![report]);
    }
    if let Some(output) = draft.output.as_ref() {
        if work.written.is_none() && !work.sources().is_empty() {
            let content = summary::compose(tongue, &work.sources());
            return Move::Call(vec![("write_file", json!({"path": output, "content": content}))]);
        }
        if work.wrote() && work.checked.is_none() {
            return Move::Call(vec![("read_file", json!({"path": output}))]);
        }
    }
    if offers("plan_progress") && (!work.completed || work.nudged) {
        let open = open_step(&work, draft);
        let last = draft.steps[2].0;
        let (name, mut arguments) = progress(open.is_none().then_some(last), &tongue.finished(open), None);
        arguments["plan_status"] = json!("completed");
        return Move::Call(vec![(name, arguments)]);
    }
    Move::Say(tell(&work, draft, tongue, false))
}

/// What is left to be read.
fn reading(work: &Work<'_>, draft: &Draft, parallel: bool) -> Option<Move> {
    let Some(listing) = work.listing else {
        return Some(Move::Call(vec![("list_files", json!({"path": "."}))]));
    };
    let mut wanted: Vec<_> = files_of(listing, draft)
        .into_iter()
        .filter(|path| work.reads.iter().all(|(read, _)| read != path))
        .map(|path| ("read_file", json!({"path": path})))
        .collect();
    if !parallel {
        wanted.truncate(1);
    }
    (!wanted.is_empty()).then_some(Move::Call(wanted))
}

/// The next move on one step in plan mode; what it declares tells what it is.
pub(super) fn step(after: &[Said<'_>], brief: &Brief, draft: &Draft, tongue: Tongue, parallel: bool) -> Move {
    let work = Work::of(after, draft);
    let gave_up = |why: String| Move::Call(vec![("plan_progress", json!({"step_status": "failed", "step_summary": why}))]);
    let (collects, writes) = (brief.declares("list_files"), brief.declares("write_file"));
    if (collects || writes)
        && let Some(reading) = reading(&work, draft, parallel)
    {
        return reading;
    }
    match &draft.output {
        Some(_) if writes && work.sources().is_empty() => gave_up(tongue.nothing_read()),
        Some(output) if writes => match work.written {
            None => {
                let content = summary::compose(tongue, &work.sources());
                Move::Call(vec![("write_file", json!({"path": output, "content": content}))])
            }
            Some((_, result)) if work.wrote() => Move::Say(tongue.written_to(output, result, None)),
            Some((_, result)) => gave_up(tongue.not_written(result)),
        },
        _ if collects => Move::Say(tell(&work, &Draft::reading_only(draft), tongue, false)),
        Some(output) if brief.declares("read_file") => match work.reads.last() {
            None => Move::Call(vec![("read_file", json!({"path": output}))]),
            Some((_, text)) if is_refusal(text) => gave_up(tongue.not_read_back(output)),
            Some((_, text)) => Move::Say(tongue.read_back(output, text.lines().count())),
        },
        // Nothing to do but to say what the steps before gave.
        _ if brief.progress.is_empty() => Move::Say(tongue.no_step_tools()),
        _ => Move::Say(brief.progress.clone()),
    }
}

/// The report on a step that has just ended, if one is due: the first two steps have one each, the third is
/// reported with the end of the plan.
fn due(work: &Work<'_>, draft: &Draft, tongue: Tongue) -> Option<(&'static str, Value)> {
    let (first, second, third) = (&draft.steps[0], &draft.steps[1], &draft.steps[2]);
    match work.reports {
        0 if !draft.reads => Some(progress(Some(first.0), &first.1, Some(&second.1))),
        0 => {
            let files = work.sources().len();
            Some(progress((files > 0).then_some(first.0), &tongue.was_read(files), Some(&second.1)))
        }
        1 if draft.output.is_none() => Some(progress(Some(second.0), &second.1, Some(&third.1))),
        1 => {
            let (_, result) = work.written?;
            Some(if work.wrote() {
                progress(Some(second.0), result, Some(&third.1))
            } else {
                progress(None, &tongue.not_written(result), None)
            })
        }
        _ => None,
    }
}

/// The id of a step that did not come to its end.
fn open_step(work: &Work<'_>, draft: &Draft) -> Option<&'static str> {
    (draft.output.is_some() && !work.wrote()).then(|| draft.steps[1].0)
}

/// The last words on what was done since the plan; `cut_short`: the turn's limits ended the work.
pub(super) fn report(after: &[Said<'_>], draft: &Draft, tongue: Tongue, cut_short: bool) -> String {
    tell(&Work::of(after, draft), draft, tongue, cut_short)
}

fn tell(work: &Work<'_>, draft: &Draft, tongue: Tongue, cut_short: bool) -> String {
    let mut parts = Vec::new();
    if cut_short {
        parts.push(tongue.cut_short());
    }
    let sources = work.sources();
    let paths: Vec<_> = sources.iter().map(|source| format!("`{}`", source.path)).collect();
    if !draft.reads {
        parts.push(tongue.no_tools());
    } else if paths.is_empty() {
        parts.push(tongue.nothing_read());
    } else {
        parts.push(tongue.read_these(&paths.join(", ")));
    }
    if sources.len() < work.reads.len() {
        parts.push(tongue.unreadable(work.reads.len() - sources.len()));
    }
    match (&draft.output, work.written) {
        (Some(output), Some((content, result))) if work.wrote() => {
            parts.push(tongue.written_to(output, result, work.confirmed()));
            parts.push(summary::overview(content).to_owned());
        }
        (Some(_), Some((content, result))) => {
            parts.push(tongue.not_written(result));
            parts.push(summary::overview(content).to_owned());
        }
        (Some(output), None) => parts.push(tongue.not_yet_written(output)),
        (None, _) if !sources.is_empty() => {
            let content = summary::compose(tongue, &sources);
            parts.push(summary::overview(&content).to_owned());
        }
        (None, _) => {}
    }
    for text in &work.mail {
        parts.push(tongue.left_out(text));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// The tool's or the agent's error instead of a file's text.
fn is_refusal(text: &str) -> bool {
    text.trim().is_empty() || (text.starts_with("error: ") && text.trim_end().lines().count() == 1)
}

/// The text files of a listing (`path<TAB>n bytes` lines), in its order, without our own output.
fn files_of<'a>(listing: &'a str, draft: &Draft) -> Vec<&'a str> {
    listing
        .lines()
        .filter_map(|line| line.split_once('\t').map(|(path, _)| path))
        .filter(|path| [".md", ".csv", ".txt"].iter().any(|end| path.ends_with(end)))
        .filter(|path| Some(*path) != draft.output.as_deref() && !path.starts_with('.'))
        .take(MAX_FILES)
        .collect()
}
