//! Model servers that are stricter, ruder or odder than others: what they are sent, and what is made of their answers.

mod answers;
mod requests;
mod tasks;

use std::time::Duration;

use countersign_agent::domain::{EffectClass, Message, Role, Scope, ToolSpec};
use countersign_agent::model::{ChatModel, ChatReply, ChatRequest, ModelError, ModelLive, Provider, Remote};
use serde_json::json;

use crate::support::fake_model::FakeModel;

const BOTH: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

/// A client whose answers may have so many tokens.
fn limited(fake: &FakeModel, provider: Provider, max_output_tokens: u64) -> Remote {
    // Others may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = ModelLive {
        provider,
        base_url: fake.base_url(),
        name: "some-model".to_owned(),
        api_key: "sk-test-0123456789".to_owned().into(),
        timeout: Duration::from_secs(20),
        parallel_tool_calls: true,
        vision: true,
        max_output_tokens,
        retry: Duration::ZERO,
    };
    Remote::new(countersign_agent::tls::http_client().build().unwrap(), &settings)
}

pub(crate) fn client(fake: &FakeModel, provider: Provider) -> Remote {
    limited(fake, provider, 0)
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "reads".to_owned(),
        parameters: json!({"type": "object", "properties": {}}).into(),
        effect: EffectClass::Read,
        scope: Scope::Every,
    }
}

fn request(log: Vec<Message>) -> ChatRequest {
    let mut messages = vec![Message::text(Role::System, "You are a test.")];
    messages.extend(log);
    ChatRequest {
        messages,
        tools: vec![tool("read_file")],
        parallel_tool_calls: true,
        deadline: Duration::from_secs(20),
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

async fn ask(fake: &FakeModel, provider: Provider) -> Result<ChatReply, ModelError> {
    client(fake, provider).chat(&request(vec![user("hi")])).await
}
