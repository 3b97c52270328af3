//! The kernel's enforcer: `SCHED_DEADLINE`. Nothing outside the reservation, and no processor of its own.
//!
//! Where the kernel enforces at its tick only (`HRTICK_DL` off, the common case), a reservation of some milliseconds gets its
//! share but not in every window: gaps of several periods occur. Admission says so before anything runs.

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::{HostError, Instant, Reservation, Span};

use crate::os::clock;
use crate::os::limits;
use crate::os::sched::{self, Attributes, Policy, Restore, SchedError, Tid};

/// When the bandwidth of everything this process has released is surely back, in nanoseconds.
///
/// The kernel keeps the bandwidth of a half-used reservation until its zero-lag time, at most one period after the release.
static RETURNED_BY_NS: AtomicU64 = AtomicU64::new(0);
/// How often a refused request is repeated while bandwidth is on its way back.
const RETRY_EVERY: Span = Span::from_micros(500);

/// Why a thread did not get its reservation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeadlineError {
    /// The processors' deadline bandwidth does not suffice, whatever was just released.
    #[error(
        "no deadline bandwidth left for {reservation} ({} ppm of a processor): {source}",
        reservation.share_ppm()
    )]
    NoBandwidth {
        /// What was asked for.
        reservation: Reservation,
        /// What the kernel said.
        source: SchedError,
    },
    /// Another reason.
    #[error(transparent)]
    Sched(#[from] SchedError),
}

impl DeadlineError {
    /// The call that failed.
    pub fn call(&self) -> &SchedError {
        match self {
            Self::NoBandwidth { source, .. } | Self::Sched(source) => source,
        }
    }

    /// Whether the kernel agreed, and somebody else decided otherwise at once.
    pub(crate) fn is_without_effect(&self) -> bool {
        matches!(self, Self::Sched(SchedError::NoEffect { .. }))
    }

    /// As the error of a run, naming the activity.
    pub(crate) fn about(&self, activity: &str) -> HostError {
        self.as_of_host(format!("activity {activity}: {self}"))
    }

    /// As the error of a host, in these words.
    pub(crate) fn as_of_host(&self, text: String) -> HostError {
        match self {
            Self::NoBandwidth { .. } => HostError::Refused(text),
            Self::Sched(error) if error.errno() == Some(libc::EPERM) => HostError::CannotRun(text),
            Self::Sched(_) => HostError::Failed(text),
        }
    }
}

/// Puts a thread under `SCHED_DEADLINE`, on all processors. What it forks starts as an ordinary thread.
///
/// Waits first until the bandwidth of all reservations released shortly before is back, no longer than their longest period: the kernel
/// may refuse until then, and on Linux 6.18 a thread that re-enters `SCHED_DEADLINE` before was seen runnable and never run.
pub fn reserve(tid: Tid, reservation: Reservation) -> Result<(), DeadlineError> {
    // EPERM is the kernel's word for an affinity narrower than the root domain: widen it first.
    sched::allow_all(tid)?;
    wait_for_returns();
    ask(tid, reservation)
}

/// Gives a thread that has a reservation another one; tells from when that surely holds. Refused, it has the old one still. Bandwidth that
/// was just released is waited for.
///
/// The budget under way and its deadline stay as they are; the first of the new budgets comes when that deadline does. Most kernels do not
/// tell it, so this is the latest that it may be: a period away, and one more for each whole budget that a tick can overrun.
pub fn change(tid: Tid, from: Reservation, to: Reservation) -> Result<Instant, DeadlineError> {
    ask(tid, to)?;
    note_release(from.period());
    Ok(latest_deadline(from, clock::now(), clock::tick()))
}

/// The latest that the kernel's deadline of a thread with this reservation may be now: a period away, and one more for each whole
/// budget by which it may have overrun before its tick stopped it, which the kernel makes it wait for in advance.
fn latest_deadline(reservation: Reservation, now: Instant, tick: Span) -> Instant {
    let owed = tick / reservation.service().as_dedicated_span();
    now + reservation.period() * (owed + 1)
}

