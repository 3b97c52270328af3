//! The witness: a thread above all others that wakes at fixed instants, and so sees when the machine itself stands still; and works a little each time, and so sees when it crawls.
//!
//! A virtual machine may stop for 20 ms without counting steal time. Whatever overlaps a late wake-up of the witness before which it was
//! not even runnable was disturbed from outside, and is judged apart. If it was runnable and waited, somebody held the processor: that is
//! no excuse, and is looked into at once. Where slots are dispatched, the dispatcher records too what was late at its own instants.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::base::ring::Producer;
use laxity_model::enforce::{PieceTimes, WITNESS_ACTIVITY, Waits, Witness, ranks};
use laxity_model::{ActivityId, Event, EventKind, HostError, Instant, ProcessorId, Span};

use crate::os::clock;
use crate::os::fork::PerProcess;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::schedstat::Account;
use crate::os::usage;
use crate::run::own::{Kept, Ought, Own, Role};
use crate::run::{self, Run, Thread};

/// The calling thread's watch over its own wake-ups. It allocates nothing: other threads may be parked inside the allocator.
pub(crate) struct Vigil {
    rule: Witness,
    /// As what it records.
    activity: ActivityId,
    account: Option<Account>,
    /// When the thread went to sleep for an instant that was still to come, the last time.
    asleep: Option<Counted>,
}

/// What the kernel had counted of a thread.
#[derive(Clone, Copy)]
struct Counted {
    /// How long it had waited for its processor.
    runnable: Option<Span>,
    /// How often it had given it up by itself, or was stopped.
    given_up: u64,
}

impl Vigil {
    pub(crate) fn new(rule: Witness, activity: ActivityId) -> Self {
        Self {
            rule,
            activity,
            account: Account::of_current(),
            asleep: None,
        }
    }

    fn counted(&self) -> Counted {
        let account = self.account.as_ref().and_then(|one| one.read().ok());
        Counted {
            runnable: account.map(|account| account.waited),
            given_up: usage::waits(),
        }
    }

    /// The thread is about to wait for an instant, once. Two system calls.
    ///
    /// Where the instant has passed it will not sleep, and what made it late was before: what is counted goes on from its last sleep then.
    pub(crate) fn begin(&mut self, due: Instant) {
        let counted = self.counted();
        // Asked last: whoever stops the thread between the two is counted, and stops it before it sleeps.
        if clock::now() < due || self.asleep.is_none() {
            self.asleep = Some(counted);
        }
    }

    /// How it has waited since it went to sleep, which gave its processor up once.
    fn waits(&self) -> Waits {
        let (now, before) = (self.counted(), self.asleep);
        let runnable = now.runnable.zip(before.and_then(|before| before.runnable));
        Waits {
            runnable: runnable.map(|(now, before)| now.saturating_sub(before)),
            stopped: before.is_some_and(|before| now.given_up > before.given_up + 1),
        }
    }

    /// It woke at `now`, and should have at `due`: records that if it was late, and raises the alarm if somebody may have held it up.
    pub(crate) fn end(&self, (due, now): (Instant, Instant), ring: &mut Producer, run: &Run) {
        // Who is in time has not waited too long.
        if now.saturating_since(due) <= self.rule.tolerance {
            return;
        }
        let Some(late) = self.rule.late(due, now, self.waits()) else {
            return;
        };
        let kind = late.why.recorded();
        ring.push(Event {
            at: now,
            kind,
            processor: self.rule.processor,
            activity: self.activity,
            args: [late.stretch.from, late.stretch.to].map(Instant::as_nanos),
        });
        if kind == EventKind::Held {
            run.raise_alarm();
        } else {
            run.stood_still(late.stretch.length());
        }
    }
}

/// Where a witness has its time from: the kernel, or a test that says how long each piece takes.
trait Time {
    fn now(&mut self) -> Instant;

    /// Sleeps until the instant; `false` if the run ended first.
    fn sleep_until(&mut self, due: Instant) -> bool;
}

impl Time for &Run {
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn sleep_until(&mut self, due: Instant) -> bool {
        Run::sleep_until(self, due)
    }
}

/// What a processor does in a small fixed piece of work, each time that its witness wakes.
struct Yardstick {
    usual: PieceTimes,
    processor: ProcessorId,
    /// Until then it was seen at work, and whether it crawled then.
    before: (Instant, bool),
}

