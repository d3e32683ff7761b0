//! The stage: runs the actors of a life (workers, triage, deliveries, clicks), one step of one actor at a time.
//!
//! Whatever an actor waits for is given to it by the play: the leave to begin a transaction, a model's answer, a tool's result, a
//! delivery's receipt, time. So between two gifts everything stands still, and the order of gifts is the whole interleaving. SQLite
//! answers from a thread of its own, but never to two at once: the next leave is given when the last session is over.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use countersign_agent::model::{ChatReply, ChatRequest, ModelError};
use countersign_agent::tools::{ToolError, ToolOutput};
use countersign_gateway::store::{SimulatedCommit, SimulatedOrder, SimulatedTurn, StoreError};
use futures_util::task::AtomicWaker;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Number of an actor; 0: a task that the product spawned (the renewal of a lease).
pub type ActorId = usize;
/// Sessions of the checks, which wait for nobody.
pub const CHECKER: ActorId = usize::MAX;
/// Turns of the runtime after which a spawned task has come to its next halt.
const TURNS: usize = 2;

thread_local! {
    static ON: Cell<ActorId> = const { Cell::new(0) };
}

/// Who runs now.
pub fn on() -> ActorId {
    ON.get()
}

/// Runs `work` as the checks.
pub async fn unpaced<F: Future>(work: F) -> F::Output {
    let mut work = Box::pin(work);
    poll_fn(|context| {
        let before = ON.replace(CHECKER);
        let polled = work.as_mut().poll(context);
        ON.set(before);
        polled
    })
    .await
}

/// One thing that an actor waits for.
#[derive(Debug)]
pub struct Want<Q, A> {
    pub actor: ActorId,
    pub what: Q,
    /// Since when it is waited for.
    pub since: Instant,
    answer: oneshot::Sender<A>,
}

impl<Q, A> Want<Q, A> {
    pub fn is_waited_for(&self) -> bool {
        !self.answer.is_closed()
    }

    /// False: whoever wanted it is gone.
    pub fn give(self, answer: A) -> bool {
        self.answer.send(answer).is_ok()
    }
}

/// Things of one kind that are waited for, oldest first.
#[derive(Debug)]
pub struct Wants<Q, A>(Vec<Want<Q, A>>);

impl<Q, A> Default for Wants<Q, A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<Q, A> Wants<Q, A> {
    fn ask(&mut self, what: Q) -> oneshot::Receiver<A> {
        let (answer, asked) = oneshot::channel();
        self.0.push(Want {
            actor: on(),
            what,
            since: Instant::now(),
            answer,
        });
        asked
    }

    fn forget_the_gone(&mut self) {
        self.0.retain(|want| !want.answer.is_closed());
    }

    /// Which of them fit, by position.
    pub fn of(&self, fits: impl Fn(ActorId) -> bool) -> Vec<usize> {
        (0..self.0.len()).filter(|at| fits(self.0[*at].actor)).collect()
    }

    pub fn take(&mut self, at: usize) -> Want<Q, A> {
        self.0.remove(at)
    }
}

/// A tool call on its way.
#[derive(Debug)]
pub struct Called {
    pub tool: &'static str,
    pub arguments: Value,
}

/// Everything that is waited for.
#[derive(Debug, Default)]
pub struct Waiting {
    pub leaves: Wants<(), Result<SimulatedTurn, StoreError>>,
    pub models: Wants<Arc<ChatRequest>, Result<ChatReply, ModelError>>,
    pub tools: Wants<Called, Result<ToolOutput, ToolError>>,
    /// Deliveries, by key.
    pub posts: Wants<String, super::chat::Receipt>,
    /// Requests to the model that have just been made and nobody has looked at yet.
    pub asked: Vec<(ActorId, Arc<ChatRequest>)>,
    /// Calls that have just been sent and nobody has looked at yet: actor, tool, arguments.
    pub sent: Vec<(ActorId, Called)>,
    /// What becomes of the commit of the session that is open.
    pub fate: Option<SimulatedCommit>,
    open: usize,
    holder: ActorId,
}

/// What actors see of the stage.
#[derive(Debug, Default)]
pub struct Scene {
    waiting: Mutex<Waiting>,
    root: AtomicWaker,
}

impl Scene {
    pub fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("nobody panics while holding it")
    }

    fn leave(self: &Arc<Self>, waiting: &mut Waiting, actor: ActorId) -> SimulatedTurn {
        waiting.open += 1;
        waiting.holder = actor;
        Box::new(Open(Arc::clone(self)))
    }

    pub async fn ask_model(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let request = Arc::new(request.clone());
        let asked = {
            let mut waiting = self.waiting();
            waiting.asked.push((on(), Arc::clone(&request)));
            waiting.models.ask(request)
        };
        asked
            .await
            .unwrap_or_else(|_| Err(ModelError::Unreachable(String::from("the stage is gone"))))
    }

    pub async fn call_tool(&self, tool: &'static str, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let called = || Called {
            tool,
            arguments: arguments.clone(),
        };
        let asked = {
            let mut waiting = self.waiting();
            waiting.sent.push((on(), called()));
            waiting.tools.ask(called())
        };
        asked
            .await
            .unwrap_or_else(|_| Err(ToolError::Fatal(String::from("the stage is gone"))))
    }

    pub async fn post(&self, key: &str) -> super::chat::Receipt {
        let asked = self.waiting().posts.ask(key.to_owned());
        asked.await.unwrap_or(super::chat::Receipt::Lost)
    }
}

