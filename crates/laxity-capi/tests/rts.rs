//! Upcalls from C: whatever a program does wrong is a number and a message. One test, as a process has one executor.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use laxity_capi::{
    LAXITY_ANY_PROCESSOR, LAXITY_DEADLINE, RTS_AFTER, RTS_ARRIVALS, RTS_DESCRIPTOR, RTS_EDF,
    RTS_FAIR, RTS_FIFO, RTS_IS_SUSPENDED, RTS_MOST, RTS_REJECT, RTS_RESERVED, RTS_RMDP, RTS_SKIP,
    RTS_VERSION, laxity_message, laxity_request, rts_attributes, rts_bound, rts_budget, rts_close,
    rts_coordinator, rts_counts, rts_creat, rts_departed, rts_end, rts_enforced, rts_funargs,
    rts_group, rts_join, rts_list, rts_name, rts_options, rts_read, rts_release, rts_run,
    rts_serve, rts_set, rts_settle, rts_sleep, rts_start, rts_suspend, rts_ungroup, rts_usage,
    rts_usage_of, rts_version, rts_yield,
};
use laxity_linux::doctor::rights::{self, Right};

const OPTIONS: rts_options = rts_options {
    size: size_of::<rts_options>() as u32,
    policy: RTS_RMDP,
    rank: RTS_FAIR,
    priority: 90,
    processor: LAXITY_ANY_PROCESSOR,
    events: 2,
    reservation: laxity_request {
        size: size_of::<laxity_request>() as u32,
        enforcer: LAXITY_DEADLINE,
        service_ns: 0,
        period_ns: 0,
        processor: LAXITY_ANY_PROCESSOR,
        flags: 0,
    },
    late_ns: 0,
    call_ns: 0,
    quantum_ns: 0,
};

const ON_0: rts_options = rts_options {
    processor: 0,
    ..OPTIONS
};

const ATTRIBUTES: rts_attributes = rts_attributes {
    size: size_of::<rts_attributes>() as u32,
    flags: 0,
    name: ptr::null(),
    first_ns: 0,
    period_ns: 1_000_000,
    deadline_ns: 0,
    pdu_ns: 10_000,
    batch: 1,
    quantum: 1,
    on_overrun: RTS_SKIP,
    at_most: 0,
    fd: -1,
    when_full: RTS_REJECT,
    after: 0,
    group: 0,
};

/// One that is not there.
const COORDINATOR: rts_coordinator = rts_coordinator {
    size: size_of::<rts_coordinator>() as u32,
    reserved: 0,
    name: ptr::null(),
    directory: c"/nonexistent".as_ptr(),
    program: c"/nonexistent/laxity".as_ptr(),
};

/// Of the structure before it had `fd`.
const FIRST_SIZE: u32 = std::mem::offset_of!(rts_attributes, fd) as u32;

/// Of the structure before it had `after`.
const SECOND_SIZE: u32 = std::mem::offset_of!(rts_attributes, after) as u32;

/// What the calls returned that a handler made which wait, and those that start an executor.
static REFUSED: [AtomicI32; 9] = [const { AtomicI32::new(-1) }; 9];

unsafe extern "C" fn handler(arg: *mut rts_funargs) {
    // SAFETY: it is called with both structures.
    let (pcb, call) = unsafe { ((*arg).pcb, &mut *(*arg).smstr) };
    call.pdu_count = call.pdu_goal;
    let all = rts_set { bits: [1, 0] };
    let own = pcb as usize as c_int;
    let (mut bound, mut process) = (0, 0);
    // SAFETY: all are there, or null where that is allowed.
    let refused = unsafe {
        [
            rts_sleep(&raw const all, ptr::null_mut(), 0),
            rts_end(),
            create(|_| ()).0,
            rts_bound(own, &raw mut bound),
            rts_departed(&raw mut process),
            rts_settle(1),
            rts_serve(ptr::null_mut()),
            rts_start(&OPTIONS),
            rts_join(&ON_0, &COORDINATOR),
        ]
    };
    for (told, error) in REFUSED.iter().zip(refused) {
        told.store(error, Ordering::SeqCst);
    }
    // Its own descriptor: what a handler asks is done after its quantum.
    assert_eq!(rts_suspend(own), 0);
}

