//! The built-in demo model.
use super::*;
/// Demo.
#[derive(Debug, Default)]
pub struct Demo;
impl ChatModel for Demo {
    fn chat<'a>(&'a self, _request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async { Ok(ChatReply::default()) })
    }
    fn is_demo(&self) -> bool {
        true
    }
}
