//! A handler's quantum, and its look for a yield.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use laxity::Instant;
use laxity::upcalls::Call;

use super::{RTS_ASKS_SUSPEND, rts_funargs, rts_smstr};
use crate::edge;

/// A block of the caller's, on its way to the executor's thread.
pub(super) struct Pcb(pub(super) *mut c_void);

// SAFETY: whoever passes it says that another thread may have it until the upcall is closed.
#[allow(unsafe_code)]
unsafe impl Send for Pcb {}

/// The quantum that a thread is in.
#[derive(Clone, Copy)]
struct Under {
    arg: *const rts_funargs,
    smstr: *mut rts_smstr,
    call: *mut Call<'static>,
}

thread_local! {
    static UNDER_WAY: Cell<Option<Under>> = const { Cell::new(None) };
}

/// One quantum of a handler.
pub(super) fn quantum(
    handler: unsafe extern "C" fn(*mut rts_funargs),
    pcb: *mut c_void,
    call: &mut Call,
) {
    let nanos = |at: Option<Instant>| at.map_or(0, Instant::as_nanos);
    let mut smstr = rts_smstr {
        size: size_of::<rts_smstr>() as u32,
        pdu_count: call.done(),
        pdu_goal: call.done() + call.now(),
        batch: call.batch(),
        yield_request: 0,
        overruns: call.overruns.into(),
        overran: call.paced.overrun.into(),
        asks: 0,
        missed: call.paced.missed,
        release_ns: call.paced.release.as_nanos(),
        began_ns: call.began.as_nanos(),
        previous_ended_ns: nanos(call.previous_ended),
        arrived: call.arrived.unwrap_or_default(),
        origin_ns: call.origin.as_nanos(),
        dropped: call.dropped,
    };
    let mut arg = rts_funargs {
        pcb,
        smstr: &raw mut smstr,
    };
    let under = Under {
        arg: &raw const arg,
        smstr: &raw mut smstr,
        call: (&raw mut *call).cast(),
    };
    UNDER_WAY.set(Some(under));
    // SAFETY: `rts_creat` was told that it may be called so, and both structures outlive the call.
    unsafe { handler(&raw mut arg) };
    UNDER_WAY.set(None);
    let done = smstr.pdu_count.saturating_sub(call.done());
    match smstr.yield_request {
        0 if done < call.now() => call.finish_after(done),
        _ => call.pause_after(done),
    }
    match smstr.asks {
        0 => {}
        RTS_ASKS_SUSPEND => call.suspend(),
        _ => call.end(),
    }
}

/// Whether somebody more urgent waits than the handler that asks: 1 or 0; -1 where the caller is in no quantum with this argument.
#[unsafe(no_mangle)]
pub extern "C" fn rts_yield(arg: *const rts_funargs) -> c_int {
    let under = UNDER_WAY.get().filter(|under| under.arg == arg);
    let Some(under) = under else {
        edge::leave("only a handler looks for a yield, with the argument that it was called with");
        return -1;
    };
    // SAFETY: while its handler is at work nobody else has the call, and both are there until it returns; a handler looks for one thing at a time.
    let asked = unsafe { (*under.call).should_yield() };
    if asked {
        // SAFETY: as above.
        unsafe { (*under.smstr).yield_request = 1 };
    }
    asked.into()
}
