//! What goes wrong around the core: deliveries, deaths, time.

use std::time::Duration;

use countersign::domain::Millis;

use super::{ALL, Life, Part};
use crate::chat::Receipt;
use crate::stage::ActorId;
use crate::told;

impl Life<'_> {
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

    /// The process dies where it stands, and another one starts in its place.
    pub(super) fn crash(&mut self, process: usize) {
        self.note(|| format!("process {process} dies"));
        let dead: Vec<ActorId> = self.parts.iter().filter(|(_, at)| at.0 == process).map(|(id, _)| *id).collect();
        let now = self.lab.clock.now();
        let under_way = self.stage.scene.waiting().posts.of(|actor| dead.contains(&actor));
        for at in under_way.into_iter().rev() {
            let want = self.stage.scene.waiting().posts.take(at);
            // What was on the wire may still arrive.
            let row = self.board.rows.borrow().get(&want.what).cloned();
            if let Some(row) = row.filter(|_| self.dice.percent(50)) {
                self.chat.take(&row, now);
            }
        }
        self.meet("crashes");
        for id in dead {
            self.stage.kill(id);
            self.parts.remove(&id);
        }
        self.starts += 1;
        let own = &mut self.processes[process];
        own.owner = format!("{}{}", ["a", "b"][process], self.starts);
        own.knows_time = self.dice.percent(70);
        self.frozen[process] = Millis(0);
        self.rung[process] = ALL;
    }

    /// A moment passes.
    pub(super) async fn tick(&mut self) {
        let span = Duration::from_millis(1 + u64::try_from(self.dice.below(4)).unwrap_or(0));
        self.lab.clock.advance(span);
        self.owed += span;
        if self.owed > Duration::from_millis(40) {
            let owed = std::mem::take(&mut self.owed);
            self.stage.leap(owed).await;
        }
    }

    pub(super) async fn time(&mut self) {
        let works = self.parts.values().any(|(_, part)| *part == Part::Work);
        let long = usize::from(!works);
        let millis = match self.dice.weighted(&[8, 6, 5, 2, 1, long, long]) {
            0 => 300,
            1 => 2_000,
            2 => 9_000,
            3 => 31_000,
            4 => 130_000,
            5 => 20 * 60_000,
            _ => 61 * 60_000,
        };
        self.pass(Duration::from_millis(millis)).await;
    }

    pub(super) async fn pass(&mut self, span: Duration) {
        self.note(|| format!("{} ms pass", span.as_millis()));
        self.lab.clock.advance(span);
        let owed = std::mem::take(&mut self.owed);
        self.stage.leap(span + owed).await;
        self.rung = [ALL; 2];
    }
}
