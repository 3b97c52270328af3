//! What C asks for, in Rust's terms; and a handler's quantum.

use std::ffi::{CStr, c_void};
use std::num::NonZeroU32;

use laxity::upcall::{First, OnOverrun, Timing};
use laxity::upcalls::{Call, Options, Pace, Policy, Rank, Spec};
use laxity::{Instant, Service, Span};

use super::{
    RTS_ABORT, RTS_ARRIVALS, RTS_ASKS_SUSPEND, RTS_CATCH_UP, RTS_EDF, RTS_END, RTS_FAIR, RTS_FIFO,
    RTS_RESERVED, RTS_RMDP, RTS_SKIP, RTS_SUSPEND, rts_attributes, rts_funargs, rts_options,
    rts_smstr,
};
use crate::edge::Failure;
use crate::{LAXITY_ANY_PROCESSOR, asked};

/// A block of the caller's, on its way to the executor's thread.
pub(super) struct Pcb(pub(super) *mut c_void);

// SAFETY: whoever passes it says that another thread may have it until the upcall is closed.
#[allow(unsafe_code)]
unsafe impl Send for Pcb {}

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
    };
    let mut arg = rts_funargs {
        pcb,
        smstr: &raw mut smstr,
    };
    // SAFETY: `rts_creat` was told that it may be called so, and both structures outlive the call.
    unsafe { handler(&raw mut arg) };
    let done = smstr.pdu_count.saturating_sub(call.done());
    if done < call.now() {
        call.finish_after(done);
    }
    match smstr.asks {
        0 => {}
        RTS_ASKS_SUSPEND => call.suspend(),
        _ => call.end(),
    }
}

fn invalid(what: &str, value: impl std::fmt::Display) -> Failure {
    Failure::new(libc::EINVAL, format!("there is no {what} {value}"))
}

pub(super) fn wanted(options: &rts_options) -> Result<Options, Failure> {
    let processor = match usize::try_from(options.processor) {
        Ok(processor) => Some(processor),
        Err(_) if options.processor == LAXITY_ANY_PROCESSOR => None,
        Err(_) => return Err(invalid("processor", options.processor)),
    };
    let rank = match options.rank {
        RTS_FIFO => Rank::Fifo {
            priority: u8::try_from(options.priority)
                .map_err(|_| invalid("FIFO priority", options.priority))?,
            processor,
        },
        RTS_RESERVED => Rank::Reserved(asked(&options.reservation)?),
        RTS_FAIR => Rank::Fair,
        other => return Err(invalid("rank", other)),
    };
    Ok(Options {
        rank,
        policy: match options.policy {
            RTS_RMDP => Policy::Rmdp,
            RTS_EDF => Policy::Edf,
            other => return Err(invalid("policy", other)),
        },
        events: options.events,
        ..Options::default()
    })
}

/// What is asked for.
///
/// # Safety
///
/// The name is null or ends with a zero.
pub(super) unsafe fn spec(attributes: &rts_attributes) -> Result<Spec, Failure> {
    let count = |what, value| NonZeroU32::new(value).ok_or_else(|| invalid(what, value));
    for (what, value) in [
        ("period of", attributes.period_ns),
        ("PDU of", attributes.pdu_ns),
    ] {
        if value == 0 {
            return Err(invalid(what, "0 ns"));
        }
    }
    let some = |nanos: u64| (nanos > 0).then_some(nanos);
    let name = match attributes.name.is_null() {
        true => "upcall".to_owned(),
        // SAFETY: the caller says that it ends.
        false => unsafe { CStr::from_ptr(attributes.name) }
            .to_string_lossy()
            .into_owned(),
    };
    let catch_up = |at_most| OnOverrun::CatchUp { at_most };
    Ok(Spec {
        name,
        timing: Timing {
            first: some(attributes.first_ns).map_or(First::AfterAPeriod, |first| {
                First::At(Instant::from_nanos(first))
            }),
            period: Span::from_nanos(attributes.period_ns),
            batch: count("batch of", attributes.batch)?,
            quantum: count("quantum of", attributes.quantum)?,
            on_overrun: match attributes.on_overrun {
                RTS_SKIP => OnOverrun::SKIP,
                RTS_CATCH_UP => catch_up(attributes.at_most),
                RTS_SUSPEND => OnOverrun::Suspend,
                RTS_END => OnOverrun::End,
                RTS_ABORT => OnOverrun::EndProcess,
                other => return Err(invalid("consequence of overruns", other)),
            },
        },
        service: Service::from_nanos(attributes.pdu_ns),
        deadline: some(attributes.deadline_ns).map(Span::from_nanos),
        pace: match attributes.flags {
            0 => Pace::Timer,
            RTS_ARRIVALS => Pace::Arrivals,
            other => return Err(invalid("flag", other)),
        },
        ..Spec::each(Span::from_nanos(attributes.period_ns), Service::ZERO)
    })
}
