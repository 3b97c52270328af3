//! Who was there and what the witness saw, and what that makes of what was granted.

use laxity_model::enforce::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY, Witness};
use laxity_model::{ActivityId, Reservation, Service};

use super::*;
use crate::host::beside::KnownAs;
use crate::host::lookout::Tampered;
use crate::os::cpuset::CpuSet;
use crate::os::proc::RealTimeThread;
use crate::os::sched::{Policy, Tid};
use crate::run::own::Changed;

mod adds_up;
mod crawls;
mod stops;

/// The kernel's number of the only processor.
const CPU: usize = 3;
const HOLDER: ActivityId = ActivityId(0);
const OTHER: ActivityId = ActivityId(1);
const START: Instant = Instant::from_millis(1_000);
/// What a stranger was seen to have, at most.
const IDLE: Option<Service> = Some(Strangers::UNNOTICED);
const BUSY: Option<Service> = Some(Service::from_nanos(Strangers::UNNOTICED.as_nanos() + 1));

fn after(ms: u64) -> Instant {
    START + Span::from_millis(ms)
}

/// It was late from so long after the start, for so long, in milliseconds.
fn late(kind: EventKind, from_ms: u64, for_ms: u64) -> Event {
    let (from, to) = (after(from_ms), after(from_ms + for_ms));
    Event {
        at: to,
        kind,
        processor: ProcessorId(0),
        activity: WITNESS_ACTIVITY,
        args: [from.as_nanos(), to.as_nanos()],
    }
}

fn held(for_ms: u64) -> Vec<Event> {
    vec![late(EventKind::Held, 7, for_ms)]
}

fn fifo(rank: u8, cpu: usize, at: Option<Instant>, most: Option<Service>) -> Sighting {
    let thread = RealTimeThread {
        pid: 41,
        parent: 1,
        tid: Tid(42),
        name: "watchdog".to_owned(),
        policy: Policy::Fifo(rank),
        boosted: None,
        affinity: Ok(CpuSet::single(cpu)),
        processor: cpu,
        of_kernel: false,
        of_laxity: false,
    };
    Sighting::that_had(thread, at, most)
}

fn stranger(rank: u8, most: Option<Service>) -> Seen {
    Seen {
        strangers: vec![fifo(rank, CPU, None, most)],
        ..Seen::default()
    }
}

fn unseen() -> Seen {
    Seen {
        unseen: Some("it is dark".to_owned()),
        ..Seen::default()
    }
}

/// Somebody laid hands on this thread of ours between 5 and 6 ms after the start.
fn tampered(role: Role, policy: Policy) -> Seen {
    let changed = Changed {
        role,
        cpu: CPU,
        policy,
        what: "it was changed".to_owned(),
    };
    let tampered = Tampered {
        changed,
        at: after(6),
        sound_until: after(5),
    };
    Seen {
        tampered: vec![tampered],
        ..Seen::default()
    }
}

/// What came of it.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    /// Of slots, and of a reservation by deadline: empty if it is enforced.
    slots: String,
    deadline: String,
    /// How many late wake-ups are the machine's own doing, how many of these are doubtful, and how many are somebody's.
    still: usize,
    doubts: u64,
    held: usize,
    notices: Vec<String>,
}

/// With a witness, and nothing of the program's own that holds the processor.
fn watched(seen: &Seen) -> Evidence<'_> {
    Evidence {
        start: START,
        cpus: vec![CPU],
        with_slots: 1,
        witnesses: vec![Witness::new(ProcessorId(0))],
        before: &[],
        unfound: &[],
        held: &[],
        over: None,
        own: vec![Span::ZERO],
        tells: Some(true),
        seen,
    }
}