fn said() -> String {
    // SAFETY: a message of this thread, which makes no other call meanwhile.
    let message = unsafe { CStr::from_ptr(laxity_message()) };
    message.to_str().unwrap().to_owned()
}

fn create(change: impl FnOnce(&mut rts_attributes)) -> (c_int, c_int) {
    let mut attributes = ATTRIBUTES;
    change(&mut attributes);
    let mut rtu = 7;
    // SAFETY: all are there; the block is a number and never looked into.
    let error = unsafe {
        rts_creat(
            &raw const attributes,
            Some(handler),
            ptr::null_mut::<c_void>(),
            &raw mut rtu,
        )
    };
    (error, rtu)
}

const COUNTS: rts_counts = rts_counts {
    size: size_of::<rts_counts>() as u32,
    state: 0,
    calls: 0,
    pdus: 0,
    overruns: 0,
    missed: 0,
    yields: 0,
    most_late_ns: 0,
    longest_response_ns: 0,
    longest_chain_ns: 0,
    longest_quantum_ns: 0,
    over_service: 0,
    dropped: 0,
    late: 0,
};

fn state(rtu: c_int) -> rts_counts {
    let mut counts = COUNTS;
    // SAFETY: it is as long as it says.
    assert_eq!(unsafe { rts_read(rtu, &raw mut counts) }, 0, "{}", said());
    counts
}

fn starts_once_and_as_asked() {
    // SAFETY: the structure is there.
    let start = |options: &rts_options| unsafe { rts_start(options) };
    type Change = fn(&mut rts_options);
    // For none nobody waits, and no executor is started for that.
    let none = rts_set::default();
    // SAFETY: the set is there.
    assert_eq!(unsafe { rts_sleep(&raw const none, ptr::null_mut(), 0) }, 0);
    const ON: &str = "this thread may run on processors";
    let wrong: [(Change, &str); 10] = [
        (|of| of.events = u32::MAX, "4096"),
        (|of| of.events = 0, "room for events 0"),
        (|of| of.size = 4, "4 bytes"),
        (|of| of.policy = 9, "policy 9"),
        (|of| of.rank = 9, "rank 9"),
        (|of| of.processor = -2, "processor -2"),
        (|of| (of.rank, of.priority) = (RTS_FIFO, 300), "300"),
        (|of| (of.rank, of.priority) = (RTS_FIFO, 0), "1 to 99"),
        (|of| (of.rank, of.processor) = (RTS_FIFO, 60_000), ON),
        (
            |of| (of.rank, of.reservation.size) = (RTS_RESERVED, 8),
            "size 8",
        ),
    ];
    for (change, why) in wrong {
        let mut options = OPTIONS;
        change(&mut options);
        let may_not = why == ON && rights::missing(Right::RealTime).is_some();
        assert!(start(&options) == libc::EINVAL || may_not, "{why}");
        assert!(said().contains(why) || may_not, "{}", said());
    }
    let mut enforced = -1;
    // SAFETY: the number is there.
    assert_eq!(unsafe { rts_enforced(&raw mut enforced) }, libc::ESRCH);
    assert_eq!((start(&OPTIONS), start(&OPTIONS)), (0, libc::EALREADY));
    // SAFETY: the number is there.
    assert_eq!(unsafe { rts_enforced(&raw mut enforced) }, 0);
    assert_eq!(enforced, 0);
    assert!(said().contains("ordinary thread"), "{}", said());
}

