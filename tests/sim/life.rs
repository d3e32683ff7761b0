//! One life: two processes over one ledger, people, a platform, a model and tools, all of them as a seed throws them.

mod answer;
mod chance;
mod mishap;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use countersign_agent::domain::{ChannelKind, Failpoint, Ids, Inbound, InboundBody, Millis, Mode};
use countersign_agent::tools::{Tool, ToolError, ToolOutput, Toolbox};
use countersign_gateway::channels::BoxFuture;
use countersign_gateway::config::{Live, Settings};
use countersign_gateway::conversation::{Conversations, GroupDirectory};
use countersign_gateway::lanes::{ChatTools, Intervals, Runner, RunnerParts};
use countersign_gateway::store::SimulatedCommit;
use futures_util::FutureExt;

use super::chat::Chat;
use super::checks::{self, Book, Runs};
use super::dice::Dice;
use super::lab::Lab;
use super::people::People;
use super::replica::{Board, News, Process};
use super::script::{Author, Model, Played, TOOLS};
use super::stage::{ActorId, Called, Stage, Want, unpaced};
use super::told;
use chance::Move;

/// No setting here names a group.
#[derive(Debug)]
struct NoGroups;

impl GroupDirectory for NoGroups {
    fn members<'a>(&'a self, _: ChannelKind, _: &'a str) -> BoxFuture<'a, Option<HashSet<String>>> {
        Box::pin(std::future::ready(None))
    }
}

/// Steps in which a life comes to rest once nobody disturbs it any more.
const PATIENCE: usize = 6000;
/// Workers on lanes of one process.
const WORKERS: usize = 3;
/// As often each process looks for work of which nobody told it.
const LOOK: Duration = Duration::from_secs(1);
/// Longer than this nothing but gates waits.
const SOON: i64 = 15 * 60 * 1000;

/// What happened how often.
pub type Met = BTreeMap<String, u64>;

/// What an actor of which process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Triage,
    Work,
    Dispatch,
    Click,
}

/// What a process was woken for.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    inbox: bool,
    lanes: bool,
    outbox: bool,
}

const ALL: Ready = Ready {
    inbox: true,
    lanes: true,
    outbox: true,
};

pub struct Life<'a> {
    pub lab: &'a mut Lab,
    pub live: Live,
    pub people: People,
    pub chat: Chat,
    pub runs: Runs,
    pub board: Rc<Board>,
    /// Turns as the checks know them.
    pub books: BTreeMap<String, Book>,
    /// What the model was told to be in plan mode, by stage.
    pub prompts: checks::Prompts,
    /// For which turn an actor asks the model, as long as its lane is its own.
    pub asking: HashMap<ActorId, String>,
    /// Deaths, standstills, lost commits: what may cost an answer.
    pub mishaps: u64,
    dice: Dice,
    stage: Stage,
    author: Author,
    processes: [Process; 2],
    parts: BTreeMap<ActorId, (usize, Part)>,
    ready: [Ready; 2],
    frozen: [Millis; 2],
    renewals_frozen: Millis,
    clicks: BTreeMap<String, Inbound>,
    /// Calls that never answer.
    hung: Vec<Want<Called, Result<ToolOutput, ToolError>>>,
    /// Outputs so far.
    outputs: u64,
    lease: Duration,
    tasks: usize,
    starts: usize,
    calm: bool,
    /// Of our clock, not yet told to the runtime.
    owed: Duration,
    born: Millis,
    /// What was met in this life, and how often.
    pub met: Met,
    /// What went wrong.
    pub wrong: Option<String>,
    log: Option<Vec<String>>,
}

