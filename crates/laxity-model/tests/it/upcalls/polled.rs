//! One whose descriptor is looked at between calls alone: no event waits for longer than its bound, from when it may be read to the end of its call, whatever comes when.

use laxity_model::analysis::Task;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::executor::linked::{Linked, bounds};
use laxity_model::{Service, Span};
use proptest::prelude::*;

/// Cost and period in milliseconds, of a call that is one quantum.
type Asked = (u64, u64);

fn linked((cost, period): Asked, polled: bool) -> Linked {
    let task = Task::new(Service::from_millis(cost), Span::from_millis(period)).unwrap();
    let whole = laxity_model::analysis::Preemption::Never;
    Linked {
        polled,
        ..Linked::alone(task.with_preemption(whole).unwrap())
    }
}

/// A job that has been released and is not over: since when it counts, and what it is.
#[derive(Clone, Copy)]
struct Job {
    since: u64,
    released: u64,
}

/// An executor, in virtual milliseconds: the first is polled, and the others come by their timers.
struct Machine<'a> {
    all: &'a [Asked],
    now: u64,
    /// When events of the first may be read that nobody has seen.
    readable: Vec<u64>,
    /// When the first was released last.
    last: Option<u64>,
    jobs: Vec<Vec<Job>>,
    next: Vec<u64>,
    longest: Vec<u64>,
}

impl Machine<'_> {
    /// It looks at the descriptor, and at the timers that have run out. Who was seen is released no sooner than a period after it was last.
    fn looks(&mut self) {
        if self.jobs[0].is_empty() && self.readable.first().is_some_and(|at| *at <= self.now) {
            let since = self.readable.remove(0);
            let again = self.last.map_or(0, |last| last + self.all[0].1);
            let released = self.now.max(again);
            self.last = Some(released);
            self.jobs[0].push(Job { since, released });
        }
        for place in 1..self.all.len() {
            while self.next[place] <= self.now {
                let since = self.next[place];
                let released = since;
                self.jobs[place].push(Job { since, released });
                self.next[place] += self.all[place].1;
            }
        }
    }

    /// It calls the most urgent of those that are released, or sleeps until somebody may be.
    fn goes_on(&mut self) {
        let places = 0..self.all.len();
        let is_released = |place: &usize| {
            let first = self.jobs[*place].first();
            first.is_some_and(|job| job.released <= self.now)
        };
        if let Some(place) = places
            .filter(is_released)
            .min_by_key(|place| self.all[*place].1)
        {
            let job = self.jobs[place].remove(0);
            self.now += self.all[place].0;
            self.longest[place] = self.longest[place].max(self.now - job.since);
            return;
        }
        let timers = self.next[1..].iter().chain(self.readable.first());
        let released = self.jobs.iter().filter_map(|jobs| jobs.first());
        let wakes = timers.copied().chain(released.map(|job| job.released));
        self.now = wakes.filter(|at| *at > self.now).min().expect("a timer");
    }
}

/// The longest of each from when it came, where timers begin so late and events come so much later than a period after one another.
fn longest(all: &[Asked], begin: &[u64], later: &[u64]) -> Vec<u64> {
    let mut comes = begin[0];
    let readable = later.iter().map(|more| {
        let at = comes;
        comes += all[0].1 + more;
        at
    });
    let mut machine = Machine {
        all,
        now: 0,
        readable: readable.collect(),
        last: None,
        jobs: vec![Vec::new(); all.len()],
        next: begin.to_vec(),
        longest: vec![0; all.len()],
    };
    while machine.now < 300 {
        machine.looks();
        machine.goes_on();
    }
    machine.longest
}

/// What is promised of each, in milliseconds.
fn promised(all: &[Asked]) -> Option<Vec<u64>> {
    let told = all.iter().enumerate();
    let told: Vec<Linked> = told.map(|(place, one)| linked(*one, place == 0)).collect();
    let found = bounds(&told, &Dedicated).ok()?;
    Some(
        found
            .iter()
            .map(|bound| bound.as_nanos().div_ceil(1_000_000))
            .collect(),
    )
}

/// Seen at 4 ms behind the other; what comes at 10 ms is released at 14, together with the other.
#[test]
fn who_is_seen_late_behind_a_more_urgent_call_is_late_once_more() {
    assert_eq!(longest(&[(2, 10), (4, 9)], &[0, 0], &[0; 20])[0], 9);
    assert_eq!(promised(&[(2, 10), (4, 9)]).unwrap()[0], 10);
    // It is due before that.
    assert_eq!(promised(&[(2, 9), (4, 8)]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn nothing_takes_longer_than_was_promised(
        all in prop::collection::vec((1_u64..5, 6_u64..40), 2..4),
        begin in prop::collection::vec(0_u64..12, 3),
        later in prop::collection::vec(0_u64..3, 40),
    ) {
        if let Some(promised) = promised(&all) {
            let seen = longest(&all, &begin[..all.len()], &later);
            for (place, (seen, promised)) in seen.iter().zip(&promised).enumerate() {
                prop_assert!(seen <= promised, "{place}: {seen} of {promised}");
            }
        }
    }
}
