//! Real-time upcalls for C and C++. `include/rts.h` is the interface, and says what each function does; `examples/upcalls.c` uses it.

mod wanted;

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity::Instant;
use laxity::upcalls::{Call, Error, Options, State, Upcall, Upcalls};

use crate::edge::{self, Failure, edge};
use crate::laxity_request;
use wanted::{Pcb, quantum, spec, wanted};

/// Rate monotonic with delayed preemption.
pub const RTS_RMDP: u32 = 0;
/// Earliest deadline first.
pub const RTS_EDF: u32 = 1;
/// `SCHED_FIFO`, at a priority.
pub const RTS_FIFO: u32 = 0;
/// A reservation.
pub const RTS_RESERVED: u32 = 1;
/// An ordinary thread.
pub const RTS_FAIR: u32 = 2;
/// Releases that come while a call is at work are missed.
pub const RTS_SKIP: u32 = 0;
/// The last of them are called late.
pub const RTS_CATCH_UP: u32 = 1;
/// The upcall is suspended.
pub const RTS_SUSPEND: u32 = 2;
/// The upcall ends.
pub const RTS_END: u32 = 3;
/// The process ends.
pub const RTS_ABORT: u32 = 4;
/// Arrivals release it.
pub const RTS_ARRIVALS: u32 = 1;
/// Upcalls of a process.
pub const RTS_MOST: u32 = 127;
/// It is not called.
pub const RTS_IS_SUSPENDED: u32 = 0;
/// It is called at its releases.
pub const RTS_IS_ACTIVE: u32 = 1;
/// Suspended, because it overran.
pub const RTS_IS_OVERRUN: u32 = 2;
/// It has ended.
pub const RTS_IS_ENDED: u32 = 3;
/// A handler wants to be suspended.
pub const RTS_ASKS_SUSPEND: u32 = 1;
/// A handler wants to end.
pub const RTS_ASKS_END: u32 = 2;

/// What the executor of the process is to be. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_options {
    /// `sizeof(rts_options)`.
    pub size: u32,
    /// [`RTS_RMDP`] or [`RTS_EDF`].
    pub policy: u32,
    /// [`RTS_FIFO`], [`RTS_RESERVED`] or [`RTS_FAIR`].
    pub rank: u32,
    /// Of [`RTS_FIFO`], 1 to 99.
    pub priority: u32,
    /// Of [`RTS_FIFO`], by the kernel's number, or [`LAXITY_ANY_PROCESSOR`](crate::LAXITY_ANY_PROCESSOR).
    pub processor: i32,
    /// So many arrivals wait for each upcall.
    pub events: u32,
    /// Of [`RTS_RESERVED`].
    pub reservation: laxity_request,
}

/// What an upcall is to be. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_attributes {
    /// `sizeof(rts_attributes)`.
    pub size: u32,
    /// [`RTS_ARRIVALS`], or 0.
    pub flags: u32,
    /// For messages; null is "upcall".
    pub name: *const c_char,
    /// Its first release, in nanoseconds of `CLOCK_MONOTONIC`; 0 is a period after it runs first.
    pub first_ns: u64,
    /// From release to release, in nanoseconds.
    pub period_ns: u64,
    /// From a release to when its call is due, in nanoseconds; 0 is the period.
    pub deadline_ns: u64,
    /// The most that a PDU takes, in nanoseconds.
    pub pdu_ns: u64,
    /// PDUs a period.
    pub batch: u32,
    /// PDUs between two looks.
    pub quantum: u32,
    /// [`RTS_SKIP`] and so on.
    pub on_overrun: u32,
    /// Of [`RTS_CATCH_UP`].
    pub at_most: u32,
}

/// What a handler and its executor tell each other of a call. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_smstr {
    /// Of this structure.
    pub size: u32,
    /// PDUs that are done in this call.
    pub pdu_count: u32,
    /// So many are to be done when the handler returns.
    pub pdu_goal: u32,
    /// So many are to be done in this call.
    pub batch: u32,
    /// Somebody more urgent waited when this quantum began.
    pub yield_request: u32,
    /// 1: its own next release has come.
    pub overruns: u32,
    /// 1: the call before was still at work when this release came.
    pub overran: u32,
    /// What the handler wants.
    pub asks: u32,
    /// Releases between the call before and this one that came to nothing.
    pub missed: u64,
    /// When it was to begin.
    pub release_ns: u64,
    /// When it began.
    pub began_ns: u64,
    /// When the call before ended; 0: there was none.
    pub previous_ended_ns: u64,
    /// What came with the arrival.
    pub arrived: [u64; 2],
}