fn found(seen: &Seen, mut events: Vec<Event>, tells: bool, own: Span) -> Found {
    let evidence = Evidence {
        own: vec![own],
        tells: Some(tells),
        ..watched(seen)
    };
    let conclusion = conclude(&mut events, &evidence);
    let granted = [
        (Enforcer::Slots, HOLDER, CPU),
        (Enforcer::Deadline, OTHER, CPU),
    ];
    let [slots, deadline] = granted.map(|granted| {
        let grade = conclusion.grade(Grade::Enforced, granted);
        grade.reason().unwrap_or_default().to_owned()
    });
    Found {
        slots,
        deadline,
        still: conclusion.disturbances.len(),
        doubts: conclusion.doubts.len() as u64,
        held: events.iter().filter(|e| e.kind == EventKind::Held).count(),
        notices: conclusion.notices(&granted),
    }
}

const NAMED: &str = "thread 42 \"watchdog\" of process 41 (SCHED_FIFO priority 99)";
const ABOVE: &str = "ranked above the slot on its processor: thread 42 \"watchdog\" of process 41 (SCHED_FIFO priority 99), there from the start";
const DOUBT: &str = "processor 3 was held for 30ms, 7ms after the start, and nobody was found who could: somebody who has gone, the kernel in a system call that nothing preempts, or what it keeps for ordinary work that had waited for most of a second";
const BLIND: &str = "cannot see who outranks the slot: it is dark";

fn spared() -> String {
    format!(
        "{NAMED} ranks above the slots of processor 3, and was seen to take nothing from them: it never ran for 100us"
    )
}

/// Of a program that runs beside the run, as it was told to or not.
fn beside(raised: bool) -> Seen {
    let mut seen = stranger(99, BUSY);
    for one in &mut seen.strangers {
        let name = "rogue (SCHED_FIFO priority 99)".to_owned();
        one.name_once(|_| Some(KnownAs { name, raised }));
    }
    seen
}

#[test]
fn who_belongs_to_the_scenario_goes_by_its_name_and_is_no_stranger() {
    let named = "ranked above the slot on its processor: rogue (SCHED_FIFO priority 99), there from the start";
    let found = found(&beside(false), held(30), true, Span::MAX);
    assert_eq!(found.slots, named);
    let told = "the program itself held processor 3 for 30ms, 7ms after the start";
    assert_eq!(found.notices, [told]);
    // Where there are no slots nobody ranks above any; who gave itself that rank is told all the same, for what it took from others.
    let could =
        "could have taken processor 3: rogue (SCHED_FIFO priority 99), there from the start";
    for (raised, expected) in [(false, vec![]), (true, vec![could.to_owned()])] {
        let seen = beside(raised);
        let evidence = Evidence {
            own: vec![Span::MAX],
            ..watched(&seen)
        };
        let conclusion = conclude(&mut Vec::new(), &evidence);
        let told = conclusion.notices(&[(Enforcer::Deadline, OTHER, CPU)]);
        assert_eq!(told, expected, "{raised}");
    }
}

/// What had no grant was outranked all the same: what is seen of it says nothing of who had it.
#[test]
fn who_outranked_what_had_no_grant_is_told_apart_from_what_the_program_did() {
    let outranked = |seen: &Seen, own, granted: &[Granted]| {
        let evidence = Evidence {
            own: vec![own],
            ..watched(seen)
        };
        conclude(&mut held(5), &evidence).outranked(granted)
    };
    let was_held = "processor 3 was held for 5ms, 7ms after the start";
    let none = [""; 0];
    let busy = stranger(99, BUSY);
    let could = format!("could have taken processor 3: {NAMED}, there from the start");
    assert_eq!(outranked(&busy, Span::ZERO, &[]), [&could, was_held]);
    let slots = (Enforcer::Slots, HOLDER, CPU);
    assert_eq!(outranked(&busy, Span::ZERO, &[slots]), none);
    let blind = "cannot see who could have taken processor 3: it is dark";
    assert_eq!(outranked(&unseen(), Span::ZERO, &[]), [blind, was_held]);
    assert_eq!(outranked(&stranger(99, IDLE), Span::ZERO, &[]), none);
    assert_eq!(outranked(&Seen::default(), Span::MAX, &[]), none);
    assert_eq!(outranked(&beside(false), Span::MAX, &[]), none);
    let policy = Policy::Other { nice: 0 };
    let changed = tampered(Role::Activity(HOLDER), policy);
    let told = "it was changed, seen 6ms after the start";
    assert_eq!(outranked(&changed, Span::MAX, &[]), [told]);
}

