//! The state of an executor's handlers, and who of them runs.

use super::{Claim, ExecutorError, ExecutorPolicy, HANDLERS, Job, Result};
use crate::policy::Rank;
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

/// What a place of the table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Waiting(Wait),
    /// Its job was released then.
    Ready(Instant),
    /// Its job, released then, runs.
    Running(Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    state: State,
    generation: u32,
    /// A job is due so long after its release; the greatest span if never.
    deadline: Span,
    /// Whether its jobs go behind all others, and whether the policy was told otherwise of the one that is there.
    behind: bool,
    moves: bool,
    /// The job that is there has inherited when it is current, and when it is due.
    inherited: Option<(Instant, Instant)>,
    /// Its jobs may be raised, to be due so soon after their release.
    soonest: Option<Span>,
    /// The job that is there, or the next one, was raised to be due then.
    raised: Option<Instant>,
    /// When it is raised, and to what.
    later: Option<(Instant, Instant)>,
}

/// What a policy names has no job.
const NOT_RELEASED: ExecutorError = ExecutorError::NotInState("released");

const FREE: Entry = Entry {
    state: State::Free,
    generation: 0,
    deadline: Span::MAX,
    behind: false,
    moves: false,
    inherited: None,
    soonest: None,
    raised: None,
    later: None,
};

/// Behind all who are ever due, and before those who never are.
const BEHIND: Span = Span::from_nanos(u64::MAX / 4);

impl Entry {
    /// Whose it is at this place.
    const fn at(&self, place: u16) -> HandlerId {
        HandlerId {
            place,
            generation: self.generation,
        }
    }

    /// A job of it is to others as one that is due so long after its release.
    const fn time(&self) -> Span {
        if self.behind { BEHIND } else { self.deadline }
    }

    /// Its job if released then.
    fn job(&self, release: Instant) -> Job {
        let after = |time| release.checked_add(time).unwrap_or(Instant::MAX);
        let raised = self.raised.zip(self.soonest).filter(|_| !self.behind);
        let inherited = self.inherited.filter(|_| !self.behind);
        let (logical, deadline) = match (raised, inherited) {
            (Some((due, soonest)), _) => (release, due.max(after(soonest))),
            (None, Some(inherited)) => inherited,
            (None, None) => (release, after(self.time())),
        };
        Job {
            release,
            logical,
            deadline,
        }
    }
}

