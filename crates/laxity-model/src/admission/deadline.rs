//! What `SCHED_DEADLINE` makes of requests: Abeni and Buttazzo's constant bandwidth server over global EDF, throttled by a tick.
//!
//! A budget of X every Y is replenished at period boundaries. Served at the start of one period and the end of the next, a holder is
//! without service for 2(Y − X). What a kernel makes of it that looks at the budget only every tick, [`KernelDeadline`] tells: largest
//! gaps measured for a spinner that was the only holder (g = 4 ms), and predicted: 1/10: 38 ms, 40; 2/8: 12.2, 16; 0.1/2.5: 98, 100;
//! 2/13: 24, 26.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::iter;
use core::num::NonZeroU16;

use super::{Advice, DeadlineSupply, Denial, Keeps, Prediction, Why};
use crate::analysis::Task;
use crate::analysis::multiprocessor::{
    Bandwidth, DeadlineRequest, KernelLimits, KernelRefusal, global_edf,
};
use crate::analysis::supply::KernelDeadline;
use crate::policy::slots::Change;
use crate::{ActivityId, Grade, Refused, Reservation, Service, Span};

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
        let others: Vec<Reservation> = self.others(activity).map(|(_, held)| held).collect();
        let kernel = Kernel::beside(supply, &others);
        match kernel.refusal(asked) {
            None => Ok(predict(supply, asked, &others)),
            Some(refusal) => Err(Denial {
                why: why(asked, refusal),
                nearest: self.nearest(&kernel, refusal, activity, asked),
                is_cut_short: false,
            }),
        }
    }

    /// The reservations of others, who holds which.
    fn others(&self, activity: ActivityId) -> impl Iterator<Item = (ActivityId, Reservation)> {
        let granted = self.granted.iter().copied();
        granted.filter(move |(holder, _)| *holder != activity)
    }

    /// The changes after which the kernel would say yes.
    fn nearest(
        &self,
        kernel: &Kernel,
        refusal: KernelRefusal,
        activity: ActivityId,
        asked: Reservation,
    ) -> Vec<Advice> {
        let (service, period) = (asked.service(), asked.period());
        let own = |change, service, period| {
            let reservation = Reservation::new(service, period).ok()?;
            kernel.refusal(reservation).is_none().then(|| Advice {
                change,
                requests: [(activity, reservation)].into(),
            })
        };
        let less = |most: Service, period| {
            let rounded = own(Change::LargestService, round_down(most), period);
            rounded.or_else(|| own(Change::LargestService, most, period))
        };
        let later = |least: Span| {
            let rounded = own(Change::ShortestPeriod, service, round_up(least));
            rounded.or_else(|| own(Change::ShortestPeriod, service, least))
        };
        let candidates = match refusal {
            KernelRefusal::Bandwidth { needed, free } => {
                let mut found = Vec::new();
                found.extend(kernel.longest_runtime(period).and_then(|x| less(x, period)));
                found.extend(kernel.shortest_period(service).and_then(later));
                let missing = needed.saturating_sub(free);
                // What the kernel keeps for others is given up by nobody.
                let may_help = kernel.beyond_servers(asked).is_none();
                let others = self.others(activity).filter(|_| may_help);
                found.extend(others.filter_map(|(holder, held)| {
                    let left = kernel.without(held, missing)?;
                    Some(Advice {
                        change: Change::OtherGivesUp,
                        requests: [(holder, left)].into(),
                    })
                }));
                return found;
            }
            KernelRefusal::Period { shortest, .. } if period < shortest => later(shortest),
            // A longer period than the kernel takes: the same share at the longest that it takes, or what is left of it.
            KernelRefusal::Period { longest, .. } => {
                let longest = round_down(longest.as_full_service()).as_dedicated_span();
                let most = kernel.longest_runtime(longest);
                most.and_then(|most| less(most.min(same_share(asked, longest)), longest))
            }
            KernelRefusal::Runtime { shortest, .. } => {
                own(Change::SmallestService, shortest, period)
            }
            KernelRefusal::Order { .. } | KernelRefusal::Disabled => None,
        };
        candidates.into_iter().collect()
    }
}

