//! A periodic handler as a body: so many units of work at each release, and a look for a yield after every few of them.
//!
//! Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995, §§3–5. What is worked on is
//! counted in protocol data units (PDUs) there: a *batch* B_p of them each period, a *quantum* b_p of them between two looks.

mod held;
mod timing;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Body, Context, Links, Step};
use crate::executor::account::Account;
use crate::executor::pacing::{Arriving, Next, Paced, Pacing};
use crate::executor::share::Share;
use crate::{Instant, Mark, PortId, Service, Span};

pub use crate::executor::pacing::Epoch;
use held::Took;
pub use timing::{First, Timing};

/// What a handler is told of the call that it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its release, how many before it came to nothing, and whether the call before was still at work then.
    pub paced: Paced,
    /// When it began.
    pub began: Instant,
    /// When the call before ended; `None` of the first, and of the first after a suspension.
    pub previous_ended: Option<Instant>,
    /// Whether its own next release has come while it was at work.
    pub overruns: bool,
    /// What came with the arrival that released it, if one did.
    pub arrived: Option<[u64; 2]>,
    /// The release of the first of its chain; its own where nobody precedes it.
    pub origin: Instant,
    /// So many arrivals found no room since the call before.
    pub dropped: u64,
    /// Whether its quantum before this one, of this call or an earlier one, took longer than was declared.
    pub over_service: bool,
    /// So many units are done.
    done: u32,
    /// So many are to be done now, without a look.
    now: u32,
    /// So many are left of the quantum that is under way; none when it is over, and nothing of the next is done.
    left: u32,
    /// So many are to be done in this call.
    batch: u32,
    /// So often in a row nothing was done, and nobody went first.
    idled: u8,
    /// As [`Timing`] has it.
    pauses: bool,
}

impl Call {
    /// So many units are done.
    pub const fn done(&self) -> u32 {
        self.done
    }

    /// So many are to be done now, without a look: a quantum, or what is left of the batch.
    pub const fn now(&self) -> u32 {
        self.now
    }

    /// So many units are to be done in this call.
    pub const fn batch(&self) -> u32 {
        self.batch
    }

    /// There is no more to be done in this call than what is to be done now.
    pub const fn finish(&mut self) {
        self.batch = self.done;
    }

    /// Whether somebody more urgent goes first where this quantum [pauses](Self::pause_after): always but in the last quantum of one that does not [say](Timing::pauses) that it pauses.
    pub const fn can_pause(&self) -> bool {
        self.pauses || self.left == 0 || self.done + self.left < self.batch
    }

    /// So many units are done now, and not what was to be: the others of this quantum are, as soon as nobody more urgent waits; at once where it [cannot](Self::can_pause) pause. Where that is none twice, and nobody goes first, there is no more to be done in this call. More than were to
    /// be done count too, up to the batch: they were done without a look, and what they took is this quantum's.
    pub fn pause_after(&mut self, units: u32) {
        self.now = units.min((self.batch - self.done).max(self.now));
    }

    /// So many units are done now, and there is no more to be done in this call.
    pub fn finish_after(&mut self, units: u32) {
        self.pause_after(units);
        self.batch = self.done + self.now;
    }

    const fn is_over(&self) -> bool {
        self.done >= self.batch
    }
}

/// The port whose arrivals release an upcall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacedBy {
    /// Which.
    pub port: PortId,
    /// From one release to the next at least; zero where the ends of another one's calls arrive there.
    pub apart: Span,
    /// So many arrivals wait there at most.
    pub room: u32,
}

impl PacedBy {
    /// Whether the ends of another one's calls arrive there.
    pub(super) fn is_another(self) -> bool {
        self.apart == Span::ZERO
    }
}

