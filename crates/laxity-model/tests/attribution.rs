//! Whose fault: verdicts on the traces of a small machine that is simple enough to be obviously right, and whose calls can be cut short to
//! see what really would have happened.

use laxity_model::verify::attribution::{
    Allowance, Declared, Fault, Findings, Holder, Jobs, Question, Rule, Rules, Victim, attribute,
};
use laxity_model::{
    ActivityId, Event, EventKind, Instant, Mark, Priority, ProcessorId, Reservation, Service, Span,
};
use proptest::prelude::*;

/// What else is to run: a handler, a deferred call, a thread above the victim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Victim,
    Above,
    Deferred,
    Handler,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    class: Class,
    who: u16,
    at: u64,
    work: u64,
}

const VICTIM: u16 = 0;
const BEGIN: Mark = Mark(0);
const END: Mark = Mark(1);

/// A processor with four classes, each first come first served, each before the one below; microseconds.
struct Machine {
    calls: Vec<Call>,
    begun: Vec<bool>,
    /// Released while its thread was at work on another job: it wakes nobody before that is done.
    woken: Vec<bool>,
    left: Vec<u64>,
    /// The thread that was dispatched and has neither waited nor been preempted.
    loaded: Option<usize>,
    now: u64,
    events: Vec<Event>,
}

impl Machine {
    fn run(calls: &[Call]) -> Vec<Event> {
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| call.at);
        let mut machine = Self {
            begun: vec![false; calls.len()],
            woken: vec![false; calls.len()],
            left: calls.iter().map(|call| call.work).collect(),
            loaded: None,
            now: 0,
            events: Vec::new(),
            calls,
        };
        while let Some(next) = machine.next() {
            machine.go(next);
        }
        let asleep: Vec<usize> = (0..machine.calls.len())
            .filter(|call| machine.calls[*call].class <= Class::Above && !machine.woken[*call])
            .collect();
        for call in asleep {
            machine.now = machine.calls[call].at;
            machine.event(EventKind::Wake, call, machine.now);
        }
        // A job that finds its thread asleep wakes it before anything else happens then.
        machine
            .events
            .sort_by_key(|event| (event.at, event.kind != EventKind::Wake));
        machine.events
    }

    fn next(&self) -> Option<usize> {
        let open = (0..self.calls.len()).filter(|call| self.left[*call] > 0);
        let ready = open.clone().filter(|call| self.calls[*call].at <= self.now);
        // A handler or deferred call that has begun goes on before its equals.
        let best = ready.max_by_key(|call| {
            let class = self.calls[*call].class;
            (class, self.begun[*call], std::cmp::Reverse(*call))
        });
        best.or_else(|| open.min_by_key(|call| (self.calls[*call].at, *call)))
    }

    fn event(&mut self, kind: EventKind, call: usize, first: u64) {
        self.events.push(Event {
            at: Instant::from_micros(self.now),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(self.calls[call].who),
            args: [first * 1_000, 0],
        });
    }

    /// The next job of the same thread, if it is released already.
    fn more(&self, call: usize) -> Option<usize> {
        let Call { who, .. } = self.calls[call];
        (0..self.calls.len()).find(|other| {
            self.calls[*other].who == who
                && self.left[*other] > 0
                && self.calls[*other].at <= self.now
        })
    }

    fn begin(&mut self, call: usize) {
        let Call { class, at, .. } = self.calls[call];
        match class {
            Class::Handler => self.event(EventKind::InterruptEnter, call, at),
            Class::Deferred => self.event(EventKind::DeferredEnter, call, at),
            Class::Above | Class::Victim => {}
        }
        if class == Class::Victim {
            self.event(EventKind::Mark(BEGIN), call, at);
        }
    }

    fn load(&mut self, call: usize) {
        let same = |other: usize| self.calls[other].who == self.calls[call].who;
        if self.loaded.is_some_and(same) {
            self.loaded = Some(call);
            return;
        }
        if let Some(former) = self.loaded.replace(call) {
            self.event(EventKind::Preempt, former, 0);
        }
        self.event(EventKind::Dispatch, call, 0);
    }

    fn go(&mut self, call: usize) {
        let Call {
            class, at, work, ..
        } = self.calls[call];
        if at > self.now {
            // Nothing was ready; who comes first then is another question.
            self.now = at;
            return;
        }
        if class <= Class::Above {
            self.load(call);
        }
        if !std::mem::replace(&mut self.begun[call], true) {
            self.begin(call);
        }
        let higher = self.calls.iter().filter(|other| other.class > class);
        let interrupted = higher
            .map(|other| other.at)
            .filter(|other| *other > self.now)
            .min();
        let until = interrupted
            .unwrap_or(u64::MAX)
            .min(self.now + self.left[call]);
        self.left[call] -= until - self.now;
        self.now = until;
        if self.left[call] > 0 {
            return;
        }
        match class {
            Class::Handler => self.event(EventKind::InterruptExit, call, work),
            Class::Deferred => self.event(EventKind::DeferredExit, call, work),
            Class::Above | Class::Victim => {
                if class == Class::Victim {
                    self.event(EventKind::Mark(END), call, 0);
                }
                if let Some(next) = self.more(call) {
                    self.woken[next] = true;
                    self.event(EventKind::Wake, next, self.calls[next].at);
                } else {
                    self.event(EventKind::Block, call, 0);
                    self.loaded = None;
                }
            }
        }
    }
}