/// Who holds which of the kernel's reservations while a program runs. All that the program was admitted with count, those too that begin
/// later, of which the kernel knows nothing yet.
#[derive(Clone, Debug)]
pub struct DeadlineState {
    supply: DeadlineSupply,
    held: Vec<(ActivityId, Reservation)>,
}

impl DeadlineState {
    pub(super) fn new(supply: DeadlineSupply, held: Vec<(ActivityId, Reservation)>) -> Self {
        Self { supply, held }
    }

    /// What an activity holds, in force or not.
    pub fn held(&self, activity: ActivityId) -> Option<Reservation> {
        let mut held = self.held.iter();
        held.find(|(holder, _)| *holder == activity)
            .map(|(_, held)| *held)
    }

    /// Another reservation in place of the activity's own, if it fits beside those of all others; tells which it was.
    ///
    /// # Errors
    ///
    /// [`Refused::NotInForce`] for an activity that has none, [`Refused::DeadlineBandwidth`] where it does not fit; nothing has changed then.
    pub fn change(
        &mut self,
        activity: ActivityId,
        asked: Reservation,
    ) -> Result<Reservation, Refused> {
        let own = self.held.iter().position(|(holder, _)| *holder == activity);
        let own = own.ok_or(Refused::NotInForce)?;
        let before = self.held[own].1;
        let others = self.held.iter().enumerate();
        let others = others.filter(|(place, _)| *place != own);
        let others: Vec<Reservation> = others.map(|(_, (_, held))| *held).collect();
        if Kernel::beside(&self.supply, &others)
            .refusal(asked)
            .is_some()
        {
            return Err(Refused::DeadlineBandwidth {
                needed_ppm: asked.share_ppm(),
            });
        }
        self.held[own].1 = asked;
        Ok(before)
    }

    /// The kernel did not agree to a change: the activity holds what it held before.
    pub fn undo(&mut self, activity: ActivityId, before: Reservation) {
        let mut held = self.held.iter_mut();
        if let Some((_, held)) = held.find(|(holder, _)| *holder == activity) {
            *held = before;
        }
    }
}

/// The kernel where some of ours are in already.
struct Kernel<'a> {
    supply: &'a DeadlineSupply,
    limits: KernelLimits,
    granted: Bandwidth,
}

impl<'a> Kernel<'a> {
    fn beside(supply: &'a DeadlineSupply, ours: &[Reservation]) -> Self {
        let booked = ours
            .iter()
            .map(|held| DeadlineRequest::from(*held).bandwidth());
        Self {
            supply,
            limits: supply.limits.up_to_whole_processors(),
            granted: iter::once(supply.granted).chain(booked).sum(),
        }
    }

    fn refusal(&self, asked: Reservation) -> Option<KernelRefusal> {
        let processors = self.supply.processors;
        let answer = self.limits.check(processors, self.granted, asked.into());
        answer.err().or_else(|| self.beyond_servers(asked))
    }

    /// The kernel lets in who asks for all of a processor, and takes from him what it keeps of each for ordinary threads all the same, some 50 ms at once.
    fn beyond_servers(&self, asked: Reservation) -> Option<KernelRefusal> {
        let needed = DeadlineRequest::from(asked).bandwidth();
        let free = self.of_a_processor();
        (needed > free).then_some(KernelRefusal::Bandwidth { needed, free })
    }

    /// What the kernel leaves of each processor.
    fn of_a_processor(&self) -> Bandwidth {
        Bandwidth::ONE.saturating_sub(self.supply.servers)
    }

    fn longest_runtime(&self, period: Span) -> Option<Service> {
        let processors = self.supply.processors;
        let longest = self
            .limits
            .longest_runtime(processors, self.granted, period)?;
        Some(longest.min(self.of_a_processor().longest_runtime(period)))
    }

    fn shortest_period(&self, runtime: Service) -> Option<Span> {
        let processors = self.supply.processors;
        let shortest = self
            .limits
            .shortest_period(processors, self.granted, runtime)?;
        Some(shortest.max(self.of_a_processor().shortest_period(runtime)))
    }

