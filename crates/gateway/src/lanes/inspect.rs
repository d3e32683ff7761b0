//! A stored turn as others may see it, in domain types.

use countersign_agent::domain::{
    Budget, CallDraft, ChannelKind, Conversation, GateId, Message, Plan, Todo, ToolSpec, TurnReason, UndoneCount,
};
use countersign_agent::reducer::{self, Capsule, Env, Turn, UndoneRecord};

use super::state::read;
use super::{Runner, WorkError};
use crate::store::{ActionRecord, StoreError, TurnRow};

/// What the API shows of a turn beyond its row.
#[derive(Clone, Debug)]
pub struct Details {
    /// The plan, once there is one.
    pub plan: Option<Plan>,
    /// The model's own list.
    pub todos: Vec<Todo>,
    /// Replacements of that list.
    pub todos_revision: u32,
    pub budget: Budget,
    pub pauses: u32,
    /// What failed, for an admin.
    pub error: Option<String>,
    pub answer: Option<String>,
    /// Steps that were open at the end.
    pub open_steps: Vec<String>,
    /// Memory for later turns.
    pub capsule: Option<Capsule>,
    pub gate: Option<GateId>,
    /// How many calls were not carried out, by reason.
    pub undone: Vec<UndoneCount>,
}

/// The plan in a turn's stored state. Only the plan is read, so that the state of a newer version shows its plan as well.
pub fn plan_of(row: &TurnRow) -> Option<Plan> {
    #[derive(serde::Deserialize)]
    struct StoredPlan {
        plan: Option<Plan>,
    }
    let stored: StoredPlan = serde_json::from_str(&row.state).ok()?;
    stored.plan
}

/// Did the turn end because the model's server was away?
pub fn ended_by_outage(row: &TurnRow) -> bool {
    row.reason == Some(TurnReason::ModelError) && outage_of(row).is_some()
}

/// Does the turn wait for a model's server that is away?
pub fn waits_for_model(row: &TurnRow) -> bool {
    row.reason.is_none() && outage_of(row).is_some()
}

fn outage_of(row: &TurnRow) -> Option<serde::de::IgnoredAny> {
    #[derive(serde::Deserialize)]
    struct StoredOutage {
        outage: Option<serde::de::IgnoredAny>,
    }
    let stored: StoredOutage = serde_json::from_str(&row.state).ok()?;
    stored.outage
}

/// How many calls of a turn were not carried out, by reason. Read like [`plan_of`].
pub fn undone_of(row: &TurnRow) -> Vec<UndoneCount> {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct StoredCalls {
        undone: Vec<UndoneRecord>,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Stored {
        calls: StoredCalls,
    }
    let stored: Stored = serde_json::from_str(&row.state).unwrap_or_default();
    UndoneCount::of(stored.calls.undone.iter().map(|known| known.told.why))
}

impl Runner {
    /// Reads what is stored in the turn's state.
    ///
    /// # Errors
    /// [`WorkError::Unreadable`] for a turn of a newer version.
    pub fn details(&self, row: &TurnRow) -> Result<Details, WorkError> {
        let state = read(row)?;
        let open_steps = if state.status.is_final() {
            reducer::open_steps(&state)
        } else {
            Vec::new()
        };
        Ok(Details {
            undone: state.calls.undone_counts(),
            gate: state.gate.map(|gate| gate.id),
            plan: state.plan,
            todos: state.todos.items,
            todos_revision: state.todos.revision,
            budget: state.budget,
            pauses: state.pauses,
            error: state.error,
            answer: state.answer,
            open_steps,
            capsule: state.capsule,
        })
    }

    /// The action tools that this process offers to the model, in one chat or another.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        let mut specs = self.engine.tools.specs();
        specs.extend(self.chat_tools.specs.iter().cloned());
        specs
    }

    /// The call of `record` with a person's arguments: see [`Engine::draft`](countersign_agent::engine::Engine::draft). The inner error says what is to be
    /// mended.
    pub async fn draft(&self, record: &ActionRecord, arguments: &str) -> Result<Result<CallDraft, String>, StoreError> {
        let action = &record.action;
        let turn = self.ledger.read().await?.turn_in_brief(&action.turn_id, 0).await?;
        let turn = turn.ok_or_else(|| StoreError::Corrupt(format!("action {} names the missing turn {}", action.id, action.turn_id)))?;
        let engine = self.chat_tools.on(&self.engine, &turn.conversation);
        Ok(engine.draft(&action.tool, arguments, &turn.conversation.chat_name()).await)
    }

    /// Names of the action tools that this process offers to the model in a turn that begins now in this chat.
    pub fn tool_names(&self, channel: ChannelKind, chat: &str) -> Vec<String> {
        let policy = self.settings.current().policy(channel, chat);
        let place = Conversation {
            channel,
            app: String::new(),
            tenant: String::new(),
            chat: chat.to_owned(),
            thread: String::new(),
        };
        self.chat_tools
            .on(&self.engine, &place)
            .specs(&policy)
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    }

    /// The turn's messages as the model sees them, with the marker of an open plan review.
    ///
    /// # Errors
    /// [`WorkError::Unreadable`] for a turn of a newer version.
    pub fn view(&self, row: &TurnRow, log: Vec<Message>) -> Result<Vec<Message>, WorkError> {
        let turn = Turn { state: read(row)?, log };
        let policy = &turn.state.policy;
        let specs = self.chat_tools.on(&self.engine, &row.conversation).specs(policy);
        let env = Env {
            now: self.engine.clock.now(),
            tools: &specs,
            rules: &[],
            standing: None,
            chat: &row.conversation.chat,
            prompts: &self.engine.templates,
        };
        Ok(reducer::view(
            &turn,
            &env,
            &self.settings.current().system_prompt(policy.profile.as_deref()),
        ))
    }
}
