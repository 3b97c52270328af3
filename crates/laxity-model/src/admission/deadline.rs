//! What `SCHED_DEADLINE` makes of requests: Abeni and Buttazzo's constant bandwidth server over global EDF, throttled by a tick.
//!
//! A budget of X every Y is replenished at period boundaries. Served at the start of one period and the end of the next, a holder is
//! without service for 2(Y − X). What a kernel makes of it that looks at the budget only every tick, [`KernelDeadline`] tells: largest
//! gaps measured for a spinner that was the only holder (g = 4 ms), and predicted: 1/10: 38 ms, 40; 2/8: 12.2, 16; 0.1/2.5: 98, 100;
//! 2/13: 24, 26.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Advice, DeadlineSupply, Denial, Keeps, Prediction, Why};
use crate::analysis::supply::KernelDeadline;
use crate::slots::Change;
use crate::{ActivityId, Grade, Reservation, Service, Span};

/// The deadline reservations granted so far.
pub(super) struct Book<'a> {
    pub(super) supply: &'a Result<DeadlineSupply, String>,
    pub(super) granted: Vec<(ActivityId, Reservation)>,
}

impl Book<'_> {
    /// What the kernel would make of one more reservation.
    pub(super) fn assess(
        &self,
        activity: ActivityId,
        asked: Reservation,
    ) -> Result<Prediction, Denial> {
        let supply = self
            .supply
            .as_ref()
            .map_err(|why| Why::Unavailable(why.clone()))?;
        let others = self
            .granted
            .iter()
            .filter(|(holder, _)| *holder != activity);
        let shares: Vec<u64> = others.map(|(_, held)| held.share_ppm()).collect();
        let free_ppm = supply.free_ppm.saturating_sub(shares.iter().sum());
        check(supply, asked, free_ppm).map_err(|why| Denial {
            nearest: self.nearest(&why, activity, asked, free_ppm),
            why,
        })?;
        Ok(predict(supply, asked, &shares))
    }

    /// The changes after which the kernel would say yes.
    fn nearest(
        &self,
        why: &Why,
        activity: ActivityId,
        asked: Reservation,
        free_ppm: u64,
    ) -> Vec<Advice> {
        let Ok(supply) = self.supply else {
            return Vec::new();
        };
        let (service, period) = (asked.service(), asked.period());
        let own = |change, service, period| {
            let reservation = Reservation::new(service, period).ok()?;
            check(supply, reservation, free_ppm).ok()?;
            Some(Advice {
                change,
                requests: [(activity, reservation)].into(),
            })
        };
        let candidates = match why {
            Why::DeadlineBandwidth { needed_ppm, .. } => {
                let others = self
                    .granted
                    .iter()
                    .filter(|(holder, _)| *holder != activity);
                let others = others.filter_map(|(holder, held)| {
                    let left_ppm = held.share_ppm().checked_sub(needed_ppm - free_ppm)?;
                    let left = within(left_ppm, held.period());
                    let left = Reservation::new(left, held.period()).ok()?;
                    (left.service() >= supply.shortest_runtime).then(|| Advice {
                        change: Change::OtherGivesUp,
                        requests: [(*holder, left)].into(),
                    })
                });
                let mut found = Vec::new();
                found.extend(own(
                    Change::LargestService,
                    within(free_ppm, period),
                    period,
                ));
                let longer = period_for(service, free_ppm);
                found.extend(longer.and_then(|y| own(Change::ShortestPeriod, service, y)));
                found.extend(others);
                return found;
            }
            Why::Period { shortest, .. } if period < *shortest => {
                own(Change::ShortestPeriod, service, *shortest)
            }
            // A longer period than the kernel takes: the same share at the longest that it takes.
            Why::Period { longest, .. } => own(
                Change::LargestService,
                within(asked.share_ppm(), *longest),
                *longest,
            ),
            Why::Runtime { shortest, .. } => own(Change::SmallestService, *shortest, period),
            _ => None,
        };
        candidates.into_iter().collect()
    }
}

/// The kernel's own conditions.
fn check(supply: &DeadlineSupply, asked: Reservation, free_ppm: u64) -> Result<(), Why> {
    let (service, period) = (asked.service(), asked.period());
    if period < supply.shortest_period || period > supply.longest_period {
        return Err(Why::Period {
            period,
            shortest: supply.shortest_period,
            longest: supply.longest_period,
        });
    }
    if service < supply.shortest_runtime {
        return Err(Why::Runtime {
            service,
            shortest: supply.shortest_runtime,
        });
    }
    let needed_ppm = asked.share_ppm();
    if needed_ppm > free_ppm {
        return Err(Why::DeadlineBandwidth {
            needed_ppm,
            free_ppm,
        });
    }
    Ok(())
}

