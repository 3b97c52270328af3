//! Why a channel is not to be, or is no more.

use core::num::NonZeroU32;

use laxity_model::Span;
use laxity_model::channels::asked::{Fits, Scarce, Shortage};
use laxity_model::channels::signalling::{Cause, HostId, Refusal};
use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::layout::Malformed;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(in crate::channels) struct CauseLayout {
    kind: U32,
    host: U32,
    silent: U32,
}

impl From<Cause> for CauseLayout {
    fn from(cause: Cause) -> Self {
        let nobody = HostId(0);
        let (kind, host, silent) = match cause {
            Cause::Closed(host) => (1, host, nobody),
            Cause::Died(host) => (2, host, nobody),
            Cause::Lost { by, silent } => (3, by, silent),
            Cause::Restarted(host) => (4, host, nobody),
            Cause::Unanswered(host) => (5, host, nobody),
            Cause::Unrefreshed(host) => (6, host, nobody),
            Cause::Unknown(host) => (7, host, nobody),
            Cause::Nonsense(host) => (8, host, nobody),
        };
        Self {
            kind: U32::new(kind),
            host: host.0.into(),
            silent: silent.0.into(),
        }
    }
}

impl CauseLayout {
    pub(in crate::channels) fn cause(self) -> Result<Cause, Malformed> {
        let [host, silent] = [self.host, self.silent].map(|host| HostId(host.get()));
        let cause = match self.kind.get() {
            1 => Cause::Closed(host),
            2 => Cause::Died(host),
            3 => return Ok(Cause::Lost { by: host, silent }),
            4 => Cause::Restarted(host),
            5 => Cause::Unanswered(host),
            6 => Cause::Unrefreshed(host),
            7 => Cause::Unknown(host),
            8 => Cause::Nonsense(host),
            _ => return Err(Malformed::Field("why a channel ended")),
        };
        if silent != HostId(0) {
            return Err(Malformed::Field("what is to be zero"));
        }
        Ok(cause)
    }
}

/// One layout for all refusals: what one has not is 0.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(in crate::channels) struct RefusalLayout {
    kind: U32,
    /// Who says it; of `Declined` the number.
    at: U32,
    /// The resource, the next host, or the kind of cause.
    what: U32,
    /// Of a cause its second host.
    silent: U32,
    lacks: U64,
    within: U64,
    interval: U64,
    size: U64,
}

impl From<Refusal<Shortage>> for RefusalLayout {
    fn from(refusal: Refusal<Shortage>) -> Self {
        let plain = |kind: u32, HostId(at), what: u32, lacks: u64| Self {
            kind: kind.into(),
            at: at.into(),
            what: what.into(),
            silent: U32::ZERO,
            lacks: lacks.into(),
            within: U64::ZERO,
            interval: U64::ZERO,
            size: U64::ZERO,
        };
        let span = |span: Option<Span>| U64::new(span.map_or(0, Span::as_nanos));
        match refusal {
            Refusal::Short {
                at,
                short: Shortage { of, lacks, fits },
            } => Self {
                within: span(fits.within),
                interval: span(fits.interval),
                size: fits.size.map_or(0, |size| size.get().into()).into(),
                ..plain(1, at, number(of), lacks)
            },
            Refusal::Time { at, lacks } => plain(2, at, 0, lacks.as_nanos()),
            Refusal::NoLink { at, to } => plain(3, at, to.0, 0),
            Refusal::Busy { at } => plain(4, at, 0, 0),
            Refusal::Nonsense { at } => plain(5, at, 0, 0),
            Refusal::Declined(number) => plain(6, HostId(number), 0, 0),
            Refusal::Ended(cause) => {
                let cause = CauseLayout::from(cause);
                Self {
                    silent: cause.silent,
                    ..plain(7, HostId(cause.host.get()), cause.kind.get(), 0)
                }
            }
        }
    }
}

impl RefusalLayout {
    pub(in crate::channels) fn refusal(self) -> Result<Refusal<Shortage>, Malformed> {
        let (at, what) = (HostId(self.at.get()), self.what.get());
        let lacks = self.lacks.get();
        let refusal = match self.kind.get() {
            1 => Refusal::Short {
                at,
                short: Shortage {
                    of: scarce(what)?,
                    lacks,
                    fits: self.fits()?,
                },
            },
            2 => Refusal::Time {
                at,
                lacks: Span::from_nanos(lacks),
            },
            3 => Refusal::NoLink {
                at,
                to: HostId(what),
            },
            4 => Refusal::Busy { at },
            5 => Refusal::Nonsense { at },
            6 => Refusal::Declined(at.0),
            7 => {
                let cause = CauseLayout {
                    kind: self.what,
                    host: self.at,
                    silent: self.silent,
                };
                Refusal::Ended(cause.cause()?)
            }
            _ => return Err(Malformed::Field("why a channel is refused")),
        };
        // What it says beyond that is nothing that the encoder would have written.
        if Self::from(refusal) != self {
            return Err(Malformed::Field("what is to be zero"));
        }
        Ok(refusal)
    }

    fn fits(self) -> Result<Fits, Malformed> {
        let span = |span: U64| Some(Span::from_nanos(span.get())).filter(|span| !span.is_zero());
        let size = u32::try_from(self.size.get());
        let size = size.map_err(|_| Malformed::Field("the size that would fit"))?;
        Ok(Fits {
            within: span(self.within),
            interval: span(self.interval),
            size: NonZeroU32::new(size),
        })
    }
}

const fn number(scarce: Scarce) -> u32 {
    match scarce {
        Scarce::Processor => 1,
        Scarce::Link => 2,
        Scarce::Buffers => 3,
        Scarce::Quota => 4,
        Scarce::Search => 5,
    }
}

fn scarce(said: u32) -> Result<Scarce, Malformed> {
    let all = [
        Scarce::Processor,
        Scarce::Link,
        Scarce::Buffers,
        Scarce::Quota,
        Scarce::Search,
    ];
    let found = all.into_iter().find(|scarce| number(*scarce) == said);
    found.ok_or(Malformed::Field("a resource"))
}
