//! Work that is made up: a thread keeps the processor busy for so much of its own time.

use std::sync::LazyLock;

use laxity::now;
use laxity_model::base::number::median;
use laxity_model::{Instant, Service, Span, Step};
use rustix::time::{ClockId, clock_gettime};

/// Between two looks at the thread's own clock, which cost more than those at the wall's.
const STRETCH: Span = Span::from_micros(100);
/// What a burn takes beyond what it is asked for is the median of so many trials, each of so many burns of this: a trial that was interrupted is not in the middle.
const TRIALS: usize = 51;
const BURNS: u64 = 32;
const BURN: Service = Service::from_micros(2);

/// What a burn looks at.
trait Clocks {
    /// What the thread has had of the processor.
    fn had(&mut self) -> Service;
    fn now(&mut self) -> Instant;
}

/// Those of the kernel.
struct Kernel;

impl Clocks for Kernel {
    fn had(&mut self) -> Service {
        let had = clock_gettime(ClockId::ThreadCPUTime);
        Service::from_nanos(had.tv_sec as u64 * 1_000_000_000 + had.tv_nsec as u64)
    }

    fn now(&mut self) -> Instant {
        now()
    }
}

/// It takes as much of the processor in many burns as in one: a burn stops short by what it was measured to take beyond what it is asked for, and what is less than
/// that is left to the next.
#[derive(Clone, Debug)]
pub(super) struct Burner {
    overshoot: Service,
    owed: Service,
}

impl Burner {
    /// By what a burn takes in this process, measured when it is asked for first.
    pub(super) fn here() -> Self {
        static HERE: LazyLock<Burner> = LazyLock::new(|| Burner::measured(&mut Kernel));
        HERE.clone()
    }

    fn measured(clocks: &mut impl Clocks) -> Self {
        let trials = (0..TRIALS).map(|_| {
            let before = clocks.had();
            (0..BURNS).for_each(|_| spend(BURN, clocks));
            let had = clocks.had().saturating_sub(before);
            had.saturating_sub(BURN * BURNS).as_nanos() / BURNS
        });
        Self {
            overshoot: Service::from_nanos(median(trials).unwrap_or(0)),
            owed: Service::ZERO,
        }
    }

    /// What a burn takes beyond what it is asked for.
    pub(super) const fn overshoot(&self) -> Service {
        self.overshoot
    }

    pub(super) fn burn(&mut self, service: Service) {
        self.burn_by(service, &mut Kernel);
    }

    fn burn_by(&mut self, service: Service, clocks: &mut impl Clocks) {
        self.owed += service;
        let left = self.owed.saturating_sub(self.overshoot);
        if left.is_zero() {
            return;
        }
        self.owed = Service::ZERO;
        spend(left, clocks);
    }
}

/// A step that takes so much: by who burns here, or by the host where nobody does.
pub(super) fn step(burner: &mut Option<Burner>, service: Service) -> Step {
    let Some(burner) = burner else {
        return Step::Burn(service);
    };
    burner.burn(service);
    Step::Charge(service)
}

/// So much, and what the looks at the clock take beside.
fn spend(service: Service, clocks: &mut impl Clocks) {
    let goal = clocks.had() + service;
    loop {
        let left = goal.saturating_sub(clocks.had());
        if left.is_zero() {
            return;
        }
        let until = clocks.now() + left.as_dedicated_span().min(STRETCH);
        while clocks.now() < until {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that is never interrupted: each look takes its time, half of it before what it reads.
    struct Looks {
        nanos: u64,
    }

    impl Looks {
        fn look(&mut self, half: u64) -> u64 {
            let read = self.nanos + half;
            self.nanos = read + half;
            read
        }
    }

    impl Clocks for Looks {
        fn had(&mut self) -> Service {
            Service::from_nanos(self.look(150))
        }

        fn now(&mut self) -> Instant {
            Instant::from_nanos(self.look(10))
        }
    }

    /// What so many burns of a batch take, in nanoseconds, with what each takes beyond taken off, or without.
    fn taken(batch: Service, parts: u64, is_taken_off: bool) -> u64 {
        let mut clocks = Looks { nanos: 0 };
        let mut burner = Burner::measured(&mut clocks);
        let overshoot = burner.overshoot().as_nanos();
        assert!((600..700).contains(&overshoot), "{overshoot}");
        if !is_taken_off {
            burner.overshoot = Service::ZERO;
        }
        let before = clocks.nanos;
        let unit = Service::from_nanos(batch.as_nanos() / parts);
        (0..parts).for_each(|_| burner.burn_by(unit, &mut clocks));
        clocks.nanos - before
    }

    /// Of 333 µs, as at the paper's periods; and of 8 µs, of which a sixteenth is less than two looks take.
    #[test]
    fn a_batch_takes_as_much_in_sixteen_parts_as_in_one() {
        for (us, most_apart) in [(333, 16 * 20), (20, 16 * 20), (8, 800)] {
            let batch = Service::from_micros(us);
            let [whole, parts] = [1, 16].map(|parts| taken(batch, parts, true));
            let more = taken(batch, 16, false) - us * 1_000;
            assert!(more >= 16 * 600, "{us}: {more}");
            for taken in [whole, parts] {
                assert!(taken.abs_diff(us * 1_000) <= most_apart, "{us}: {taken}");
            }
        }
    }

    /// Less than two looks at the clock is no burn of its own, and none of it is lost.
    #[test]
    fn what_is_too_little_for_a_burn_is_left_to_the_next() {
        let mut clocks = Looks { nanos: 0 };
        let mut burner = Burner::measured(&mut clocks);
        let before = clocks.nanos;
        burner.burn_by(Service::from_nanos(500), &mut clocks);
        assert_eq!(clocks.nanos, before);
        (1..2_000).for_each(|_| burner.burn_by(Service::from_nanos(500), &mut clocks));
        let taken = clocks.nanos - before;
        assert!(taken.abs_diff(1_000_000) <= 1_000 * 20, "{taken}");
    }
}