fn predict(supply: &DeadlineSupply, asked: Reservation, others_ppm: &[u64]) -> Prediction {
    let tick = supply.tick;
    let theory_gap = asked.longest_gap().checked_mul(2).unwrap_or(Span::MAX);
    let has_its_own = has_a_processor_of_its_own(supply, others_ppm);
    let kernel = if has_its_own {
        KernelDeadline::alone(asked, tick)
    } else {
        KernelDeadline::among_others(asked, tick)
    };
    // What is alone now may be joined by others, the kernel's own server for ordinary threads among them: never less than theory allows.
    let longest_gap = kernel.map_or(Span::MAX, |kernel| kernel.longest_gap().max(theory_gap));
    let mut notes = Vec::new();
    if tick > asked.service().as_dedicated_span() {
        let late = kernel.map_or(u64::MAX, |kernel| kernel.longest_round());
        notes.push(format!(
            "{} is less than the kernel's tick of {tick}: it comes in bursts of up to a tick, then up to {late} periods are skipped",
            asked.service()
        ));
    } else if !tick.is_zero() {
        notes.push(format!(
            "a burst may run up to a tick of {tick} longer, which the next period takes back"
        ));
    }
    if !keeps_deadlines(supply, asked, others_ppm) {
        notes.push(format!(
            "among these reservations on {} processors deadlines may be missed by a bounded time",
            supply.processors
        ));
    }
    Prediction {
        promised_gap: asked.longest_gap(),
        theory_gap,
        longest_gap,
        keeps: if tick.is_zero() && keeps_deadlines(supply, asked, others_ppm) {
            Keeps::EveryPeriod
        } else {
            Keeps::LongRun
        },
        grade: Grade::Enforced,
        notes,
    }
}

/// Whether there are no more holders than processors.
const fn has_a_processor_of_its_own(supply: &DeadlineSupply, others_ppm: &[u64]) -> bool {
    others_ppm.len() < supply.processors as usize
}

/// Whether global EDF on m processors misses no deadline, by the density test of Goossens, Funk, Baruah ("Priority-driven scheduling
/// of periodic task systems on multiprocessors", Real-Time Systems 25, 2003): ΣU ≤ m − (m − 1)·U_max; or because each reservation has a
/// processor of its own.
fn keeps_deadlines(supply: &DeadlineSupply, asked: Reservation, others_ppm: &[u64]) -> bool {
    let processors = u64::from(supply.processors);
    let own = asked.share_ppm();
    let total: u64 = own + others_ppm.iter().sum::<u64>();
    let largest = others_ppm.iter().copied().fold(own, u64::max);
    let spare = processors.saturating_sub(1) * largest;
    has_a_processor_of_its_own(supply, others_ppm) || total + spare <= processors * 1_000_000
}

/// The service of this share in a period, rounded down.
fn within(share_ppm: u64, period: Span) -> Service {
    let service = u128::from(period.as_nanos()) * u128::from(share_ppm) / 1_000_000;
    Service::from_nanos(
        u64::try_from(service)
            .unwrap_or(u64::MAX)
            .min(period.as_nanos()),
    )
}

/// The shortest period in which this service is no more than this share.
fn period_for(service: Service, share_ppm: u64) -> Option<Span> {
    let scaled = u128::from(service.as_nanos()) * 1_000_000;
    let period = scaled.div_ceil(u128::from(share_ppm.min(1_000_000)).max(1));
    (share_ppm > 0).then(|| u64::try_from(period).ok().map(Span::from_nanos))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(others: usize, tick_ms: u64) -> Prediction {
        let supply = DeadlineSupply {
            processors: 2,
            free_ppm: 1_800_000,
            shortest_period: Span::from_micros(100),
            longest_period: Span::from_secs(4),
            shortest_runtime: Service::from_nanos(1_024),
            tick: Span::from_millis(tick_ms),
        };
        let asked = Reservation::new(Service::from_millis(2), Span::from_millis(8)).expect("fits");
        predict(&supply, asked, &alloc::vec![100_000; others])
    }

    /// Who may have to wait for others gets each of two long rounds at its end.
    #[test]
    fn more_holders_than_processors_may_keep_each_other_waiting() {
        assert_eq!(predicted(1, 4).longest_gap, Span::from_nanos(15_999_999));
        assert_eq!(predicted(2, 4).longest_gap, Span::from_nanos(27_999_999));
        assert_eq!(predicted(1, 0).longest_gap, Span::from_millis(12));
        assert_eq!(predicted(2, 0).longest_gap, Span::from_millis(12));
    }
}