/// What a handler is called with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_funargs {
    /// The protocol control block.
    pub pcb: *mut c_void,
    /// The call.
    pub smstr: *mut rts_smstr,
}

/// A handler.
#[allow(non_camel_case_types, reason = "as C has it")]
pub type rts_handler = Option<unsafe extern "C" fn(arg: *mut rts_funargs)>;

/// A set of descriptors.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_set {
    /// A bit each.
    pub bits: [u64; 2],
}

/// What an upcall has done. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_counts {
    /// `sizeof(rts_counts)`.
    pub size: u32,
    /// [`RTS_IS_SUSPENDED`] and so on.
    pub state: u32,
    /// Calls that have begun.
    pub calls: u64,
    /// PDUs that were done.
    pub pdus: u64,
    /// Calls that were at work when their next release came.
    pub overruns: u64,
    /// Releases that came to nothing for that.
    pub missed: u64,
    /// How often it yielded.
    pub yields: u64,
    /// From a release to the begin of its call, in nanoseconds.
    pub most_late_ns: u64,
    /// From a release to the end of its call, in nanoseconds.
    pub longest_response_ns: u64,
}

/// The executor of the process, and its upcalls by descriptor. Held for as long as it takes to look, never while an executor is waited for.
#[derive(Default)]
struct All {
    executor: Option<Arc<Upcalls>>,
    upcalls: Vec<Option<Arc<Upcall>>>,
}

fn all() -> MutexGuard<'static, All> {
    static ALL: Mutex<All> = Mutex::new(All {
        executor: None,
        upcalls: Vec::new(),
    });
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let errno = match &error {
            Error::Lacks(why) => why.errno().unwrap_or(libc::EPERM),
            Error::Hold(_) => libc::EPERM,
            Error::NotAdmitted(_) => libc::EBUSY,
            Error::Full => libc::ENFILE,
            Error::Busy => libc::EAGAIN,
            Error::Inside => libc::EDEADLK,
            Error::NoAnswer(_) => libc::ETIMEDOUT,
            Error::Ended | Error::Panicked(_) => libc::ESRCH,
            Error::Over => libc::ECANCELED,
            _ => libc::EIO,
        };
        Self::new(errno, error.to_string())
    }
}

/// Starts the executor of the process.
///
/// # Safety
///
/// `options` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_start(options: *const rts_options) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        let options = unsafe { edge::sized(options, "options") }?;
        let mut all = all();
        if all.executor.is_some() {
            let text = "the executor of this process is started already".to_owned();
            return Err(Failure::new(libc::EALREADY, text));
        }
        all.executor = Some(Arc::new(Upcalls::start(wanted(&options)?)?));
        Ok(())
    })
}

/// Ends the executor of the process, with all upcalls.
#[unsafe(no_mangle)]
pub extern "C" fn rts_end() -> c_int {
    edge(|| {
        let All { executor, upcalls } = std::mem::take(&mut *all());
        if executor
            .as_ref()
            .is_some_and(|executor| executor.is_inside())
        {
            *all() = All { executor, upcalls };
            return Err(Error::Inside.into());
        }
        for upcall in upcalls.iter().flatten() {
            // It is over anyhow if the executor is.
            let _ = upcall.end();
        }
        Ok(())
    })
}

/// Makes an upcall.
///
/// # Safety
///
/// The pointers are null or point to what they say, what `attributes` points to is as long as its field `size` says, and its name ends with a zero. The handler may be called with `pcb` by
/// another thread until the upcall is closed, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_creat(
    attributes: *const rts_attributes,
    handler: rts_handler,
    pcb: *mut c_void,
    rtu: *mut c_int,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a number.
        let rtu = unsafe { rtu.as_mut() }.ok_or(Failure::null("rtu"))?;
        *rtu = -1;
        let handler = handler.ok_or(Failure::null("handler"))?;
        // SAFETY: the caller says so.
        let attributes = unsafe { edge::sized(attributes, "attributes") }?;
        // SAFETY: the caller says that its name ends.
        let spec = unsafe { spec(&attributes) }?;
        let executor = executor()?;
        let pcb = Pcb(pcb);
        let work = move |call: &mut Call| {
            let pcb = &pcb;
            quantum(handler, pcb.0, call);
        };
        let upcall = Arc::new(executor.create(spec, work)?);
        let mut all = all();
        let free = all.upcalls.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            all.upcalls.push(None);
            all.upcalls.len() - 1
        });
        all.upcalls[index] = Some(upcall);
        *rtu = index as c_int;
        Ok(())
    })
}