    /// What is left to a holder that gives up so much; `None` if that is less than the kernel takes.
    fn without(&self, held: Reservation, missing: Bandwidth) -> Option<Reservation> {
        let left = DeadlineRequest::from(held)
            .bandwidth()
            .checked_sub(missing)?;
        let most = left.longest_runtime(held.period());
        let services = [round_down(most), most];
        let service = services
            .into_iter()
            .find(|x| *x >= KernelLimits::SHORTEST_RUNTIME)?;
        Reservation::new(service, held.period()).ok()
    }
}

/// The refusal in terms of what was asked for.
fn why(asked: Reservation, refusal: KernelRefusal) -> Why {
    match refusal {
        KernelRefusal::Runtime { runtime, shortest } => Why::Runtime {
            service: runtime,
            shortest,
        },
        KernelRefusal::Period {
            period,
            shortest,
            longest,
        } => Why::Period {
            period,
            shortest,
            longest,
        },
        // What it lacks is a fraction of the kernel's unit at times: seen from above it is never nothing.
        KernelRefusal::Bandwidth { free, .. } => Why::DeadlineBandwidth {
            needed_ppm: asked.share_ppm(),
            free_ppm: free.ppm(),
        },
        KernelRefusal::Order { .. } | KernelRefusal::Disabled => {
            Why::Unavailable(refusal.to_string())
        }
    }
}

fn predict(supply: &DeadlineSupply, asked: Reservation, others: &[Reservation]) -> Prediction {
    let tick = supply.tick;
    let theory_gap = asked.longest_gap().checked_mul(2).unwrap_or(Span::MAX);
    let kernel = if has_a_processor_of_its_own(supply, others) {
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
            "{} is less than the kernel's tick of {}: it comes in bursts of up to a tick, then up to {late} periods are skipped",
            asked.service().beside(tick.as_full_service()),
            tick.beside(asked.service().as_dedicated_span())
        ));
    } else if !tick.is_zero() {
        notes.push(format!(
            "a burst may run up to a tick of {tick} longer, which the next period takes back"
        ));
    }
    let keeps_deadlines = keeps_deadlines(supply, asked, others);
    if !keeps_deadlines {
        notes.push(format!(
            "among {} on {} processor{} deadlines may be missed by a bounded time",
            if is_for_us_alone(supply) {
                "these reservations"
            } else {
                "these reservations and those of others"
            },
            supply.processors,
            if supply.processors == NonZeroU16::MIN {
                ""
            } else {
                "s"
            }
        ));
    }
    let (grade, apart) = grades(supply);
    Prediction {
        promised_gap: asked.longest_gap(),
        theory_gap,
        longest_gap,
        keeps: if tick.is_zero() && keeps_deadlines {
            Keeps::EveryPeriod
        } else {
            Keeps::LongRun
        },
        apart,
        grade,
        notes,
    }
}

/// How firm a reservation will be; and how firm it is once it is held, as the kernel has then said that there is room.
fn grades(supply: &DeadlineSupply) -> (Grade, Grade) {
    let held = match supply.limits.rt_runtime {
        Some(_) => Grade::Enforced,
        // Whoever comes later takes from all.
        None => Grade::Unenforced {
            reason: KernelLimits::UNLIMITED.to_string(),
        },
    };
    let unseen = supply.unseen.as_ref().map(|why| Grade::Uncertain {
        reason: format!("cannot see what others hold, so the kernel may refuse it: {why}"),
    });
    let grade = unseen.map_or_else(|| held.clone(), |unseen| held.clone().and(&unseen));
    (grade, held)
}

/// Whether there are no more holders than processors. Those that are not ours may be many.
fn has_a_processor_of_its_own(supply: &DeadlineSupply, others: &[Reservation]) -> bool {
    is_for_us_alone(supply) && others.len() < usize::from(supply.processors.get())
}

/// Whether surely nobody holds anything who is not ours.
fn is_for_us_alone(supply: &DeadlineSupply) -> bool {
    supply.granted == Bandwidth::ZERO && supply.unseen.is_none()
}