impl<'a> Life<'a> {
    pub async fn begin(lab: &'a mut Lab, seed: u64, told: bool) -> Self {
        let mut dice = Dice::of(seed);
        let stage = Stage::new();
        lab.fresh(&stage.scene).await;
        let live = chance::settings(&mut dice);
        let lease = Duration::from_secs(if dice.percent(60) { 30 } else { 3 });
        let (settings, board) = (Settings::new(live.clone()), Rc::new(Board::default()));
        let tools = TOOLS.iter().map(|(name, effect)| {
            let scene = Arc::clone(&stage.scene);
            Arc::new(Played {
                scene,
                name,
                effect: *effect,
            }) as Arc<dyn Tool>
        });
        let model: Arc<dyn countersign_agent::model::ChatModel> = Arc::new(Model(Arc::clone(&stage.scene)));
        let runner = Runner::new(RunnerParts {
            chat_tools: ChatTools::default(),
            ledger: lab.ledger.clone(),
            settings: settings.clone(),
            clock: lab.clock.clone(),
            ids: Ids::counted(),
            templates: Arc::clone(&lab.templates),
            tools: Arc::new(Toolbox::new(tools.collect(), &BTreeMap::new())),
            surroundings: None,
            models: Arc::new(move |_| Arc::clone(&model)),
            timings: Intervals {
                lease,
                ..Intervals::default()
            },
            failpoint: Failpoint::default(),
            observers: Vec::new(),
        });
        let process = |name: &str, dice: &mut Dice| Process {
            ledger: lab.ledger.clone(),
            conversations: Conversations::new(lab.ledger.clone(), settings.clone(), lab.clock.clone(), Arc::new(NoGroups)),
            runner: runner.clone(),
            clock: lab.clock.clone(),
            scene: Arc::clone(&stage.scene),
            board: Rc::clone(&board),
            owner: name.to_owned(),
            lease,
            knows_time: dice.percent(70),
        };
        let author = Author::new(live.agent.mode == Mode::Plan && dice.percent(10));
        let processes = [process("a0", &mut dice), process("b0", &mut dice)];
        let born = lab.clock.now();
        let tasks = 1 + dice.weighted(&[5, 4, 2]);
        Self {
            lab,
            live,
            people: People::default(),
            chat: Chat::default(),
            runs: Runs::default(),
            board,
            books: BTreeMap::new(),
            asking: HashMap::new(),
            prompts: checks::Prompts::new(),
            mishaps: 0,
            dice,
            stage,
            author,
            processes,
            parts: BTreeMap::new(),
            ready: [Ready::default(); 2],
            frozen: [Millis(0); 2],
            renewals_frozen: Millis(0),
            clicks: BTreeMap::new(),
            hung: Vec::new(),
            outputs: 0,
            lease,
            tasks,
            starts: 0,
            calm: false,
            owed: Duration::ZERO,
            born,
            met: Met::new(),
            wrong: None,
            log: told.then(Vec::new),
        }
    }

    /// The whole life; gives what was met, and its transcript, if it was asked for.
    pub async fn live(mut self) -> (Result<Met, String>, Vec<String>) {
        let disturbed = 60 + self.dice.below(200);
        for _ in 0..disturbed {
            if self.wrong.is_some() {
                break;
            }
            let Some(next) = self.choose() else { break };
            self.make(next).await;
        }
        if self.wrong.is_none() {
            self.come_to_rest().await;
        }
        if self.wrong.is_none() {
            self.wrong = checks::at_rest(&mut self).await.err();
        }
        self.stage.clear();
        self.stage.settle().await;
        let met = self.met;
        (self.wrong.map_or(Ok(met), Err), self.log.unwrap_or_default())
    }