impl Yardstick {
    /// It begins at `now`; `usual`: of its pieces in runs before.
    fn new(processor: ProcessorId, usual: PieceTimes, now: Instant) -> Self {
        Self {
            usual,
            processor,
            before: (now, false),
        }
    }

    /// Works, for a little more than a microsecond.
    fn work(&mut self, time: &mut impl Time, ring: &mut Producer) {
        let took = piece(|| time.now());
        self.take(took, time.now(), ring);
    }

    /// Records the time since the last piece if the processor crawls, or did then: of what lies between two pieces nobody knows how much it was.
    fn take(&mut self, took: Span, at: Instant, ring: &mut Producer) {
        let crawls = self.usual.crawls(took);
        let (from, crawled) = self.before;
        self.before = (at, crawls);
        if crawls || crawled {
            ring.push(Event {
                at,
                kind: EventKind::Crawled,
                processor: self.processor,
                activity: WITNESS_ACTIVITY,
                args: [from, at].map(Instant::as_nanos),
            });
        }
    }
}

/// What pieces took in this process until now, by the kernel's number of their processor: a run that begins while that crawls knows so all the same.
static USUAL: PerProcess<Mutex<BTreeMap<usize, PieceTimes>>> =
    PerProcess::new(|_| Mutex::default());

fn usual(cpu: usize) -> PieceTimes {
    let mut all = USUAL.get().lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(cpu).or_default().clone()
}

/// For the next run. Of one that was [asked for](usual) nothing is allocated.
fn keep(cpu: usize, times: PieceTimes) {
    let mut all = USUAL.get().lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(cpu, times);
}

/// What a piece takes: the least of three, as an interrupt may fall into one. Each step waits for the one before, so that neither memory nor a sibling that shares the core counts.
fn piece(mut now: impl FnMut() -> Instant) -> Span {
    const STEPS: u64 = 256;
    let mut once = || {
        let began = now();
        let step = |state: u64, _| state.wrapping_mul(6_364_136_223_846_793_005) ^ state >> 32;
        black_box((0..STEPS).fold(black_box(began.as_nanos()), step));
        now().saturating_since(began)
    };
    once().min(once()).min(once())
}

/// Starts a witness. It hands back how often it woke; when it was late is among its events.
pub(crate) fn spawn(
    config: Witness,
    cpu: usize,
    mut ring: Producer,
    run: Arc<Run>,
) -> Result<Thread<u64>, HostError> {
    run::spawn(format!("witness/{cpu}"), run, move |run| {
        let wakeups = watch(config, cpu, &mut ring, run);
        wakeups.map_err(|error| HostError::Failed(format!("the witness: {error}")))
    })
}

fn watch(config: Witness, cpu: usize, ring: &mut Producer, run: &Run) -> Result<u64, SchedError> {
    clock::use_exact_timers();
    prefault_stack();
    ring.prefault();
    sched::pin(cpu)?;
    settle(Role::Witness, cpu, ranks::WITNESS, run)?;
    // Asked for before the start, as it may allocate.
    let (vigil, usual) = (Vigil::new(config, WITNESS_ACTIVITY), usual(cpu));
    let start = run.wait_for_start();
    Ok(start.map_or(0, |start| {
        look((cpu, usual), (vigil, start), ring, (run, run))
    }))
}

/// Looks from the start to the end of a run, and keeps what pieces took there; how often it woke.
fn look(
    (cpu, usual): (usize, PieceTimes),
    (mut vigil, start): (Vigil, Instant),
    ring: &mut Producer,
    (run, mut time): (&Run, impl Time),
) -> u64 {
    let mut yardstick = Yardstick::new(vigil.rule.processor, usual, time.now());
    let (mut due, mut wakeups) = (start, 0);
    vigil.begin(due);
    loop {
        let goes_on = time.sleep_until(due);
        let now = time.now();
        // What holds the processor over the run's end is seen once all is over.
        if now >= due {
            wakeups += 1;
            vigil.end((due, now), ring, run);
            yardstick.work(&mut time, ring);
        }
        if !goes_on {
            keep(cpu, yardstick.usual);
            return wakeups;
        }
        due = vigil.rule.next(due, now);
        vigil.begin(due);
    }
}

