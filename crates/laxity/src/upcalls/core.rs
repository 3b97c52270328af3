//! What an executor shares with those who use it, whatever its handlers share.

use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, ThreadId};

use laxity_linux::host::alone::{Bell, Inbox};
use laxity_linux::os::fork;
use laxity_linux::os::stderr::say_at_once;
use laxity_model::base::port::PortKind;
use laxity_model::executor::{ExecutorError, HANDLERS};
use laxity_model::program::upcalls::{Board, Command, Order, Rests, Standing};
use laxity_model::{Body, Context, PortId, SemaphoreId, Span, Step};

use super::beside::{self, Footing};
use super::coordinated::Books;
use super::members::Member;
use super::virtual_time::Virtuals;
use super::{Error, State};

/// Rung whenever something arrives.
pub(super) const DOORBELL: SemaphoreId = PortId(0);
/// What is asked of the executor.
pub(super) const COMMANDS: PortId = PortId(1);
/// What arrives for the upcall of the first place; the others follow.
const FIRST: u16 = 2;
/// So many upcalls: one of an executor's handlers carries out what is asked for the others.
pub(super) const PLACES: usize = HANDLERS - 1;
/// So many commands may wait: one of each upcall, and as many again that handlers ask for.
const MOST_COMMANDS: u32 = 2 * HANDLERS as u32;
/// So long a command is waited for, and a closed upcall that still counts: a handler that takes longer does not come back.
pub(super) const PATIENCE: Span = Span::from_secs(10);

/// The port of what arrives for an upcall.
pub(super) const fn arrivals(place: u16) -> PortId {
    PortId(FIRST + place)
}

/// The ports of an executor; so many arrivals wait for each upcall.
pub(super) fn ports(events: u32) -> Vec<PortKind> {
    let doorbell = PortKind::Count {
        initial: 0,
        most: 1,
    };
    let commands = PortKind::Queue {
        capacity: MOST_COMMANDS,
    };
    let events = PortKind::Queue { capacity: events };
    [doorbell, commands]
        .into_iter()
        .chain((0..PLACES).map(|_| events))
        .collect()
}

/// All locks here are of callers among themselves. The executor tries the one of `panics`, and goes on where it is held.
pub(super) struct Core {
    pub(super) inbox: Inbox,
    pub(super) footing: Footing,
    pub(super) boards: Arc<[Board]>,
    pub(super) bell: Bell,
    members: Mutex<Vec<Option<Member>>>,
    /// By place: held while a command for it is under way.
    asking: Vec<Mutex<()>>,
    /// By place: the ticket of what was asked there last by who waits for an answer.
    asked: Vec<AtomicU64>,
    /// By place, a bit each: nobody has its upcall any more, and there was no room to say so.
    pub(super) abandoned: [AtomicU64; 2],
    /// By place: whoever had it has closed it, and it is free once the executor has done that too, and nothing is [owed](Board::owes) for it.
    pub(super) gone: Vec<AtomicBool>,
    /// By place, once that is so: whom it may have kept from a processor, each of which has told when it has had nothing to do since.
    awaited: Mutex<Vec<Option<Vec<Awaited>>>>,
    pub(super) rests: Arc<Rests>,
    /// By place: so many threads have found its upcall open and have something arrive for it; until they have, it is nobody else's.
    visits: Vec<AtomicU32>,
    /// By place: what its handler said when it panicked.
    pub(super) panics: Vec<Mutex<String>>,
    thread: OnceLock<ThreadId>,
    /// Why what is shared could not be made.
    failed: OnceLock<Option<String>>,
    over: AtomicBool,
    /// Nothing of the executor runs any more; it may be over before that.
    ended: AtomicBool,
    /// The process that has the executor.
    generation: u32,
    tickets: AtomicU64,
    pub(super) virtuals: Virtuals,
    /// Where a coordinator admits.
    pub(super) books: Option<Books>,
}

