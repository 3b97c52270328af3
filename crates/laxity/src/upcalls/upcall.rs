//! One upcall, as whoever made it has it.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::executor::pacing::OnOverrun;
use laxity_model::program::upcall::Timing;
use laxity_model::program::upcalls::qos::{Mapping, Release};
use laxity_model::program::upcalls::{Command, Counts, task};
use laxity_model::{Instant, PortId, Service, Span};

use super::core::{Core, DOORBELL, arrivals};
use super::error::{self, Error};
use super::members::{Group, Predecessor};

/// What an upcall is to be.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For messages and lists.
    pub name: String,
    /// When it is called, how much it does then, and what becomes of overruns.
    pub timing: Timing,
    /// The most that a unit of its work (a PDU) takes.
    pub service: Service,
    /// From a release to when its call is due; `None` is the period. It may be later than that only where all late ones are called ([`OnOverrun::CatchUp`] of [`u32::MAX`]), as the next may come to nothing else; and of what time does not release, no later than as many periods as arrivals have [room](super::Options::events). Of one that comes [after](Pace::After) another it counts from the release of its chain's first. Of one in a group nothing is promised alone: there it is the group's period, and nothing else can be asked for.
    pub deadline: Option<Span>,
    /// What releases it.
    pub pace: Pace,
    /// What becomes of an arrival for it where as many wait as there is [room](super::Options::events) for.
    pub when_full: WhenFull,
    /// With whom it has a budget together.
    pub group: Option<Group>,
}

impl Spec {
    /// One unit of work every `period`, which takes no more than `service`.
    #[must_use]
    pub fn each(period: Span, service: Service) -> Self {
        Self {
            name: "upcall".to_owned(),
            timing: Timing::each(period),
            service,
            deadline: None,
            pace: Pace::Timer,
            when_full: WhenFull::Reject,
            group: None,
        }
    }

    /// One unit of work whenever a call of `before` is over, which takes no more than `service`. Its period is that one's, and its deadline counts from the
    /// release of the first of the chain.
    #[must_use]
    pub fn after(before: &Upcall, service: Service) -> Self {
        Self {
            pace: Pace::After(Before(before.id)),
            ..Self::each(before.period, service)
        }
    }

    /// Whether it can be an upcall, whoever else there is, where so many arrivals may wait.
    pub(super) fn check(&self, events: u32) -> Result<(), Error> {
        error::named(&self.name)?;
        let refused = |why: String| {
            let name = self.name.clone();
            Err(Error::NoUpcall { name, why })
        };
        let grouped = self.group.as_ref().map(|group| group.0.share.period());
        if let Some((deadline, period)) = self.deadline.zip(grouped)
            && deadline != period
        {
            return refused(format!(
                "it is to be due in {deadline}, and of one in a group nothing is promised: its place among others is that of the group, which has a period of {period}. Leave the deadline out"
            ));
        }
        let (deadline, apart) = (self.deadline(), self.timing.period);
        let all = OnOverrun::CatchUp { at_most: u32::MAX };
        let may_miss = grouped.is_none() && self.timing.on_overrun != all;
        if may_miss && !apart.is_zero() && deadline > apart {
            return refused(format!(
                "it is to be due in {deadline}, and the next is released {apart} after it, which may come to nothing then: have it due by then, or all late ones called, 4294967295 in a row"
            ));
        }
        let kept = apart.checked_mul(events.into()).unwrap_or(Span::MAX);
        if grouped.is_none() && !matches!(self.pace, Pace::Timer) && deadline > kept.max(apart) {
            return refused(format!(
                "it is to be due in {deadline}, and what arrives every {apart} may come to nothing then, as no more than {events} wait: have it due in {kept}, or make room for more"
            ));
        }
        let is_task = task(&self.timing, self.service, deadline);
        is_task.map(drop).or_else(|why| refused(why.to_string()))
    }

    /// What a quantum of it takes.
    pub(super) fn quantum(&self) -> Service {
        let units = self.timing.quantum.min(self.timing.batch).get();
        Service::from_nanos(self.service.as_nanos().saturating_mul(units.into()))
    }

    /// Whether it can be beside those of other processes, where no quantum is to take more than `longest` with what is charged for `each` call.
    pub(super) fn can_share(&self, longest: Option<Service>, each: Service) -> Result<(), Error> {
        let quantum = self.quantum();
        let left = longest.map(|longest| longest.saturating_sub(each));
        match left {
            Some(left) if quantum > left => Err(Error::Quantum {
                quantum,
                longest: left,
                units: left.as_nanos() / self.service.as_nanos().max(1),
            }),
            _ => Ok(()),
        }
    }