/// Whether global earliest deadline first surely misses no deadline of these; of those that are not ours nothing but the sum is known.
fn keeps_deadlines(supply: &DeadlineSupply, asked: Reservation, others: &[Reservation]) -> bool {
    let all = iter::once(&asked).chain(others);
    let tasks: Result<Vec<Task>, _> = all.map(|r| Task::new(r.service(), r.period())).collect();
    let surely = |tasks: Vec<Task>| global_edf(&tasks, supply.processors).ok();
    is_for_us_alone(supply)
        && tasks
            .ok()
            .and_then(surely)
            .is_some_and(|verdict| verdict.is_schedulable())
}

/// The service of the same share in another period, rounded down.
fn same_share(asked: Reservation, period: Span) -> Service {
    let scaled = u128::from(asked.service().as_nanos()) * u128::from(period.as_nanos());
    let service = scaled / u128::from(asked.period().as_nanos());
    // No share is more than 1, so it is no more than the period.
    Service::from_nanos(u64::try_from(service).unwrap_or(u64::MAX))
}

/// To what is written of it without loss, and easily said.
fn round_down(service: Service) -> Service {
    let nanos = service.as_nanos();
    Service::from_nanos(nanos - nanos % grain(nanos))
}

/// The counterpart of [`round_down`]: to the next greater number that is easily said.
fn round_up(period: Span) -> Span {
    let nanos = period.as_nanos();
    let grain = grain(nanos);
    Span::from_nanos(nanos.div_ceil(grain).saturating_mul(grain))
}

/// Of advice of so many nanoseconds: at most 1 % of it.
const fn grain(nanos: u64) -> u64 {
    match nanos {
        0..100_000 => 1,
        100_000..1_000_000_000 => 1_000,
        _ => 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(others: usize, tick_ms: u64) -> Prediction {
        predicted_beside(Bandwidth::ZERO, others, tick_ms)
    }

    fn predicted_beside(foreign: Bandwidth, others: usize, tick_ms: u64) -> Prediction {
        let supply = DeadlineSupply {
            processors: NonZeroU16::new(2).expect("two"),
            limits: KernelLimits::WITH_FAIR_SERVER,
            servers: KernelLimits::WITH_FAIR_SERVER.servers,
            granted: foreign,
            unseen: None,
            tick: Span::from_millis(tick_ms),
        };
        let asked = Reservation::new(Service::from_millis(2), Span::from_millis(8)).expect("fits");
        let other = Reservation::new(Service::from_millis(1), Span::from_millis(10)).expect("fits");
        predict(&supply, asked, &alloc::vec![other; others])
    }

    /// Who may have to wait for others gets each of two long rounds at its end.
    #[test]
    fn more_holders_than_processors_may_keep_each_other_waiting() {
        assert_eq!(predicted(1, 4).longest_gap, Span::from_nanos(15_999_999));
        assert_eq!(predicted(2, 4).longest_gap, Span::from_nanos(27_999_999));
        assert_eq!(predicted(1, 0).longest_gap, Span::from_millis(12));
        assert_eq!(predicted(2, 0).longest_gap, Span::from_millis(12));
    }

    /// Of those that are not ours it is not known how many they are.
    #[test]
    fn others_that_are_not_ours_may_keep_anyone_waiting() {
        let tenth = Bandwidth::of(Service::from_millis(1), Span::from_millis(10));
        let beside = predicted_beside(tenth, 0, 4);
        assert_eq!(beside.longest_gap, predicted(2, 4).longest_gap);
        let beside = predicted_beside(tenth, 0, 0);
        assert_eq!(beside.keeps, Keeps::LongRun);
        assert!(beside.notes[0].contains("and those of others"));
        assert_eq!(predicted(1, 0).keeps, Keeps::EveryPeriod);
    }

    #[test]
    fn advice_is_written_without_loss() {
        let text = |nanos| format!("{}", round_up(Span::from_nanos(nanos)));
        assert_eq!(
            [99_999, 100_001, 999_999_001, 1_000_000_001].map(text),
            ["99.999us", "101us", "1s", "1.001s"]
        );
        assert_eq!(
            round_down(Service::from_nanos(19_999_351)),
            Service::from_micros(19_999)
        );
    }
}