/// Where no coordinator is, or none can be of what is asked for.
fn joins_only_what_is_there() {
    type Change = fn(&mut rts_options, &mut rts_coordinator);
    let wrong: [(Change, c_int, &str); 10] = [
        (|_, with| with.size = 8, libc::EINVAL, "8 bytes"),
        (|_, with| with.reserved = 1, libc::EINVAL, "`reserved` 1"),
        (
            |_, with| with.name = BAD.as_ptr(),
            libc::EINVAL,
            "not UTF-8",
        ),
        (
            |_, with| with.directory = c"".as_ptr(),
            libc::EINVAL,
            "directory",
        ),
        (
            |_, with| with.program = c"".as_ptr(),
            libc::EINVAL,
            "program",
        ),
        (
            |of, _| of.processor = LAXITY_ANY_PROCESSOR,
            libc::EINVAL,
            "say which",
        ),
        (
            |of, _| of.rank = RTS_RESERVED,
            libc::EINVAL,
            "ask for RTS_FIFO",
        ),
        (|of, _| of.policy = RTS_EDF, libc::EINVAL, "are RTS_RMDP"),
        (|of, _| of.policy = 9, libc::EINVAL, "policy 9"),
        (|_, _| (), libc::ECONNREFUSED, "/nonexistent/laxity"),
    ];
    for (change, errno, why) in wrong {
        let (mut options, mut with) = (ON_0, COORDINATOR);
        change(&mut options, &mut with);
        // SAFETY: both are there, and the names are constants.
        let refused = unsafe { rts_join(&raw const options, &raw const with) };
        assert_eq!(refused, errno, "{why}: {}", said());
        assert!(said().contains(why), "{}", said());
    }
    // SAFETY: null is refused.
    let nowhere = unsafe {
        [
            rts_join(ptr::null(), &COORDINATOR),
            rts_join(&ON_0, ptr::null()),
            rts_departed(ptr::null_mut()),
        ]
    };
    assert_eq!(nowhere, [libc::EFAULT; 3]);
}

/// Nobody's name: it is no UTF-8.
const BAD: &CStr = c"\xff";

/// Numbers that are no upcall's, nor that of one beside others: none of them is a bug, and none is admitted.
fn numbers_without_measure_are_refused() {
    type Change = fn(&mut rts_attributes);
    const ALL: u64 = u64::MAX;
    let wrong: [Change; 7] = [
        |of| of.pdu_ns = ALL,
        |of| (of.pdu_ns, of.batch) = (ALL, u32::MAX),
        |of| (of.pdu_ns, of.batch, of.quantum) = (ALL, u32::MAX, u32::MAX),
        |of| (of.pdu_ns, of.period_ns) = (ALL, ALL),
        |of| (of.batch, of.quantum) = (u32::MAX, 1),
        |of| of.deadline_ns = 1,
        |of| of.period_ns = 1,
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        let (error, rtu) = create(change);
        assert_eq!((error, rtu), (libc::EBUSY, -1), "{number}: {}", said());
        assert!(
            said().starts_with("not admitted: upcall may be late: "),
            "{}",
            said()
        );
    }
}

fn wrong_arguments_are_refused() {
    type Change = fn(&mut rts_attributes);
    let wrong: [(Change, c_int, &str); 17] = [
        (|of| of.name = BAD.as_ptr(), libc::EINVAL, "not UTF-8"),
        (
            |of| of.flags = RTS_ARRIVALS | RTS_DESCRIPTOR,
            libc::EINVAL,
            "flag 3: say one of RTS_ARRIVALS",
        ),
        (|of| of.size = 3, libc::EINVAL, "3 bytes"),
        (|of| of.batch = 0, libc::EINVAL, "batch of 0"),
        (|of| of.on_overrun = 9, libc::EINVAL, "overruns 9"),
        (|of| of.quantum = 0, libc::EINVAL, "quantum of 0"),
        (|of| of.flags = 16, libc::EINVAL, "flag 16"),
        (|of| of.flags = RTS_DESCRIPTOR, libc::EBADF, "descriptor -1"),
        (
            |of| (of.flags, of.fd) = (RTS_DESCRIPTOR, 900_000),
            libc::EBADF,
            "descriptor 900000",
        ),
        (
            |of| (of.flags, of.size) = (RTS_DESCRIPTOR, FIRST_SIZE),
            libc::EINVAL,
            "`fd` in attributes of size 64",
        ),
        (|of| of.when_full = 3, libc::EINVAL, "full queue 3"),
        (|of| of.group = 1, libc::EBADF, "1 is no group"),
        (|of| of.flags = RTS_AFTER, libc::EBADF, "0 is no upcall"),
        (
            |of| (of.flags, of.size) = (RTS_AFTER, SECOND_SIZE),
            libc::EINVAL,
            "`after` in attributes of size 72",
        ),
        (|of| of.period_ns = 0, libc::EINVAL, "period of 0"),
        (|of| of.deadline_ns = 1 << 20, libc::EINVAL, "after it"),
        (|of| of.pdu_ns = 2_000_000, libc::EBUSY, "would fit"),
    ];
    for (change, errno, why) in wrong {
        assert_eq!(create(change), (errno, -1), "{why}");
        assert!(said().contains(why), "{}", said());
    }
    let (attributes, mut rtu) = (ATTRIBUTES, 0);
    // SAFETY: null is allowed.
    let nowhere = unsafe {
        [
            rts_creat(&raw const attributes, None, ptr::null_mut(), &raw mut rtu),
            rts_creat(
                &raw const attributes,
                Some(handler),
                ptr::null_mut(),
                ptr::null_mut(),
            ),
            rts_sleep(ptr::null(), ptr::null_mut(), 0),
        ]
    };
    assert_eq!(nowhere, [libc::EFAULT; 3]);
}

