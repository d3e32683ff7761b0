//! A log of plan mode as a reader takes it who knows nothing of our marks: which message belongs to which step, and what is due next.

use countersign_agent::domain::{Message, Role, StepStatus};

/// What is asked of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Planning,
    Executing,
    Reflecting,
    Concluding,
}

/// One time that a step was carried out.
#[derive(Debug)]
pub struct Run {
    /// Id of the step.
    pub step: String,
    /// Place of its brief.
    pub brief: usize,
    /// How often the plan was looked at afterwards.
    pub looks: usize,
}

/// The whole log, read from its beginning.
#[derive(Debug)]
pub struct Reading<'a> {
    log: &'a [Message],
    /// In whose log each message stands. `None` means the turn's own log.
    pub scopes: Vec<Option<String>>,
    pub stage: Stage,
    /// A limit was reached, and nobody has granted more yet.
    pub at_limit: bool,
    pub runs: Vec<Run>,
    /// Places of conclusions.
    pub conclusions: Vec<usize>,
}

impl<'a> Reading<'a> {
    pub fn of(log: &'a [Message]) -> Result<Self, String> {
        let mut reading = Self {
            log,
            scopes: Vec::with_capacity(log.len()),
            stage: Stage::Planning,
            at_limit: false,
            runs: Vec::new(),
            conclusions: Vec::new(),
        };
        for (at, message) in log.iter().enumerate() {
            let scope = reading.take(at, message)?;
            reading.scopes.push(scope);
        }
        Ok(reading)
    }

    /// Goes on by one message; gives the step in whose log it stands. Only what we say ourselves turns the stage.
    fn take(&mut self, at: usize, message: &Message) -> Result<Option<String>, String> {
        let begins = |tag: &str| message.content.starts_with(tag);
        match message.role {
            Role::User if begins("<mailbox>") => return Ok(None),
            Role::User if begins("<plan_feedback>") => self.stage = Stage::Planning,
            Role::User if begins("<plan-step>") => {
                let step = message
                    .step
                    .clone()
                    .ok_or_else(|| format!("a brief in no step's log: {}", message.content))?;
                self.stage = Stage::Executing;
                self.runs.push(Run { step, brief: at, looks: 0 });
            }
            Role::System if begins("<plan-reflection>") => {
                self.stage = Stage::Reflecting;
                let run = self.runs.last_mut().ok_or("a plan is looked at before its first step")?;
                run.looks += 1;
            }
            Role::System if begins("<plan-conclusion>") => {
                self.stage = Stage::Concluding;
                self.conclusions.push(at);
            }
            // The first says that the limit is reached, the next that there is more.
            Role::System if begins("<turn-limit>") => {
                let ends = self.at_limit;
                self.at_limit = !ends;
                return Ok(self.present().filter(|_| ends).map(str::to_owned));
            }
            Role::System | Role::User | Role::Assistant | Role::Tool => {}
        }
        Ok(self.present().map(str::to_owned))
    }

    /// The step in whose log the next message stands.
    pub fn present(&self) -> Option<&str> {
        let run = self.runs.last().filter(|_| self.stage == Stage::Executing && !self.at_limit)?;
        Some(&run.step)
    }

    /// What a request is to hold now, behind the system prompt and what was before the task.
    pub fn due(&self) -> Vec<&'a Message> {
        let present = self.present();
        let mail = |message: &Message| message.role == Role::User && message.content.starts_with("<mailbox>");
        let placed = self.log.iter().zip(&self.scopes);
        placed
            .filter(|(message, scope)| scope.as_deref() == present || mail(message))
            .map(|(message, _)| message)
            .collect()
    }

    pub fn brief(&self, run: &Run) -> &'a str {
        &self.log[run.brief].content
    }

    /// What was said in a run, without the brief.
    pub fn said(&self, run: &Run) -> Vec<&'a Message> {
        let end = self.runs.iter().map(|other| other.brief).find(|brief| *brief > run.brief);
        let placed = self.log.iter().zip(&self.scopes).take(end.unwrap_or(self.log.len()));
        let own = placed.skip(run.brief + 1).filter(|(_, scope)| scope.as_ref() == Some(&run.step));
        own.map(|(message, _)| message).collect()
    }

    /// How a run that is over ended, and the words that came of it where it was ended by words.
    pub fn end(&self, run: &Run) -> (StepStatus, Option<&'a str>) {
        let said = self.said(run);
        let Some(last) = said.last() else {
            return (StepStatus::Failed, None);
        };
        if last.role == Role::Assistant && last.calls.is_empty() {
            return (StepStatus::Completed, Some(&last.content));
        }
        let mut asked = said.iter().flat_map(|message| &message.calls);
        let report = asked
            .rfind(|call| Some(&call.id) == last.call_id.as_ref() && call.name == "plan_progress")
            .filter(|_| !last.content.starts_with("error:"));
        let Some(report) = report else {
            return (StepStatus::Failed, None);
        };
        let told: serde_json::Value = serde_json::from_str(&report.arguments).unwrap_or_default();
        let status = match told["step_status"].as_str() {
            Some("failed") => StepStatus::Failed,
            Some("skipped") => StepStatus::Skipped,
            Some(_) | None => StepStatus::Completed,
        };
        (status, None)
    }
}
