//! What C asks for, in Rust's terms.

use std::ffi::CStr;
use std::mem::offset_of;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use laxity::upcall::{First, OnOverrun, Timing};
use laxity::upcalls::{Options, Pace, Policy, Rank, Spec};
use laxity::{Instant, Service, Span};

use super::{
    RTS_ABORT, RTS_ARRIVALS, RTS_CATCH_UP, RTS_DESCRIPTOR, RTS_EDF, RTS_END, RTS_FAIR, RTS_FIFO,
    RTS_PAUSES, RTS_RESERVED, RTS_RMDP, RTS_SKIP, RTS_SUSPEND, rts_attributes, rts_options,
};
use crate::edge::Failure;
use crate::{LAXITY_ANY_PROCESSOR, asked, laxity_request};

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
        RTS_RESERVED if options.reservation.size as usize != size_of::<laxity_request>() => {
            return Err(invalid("reservation of size", options.reservation.size));
        }
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

fn pace(attributes: &rts_attributes) -> Result<Pace, Failure> {
    if attributes.reserved != 0 {
        return Err(invalid("meaning of `reserved`", attributes.reserved));
    }
    match attributes.flags & !RTS_PAUSES {
        0 => Ok(Pace::Timer),
        RTS_ARRIVALS => Ok(Pace::Arrivals),
        RTS_DESCRIPTOR if attributes.size as usize <= offset_of!(rts_attributes, fd) => {
            Err(invalid("`fd` in attributes of size", attributes.size))
        }
        RTS_DESCRIPTOR if attributes.fd < 0 => Err(no_descriptor(attributes.fd)),
        RTS_DESCRIPTOR => {
            // SAFETY: it is not negative; and whether it is open is what its duplicate tells.
            let given = unsafe { BorrowedFd::borrow_raw(attributes.fd) };
            let own = given
                .try_clone_to_owned()
                .map_err(|error| match error.raw_os_error() {
                    Some(libc::EBADF) | None => no_descriptor(attributes.fd),
                    Some(errno) => Failure::new(errno, error.to_string()),
                });
            Ok(Pace::Descriptor(Arc::new(own?)))
        }
        other => Err(invalid("flag", other)),
    }
}

fn no_descriptor(fd: i32) -> Failure {
    Failure::new(libc::EBADF, format!("descriptor {fd} is not open"))
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
            pauses: attributes.flags & RTS_PAUSES != 0,
        },
        service: Service::from_nanos(attributes.pdu_ns),
        deadline: some(attributes.deadline_ns).map(Span::from_nanos),
        pace: pace(attributes)?,
        ..Spec::each(Span::from_nanos(attributes.period_ns), Service::ZERO)
    })
}
