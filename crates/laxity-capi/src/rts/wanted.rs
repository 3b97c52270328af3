//! What C asks for, in Rust's terms.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::mem::offset_of;
use std::num::NonZeroU32;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use laxity::upcall::{First, OnOverrun, Timing};
use laxity::upcalls::{Options, Overhead, Pace, Policy, Rank, Spec, WhenFull};
use laxity::{Instant, Service, Span};

use super::group::group;
use super::{
    RTS_ABORT, RTS_AFTER, RTS_ARRIVALS, RTS_CATCH_UP, RTS_DESCRIPTOR, RTS_DROP_OLDEST, RTS_EDF,
    RTS_END, RTS_FAIR, RTS_FIFO, RTS_PAUSES, RTS_REJECT, RTS_RESERVED, RTS_RMDP, RTS_SKIP,
    RTS_SUSPEND, RTS_WARN, named, rts_attributes, rts_options,
};
use crate::edge::Failure;
use crate::{LAXITY_ANY_PROCESSOR, asked, laxity_request};

/// What is no such thing, and what would be one.
pub(super) fn invalid(what: &str, value: impl fmt::Display, right: &str) -> Failure {
    let text = format!("there is no {what} {value}: {right}");
    Failure::new(libc::EINVAL, text)
}

pub(super) fn wanted(options: &rts_options) -> Result<Options, Failure> {
    let processor = match usize::try_from(options.processor) {
        Ok(processor) => Some(processor),
        Err(_) if options.processor == LAXITY_ANY_PROCESSOR => None,
        Err(_) => {
            let right = "say one by the kernel's number, or LAXITY_ANY_PROCESSOR";
            return Err(invalid("processor", options.processor, right));
        }
    };
    let rank = match options.rank {
        RTS_FIFO => Rank::Fifo {
            priority: u8::try_from(options.priority)
                .map_err(|_| invalid("FIFO priority", options.priority, "say from 1 to 99"))?,
            processor,
        },
        RTS_RESERVED if options.reservation.size as usize != size_of::<laxity_request>() => {
            let right = "RTS_OPTIONS_INIT sets it";
            let size = options.reservation.size;
            return Err(invalid("reservation of size", size, right));
        }
        RTS_RESERVED => Rank::Reserved(asked(&options.reservation)?),
        RTS_FAIR => Rank::Fair,
        other => {
            let right = "say RTS_FIFO, RTS_RESERVED or RTS_FAIR";
            return Err(invalid("rank", other, right));
        }
    };
    Ok(Options {
        rank,
        policy: match options.policy {
            RTS_RMDP => Policy::Rmdp,
            RTS_EDF => Policy::Edf,
            other => return Err(invalid("policy", other, "say RTS_RMDP or RTS_EDF")),
        },
        events: options.events,
        overhead: overhead(options),
        ..Options::default()
    })
}

/// What admission charges beside the work; of an older structure what is usual.
fn overhead(options: &rts_options) -> Overhead {
    let usual = Overhead::default();
    let service = |nanos, usual| some(nanos).map_or(usual, Service::from_nanos);
    Overhead {
        late: some(options.late_ns).map_or(usual.late, Span::from_nanos),
        each: service(options.call_ns, usual.each),
        quantum: service(options.quantum_ns, usual.quantum),
    }
}

/// Where 0 is to say nothing.
fn some(nanos: u64) -> Option<u64> {
    (nanos > 0).then_some(nanos)
}

/// What releases it, and how often.
fn paced(attributes: &rts_attributes) -> Result<Spec, Failure> {
    let each = |pace| {
        let period = Span::from_nanos(attributes.period_ns);
        Ok(Spec {
            pace,
            ..Spec::each(period, Service::ZERO)
        })
    };
    let is_known = |field| attributes.size as usize > field;
    match attributes.flags & !RTS_PAUSES {
        0 => each(Pace::Timer),
        RTS_ARRIVALS => each(Pace::Arrivals),
        RTS_DESCRIPTOR if !is_known(offset_of!(rts_attributes, fd)) => Err(invalid(
            "`fd` in attributes of size",
            attributes.size,
            SET_SIZE,
        )),
        RTS_AFTER if !is_known(offset_of!(rts_attributes, after)) => Err(invalid(
            "`after` in attributes of size",
            attributes.size,
            SET_SIZE,
        )),
        RTS_AFTER => {
            let before = named(attributes.after)?;
            Ok(Spec::after(before.paced()?, Service::ZERO))
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
            each(Pace::Descriptor(Arc::new(own?)))
        }
        other => {
            let right = "say one of RTS_ARRIVALS, RTS_DESCRIPTOR and RTS_AFTER at the most, and RTS_PAUSES or not";
            Err(invalid("flag", other, right))
        }
    }
}