    pub(super) const fn after_whom(&self) -> Option<Predecessor> {
        match &self.pace {
            Pace::After(before) => Some(before.0),
            _ => None,
        }
    }

    /// What a stream was [mapped](super::qos::map) to: the same at both of its ends, where the work on a PDU costs the same.
    #[must_use]
    pub fn mapped(name: &str, mapping: &Mapping) -> Self {
        let mut spec = Self {
            name: name.to_owned(),
            timing: mapping.timing(),
            service: mapping.service,
            deadline: Some(mapping.deadline),
            pace: match mapping.release {
                Release::Timer => Pace::Timer,
                Release::Arrivals => Pace::Arrivals,
            },
            ..Self::each(mapping.timing().period, mapping.service)
        };
        if let Pace::Arrivals = spec.pace {
            // Somebody waits for each of them: late ones are called, as many as there is room for.
            spec.timing.on_overrun = OnOverrun::CatchUp { at_most: u32::MAX };
        }
        spec
    }

    /// From its release, or that of its chain's first, to when it is due; of one in a group, that one's period, which is its place among the others.
    pub(super) fn deadline(&self) -> Span {
        let group = self.group.as_ref().map(|group| group.0.share.period());
        let period = || group.unwrap_or(self.timing.period);
        self.deadline
            .filter(|_| group.is_none())
            .unwrap_or_else(period)
    }
}

/// What becomes of an arrival that finds no room. All are [counted](Counts::dropped), and the handler is [told](laxity_model::program::upcall::Call::dropped) how many there were since its call before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// It is dropped, and who has it arrive is [told](Error::Busy).
    #[default]
    Reject,
    /// The one that has waited longest is dropped, and this one waits.
    DropOldest,
    /// It is dropped, and the handler alone is told.
    Warn,
}

/// An upcall that another one comes after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before(pub(super) Predecessor);

/// What releases an upcall.
#[derive(Clone, Debug, Default)]
pub enum Pace {
    /// Time: every period.
    #[default]
    Timer,
    /// [`Upcall::release`], by any thread: no sooner than a period after the release before, until when arrivals wait.
    Arrivals,
    /// The same, and this descriptor: while it can be read, or has come to its end, it releases once a period. What there is to read the handler reads. An executor that is alone looks at it itself, when it has nothing to do and when a
    /// call is over or yields, and at no look for a yield: so it may wait for the whole call of a less urgent upcall. Admission charges that where the order is by rate, and nothing where it is [by deadline](super::Policy::Edf). The release is when it was seen: what it waited before
    /// that is in none of its [counts](Counts). Where several processes take turns it is looked at when the call that it has released is over, by a thread at the next higher FIFO priority; beside a reservation by an ordinary one.
    Descriptor(Arc<OwnedFd>),
    /// The end of a call of another upcall: see [`Spec::after`]. A call that its handler cuts short by suspending or ending itself releases nobody; nor does one that is closed.
    After(Before),
}

impl Pace {
    /// What releases it, and how far apart.
    pub(super) fn port(&self, place: u16, period: Span) -> Option<(PortId, Span)> {
        match self {
            Self::Timer => None,
            Self::Arrivals | Self::Descriptor(_) => Some((arrivals(place), period)),
            Self::After(_) => Some((arrivals(place), Span::ZERO)),
        }
    }
}

/// What has become of an upcall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It is not called: not yet, or until it is to run again.
    Suspended,
    /// It is called at its releases.
    Active,
    /// Suspended because it overran, as was chosen for it.
    Overran,
    /// It ended itself, or overran and was to end.
    Ended,
    /// Its handler panicked, and said this; it is not called any more.
    Panicked(String),
    /// It is closed, or its executor has ended.
    Closed,
}

/// A handler that was admitted. Dropped, it is closed. Whatever it is asked, it is done when the call returns; where a handler of the same executor asks, after that handler's quantum.
#[must_use = "the upcall is closed when this is dropped"]
pub struct Upcall {
    core: Arc<Core>,
    place: u16,
    pub(super) id: Predecessor,
    period: Span,
    /// What arrives for it, if others have that arrive, and what becomes of too much.
    port: Option<PortId>,
    when_full: WhenFull,
    closed: AtomicBool,
}

