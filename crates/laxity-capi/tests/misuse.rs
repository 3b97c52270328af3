//! Whatever a program does wrong is a number and a message.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;
use std::thread;

use laxity_capi::{
    LAXITY_ANY_PROCESSOR, LAXITY_DEADLINE, LAXITY_SLOTS, laxity_delivery, laxity_enforced,
    laxity_handle, laxity_message, laxity_read, laxity_release, laxity_request, laxity_reserve,
    laxity_sleep_until_ns,
};
use laxity_linux::doctor::rights::{self, Right};

const REQUEST: laxity_request = laxity_request {
    size: size_of::<laxity_request>() as u32,
    enforcer: LAXITY_DEADLINE,
    service_ns: 1_000_000,
    period_ns: 10_000_000,
    processor: LAXITY_ANY_PROCESSOR,
    flags: 0,
};

/// What is in a handle's place before something is reserved.
const BEFORE: laxity_handle = 7;

fn said() -> String {
    // SAFETY: a message of this thread, which makes no other call meanwhile.
    unsafe { CStr::from_ptr(laxity_message()) }
        .to_str()
        .unwrap()
        .to_owned()
}

fn reserve(request: &laxity_request) -> (i32, laxity_handle) {
    let mut handle = BEFORE;
    // SAFETY: both are there.
    let error = unsafe { laxity_reserve(request, &raw mut handle) };
    (error, handle)
}

fn read(handle: laxity_handle) -> (i32, laxity_delivery) {
    let mut delivery = laxity_delivery {
        size: size_of::<laxity_delivery>() as u32,
        ..laxity_delivery::default()
    };
    // SAFETY: it is as long as it says.
    let error = unsafe { laxity_read(handle, &raw mut delivery) };
    (error, delivery)
}

#[test]
fn wrong_arguments_are_refused_with_what_is_wrong() {
    type Change = fn(&mut laxity_request);
    let wrong = |change: Change| {
        let mut request = REQUEST;
        change(&mut request);
        (reserve(&request), said())
    };
    let cases: [(Change, &str); 10] = [
        (|request| request.size = 16, "16 bytes"),
        (|request| request.enforcer = 9, "enforcer 9"),
        (|request| request.service_ns = 0, "more than zero"),
        (|request| request.period_ns = 5, "at most"),
        (|request| request.service_ns = u64::MAX, "at most"),
        (|request| request.period_ns = u64::MAX, "more than a day"),
        (|request| request.processor = -2, "processor -2"),
        (|request| request.processor = 77, "not on 77 alone"),
        (|request| request.processor = 0, "LAXITY_ANY_PROCESSOR"),
        (|request| request.flags = 6, "flags: 6"),
    ];
    for (change, why) in cases {
        let (refused, said) = wrong(change);
        assert_eq!(refused, (libc::EINVAL, BEFORE), "{why}");
        assert!(said.contains(why), "{said}");
    }
    let (refused, said) = wrong(|request| {
        request.enforcer = LAXITY_SLOTS;
        request.processor = 60_000;
    });
    assert_eq!(refused, (libc::EINVAL, BEFORE), "{said}");
    assert!(said.contains("processor 60000 may not be used"), "{said}");
}

#[test]
fn what_is_nowhere_is_refused() {
    let (request, mut handle) = (REQUEST, 0);
    // SAFETY: null is allowed.
    let errors = unsafe {
        [
            laxity_reserve(ptr::null(), &raw mut handle),
            laxity_reserve(&raw const request, ptr::null_mut()),
            laxity_read(1, ptr::null_mut()),
            laxity_enforced(1, ptr::null_mut()),
        ]
    };
    assert_eq!(errors, [libc::EFAULT; 4]);
    assert_eq!(laxity_sleep_until_ns(u64::MAX), libc::EINVAL);
}

#[test]
fn handles_that_are_none_are_told() {
    for handle in [0, u64::MAX] {
        assert_eq!(laxity_release(handle), libc::EBADF);
        assert_eq!(read(handle).0, libc::EBADF);
        assert!(said().contains("no reservation"), "{}", said());
    }
}

#[test]
fn a_handle_is_its_threads_to_give_back_and_anybodys_to_read() {
    let Some(_live) = rights::require(&[Right::Deadline]) else {
        return;
    };
    let (error, handle) = reserve(&REQUEST);
    assert_eq!(error, 0, "{}", said());
    assert_eq!(reserve(&REQUEST), (libc::EALREADY, BEFORE));
    thread::spawn(move || {
        assert_eq!(laxity_release(handle), libc::EPERM);
        assert_eq!(read(handle).0, 0);
        let mut enforced = -1;
        // SAFETY: the number is there.
        assert_eq!(unsafe { laxity_enforced(handle, &raw mut enforced) }, 0);
        assert_eq!(enforced, 1, "{}", said());
        // One that the thread does not give back goes with it.
        let (error, left) = reserve(&REQUEST);
        assert_eq!(error, 0, "{}", said());
        left
    })
    .join()
    .map(|left| assert_eq!(read(left).0, libc::EBADF))
    .unwrap();
    assert_eq!(laxity_release(handle), 0);
    assert_eq!(laxity_release(handle), libc::EBADF);
    assert_eq!(read(handle).0, libc::EBADF);
}