const SET_SIZE: &str = "RTS_ATTRIBUTES_INIT sets that of all there is";

fn no_descriptor(fd: i32) -> Failure {
    Failure::new(libc::EBADF, format!("descriptor {fd} is not open"))
}

/// What is asked for.
///
/// # Safety
///
/// The name is null or ends with a zero.
pub(super) unsafe fn spec(attributes: &rts_attributes) -> Result<Spec, Failure> {
    let count =
        |what, value| NonZeroU32::new(value).ok_or_else(|| invalid(what, value, "say 1 or more"));
    let is_chained = attributes.flags & RTS_AFTER != 0;
    for (what, is_nothing) in [
        ("period of", attributes.period_ns == 0 && !is_chained),
        ("PDU of", attributes.pdu_ns == 0),
    ] {
        if is_nothing {
            return Err(invalid(what, "0 ns", "say more"));
        }
    }
    let catch_up = |at_most| OnOverrun::CatchUp { at_most };
    let paced = paced(attributes)?;
    Ok(Spec {
        // SAFETY: the caller says that it ends.
        name: unsafe { text(attributes.name, "upcall") }?,
        timing: Timing {
            first: some(attributes.first_ns).map_or(First::AfterAPeriod, |first| {
                First::At(Instant::from_nanos(first))
            }),
            period: some(attributes.period_ns).map_or(paced.timing.period, Span::from_nanos),
            batch: count("batch of", attributes.batch)?,
            quantum: count("quantum of", attributes.quantum)?,
            on_overrun: match attributes.on_overrun {
                RTS_SKIP => OnOverrun::SKIP,
                RTS_CATCH_UP => catch_up(attributes.at_most),
                RTS_SUSPEND => OnOverrun::Suspend,
                RTS_END => OnOverrun::End,
                RTS_ABORT => OnOverrun::EndProcess,
                other => {
                    let right = "say RTS_SKIP, RTS_CATCH_UP, RTS_SUSPEND, RTS_END or RTS_ABORT";
                    return Err(invalid("consequence of overruns", other, right));
                }
            },
            pauses: attributes.flags & RTS_PAUSES != 0,
        },
        service: Service::from_nanos(attributes.pdu_ns),
        deadline: some(attributes.deadline_ns).map(Span::from_nanos),
        when_full: match attributes.when_full {
            RTS_REJECT => WhenFull::Reject,
            RTS_DROP_OLDEST => WhenFull::DropOldest,
            RTS_WARN => WhenFull::Warn,
            other => {
                let right = "say RTS_REJECT, RTS_DROP_OLDEST or RTS_WARN";
                return Err(invalid("way with a full queue", other, right));
            }
        },
        group: match attributes.group {
            0 => None,
            number => Some(group(number)?),
        },
        ..paced
    })
}

/// A name.
///
/// # Safety
///
/// It is null or ends with a zero.
pub(super) unsafe fn text(name: *const c_char, default: &str) -> Result<String, Failure> {
    // SAFETY: the caller says so.
    let Some(bytes) = (unsafe { bytes(name) }) else {
        return Ok(default.to_owned());
    };
    let text = str::from_utf8(bytes).map_err(|_| {
        let shown = String::from_utf8_lossy(bytes);
        Failure::new(libc::EINVAL, format!("the name {shown:?} is not UTF-8"))
    });
    text.map(str::to_owned)
}

/// What stands there before a zero; `None` of null.
///
/// # Safety
///
/// As of [`text`]; and it stays as long as what is told of it.
pub(super) unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller says that it ends.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}
