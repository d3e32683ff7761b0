//! Tools that act in the chat of a task, beside those of the process.

use std::fmt;
use std::sync::Arc;

use countersign_agent::domain::{Conversation, ToolSpec};
use countersign_agent::engine::Engine;
use countersign_agent::tools::{Tool, Toolbox};

pub type ToolsOfChat = Arc<dyn Fn(&Conversation) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// The tools that tasks have in their own chat. Each task gets them anew.
#[derive(Clone)]
pub struct ChatTools {
    /// All of them, for those who only list tools.
    pub specs: Vec<ToolSpec>,
    /// Those of one conversation. A chat of the console may have others than one of a platform.
    pub of: ToolsOfChat,
}

impl Default for ChatTools {
    fn default() -> Self {
        Self {
            specs: Vec::new(),
            of: Arc::new(|_| Vec::new()),
        }
    }
}

impl fmt::Debug for ChatTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTools").field("specs", &self.specs).finish_non_exhaustive()
    }
}

impl ChatTools {
    /// `engine` with the tools of a task in this conversation.
    pub(super) fn on(&self, engine: &Engine, place: &Conversation) -> Engine {
        let mut engine = engine.clone();
        let tools = (self.of)(place);
        if !tools.is_empty() {
            engine.tools = Arc::new(Toolbox::clone(&engine.tools).with(tools));
        }
        engine
    }
}
