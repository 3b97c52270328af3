//! What switches cost is found out while slots are given, and one slot that is far off changes little.

use laxity_model::enforce::{Count, Following, Look, Switching};
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

/// A machine on which all costs are always the same; in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// From the decision until the dispatcher is done, and from then until the holder runs.
    doing: u64,
    resuming: u64,
    /// How late the timers are that end slots, and from then until the dispatcher runs.
    late: u64,
    waking: u64,
    /// What each way in and out takes by the kernel's count.
    each: u64,
}

fn ns(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

impl Machine {
    fn measured(&self) -> Switching {
        Switching {
            entering: ns(self.doing + self.resuming),
            resuming: ns(self.resuming),
            leaving_ns: self.late as i64,
            waking: ns(self.late + self.waking),
            unseen_each: ns(self.each),
            ..Switching::default()
        }
    }

    /// Gives a slot at an instant, of which somebody takes some. Returns what its holder had for itself.
    fn give(&self, following: &mut Following, at: Instant, (length, taken): (Span, Span)) -> Span {
        let done = at + ns(self.doing);
        let count = |own: Span, turns: u64| Count {
            service: (own + ns(self.each) * turns).as_full_service(),
            turns: Some(turns),
        };
        let before = count(Span::ZERO, 0);
        let mut end = following.begin(length, before, at, done);
        let mut runs = done + ns(self.resuming);
        let (mut own, mut turns) = (Span::ZERO, u64::from(!taken.is_zero()));
        let mut taken = taken;
        loop {
            own += (end + ns(self.late))
                .saturating_since(runs)
                .saturating_sub(taken);
            taken = Span::ZERO;
            turns += 1;
            let woke = end + ns(self.late + self.waking);
            let look = Look {
                count: count(own, turns),
                woke,
                own: None,
            };
            let Some(until) = following.look(&look, woke) else {
                following.end();
                return own;
            };
            (runs, end) = (woke + ns(self.resuming), until);
        }
    }
}

fn is_right(own: Span, length: Span) -> bool {
    own.as_nanos().abs_diff(length.as_nanos()) * 20 <= length.as_nanos()
}

fn machines() -> impl Strategy<Value = Machine> {
    (
        0_u64..20_000,
        0..30_000_u64,
        0..6_000_u64,
        0..40_000_u64,
        0..30_000_u64,
    )
        .prop_map(|(doing, resuming, late, waking, each)| Machine {
            doing,
            resuming,
            late,
            waking,
            each,
        })
}

/// What was measured, in percent of what is so.
fn wrong() -> impl Strategy<Value = u64> {
    prop_oneof![Just(100), 25_u64..400]
}

proptest! {
    #[test]
    fn a_constant_cost_is_found_out(machine in machines(), percent in wrong(), length_us in 150_u64..20_000, taken_ppm in prop_oneof![Just(0_u64), 0..40_000_u64]) {
        let length = Span::from_micros(length_us);
        let taken = ns(length.as_nanos() * taken_ppm / 1_000_000);
        let believed = Machine {
            doing: machine.doing * percent / 100,
            resuming: machine.resuming * percent / 100,
            ..machine
        };
        let mut following = Following::new(believed.measured());
        let mut at = Instant::from_secs(1);
        let mut give = |following: &mut Following, taken| {
            at += Span::from_millis(50);
            machine.give(following, at, (length, taken))
        };
        for _ in 0..120 {
            give(&mut following, taken);
        }
        for number in 0..60 {
            let own = give(&mut following, taken);
            prop_assert!(is_right(own, length), "{own} of {length}, slot {number}");
        }
        if taken.is_zero() {
            let off = following.entering().as_nanos().abs_diff(machine.doing + machine.resuming);
            prop_assert!(off * 20 <= length.as_nanos() + 2_000, "{}", following.entering());
        }
        // Somebody takes nearly all of one slot, which is neither made up for nor learnt from.
        let before = following.switching();
        let own = give(&mut following, length / 8 * 7);
        prop_assert!(own < length / 2);
        let after = following.switching();
        prop_assert_eq!((after.entering, after.leaving_ns), (before.entering, before.leaving_ns));
        let own = give(&mut following, taken);
        prop_assert!(is_right(own, length), "{own} of {length} after it");
    }

    /// One slot at whose end the dispatcher is late by anything up to a second.
    #[test]
    fn a_standstill_at_the_end_of_a_slot_moves_little(machine in machines(), late_us in 0_u64..1_000_000) {
        let length = Span::from_millis(1);
        let mut following = Following::new(machine.measured());
        let at = |number: u64| Instant::from_secs(1 + 2 * number);
        let halted = Machine { waking: machine.waking + late_us * 1_000, ..machine };
        for number in 0..20 {
            machine.give(&mut following, at(number), (length, Span::ZERO));
        }
        halted.give(&mut following, at(20), (length, Span::ZERO));
        let own = machine.give(&mut following, at(21), (length, Span::ZERO));
        prop_assert!(is_right(own, length), "{own}");
    }
}

#[test]
fn a_slot_that_asks_for_nothing_ends_at_once() {
    let mut following = Following::new(Switching::default());
    let (at, count) = (
        Instant::from_secs(1),
        Count {
            service: Service::ZERO,
            turns: None,
        },
    );
    assert_eq!(following.begin(Span::ZERO, count, at, at), at);
    let look = Look {
        count,
        woke: at,
        own: None,
    };
    assert_eq!(following.look(&look, at), None);
}
