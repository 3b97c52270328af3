//! The state of an executor's handlers, and who of them runs.

use super::{Claim, ExecutorError, ExecutorPolicy, HANDLERS, Job, Result};
use crate::{Instant, PortId, Span};
use derive_more::Display;

/// A handler of an executor: its place in the table, and which of those that had the place it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[display("{place}.{generation}")]
pub struct HandlerId {
    place: u16,
    generation: u32,
}

impl HandlerId {
    /// Its place in the executor's table, below the number of handlers that there is room for.
    pub const fn place(self) -> u16 {
        self.place
    }
}

/// What a handler waits for; whichever comes first releases its next job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// An arrival at this port.
    pub port: Option<PortId>,
    /// This instant; [`Instant::MAX`] if none.
    pub until: Instant,
}

/// How a handler's job came to be released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Released {
    /// Whose it is.
    pub handler: HandlerId,
    /// When.
    pub release: Instant,
    /// Whether it waited for a port too, at which nothing arrived in time.
    pub timed_out: bool,
}

/// What a place of the table is, stored so that memory full of zeros, or of anything else, is damage and no state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free = 0x4c58_0001,
    Waiting = 0x4c58_0002,
    /// Its job is released.
    Ready = 0x4c58_0003,
    /// Its job runs.
    Running = 0x4c58_0004,
}

impl State {
    const fn tag(self) -> u32 {
        self as u32
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
        }
    }

    fn of(tag: u32) -> Result<Self> {
        let all = [Self::Free, Self::Waiting, Self::Ready, Self::Running];
        let found = all.into_iter().find(|state| state.tag() == tag);
        found.ok_or(ExecutorError::Damaged("the tag of a handler"))
    }
}

/// No port, and nobody.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
struct Entry {
    tag: u32,
    generation: u32,
    /// The port it waits for.
    port: u32,
    /// Keeps what follows aligned alike in every process.
    reserved: u32,
    /// A job is due so long after its release; the greatest number if never.
    deadline_ns: u64,
    /// The instant it waits for, while it waits.
    wake_ns: u64,
    /// When its job was released.
    release_ns: u64,
}

const FREE: Entry = Entry {
    tag: State::Free.tag(),
    generation: 0,
    port: NONE,
    reserved: 0,
    deadline_ns: u64::MAX,
    wake_ns: u64::MAX,
    release_ns: 0,
};

impl Entry {
    fn due(&self, release: Instant) -> Instant {
        let due = release.checked_add(Span::from_nanos(self.deadline_ns));
        due.unwrap_or(Instant::MAX)
    }

    /// Its job if released then.
    fn job(&self, release: Instant) -> Job {
        Job {
            release,
            deadline: self.due(release),
        }
    }
}

/// All handlers of an executor. Its operations take `now` where they need it, cost O(handlers) at most, and keep
/// [the jobs](Self::is_conserved).
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Handlers<P, const N: usize = HANDLERS> {
    /// How many jobs were released, and how many are over.
    released: u64,
    over: u64,
    /// The place of the job that runs.
    running: u32,
    /// No place from here on was ever taken.
    used: u32,
    entries: [Entry; N],
    policy: P,
}

impl<P: ExecutorPolicy, const N: usize> Handlers<P, N> {
    /// No handlers yet.
    #[must_use]
    pub fn new(policy: P) -> Self {
        Self {
            released: 0,
            over: 0,
            running: NONE,
            used: 0,
            entries: [FREE; N],
            policy,
        }
    }

    /// The policy.
    pub const fn policy(&self) -> &P {
        &self.policy
    }

    /// Makes a handler whose first job is released now. Each of its jobs is due `deadline` after its release, or never.
    pub fn make(&mut self, deadline: Option<Span>, now: Instant) -> Result<HandlerId> {
        let place = self.vacant()?;
        let entry = self.entry_mut(place)?;
        let generation = entry.generation.wrapping_add(1);
        *entry = Entry {
            tag: State::Waiting.tag(),
            generation,
            deadline_ns: deadline.map_or(u64::MAX, Span::as_nanos),
            ..FREE
        };
        self.used = self.used.max(u32::from(place) + 1);
        let handler = HandlerId { place, generation };
        self.release(handler, now, now)?;
        Ok(handler)
    }