/// Gives the calling thread its rank for good, and has it looked after that it keeps that: by others, and by itself as often as it likes.
pub(crate) fn settle(role: Role, cpu: usize, rank: u8, run: &Run) -> Result<Arc<Kept>, SchedError> {
    let tid = Tid::current();
    let policy = Policy::Fifo(rank);
    sched::set_policy(tid, policy)?;
    let what = match role {
        Role::Dispatcher => "dispatcher",
        Role::Lookout => "lookout",
        _ => "witness",
    };
    let kept = Arc::new(Kept::new(tid, policy));
    run.register(Own {
        tid,
        who: format!("the {what} of processor {cpu}"),
        role,
        cpu,
        may_wander: false,
        ought: Ought::Kept(Arc::clone(&kept)),
    });
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use laxity_model::Disturbance;
    use laxity_model::base::ring;

    use super::*;
    use crate::doctor::rights;
    use crate::os::sched::affinity;
    use crate::run::port::Ports;

    /// What is recorded of a wake-up that comes so late, after the thread has done this since it began to wait.
    fn recorded(late: Span, meanwhile: impl FnOnce(&mut Vigil)) -> EventKind {
        let run = Run::new(0, 0, Ports::new(&[], Vec::new()).expect("none"));
        let (mut producer, mut consumer) = ring::channel(4);
        let mut vigil = Vigil::new(Witness::new(ProcessorId(0)), WITNESS_ACTIVITY);
        let hour = Span::from_secs(3_600);
        vigil.begin(clock::now() + hour);
        meanwhile(&mut vigil);
        let due = clock::now();
        vigil.end((due, due + late), &mut producer, &run);
        let mut events = Vec::new();
        consumer.drain(&mut events);
        assert_eq!(events.len(), 1, "{events:?}");
        let is_held = events[0].kind == EventKind::Held;
        assert_eq!(run.alarm(), u32::from(is_held), "somebody is looked for");
        events[0].kind
    }

    /// Has the thread wait for its processor for so long or more.
    fn wait_for_processor(vigil: &Vigil, long: Span) {
        while vigil.waits().runnable.expect("the kernel tells") < long {
            std::hint::spin_loop();
        }
    }

    /// Gives the processor up once, as who sleeps and who is stopped does.
    fn give_up() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }

    /// Beside a thread that shares its processor it has waited as the kernel counts it; before it waited for nobody there was nobody.
    #[test]
    fn who_waited_was_held_up_and_who_did_not_met_a_halt() {
        if Account::of_current().is_none() {
            return rights::lacks("the kernel does not tell how long threads wait");
        }
        let hour = Span::from_secs(3_600);
        assert_eq!(recorded(hour, |_| ()), EventKind::Disturbed);
        let cpus = affinity(Tid::current()).expect("its own");
        let cpu = cpus.iter().next().expect("it runs somewhere");
        let over = AtomicBool::new(false);
        let late = Span::from_millis(20);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sched::pin(cpu).expect("its own");
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let beside = scope.spawn(move || {
                sched::pin(cpu).expect("its own");
                recorded(late, |vigil| wait_for_processor(vigil, late))
            });
            let kind = beside.join();
            over.store(true, Ordering::Relaxed);
            assert_eq!(kind.expect("it ends"), EventKind::Held);
        });
    }

    #[test]
    fn from_the_last_good_piece_to_the_next_a_processor_crawled() {
        let (mut producer, mut consumer) = ring::channel(4);
        let mut at = Instant::from_millis(1);
        let mut yardstick = Yardstick::new(ProcessorId(3), PieceTimes::default(), at);
        let mut works = |nanos| {
            at += Span::from_millis(1);
            yardstick.take(Span::from_nanos(nanos), at, &mut producer);
        };
        (0..100).for_each(|_| works(400));
        [4_800, 1_600, 400, 400].into_iter().for_each(works);
        let mut events = Vec::new();
        consumer.drain(&mut events);
        let all_crawled = |event: &Event| event.kind == EventKind::Crawled;
        assert!(events.iter().all(all_crawled), "{events:?}");
        let crawled = Disturbance::joined(events.iter().map(Disturbance::of));
        let crawl = Disturbance {
            processor: ProcessorId(3),
            from: Instant::from_millis(101),
            to: Instant::from_millis(104),
        };
        assert_eq!(crawled, [crawl]);
    }

    #[test]
    fn a_piece_takes_what_it_took_when_nothing_fell_into_it() {
        let of = |three: [u64; 3]| {
            let mut readings = three.into_iter().flat_map(|took| [0, took]);
            let mut now = || Instant::from_nanos(readings.next().expect("six readings"));
            let took = piece(&mut now);
            assert_eq!(readings.next(), None);
            took
        };
        let interrupted = [[400, 9_000, 500], [9_000, 400, 500], [9_000, 500, 400]];
        assert_eq!(interrupted.map(of), [Span::from_nanos(400); 3]);
    }

    /// When the runs begin of which a [`Script`] tells.
    const START: Instant = Instant::from_millis(1);

    /// Each reading of the clock takes as long, and so does each piece; nobody wakes late.
    struct Script {
        now: Instant,
        takes: Span,
        end: Instant,
    }

    impl Time for Script {
        fn now(&mut self) -> Instant {
            self.now += self.takes;
            self.now
        }

        fn sleep_until(&mut self, due: Instant) -> bool {
            self.now = self.now.max(due);
            due < self.end
        }
    }

    /// What a witness sees crawl in a run of 200 ms, where each piece takes so long.
    fn seen_to_crawl(cpu: usize, nanos: u64) -> Vec<Disturbance> {
        let run = Run::new(0, 0, Ports::new(&[], Vec::new()).expect("none"));
        let (mut producer, mut consumer) = ring::channel(256);
        let vigil = Vigil::new(Witness::new(ProcessorId(3)), WITNESS_ACTIVITY);
        let script = Script {
            now: START,
            takes: Span::from_nanos(nanos),
            end: START + Span::from_millis(200),
        };
        let begins = (vigil, START);
        let wakeups = look((cpu, usual(cpu)), begins, &mut producer, (&run, script));
        assert_eq!(wakeups, 201);
        let mut events = Vec::new();
        consumer.drain(&mut events);
        let all_crawled = |event: &Event| event.kind == EventKind::Crawled;
        assert!(events.iter().all(all_crawled), "{events:?}");
        Disturbance::joined(events.iter().map(Disturbance::of))
    }

    /// Where half of all pieces are slow that is its speed; but what it was before is known.
    #[test]
    fn a_run_that_begins_while_its_processor_crawls_knows_from_the_one_before() {
        const NONE: usize = usize::MAX;
        assert_eq!(seen_to_crawl(NONE, 4_800), [], "nothing is known");
        assert_eq!(seen_to_crawl(NONE, 400), []);
        assert_eq!(seen_to_crawl(NONE, 400), []);
        let takes = Span::from_nanos(4_800);
        let all = Disturbance {
            processor: ProcessorId(3),
            from: START + takes,
            // At its last instant it is read on waking, six times for the piece, and once more.
            to: START + Span::from_millis(200) + takes * 8,
        };
        assert_eq!(seen_to_crawl(NONE, 4_800), [all]);
    }

    /// Late by far more than the thread can have waited for its processor meanwhile.
    #[test]
    fn who_was_stopped_asleep_or_at_work_met_no_halt() {
        let hour = Span::from_secs(3_600);
        let of = |meanwhile: fn(&mut Vigil)| recorded(hour, meanwhile);
        assert_eq!(of(|_| give_up()), EventKind::Disturbed, "it slept");
        let stopped_asleep = of(|_| {
            give_up();
            give_up();
        });
        assert_eq!(stopped_asleep, EventKind::Stopped);
        // It has slept and is at work when it is stopped, past the next instant: for that it does not sleep.
        let stopped_at_work = of(|vigil| {
            give_up();
            give_up();
            vigil.begin(clock::now());
        });
        assert_eq!(stopped_at_work, EventKind::Stopped);
        // Before the instant has come all is well.
        let stopped_in_time = of(|vigil| {
            give_up();
            give_up();
            vigil.begin(clock::now() + Span::from_secs(3_600));
            give_up();
        });
        assert_eq!(stopped_in_time, EventKind::Disturbed);
    }
}