/// Whatever is asked of an upcall that is none.
fn what_is_no_upcall_is_told() {
    let (none, mut counts) = (rts_set { bits: [0, 1 << 63] }, COUNTS);
    let (mut bound, mut usage) = (0, rts_usage::default());
    usage.size = size_of::<rts_usage>() as u32;
    for rtu in [0, -1, 127, 128, 500, c_int::MAX, c_int::MIN] {
        // SAFETY: all are there.
        let errors = unsafe {
            [
                rts_run(rtu),
                rts_suspend(rtu),
                rts_close(rtu),
                rts_release(rtu, 0, 0),
                rts_read(rtu, &raw mut counts),
                rts_name(rtu, [0; 9].as_mut_ptr(), 9),
                rts_bound(rtu, &raw mut bound),
                rts_ungroup(rtu),
                rts_usage_of(rtu, &raw mut usage, ptr::null_mut()),
                rts_sleep(&raw const none, ptr::null_mut(), 0),
            ]
        };
        assert_eq!(errors, [libc::EBADF; 10], "{rtu}");
        assert!(said().contains("127 is no upcall"), "{}", said());
    }
    let mut group = 0;
    let budget = rts_budget {
        size: size_of::<rts_budget>() as u32,
        reserved: 0,
        name: BAD.as_ptr(),
        service_ns: 1,
        period_ns: 2,
    };
    // SAFETY: all are there, and the name is a constant.
    let named = unsafe { rts_group(&raw const budget, &raw mut group) };
    assert_eq!(named, libc::EINVAL);
    assert!(said().contains("not UTF-8"), "{}", said());
    // SAFETY: null is refused.
    let nowhere = unsafe {
        [
            rts_read(0, ptr::null_mut()),
            rts_list(ptr::null_mut()),
            rts_name(0, ptr::null_mut(), 9),
            rts_enforced(ptr::null_mut()),
            rts_bound(0, ptr::null_mut()),
            rts_usage_of(1, ptr::null_mut(), ptr::null_mut()),
            rts_group(ptr::null(), &raw mut group),
            rts_group(&raw const budget, ptr::null_mut()),
        ]
    };
    assert_eq!(nowhere, [libc::EFAULT; 8]);
    assert_eq!(rts_yield(ptr::null()), -1);
}

/// Who would be late is named, with what would fit; and what is said to fit does.
fn what_does_not_fit_is_refused_with_what_would() {
    let (error, half) = create(|of| (of.name, of.pdu_ns) = (c"half".as_ptr(), 450_000));
    assert_eq!((error, half), (0, 0), "{}", said());
    let more = |pdu_ns| {
        create(|of| {
            (of.name, of.period_ns, of.pdu_ns) = (c"more".as_ptr(), 2_000_000, pdu_ns);
        })
    };
    assert_eq!(more(1_500_000), (libc::EBUSY, -1));
    let why = said();
    let fits = why.split("with at most ").nth(1);
    assert!(
        why.starts_with("not admitted: half may be late") && fits.is_some(),
        "{why}"
    );
    let number = fits.unwrap().split(' ').next().unwrap();
    let micros: u64 = number.trim_end_matches("us").parse().expect(&why);
    let (error, fitted) = more(micros * 1_000);
    assert_eq!(error, 0, "{}", said());
    assert_eq!([half, fitted].map(|rtu| rts_close(rtu)), [0; 2]);
}

