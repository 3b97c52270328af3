//! What the late wake-up of a thread that ranks above all others means: that the machine itself stood still, or that somebody held the
//! processor.
//!
//! A thread whose timer has gone off is runnable, and the kernel counts how long it waits then. While a virtual machine stands still, no
//! timer goes off; beside a thread that does not give the processor up, the timer does.

use super::disturbance::Disturbance;
use crate::Span;

/// The kernel's own work, which no rank interrupts, may keep a thread waiting for so long, and no thread is to be found that did it:
/// handlers of interrupts and what they put off, system calls of others where the kernel is not preemptible. Beside a compile on a
/// kernel with `PREEMPT_NONE` the longest of two minutes was 7.1 ms; what is seldom lasts longer (one of 21.8 ms was traced), and is not told from a stranger's.
pub const KERNELS_OWN: Span = Span::from_millis(10);

/// Why a thread that ranks above all others woke late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// It was not even runnable for more than half of that time: the machine itself stood still.
    Standstill,
    /// It was runnable and waited for half of that time or more: somebody else had the processor.
    Held,
    /// The kernel does not count how long threads wait. It may have been either; who cannot tell does not excuse.
    Untold,
}

impl Lateness {
    /// Of a wake-up that came so `late`, before which the thread was runnable and `waited` for so long; `None` where the kernel does not say.
    ///
    /// ```
    /// use laxity_model::enforce::Lateness;
    /// use laxity_model::Span;
    ///
    /// let late = Span::from_millis(30);
    /// assert_eq!(Lateness::of(late, Some(Span::from_micros(115))), Lateness::Standstill);
    /// assert_eq!(Lateness::of(late, Some(Span::from_millis(29))), Lateness::Held);
    /// ```
    #[must_use]
    pub fn of(late: Span, waited: Option<Span>) -> Self {
        match waited {
            None => Self::Untold,
            Some(waited) if waited >= late.saturating_sub(waited) => Self::Held,
            Some(_) => Self::Standstill,
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
        let of =
            |waited_ns| Lateness::of(Span::from_micros(200), Some(Span::from_nanos(waited_ns)));
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
        assert_eq!(Lateness::of(Span::from_micros(200), None), Lateness::Untold);
    }

    /// What was measured: a rogue of FIFO 99, and a virtual machine that stood still.
    #[test]
    fn a_stranger_is_told_from_a_standstill() {
        let of = |late_us, waited_us| {
            Lateness::of(
                Span::from_micros(late_us),
                Some(Span::from_micros(waited_us)),
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
