//! What a person hears after a press: on Lark the toast; on Slack a note that they alone see, the form's answer, or nothing
//! but the repainted card.

use countersign_playground::Stage;
use serde_json::Value;

use super::api::PATIENCE;
use super::platform::On;
use super::world::World;

/// See above.
pub struct Heard {
    on: On,
    /// Lark's toast, or why Slack's form stays open.
    text: Option<String>,
    stage: Stage,
    user: String,
    chat: String,
    /// Notes that were there before.
    before: usize,
}

impl Heard {
    /// `answer` is the gateway's; `before` is how many notes there were before the press.
    pub fn new(world: &World, user: &str, chat: &str, before: usize, answer: &Value) -> Self {
        let text = match world.on {
            On::Lark => Some(answer["toast"]["content"].as_str().unwrap().to_owned()),
            On::Slack => answer["errors"]["feedback"].as_str().map(str::to_owned),
        };
        Self {
            on: world.on,
            text,
            stage: world.chat.clone(),
            user: user.to_owned(),
            chat: chat.to_owned(),
            before,
        }
    }

    /// The press did what it says: Lark's toast holds `words`, Slack tells nothing beside the card.
    pub fn done(&self, words: &str) {
        match (self.on, &self.text) {
            (On::Lark, Some(text)) => assert!(text.contains(words), "{text}"),
            (On::Lark, None) => panic!("no toast"),
            (On::Slack, text) => assert_eq!(*text, None),
        }
        let notes = self.notes();
        assert!(notes.is_empty(), "told instead: {notes:?}");
    }

    /// The press is answered with `words`; gives all of the answer.
    pub async fn told(&self, words: &str) -> String {
        if let Some(text) = &self.text {
            assert!(text.contains(words), "{text}");
            return text.clone();
        }
        let found = self
            .stage
            .wait_for(PATIENCE, |_| self.notes().into_iter().find(|text| text.contains(words)))
            .await;
        found.unwrap_or_else(|| panic!("not told {words:?} but {:?}", self.notes()))
    }

    /// The toast, or a note that the person has got by now.
    pub fn text(&self) -> Option<String> {
        self.text.clone().or_else(|| self.notes().into_iter().next())
    }

    fn notes(&self) -> Vec<String> {
        let seen = self.stage.snapshot();
        let notes = seen.notes.iter().skip(self.before);
        notes
            .filter(|note| note.user == self.user && note.chat == self.chat)
            .map(|note| note.text.clone())
            .collect()
    }
}
