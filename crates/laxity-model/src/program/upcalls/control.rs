//! The handler that makes and ends upcalls as it is told, and the body that an upcall has there.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Board, Command, Effect, Standing};
use crate::base::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::executor::account::Account;
use crate::executor::share::Share;
use crate::executor::{ExecutorError, ExecutorPolicy, HandlerId, Result};
use crate::program::executor::{Executes as _, Executor};
use crate::program::together::CONTROL;
use crate::program::upcall::{Call, First, PacedBy, Timing, Upcall};
use crate::program::{Body, Context, Step};
use crate::{ActivityId, Instant, Mark, PortId, SemaphoreId, Service, Span};

/// What an upcall does at each quantum.
pub type Work = Box<dyn FnMut(&mut dyn Context, &mut Call) -> Step + Send>;

/// An upcall that is to run.
pub struct Entrant {
    /// When it is called, and how much it does then; its grid is the same whenever it enters if the first release is said.
    pub timing: Timing,
    /// What releases it, if that is not time alone.
    pub paced_by: Option<PacedBy>,
    /// Its jobs are due so long after their release.
    pub deadline: Span,
    /// The most that a unit of its work takes, as was declared.
    pub unit: Service,
    /// The budget that it has together with others.
    pub share: Option<Arc<Share>>,
    /// What it is held to, if to anything.
    pub account: Option<Arc<Account>>,
    /// What it does. [`Step::Finish`] ends it, a sleep until [`Instant::MAX`] suspends it.
    pub work: Work,
}

/// Who has the handlers of upcalls, on the executor's own thread.
pub trait Keeper: Send {
    /// Makes the handler of this place; `false` if that panicked.
    fn make(&mut self, place: u16) -> bool;

    /// What is called from now on; `None` if there is nothing.
    fn enter(&mut self, place: u16) -> Option<Entrant>;

    /// The place of the upcall whose calls release that of this place when they are over, if one does.
    fn after(&self, _place: u16) -> Option<u16> {
        None
    }

    /// Drops the handler of this place.
    fn discard(&mut self, place: u16);

    /// Where it is to be told that nobody has had anything to do.
    fn rests(&self) -> Arc<Rests> {
        Arc::default()
    }

    /// Tells those who wait for it that a board has changed, or its [rests](Self::rests) have. Called from the executor's thread, and must not wait.
    fn changed(&self) -> Arc<dyn Fn() + Send + Sync>;
}

/// A command with the place that it is for, as a port carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Whose.
    pub place: u16,
    /// What.
    pub command: Command,
    /// By this number whoever asked finds the [answer](Board::answer); 0 if nobody asks.
    pub ticket: u64,
}

/// In the place of an order: it is not for one upcall, but for all.
const ALL: u64 = u64::MAX;

/// As what a port carries: all upcalls end, and so does their executor.
pub const STOP: [u64; 2] = [ALL, 0];

/// When an executor has had nothing to do: written by it alone, read by anybody. Nobody waits for anybody.
#[derive(Debug, Default)]
pub struct Rests {
    /// The greatest number that it was [asked](Self::ask) with.
    asked: AtomicU64,
    had: AtomicU64,
    /// Whether one of its handlers is there that finds that.
    is_sought: AtomicU32,
}

impl Rests {
    /// As what a port carries: whoever puts it waits until there was [nothing to do](Self::has_had) after that. Its number is greater than zero and than those that were drawn before.
    #[must_use]
    pub const fn ask(number: u64) -> [u64; 2] {
        [ALL, number]
    }

    /// Whether there was a moment without anything to do since it was asked with this number.
    pub fn has_had(&self, number: u64) -> bool {
        self.had.load(Ordering::Acquire) >= number
    }

    fn is_awaited(&self) -> bool {
        !self.has_had(self.asked.load(Ordering::Relaxed))
    }
}

impl Order {
    /// As a port carries it.
    #[must_use]
    pub fn payload(self) -> [u64; 2] {
        [
            u64::from(self.place) << 8 | self.command as u64,
            self.ticket,
        ]
    }

    fn of([what, ticket]: [u64; 2]) -> Option<Self> {
        let command = *Command::ALL.get((what & 0xff) as usize)?;
        Some(Self {
            place: u16::try_from(what >> 8).ok()?,
            command,
            ticket,
        })
    }
}

