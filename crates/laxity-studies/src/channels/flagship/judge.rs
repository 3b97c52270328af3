//! What has become of a flow, by what came of it and when: the same judge for all who carry it.

use laxity_model::{Instant, Span};

use super::carry::Arrival;
use super::flows::{Flow, When};

/// Later than this a message is missed.
pub const DUE: Span = Span::from_millis(10);

/// What has become of a flow's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judged {
    /// So many were due to be sent, of those that are judged.
    pub due: u64,
    /// So many of them never came.
    pub lost: u64,
    /// So many were late by [`DUE`] or never came.
    pub missed: u64,
    /// From when they were due to be sent until they had come, of those that came: the median, the 99th percentile and the most; `None` if none came.
    pub latency: Option<[Span; 3]>,
}

impl Judged {
    /// By the arrivals of this flow among others. A message that comes again, or that nobody was to send, counts for nothing; so do those of which it `is_left_out` what was from when they were due to be sent until they came or were missed.
    #[must_use]
    pub fn of(
        flow: Flow,
        when: When,
        arrivals: &[Arrival],
        is_left_out: impl Fn(Instant, Instant) -> bool,
    ) -> Self {
        let mut first: Vec<Option<Span>> = vec![None; flow.count(when) as usize];
        for arrival in arrivals.iter().filter(|one| one.flow == flow) {
            let place = usize::try_from(arrival.number).ok();
            if let Some(known) = place.and_then(|place| first.get_mut(place)) {
                let scheduled = flow.scheduled(when, arrival.number);
                let latency = arrival.at.saturating_since(scheduled);
                *known = Some(known.map_or(latency, |known| known.min(latency)));
            }
        }
        let counts = |(number, latency): &(u64, Option<Span>)| {
            let scheduled = flow.scheduled(when, *number);
            !is_left_out(scheduled, scheduled + latency.unwrap_or(DUE))
        };
        let counted: Vec<_> = (0..).zip(first).filter(counts).collect();
        let due = counted.len() as u64;
        let mut latencies: Vec<Span> = counted.iter().filter_map(|(_, latency)| *latency).collect();
        latencies.sort_unstable();
        let lost = due - latencies.len() as u64;
        let late = latencies.iter().filter(|latency| **latency > DUE).count() as u64;
        let at = |percent: usize| {
            let rank = (latencies.len() * percent).div_ceil(100);
            latencies.get(rank.saturating_sub(1)).copied()
        };
        Self {
            due,
            lost,
            missed: lost + late,
            latency: [at(50), at(99), at(100)]
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.try_into().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when() -> When {
        When {
            from: Instant::from_millis(1_000),
            until: Instant::from_millis(1_100),
        }
    }

    fn arrival(number: u64, micros: u64) -> Arrival {
        let flow = Flow::Control;
        Arrival {
            flow,
            number,
            at: flow.scheduled(when(), number) + Span::from_micros(micros),
        }
    }

    #[test]
    fn what_is_late_lost_doubled_and_foreign_is_told_apart() {
        let judged =
            |arrivals: &[Arrival]| Judged::of(Flow::Control, when(), arrivals, |_, _| false);
        let none = judged(&[]);
        assert_eq!((none.due, none.lost, none.missed), (100, 100, 100));
        assert_eq!(none.latency, None);
        // 1 to 99 µs, and one that is never there; one again, later; one at 10 ms, which is in time, and one after it.
        let mut all: Vec<Arrival> = (1..100).map(|number| arrival(number, number)).collect();
        all.push(arrival(7, 50_000));
        all.push(arrival(100, 1));
        all.push(Arrival {
            flow: Flow::Video,
            ..arrival(0, 1)
        });
        let seen = judged(&all);
        let micros = [50, 99, 99].map(Span::from_micros);
        assert_eq!((seen.lost, seen.missed, seen.latency), (1, 1, Some(micros)));
        all[0] = arrival(1, 10_000);
        assert_eq!(judged(&all).missed, 1);
        all[0] = arrival(1, 10_001);
        let seen = judged(&all);
        assert_eq!((seen.lost, seen.missed), (1, 2));
        assert_eq!(
            seen.latency.map(|all| all[2]),
            Some(Span::from_micros(10_001))
        );
    }

    #[test]
    fn what_was_disturbed_until_it_came_or_was_missed_is_left_out() {
        // The first two came in a millisecond, the third after 8 ms, and all others never.
        let arrivals =
            [(0, 400), (1, 400), (2, 8_000)].map(|(number, micros)| arrival(number, micros));
        let halt = when().from + Span::from_micros(4_500);
        let judged = Judged::of(Flow::Control, when(), &arrivals, |from, to| {
            from <= halt && halt < to
        });
        // The third, the fourth and the fifth have the halt in their time.
        assert_eq!((judged.due, judged.lost, judged.missed), (97, 95, 95));
        let latency = judged.latency.expect("two came");
        assert_eq!(latency, [Span::from_micros(400); 3]);
    }
}