/// Calls it at its releases from now on.
#[unsafe(no_mangle)]
pub extern "C" fn rts_run(rtu: c_int) -> c_int {
    edge(|| Ok(upcall(rtu)?.run()?))
}

/// Does not call it any more until it runs again.
#[unsafe(no_mangle)]
pub extern "C" fn rts_suspend(rtu: c_int) -> c_int {
    edge(|| Ok(upcall(rtu)?.suspend()?))
}

/// Ends it.
#[unsafe(no_mangle)]
pub extern "C" fn rts_close(rtu: c_int) -> c_int {
    edge(|| {
        let closed = upcall(rtu)?;
        closed.end()?;
        let mut all = all();
        let place = all.upcalls.get_mut(rtu as usize);
        if let Some(place) = place
            && place
                .as_ref()
                .is_some_and(|there| Arc::ptr_eq(there, &closed))
        {
            *place = None;
        }
        Ok(())
    })
}

/// Waits until one of these is not active.
///
/// # Safety
///
/// The pointers are null or point to sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_sleep(
    rtus: *const rts_set,
    idle: *mut rts_set,
    until_ns: u64,
) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a set.
        let rtus = *unsafe { rtus.as_ref() }.ok_or(Failure::null("rtus"))?;
        let is_in = |rtu: &c_int| rtus.bits[*rtu as usize / 64] >> (*rtu % 64) & 1 == 1;
        let asked: Vec<c_int> = (0..128).filter(is_in).collect();
        let upcalls: Result<Vec<_>, _> = asked.iter().map(|rtu| upcall(*rtu)).collect();
        let upcalls = upcalls?;
        let each: Vec<&Upcall> = upcalls.iter().map(|upcall| &**upcall).collect();
        let executor = executor()?;
        let found = match until_ns {
            0 => executor.sleep(&each),
            until => executor.sleep_until(&each, Instant::from_nanos(until)),
        };
        let found = found?;
        // SAFETY: the caller says that it is null or points to a set.
        if let Some(idle) = unsafe { idle.as_mut() } {
            *idle = rts_set::default();
            for rtu in found.into_iter().map(|index| asked[index]) {
                idle.bits[rtu as usize / 64] |= 1 << (rtu % 64);
            }
        }
        Ok(())
    })
}

/// Something has arrived for it.
#[unsafe(no_mangle)]
pub extern "C" fn rts_release(rtu: c_int, first: u64, second: u64) -> c_int {
    edge(|| Ok(upcall(rtu)?.release([first, second])?))
}

/// Tells what it has done.
///
/// # Safety
///
/// `counts` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_read(rtu: c_int, counts: *mut rts_counts) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        let before = unsafe { edge::sized(counts, "counts") }?;
        let upcall = upcall(rtu)?;
        let seen = upcall.counts();
        let told = rts_counts {
            size: before.size,
            state: match upcall.state() {
                State::Suspended => RTS_IS_SUSPENDED,
                State::Active => RTS_IS_ACTIVE,
                State::Overran => RTS_IS_OVERRUN,
                State::Ended | State::Panicked(_) | State::Closed => RTS_IS_ENDED,
            },
            calls: seen.calls,
            pdus: seen.units,
            overruns: seen.overruns,
            missed: seen.missed,
            yields: seen.yields,
            most_late_ns: seen.most_late.as_nanos(),
            longest_response_ns: seen.longest_response.as_nanos(),
        };
        // SAFETY: not null, or it would have been refused, and as long as `sized` saw it to be.
        unsafe { counts.write(told) };
        Ok(())
    })
}

/// The executor of the process, started as it is by default where nobody has.
fn executor() -> Result<Arc<Upcalls>, Failure> {
    let mut all = all();
    if let Some(executor) = &all.executor {
        return Ok(Arc::clone(executor));
    }
    let executor = Arc::new(Upcalls::start(Options::default())?);
    all.executor = Some(Arc::clone(&executor));
    Ok(executor)
}

fn upcall(rtu: c_int) -> Result<Arc<Upcall>, Failure> {
    let found = usize::try_from(rtu).ok();
    let found = found.and_then(|rtu| all().upcalls.get(rtu).cloned().flatten());
    let unknown = || format!("{rtu} is no upcall, or was closed");
    found.ok_or_else(|| Failure::new(libc::EBADF, unknown()))
}