/// Who was there, what the witness saw; why slots are not enforced; what stood still, what was held.
type Row = (&'static str, Seen, Vec<Event>, &'static str, (usize, usize));

fn expect(rows: impl IntoIterator<Item = Row>) {
    for (what, seen, events, slots, (still, held)) in rows {
        let expected = Found {
            slots: slots.to_owned(),
            deadline: String::new(),
            still,
            doubts: u64::from(slots == DOUBT),
            held,
            notices: vec![],
        };
        assert_eq!(found(&seen, events, true, Span::ZERO), expected, "{what}");
    }
}

#[test]
fn where_nobody_is_above_only_what_lasts_leaves_a_doubt() {
    let still = || vec![late(EventKind::Disturbed, 7, 30)];
    let below = || stranger(79, BUSY);
    expect([
        ("nobody, nothing", Seen::default(), vec![], "", (0, 0)),
        ("a standstill", Seen::default(), still(), "", (1, 0)),
        ("the kernel", Seen::default(), held(5), "", (1, 0)),
        ("who has gone", Seen::default(), held(30), DOUBT, (1, 0)),
        ("one below slots", below(), held(5), "", (1, 0)),
    ]);
}

#[test]
fn a_grade_is_that_of_who_was_there_and_what_was_seen() {
    let was_held = "processor 3 was held for 5ms, 7ms after the start";
    let by_stranger: &str = format!("{ABOVE}; {was_held}").leak();
    let unseen_held: &str = format!("{BLIND}; {was_held}").leak();
    let busy = || stranger(99, BUSY);
    expect([
        ("a stranger, held", busy(), held(5), by_stranger, (0, 1)),
        ("a stranger, nothing", busy(), vec![], ABOVE, (0, 0)),
        ("one unknown", stranger(99, None), vec![], ABOVE, (0, 0)),
        ("unseen", unseen(), vec![], BLIND, (0, 0)),
        ("unseen, held", unseen(), held(5), unseen_held, (0, 1)),
    ]);
}

/// A doubt convicts nobody, and takes nothing from what is certain.
#[test]
fn a_doubt_is_worth_less_than_a_promise_and_more_than_a_breach() {
    let grade = |seen: &Seen| {
        let conclusion = conclude(&mut held(30), &watched(seen));
        let grade = conclusion.grade(Grade::Enforced, (Enforcer::Slots, HOLDER, CPU));
        grade.to_string()
    };
    assert_eq!(grade(&Seen::default()), "uncertain");
    assert_eq!(grade(&stranger(99, BUSY)), "unenforced");
}

/// A watchdog of others at FIFO 99 that sleeps: it could have taken the processor, and is no culprit of what happened.
#[test]
fn who_slept_all_the_time_is_told_and_not_held_against_slots() {
    for (events, slots, (still, held)) in [
        (vec![], "", (0, 0)),
        (held(5), "", (1, 0)),
        (held(30), DOUBT, (1, 0)),
    ] {
        let expected = Found {
            slots: slots.to_owned(),
            deadline: String::new(),
            still,
            doubts: u64::from(slots == DOUBT),
            held,
            notices: vec![spared()],
        };
        assert_eq!(
            found(&stranger(99, IDLE), events, true, Span::ZERO),
            expected,
            "{slots}"
        );
    }
    // Elsewhere it is nobody's business.
    let elsewhere = Seen {
        strangers: vec![fifo(99, CPU + 1, None, IDLE)],
        ..Seen::default()
    };
    assert!(
        found(&elsewhere, vec![], true, Span::ZERO)
            .notices
            .is_empty()
    );
}