/// Carries commands out. It is due so soon after a command that one that is active ends its quantum first, and no more; where the order is by deadline, those go before it that are overdue.
pub struct Control<K> {
    commands: PortId,
    /// What arrives for the upcall of the first place; the others follow.
    arrivals: PortId,
    boards: Arc<[Board]>,
    keeper: K,
    changed: Arc<dyn Fn() + Send + Sync>,
    rests: Arc<Rests>,
    /// Who looks for a rest, while that is [sought](Rests).
    seeker: Option<HandlerId>,
    /// Who of each place is among the executor's handlers.
    inside: Vec<Option<HandlerId>>,
    /// The first release of each place, where it was told with its first command to run.
    firsts: Vec<Option<Instant>>,
}

impl<K: Keeper> Control<K> {
    /// For as many upcalls as there are boards; takes its commands from the first of these ports. From the second on, there is one for each upcall's arrivals.
    #[must_use]
    pub fn new([commands, arrivals]: [PortId; 2], boards: Arc<[Board]>, keeper: K) -> Self {
        Self {
            commands,
            arrivals,
            inside: boards.iter().map(|_| None).collect(),
            firsts: boards.iter().map(|_| None).collect(),
            boards,
            changed: keeper.changed(),
            rests: keeper.rests(),
            seeker: None,
            keeper,
        }
    }

    fn obey(&mut self, context: &mut dyn Context, order: Order) {
        let place = order.place;
        let Some(board) = self.boards.get(usize::from(place)) else {
            return;
        };
        let done = match board.standing().asked(order.command) {
            Ok(effect) => self.carry_out(context, place, effect),
            Err(_) => Err(ExecutorError::NoSuchHandler),
        };
        if order.ticket > 0 {
            self.boards[usize::from(place)].answers(order.ticket, done);
        }
        (self.changed)();
    }

    fn carry_out(&mut self, context: &mut dyn Context, place: u16, effect: Effect) -> Result {
        let standing = match effect {
            Effect::Nothing => return Ok(()),
            Effect::Make => {
                self.boards[usize::from(place)].clear();
                self.firsts[usize::from(place)] = None;
                // What came for whoever had the place before.
                while context.take(PortId(self.arrivals.0 + place)).is_some() {}
                let made = self.keeper.make(place);
                self.link(place, true);
                match made {
                    true => Standing::Suspended,
                    false => Standing::Panicked,
                }
            }
            Effect::Enter => {
                let entered = self.enter(context, place);
                if entered == Err(ExecutorError::Full) && self.makes_room(context) {
                    self.enter(context, place)?;
                } else {
                    entered?;
                }
                Standing::Active
            }
            Effect::Leave => {
                self.leave(context, place);
                Standing::Suspended
            }
            Effect::Discard => {
                self.leave(context, place);
                self.owe(context, place)?;
                self.link(place, false);
                self.keeper.discard(place);
                Standing::Absent
            }
        };
        self.boards[usize::from(place)].becomes(standing);
        Ok(())
    }

    /// Who is before it in a chain knows of it, or does not any more.
    fn link(&self, place: u16, is_there: bool) {
        let before = self.keeper.after(place);
        if let Some(before) = before.and_then(|before| self.boards.get(usize::from(before))) {
            before.precedes(place, is_there);
        }
    }

    fn enter(&mut self, context: &mut dyn Context, place: u16) -> Result {
        let entrant = self.keeper.enter(place);
        let mut entrant = entrant.ok_or(ExecutorError::NoSuchHandler)?;
        let deadline = entrant.deadline;
        if entrant.paced_by.is_some_and(PacedBy::is_another) {
            // What was over before it ran releases it no more.
            while context.take(PortId(self.arrivals.0 + place)).is_some() {}
        }
        let changed = Arc::clone(&self.changed);
        let board = (Arc::clone(&self.boards), place);
        // Its releases count from the command, however late that is heard, and its grid is fixed from its first run on.
        let asked = context.arrival().map_or(context.now(), |order| order.at);
        let mut first = self.firsts[usize::from(place)];
        if let First::AfterAPeriod = entrant.timing.first {
            let release = *first.get_or_insert(asked + entrant.timing.period);
            entrant.timing.first = First::At(release);
        }
        let body = Watched::new(entrant, board, (self.arrivals, asked), changed);
        let handler = context.make_handler(Some(deadline), Box::new(body))?;
        self.inside[usize::from(place)] = Some(handler);
        self.firsts[usize::from(place)] = first;
        Ok(())
    }

