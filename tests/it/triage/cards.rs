//! Cards, proposed calls and settings of these tests.

use std::time::Duration;

use countersign_agent::domain::{
    Action, ActionId, ActionStatus, ActionView, ApprovalCard, ApprovalMode, Approvers, BudgetCard, CardHead, CardState, Complexity,
    EffectClass, Gate, GateId, GateKind, Locale, Mode, Outbound, PlanCard, PlanWords, PromptFeature, PromptLanguage, QuestionCard,
    QueueMode, Reflection, SessionMode, StepStatus, StepView,
};
use countersign_agent::model::{ModelLive, Provider};
use countersign_gateway::config::{AgentLive, ChannelLive, GroupTrigger, Live, Profiles};
use countersign_gateway::store::TurnRow;

pub const TTL: Duration = Duration::from_secs(3600);

pub fn card(kind: GateKind, id: &GateId, turn: &TurnRow, quorum: u32, actions: &[ActionId]) -> Outbound {
    let (requester, state, ttl_ms) = (turn.user.clone(), CardState::Open { votes: 0 }, 3_600_000);
    let gate_id = id.clone();
    match kind {
        GateKind::PlanReview => Outbound::PlanCard(PlanCard {
            left_out: None,
            review_id: Some(gate_id),
            head: CardHead::new(requester, true, ttl_ms, state),
            goal: turn.text.clone(),
            complexity: Complexity::Complex,
            plan_version: 1,
            steps: vec![StepView {
                id: "1".to_owned(),
                content: "写".to_owned(),
                status: StepStatus::Pending,
                tools: vec!["write_file".to_owned()],
                intent: None,
                unfinished: false,
            }],
            grants: Vec::new(),
            still_asks: Vec::new(),
            approval: ApprovalMode::Write,
            quorum,
            note: None,
            request_edited: false,
            demo: false,
            words: PlanWords::Unknown,
            end: None,
            outage_until: None,
            asked_again: None,
            cut: false,
            undone: Vec::new(),
        }),
        GateKind::ToolApproval => Outbound::ApprovalCard(ApprovalCard {
            gate_id,
            head: CardHead::new(requester, true, ttl_ms, state),
            actions: actions
                .iter()
                .map(|id| ActionView {
                    id: id.clone(),
                    tool: "write_file".to_owned(),
                    effect: EffectClass::Write,
                    justification: "Write: a".to_owned(),
                    arguments: "{}".to_owned(),
                    hidden: 0,
                    preview: None,
                    quorum: 1,
                    approvers: None,
                    votes: 0,
                    always: None,
                    standing: None,
                    status: ActionStatus::Pending,
                    outdated: false,
                    edited: false,
                    output: None,
                })
                .collect(),
            note: None,
            later: 0,
            cut: false,
        }),
        GateKind::Question => Outbound::QuestionCard(QuestionCard {
            gate_id,
            head: CardHead {
                approvers: None,
                ..CardHead::new(requester, true, ttl_ms, state)
            },
            title: None,
            question: "哪个月？".to_owned(),
            reason: None,
        }),
        GateKind::Budget => Outbound::BudgetCard(BudgetCard {
            gate_id,
            head: CardHead {
                group: None,
                ..CardHead::new(requester, true, ttl_ms, state)
            },
            summary: "写了一半".to_owned(),
            open_steps: Vec::new(),
            steps_used: 50,
            reached: Vec::new(),
        }),
    }
}

pub fn proposed(id: &ActionId, turn: &TurnRow, gate: &Gate, position: u32) -> Action {
    Action {
        id: id.clone(),
        turn_id: turn.id.clone(),
        gate_id: Some(gate.id.clone()),
        call_id: format!("call_{position}"),
        tool: "write_file".to_owned(),
        effect: EffectClass::Write,
        arguments: serde_json::json!({}),
        justification: "Write: a".to_owned(),
        edited: None,
        preview: None,
        quorum: 1,
        approvers: None,
        status: ActionStatus::Pending,
        position,
        created_at: gate.opened_at,
        expires_at: Some(gate.expires_at),
        decision: None,
        covered_by: None,
        result: None,
    }
}

pub fn live() -> Live {
    let channel = ChannelLive {
        enabled: true,
        locale: Locale::ZhCn,
        session_mode: SessionMode::Fresh,
        group_trigger: GroupTrigger::Mention,
        allowed_chats: Vec::new(),
        allowed_users: Vec::new(),
        allow_external: false,
        context_messages: 20,
        max_file_mb: 20,
        review_enabled: true,
        require_confirmation: true,
        review_ttl: TTL,
        approvers: Approvers::Requester,
        quorum: 1,
        approval_approvers: None,
        approval_quorum: 1,
        reminder_percent: 0,
        escalate_to: Vec::new(),
        escalate_after: Duration::ZERO,
    };
    Live {
        rules: Vec::new().into(),
        lark: channel.clone(),
        slack: channel.clone(),
        console_locale: None,
        console: channel,
        agent: AgentLive {
            system_prompt: String::new(),
            max_iterations: 50,
            turn_timeout: Duration::from_secs(300),
            max_turn_tokens: 0,
            max_plan_continuations: 5,
            reminder_interval: 3,
            max_planner_only: 2,
            history_limit: 40,
            queue_mode: QueueMode::Followup,
            require_explicit_signal: false,
            prompt_features: [PromptFeature::Continuation].into(),
            mode: Mode::React,
            reflection: Reflection::PerStep,
            prompt_language: PromptLanguage::En,
            approval: ApprovalMode::Write,
            standing_grants: false,
            standing_grant_days: 30,
        },
        model: ModelLive {
            provider: Provider::Demo,
            base_url: String::new(),
            name: String::new(),
            api_key: String::new().into(),
            timeout: Duration::from_secs(120),
            parallel_tool_calls: true,
            vision: true,
            max_output_tokens: 0,
            retry: Duration::ZERO,
        },
        models: std::collections::BTreeMap::new(),
        profiles: Profiles::default(),
        log_level: "info".to_owned(),
    }
}
