//! What goes wrong around the core: deaths, time.

use std::time::Duration;

use countersign_agent::domain::Millis;

use super::{ALL, Life, Part};
use crate::stage::{ActorId, Want};

impl Life<'_> {
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
        self.mishaps += 1;
        for id in dead {
            self.stage.kill(id);
            self.parts.remove(&id);
        }
        self.starts += 1;
        let own = &mut self.processes[process];
        own.owner = format!("{}{}", ["a", "b"][process], self.starts);
        own.knows_time = self.dice.percent(70);
        self.frozen[process] = Millis(0);
        self.ready[process] = ALL;
    }

    /// A moment passes; the runtime hears of it after the move, for what was chosen must still be there.
    pub(super) fn tick(&mut self) {
        let span = Duration::from_millis(1 + u64::try_from(self.dice.below(4)).unwrap_or(0));
        self.lab.clock.advance(span);
        self.owed += span;
    }

    /// Tells the runtime of the moments that have passed, when they are many.
    pub(super) async fn catch_up(&mut self) {
        if self.owed > Duration::from_millis(40) {
            let owed = std::mem::take(&mut self.owed);
            self.stage.leap(owed).await;
        }
    }

    pub(super) async fn time(&mut self) {
        let works = self.parts.values().any(|(_, part)| *part == Part::Work);
        let long = usize::from(!works);
        self.hung.retain(Want::is_waited_for);
        let hung = 8 * usize::from(!self.hung.is_empty());
        let millis = match self.dice.weighted(&[8, 6, 5, 2, 1 + hung, long, long]) {
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
        if span >= self.lease / 3 {
            self.mishaps += 1;
        }
        self.lab.clock.advance(span);
        let owed = std::mem::take(&mut self.owed);
        self.stage.leap(span + owed).await;
        // Each looks once a second; mostly what one leaves undone is soon found by either.
        match self.dice.below(4) {
            0 => self.ready = [ALL; 2],
            other => self.ready[other % 2] = ALL,
        }
    }
}