    /// Ends a handler, whatever it is at; its job, if it has one, is over.
    pub fn end(&mut self, handler: HandlerId, now: Instant) -> Result {
        match self.state(handler)? {
            State::Free => return Err(ExecutorError::NoSuchHandler),
            State::Waiting => {}
            State::Ready | State::Running => self.close(handler, now)?,
        }
        let entry = self.entry_mut(handler.place)?;
        *entry = Entry {
            generation: entry.generation,
            ..FREE
        };
        Ok(())
    }

    /// The handler's job is over, and it waits for the next.
    pub fn wait(&mut self, handler: HandlerId, wait: Wait, now: Instant) -> Result {
        self.expect(handler, State::Running)?;
        self.close(handler, now)?;
        let entry = self.entry_mut(handler.place)?;
        entry.tag = State::Waiting.tag();
        entry.port = wait.port.map_or(NONE, |port| u32::from(port.0));
        entry.wake_ns = wait.until.as_nanos();
        Ok(())
    }

    /// The running job lets its equals go first.
    pub fn yield_now(&mut self, handler: HandlerId, now: Instant) -> Result {
        self.expect(handler, State::Running)?;
        self.policy.yield_now(handler.place.into(), now);
        self.entry_mut(handler.place)?.tag = State::Ready.tag();
        self.running = NONE;
        self.intact()
    }

    /// Releases the jobs of all whose instant has come, by place, and tells each.
    pub fn release_due(&mut self, now: Instant, mut tell: impl FnMut(Released)) -> Result {
        for place in 0..self.places() {
            let Some((handler, wait)) = self.waiting(place)? else {
                continue;
            };
            if wait.until <= now {
                self.release(handler, wait.until, now)?;
                tell(Released {
                    handler,
                    release: wait.until,
                    timed_out: wait.port.is_some(),
                });
            }
        }
        Ok(())
    }

    /// The next instant that anybody waits for; [`Instant::MAX`] if nobody does.
    pub fn next_release(&self) -> Result<Instant> {
        let mut next = Instant::MAX;
        for place in 0..self.places() {
            if let Some((_, wait)) = self.waiting(place)? {
                next = next.min(wait.until);
            }
        }
        Ok(next)
    }

    /// What each handler has released or waits for.
    pub fn claims(&self) -> impl Iterator<Item = Claim> {
        let taken = self.entries.iter().take(self.places().into());
        taken.filter_map(|entry| {
            let release_ns = match State::of(entry.tag).ok()? {
                State::Free => return None,
                State::Waiting => entry.wake_ns,
                State::Ready | State::Running => entry.release_ns,
            };
            Some(Claim {
                rank_ns: entry.deadline_ns,
                release: Instant::from_nanos(release_ns),
            })
        })
    }

    /// The handler of the running job; where none runs, the job that goes first is taken up. `None` if no job is released.
    pub fn decide(&mut self, now: Instant) -> Result<Option<HandlerId>> {
        if let Some((handler, _)) = self.running()? {
            return Ok(Some(handler));
        }
        let first = self.first(now)?;
        if let Some((handler, _)) = first {
            self.entry_mut(handler.place)?.tag = State::Running.tag();
            self.running = handler.place.into();
        }
        Ok(first.map(|(handler, _)| handler))
    }

    /// Whether the running job is to yield: somebody more urgent is released.
    pub fn must_yield(&mut self, now: Instant) -> Result<bool> {
        let Some((handler, running)) = self.running()? else {
            return Ok(false);
        };
        let Some((other, first)) = self.first(now)? else {
            return Err(ExecutorError::Damaged("the policy lost the running job"));
        };
        Ok(other != handler && self.policy.precedes(&first, &running))
    }

    /// Until when nobody more urgent than the running job is released, but by an arrival, and the policy's order stays.
    pub fn until(&mut self, now: Instant) -> Result<Instant> {
        let mut until = self.policy.decide(now).until;
        let Some((_, running)) = self.running()? else {
            return Ok(until);
        };
        for place in 0..self.places() {
            let Some((_, wait)) = self.waiting(place)? else {
                continue;
            };
            let coming = self.entry(place)?.job(wait.until);
            if wait.until < until && self.policy.precedes(&coming, &running) {
                until = wait.until;
            }
        }
        Ok(until)
    }

    /// All handlers have places below this.
    pub fn places(&self) -> u16 {
        self.used.min(N as u32).try_into().unwrap_or(u16::MAX)
    }

