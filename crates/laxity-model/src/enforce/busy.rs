//! Calls of a device of which each was asked for before the one before it was over, and what a halt of the machine among them excuses.
//!
//! A halt delays whatever comes after it in the busy period, each call by no more than it lasted, until that is worked off: so of what a call lost no more
//! is excused than came in meanwhile. Who takes more than twenty times as long to work it off has less than a twentieth of its time to spare, and is late
//! by itself: so what a halt hands down melts by a twentieth of the service that the time since is worth, and without that one of 0.15 ms would excuse
//! all of an endless busy period.
//!
//! What is passed over as a whole (a block whose turn is past, a ring that ran over) puts the driver ahead again: of that no more is excused in all the
//! busy period than came in during its halts, and what is dropped at once; when that is used up, it is behind by itself. A driver that passes over
//! nothing is put ahead by nothing: of each of its calls, whole blocks too, is excused what it would not have lost, had it ended sooner by as much as
//! halts delayed it. How late it was its other losses tell: they show when after its interrupt a call begins to lose.

use super::Disturbances;
use crate::{Instant, Reservation, Span};

/// How a device loses samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Losing {
    /// Samples a second of all cards on its driver, each way; more than zero.
    pub rate_hz: u64,
    /// Ways in which it loses them: 2, if what is not heard and what is not said count together, else 1.
    pub ways: u64,
    /// So many in one call are dropped as a whole.
    pub block: u64,
    /// No more are dropped at once.
    pub at_once: u64,
    /// Whether its driver passes over what is dropped as a whole. Who plays does all that it has to, however late.
    pub passes_over: bool,
}

/// So little of its time has nobody to spare who is not late by itself.
const SPARED_ONE_OF: u128 = 20;