    /// Whoever looks for a rest makes room for the last upcall: where all are active none that is closed owes anything, and who else waits for a rest has it sought again when one leaves.
    fn makes_room(&mut self, context: &mut dyn Context) -> bool {
        let is_there = self.rests.is_sought.load(Ordering::Relaxed) != 0;
        let seeker = self.seeker.take().filter(|_| is_there);
        let has_left = seeker.is_some_and(|seeker| context.end_handler(seeker).is_ok());
        if has_left {
            self.rests.is_sought.store(0, Ordering::Relaxed);
        }
        has_left
    }

    fn leave(&mut self, context: &mut dyn Context, place: u16) {
        if let Some(handler) = self.inside[usize::from(place)].take() {
            // One that has ended by itself is no handler any more.
            let _ = context.end_handler(handler);
            self.boards[usize::from(place)].responds(context.now());
            if self.rests.is_awaited() {
                let _ = self.seek_rest(context);
            }
        }
    }

    /// One that was called is in debt until there is nothing to do.
    fn owe(&mut self, context: &mut dyn Context, place: u16) -> Result {
        let board = &self.boards[usize::from(place)];
        if board.called().is_none() {
            return Ok(());
        }
        board.owe(true);
        self.seek_rest(context)
    }

    /// Somebody waits until there was nothing to do. Where there is no room for who finds that, there is when another one leaves.
    fn is_asked_for_rest(&mut self, context: &mut dyn Context, number: u64) {
        self.rests.asked.fetch_max(number, Ordering::Relaxed);
        let _ = self.seek_rest(context);
    }

    /// Whoever is less urgent than all finds that there is nothing to do. Nobody looks for that where somebody does already.
    fn seek_rest(&mut self, context: &mut dyn Context) -> Result {
        if self.rests.is_sought.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let rest = Rest {
            boards: Arc::clone(&self.boards),
            rests: Arc::clone(&self.rests),
            changed: Arc::clone(&self.changed),
        };
        self.seeker = Some(context.make_handler(None, Box::new(rest))?);
        self.rests.is_sought.store(1, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&mut self, context: &mut dyn Context) -> Step {
        for place in (0..=u16::MAX).take(self.inside.len()) {
            if self.boards[usize::from(place)].standing() != Standing::Absent {
                // There is nothing that this could fail by.
                let _ = self.carry_out(context, place, Effect::Discard);
            }
        }
        (self.changed)();
        Step::Finish
    }
}

impl<K: Keeper> Body for Control<K> {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match context.arrival().map(|arrival| arrival.payload) {
            Some(STOP) => return self.stop(context),
            Some([ALL, number]) => self.is_asked_for_rest(context, number),
            Some(payload) => {
                if let Some(order) = Order::of(payload) {
                    self.obey(context, order);
                }
            }
            None => {}
        }
        Step::Wait(self.commands)
    }
}

/// Less urgent than every upcall: where it has its turn nobody has anything to do, and nobody will be later by what was done before.
struct Rest {
    boards: Arc<[Board]>,
    rests: Arc<Rests>,
    changed: Arc<dyn Fn() + Send + Sync>,
}

impl Body for Rest {
    fn step(&mut self, _: &mut dyn Context) -> Step {
        for board in &*self.boards {
            board.owe(false);
        }
        let Rests {
            asked,
            had,
            is_sought,
        } = &*self.rests;
        is_sought.store(0, Ordering::Relaxed);
        had.store(asked.load(Ordering::Relaxed), Ordering::Release);
        (self.changed)();
        Step::Finish
    }
}

/// An upcall among the handlers of its executor: its board is kept, and it leaves when it has nothing to wait for.
struct Watched {
    upcall: Upcall<Work>,
    boards: Arc<[Board]>,
    place: usize,
    /// As [`Control`] has it.
    arrivals: PortId,
    changed: Arc<dyn Fn() + Send + Sync>,
}

