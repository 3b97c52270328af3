//! laxity for C and C++. `include/laxity.h` is the interface, and says what each function does; `examples/reserve.c` uses all of it.
//!
//! Every function returns 0 or a number of `errno.h`, and leaves a message for the thread that called it. No panic goes through to the
//! caller. A handle is a number, not a pointer: one that was given back, or never given out, is an error and nothing worse.
#![allow(unsafe_code)]

mod edge;
mod handles;
mod rts;

use std::ffi::{c_char, c_int};
use std::time::Duration;

use laxity::{Enforcer, Grade, Instant, Request, Service, Span};

use edge::{Failure, Versioned, edge};
pub use rts::*;

/// A reservation that a thread holds; 0 is none.
#[allow(non_camel_case_types, reason = "as C has it")]
pub type laxity_handle = u64;

/// By the kernel's `SCHED_DEADLINE`.
pub const LAXITY_DEADLINE: u32 = 0;
/// By time slots.
pub const LAXITY_SLOTS: u32 = 1;
/// Nothing outside the slots.
pub const LAXITY_CONFINED: u32 = 1;
/// Any processor.
pub const LAXITY_ANY_PROCESSOR: i32 = -1;

/// What is asked for. `size` comes first, so that later versions can have more fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct laxity_request {
    /// `sizeof(laxity_request)`.
    pub size: u32,
    /// [`LAXITY_DEADLINE`] or [`LAXITY_SLOTS`].
    pub enforcer: u32,
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// The processor of the slots, by the kernel's number, or [`LAXITY_ANY_PROCESSOR`], as by [`LAXITY_DEADLINE`] always.
    pub processor: i32,
    /// [`LAXITY_CONFINED`], or 0.
    pub flags: u32,
}

// SAFETY: numbers.
unsafe impl Versioned for laxity_request {
    const FIRST: usize = size_of::<Self>();
}

/// What was received. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct laxity_delivery {
    /// `sizeof(laxity_delivery)`.
    pub size: u32,
    /// 1; or 0: nobody looks whether the machine stands still, as by `deadline`, and what was short may be its doing.
    pub halts_seen: u32,
    /// Processor time, in nanoseconds.
    pub service_ns: u64,
    /// The longest for which the thread was kept from the processor though it wanted it, in nanoseconds; by `deadline` at most.
    pub largest_gap_ns: u64,
    /// The same where the machine itself stood still.
    pub largest_gap_disturbed_ns: u64,
    /// Periods seen in which the machine did not stand still; or stretches of several, where `together` is more than 1.
    pub periods: u64,
    /// Of these, those with X less 5 % or more, or all that was wanted.
    pub kept: u64,
    /// Periods in which the machine stood still.
    pub disturbed: u64,
    /// Periods in which the thread used up what is reserved.
    pub overruns: u64,
    /// Periods of which nobody saw what the thread had.
    pub unseen: u64,
    /// Of the disturbed ones, those in which the thread is not seen to have had what is reserved.
    pub disturbed_short: u64,
    /// The most processor time from one look to the next, a period or so, in nanoseconds.
    pub most_ns: u64,
    /// What is counted as a period are so many: by `deadline` single ones of less than 20 ms are not seen.
    pub together: u64,
    /// Records that were lost of those by which all this is known: it may be wrong.
    pub events_lost: u64,
    /// The gap may have been as long as this, and nobody knows; 0 where that did not happen.
    pub largest_gap_possible_ns: u64,
}

// SAFETY: numbers.
unsafe impl Versioned for laxity_delivery {
    const FIRST: usize = size_of::<Self>();
}

/// Reserves for the calling thread.
///
/// # Safety
///
/// Both pointers are null or point to what they say, and what `request` points to is as long as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_reserve(
    request: *const laxity_request,
    handle: *mut laxity_handle,
) -> c_int {
    edge(|| {
        if handle.is_null() {
            return Err(Failure::null("handle"));
        }
        // SAFETY: the caller says so.
        let request = unsafe { edge::sized(request, "request") }?;
        let reserved = handles::reserve(&asked(&request)?)?;
        // SAFETY: the caller says that a number has its place there.
        unsafe { handle.write(reserved) };
        Ok(())
    })
}

/// Gives a reservation back, by the thread that made it.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_release(handle: laxity_handle) -> c_int {
    edge(|| handles::release(handle))
}