const DEADLINE_US: u64 = 10_000;
const WORK_US: u64 = 2_000;

fn victim() -> Victim {
    Victim {
        activity: ActivityId(VICTIM),
        device: None,
        jobs: Jobs::Marks {
            begin: BEGIN,
            release: 0,
            end: END,
            service: None,
        },
        deadline: Span::from_micros(DEADLINE_US),
        work: Service::from_micros(WORK_US),
    }
}

fn findings(calls: &[Call], declared: &[Declared]) -> Findings {
    let question = Question {
        victim: victim(),
        declared,
        rules: Rules {
            slack: Span::ZERO,
            ..Rules::PC99
        },
    };
    attribute(&Machine::run(calls), &question)
}

fn call(class: Class, who: u16, at: u64, work: u64) -> Call {
    Call {
        class,
        who,
        at,
        work,
    }
}

/// A job every 10 ms, 2 ms each.
fn jobs(count: u64) -> Vec<Call> {
    (1..=count)
        .map(|n| call(Class::Victim, VICTIM, n * DEADLINE_US, WORK_US))
        .collect()
}

fn names(findings: &Findings) -> Vec<Holder> {
    findings.named.iter().map(|named| named.who).collect()
}

fn handler(who: u16) -> Holder {
    Holder::Handler(ActivityId(who))
}

fn deferred(who: u16) -> Holder {
    Holder::Deferred(ActivityId(who))
}

fn thread(who: u16) -> Holder {
    Holder::Thread(ActivityId(who))
}

#[test]
fn nobody_is_blamed_where_nothing_is_late() {
    let mut calls = jobs(5);
    calls.push(call(Class::Handler, 1, 21_000, 7_000));
    let findings = findings(&calls, &[]);
    assert_eq!((findings.jobs, findings.late.len()), (5, 0));
    assert_eq!(findings.named, []);
    // The rule was broken all the same, and is told.
    let breach = findings.breaches[0];
    assert_eq!(
        (breach.who, breach.rule, breach.times),
        (handler(1), Rule::LongHandler, 1)
    );
    assert_eq!(breach.longest, Span::from_millis(7));
}