impl fmt::Debug for Upcall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcall")
            .field("state", &self.state())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Upcall {
    pub(super) fn new(core: Arc<Core>, id: Predecessor, spec: &Spec) -> Self {
        let is_for_all = matches!(spec.pace, Pace::Arrivals | Pace::Descriptor(_));
        Self {
            core,
            place: id.place,
            id,
            period: spec.timing.period,
            port: is_for_all.then(|| arrivals(id.place)),
            when_full: spec.when_full,
            closed: AtomicBool::new(false),
        }
    }

    /// Whether that is its executor.
    pub(super) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.core, core)
    }

    fn ask(&self, command: Command) -> Result<(), Error> {
        self.core.ask(self.place, command, &self.closed)
    }

    /// Its descriptor feeds it, where it is paced by one. Else nobody has its place.
    pub(super) fn feed(&self, pace: &Pace) -> Result<(), Error> {
        let (Some(port), Pace::Descriptor(with)) = (self.port, pace) else {
            return Ok(());
        };
        let fed = self.core.inbox.feed([port, DOORBELL], with);
        if fed.is_err() {
            self.core.forget(self.place, self.port, &self.closed);
        }
        Ok(fed?)
    }

    /// Has it made. What it was to be made of is nobody's where it is not, and dropped by this.
    pub(super) fn make(&self, drop_letter: impl FnOnce()) -> Result<(), Error> {
        let made = self.ask(Command::Create);
        match made {
            // The executor was never told, or has refused: so nobody has its place.
            Err(Error::Busy | Error::Ended | Error::Over) => {
                // While it is nobody else's.
                drop_letter();
                self.core.forget(self.place, self.port, &self.closed);
            }
            // It may be made yet, and is closed then.
            Err(Error::NoAnswer(_)) => self.core.abandon(self.place, self.port, &self.closed),
            _ => {}
        }
        made?;
        match self.state() {
            State::Panicked(said) => Err(Error::Panicked(said)),
            _ => Ok(()),
        }
    }

    /// Calls it at its releases from now on: those that are not past. One that runs already goes on.
    ///
    /// # Errors
    ///
    /// It has ended or panicked; or its executor has, or does not answer.
    pub fn run(&self) -> Result<(), Error> {
        self.ask(Command::Run)
    }

    /// Does not call it any more until it is to run again, on the same grid. A quantum that has begun is over when this returns; the rest of its call is not done.
    ///
    /// # Errors
    ///
    /// Its executor has ended, or does not answer.
    pub fn suspend(&self) -> Result<(), Error> {
        self.ask(Command::Suspend)
    }

    /// Ends it, and drops its handler. A quantum that has begun is over when this returns. Tells what it has done.
    ///
    /// # Errors
    ///
    /// Its executor has ended, or does not answer.
    pub fn close(self) -> Result<Counts, Error> {
        self.end()
    }

    /// The same for one that several share: for all of them it is closed then.
    ///
    /// # Errors
    ///
    /// Those of [`Self::close`]; or it is closed already.
    pub fn end(&self) -> Result<Counts, Error> {
        self.core.close(self.place, self.port, &self.closed)
    }

    /// Something has arrived for it, which releases it once: of those that [arrivals](Pace::Arrivals) release. Takes no lock and waits for nobody.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: as many wait already as there is room for, and this one is dropped, where [that](WhenFull::Reject) was chosen. [`Error::NoArrivals`]: it has another pace; [`Error::Over`]: its executor has ended.
    pub fn release(&self, with: [u64; 2]) -> Result<(), Error> {
        if self.core.is_over() {
            return Err(Error::Over);
        }
        let visit = self.core.visit(self.place, &self.closed);
        let _visit = visit.ok_or(Error::Ended)?;
        let port = self.port.ok_or(Error::NoArrivals)?;
        let dropped = match self.when_full {
            WhenFull::DropOldest => self.core.inbox.put_newest(port, with),
            WhenFull::Reject | WhenFull::Warn => u64::from(!self.core.inbox.put(port, with)),
        };
        if dropped > 0 {
            self.core.boards[usize::from(self.place)].drops(dropped);
        }
        match self.when_full {
            WhenFull::Reject if dropped > 0 => Err(Error::Busy),
            _ => Ok(()),
        }
    }

    /// What has become of it. No system call.
    pub fn state(&self) -> State {
        match self.is_closed() {
            true => State::Closed,
            false => self.core.state(self.place),
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What it has done. No system call, and no lock.
    pub fn counts(&self) -> Counts {
        self.core.boards[usize::from(self.place)].counts()
    }
}

impl Drop for Upcall {
    fn drop(&mut self) {
        // Else it was closed before, or is closed when the executor answers.
        if let Err(Error::Busy) = self.end() {
            self.core.abandon(self.place, self.port, &self.closed);
        }
    }
}

/// Waits until one of these is not active.
pub(super) fn sleep(
    core: &Arc<Core>,
    upcalls: &[&Upcall],
    until: Option<Instant>,
) -> Result<Vec<usize>, Error> {
    if core.is_inside() {
        return Err(Error::Inside);
    }
    // Nobody would be woken by what changes elsewhere.
    if !upcalls.iter().all(|upcall| upcall.is_of(core)) {
        return Err(Error::NotHere);
    }
    let idle = || {
        let all = upcalls.iter().enumerate();
        let idle = all.filter(|(_, upcall)| upcall.state() != State::Active);
        idle.map(|(index, _)| index).collect::<Vec<usize>>()
    };
    let found = |idle: &Vec<usize>| !idle.is_empty() || upcalls.is_empty();
    loop {
        let now = idle();
        if found(&now) || until.is_some_and(|until| crate::now() >= until) {
            return Ok(now);
        }
        if core.call_virtual() {
            continue;
        }
        let look = || (found(&idle()) || core.has_virtual()).then_some(());
        if core.bell.wait_for(until, look).is_none() {
            return Ok(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::super::{Options, Rank, Upcalls};
    use super::*;

    fn limited(spec: &Spec, longest: u64, each: u64) -> Result<(), Error> {
        let [longest, each] = [longest, each].map(Service::from_nanos);
        spec.can_share(Some(longest), each)
    }

    /// A quantum of two units, of which not even one fits.
    #[test]
    fn what_would_fit_is_told_by_the_quantum() {
        let mut spec = Spec::each(Span::from_millis(1), Service::from_micros(9));
        (spec.timing.batch, spec.timing.quantum) =
            (NonZeroU32::new(4).unwrap(), NonZeroU32::new(2).unwrap());
        let said = |longest| limited(&spec, longest, 2_000).unwrap_err().to_string();
        assert!(said(12_000).ends_with("at most 10us: quanta of one unit would fit"));
        assert!(
            said(10_000).ends_with("at most 8us: quanta of one unit, of at most 8us, would fit")
        );
        assert!(said(2_000).ends_with("at most 0ns: none would fit, whatever it takes"));
    }

    proptest! {
        /// It is granted, and no more is.
        #[test]
        fn what_would_fit_does(
            service in 1..100_000_u64, [batch, quantum] in [1..64_u32, 1..64_u32],
            [longest, each] in [0..1_000_000_u64, 0..3_000_u64],
        ) {
            let mut spec = Spec::each(Span::from_millis(1), Service::from_nanos(service));
            let count = |of| NonZeroU32::new(of).unwrap();
            (spec.timing.batch, spec.timing.quantum) = (count(batch), count(quantum));
            let Err(Error::Quantum { longest: most, units, .. }) = limited(&spec, longest, each) else {
                return Ok(());
            };
            spec.timing.quantum = count(u32::try_from(units).unwrap().max(1));
            if units == 0 {
                spec.service = most;
            }
            prop_assert_eq!(limited(&spec, longest, each), Ok(()));
            match units {
                0 => spec.service = Service::from_nanos(most.as_nanos() + 1),
                units => spec.timing.quantum = count(units as u32 + 1),
            }
            prop_assert!(limited(&spec, longest, each).is_err());
        }
    }

    /// Who has found it open puts what arrives where nobody else is yet.
    #[test]
    fn a_place_is_nobody_elses_while_something_arrives_there() {
        let rank = Rank::Fair;
        let upcalls = Upcalls::start(Options {
            rank,
            ..Options::default()
        });
        let upcalls = upcalls.unwrap();
        let millis = Span::from_millis;
        let spec = Spec {
            pace: Pace::Arrivals,
            ..Spec::each(millis(100), Service::from_micros(1))
        };
        let create = || upcalls.create(spec.clone(), |_| ()).unwrap();
        let first = create();
        let visit = upcalls.core.visit(first.place, &first.closed);
        first.end().unwrap();
        assert!(upcalls.core.visit(first.place, &first.closed).is_none());
        assert_eq!(first.release([0, 0]), Err(Error::Ended));
        let second = create();
        assert_ne!(second.place, first.place);
        drop(visit);
        assert_eq!(create().place, first.place);
    }
}