/// All handlers of an executor. Its operations take `now` where they need it, cost O(handlers) at most, and keep
/// [the jobs](Self::is_conserved).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handlers<P, const N: usize = HANDLERS> {
    /// How many jobs were released, and how many are over.
    released: u64,
    over: u64,
    /// The place of the job that runs.
    running: Option<u16>,
    /// No place from here on was ever taken.
    used: u16,
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
            running: None,
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
        let mut all = (0_u16..).zip(&mut self.entries);
        let vacant = all.find(|(_, entry)| entry.state == State::Free);
        let (place, entry) = vacant.ok_or(ExecutorError::Full)?;
        let generation = entry.generation.wrapping_add(1);
        *entry = Entry {
            generation,
            deadline: deadline.unwrap_or(Span::MAX),
            ..FREE
        };
        self.used = self.used.max(place + 1);
        self.enter(place, now, now);
        Ok(HandlerId { place, generation })
    }

    /// Ends a handler, whatever it is at; its job, if it has one, is over.
    pub fn end(&mut self, handler: HandlerId, now: Instant) -> Result {
        match self.state(handler)? {
            State::Free => return Err(ExecutorError::NoSuchHandler),
            State::Waiting(_) => {}
            State::Ready(_) | State::Running(_) => self.close(handler, now),
        }
        let entry = self.entry_mut(handler.place);
        (entry.state, entry.later) = (State::Free, None);
        Ok(())
    }

    /// The handler's job is over, and it waits for the next, which nobody has raised yet.
    pub fn wait(&mut self, handler: HandlerId, wait: Wait, now: Instant) -> Result {
        self.release_of_running(handler)?;
        self.close(handler, now);
        let entry = self.entry_mut(handler.place);
        entry.state = State::Waiting(wait);
        (entry.raised, entry.later, entry.inherited) = (None, None, None);
        Ok(())
    }

    /// The handler's jobs may be raised, to be due so soon after their release and no sooner.
    pub fn declare_raise(&mut self, handler: HandlerId, soonest: Span) -> Result {
        self.state(handler)?;
        self.entry_mut(handler.place).soonest = Some(soonest);
        Ok(())
    }

    /// From `at` on, or now if that is past, the handler's job is due then, or its next one where it waits: as [`crate::policy::raise`] says.
    ///
    /// # Errors
    ///
    /// Its jobs may not be raised.
    pub fn raise(
        &mut self,
        handler: HandlerId,
        deadline: Instant,
        at: Instant,
        now: Instant,
    ) -> Result {
        self.state(handler)?;
        let entry = self.entry_mut(handler.place);
        if entry.soonest.is_none() {
            return Err(ExecutorError::NotInState("declared to be raised"));
        }
        entry.later = (at > now).then_some((at, deadline));
        if entry.later.is_none() {
            self.become_due(handler.place, deadline, now);
        }
        Ok(())
    }

    fn become_due(&mut self, place: u16, deadline: Instant, now: Instant) {
        let entry = self.entry_mut(place);
        entry.raised = Some(deadline);
        if let State::Ready(release) | State::Running(release) = entry.state {
            let due = entry.job(release).deadline;
            let rank = Rank::Deadline(due);
            self.policy.raise(place.into(), rank, now);
        }
    }

    /// Jobs of the running handler go behind all others from its next yield or wait on, or as they did before.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn go_behind(&mut self, handler: HandlerId, behind: bool) -> Result {
        self.release_of_running(handler)?;
        let entry = self.entry_mut(handler.place);
        entry.moves |= entry.behind != behind;
        entry.behind = behind;
        Ok(())
    }

    /// The running job inherits from what it works on when it is current, which may be to come, and when it is due; [`Instant::MAX`] if never. It is behind its equals from here on.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn inherit(
        &mut self,
        handler: HandlerId,
        (logical, deadline): (Instant, Instant),
        now: Instant,
    ) -> Result {
        let release = self.release_of_running(handler)?;
        let entry = self.entry_mut(handler.place);
        entry.inherited = Some((logical, deadline));
        let job = entry.job(release);
        self.policy.leave(handler.place.into(), now);
        self.policy.enter(handler.place.into(), job, now);
        Ok(())
    }

    /// When the order of those released changes by itself, at the soonest.
    pub fn reorders(&mut self, now: Instant) -> Instant {
        self.policy.decide(now).until
    }

    /// The running job lets its equals go first.
    pub fn yield_now(&mut self, handler: HandlerId, now: Instant) -> Result {
        let release = self.release_of_running(handler)?;
        let entry = self.entry_mut(handler.place);
        entry.state = State::Ready(release);
        let (moves, job) = (core::mem::take(&mut entry.moves), entry.job(release));
        let place = handler.place.into();
        if moves {
            self.policy.leave(place, now);
            self.policy.enter(place, job, now);
        } else {
            self.policy.yield_now(place, now);
        }
        self.running = None;
        Ok(())
    }

    /// Raises all for whom that was arranged and has come, and releases the jobs of all whose instant has come, by place, and tells each of these.
    pub fn release_due(&mut self, now: Instant, mut tell: impl FnMut(Released)) {
        for place in 0..self.used {
            let later = &mut self.entry_mut(place).later;
            if let Some((_, deadline)) = later.take_if(|(at, _)| *at <= now) {
                self.become_due(place, deadline, now);
            }
            if let Some((handler, wait)) = self.waiting(place)
                && wait.until <= now
            {
                self.enter(place, wait.until, now);
                tell(Released {
                    handler,
                    release: wait.until,
                    timed_out: wait.port.is_some(),
                });
            }
        }
    }

    /// The next instant that anybody waits for; [`Instant::MAX`] if nobody does.
    pub fn next_release(&self) -> Instant {
        let waiting = (0..self.used).filter_map(|place| self.waiting(place));
        let next = waiting.map(|(_, wait)| wait.until).min();
        next.unwrap_or(Instant::MAX)
    }

    /// What each handler has released or waits for.
    pub fn claims(&self) -> impl Iterator<Item = Claim> {
        self.taken().iter().filter_map(|entry| {
            let release = match entry.state {
                State::Free => return None,
                State::Waiting(wait) => wait.until,
                State::Ready(release) | State::Running(release) => release,
            };
            Some(Claim {
                rank_ns: entry.time().as_nanos(),
                release,
            })
        })
    }

    /// The handler of the running job; where none runs, the job that goes first is taken up. `None` if no job is released.
    ///
    /// # Errors
    ///
    /// The policy names somebody who has no job.
    pub fn decide(&mut self, now: Instant) -> Result<Option<HandlerId>> {
        if let Some((handler, _)) = self.running() {
            return Ok(Some(handler));
        }
        let Some((handler, job)) = self.first(now)? else {
            return Ok(None);
        };
        self.entry_mut(handler.place).state = State::Running(job.release);
        self.running = Some(handler.place);
        Ok(Some(handler))
    }

    /// Whether the running job is to yield: somebody more urgent is released.
    ///
    /// # Errors
    ///
    /// The policy names somebody who has no job, or nobody.
    pub fn must_yield(&mut self, now: Instant) -> Result<bool> {
        let Some((handler, running)) = self.running() else {
            return Ok(false);
        };
        let first = self.first(now)?;
        let (other, first) = first.ok_or(NOT_RELEASED)?;
        Ok(other != handler && self.policy.precedes(&first, &running))
    }

    /// Until when nobody more urgent than the running job is released, but by an arrival, and the policy's order stays.
    pub fn until(&mut self, now: Instant) -> Instant {
        let until = self.policy.decide(now).until;
        let Some((_, running)) = self.running() else {
            return until;
        };
        let coming = self.taken().iter().filter_map(|entry| match entry.state {
            State::Waiting(wait) => Some(entry.job(wait.until)),
            _ => None,
        });
        let urgent = coming.filter(|coming| self.policy.precedes(coming, &running));
        let raised = self.taken().iter().filter_map(|entry| entry.later);
        let raised = raised.map(|(at, _)| at);
        let urgent = urgent.map(|job| job.release).chain(raised);
        urgent.fold(until, Instant::min)
    }

    /// All handlers have places below this.
    pub const fn places(&self) -> u16 {
        self.used
    }

    /// The handler at this place and what it waits for; `None` if there is none, or it does not wait.
    pub fn waiting(&self, place: u16) -> Option<(HandlerId, Wait)> {
        let entry = self.entries.get(usize::from(place))?;
        match entry.state {
            State::Waiting(wait) => Some((entry.at(place), wait)),
            _ => None,
        }
    }

    /// The running job, and whose it is.
    pub fn running(&self) -> Option<(HandlerId, Job)> {
        self.job_at(self.running?.into())
    }

    /// The job that goes first, running or not, and whose it is.
    fn first(&mut self, now: Instant) -> Result<Option<(HandlerId, Job)>> {
        let who = self.policy.decide(now).who;
        who.map(|place| self.job_at(place).ok_or(NOT_RELEASED))
            .transpose()
    }

    /// The released job at this place, running or not.
    fn job_at(&self, place: u32) -> Option<(HandlerId, Job)> {
        let place = u16::try_from(place).ok()?;
        let entry = self.entries.get(usize::from(place))?;
        match entry.state {
            State::Ready(release) | State::Running(release) => {
                Some((entry.at(place), entry.job(release)))
            }
            _ => None,
        }
    }

    /// Releases a job of a handler that waits: what it waited for came at this instant.
    pub fn release(&mut self, handler: HandlerId, at: Instant, now: Instant) -> Result {
        let State::Waiting(_) = self.state(handler)? else {
            return Err(ExecutorError::NotInState("waiting"));
        };
        self.enter(handler.place, at, now);
        Ok(())
    }

    fn enter(&mut self, place: u16, at: Instant, now: Instant) {
        let entry = self.entry_mut(place);
        (entry.state, entry.moves) = (State::Ready(at), false);
        let job = entry.job(at);
        self.policy.enter(place.into(), job, now);
        self.released += 1;
    }

    /// The handler's job is over.
    fn close(&mut self, handler: HandlerId, now: Instant) {
        self.policy.leave(handler.place.into(), now);
        if self.running == Some(handler.place) {
            self.running = None;
        }
        self.over += 1;
    }

    /// When its job was released, if it runs.
    fn release_of_running(&self, handler: HandlerId) -> Result<Instant> {
        match self.state(handler)? {
            State::Running(release) => Ok(release),
            _ => Err(ExecutorError::NotInState("running")),
        }
    }

    fn state(&self, handler: HandlerId) -> Result<State> {
        let entry = self.entries.get(usize::from(handler.place));
        let entry = entry.filter(|entry| entry.generation == handler.generation);
        let entry = entry.ok_or(ExecutorError::NoSuchHandler)?;
        Ok(entry.state)
    }

    fn entry_mut(&mut self, place: u16) -> &mut Entry {
        &mut self.entries[usize::from(place)]
    }

    fn taken(&self) -> &[Entry] {
        &self.entries[..usize::from(self.used)]
    }

    /// Whether as many jobs were released as are over, ready, or running, and at most one runs. O(room for handlers).
    pub fn is_conserved(&self) -> bool {
        let (mut ready, mut running) = (0, 0);
        for entry in &self.entries {
            match entry.state {
                State::Ready(_) => ready += 1,
                State::Running(_) => running += 1,
                State::Free | State::Waiting(_) => {}
            }
        }
        running == u64::from(self.running.is_some()) && self.released - self.over == ready + running
    }
}