/// An upcall: its work is called once for each quantum, with the call that it is in, and returns what that costs ([`Step::Charge`], [`Step::Burn`]).
///
/// On an executor it yields after a quantum where somebody more urgent waits, and goes on with what is left of its batch in its turn. One that was
/// suspended waits for ever: who [releases](crate::executor::Handlers::release) it has it resume, in the phase that it had.
pub struct Upcall<W> {
    timing: Timing,
    /// Left at the begin of each call, with the release of the first of its chain and that begin.
    begins: Mark,
    work: W,
    /// The end of another one's calls releases it, and says when the first of their chain was released.
    follows: bool,
    /// The ends of its own arrive there.
    before: Vec<PortId>,
    /// Left at the end of each call, too, where its waits do not tell of that: those for a budget.
    ends: Option<Mark>,
    /// What releases it, if that is not time alone, and what came with the last release.
    port: Option<(PortId, Arriving)>,
    arrived: Option<[u64; 2]>,
    /// Once it has begun.
    pacing: Option<Pacing>,
    /// Its first release is not before this, if not from now on.
    from: Option<Instant>,
    ended: Option<Instant>,
    at: At,
    /// What a unit takes, as was declared.
    unit: Service,
    /// What it has together with others.
    share: Option<Arc<Share>>,
    /// What it is held to.
    account: Option<Arc<Account>>,
    /// It owes service, and works where nobody else has anything to do.
    behind: bool,
    /// When it began to do the work that it does now, and where it is held to anything, what its thread had received then, and how long the machine had stood still.
    working: Option<(Instant, Service, Span)>,
    /// What is left of what was declared for the quantum that is under way.
    allowed: Span,
    /// What the last one took, until somebody asks; whether that was too long, and whether one of this call was.
    took: Option<Took>,
    over: bool,
    over_in_call: bool,
    /// A call was over since somebody asked.
    completed: bool,
}

/// What is to be done when it has the processor.
#[derive(Clone, Copy)]
enum At {
    /// To begin, or to begin again.
    Idle,
    /// What has arrived.
    Waiting,
    /// A call.
    Due(Paced),
    /// To look whether to yield, and else to go on.
    Looking(Call),
    /// To go on.
    Resumed(Call),
}

impl<W: FnMut(&mut dyn Context, &mut Call) -> Step + Send> Upcall<W> {
    /// An upcall, which leaves `begins` at the begin of each call, with its release, or that of the first of its chain, and that begin in nanoseconds.
    pub const fn new(timing: Timing, begins: Mark, work: W) -> Self {
        Self {
            timing,
            begins,
            work,
            follows: false,
            before: Vec::new(),
            ends: None,
            port: None,
            arrived: None,
            pacing: None,
            from: None,
            ended: None,
            at: At::Idle,
            unit: Service::MAX,
            share: None,
            account: None,
            behind: false,
            working: None,
            allowed: Span::MAX,
            took: None,
            over: false,
            over_in_call: false,
            completed: false,
        }
    }

    /// One whose units are declared to take no more than this, and which has its service together with others where there is a share.
    #[must_use]
    pub fn declared(mut self, unit: Service, share: Option<Arc<Share>>) -> Self {
        (self.unit, self.share) = (unit, share);
        self
    }

    /// One that waits where it has taken more than it was admitted with, if there is an account of that.
    #[must_use]
    pub fn held_to(mut self, account: Option<Arc<Account>>) -> Self {
        self.account = account;
        self
    }

    /// One of a program, whose units are declared to take no more than this, with what it has to do with others there: what the program is [told](super::Program::link). It leaves `ends` at the end of each call, with the release of
    /// the first of its chain and its begin: where there is a budget, not every wait is an end.
    #[must_use]
    pub fn linked(mut self, unit: Service, links: &Links, ends: Option<Mark>) -> Self {
        if let Some(port) = links.after {
            self.port = Some((port, Arriving::new(Span::ZERO, self.timing.on_overrun)));
            self.follows = true;
        }
        self.before.clone_from(&links.before);
        let share = links.group.as_ref().map(|group| Arc::clone(&group.share));
        self.ends = ends;
        self.declared(unit, share)
    }