impl Core {
    pub(super) fn new(inbox: Inbox, footing: Footing, books: Option<Books>) -> Self {
        Self {
            inbox,
            footing,
            books,
            boards: (0..PLACES).map(|_| Board::default()).collect(),
            bell: Bell::default(),
            members: Mutex::new((0..PLACES).map(|_| None).collect()),
            asking: (0..PLACES).map(|_| Mutex::default()).collect(),
            asked: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            abandoned: [const { AtomicU64::new(0) }; 2],
            gone: (0..PLACES).map(|_| AtomicBool::new(false)).collect(),
            awaited: Mutex::new((0..PLACES).map(|_| None).collect()),
            rests: Arc::default(),
            visits: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
            panics: (0..PLACES).map(|_| Mutex::default()).collect(),
            thread: OnceLock::new(),
            failed: OnceLock::new(),
            over: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            generation: fork::generation(),
            tickets: AtomicU64::new(0),
            virtuals: Virtuals::default(),
        }
    }

    /// The body, such that it ends the process where an upcall is to do so.
    pub(super) fn host(self: &Arc<Self>, mut body: Box<dyn Body>) -> Box<dyn Body> {
        let core = Arc::clone(self);
        Box::new(move |context: &mut dyn Context| {
            let step = body.step(context);
            if let Step::EndRun = step {
                core.end_process();
            }
            step
        })
    }

    /// Says who overran if that is taken at once, and aborts: what runs at an exit would run at the executor's rank, and beside the other threads.
    fn end_process(&self) -> ! {
        let overran = |board: &Board| board.standing() == Standing::Overran;
        let place = self.boards.iter().position(overran);
        // Somebody may hold this who is interrupted.
        let members = self.members.try_lock().ok();
        let member = members.as_ref().and_then(|all| all.get(place?)?.as_ref());
        let name = member.map_or("an upcall", |member| &member.name);
        say_at_once(&format!(
            "laxity: {name} overran, and was to end its process then\n"
        ));
        process::abort()
    }