    pub fn meet(&mut self, what: &str) {
        *self.met.entry(what.to_owned()).or_default() += 1;
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            let since = self.lab.clock.now().since(self.born);
            log.push(format!("{:>10.3} s  {}", since.as_secs_f64(), line()));
        }
    }

    async fn make(&mut self, next: Move) {
        self.meet("moves");
        self.tick();
        match next {
            Move::Leave(at) => {
                let fate = match self.dice.below(200) {
                    0..3 if !self.calm => SimulatedCommit::Lost,
                    3..6 if !self.calm => SimulatedCommit::Unheard,
                    _ => SimulatedCommit::Done,
                };
                if fate != SimulatedCommit::Done {
                    self.mishaps += 1;
                    self.note(|| format!("the commit of the next transaction: {fate:?}"));
                }
                self.meet("sessions");
                self.stage.give_leave(at, fate);
            }
            Move::Model(at) => self.answer_model(at).await,
            Move::Tool(at) => self.answer_tool(at),
            Move::Post(at) => self.deliver(at),
            Move::Event => self.event().await,
            Move::Person => {
                let before = self.people.network.len();
                let now = self.lab.clock.now();
                self.people.act(&mut self.dice, &self.chat, now, &mut self.tasks);
                for at in before..self.people.network.len() {
                    let event = told::event(&self.people.network[at]);
                    self.note(|| format!("sent off: {event}"));
                }
            }
            Move::Begin(part, process) => self.start(part, process),
            Move::Time => self.time().await,
            Move::Crash(process) => self.crash(process),
            Move::Freeze(process) => {
                let span = [400, 5_000, 40_000][self.dice.below(3)];
                let until = self.lab.clock.now().plus(Duration::from_millis(span));
                self.mishaps += 1;
                self.frozen[process] = until;
                if self.dice.percent(60) {
                    self.renewals_frozen = until;
                }
                self.note(|| format!("process {process} stands still for {span} ms"));
            }
        }
        self.after().await;
    }

    /// Actors go on until all stand still; what they told and sent is taken note of.
    async fn after(&mut self) {
        self.stage.settle().await;
        self.catch_up().await;
        let news = std::mem::take(&mut *self.board.news.borrow_mut());
        for (actor, news) in news {
            self.hear(actor, news);
        }
        for id in std::mem::take(&mut self.stage.done) {
            self.parts.remove(&id);
        }
        let ledger = &self.lab.ledger;
        let woken = Ready {
            inbox: ledger.inbox_wakeup().notified().now_or_never().is_some(),
            lanes: ledger.lane_wakeup().notified().now_or_never().is_some(),
            outbox: ledger.outbox_wakeup().notified().now_or_never().is_some(),
        };
        self.wake(woken);
        let asked = std::mem::take(&mut self.stage.scene.waiting().asked);
        for (actor, request) in asked {
            if let Err(wrong) = checks::asked(self, actor, &request).await {
                self.wrong.get_or_insert(wrong);
            }
        }
        let sent = std::mem::take(&mut self.stage.scene.waiting().sent);
        for (actor, called) in sent {
            self.note(|| format!("actor {actor} sends {} {}", called.tool, called.arguments));
            if let Err(wrong) = checks::sent(self, actor, &called).await {
                self.wrong.get_or_insert(wrong);
            }
        }
    }

    /// One of the processes hears it, or both; the other looks by itself when time passes.
    fn wake(&mut self, woken: Ready) {
        if !(woken.inbox || woken.lanes || woken.outbox) {
            return;
        }
        let hears = [[true, false], [false, true], [true, true]][self.dice.weighted(&[2, 2, 1])];
        for (ready, _) in self.ready.iter_mut().zip(hears).filter(|(_, hears)| *hears) {
            ready.inbox |= woken.inbox;
            ready.lanes |= woken.lanes;
            ready.outbox |= woken.outbox;
        }
    }

    fn hear(&mut self, actor: ActorId, news: News) {
        let process = self.parts.get(&actor).map(|(process, _)| *process);
        self.note(|| format!("actor {actor}: {}", told::news(&news)));
        let mut all = |set: fn(&mut Ready)| {
            for (at, ready) in self.ready.iter_mut().enumerate() {
                if process.is_none_or(|process| process == at) {
                    set(ready);
                }
            }
        };
        match news {
            News::Triaged(Ok(0)) => all(|ready| ready.inbox = false),
            News::Claimed(None) => all(|ready| ready.lanes = false),
            News::Dispatched(0) => all(|ready| ready.outbox = false),
            News::Worked(lane, Err(error)) => {
                self.wrong.get_or_insert(format!("work on lane {lane} failed: {error}"));
            }
            News::Worked(_, Ok(how)) => {
                self.meet(how);
                let lanes = how != "at rest";
                self.wake(Ready { lanes, ..Ready::default() });
            }
            News::Dispatched(_) => self.wake(Ready {
                outbox: true,
                ..Ready::default()
            }),
            News::Clicked(key, Err(_)) => {
                if let Some(click) = self.clicks.get(&key).filter(|_| self.dice.percent(50)) {
                    self.people.network.push(click.clone());
                }
            }
            News::Claimed(Some(lane)) => {
                // From somebody who still works on it, and will find that out.
                let leases = self.board.leases.borrow();
                let works = |id: &ActorId| *id != actor && self.parts.get(id).is_some_and(|at| at.1 == Part::Work);
                self.mishaps += u64::from(leases.iter().any(|(id, lease)| lease.lane_id == lane && works(id)));
            }
            News::Triaged(_) | News::Delivered(..) | News::Clicked(_, Ok(_)) => {}
        }
    }

    async fn event(&mut self) {
        let at = self.dice.below(self.people.network.len());
        let inbound = self.people.network.swap_remove(at);
        self.note(|| format!("comes in: {}", told::event(&inbound)));
        if let InboundBody::Click(_) = &inbound.body {
            let process = self.dice.below(2);
            self.clicks.insert(inbound.event_key.clone(), inbound.clone());
            let id = self.stage.enter(self.processes[process].clone().click(inbound));
            self.parts.insert(id, (process, Part::Click));
            return;
        }
        self.take_in(&inbound).await;
    }

    async fn take_in(&mut self, inbound: &Inbound) {
        if let Err(error) = unpaced(self.lab.ledger.accept(inbound)).await {
            self.wrong.get_or_insert(format!("an event was not accepted: {error}"));
        }
    }

    fn start(&mut self, part: Part, process: usize) {
        let own = self.processes[process].clone();
        let id = match part {
            Part::Triage => self.stage.enter(own.triage()),
            Part::Work => self.stage.enter(own.work()),
            Part::Dispatch | Part::Click => self.stage.enter(own.dispatch()),
        };
        self.parts.insert(id, (process, part));
        self.note(|| format!("process {process} begins {part:?} as actor {id}"));
    }

    /// Nobody disturbs any more: everything on its way arrives, everybody gets their turn, time goes on.
    async fn come_to_rest(&mut self) {
        self.calm = true;
        self.frozen = [Millis(0); 2];
        self.renewals_frozen = Millis(0);
        self.note(|| String::from("from here on nobody disturbs"));
        self.ready = [ALL; 2];
        // Some lives go on until everything that waits has lapsed.
        let mut lapses = if self.dice.percent(50) { 12 } else { 0 };
        let mut looked_at = None;
        for _ in 0..PATIENCE {
            if self.wrong.is_some() {
                return;
            }
            if let Some(next) = self.choose() {
                self.make(next).await;
                continue;
            }
            let now = self.lab.clock.now();
            if !self.parts.is_empty() {
                // Somebody waits for a moment, for a lease that must be renewed, or for a call that never answers.
                self.hung.retain(Want::is_waited_for);
                let span = if self.hung.is_empty() { 1 } else { 15 };
                self.pass(Duration::from_secs(span)).await;
            } else {
                let due = unpaced(async { self.lab.ledger.read().await?.next_due().await }).await;
                match due {
                    Ok(Some(due)) if due.0 - now.0 <= SOON || lapses > 0 => {
                        lapses -= usize::from(due.0 - now.0 > SOON);
                        // A lane may be due and still wait for the lease of another one to end: see `Tx::claim_lane`.
                        self.pass(due.since(now).max(LOOK) + Duration::from_millis(1)).await;
                    }
                    // As processes do every second: wake-ups are hints.
                    Ok(_) => match *self.lab.ledger.commits().borrow() {
                        commits if looked_at == Some(commits) => return,
                        commits => {
                            looked_at = Some(commits);
                            self.ready[0] = ALL;
                        }
                    },
                    Err(error) => {
                        self.wrong = Some(error.to_string());
                    }
                }
            }
            self.after().await;
        }
        let waits = self.parts.clone();
        self.wrong = Some(format!("it does not come to rest; still at work: {waits:?}"));
    }
}