    /// One that is to be called from the instant on when that was `asked`, and has been called before for the release that is said, if for any: not for that again, nor sooner after it than its distance. What has arrived before that instant counts as if it did so then.
    #[must_use]
    pub(super) fn asked(mut self, asked: Instant, called: Option<Instant>) -> Self {
        let next = called.and_then(|called| called.checked_add(Span::from_nanos(1)));
        self.from = Some(next.map_or(asked, |next| next.max(asked)));
        if let Some((_, arriving)) = &mut self.port {
            arriving.follow(called, asked);
        }
        self
    }

    /// Whether a call has begun that is not over: it goes on.
    pub(super) const fn is_in_call(&self) -> bool {
        matches!(self.at, At::Looking(_) | At::Resumed(_))
    }

    /// Whether a call was over since this was asked last; of one that suspends or ends itself, whether nothing of its call is left.
    pub(super) fn take_completed(&mut self) -> bool {
        let is_over = matches!(self.at, At::Looking(call) if call.is_over());
        core::mem::take(&mut self.completed) || is_over
    }

    /// One that each arrival at a port releases, if there is one: no sooner than a period after the release before, so that it takes no more than
    /// one that time releases. Arrivals wait in the port meanwhile; of those whose release comes while a call is at work becomes what was chosen for overruns.
    pub fn paced_by(port: Option<PortId>, timing: Timing, begins: Mark, work: W) -> Self {
        let arriving = Arriving::new(timing.period, timing.on_overrun);
        let mut upcall = Self::new(timing, begins, work);
        upcall.port = port.map(|port| (port, arriving));
        upcall
    }

    /// The same with what is said of the port.
    pub(super) fn fed(paced_by: Option<PacedBy>, timing: Timing, begins: Mark, work: W) -> Self {
        let on_overrun = timing.on_overrun;
        let mut upcall = Self::new(timing, begins, work);
        upcall.follows = paced_by.is_some_and(PacedBy::is_another);
        upcall.port = paced_by.map(|by| {
            let arriving = Arriving::new(by.apart, on_overrun);
            (by.port, arriving.in_room(by.room))
        });
        upcall
    }

    /// What is next of what has arrived, and else the port to wait for; `None` if no port releases it.
    fn next_arrival(&mut self, context: &mut dyn Context) -> Option<Result<Next, PortId>> {
        let (port, arriving) = self.port.as_mut()?;
        let port = *port;
        let Some((next, arrived)) = arriving.after(self.ended, || context.take(port)) else {
            return Some(Err(port));
        };
        self.arrived = Some(arrived);
        Some(Ok(next))
    }

    fn wait_for(&mut self, next: Result<Next, PortId>) -> Step {
        match next {
            Ok(next) => self.wait(next),
            Err(port) => {
                self.at = At::Waiting;
                Step::Wait(port)
            }
        }
    }

    /// Something has arrived at its port.
    fn arrived(&mut self, context: &mut dyn Context) -> Step {
        if let (Some((_, arriving)), Some(arrival)) = (&mut self.port, context.arrival()) {
            arriving.arrives(arrival);
        }
        match self.next_arrival(context) {
            Some(Ok(Next::Call(paced))) if paced.release <= context.now() => {
                self.begin(context, paced)
            }
            Some(next) => self.wait_for(next),
            None => Step::Finish,
        }
    }

    /// The first call, or the first after a suspension.
    fn resume(&mut self, context: &mut dyn Context) -> Step {
        self.ended = None;
        if let Some((_, arriving)) = &mut self.port {
            arriving.resume();
        }
        if let Some(next) = self.next_arrival(context) {
            return self.wait_for(next);
        }
        let asked = self.from.take();
        let mut from = asked.unwrap_or_else(|| context.now());
        if self.pacing.is_none() {
            let timing = &self.timing;
            let first = match &timing.first {
                First::AfterAPeriod => from + timing.period,
                First::At(first) => *first,
                First::After(epoch, phase) => {
                    let epoch = epoch.or_now(from);
                    // Where nobody says when it was to begin, it was with the first, however late it had its turn.
                    from = asked.unwrap_or(epoch);
                    epoch + *phase
                }
            };
            self.pacing = Pacing::new(first, timing.period, timing.on_overrun);
        }
        let next = self.pacing.as_mut().map(|pacing| pacing.resume(from));
        self.wait(next.unwrap_or(Next::Ended))
    }