#[test]
fn a_handler_that_keeps_interrupts_off_is_named_for_every_job_it_delays() {
    let mut calls = jobs(10);
    calls.push(call(Class::Handler, 1, 20_500, 40_000));
    // Two that keep the rules, among them one that runs just then.
    calls.extend((0..100).map(|n| call(Class::Handler, 2, n * 1_000, 50)));
    calls.push(call(Class::Deferred, 3, 62_000, 500));
    let findings = findings(&calls, &[]);
    assert_eq!(names(&findings), [handler(1)]);
    assert!(findings.late.len() >= 4, "{:?}", findings.late.len());
    let first = &findings.late[0];
    assert_eq!(first.release, Instant::from_millis(20));
    let Fault::Culprits(culprits) = &first.fault else {
        panic!("{:?}", first.fault);
    };
    assert!(culprits[0].suffices && culprits[0].needed);
    assert_eq!(culprits[0].excess, Span::from_micros(39_900));
    // Lateness is handed on: the job of 60 ms was released when the handler had almost gone.
    let last = findings.late.last().expect("some are late");
    assert_eq!(last.chain_from, Instant::from_millis(20));
}

#[test]
fn two_are_both_named_if_both_are_needed_and_if_each_suffices() {
    // 2 ms of the job and 5 ms of one leave it in time; 9 ms of one do not.
    for (each, suffices) in [(5_000, true), (9_000, false), (20_000, false)] {
        let mut calls = jobs(1);
        calls.push(call(Class::Deferred, 1, 10_100, each));
        calls.push(call(Class::Deferred, 2, 10_200, each));
        let findings = findings(&calls, &[]);
        let mut named = names(&findings);
        named.sort();
        assert_eq!(named, [deferred(1), deferred(2)], "{each}");
        let Fault::Culprits(culprits) = &findings.late[0].fault else {
            panic!("{:?}", findings.late[0]);
        };
        for culprit in culprits {
            assert_eq!(
                (culprit.suffices, culprit.needed),
                (suffices, !suffices),
                "{each}"
            );
        }
    }
}

#[test]
fn a_thread_above_is_a_culprit_if_it_declared_nothing_or_less() {
    let mut calls = jobs(4);
    calls.push(call(Class::Above, 1, 20_500, 15_000));
    let everything_declared = |per_job| {
        let allowance = Allowance {
            per_job: Service::from_micros(per_job),
            apart: None,
        };
        [
            Declared::default(),
            Declared {
                allowance: Some(allowance),
                priority: None,
            },
        ]
    };
    let undeclared = findings(&calls, &[]);
    assert_eq!(names(&undeclared), [thread(1)]);
    assert_eq!(undeclared.named[0].rule, Rule::Undeclared);
    let overrun = findings(&calls, &everything_declared(1_000));
    assert_eq!(overrun.named[0].rule, Rule::Budget);
    // What it declared was granted: too much was.
    let kept = findings(&calls, &everything_declared(15_000));
    assert_eq!(kept.named, []);
    assert!(kept.late.iter().all(|job| job.fault == Fault::Overload));
}

#[test]
fn a_thread_that_comes_more_often_than_declared_is_a_culprit() {
    let mut calls = jobs(4);
    calls.extend((0..12).map(|n| call(Class::Above, 1, 20_000 + n * 800, 750)));
    let declared = [
        Declared::default(),
        Declared::thread(
            Priority::HIGHEST,
            Service::from_micros(750),
            Span::from_millis(2),
        ),
    ];
    let findings = findings(&calls, &declared);
    assert_eq!(names(&findings), [thread(1)]);
    assert_eq!(findings.named[0].rule, Rule::Rate);
}

