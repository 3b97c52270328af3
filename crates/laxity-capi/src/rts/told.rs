//! What is told of upcalls: which there are, their names, and what they have done.

use std::ffi::{c_char, c_int};
use std::ptr;

use laxity::upcalls::{Counts, State};

use super::{
    RTS_IS_ACTIVE, RTS_IS_ENDED, RTS_IS_OVERRUN, RTS_IS_SUSPENDED, What, all, named, rts_counts,
    rts_set,
};
use crate::edge::{self, Failure, edge};

/// Tells what it has done.
///
/// # Safety
///
/// `counts` is null or points to as many bytes as its field `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_read(rtu: c_int, counts: *mut rts_counts) -> c_int {
    edge(|| {
        // SAFETY: the caller says so.
        unsafe { edge::writable(counts, "counts") }?;
        let named = named(rtu)?;
        let (seen, state) = match &named.what {
            What::Paced { upcall, .. } => (upcall.counts(), upcall.state()),
            What::Virtual(one) => (
                Counts {
                    calls: one.calls(),
                    ..Counts::default()
                },
                one.state(),
            ),
        };
        let told = told(&seen, &state);
        // SAFETY: the caller says so.
        unsafe { edge::tell(counts, told, "counts") }
    })
}

/// Tells which upcalls there are.
///
/// # Safety
///
/// `rtus` is null or points to a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_list(rtus: *mut rts_set) -> c_int {
    edge(|| {
        // SAFETY: the caller says that it is null or points to a set.
        let rtus = unsafe { rtus.as_mut() }.ok_or(Failure::null("rtus"))?;
        *rtus = all().set_of(|_| true);
        Ok(())
    })
}

/// Tells the name of an upcall.
///
/// # Safety
///
/// `name` is null or points to `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rts_name(rtu: c_int, name: *mut c_char, room: usize) -> c_int {
    edge(|| {
        if name.is_null() {
            return Err(Failure::null("name"));
        }
        let named = named(rtu)?;
        let bytes = named.name.as_bytes_with_nul();
        if bytes.len() > room {
            let text = format!("the name and its zero have {} bytes", bytes.len());
            return Err(Failure::new(libc::ERANGE, text));
        }
        // SAFETY: not null, and by the caller's word there is room for so many.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), bytes.len()) };
        Ok(())
    })
}

fn told(seen: &Counts, state: &State) -> rts_counts {
    rts_counts {
        size: 0,
        state: match state {
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
        longest_chain_ns: seen.longest_end_to_end.as_nanos(),
        longest_quantum_ns: seen.longest_quantum.as_nanos(),
        over_service: seen.over_service,
        dropped: seen.dropped,
        late: seen.late,
    }
}