#[test]
fn who_came_is_told_with_when_and_each_name_once() {
    let came = |most| {
        let mut seen = fifo(98, CPU, Some(after(12)), most);
        seen.thread.of_laxity = true;
        seen
    };
    let seen = Seen {
        strangers: vec![
            fifo(99, CPU, None, BUSY),
            came(BUSY),
            came(BUSY),
            came(IDLE),
        ],
        more: 2,
        ..Seen::default()
    };
    let found = found(&seen, vec![], true, Span::ZERO);
    let named = "ranked above the slot on its processor: another laxity (process 41), seen 12ms after the start";
    let all = format!("{named}; {NAMED}, there from the start; and 2 more of others");
    assert_eq!(found.slots, all);
    assert!(found.notices.is_empty(), "{:?}", found.notices);
}

#[test]
fn a_kernel_that_does_not_tell_excuses_nobody_and_accuses_nobody() {
    let found = found(&Seen::default(), held(5), false, Span::ZERO);
    let (slots, told) = (found.slots.as_str(), found.notices[0].as_str());
    assert_eq!((slots, found.still, found.held), ("", 0, 1));
    assert!(told.starts_with("the kernel does not tell"), "{told}");
}

#[test]
fn what_the_program_itself_does_is_told_and_not_held_against_it() {
    let told = "the program itself held processor 3 for 5ms, 7ms after the start";
    // By rank at any time, by deadline for its budgets.
    for own in [Span::MAX, Span::from_millis(5)] {
        let found = found(&Seen::default(), held(5), true, own);
        assert_eq!((found.slots.as_str(), found.held), ("", 1));
        assert_eq!(found.notices, [told]);
    }
}

/// That something in the program is reserved by deadline makes nobody else the program.
#[test]
fn what_the_program_cannot_have_done_is_a_strangers_or_leaves_a_doubt() {
    let budgets = Span::from_millis(12);
    let gone = found(&Seen::default(), held(30), true, budgets);
    assert_eq!((gone.slots.as_str(), gone.held, gone.still), (DOUBT, 0, 1));
    assert!(gone.notices.is_empty(), "{:?}", gone.notices);
    for own in [budgets, Span::MAX] {
        let seen = found(&stranger(99, BUSY), held(5), true, own);
        let told = "processor 3 was held for 5ms, 7ms after the start";
        assert_eq!(seen.slots, format!("{ABOVE}; {told}"));
        assert!(seen.notices.is_empty(), "{:?}", seen.notices);
    }
}

#[test]
fn threads_of_ours_that_were_changed_hold_nothing_and_see_nothing() {
    let told = "it was changed, seen 6ms after the start";
    let other = Policy::Other { nice: 0 };
    let tenth = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
    let deadline = Policy::Deadline(tenth.into());
    // Whose thread, what it has now; against slots, against the other's reservation.
    let rows = [
        (Role::Dispatcher, other, told, ""),
        (Role::Witness, other, told, ""),
        (Role::Lookout, other, told, ""),
        (Role::Activity(HOLDER), other, told, ""),
        (Role::Activity(OTHER), other, "", told),
        (Role::Activity(OTHER), Policy::Fifo(79), "", told),
        (Role::Activity(OTHER), Policy::Fifo(80), told, told),
        (Role::Activity(OTHER), deadline, told, told),
    ];
    for (role, policy, slots, by_deadline) in rows {
        // One that ended before the thread was changed, and one that did not.
        let events = vec![
            late(EventKind::Disturbed, 2, 1),
            late(EventKind::Disturbed, 4, 2),
        ];
        let found = found(&tampered(role, policy), events, true, Span::ZERO);
        assert_eq!((&*found.slots, &*found.deadline), (slots, by_deadline));
        let watches = matches!(role, Role::Dispatcher | Role::Witness);
        assert_eq!(
            found.still,
            if watches { 1 } else { 2 },
            "{role:?} {policy:?}"
        );
    }
}