#[test]
fn what_delayed_a_thread_above_before_the_victim_s_release_is_a_culprit_too() {
    // 13 is done before the victim is released; but it made 11, which had been ready as long, end 1 µs too late for the victim.
    let mut calls = vec![
        call(Class::Above, 13, 9_000, 215),
        call(Class::Above, 11, 9_000, 8_786),
    ];
    calls.extend(jobs(6));
    let both = findings(&calls, &[]);
    assert_eq!(both.late.len(), 1);
    assert_eq!(names(&both), [thread(11), thread(13)]);
    assert!(
        both.named
            .iter()
            .all(|named| named.rule == Rule::Undeclared)
    );
    let Fault::Culprits(culprits) = &both.late[0].fault else {
        panic!("{:?}", both.late[0].fault);
    };
    assert_eq!(culprits[1].excess, Span::from_micros(215));
    assert!(culprits.iter().all(|culprit| culprit.suffices));

    // A thread that was done when 11 woke delayed nobody.
    calls[0].at = 8_785;
    calls[1].work = 9_001;
    assert_eq!(names(&findings(&calls, &[])), [thread(11)]);
}

#[test]
fn equal_rank_is_nobody_s_fault() {
    let mut calls = jobs(2);
    calls.push(call(Class::Above, 1, 10_000, 30_000));
    let rank = Declared::rank(Priority::NORMAL);
    let findings = findings(&calls, &[rank, rank]);
    assert_eq!(findings.named, []);
    assert_eq!(findings.late[0].fault, Fault::Rank);
}

#[test]
fn the_victim_is_its_own_culprit_if_it_ran_longer_than_declared() {
    let mut calls = jobs(3);
    calls[1].work = 12_000;
    calls.extend((0..40).map(|n| call(Class::Handler, 1, n * 1_000, 50)));
    let findings = findings(&calls, &[]);
    assert_eq!(names(&findings), [Holder::Victim]);
    assert_eq!(findings.named[0].rule, Rule::Budget);
}

#[test]
fn too_much_for_the_processor_is_nobody_s_fault() {
    let mut calls = jobs(3);
    calls.extend((0..300).map(|n| call(Class::Handler, 1, 10_000 + n * 110, 100)));
    let findings = findings(&calls, &[]);
    assert!(!findings.late.is_empty());
    assert_eq!(findings.named, []);
    assert!(findings.late.iter().all(|job| job.fault == Fault::Overload));
    let held = findings.late[0].held[0];
    assert_eq!((held.who, held.excess), (handler(1), Span::ZERO));
}

#[test]
fn where_the_machine_stood_still_nobody_else_is_to_blame() {
    let mut calls = jobs(3);
    // Seen from inside the victim took 15 ms, of which the machine stood still for 13.
    calls[1].work = 15_000;
    let mut events = Machine::run(&calls);
    events.push(Event {
        at: Instant::from_millis(34),
        kind: EventKind::Disturbed,
        processor: ProcessorId(0),
        activity: ActivityId(u16::MAX),
        args: [21_000_000, 34_000_000],
    });
    events.sort_by_key(|event| event.at);
    let question = Question {
        victim: victim(),
        declared: &[],
        rules: Rules::PC99,
    };
    let findings = attribute(&events, &question);
    assert_eq!(names(&findings), [Holder::Machine]);
    assert_eq!(findings.named[0].rule, Rule::Machine);
}

