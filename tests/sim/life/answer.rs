//! What model, tools and platform give back.

use std::time::Duration;

use countersign_agent::model::ModelError;

use super::Life;
use crate::chat::Receipt;
use crate::checks::Given;
use crate::script::outcome;
use crate::told;

impl Life<'_> {
    pub(super) async fn answer_model(&mut self, at: usize) {
        let want = self.stage.scene.waiting().models.take(at);
        let took = want.since.elapsed();
        let reply = if took > want.what.deadline {
            Err(ModelError::Timeout)
        } else {
            self.author.reply(&mut self.dice, &want.what, self.calm)
        };
        let ends = reply.as_ref().is_ok_and(|reply| reply.calls.is_empty());
        let messages = want.what.messages.len();
        self.note(|| {
            format!(
                "model of actor {} ({messages} messages, {} tools) says {}",
                want.actor,
                want.what.tools.len(),
                told::reply(&reply)
            )
        });
        let tokens = reply.as_ref().map_or(0, |reply| reply.tokens);
        let (away, late) = (
            matches!(reply, Err(ModelError::Away { .. })),
            matches!(reply, Err(ModelError::Timeout)),
        );
        let actor = want.actor;
        if want.give(reply)
            && let Some(book) = self.asking.get(&actor).and_then(|turn| self.books.get_mut(turn))
        {
            // A server that is away costs no working time, and one that comes back may take a request long before it answers.
            book.away = away || late && book.away;
            let took = if book.away { Duration::ZERO } else { took };
            book.give(Given { tokens, took });
            self.mishaps += u64::from(self.board.has_lost_its_lane(actor));
        }
        // At the last moment somebody has another word.
        if ends && !self.calm && self.dice.percent(20) {
            let now = self.lab.clock.now();
            if let Some(inbound) = self.people.interject(&mut self.dice, &self.chat, now) {
                self.take_in(&inbound).await;
            }
        }
    }

    pub(super) fn answer_tool(&mut self, at: usize) {
        let want = self.stage.scene.waiting().tools.take(at);
        let what = (want.what.tool, want.what.arguments.clone());
        if !self.calm && self.dice.percent(3) {
            self.note(|| format!("tool {} {} of actor {} never answers", what.0, what.1, want.actor));
            self.meet("calls that hang");
            return self.hung.push(want);
        }
        self.outputs += 1;
        let (result, mark) = outcome(&mut self.dice, self.outputs);
        self.note(|| format!("tool {} {} of actor {} gives {result:?}", what.0, what.1, want.actor));
        if want.give(result)
            && let Some(number) = what.1["n"].as_u64()
        {
            self.runs.gave(number, &mark);
        }
    }

    pub(super) fn deliver(&mut self, at: usize) {
        let want = self.stage.scene.waiting().posts.take(at);
        let Some(row) = self.board.rows.borrow().get(&want.what).cloned() else {
            return;
        };
        let now = self.lab.clock.now();
        let weights = if self.calm { [1, 0, 0, 0, 0, 0] } else { [80, 6, 6, 5, 2, 1] };
        let receipt = match self.dice.weighted(&weights) {
            0 => {
                let posted = self.chat.take(&row, now);
                Receipt::Sent {
                    id: posted.id,
                    at: posted.at,
                }
            }
            1 => Receipt::Refused,
            2 => {
                self.chat.take(&row, now);
                Receipt::Lost
            }
            3 => Receipt::Lost,
            4 => Receipt::Content,
            _ => Receipt::Gone,
        };
        self.note(|| format!("delivery {} by actor {}: {receipt:?}", told::row(&row), want.actor));
        want.give(receipt);
    }
}