    /// The handler at this place and what it waits for; `None` if there is none, or it does not wait.
    pub fn waiting(&self, place: u16) -> Result<Option<(HandlerId, Wait)>> {
        let entry = self.entry(place)?;
        if State::of(entry.tag)? != State::Waiting {
            return Ok(None);
        }
        let port = match entry.port {
            NONE => None,
            port => match u16::try_from(port) {
                Ok(port) => Some(PortId(port)),
                Err(_) => return Err(ExecutorError::Damaged("the port of a handler")),
            },
        };
        let until = Instant::from_nanos(entry.wake_ns);
        Ok(Some((self.at(place)?, Wait { port, until })))
    }

    /// The running job, and whose it is.
    pub fn running(&self) -> Result<Option<(HandlerId, Job)>> {
        if self.running == NONE {
            return Ok(None);
        }
        self.released(self.running, State::Running).map(Some)
    }

    /// The job that goes first, running or not, and whose it is.
    fn first(&mut self, now: Instant) -> Result<Option<(HandlerId, Job)>> {
        let first = self.policy.decide(now).who;
        self.intact()?;
        let Some(place) = first else {
            return Ok(None);
        };
        let state = if place == self.running {
            State::Running
        } else {
            State::Ready
        };
        self.released(place, state).map(Some)
    }

    /// The job at this place, which must be in this state.
    fn released(&self, place: u32, state: State) -> Result<(HandlerId, Job)> {
        let damaged = ExecutorError::Damaged("who runs, or is to run");
        let place = u16::try_from(place).map_err(|_| damaged)?;
        let entry = self.entry(place)?;
        if State::of(entry.tag)? != state {
            return Err(damaged);
        }
        let job = entry.job(Instant::from_nanos(entry.release_ns));
        Ok((self.at(place)?, job))
    }

    /// A place that nobody has.
    fn vacant(&self) -> Result<u16> {
        for (place, entry) in (0_u16..).zip(&self.entries) {
            if State::of(entry.tag)? == State::Free {
                return Ok(place);
            }
        }
        Err(ExecutorError::Full)
    }

    /// Releases a job of a handler that waits: what it waited for came at this instant.
    pub fn release(&mut self, handler: HandlerId, at: Instant, now: Instant) -> Result {
        self.expect(handler, State::Waiting)?;
        let entry = self.entry_mut(handler.place)?;
        entry.release_ns = at.as_nanos();
        entry.tag = State::Ready.tag();
        let job = entry.job(at);
        self.policy.enter(handler.place.into(), job, now);
        self.released = self.released.wrapping_add(1);
        self.intact()
    }

    /// The handler's job is over.
    fn close(&mut self, handler: HandlerId, now: Instant) -> Result {
        self.policy.leave(handler.place.into(), now);
        if self.running == u32::from(handler.place) {
            self.running = NONE;
        }
        self.over = self.over.wrapping_add(1);
        self.intact()
    }

    fn intact(&self) -> Result {
        let damaged = ExecutorError::Damaged("the policy's");
        self.policy.is_intact().then_some(()).ok_or(damaged)
    }

    fn expect(&self, handler: HandlerId, state: State) -> Result {
        if self.state(handler)? == state {
            Ok(())
        } else {
            Err(ExecutorError::NotInState(state.name()))
        }
    }

    fn at(&self, place: u16) -> Result<HandlerId> {
        let generation = self.entry(place)?.generation;
        Ok(HandlerId { place, generation })
    }

    fn state(&self, handler: HandlerId) -> Result<State> {
        let entry = self.entry(handler.place)?;
        if entry.generation != handler.generation {
            return Err(ExecutorError::NoSuchHandler);
        }
        State::of(entry.tag)
    }

    fn entry(&self, place: u16) -> Result<&Entry> {
        let entry = self.entries.get(usize::from(place));
        entry.ok_or(ExecutorError::Damaged("the place of a handler"))
    }

    fn entry_mut(&mut self, place: u16) -> Result<&mut Entry> {
        let entry = self.entries.get_mut(usize::from(place));
        entry.ok_or(ExecutorError::Damaged("the place of a handler"))
    }

    /// Whether as many jobs were released as are over, ready, or running, and at most one runs. O(room for handlers).
    pub fn is_conserved(&self) -> bool {
        let tagged = |state: State| {
            let of_state = self.entries.iter().filter(|entry| entry.tag == state.tag());
            of_state.count() as u64
        };
        let (ready, running) = (tagged(State::Ready), tagged(State::Running));
        running == u64::from(self.running != NONE)
            && self.released.wrapping_sub(self.over) == ready + running
    }
}
