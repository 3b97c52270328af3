//! Upcalls from C: whatever a program does wrong is a number and a message. One test, as a process has one executor.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use laxity_capi::{
    LAXITY_ANY_PROCESSOR, LAXITY_DEADLINE, RTS_ARRIVALS, RTS_FAIR, RTS_IS_SUSPENDED, RTS_RMDP,
    RTS_SKIP, laxity_message, laxity_request, rts_attributes, rts_close, rts_counts, rts_creat,
    rts_end, rts_funargs, rts_options, rts_read, rts_release, rts_run, rts_set, rts_sleep,
    rts_start, rts_suspend,
};

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
};

/// What the calls returned that a handler made which wait.
static WAITED: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

unsafe extern "C" fn handler(arg: *mut rts_funargs) {
    // SAFETY: it is called with both structures.
    let (pcb, call) = unsafe { ((*arg).pcb, &mut *(*arg).smstr) };
    call.pdu_count = call.pdu_goal;
    let all = rts_set { bits: [1, 0] };
    // SAFETY: the sets are there, or null where that is allowed.
    let slept = unsafe { rts_sleep(&raw const all, ptr::null_mut(), 0) };
    WAITED[0].store(slept, Ordering::SeqCst);
    WAITED[1].store(rts_end(), Ordering::SeqCst);
    // Its own descriptor: what a handler asks is done after its quantum.
    assert_eq!(rts_suspend(pcb as usize as c_int), 0);
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

fn state(rtu: c_int) -> rts_counts {
    let mut counts = rts_counts {
        size: size_of::<rts_counts>() as u32,
        ..rts_counts::default()
    };
    // SAFETY: it is as long as it says.
    assert_eq!(unsafe { rts_read(rtu, &raw mut counts) }, 0, "{}", said());
    counts
}

fn starts_once_and_as_asked() {
    // SAFETY: the structure is there.
    let start = |options: &rts_options| unsafe { rts_start(options) };
    let wrong = [
        rts_options { size: 4, ..OPTIONS },
        rts_options {
            policy: 9,
            ..OPTIONS
        },
        rts_options { rank: 9, ..OPTIONS },
        rts_options {
            processor: -2,
            ..OPTIONS
        },
    ];
    for options in wrong {
        assert_eq!(start(&options), libc::EINVAL);
        assert!(!said().is_empty());
    }
    assert_eq!((start(&OPTIONS), start(&OPTIONS)), (0, libc::EALREADY));
}

fn wrong_arguments_are_refused() {
    type Change = fn(&mut rts_attributes);
    let wrong: [(Change, c_int, &str); 6] = [
        (|of| of.size = 3, libc::EINVAL, "3 bytes"),
        (|of| of.batch = 0, libc::EINVAL, "batch of 0"),
        (|of| of.on_overrun = 9, libc::EINVAL, "overruns 9"),
        (|of| of.flags = 8, libc::EINVAL, "flag 8"),
        (|of| of.period_ns = 0, libc::EINVAL, "period of 0"),
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
    assert_eq!(
        [rts_run(0), rts_suspend(-1), rts_close(500)],
        [libc::EBADF; 3]
    );
}

#[test]
fn what_is_wrong_is_a_number_and_what_is_right_is_done() {
    starts_once_and_as_asked();
    wrong_arguments_are_refused();
    let (error, rtu) = create(|_| ());
    assert_eq!((error, rtu), (0, 0), "{}", said());
    assert_eq!(state(rtu).state, RTS_IS_SUSPENDED);
    assert_eq!(rts_run(rtu), 0);
    let (all, mut idle) = (rts_set { bits: [1, 0] }, rts_set::default());
    // SAFETY: both sets are there.
    assert_eq!(unsafe { rts_sleep(&raw const all, &raw mut idle, 0) }, 0);
    assert_eq!((idle.bits, state(rtu).calls), ([1, 0], 1));
    let waited = WAITED
        .each_ref()
        .map(|waited| waited.load(Ordering::SeqCst));
    assert_eq!(waited, [libc::EDEADLK; 2]);
    assert_eq!(rts_close(rtu), 0);
    assert_eq!(rts_close(rtu), libc::EBADF);

    let (error, fed) = create(|of| of.flags = RTS_ARRIVALS);
    assert_eq!((error, fed), (0, 0), "{}", said());
    let released = [0; 3].map(|_| rts_release(fed, 1, 2));
    assert_eq!(released, [0, 0, libc::EAGAIN]);
    assert_eq!(rts_end(), 0);
    assert_eq!(rts_run(fed), libc::EBADF);
}