    /// The call is over.
    fn end(&mut self, context: &mut dyn Context, call: &Call) -> Step {
        let now = context.now();
        self.goes_behind(context, false);
        if let Some(ends) = self.ends {
            context.mark(ends, [call.origin, call.began].map(Instant::as_nanos));
        }
        for port in &self.before {
            // One that finds no room is counted by the port.
            context.put(*port, [call.origin.as_nanos(), 0]);
        }
        self.ended = Some(now);
        self.completed = true;
        if let Some(next) = self.next_arrival(context) {
            return self.wait_for(next);
        }
        let next = self.pacing.as_mut().map(|pacing| pacing.after(now));
        self.wait(next.unwrap_or(Next::Ended))
    }

    fn wait(&mut self, next: Next) -> Step {
        self.at = At::Idle;
        match next {
            Next::Call(paced) => {
                self.at = At::Due(paced);
                Step::SleepUntil(paced.release)
            }
            Next::Suspended => Step::SleepUntil(Instant::MAX),
            Next::Ended => Step::Finish,
            Next::EndProcess => Step::EndRun,
        }
    }

    fn begin(&mut self, context: &mut dyn Context, paced: Paced) -> Step {
        let now = context.now();
        let origin = match self.arrived.filter(|_| self.follows) {
            Some([origin, _]) => Instant::from_nanos(origin),
            None => paced.release,
        };
        context.mark(self.begins, [origin, now].map(Instant::as_nanos));
        let call = Call {
            paced,
            began: now,
            previous_ended: self.ended,
            overruns: false,
            arrived: self.arrived,
            origin,
            dropped: 0,
            over_service: false,
            done: 0,
            now: 0,
            left: 0,
            batch: self.timing.batch.get(),
            idled: 0,
            pauses: self.timing.pauses,
        };
        self.quantum(context, call, now)
    }

    fn quantum(&mut self, context: &mut dyn Context, mut call: Call, now: Instant) -> Step {
        let declared = |units: u32| self.unit.as_nanos().saturating_mul(units.into());
        let begins = call.left == 0;
        if begins {
            call.left = self.timing.quantum.get().min(call.batch - call.done);
            self.allowed = Span::from_nanos(declared(call.left));
        }
        call.now = call.left;
        let next = call.paced.release.checked_add(self.timing.period);
        call.overruns = next.is_some_and(|next| next < now);
        let instead = self.instead(context, declared(call.now), call.origin, now);
        if let Some(step) = instead {
            call.left *= u32::from(!begins);
            self.at = At::Resumed(call);
            return step;
        }
        if begins && call.done == 0 {
            (call.began, self.over_in_call) = (now, false);
        }
        call.over_service = self.over;
        self.working = Some(match &self.account {
            Some(_) => (now, context.service(), context.stood()),
            None => (now, Service::ZERO, Span::ZERO),
        });
        let step = (self.work)(context, &mut call);
        call.idled = match call.now {
            0 => call.idled + 1,
            _ => 0,
        };
        call.done += call.now;
        call.left = call.left.saturating_sub(call.now);
        self.at = At::Looking(call);
        step
    }
}

impl<W: FnMut(&mut dyn Context, &mut Call) -> Step + Send> Body for Upcall<W> {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.at {
            At::Idle => self.resume(context),
            At::Waiting => self.arrived(context),
            At::Due(paced) => self.begin(context, paced),
            At::Looking(_) if self.working.is_some() => {
                self.measure(context);
                self.step(context)
            }
            At::Looking(call) if call.is_over() => self.end(context, &call),
            At::Looking(mut call) if call.can_pause() && context.should_yield() => {
                call.idled = 0;
                self.at = At::Resumed(call);
                Step::Yield
            }
            // It would be called for ever.
            At::Looking(call) if call.idled > 1 => self.end(context, &call),
            At::Looking(call) | At::Resumed(call) => {
                let now = context.now();
                self.quantum(context, call, now)
            }
        }
    }
}