impl Watched {
    fn new(
        entrant: Entrant,
        (boards, place): (Arc<[Board]>, u16),
        (arrivals, asked): (PortId, Instant),
        changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (place, own) = (usize::from(place), Arc::clone(&boards));
        // A member of a group waits for its budget, and nothing was promised to it by itself.
        let is_alone = entrant.share.is_none();
        let deadline = if is_alone {
            entrant.deadline
        } else {
            Span::MAX
        };
        let mut inner = entrant.work;
        let work: Work = Box::new(move |context, call| {
            if call.done() == 0 {
                call.dropped = own[place].take_dropped();
            }
            own[place].works(call, deadline);
            let step = inner(context, call);
            own[place].did(call.now());
            step
        });
        // Nobody records what is made here, so the mark is never read.
        let upcall = Upcall::fed(entrant.paced_by, entrant.timing, Mark(0), work);
        let upcall = upcall.declared(entrant.unit, entrant.share);
        let upcall = upcall.held_to(entrant.account);
        Self {
            upcall: upcall.asked(asked, boards[place].called()),
            boards,
            place,
            arrivals,
            changed,
        }
    }

    /// It has nothing to wait for, and is no handler any more.
    fn leave(&self, standing: Standing) -> Step {
        let board = &self.boards[self.place];
        if board.standing() != Standing::Panicked {
            board.becomes(standing);
        }
        (self.changed)();
        Step::Finish
    }

    /// Its call is over: those who come after it in a chain are released, if they are to be called.
    fn release_successors(&self, context: &mut dyn Context) {
        let origin = self.boards[self.place].origin().as_nanos();
        for place in self.boards[self.place].successors() {
            let Some(board) = self.boards.get(usize::from(place)) else {
                continue;
            };
            let port = PortId(self.arrivals.0 + place);
            if board.standing() == Standing::Active && !context.put(port, [origin, 0]) {
                board.drops(1);
            }
        }
    }
}

impl Body for Watched {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let board = &self.boards[self.place];
        let (before, was_in_call) = (board.quanta(), board.is_in_call());
        let step = self.upcall.step(context);
        if matches!(step, Step::Yield) {
            board.yields();
        }
        let rests = matches!(
            step,
            Step::SleepUntil(_) | Step::Wait(_) | Step::WaitUntil(..) | Step::Finish | Step::EndRun
        );
        // What its work asked for itself is no overrun.
        let asked = rests && board.quanta() != before;
        if asked {
            self.upcall.measure(context);
        }
        if let Some(took) = self.upcall.take_took() {
            board.measured(took.span, took.is_over);
        }
        if !rests || !asked && self.upcall.is_in_call() {
            // It works, or waits for its group's budget.
            return step;
        }
        if self.upcall.take_completed() {
            self.release_successors(context);
        }
        board.responds(context.now());
        let none_follows = matches!(
            step,
            Step::SleepUntil(Instant::MAX) | Step::Finish | Step::EndRun
        );
        if !asked && was_in_call && none_follows {
            board.overran();
        }
        match step {
            Step::SleepUntil(Instant::MAX) if asked => self.leave(Standing::Suspended),
            Step::SleepUntil(Instant::MAX) => self.leave(Standing::Overran),
            Step::Finish => self.leave(Standing::Ended),
            Step::EndRun => {
                board.becomes(Standing::Overran);
                step
            }
            _ => step,
        }
    }
}

/// An executor as a body, outside of any program: `first` takes turns with the handlers that it makes, and goes before them all, where the order is by deadline but for those that are overdue. Where it `shares`, they all take
/// turns with those of other processes, which its [context](Context::others) knows.
pub fn turns(
    policy: impl ExecutorPolicy + 'static,
    doorbell: SemaphoreId,
    first: Box<dyn Body>,
    shares: bool,
) -> Box<dyn Body> {
    let mut executor: Executor<_> = Executor::new(policy, doorbell).sharing(shares);
    executor.place(
        (ActivityId(0), None),
        Some(Span::from_nanos(CONTROL)),
        first,
    );
    Box::new(executor)
}