/// A victim with a reservation and time slots: `(begin, end)` of each, in which it runs if it has work; microseconds.
fn reserved(slots: &[(u64, u64)], release: u64, work: u64) -> Vec<Event> {
    let event = |at: u64, kind, args: [u64; 2]| Event {
        at: Instant::from_micros(at),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(VICTIM),
        args,
    };
    let mut events = vec![event(
        0,
        EventKind::ReservationBegin,
        [1_000_000, 8_000_000],
    )];
    let mut left = work;
    let mut begun = false;
    events.push(event(0, EventKind::Block, [0; 2]));
    events.push(event(release, EventKind::Wake, [release * 1_000, 0]));
    for (from, to) in slots {
        events.push(event(*from, EventKind::SlotBegin, [0; 2]));
        if *from >= release && left > 0 {
            events.push(event(*from, EventKind::Dispatch, [0; 2]));
            if !begun {
                events.push(event(*from, EventKind::Mark(BEGIN), [release * 1_000, 0]));
                begun = true;
            }
            let ran = left.min(to - from);
            left -= ran;
            if left == 0 {
                events.push(event(from + ran, EventKind::Mark(END), [0; 2]));
                events.push(event(from + ran, EventKind::Block, [0; 2]));
            } else {
                events.push(event(*to, EventKind::Preempt, [0; 2]));
            }
        }
        events.push(event(*to, EventKind::SlotEnd, [0; 2]));
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Milliseconds in every eight.
fn in_eight(service_ms: u64) -> Reservation {
    let service = Service::from_millis(service_ms);
    Reservation::new(service, Span::from_millis(8)).expect("less than eight")
}

#[test]
fn a_change_is_held_against_a_job_only_from_when_it_holds() {
    let slots: Vec<_> = (1..6).map(|n| (n * 8_000, n * 8_000 + 1_000)).collect();
    for (holds_from_ms, told) in [(9, 3), (30, 1)] {
        let mut events = reserved(&slots, 9_500, 2_000);
        let change = |kind, args| Event {
            at: Instant::from_millis(9),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(VICTIM),
            args,
        };
        let asked = in_eight(3);
        let asked = [asked.service().as_nanos(), asked.period().as_nanos()];
        events.push(change(EventKind::ReservationChange, asked));
        let from = [holds_from_ms * 1_000_000, 0];
        events.push(change(EventKind::ReservationFrom, from));
        events.sort_by_key(|event| event.at);
        let question = Question {
            victim: victim(),
            declared: &[],
            rules: Rules::PC99,
        };
        let findings = attribute(&events, &question);
        let Fault::Reservation { reserved, .. } = findings.late[0].fault else {
            panic!("{:?}", findings.late[0].fault);
        };
        assert_eq!(reserved, in_eight(told), "from {holds_from_ms} ms on");
    }
}

#[test]
fn too_small_a_reservation_is_not_the_fault_of_who_runs_beside_it() {
    let slots: Vec<_> = (1..6).map(|n| (n * 8_000, n * 8_000 + 1_000)).collect();
    let mut events = reserved(&slots, 9_500, 2_000);
    // A spinner has what is not reserved, as it may.
    for (from, to) in slots.windows(2).map(|pair| (pair[0].1, pair[1].0)) {
        for (at, kind) in [(from, EventKind::Dispatch), (to, EventKind::Preempt)] {
            events.push(Event {
                at: Instant::from_micros(at),
                kind,
                processor: ProcessorId(0),
                activity: ActivityId(1),
                args: [0; 2],
            });
        }
    }
    events.sort_by_key(|event| event.at);
    let question = Question {
        victim: victim(),
        declared: &[],
        rules: Rules::PC99,
    };
    let findings = attribute(&events, &question);
    assert_eq!(findings.named, []);
    let Fault::Reservation {
        reserved,
        needed,
        in_slots,
    } = findings.late[0].fault
    else {
        panic!("{:?}", findings.late[0]);
    };
    assert_eq!(reserved.service(), Service::from_millis(1));
    assert_eq!(needed, Service::from_millis(2));
    assert_eq!(in_slots, Service::from_millis(1));
}

#[test]
fn a_job_that_was_never_served_is_late_too() {
    let device = |at: u64, kind, first: u64| Event {
        at: Instant::from_micros(at),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(1),
        args: [first * 1_000, 0],
    };
    let mut calls = vec![call(Class::Victim, VICTIM, 10_000, WORK_US)];
    calls.push(call(Class::Above, 2, 19_000, 50_000));
    let mut events = Machine::run(&calls);
    events.push(device(20_000, EventKind::InterruptEnter, 20_000));
    events.push(device(20_005, EventKind::InterruptExit, 5));
    events.push(Event {
        activity: ActivityId(VICTIM),
        ..device(20_005, EventKind::Wake, 20_000)
    });
    events.sort_by_key(|event| event.at);
    let mut victim = victim();
    victim.device = Some(ActivityId(1));
    let question = Question {
        victim,
        declared: &[],
        rules: Rules::PC99,
    };
    let findings = attribute(&events, &question);
    assert_eq!(findings.late.len(), 1);
    assert!(!findings.late[0].completed);
    assert_eq!(names(&findings), [thread(2)]);
    assert_eq!(findings.longest_held_off, Some(Span::ZERO));
}

/// Calls of others around six jobs; they may have to wait for each other.
fn cases() -> impl Strategy<Value = Vec<Call>> {
    let class = prop_oneof![
        Just(Class::Handler),
        Just(Class::Deferred),
        Just(Class::Above)
    ];
    // Some at once: who comes first then decides.
    let pause = prop_oneof![4 => 0_u64..9_000, 1 => 0_u64..3];
    let one = (class, 1_u16..4, 1_u64..9_000, pause);
    prop::collection::vec(one, 1..12).prop_map(|drawn| {
        let mut at = 9_000;
        let mut calls = jobs(6);
        for (class, who, work, pause) in drawn {
            // One number, one class.
            let who = who + 10 * class as u16;
            calls.push(call(class, who, at, work));
            at += pause;
        }
        calls
    })
}

/// Events that nobody need have recorded, most of them in order; arguments before, about and after them.
fn any_trace() -> impl Strategy<Value = Vec<Event>> {
    let kind = (0_u16..26).prop_map(|code| {
        let mark = EventKind::Mark(Mark(code % 3));
        EventKind::from_code(code).unwrap_or(mark)
    });
    let arg = prop_oneof![0_u64..200_000_000, Just(u64::MAX), any::<u64>()];
    let pause = prop_oneof![9 => 0_i64..20_000, 1 => -5_000_i64..0];
    let one = (pause, kind, 0_u16..4, 0_u16..8, [arg.clone(), arg]);
    prop::collection::vec(one, 0..60).prop_map(|drawn| {
        let mut at = 0_u64;
        let events = drawn
            .into_iter()
            .map(|(pause, kind, who, elsewhere, args)| {
                at = at.saturating_add_signed(pause);
                Event {
                    at: Instant::from_micros(at),
                    kind,
                    processor: ProcessorId(u16::from(elsewhere == 0)),
                    activity: ActivityId(who),
                    args,
                }
            });
        events.collect()
    })
}

fn any_declared() -> impl Strategy<Value = Declared> {
    let apart = prop_oneof![
        Just(None),
        Just(Some(Span::MAX)),
        (1_u64..20_000).prop_map(|us| Some(Span::from_micros(us)))
    ];
    (1_u64..5_000, apart, 0_u8..3).prop_map(|(us, apart, rank)| Declared {
        allowance: Some(Allowance {
            per_job: Service::from_micros(us),
            apart,
        }),
        priority: Priority::new(8 * rank),
    })
}

#[test]
fn jobs_that_end_before_their_release_are_no_panic() {
    let event = |at_us, kind, release_us: u64| Event {
        at: Instant::from_micros(at_us),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(VICTIM),
        args: [release_us * 1_000, 0],
    };
    let (begin, end) = (EventKind::Mark(BEGIN), EventKind::Mark(END));
    let events = [
        event(0, EventKind::Wake, 0),
        event(10, begin, 10),
        event(15_000, end, 0),
        event(14_900, begin, 14_900),
        event(12_000, end, 0),
        event(14_200, begin, 14_000),
        event(13_000, end, 0),
    ];
    let question = Question {
        victim: victim(),
        declared: &[],
        rules: Rules::PC99,
    };
    let findings = attribute(&events, &question);
    assert_eq!((findings.jobs, findings.late.len()), (3, 1));
}

fn limit(class: Class) -> u64 {
    match class {
        Class::Handler => 100,
        Class::Deferred => 500,
        Class::Above | Class::Victim => 0,
    }
}

/// The same calls, those of `who` cut to what they may take.
fn cut(calls: &[Call], who: &[u16]) -> Vec<Call> {
    let short = |call: &Call| {
        let mut call = *call;
        if call.who != VICTIM && who.contains(&call.who) {
            call.work = call.work.min(limit(call.class));
        }
        call
    };
    let calls: Vec<Call> = calls.iter().map(short).collect();
    calls.into_iter().filter(|call| call.work > 0).collect()
}

/// Which jobs end when.
fn ends(calls: &[Call]) -> Vec<Instant> {
    let events = Machine::run(calls);
    let ends = events
        .iter()
        .filter(|event| event.kind == EventKind::Mark(END));
    ends.map(|event| event.at).collect()
}

proptest! {
    /// The definition, carried out by running the machine again with every set of calls cut short.
    #[test]
    fn culprits_are_those_whose_excess_decided(calls in cases()) {
        let findings = findings(&calls, &[]);
        let mut suspects: Vec<u16> = calls.iter().map(|call| call.who).filter(|who| *who != VICTIM).collect();
        suspects.sort_unstable();
        suspects.dedup();
        let sets: Vec<Vec<u16>> = (0..1_u32 << suspects.len())
            .map(|set| (0..suspects.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| suspects[bit]).collect())
            .collect();
        let outcomes: Vec<Vec<Instant>> = sets.iter().map(|set| ends(&cut(&calls, set))).collect();
        let due = |job: usize| Instant::from_micros((job as u64 + 2) * DEADLINE_US);
        let late: Vec<usize> = (0..6).filter(|job| outcomes[0][*job] > due(*job)).collect();
        prop_assert_eq!(findings.late.len(), late.len());
        for (job, found) in late.into_iter().zip(&findings.late) {
            let decided: Vec<u16> = suspects.iter().enumerate().filter(|(bit, _)| {
                (0..sets.len()).filter(|set| set >> bit & 1 == 0).any(|set| {
                    outcomes[set][job] > due(job) && outcomes[set | 1 << bit][job] <= due(job)
                })
            }).map(|(_, who)| *who).collect();
            let mut named: Vec<u16> = match &found.fault {
                Fault::Culprits(culprits) => culprits.iter().filter_map(|culprit| culprit.who.activity()).map(|id| id.0).collect(),
                _ => Vec::new(),
            };
            named.sort_unstable();
            prop_assert_eq!(&named, &decided, "job {} of {:?}", job, calls);
        }
    }

    /// Whatever a trace says, also one that was cut, is wrong or out of order: there is an answer, and its times add up.
    #[test]
    fn any_trace_is_answered(
        events in any_trace(), marked: bool, has_device: bool, declared in prop::collection::vec(any_declared(), 0..5),
    ) {
        let victim = Victim {
            device: has_device.then_some(ActivityId(1)),
            jobs: if marked {
                Jobs::Marks { begin: BEGIN, release: 0, end: END, service: Some(Mark(2)) }
            } else {
                Jobs::Waits
            },
            ..victim()
        };
        let question = Question { victim, declared: &declared, rules: Rules::PC99 };
        let findings = attribute(&events, &question);
        prop_assert!(findings.late.len() as u64 <= findings.jobs);
        for job in findings.late {
            prop_assert!(job.release <= job.end && !job.lateness.is_zero());
            let held: Span = job.held.iter().map(|held| held.time).sum();
            prop_assert!(held <= job.end - job.release);
            prop_assert!(job.held.iter().all(|held| held.excess <= held.time));
        }
    }

    /// Who held the processor between release and end adds up to that time.
    #[test]
    fn nothing_of_the_time_is_unaccounted(calls in cases()) {
        for job in findings(&calls, &[]).late {
            let held: Span = job.held.iter().map(|held| held.time).sum();
            prop_assert_eq!(held, job.end - job.release);
        }
    }
}