/// Tells what was received, to any thread.
///
/// # Safety
///
/// `delivery` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_read(
    handle: laxity_handle,
    delivery: *mut laxity_delivery,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        unsafe { edge::writable(delivery, "delivery") }?;
        let seen = handles::observer(handle)?.delivery();
        let seen = seen.map_err(|why| Failure::new(libc::ENODATA, why.to_string()))?;
        let told = laxity_delivery {
            size: 0,
            halts_seen: u32::from(!seen.halts_unseen),
            service_ns: seen.service.as_nanos(),
            largest_gap_ns: seen.largest_gap.as_nanos(),
            largest_gap_disturbed_ns: seen.largest_gap_disturbed.as_nanos(),
            periods: seen.periods,
            kept: seen.kept,
            disturbed: seen.disturbed,
            overruns: seen.overruns,
            unseen: seen.unseen,
            disturbed_short: seen.short_disturbed,
            most_ns: seen.most.as_nanos(),
            together: seen.together.max(1),
            events_lost: seen.events_lost,
            largest_gap_possible_ns: seen.largest_gap_possible.as_nanos(),
        };
        // SAFETY: the caller says so.
        unsafe { edge::tell(delivery, told, "delivery") }
    })
}

/// Tells whether a reservation was enforced until now, to any thread: 1 or 0. Where it was not, or that cannot be told, the message says why.
///
/// # Safety
///
/// `enforced` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_enforced(handle: laxity_handle, enforced: *mut c_int) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let enforced = unsafe { enforced.as_mut() }.ok_or(Failure::null("enforced"))?;
        let grade = handles::observer(handle)?.grade();
        *enforced = c_int::from(grade == Grade::Enforced);
        if let Some(reason) = grade.reason() {
            edge::leave(reason);
        }
        Ok(())
    })
}

/// What the last call of this thread that had something to say said; never null. It stays until another call of this thread says something, which is
/// put in the same place; the place is there until the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_message() -> *const c_char {
    edge::message()
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_now_ns() -> u64 {
    laxity::now().as_nanos()
}

/// Sleeps until this nanosecond of `CLOCK_MONOTONIC`, whatever signals are handled meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn laxity_sleep_until_ns(instant_ns: u64) -> c_int {
    edge(|| {
        let until = Instant::from_nanos(instant_ns);
        let away = Duration::from_nanos(until.saturating_since(laxity::now()).as_nanos());
        // The kernel's clock ends there.
        if away > Duration::from_secs(u64::from(u32::MAX)) {
            let text = format!("an instant {away:?} from now is none that comes");
            return Err(Failure::new(libc::EINVAL, text));
        }
        laxity::sleep_until(until);
        Ok(())
    })
}

fn asked(request: &laxity_request) -> Result<Request, Failure> {
    let service = Service::from_nanos(request.service_ns);
    let asked = Request::new(service, Span::from_nanos(request.period_ns))?;
    let asked = match request.enforcer {
        LAXITY_DEADLINE => asked.by(Enforcer::Deadline),
        LAXITY_SLOTS => asked.by(Enforcer::Slots),
        other => {
            let text = format!("there is no enforcer {other}: say LAXITY_DEADLINE or LAXITY_SLOTS");
            return Err(Failure::new(libc::EINVAL, text));
        }
    };
    let asked = match usize::try_from(request.processor) {
        Ok(processor) if request.enforcer == LAXITY_DEADLINE => {
            let text = format!(
                "by LAXITY_DEADLINE the thread may run on every processor, and not on {processor} alone: ask for LAXITY_ANY_PROCESSOR, or for LAXITY_SLOTS"
            );
            return Err(Failure::new(libc::EINVAL, text));
        }
        Ok(processor) => asked.on(processor),
        Err(_) if request.processor == LAXITY_ANY_PROCESSOR => asked,
        Err(_) => {
            let text = format!(
                "there is no processor {}: say one by the kernel's number, or LAXITY_ANY_PROCESSOR",
                request.processor
            );
            return Err(Failure::new(libc::EINVAL, text));
        }
    };
    match request.flags {
        0 => Ok(asked),
        LAXITY_CONFINED => Ok(asked.confined()),
        other => {
            let text = format!("there are no such flags: {other}: say LAXITY_CONFINED or 0");
            Err(Failure::new(libc::EINVAL, text))
        }
    }
}
