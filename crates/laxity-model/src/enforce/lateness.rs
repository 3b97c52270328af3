//! What the late wake-up of a thread that ranks above all others means: that the machine itself stood still, that somebody held the
//! processor, or that somebody stopped the thread.
//!
//! A thread whose timer has gone off is runnable, and the kernel counts how long it waits then. While a virtual machine stands still, no
//! timer goes off; beside a thread that does not give the processor up, the timer does. Who is stopped gives its processor up once more
//! than it does to wait, and the kernel counts that too.

use super::disturbance::Disturbance;
use crate::{EventKind, Span};

/// The kernel's own work, which no rank interrupts, may keep a thread waiting for so long, and no thread is to be found that did it:
/// handlers of interrupts and what they put off, system calls of others where the kernel is not preemptible. Beside a compile on a
/// kernel with `PREEMPT_NONE` the longest of two minutes was 7.1 ms; what is seldom lasts longer (one of 21.8 ms was traced), and is not told from a stranger's.
pub const KERNELS_OWN: Span = Span::from_millis(10);

/// What the kernel counted of a thread from when it began to wait for an instant until it woke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waits {
    /// For how long it was runnable and had no processor; `None` where the kernel does not count that.
    pub runnable: Option<Span>,
    /// It gave its processor up more often than it did so by itself.
    pub stopped: bool,
}

impl Waits {
    /// Of a thread that nobody stopped.
    #[must_use]
    pub const fn for_processor(runnable: Option<Span>) -> Self {
        Self {
            runnable,
            stopped: false,
        }
    }
}

/// Why a thread that ranks above all others woke late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// It was not even runnable for more than half of that time: the machine itself stood still.
    Standstill,
    /// It was runnable and waited for half of that time or more: somebody else had the processor.
    Held,
    /// The kernel does not count how long threads wait. It may have been either; who cannot tell does not excuse.
    Untold,
    /// It was stopped: by a signal or a debugger, or its control group was frozen. Of the machine that says nothing.
    Stopped,
}

impl Lateness {
    /// Of a wake-up that came so `late`, before which the thread waited so.
    ///
    /// ```
    /// use laxity_model::enforce::{Lateness, Waits};
    /// use laxity_model::Span;
    ///
    /// let of = |waits| Lateness::of(Span::from_millis(30), waits);
    /// let briefly = Waits::for_processor(Some(Span::from_micros(115)));
    /// assert_eq!(of(briefly), Lateness::Standstill);
    /// assert_eq!(of(Waits { stopped: true, ..briefly }), Lateness::Stopped);
    /// assert_eq!(of(Waits::for_processor(Some(Span::from_millis(29)))), Lateness::Held);
    /// ```
    #[must_use]
    pub fn of(late: Span, waits: Waits) -> Self {
        match waits.runnable {
            Some(waited) if waited >= late.saturating_sub(waited) => Self::Held,
            _ if waits.stopped => Self::Stopped,
            Some(_) => Self::Standstill,
            None => Self::Untold,
        }
    }

    /// As what it is recorded. Who cannot tell whether somebody held the processor says that somebody did.
    #[must_use]
    pub const fn recorded(self) -> EventKind {
        match self {
            Self::Standstill => EventKind::Disturbed,
            Self::Held | Self::Untold => EventKind::Held,
            Self::Stopped => EventKind::Stopped,
        }
    }
}

/// Who held a processor, as far as anybody can say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Somebody who was seen there, and ranks as high.
    Known,
    /// Somebody who was gone when looked for, or the kernel, whose own work seldom lasts so long.
    Unknown,
    /// The kernel itself. That is the machine's, as a standstill is: no rank keeps it away.
    Kernel,
}

impl Holder {
    /// Of a processor that was held for so long, where somebody was seen in the run who could have done it, or nobody.
    #[must_use]
    pub fn of(held: Disturbance, is_known: bool) -> Self {
        if is_known {
            Self::Known
        } else if held.length() > KERNELS_OWN {
            Self::Unknown
        } else {
            Self::Kernel
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instant, ProcessorId};

    fn waited(waited: Span) -> Waits {
        Waits::for_processor(Some(waited))
    }

    fn late_by(micros: u64) -> Disturbance {
        let from = Instant::from_millis(5);
        let to = from + Span::from_micros(micros);
        let processor = ProcessorId(0);
        Disturbance {
            processor,
            from,
            to,
        }
    }

    #[test]
    fn who_waited_for_half_of_it_was_held() {
        let late = Span::from_micros(200);
        let of = |waited_ns| Lateness::of(late, waited(Span::from_nanos(waited_ns)));
        assert_eq!(
            [0, 99_999, 100_000, 200_000, 900_000].map(of),
            [
                Lateness::Standstill,
                Lateness::Standstill,
                Lateness::Held,
                Lateness::Held,
                Lateness::Held
            ]
        );
        assert_eq!(
            Lateness::of(late, Waits::for_processor(None)),
            Lateness::Untold
        );
    }

    /// Who waited for half of it was held up by somebody, whoever stopped it besides: that is told of the two.
    #[test]
    fn who_was_stopped_met_no_halt() {
        let of = |waited_us: Option<u64>| {
            let waits = Waits {
                runnable: waited_us.map(Span::from_micros),
                stopped: true,
            };
            Lateness::of(Span::from_micros(200), waits).recorded()
        };
        assert_eq!(
            [Some(0), Some(99), Some(100), None].map(of),
            [
                EventKind::Stopped,
                EventKind::Stopped,
                EventKind::Held,
                EventKind::Stopped
            ]
        );
    }

    /// What was measured: a rogue of FIFO 99, and a virtual machine that stood still.
    #[test]
    fn a_stranger_is_told_from_a_standstill() {
        let of = |late_us, waited_us| {
            Lateness::of(
                Span::from_micros(late_us),
                waited(Span::from_micros(waited_us)),
            )
        };
        assert_eq!(of(29_700, 29_700), Lateness::Held);
        assert_eq!(of(13_800, 0), Lateness::Standstill);
        assert_eq!(of(434, 108), Lateness::Standstill);
    }

    #[test]
    fn whom_nobody_saw_is_the_kernel_only_as_long_as_that_is_usual() {
        assert_eq!(Holder::of(late_by(10_000), false), Holder::Kernel);
        assert_eq!(Holder::of(late_by(10_001), false), Holder::Unknown);
        assert_eq!(Holder::of(late_by(150), true), Holder::Known);
    }
}
