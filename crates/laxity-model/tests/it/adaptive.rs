//! Reservations that follow the load: what is promised of settling, calm and admission, for every load that fits the promise.

use laxity_model::adaptive::{Adapter, Observation, Policy, Settings};
use laxity_model::{Instant, Reservation, Service, Span};
use proptest::prelude::*;

/// A holder of slots at the beginning of every window, in the simplest way: what changes, changes at the next slot.
struct Device {
    settings: Settings,
    adapter: Adapter,
    /// What each slot gives, by its number; the last one goes on.
    slots: Vec<Service>,
    done_at: Instant,
    released: u64,
    changes: Vec<Instant>,
    late: Vec<Instant>,
    /// The most that admission grants.
    admitted: Service,
    refusals: u64,
}

impl Device {
    fn new(policy: Policy, settings: Settings, held: Service) -> Self {
        Self {
            adapter: Adapter::new(policy, settings, held),
            settings,
            slots: vec![held],
            done_at: Instant::ZERO,
            released: 0,
            changes: Vec::new(),
            late: Vec::new(),
            admitted: Service::MAX,
            refusals: 0,
        }
    }

    fn slot(&mut self, number: u64) -> Service {
        let last = *self.slots.last().expect("there is a first");
        while self.slots.len() as u64 <= number {
            self.slots.push(last);
        }
        self.slots[number as usize]
    }

    /// When work that begins at `from` is done.
    fn completion(&mut self, from: Instant, work: Service) -> Instant {
        let window = self.settings.window;
        let mut number = from.since_epoch() / window;
        let mut left = work;
        loop {
            let begin = Instant::ZERO + window * number;
            let end = begin + self.slot(number).as_dedicated_span();
            let at = begin.max(from);
            let room = end.saturating_since(at).as_full_service();
            if room >= left {
                return at + left.as_dedicated_span();
            }
            left = left.saturating_sub(room);
            number += 1;
        }
    }

    /// The next job.
    fn job(&mut self, run: Service) {
        let release = Instant::ZERO + self.settings.period * self.released;
        self.released += 1;
        let end = self.completion(release.max(self.done_at), run);
        self.done_at = end;
        let in_time = end <= release + self.settings.deadline;
        if !in_time {
            self.late.push(end);
        }
        if let Some(wanted) = self.adapter.observe(end, Observation { run, in_time }) {
            self.answer(end, wanted);
        }
    }

    fn answer(&mut self, now: Instant, wanted: Reservation) {
        assert!(wanted.service() <= self.settings.most);
        assert_eq!(wanted.period(), self.settings.window);
        assert_ne!(wanted.service(), self.adapter.held());
        if wanted.service() > self.admitted {
            let held = self.adapter.held();
            self.adapter.refused(now);
            assert_eq!(self.adapter.held(), held);
            self.refusals += 1;
            return;
        }
        self.adapter.granted(now);
        let next = now.since_epoch() / self.settings.window + 1;
        self.slot(next);
        self.slots.truncate(next as usize);
        self.slots.push(wanted.service());
        self.changes.push(now);
    }

    fn run_for(&mut self, span: Span, mut load: impl FnMut() -> Service) {
        for _ in 0..span / self.settings.period {
            self.job(load());
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.settings.period * self.released
    }

    fn changes_since(&self, at: Instant) -> usize {
        self.changes.iter().filter(|change| **change > at).count()
    }
}

fn settings(period_us: u64, window_us: u64) -> Settings {
    Settings {
        period: Span::from_micros(period_us),
        deadline: Span::from_micros(period_us),
        window: Span::from_micros(window_us),
        granularity: Service::from_micros(10),
        most: Service::from_micros(window_us),
    }
}

/// Run times within ±10 %, drawn from a seed.
fn noisy(around_us: u64, seed: u64) -> impl FnMut() -> Service {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Service::from_nanos(around_us * (900 + (state >> 33) % 201))
    }
}