impl Losing {
    /// What comes in meanwhile, rounded up.
    pub fn in_time(self, span: Span) -> u64 {
        let samples = u128::from(span.as_nanos()) * u128::from(self.rate_hz);
        u64::try_from(samples.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
    }

    /// What goes by meanwhile all ways together, rounded up.
    fn passing_in(self, span: Span) -> u64 {
        self.in_time(span).saturating_mul(self.ways)
    }

    /// What surely came in meanwhile.
    fn surely_in_time(self, span: Span) -> u64 {
        let samples = u128::from(span.as_nanos()) * u128::from(self.rate_hz);
        u64::try_from(samples / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// How long so many take to go by, all ways together, rounded up.
    fn time_of(self, samples: u64) -> Span {
        let nanos = u128::from(samples) * 1_000_000_000;
        let nanos = nanos.div_ceil((u128::from(self.rate_hz) * u128::from(self.ways)).max(1));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A call of a device's signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCall {
    /// When its interrupt was raised.
    pub raised: Instant,
    /// When it was over.
    pub ended: Instant,
    /// So many samples were lost since the call before.
    pub lost: u64,
}

impl DeviceCall {
    /// The calls that a run's end finds not over, whose interrupts were raised then, the oldest first, after so many samples were lost since the last one that
    /// was. All of these the last one loses: nothing was passed over yet that would have put the others ahead. Without any they make a call.
    pub fn left(raised: &[Instant], end: Instant, lost: u64) -> impl Iterator<Item = Self> {
        let all = raised.len().max(usize::from(lost > 0));
        (1..=all).map(move |number| Self {
            raised: raised.get(number - 1).copied().unwrap_or(end),
            ended: end,
            lost: if number == all { lost } else { 0 },
        })
    }

    fn response(self) -> Span {
        self.ended.saturating_since(self.raised)
    }
}

/// What the machine's halts answer for of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excuse {
    /// When the busy period began that it belongs to.
    pub since: Instant,
    /// Of the samples that it lost so many; `None`: the machine did not stand still in the busy period until its end.
    pub lost: Option<u64>,
    /// So much, and no more, they added to its response: zero where there were none. `None`: but for them it need not have waited for the call before
    /// it, and how long it took is not judged.
    pub added: Option<Span>,
}

/// The lateness of the first of its calls is handed down to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BusyPeriod {
    from: Instant,
    to: Option<Instant>,
    /// For how long the machine stood still in it.
    stood: Span,
    /// What may be left of that to be worked off.
    owed: Span,
    /// Of what was passed over as a whole so many samples are excused already.
    excused: u64,
    /// So long after its interrupt, at the latest, a call begins to lose: of who passes over nothing, as its losses so far tell.
    loses_from: Option<Span>,
}

impl BusyPeriod {
    /// Takes the device's next call; tells what is excused of it by those of the `halts` that were in the busy period until its end. The device's driver has
    /// this reservation, if any.
    pub fn take(
        &mut self,
        call: DeviceCall,
        losing: Losing,
        halts: &Disturbances,
        reservation: Option<Reservation>,
    ) -> Excuse {
        let (behind, own) = self.join(call.raised, call.ended);
        let since = self.from;
        let stood = halts.stood(own).unwrap_or_default();
        self.stood += stood;
        let handed_down = halts.delay(self.owed + stood, reservation);
        self.owed = self.owed.saturating_sub(worked_off(own, reservation)) + stood;
        if !losing.passes_over && call.lost > 0 {
            self.learn(call, losing);
        }
        if self.owed.is_zero() {
            return Excuse {
                since,
                lost: None,
                added: Some(Span::ZERO),
            };
        }
        let delays = [self.owed, self.stood].map(|stood| halts.delay(stood, reservation));
        let (lost, most) = self.excuse(call, losing, delays);
        let added = delays[0].min(most);
        // As with all that halts were a tenth of at the most, they are not why it took so long.
        let is_by_itself = behind > handed_down.min(most) || added * 10 <= call.response();
        Excuse {
            since,
            lost: Some(lost),
            added: is_by_itself.then_some(added),
        }
    }

    /// The next call, from its interrupt to its end; returns for how long it waited for the one before it, and the time that it adds to the busy period.
    fn join(&mut self, raised: Instant, ended: Instant) -> (Span, [Instant; 2]) {
        let before = self.to.replace(ended).filter(|before| *before >= raised);
        if before.is_none() {
            *self = Self {
                from: raised,
                to: self.to,
                loses_from: self.loses_from,
                ..Self::default()
            };
        }
        let before = before.unwrap_or(raised);
        (before.saturating_since(raised), [before, ended])
    }

    /// A call that lost so many samples began to lose them no later than so long before its end.
    fn learn(&mut self, call: DeviceCall, losing: Losing) {
        let until = call.response().saturating_sub(losing.time_of(call.lost));
        let known = self.loses_from.unwrap_or(Span::MAX);
        self.loses_from = Some(known.min(until));
    }

    /// How many of the samples that the call lost are excused, where so much of what halts delayed may not have been worked off, and they delayed all of the
    /// busy period by so much; and by how much it is late because of them at the most, for all that was passed over.
    fn excuse(&mut self, call: DeviceCall, losing: Losing, [owed, all]: [Span; 2]) -> (u64, Span) {
        let (lost, came_in) = (call.lost, losing.passing_in(owed));
        if !losing.passes_over {
            let late = self.loses_from.unwrap_or(Span::MAX);
            let late = call.response().saturating_sub(late);
            let late = losing.surely_in_time(late).max(lost);
            let without = late.saturating_sub(came_in);
            return (lost.saturating_sub(without), Span::MAX);
        }
        let left = (losing.passing_in(all) + losing.at_once).saturating_sub(self.excused);
        let most = losing.time_of(left);
        if lost < losing.block {
            return (lost.min(came_in).min(left), most);
        }
        let excused = lost.min(left);
        self.excused += excused;
        (excused, most)
    }
}

/// How much of what it is behind whoever has this reservation works off at the least in a busy time from `from` to `to`.
fn worked_off([from, to]: [Instant; 2], reservation: Option<Reservation>) -> Span {
    let worth = u128::from(to.saturating_since(from).as_nanos());
    let spared = match reservation {
        Some(reservation) => {
            let service = reservation.service().as_dedicated_span();
            let period = u128::from(reservation.period().as_nanos());
            worth * u128::from(service.as_nanos()) / (period * SPARED_ONE_OF)
        }
        None => worth / SPARED_ONE_OF,
    };
    Span::from_nanos(u64::try_from(spared).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{Disturbance, ProcessorId, Whereabouts};

    #[test]
    fn lateness_is_handed_down_through_a_busy_period() {
        let at = Instant::from_millis;
        let mut busy = BusyPeriod::default();
        let table = [
            (10, 70, 10, 0),
            (22, 72, 10, 48),
            // Asked for at its end.
            (72, 74, 10, 0),
            // All was served between.
            (85, 87, 85, 0),
        ];
        for (raised, ended, since, behind_ms) in table {
            let (behind, _) = busy.join(at(raised), at(ended));
            assert_eq!(
                (busy.from, behind),
                (at(since), Span::from_millis(behind_ms))
            );
        }
    }

    /// Blocks of 100 samples at 16 kHz.
    const LOSING: Losing = Losing {
        rate_hz: 16_000,
        ways: 1,
        block: 100,
        at_once: 100,
        passes_over: true,
    };

    #[test]
    fn a_halt_excuses_what_came_in_meanwhile_and_what_is_dropped_at_once() {
        // For how long it stood, what each call lost, and how much of that is excused.
        let table: [(u64, &[u64], &[u64]); 7] = [
            (150, &[0, 2, 3, 50], &[0, 2, 3, 3]),
            (150, &[99, 99, 99], &[3, 3, 3]),
            // Chronically overloaded: one halt of 0.15 ms excuses a block and no more.
            (150, &[100, 100, 100, 100, 2], &[100, 3, 0, 0, 0]),
            (150, &[1_000, 100], &[103, 0]),
            // What was dropped is more than came in.
            (10_000, &[100, 100, 20, 100, 60], &[100, 100, 20, 60, 0]),
            (10_000, &[260, 260], &[260, 0]),
            (0, &[100, 100, 5], &[100, 0, 0]),
        ];
        for (stood_us, lost, expected) in table {
            let mut busy = BusyPeriod::default();
            let stood = Span::from_micros(stood_us);
            let excused = lost.iter().map(|lost| {
                let call = DeviceCall {
                    raised: Instant::ZERO,
                    ended: Instant::ZERO,
                    lost: *lost,
                };
                busy.excuse(call, LOSING, [stood; 2]).0
            });
            let excused: Vec<u64> = excused.collect();
            assert_eq!(excused, expected, "{stood_us} {lost:?}");
        }
    }

    /// A modem of blocks of 210 samples and a ring of 512, whose processor stood still for 98 ms: it passes over three rings of what it should have heard,
    /// and then has nothing to say until it is where it should be.
    #[test]
    fn a_halt_makes_lose_both_ways_what_goes_both_ways() {
        let excused = |ways| {
            let losing = Losing {
                ways,
                block: 210,
                at_once: 210 + 512,
                ..LOSING
            };
            let mut busy = BusyPeriod::default();
            let each = [1_536 + 210, 210, 210, 210, 210, 210, 210, 152].map(|lost| {
                let call = DeviceCall {
                    raised: Instant::ZERO,
                    ended: Instant::ZERO,
                    lost,
                };
                busy.excuse(call, losing, [Span::from_millis(98); 2]).0
            });
            each.iter().sum::<u64>()
        };
        assert_eq!(excused(2), 2 * 1_568 + 22);
        assert_eq!(excused(1), 1_568 + 210 + 512);
    }

    /// The processor stood still for so many microseconds from so many milliseconds on.
    fn halts(all: &[(u64, u64)]) -> Disturbances {
        let all = all.iter().map(|(at_ms, us)| Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_millis(*at_ms),
            to: Instant::from_millis(*at_ms) + Span::from_micros(*us),
        });
        let all: Vec<Disturbance> = all.collect();
        Disturbances::bearing_on(&all, [Whereabouts::Anywhere])
    }

    fn take(
        busy: &mut BusyPeriod,
        [raised, ended]: [u64; 2],
        lost: u64,
        still: &Disturbances,
    ) -> Excuse {
        let call = DeviceCall {
            raised: Instant::from_millis(raised),
            ended: Instant::from_millis(ended),
            lost,
        };
        busy.take(call, LOSING, still, None)
    }

    #[test]
    fn each_busy_period_has_its_own_excuse() {
        let still = halts(&[(12, 150), (55, 150)]);
        let mut busy = BusyPeriod::default();
        for (span, excused) in [([10, 14], 100), ([13, 15], 3), ([50, 60], 100)] {
            assert_eq!(take(&mut busy, span, 100, &still).lost, Some(excused));
        }
        assert_eq!(take(&mut busy, [70, 75], 100, &still).lost, None);
    }

    #[test]
    fn a_halt_adds_no_more_to_a_response_than_it_lasted() {
        let still = halts(&[(12, 5_000)]);
        let mut busy = BusyPeriod::default();
        let mut added = |span, lost| take(&mut busy, span, lost, &still).added;
        let after = |us| Some(Span::from_micros(us));
        assert_eq!(added([0, 9], 0), Some(Span::ZERO));
        // In its own time, and in that of the call before it, which it would not have waited for.
        assert_eq!(added([10, 27], 0), None);
        assert_eq!(added([22, 39], 0), None);
        // It is behind by more. Of what the halt delayed a twentieth of the time since should be worked off.
        assert_eq!(added([33, 50], 0), after(5_000 - 600 - 550));
        // A call that dropped a block, and more, is not behind because of the halt any more.
        assert_eq!(added([44, 60], 1_000), after(3_850 - 500));
        assert_eq!(added([55, 66], 0), Some(Span::ZERO));
    }

    #[test]
    fn a_call_that_took_ten_times_as_long_as_the_halts_in_it_is_judged() {
        let mut busy = BusyPeriod::default();
        let excuse = take(&mut busy, [10, 5_010], 0, &halts(&[(12, 150)]));
        assert_eq!(excuse.added, Some(Span::from_micros(150)));
    }

    /// What is excused of what the run's end at `end` finds lost of calls that came every 10 ms, and what halts added to the response of each.
    fn left(end: u64, lost: u64, still: &Disturbances) -> (Option<u64>, Vec<Option<Span>>) {
        let raised: Vec<Instant> = (1..end / 10)
            .map(|n| Instant::from_millis(10 * n))
            .collect();
        let mut busy = BusyPeriod::default();
        let calls = DeviceCall::left(&raised, Instant::from_millis(end), lost);
        let each: Vec<Excuse> = calls
            .map(|call| busy.take(call, LOSING, still, None))
            .collect();
        let lost = each.last().and_then(|last| last.lost);
        (lost, each.iter().map(|each| each.added).collect())
    }

    #[test]
    fn at_the_runs_end_halts_excuse_what_came_in_meanwhile_and_are_no_longer_than_they_were() {
        // Never served: halts in every other call's own time make it lose no more than they lasted.
        let many: Vec<(u64, u64)> = (0..150).map(|n| (15 + 20 * n, 150)).collect();
        let (lost, added) = left(3_000, 47_000, &halts(&many));
        assert_eq!(lost, Some(16 * 150 * 150 / 1_000 + 100));
        let judged = added.iter().flatten().count();
        assert!(judged * 100 > added.len() * 98, "{judged}");
        assert_eq!(left(3_000, 47_000, &halts(&[])).0, None);
        // Served until one halt before the end: all is its doing.
        let (lost, added) = left(212, 2_600, &halts(&[(11, 201_000)]));
        assert_eq!(lost, Some(2_600));
        assert!(added.iter().all(Option::is_none), "{added:?}");
        assert_eq!(DeviceCall::left(&[], Instant::ZERO, 0).count(), 0);
        assert_eq!(DeviceCall::left(&[], Instant::ZERO, 7).count(), 1);
    }

    /// Of a player with 48 kHz and blocks of 480 samples, how many of the samples that these calls lost are excused. Of a call: how long after its interrupt
    /// it ends, and what it lost.
    fn excused(
        calls: impl Iterator<Item = (Span, u64)>,
        still: &Disturbances,
        [service_us, period_us]: [u64; 2],
        passes_over: bool,
    ) -> [u64; 2] {
        let losing = Losing {
            rate_hz: 48_000,
            ways: 1,
            block: 480,
            at_once: 480,
            passes_over,
        };
        let service = crate::Service::from_micros(service_us);
        let reservation = Reservation::new(service, Span::from_micros(period_us)).ok();
        let mut busy = BusyPeriod::default();
        let each = (1..).zip(calls).map(|(number, (response, lost))| {
            let raised = Instant::from_millis(10 * number);
            let call = DeviceCall {
                raised,
                ended: raised + response,
                lost,
            };
            let excuse = busy.take(call, losing, still, reservation);
            [lost, excuse.lost.unwrap_or(0)]
        });
        each.reduce(|all, call| [all[0] + call[0], all[1] + call[1]])
            .unwrap_or_default()
    }

    #[test]
    fn one_halt_does_not_excuse_an_endless_busy_period() {
        let one = halts(&[(15, 150)]);
        let behind = Span::from_micros(10_100);
        for passes_over in [true, false] {
            let constant = core::iter::repeat_n((behind, 290), 6_000);
            let [lost, of_constant] = excused(constant, &one, [2_000, 8_000], passes_over);
            assert_eq!(lost, 1_740_000);
            // What 6.15 ms bring at the most, of the calls of a few of its periods.
            assert!((1..=4 * 296).contains(&of_constant), "{of_constant}");
            // Overloaded by a hundredth, a block is dropped now and then.
            let saw = (0..6_000).map(|call| (behind, call * 24 / 5 % 480));
            let [lost, of_saw] = excused(saw, &one, [2_000, 8_000], passes_over);
            assert!(lost > 1_400_000 && of_saw <= 4 * 296, "{of_saw} of {lost}");
        }
        // One that plays and is behind by ever more.
        let more = (0..600).map(|call| (Span::from_millis(10 + 5 * call), (240 * call).min(480)));
        let many: Vec<(u64, u64)> = (0..60).map(|each| (15 + 100 * each, 450)).collect();
        let [lost, of_more] = excused(more, &halts(&many), [2_000, 8_000], false);
        assert!(lost > 280_000 && of_more <= 1_000, "{of_more} of {lost}");
    }

    #[test]
    fn of_who_passes_over_nothing_all_is_excused_that_a_halt_made_it_lose() {
        let still = halts(&[(101, 40_000)]);
        // Without a halt a call takes 4 ms of 10, and loses nothing until 10 ms are over.
        let calls = (1..40).scan(Instant::ZERO, |free, number| {
            let raised = Instant::from_millis(10 * number);
            let halt = Span::from_millis(if number == 10 { 40 } else { 0 });
            *free = raised.max(*free) + Span::from_millis(4) + halt;
            let response = free.saturating_since(raised);
            let late = response.saturating_sub(Span::from_millis(10));
            Some((response, (late.as_nanos() * 48 / 1_000_000).min(480)))
        });
        let [lost, of_them] = excused(calls.clone(), &still, [8_000, 8_000], false);
        assert!(lost > 480 * 5, "{lost}");
        assert_eq!(of_them, lost);
        // One of 5 ms is not why it lost all of that.
        let shorter = halts(&[(101, 5_000)]);
        let [_, of_them] = excused(calls, &shorter, [8_000, 8_000], false);
        assert!((1..=5 * 240 + 192).contains(&of_them), "{of_them}");
    }

    /// Each call takes 4 ms of 10, of 5.05 ms of 8.
    #[test]
    fn a_long_halt_is_handed_down_through_a_reservation() {
        let late = [
            (46_950, 480),
            (43_900, 480),
            (40_850, 480),
            (37_800, 480),
            (31_800, 480),
            (28_750, 480),
            (25_700, 480),
            (22_650, 480),
            (19_600, 460),
            (13_600, 172),
            (10_550, 26),
        ];
        let calls = late.map(|(response, lost)| (Span::from_micros(response), lost));
        let still = halts(&[(11, 40_000)]);
        let all = excused(calls.into_iter(), &still, [5_050, 8_000], false);
        assert_eq!(all, [4_498; 2]);
    }
}