/// Asks the kernel, as long as bandwidth is on its way back, and once more when it has reckoned anew.
fn ask(tid: Tid, reservation: Reservation) -> Result<(), DeadlineError> {
    let attributes = Attributes::new(Policy::Deadline(reservation.into()), true);
    let mut is_anew = false;
    loop {
        // Read before trying: what is released after the attempt must not shorten the wait.
        let returned_by = Instant::from_nanos(RETURNED_BY_NS.load(Ordering::SeqCst));
        match attributes.apply(tid) {
            Ok(()) => return Ok(()),
            Err(error) if error.errno() == Some(libc::EBUSY) => {
                let now = clock::now();
                if now > returned_by {
                    if !is_anew {
                        limits::have_reckoned_anew();
                        is_anew = true;
                        continue;
                    }
                    return Err(DeadlineError::NoBandwidth {
                        reservation,
                        source: error,
                    });
                }
                clock::sleep_until(now + RETRY_EVERY);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until the zero-lag time of everything this process has released is past.
pub(crate) fn wait_for_returns() {
    let returned_by = Instant::from_nanos(RETURNED_BY_NS.load(Ordering::SeqCst));
    if clock::now() < returned_by {
        clock::sleep_until(returned_by);
    }
}

/// Takes a thread out of `SCHED_DEADLINE` into another policy, and remembers when its bandwidth will be back.
pub fn release(tid: Tid, reservation: Reservation, policy: Policy) {
    // Only a thread that has gone refuses to leave; its bandwidth comes back all the same.
    let _ = sched::set_policy(tid, policy);
    note_release(reservation.period());
}

fn note_release(period: Span) {
    // One period after now, and a retry more: the kernel's timer fires at the zero-lag time, not before it.
    let by = clock::now() + period + RETRY_EVERY;
    RETURNED_BY_NS.fetch_max(by.as_nanos(), Ordering::SeqCst);
}

/// A reservation of the calling thread by `SCHED_DEADLINE`; given back, with policy and affinity as before, when dropped.
///
/// It belongs to the thread that made it: it can be neither sent nor shared.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use laxity_linux::ThreadReservation;
/// use laxity_model::{Reservation, Service, Span};
///
/// let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8))?;
/// let reserved = ThreadReservation::deadline(two_of_eight)?;
/// // … work that must keep its pace …
/// drop(reserved);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ThreadReservation {
    reservation: Reservation,
    _restore: Restore,
    /// Policies belong to a thread: dropping it elsewhere would still be right, but holding it elsewhere reads wrong.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl ThreadReservation {
    /// Reserves for the calling thread.
    pub fn deadline(reservation: Reservation) -> Result<Self, DeadlineError> {
        let own = Tid::current();
        let restore = Restore::of(own)?;
        // On an error `restore` undoes the wider affinity too.
        reserve(own, reservation)?;
        Ok(Self {
            reservation,
            _restore: restore,
            _not_send: std::marker::PhantomData,
        })
    }

    /// What is reserved.
    pub fn reservation(&self) -> Reservation {
        self.reservation
    }
}

impl Drop for ThreadReservation {
    fn drop(&mut self) {
        note_release(self.reservation.period());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights::{self, Right};
    use crate::os::cpuset::CpuSet;
    use laxity_model::Service;

    fn ms(service: u64, period: u64) -> Reservation {
        Reservation::new(Service::from_millis(service), Span::from_millis(period)).unwrap()
    }

    #[test]
    fn a_deadline_is_a_period_away_and_one_for_each_budget_owed() {
        let (now, tick) = (Instant::from_millis(100), Span::from_millis(4));
        let by = |reservation| latest_deadline(reservation, now, tick) - now;
        assert_eq!(by(ms(5, 20)), Span::from_millis(20));
        // Stopped at the tick, 4 ms late: the four budgets that pay for it come with four periods, and the next one with a fifth.
        assert_eq!(by(ms(1, 10)), Span::from_millis(50));
    }

    #[test]
    fn a_grant_is_real_and_its_release_restores() {
        let Some(_live) = rights::require(&[Right::Deadline]) else {
            return;
        };
        let own = Tid::current();
        let before = (sched::policy(own).unwrap(), sched::affinity(own).unwrap());
        sched::set_affinity(own, &CpuSet::single(before.1.iter().next().unwrap())).unwrap();
        let pinned = sched::affinity(own).unwrap();
        let reserved = ThreadReservation::deadline(ms(1, 100)).unwrap();
        assert_eq!(
            sched::policy(own).unwrap(),
            Policy::Deadline(ms(1, 100).into())
        );
        drop(reserved);
        assert_eq!(
            (sched::policy(own).unwrap(), sched::affinity(own).unwrap()),
            (before.0, pinned)
        );
        sched::set_affinity(own, &before.1).unwrap();
    }

    #[test]
    fn what_was_released_can_be_had_again_at_once() {
        let Some(_live) = rights::require(&[Right::Deadline]) else {
            return;
        };
        // Two of these exceed what a processor pair admits together with the first's unreturned bandwidth.
        for _ in 0..20 {
            let reserved = ThreadReservation::deadline(ms(18, 20)).unwrap();
            clock::spin_until(clock::now() + Span::from_micros(200), || false);
            drop(reserved);
        }
    }

    #[test]
    fn too_much_is_refused_by_name_and_restores() {
        let Some(_live) = rights::require(&[Right::Deadline]) else {
            return;
        };
        let own = Tid::current();
        let before = (sched::policy(own).unwrap(), sched::affinity(own).unwrap());
        let processors = std::thread::available_parallelism().unwrap().get();
        // One holder a processor, all but full, and one more.
        let barrier = std::sync::Barrier::new(processors + 1);
        let refused = std::thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(|| {
                    let held = ThreadReservation::deadline(ms(8, 10));
                    barrier.wait();
                    barrier.wait();
                    drop(held);
                });
            }
            barrier.wait();
            let refused = ThreadReservation::deadline(ms(8, 10)).err();
            barrier.wait();
            refused
        });
        let error = refused.expect("nine tenths a processor is more than there is");
        assert!(
            matches!(error, DeadlineError::NoBandwidth { .. }),
            "{error}"
        );
        assert_eq!(
            (sched::policy(own).unwrap(), sched::affinity(own).unwrap()),
            before
        );
    }
}
