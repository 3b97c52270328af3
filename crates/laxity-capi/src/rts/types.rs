//! What the functions of `include/rts.h` are given and give back, as C lays it out. Structures of which there may be others of other versions begin with their size, and grow at their end.

use std::ffi::{c_char, c_void};

use crate::edge::Versioned;
use crate::laxity_request;

/// Of this library, as `rts_version` tells it.
pub const RTS_VERSION: u32 = 5;
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
/// They do, and a descriptor does.
pub const RTS_DESCRIPTOR: u32 = 2;
/// Its handler may return in the middle of the last quantum of a call, too.
pub const RTS_PAUSES: u32 = 8;
/// The end of another's call does.
pub const RTS_AFTER: u32 = 4;
/// An arrival that finds no room is dropped, and whoever has it arrive is told.
pub const RTS_REJECT: u32 = 0;
/// The oldest is dropped for it.
pub const RTS_DROP_OLDEST: u32 = 1;
/// It is dropped, and the handler is told.
pub const RTS_WARN: u32 = 2;
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
    /// Of [`RTS_FIFO`] and of `rts_join`, by the kernel's number, or [`LAXITY_ANY_PROCESSOR`](crate::LAXITY_ANY_PROCESSOR).
    pub processor: i32,
    /// So many arrivals wait for each upcall.
    pub events: u32,
    /// Of [`RTS_RESERVED`].
    pub reservation: laxity_request,
    /// A call may begin so long after its release, in nanoseconds; 0 is as usual; since version 5.
    pub late_ns: u64,
    /// What admission charges each call beside its work, in nanoseconds; 0 is as usual; since version 5.
    pub call_ns: u64,
    /// What it charges each quantum, in nanoseconds; 0 is as usual; since version 5.
    pub quantum_ns: u64,
}

// SAFETY: numbers.
unsafe impl Versioned for rts_options {
    const FIRST: usize = std::mem::offset_of!(Self, late_ns);
}

/// Which coordinator gives the executor its place. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_coordinator {
    /// `sizeof(rts_coordinator)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Of the process, for lists; null is "upcalls".
    pub name: *const c_char,
    /// Where its socket is; null is where the environment says, or the user's own.
    pub directory: *const c_char,
    /// What is started where there is none; null is what the environment says, or the command `laxity`.
    pub program: *const c_char,
}

// SAFETY: numbers and pointers that may be null.
unsafe impl Versioned for rts_coordinator {
    const FIRST: usize = size_of::<Self>();
}

/// What an upcall is to be. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_attributes {
    /// `sizeof(rts_attributes)`.
    pub size: u32,
    /// [`RTS_ARRIVALS`], [`RTS_DESCRIPTOR`] or [`RTS_AFTER`], and [`RTS_PAUSES`], or 0.
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
    /// Of [`RTS_DESCRIPTOR`]; since version 2.
    pub fd: i32,
    /// [`RTS_REJECT`] and so on; since version 3.
    pub when_full: u32,
    /// Of [`RTS_AFTER`]; since version 3.
    pub after: i32,
    /// Whose budget it has; since version 3.
    pub group: i32,
}

// SAFETY: numbers and a pointer that may be null.
unsafe impl Versioned for rts_attributes {
    const FIRST: usize = std::mem::offset_of!(Self, fd);
}

/// What a group is to be. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_budget {
    /// `sizeof(rts_budget)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// For messages; null is "group".
    pub name: *const c_char,
    /// What its upcalls have together, in nanoseconds.
    pub service_ns: u64,
    /// Of every so much, in nanoseconds.
    pub period_ns: u64,
}

// SAFETY: numbers and a pointer that may be null.
unsafe impl Versioned for rts_budget {
    const FIRST: usize = size_of::<Self>();
}

/// What the upcalls of a group have done. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(non_camel_case_types, reason = "as C has it")]
pub struct rts_usage {
    /// `sizeof(rts_usage)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// What they took, in nanoseconds.
    pub used_ns: u64,
    /// Quanta that waited for the next period.
    pub waits: u64,
}

// SAFETY: numbers.
unsafe impl Versioned for rts_usage {
    const FIRST: usize = size_of::<Self>();
}

/// What a handler and its executor tell each other of a call. `size` comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
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
    /// Somebody more urgent waits, and a look has told so.
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
    /// When the first of its chain was released; since version 3.
    pub origin_ns: u64,
    /// Arrivals that found no room since the call before; since version 3.
    pub dropped: u64,
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
    /// From the release of the first of its chain, in nanoseconds; since version 3.
    pub longest_chain_ns: u64,
    /// On the clock, in nanoseconds; since version 3.
    pub longest_quantum_ns: u64,
    /// Calls with a quantum that took longer than was declared; since version 3.
    pub over_service: u64,
    /// Arrivals that found no room; since version 3.
    pub dropped: u64,
    /// Calls that ended, or were cut off, after their deadline; since version 3.
    pub late: u64,
}

// SAFETY: numbers.
unsafe impl Versioned for rts_counts {
    const FIRST: usize = std::mem::offset_of!(Self, longest_chain_ns);
}