/// A session is open as long as this lives.
struct Open(Arc<Scene>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.waiting().open -= 1;
        self.0.root.wake();
    }
}

/// What a ledger asks.
#[derive(Debug)]
pub struct Pacer(pub Mutex<Arc<Scene>>);

impl SimulatedOrder for Pacer {
    fn begin(&self) -> Pin<Box<dyn Future<Output = Result<SimulatedTurn, StoreError>> + Send>> {
        let scene = Arc::clone(&self.0.lock().expect("nobody panics while holding it"));
        let asked = {
            let mut waiting = scene.waiting();
            // A reader inside somebody's own session.
            if on() == CHECKER || (waiting.open > 0 && on() != 0 && waiting.holder == on()) {
                let leave = scene.leave(&mut waiting, on());
                return Box::pin(async { Ok(leave) });
            }
            waiting.leaves.ask(())
        };
        Box::pin(async {
            asked
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable(String::from("the stage is gone"))))
        })
    }

    fn commit(&self) -> SimulatedCommit {
        let scene = Arc::clone(&self.0.lock().expect("nobody panics while holding it"));
        if on() == CHECKER {
            return SimulatedCommit::Done;
        }
        let fate = scene.waiting().fate.take();
        fate.unwrap_or(SimulatedCommit::Done)
    }
}

/// Wakes one actor.
struct Flag {
    up: AtomicBool,
    scene: Arc<Scene>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.up.store(true, Ordering::Release);
        self.scene.root.wake();
    }
}

struct Actor {
    part: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
}

/// The actors and what they wait for.
pub struct Stage {
    pub scene: Arc<Scene>,
    actors: BTreeMap<ActorId, Actor>,
    last: ActorId,
    /// What actors leave behind when they are done.
    pub done: Vec<ActorId>,
}

impl Stage {
    pub fn new() -> Self {
        Self {
            scene: Arc::default(),
            actors: BTreeMap::new(),
            last: 0,
            done: Vec::new(),
        }
    }

    pub fn enter(&mut self, part: impl Future<Output = ()> + 'static) -> ActorId {
        self.last += 1;
        let flag = Arc::new(Flag {
            up: AtomicBool::new(true),
            scene: Arc::clone(&self.scene),
        });
        let part = Box::pin(part);
        self.actors.insert(self.last, Actor { part, flag });
        self.last
    }

    /// Drops an actor wherever it stands.
    pub fn kill(&mut self, actor: ActorId) {
        self.actors.remove(&actor);
    }

    pub fn clear(&mut self) {
        self.actors.clear();
        let mut waiting = self.scene.waiting();
        let (open, holder) = (waiting.open, waiting.holder);
        *waiting = Waiting {
            open,
            holder,
            ..Waiting::default()
        };
    }

    /// Gives the leave at `at`; `fate`: of its commit, if it comes to one.
    pub fn give_leave(&mut self, at: usize, fate: SimulatedCommit) {
        let mut waiting = self.scene.waiting();
        let want = waiting.leaves.take(at);
        waiting.fate = Some(fate);
        let leave = self.scene.leave(&mut waiting, want.actor);
        drop(waiting);
        // One that nobody wants any more is dropped, and counts as over.
        want.give(Ok(leave));
    }

    /// Lets everybody go on until all stand still.
    pub async fn settle(&mut self) {
        loop {
            poll_fn(|context| self.move_all(context)).await;
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            if self.is_still() {
                break;
            }
        }
        let mut waiting = self.scene.waiting();
        waiting.leaves.forget_the_gone();
        waiting.models.forget_the_gone();
        waiting.tools.forget_the_gone();
        waiting.posts.forget_the_gone();
        waiting.fate = None;
    }

    fn is_still(&self) -> bool {
        let awake = |actor: &Actor| actor.flag.up.load(Ordering::Acquire);
        self.scene.waiting().open == 0 && !self.actors.values().any(awake)
    }

    fn move_all(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.scene.root.register(context.waker());
        loop {
            let awake = |(id, actor): (&ActorId, &Actor)| actor.flag.up.swap(false, Ordering::AcqRel).then_some(*id);
            let Some(id) = self.actors.iter().find_map(awake) else { break };
            let Some(actor) = self.actors.get_mut(&id) else { break };
            let waker = Waker::from(Arc::clone(&actor.flag));
            let before = ON.replace(id);
            let polled = actor.part.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                // Dropped as itself: what it holds may still ask who it is.
                self.actors.remove(&id);
                self.done.push(id);
            }
            ON.set(before);
        }
        if self.scene.waiting().open == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// `span` passes at once.
    pub async fn leap(&mut self, span: Duration) {
        tokio::time::advance(span).await;
        self.settle().await;
    }
}