/// As many as there are places for, listed with their names.
fn places_are_counted_and_listed() {
    let small = || {
        create(|of| {
            (of.name, of.size) = (c"small".as_ptr(), FIRST_SIZE);
            (of.period_ns, of.pdu_ns) = (1_000_000_000, 1_000);
        })
    };
    for rtu in 0..RTS_MOST {
        assert_eq!(small(), (0, rtu as c_int), "{}", said());
    }
    assert_eq!(small(), (libc::ENFILE, -1));
    assert!(said().contains("no room"), "{}", said());
    let list = || {
        let mut there = rts_set::default();
        // SAFETY: the set is there.
        assert_eq!(unsafe { rts_list(&raw mut there) }, 0);
        there.bits
    };
    assert_eq!(list(), [u64::MAX, u64::MAX >> 1]);
    let mut name = [1; 7];
    // SAFETY: there is so much room.
    let named = [5, 6].map(|room| unsafe { rts_name(9, name.as_mut_ptr(), room) });
    assert_eq!(named, [libc::ERANGE, 0]);
    assert_eq!(name.map(|byte| byte as u8), *b"small\0\x01");
    for rtu in 0..RTS_MOST {
        assert_eq!(rts_close(rtu as c_int), 0);
    }
    assert_eq!(list(), [0; 2]);
}

/// Nothing of all that starts an executor.
fn nobody_is_there() {
    let (mut enforced, mut process) = (-1, -1);
    what_is_no_upcall_is_told();
    // SAFETY: both numbers are there.
    let errors = unsafe {
        [
            rts_enforced(&raw mut enforced),
            rts_departed(&raw mut process),
            rts_settle(1),
        ]
    };
    assert_eq!(errors, [libc::ESRCH; 3]);
    assert_eq!((enforced, process), (-1, 0));
}

#[test]
fn what_is_wrong_is_a_number_and_what_is_right_is_done() {
    nobody_is_there();
    joins_only_what_is_there();
    starts_once_and_as_asked();
    wrong_arguments_are_refused();
    numbers_without_measure_are_refused();
    what_is_no_upcall_is_told();
    what_does_not_fit_is_refused_with_what_would();
    places_are_counted_and_listed();
    assert_eq!(rts_version(), RTS_VERSION);
    let (error, rtu) = create(|_| ());
    assert_eq!((error, rtu), (0, 0), "{}", said());
    assert_eq!(state(rtu).state, RTS_IS_SUSPENDED);
    assert_eq!(rts_release(rtu, 1, 2), libc::EINVAL);
    assert_eq!(rts_run(rtu), 0);
    let (all, mut idle) = (rts_set { bits: [1, 0] }, rts_set::default());
    // SAFETY: both sets are there.
    assert_eq!(unsafe { rts_sleep(&raw const all, &raw mut idle, 0) }, 0);
    assert_eq!((idle.bits, state(rtu).calls), ([1, 0], 1));
    let refused = REFUSED.each_ref().map(|told| told.load(Ordering::SeqCst));
    assert_eq!(refused[..7], [libc::EDEADLK; 7]);
    assert_eq!(refused[7..], [libc::EALREADY; 2]);
    // It has no coordinator, so nobody goes of whom it would be told.
    let mut process = -1;
    // SAFETY: the number is there.
    let departed = unsafe { rts_departed(&raw mut process) };
    assert_eq!((departed, process, rts_settle(1)), (0, 0, libc::EBADF));
    assert_eq!(rts_close(rtu), 0);
    assert_eq!(rts_close(rtu), libc::EBADF);

    let (error, fed) = create(|of| of.flags = RTS_ARRIVALS);
    assert_eq!((error, fed), (0, 0), "{}", said());
    let released = [0; 3].map(|_| rts_release(fed, 1, 2));
    assert_eq!(released, [0, 0, libc::EAGAIN]);
    // More than the batch is the batch.
    let (error, whole) = create(|of| of.quantum = 5);
    assert_eq!((error, whole), (0, 1), "{}", said());
    assert_eq!(rts_end(), 0);
    assert_eq!(rts_run(fed), libc::EBADF);
    nobody_is_there();
}