    /// All that are there. Callers wait for each other here, and the executor for none of them.
    pub(super) fn members(&self) -> MutexGuard<'_, Vec<Option<Member>>> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, (member, awaited)) in members.iter_mut().zip(&mut *awaited).enumerate() {
            let is_left = self.is_done(place) && self.visits[place].load(Ordering::SeqCst) == 0;
            let has_rested = |all: &Vec<Awaited>| all.iter().all(Awaited::has_rested);
            let was_called = self.boards[place].counts().calls > 0;
            if is_left && (!was_called || awaited.as_ref().is_some_and(has_rested)) {
                self.gone[place].store(false, Ordering::Release);
                (*member, *awaited) = (None, None);
            }
        }
        drop(awaited);
        members
    }

    /// Whether whoever had this place has closed it, and the executor itself is done with that. Where nobody waited for that, it is so later.
    fn is_done(&self, place: usize) -> bool {
        let board = &self.boards[place];
        // What is made there yet is not there before.
        let is_heard = || board.answer(self.asked[place].load(Ordering::Acquire));
        self.is_gone(place)
            && is_heard().is_some()
            && board.standing() == Standing::Absent
            && !board.owes()
    }

    /// Whether the upcall of this place is called no more, though nobody has closed it.
    fn is_spent(&self, place: usize) -> bool {
        let standing = self.boards[place].standing();
        matches!(standing, Standing::Ended | Standing::Panicked)
    }

    /// Those of these that it may have kept from a processor are to tell when they have had nothing to do, for each that is closed; and itself, too, for each that has ended, of which its executor does not say what it [owes](Board::owes).
    pub(super) fn ask_for_rests(self: &Arc<Self>, others: &[Arc<Self>]) {
        let kept = others.iter();
        let kept = kept.filter(|other| self.footing.delays(&other.footing));
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, awaited) in awaited.iter_mut().enumerate() {
            let own = self.is_spent(place).then_some(self);
            if own.is_some() || self.is_done(place) {
                let all = || kept.clone().chain(own).map(Awaited::new).collect();
                let all = awaited.get_or_insert_with(all);
                all.iter_mut().for_each(Awaited::ask);
            }
        }
    }

    /// By place, those of these that admission counts: not one that has ended, closed or not, once nobody is later by what it has done.
    fn counting<'a>(&self, members: &'a [Option<Member>]) -> Vec<(usize, &'a Member)> {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = |place: usize| {
            let all = awaited[place].as_ref();
            !all.is_some_and(|all| all.iter().all(Awaited::has_rested))
        };
        let there = members.iter().enumerate();
        let there = there.filter_map(|(place, member)| Some((place, member.as_ref()?)));
        there.filter(|(place, _)| counts(*place)).collect()
    }

    /// Those of these that admission counts.
    pub(super) fn counted<'a>(
        &self,
        members: &'a [Option<Member>],
    ) -> impl Iterator<Item = &'a Member> {
        let all = self.counting(members).into_iter();
        all.map(|(_, member)| member)
    }

    /// Those of them that are closed or have ended: what they have done may make others later yet.
    pub(super) fn closed(&self, members: &[Option<Member>]) -> Vec<u64> {
        let all = self.counting(members).into_iter();
        let over = all.filter(|(place, _)| self.is_gone(*place) || self.is_spent(*place));
        over.map(|(_, member)| member.serial).collect()
    }

    /// Tells all who wait that something has changed here.
    pub(super) fn changed(&self) {
        self.bell.ring();
        beside::CHANGED.ring();
    }

    /// The calling thread is the executor's, and what is shared is made, or could not be.
    pub(super) fn begins(&self, failed: Option<String>) {
        let _ = self.thread.set(thread::current().id());
        let _ = self.failed.set(failed);
        self.bell.ring();
    }

    pub(super) fn await_begin(&self) -> Result<(), Error> {
        let begun = || match self.failed.get() {
            Some(Some(why)) => Some(Err(Error::Panicked(why.clone()))),
            Some(None) => Some(Ok(())),
            None => self.is_over().then_some(Err(Error::Over)),
        };
        self.bell.wait_for(None, begun).unwrap_or(Err(Error::Over))
    }

    /// Whether the caller is a handler.
    pub(super) fn is_inside(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    /// Whether the executor has ended, or is not there: in a child that was forked.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.is_elsewhere()
    }

    /// Whether nothing of the executor runs any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether the executor is another process's.
    pub(super) fn is_elsewhere(&self) -> bool {
        fork::generation() != self.generation
    }

    /// Does what a user wrote, in the executor's thread: what comes of it, or what it panicked with. A child that it forked ends there.
    pub(super) fn try_to<T>(&self, work: impl FnOnce() -> T) -> thread::Result<T> {
        let done = panic::catch_unwind(AssertUnwindSafe(work));
        if self.is_elsewhere() {
            fork::end_child();
        }
        done
    }

    /// Has a command carried out: before this returns, or where a handler asks, after its quantum. Nothing is asked of one that is `closed`, since its place
    /// may be another's.
    pub(super) fn ask(
        &self,
        place: u16,
        command: Command,
        closed: &AtomicBool,
    ) -> Result<(), Error> {
        // In a child whoever has a lock may be there no more.
        if self.is_elsewhere() {
            return Err(Error::Over);
        }
        if self.is_inside() {
            return self.put(place, command, closed, 0);
        }
        let index = usize::from(place);
        let _alone = self.asking[index].lock();
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        self.put(place, command, closed, ticket)?;
        self.asked[index].store(ticket, Ordering::Release);
        let answer = || match self.boards[index].answer(ticket) {
            Some(answer) => Some(answer.map_err(|error| match error {
                ExecutorError::Full => Error::Full,
                _ => Error::Ended,
            })),
            None => self.is_over().then_some(Err(Error::Over)),
        };
        let until = crate::now() + PATIENCE;
        let answer = self.bell.wait_for(Some(until), answer);
        answer.unwrap_or(Err(Error::NoAnswer(PATIENCE)))
    }

    /// Whoever finds it not closed puts its command before the place can be another's: that is so only when a later command was answered.
    fn put(
        &self,
        place: u16,
        command: Command,
        closed: &AtomicBool,
        ticket: u64,
    ) -> Result<(), Error> {
        let closes = command == Command::Close;
        let was_closed = match closes {
            true => closed.swap(true, Ordering::SeqCst),
            false => closed.load(Ordering::Acquire),
        };
        if was_closed {
            return Err(Error::Ended);
        }
        let order = Order {
            place,
            command,
            ticket,
        };
        let has_room = !self.is_over() && self.inbox.put(COMMANDS, order.payload());
        if has_room {
            return Ok(());
        }
        closed.fetch_and(!closes, Ordering::AcqRel);
        Err(if self.is_over() {
            Error::Over
        } else {
            Error::Busy
        })
    }

    /// The place of an upcall is nobody else's until what comes of this is dropped.
    pub(super) fn stay(&self, place: u16) -> Visit<'_> {
        let visits = &self.visits[usize::from(place)];
        visits.fetch_add(1, Ordering::SeqCst);
        Visit(visits)
    }

    /// Keeps the place of an upcall its own until what comes of this is dropped; `None` if it is closed.
    pub(super) fn visit(&self, place: u16, closed: &AtomicBool) -> Option<Visit<'_>> {
        let visit = self.stay(place);
        // After that, as whoever frees the place looks at the one after the other.
        (!closed.load(Ordering::SeqCst)).then_some(visit)
    }

    /// No descriptor feeds this port any more. In a child it is the parent's.
    pub(super) fn end_feed(&self, port: Option<PortId>) {
        if let Some(port) = port.filter(|_| !self.is_elsewhere()) {
            self.inbox.end_feed(port);
        }
    }

    /// Whether whoever had this place has closed it.
    pub(super) fn is_gone(&self, place: usize) -> bool {
        self.gone[place].load(Ordering::Acquire)
    }

    /// Nobody waits for the executor any more.
    pub(super) fn gives_up(&self) {
        self.over.store(true, Ordering::Release);
        self.changed();
    }

    pub(super) fn said(&self, place: u16) -> String {
        let said = self.panics[usize::from(place)].lock();
        said.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn state(&self, place: u16) -> State {
        if self.is_over() {
            return State::Closed;
        }
        match self.boards[usize::from(place)].standing() {
            Standing::Absent => State::Closed,
            Standing::Suspended => State::Suspended,
            Standing::Active => State::Active,
            Standing::Overran => State::Overran,
            Standing::Ended => State::Ended,
            Standing::Panicked => State::Panicked(self.said(place)),
        }
    }
}

/// An executor that is to have nothing to do, and the number that it was asked for that with, once it was.
struct Awaited(Weak<Core>, Option<u64>);

impl Awaited {
    fn new(core: &Arc<Core>) -> Self {
        Self(Arc::downgrade(core), None)
    }

    fn ask(&mut self) {
        if let (Some(core), None) = (self.0.upgrade(), self.1) {
            let number = core.tickets.fetch_add(1, Ordering::Relaxed) + 1;
            let is_asked = core.inbox.put(COMMANDS, Rests::ask(number));
            self.1 = is_asked.then_some(number);
        }
    }

    fn has_rested(&self) -> bool {
        let core = self.0.upgrade();
        core.is_none_or(|core| {
            core.is_over() || self.1.is_some_and(|number| core.rests.has_had(number))
        })
    }
}

/// Somebody has something arrive for the upcall of a place.
pub(super) struct Visit<'a>(&'a AtomicU32);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Dropped by the executor's thread at its very end, however that comes.
pub(super) struct Over(pub(super) Arc<Core>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.gives_up();
    }
}

#[cfg(test)]
mod tests;