fn cases() -> u32 {
    let cases = std::env::var("LAXITY_CASES").ok();
    cases.map_or(64, |cases| cases.parse().expect("LAXITY_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// What `needed` says suffices does, for every phase of the slots; and it is what `capacity` turns round.
    #[test]
    fn what_is_said_to_be_needed_suffices(
        period in 2_000_u64..40_000, window in 1_000_u64..20_000, share in 1_u64..60, offset in 0_u64..20_000,
    ) {
        let settings = settings(period, window);
        let run = Service::from_micros((period * share / 100).max(1));
        let service = settings.needed(run);
        prop_assume!(service < settings.most);
        prop_assert!(settings.capacity(service) >= run);
        let mut device = Device::new(Policy::RunTime, settings, service);
        let from = Instant::from_micros(offset);
        let end = device.completion(from, run);
        prop_assert!(end - from <= settings.deadline, "{} after {}", end - from, settings.deadline);
    }

    /// Within 2 s of a step by two, up or down, run times are followed; then, by them alone, nothing changes at all, whatever the noise.
    #[test]
    fn run_times_are_followed_within_two_seconds_and_then_left_alone(
        period in 2_000_u64..100_000, permille in 20_u64..150, up: bool, seed: u64, both: bool,
    ) {
        let settings = settings(period, (period / 2).max(1_000));
        let base = (period * permille / 1_000).max(20);
        let (before, after) = if up { (base, 2 * base) } else { (2 * base, base) };
        let policy = if both { Policy::Both } else { Policy::RunTime };
        let mut device = Device::new(policy, settings, settings.needed(Service::from_micros(before)));
        device.run_for(Span::from_secs(5), noisy(before, seed));
        let step = device.now();
        device.run_for(Span::from_secs(2), noisy(after, seed ^ 1));
        let settled = device.now();
        let changed = device.changes_since(step);
        prop_assert!((1..=2).contains(&changed), "{changed} changes");
        device.run_for(Span::from_secs(30), noisy(after, seed ^ 2));
        // By both, a job may just be late when all had drained: it adds a quarter, and 20 s later that is taken back.
        let (changes, most) = if both { (1, after * 1_375 / 4 * 5) } else { (0, after * 1_375) };
        prop_assert!(device.changes_since(settled) <= changes, "{:?}", device.changes);
        prop_assert!(device.adapter.held() >= settings.needed(Service::from_nanos(after * 1_100)));
        prop_assert!(device.adapter.held() <= settings.needed(Service::from_nanos(most)));
        prop_assert!(device.late.iter().all(|late| *late <= settled));
    }

    /// A load that doubles is followed within 2 s from late jobs alone, too; and a constant load sees few changes.
    #[test]
    fn late_jobs_alone_are_followed_up_and_then_tried_seldom(
        period in 4_000_u64..40_000, permille in 20_u64..150, seed: u64,
    ) {
        let settings = settings(period, (period / 2).max(1_000));
        let base = (period * permille / 1_000).max(50);
        let start = settings.needed(Service::from_nanos(base * 1_100));
        let mut device = Device::new(Policy::InTime, settings, start);
        device.run_for(Span::from_secs(5), noisy(base, seed));
        prop_assert_eq!(device.changes.len(), 0);
        device.run_for(Span::from_secs(2), noisy(2 * base, seed ^ 1));
        let settled = device.now();
        device.run_for(Span::from_secs(15), noisy(2 * base, seed ^ 2));
        prop_assert_eq!(device.late.iter().filter(|late| **late > settled).count(), 0);
        prop_assert_eq!(device.changes_since(settled), 0);
        device.run_for(Span::from_secs(300), noisy(2 * base, seed ^ 3));
        // One in 10 s on average; a try, its undoing, and a raise come close together at worst.
        prop_assert!(device.changes_since(settled) <= 30, "{:?}", device.changes);
        for at in device.changes.iter().filter(|at| **at > settled) {
            let next = device.changes.iter().filter(|change| *change > at && **change < *at + Span::from_secs(19));
            prop_assert!(next.count() <= 2, "{:?}", device.changes);
        }
    }

    /// Whatever the load does, and whatever admission says: nothing above the most is asked for, a refusal leaves what is held, and refusals get rare.
    #[test]
    fn admission_is_never_exceeded_and_refusals_are_backed_off(
        policy in prop_oneof![Just(Policy::RunTime), Just(Policy::InTime), Just(Policy::Both)],
        loads in prop::collection::vec((10_u64..14_000, 1_u64..6), 1..12), admitted in 1_000_u64..8_000, seed: u64,
    ) {
        let mut settings = settings(12_500, 8_000);
        settings.most = Service::from_micros(6_000);
        let mut device = Device::new(policy, settings, Service::from_millis(1));
        device.admitted = Service::from_micros(admitted);
        let mut latest = Instant::ZERO;
        for (load, length) in loads {
            // A device that is hopelessly late drops what piled up, as a modem does.
            device.done_at = device.done_at.min(device.now());
            device.run_for(Span::from_secs(length), noisy(load, seed));
            latest = latest.max(device.done_at);
        }
        prop_assert!(device.adapter.held() <= settings.most.min(device.admitted));
        // At most one a second, of the time that the late device itself took, also where it was dropped then.
        let seconds = latest.as_micros() / 1_000_000;
        prop_assert!(device.refusals <= seconds + 1);
    }
}

#[test]
fn a_constant_refusal_is_asked_ever_less_often() {
    let held = Service::from_micros(500);
    let mut adapter = Adapter::new(Policy::RunTime, settings(10_000, 5_000), held);
    let job = Observation {
        run: Service::from_micros(4_000),
        in_time: false,
    };
    let mut asked = Vec::new();
    for now in (0..64_000).step_by(10).map(Instant::from_millis) {
        if adapter.observe(now, job).is_some() {
            asked.push(now.as_micros() / 1_000_000);
            // Nothing else is asked for before the answer.
            assert_eq!(adapter.observe(now, job), None);
            adapter.refused(now);
        }
    }
    // After 1, 2, 4, 8, 16 and 16 s.
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 47, 63]);
    assert_eq!(adapter.held(), held);
}

