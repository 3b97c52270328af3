//! Who watches a processor, who dispatches its slots, and who carries messages of channels takes no memory from the allocator while it works, and gives none back: a thread may be parked
//! inside it, and would keep them waiting until they let it go.
#![allow(unsafe_code)]

#[path = "allocations/node.rs"]
mod node;
#[path = "allocations/path.rs"]
mod path;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::base::ring;
use laxity_model::enforce::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY, Witness};
use laxity_model::{
    Activity, Context, Enforcer, Event, EventKind, Host, Instant, Outside, Placement, Priority,
    ProcessorId, Program, Reservation, ReservationRequest, Service, Span, Step,
};

const CPU0: ProcessorId = ProcessorId(0);
/// As the names of those threads begin that are counted.
const COUNTED: [&str; 4] = ["witness/", "dispatcher/", "pushing", "carrying"];
/// How often those of each name have called the allocator.
static CALLS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The system's allocator, and who calls it.
struct Counting;

// SAFETY: the system's allocator does it all. Counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: who calls this keeps to what that asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above, and every block is of that allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

fn count() {
    // At most 15 bytes and a zero.
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes 16 bytes at most, and there are as many.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    for (begins, calls) in COUNTED.iter().zip(&CALLS) {
        if name.starts_with(begins.as_bytes()) {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn calls() -> [u64; 4] {
    CALLS.each_ref().map(|calls| calls.load(Ordering::Relaxed))
}

/// As a late wake-up is recorded.
fn late(number: u64) -> Event {
    Event {
        at: Instant::from_nanos(number),
        kind: EventKind::Disturbed,
        processor: CPU0,
        activity: WITNESS_ACTIVITY,
        args: [number, number + 1],
    }
}

#[test]
fn pushing_what_is_late_allocates_nothing_also_where_there_is_no_more_room() {
    let (mut producer, mut consumer) = ring::channel(64);
    let pushing = thread::Builder::new().name("pushing".to_owned());
    let pushing = pushing.spawn(move || {
        producer.prefault();
        let [.., before, _] = calls();
        let kept = (0..100).filter(|number| producer.push(late(*number)));
        let kept = kept.count();
        let [.., after, _] = calls();
        // It is counted all the same.
        drop(black_box(Box::new(kept)));
        let [.., counted, _] = calls();
        ((kept, producer.lost()), after - before, counted - after)
    });
    let (pushed, while_pushing, then) = pushing.unwrap().join().unwrap();
    assert_eq!((pushed, while_pushing, then), ((64, 36), 0, 2));
    let mut events = Vec::new();
    assert_eq!((consumer.drain(&mut events), consumer.lost()), (64, 36));
}

/// Messages from one node to the next, where what both say each other allocates as it does without them; and on the data path from a host over another one to a third: of one packet and of several, too many and too large, and what is lost on the way.
#[test]
fn messages_of_channels_go_from_end_to_end_without_the_allocator() {
    let carrying = thread::Builder::new().name("carrying".to_owned());
    let carrying = carrying.spawn(|| {
        let mut line = path::Line::new();
        let mut pair = node::Pair::new();
        (0..100).for_each(|_| pair.carries());
        let [.., begun] = calls();
        (0..400).for_each(|_| pair.rests());
        let [.., rested] = calls();
        (0..400).for_each(|_| pair.carries());
        let [.., before] = calls();
        for round in 0..2_000 {
            line.carries(round);
        }
        let [.., after] = calls();
        let of_messages = (before - rested) as i64 - (rested - begun) as i64;
        drop(black_box(Box::new(before)));
        let [.., counted] = calls();
        let counts = (line.counts(), pair.delivered);
        (
            counts,
            [of_messages, (after - before) as i64],
            counted - after,
        )
    });
    let ((counts, by_nodes), while_carrying, then) = carrying.unwrap().join().unwrap();
    assert_eq!((while_carrying, then, by_nodes), ([0, 0], 2, 500));
    let [delivered, demoted, lost] = counts;
    assert!(
        delivered > 2_000 && demoted > 1_000 && lost > 100,
        "{counts:?}"
    );
}

/// Whoever is parked outside its slots.
fn confined(program: &mut Program) {
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    program.push(Activity {
        name: "confined".to_owned(),
        processor: CPU0,
        placement: Placement::Thread(Priority::NORMAL),
        reservation: Some(ReservationRequest {
            reservation: reservation.expect("a possible reservation"),
            enforcer: Enforcer::Slots,
            outside: Outside::Confined,
            begins_at_start: true,
        }),
        body: Box::new(|_: &mut dyn Context| {
            drop(black_box(vec![0_u8; 100]));
            Step::Burn(Service::from_micros(10))
        }),
    });
}

/// Looks at these instants after it began how often who has called the allocator; what it saw.
fn looking(program: &mut Program, after: [Span; 2]) -> [Arc<OnceLock<[u64; 4]>>; 2] {
    let seen = [(); 2].map(|()| Arc::new(OnceLock::new()));
    let mut looks = after.into_iter().zip(seen.clone());
    let (mut begun, mut due) = (None, None::<Arc<OnceLock<_>>>);
    let body = move |context: &mut dyn Context| {
        let begun = *begun.get_or_insert(context.now());
        if let Some(seen) = due.take() {
            seen.set(calls()).expect("it looks once");
        }
        let Some((after, seen)) = looks.next() else {
            return Step::Finish;
        };
        due = Some(seen);
        Step::SleepUntil(begun + after)
    };
    program.add("looking", CPU0, Placement::External, body);
    seen
}

/// To this witness every wake-up is late, and both rings are full most of the time.
#[test]
fn who_watches_and_who_dispatches_allocates_nothing_during_a_run() {
    let rights = [Right::RealTime, Right::Processors(2)];
    let Some(_turn) = rights::require(&rights) else {
        return;
    };
    let config = LiveConfig::detect(1).expect("one processor and one more");
    let mut host = LiveHost::new(LiveConfig {
        witnesses: vec![Witness {
            tolerance: Span::ZERO,
            ..Witness::new(CPU0)
        }],
        ring_capacity: 4,
        ..config
    });
    let mut program = Program::new(1);
    confined(&mut program);
    let within = [20, 280].map(Span::from_millis);
    let seen = looking(&mut program, within);
    let length = Span::from_millis(300);
    let record = host.admit_and_run(program, length).expect("it runs");
    let [before, after] = seen.map(|seen| *seen.get().expect("it looked"));
    let recorded = |who| {
        let is_of = |event: &&Event| {
            let is_late = matches!(event.kind, EventKind::Held | EventKind::Disturbed);
            is_late && event.activity == who && event.at < record.end
        };
        record.events.iter().filter(is_of).count()
    };
    let recorded = [WITNESS_ACTIVITY, DISPATCHER_ACTIVITY].map(recorded);
    assert!(recorded.iter().all(|often| *often > 10), "{recorded:?}");
    assert!(record.events_lost > 0, "{recorded:?} were all");
    assert!(before[0] > 0 && before[1] > 0, "{before:?} when they began");
    assert_eq!(after[..2], before[..2]);
}