#[test]
fn while_nobody_looked_slots_are_not_enforced() {
    let seen = Seen {
        unseen: Some("nobody looked for 501ms".to_owned()),
        ..Seen::default()
    };
    let found = found(&seen, vec![], true, Span::ZERO);
    let told = "cannot see who outranks the slot: nobody looked for 501ms";
    assert_eq!((&*found.slots, &*found.deadline), (told, ""));
    let doubted = Seen {
        doubted: Some("nobody looked for 101ms".to_owned()),
        ..Seen::default()
    };
    let granted = (Enforcer::Slots, HOLDER, CPU);
    let grade = conclude(&mut Vec::new(), &watched(&doubted)).grade(Grade::Enforced, granted);
    let reason = "who outranks the slot may have gone unseen: nobody looked for 101ms".to_owned();
    assert_eq!(grade, Grade::Uncertain { reason });
}

#[test]
fn that_the_guardian_died_is_told() {
    let seen = Seen {
        guardian: Some("it died".to_owned()),
        ..Seen::default()
    };
    let found = found(&seen, vec![], true, Span::ZERO);
    assert_eq!(found.slots, "", "nobody takes anything from slots by that");
    assert_eq!(found.notices, ["it died"]);
}

#[test]
fn what_admission_said_stays_said() {
    let seen = stranger(99, BUSY);
    let evidence = Evidence {
        tells: None,
        ..watched(&seen)
    };
    let conclusion = conclude(&mut Vec::new(), &evidence);
    let admitted = Grade::Unenforced {
        reason: "a rogue".to_owned(),
    };
    let grade = conclusion.grade(admitted, (Enforcer::Slots, HOLDER, CPU));
    assert_eq!(grade.reason(), Some(&*format!("a rogue; {ABOVE}")));
    // Where there are no slots it is not for a grade, and told all the same.
    let told = format!("could have taken processor 3: {NAMED}, there from the start");
    assert_eq!(
        conclusion.notices(&[(Enforcer::Deadline, OTHER, CPU)]),
        [told]
    );
}

/// A second processor, beside the first one.
const BESIDE: usize = 5;

#[test]
fn what_was_on_one_processor_is_held_against_the_slots_there() {
    let on_the_second = |event: &Event| Event {
        processor: ProcessorId(1),
        ..*event
    };
    let stranger = Seen {
        strangers: vec![fifo(99, BESIDE, None, BUSY)],
        ..Seen::default()
    };
    for (seen, events, grade, doubts) in [
        (&stranger, vec![], "unenforced", 0),
        (&stranger, held(30), "unenforced", 0),
        (&Seen::default(), held(30), "uncertain", 1),
        (&Seen::default(), held(5), "enforced", 0),
    ] {
        let evidence = Evidence {
            cpus: vec![CPU, BESIDE],
            with_slots: 2,
            witnesses: [0, 1].map(|one| Witness::new(ProcessorId(one))).to_vec(),
            own: vec![Span::MAX, Span::ZERO],
            ..watched(seen)
        };
        let mut events: Vec<Event> = events.iter().map(on_the_second).collect();
        let conclusion = conclude(&mut events, &evidence);
        let there = |cpu| {
            let granted = (Enforcer::Slots, HOLDER, cpu);
            conclusion.grade(Grade::Enforced, granted).to_string()
        };
        assert_eq!([there(CPU), there(BESIDE)], ["enforced", grade]);
        assert_eq!(conclusion.doubts.len(), doubts);
        let here = |one: &Disturbance| one.processor == ProcessorId(1);
        assert!(
            conclusion.doubts.iter().all(here),
            "{:?}",
            conclusion.doubts
        );
    }
}