#[test]
fn a_partial_grant_is_taken_and_kept() {
    let settings = settings(10_000, 5_000);
    let mut device = Device::new(Policy::RunTime, settings, Service::from_micros(1_000));
    device.admitted = Service::from_micros(1_800);
    device.run_for(Span::from_secs(120), || Service::from_micros(4_000));
    assert!(device.adapter.held() > Service::from_micros(1_000));
    assert!(device.adapter.held() <= Service::from_micros(1_800));
    assert!(device.changes.len() <= 12, "{:?}", device.changes);
}

#[test]
fn late_jobs_add_to_what_run_times_ask_for() {
    // Something takes time out of the slots: run times that would fit are late.
    let settings = settings(12_500, 8_000);
    let mut adapter = Adapter::new(Policy::Both, settings, Service::from_micros(2_000));
    let late = Observation {
        run: Service::from_micros(1_600),
        in_time: false,
    };
    let wanted = adapter.observe(Instant::from_secs(1), late);
    assert!(wanted.is_some_and(|wanted| wanted.service() > Service::from_micros(2_000)));
    let mut run_time_only = Adapter::new(Policy::RunTime, settings, Service::from_micros(2_000));
    assert_eq!(run_time_only.observe(Instant::from_secs(1), late), None);
}

/// A holder of 2 ms in 8 by timeliness alone, whose first try to do with less has just been asked for, at this time.
fn first_try() -> (Adapter, Instant) {
    let held = Service::from_micros(2_000);
    let mut adapter = Adapter::new(Policy::InTime, settings(12_500, 8_000), held);
    let asked = in_time(&mut adapter, Instant::ZERO, 21_000).expect("a try after 20 s in time");
    assert_eq!(asked.1.service(), Service::from_micros(1_750));
    (adapter, asked.0)
}

fn observed(adapter: &mut Adapter, now: Instant, in_time: bool) -> Option<Reservation> {
    let run = Service::from_micros(5);
    adapter.observe(now, Observation { run, in_time })
}

/// Jobs in time every 10 ms after `from`, until something is asked for: what, and when.
fn in_time(adapter: &mut Adapter, from: Instant, for_ms: u64) -> Option<(Instant, Reservation)> {
    let times = (10..=for_ms).step_by(10);
    let mut times = times.map(|ms| from + Span::from_millis(ms));
    times.find_map(|now| Some((now, observed(adapter, now, true)?)))
}

#[test]
fn a_late_job_at_the_least_service_raises_it() {
    let grain = Service::from_micros(10);
    let mut adapter = Adapter::new(Policy::InTime, settings(12_500, 8_000), grain);
    // Nothing less could be tried after 20 s, so nothing is undone by the late job.
    assert_eq!(in_time(&mut adapter, Instant::ZERO, 21_000), None);
    let wanted = observed(&mut adapter, Instant::from_secs(22), false);
    assert_eq!(wanted.map(Reservation::service), Some(grain * 2));
}

#[test]
fn a_job_that_is_late_while_a_try_is_asked_for_does_not_undo_it() {
    let (mut adapter, now) = first_try();
    assert_eq!(observed(&mut adapter, now, false), None);
    adapter.granted(now);
    let after_draining = now + Span::from_secs(1);
    let wanted = observed(&mut adapter, after_draining, false);
    let before = Service::from_micros(2_000);
    assert_eq!(wanted.map(Reservation::service), Some(before));
}

#[test]
fn what_was_held_before_a_failed_try_is_asked_for_until_it_is_held() {
    let (mut adapter, now) = first_try();
    adapter.granted(now);
    let before = Service::from_micros(2_000);
    let mut now = now + Span::from_secs(1);
    let wanted = observed(&mut adapter, now, false);
    assert_eq!(wanted.map(Reservation::service), Some(before));
    adapter.refused(now);
    // A late job before it may ask again changes nothing of what it asks for then.
    assert_eq!(
        observed(&mut adapter, now + Span::from_millis(10), false),
        None
    );
    let mut asked = 0;
    while let Some((at, wanted)) = in_time(&mut adapter, now, 17_000) {
        assert!(adapter.held() < wanted.service() && wanted.service() <= before);
        now = at;
        adapter.granted(now);
        asked += 1;
        if adapter.held() + Service::from_micros(20) > before {
            break;
        }
    }
    assert!(asked > 0, "asked again after the refusal");
    assert!(adapter.held() + Service::from_micros(20) > before);
}
