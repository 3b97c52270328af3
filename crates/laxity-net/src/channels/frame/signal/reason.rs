//! Why a channel is not to be, or is no more.

use core::num::NonZeroU64;

use zerocopy::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::layout::Malformed;

/// Why a channel has ended. Hosts are told by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// This host's application wanted it so.
    Closed(u32),
    /// This host's application has died.
    Died(u32),
    /// Nothing was heard any more.
    Lost {
        /// Who noticed.
        by: u32,
        /// Of whom.
        silent: u32,
    },
    /// This host's node has begun anew.
    Restarted(u32),
    /// Who is behind this host did not answer in time.
    Unanswered(u32),
    /// Who is before this host did not refresh it.
    Unrefreshed(u32),
    /// This host does not know it.
    Unknown(u32),
    /// This host was told what cannot be.
    Nonsense(u32),
}

/// What a hop has too little of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Resource {
    /// Time of a processor, in nanoseconds.
    Processor = 1,
    /// Time of a link, in nanoseconds.
    Link = 2,
    /// Buffers.
    Buffers = 3,
    /// What its user may have: channels, or bits a second.
    Quota = 4,
}

/// What would be granted instead, with everything else as it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Nearest {
    /// Within so many nanoseconds.
    pub within: Option<NonZeroU64>,
    /// A message in so many nanoseconds.
    pub interval: Option<NonZeroU64>,
    /// Messages of so many bytes.
    pub size: Option<NonZeroU64>,
}

/// Why a channel was not opened or changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Admission at a host.
    Short {
        /// Which.
        at: u32,
        /// Of what.
        resource: Resource,
        /// So much is missing, in the resource's unit.
        lacks: u64,
        /// What would fit.
        nearest: Nearest,
    },
    /// The smallest delays up to a host are more than the bound that was asked for.
    Time {
        /// Which.
        at: u32,
        /// By so many nanoseconds.
        lacks: u64,
    },
    /// A host has no link to the next one, or it is down.
    NoLink {
        /// Which.
        at: u32,
        /// The next one.
        to: u32,
    },
    /// A host takes nothing more on.
    Busy {
        /// Which.
        at: u32,
    },
    /// What was asked is none.
    Nonsense {
        /// Who says so.
        at: u32,
    },
    /// The far end's application does not want it, and says this number.
    Declined(u32),
    /// It ended before it was open.
    Ended(Cause),
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct CauseLayout {
    kind: U32,
    host: U32,
    silent: U32,
}

impl From<Cause> for CauseLayout {
    fn from(cause: Cause) -> Self {
        let (kind, host, silent) = match cause {
            Cause::Closed(host) => (1, host, 0),
            Cause::Died(host) => (2, host, 0),
            Cause::Lost { by, silent } => (3, by, silent),
            Cause::Restarted(host) => (4, host, 0),
            Cause::Unanswered(host) => (5, host, 0),
            Cause::Unrefreshed(host) => (6, host, 0),
            Cause::Unknown(host) => (7, host, 0),
            Cause::Nonsense(host) => (8, host, 0),
        };
        Self {
            kind: U32::new(kind),
            host: host.into(),
            silent: silent.into(),
        }
    }
}

impl CauseLayout {
    pub(super) fn cause(self) -> Result<Cause, Malformed> {
        let (host, silent) = (self.host.get(), self.silent.get());
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
        if silent != 0 {
            return Err(Malformed::Field("what is to be zero"));
        }
        Ok(cause)
    }
}

/// One layout for all refusals: what one has not is 0.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RefusalLayout {
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

impl From<Refusal> for RefusalLayout {
    fn from(refusal: Refusal) -> Self {
        let plain = |kind: u32, at: u32, what: u32, lacks: u64| Self {
            kind: kind.into(),
            at: at.into(),
            what: what.into(),
            silent: U32::ZERO,
            lacks: lacks.into(),
            within: U64::ZERO,
            interval: U64::ZERO,
            size: U64::ZERO,
        };
        let number = |value: Option<NonZeroU64>| U64::new(value.map_or(0, NonZeroU64::get));
        match refusal {
            Refusal::Short {
                at,
                resource,
                lacks,
                nearest,
            } => Self {
                within: number(nearest.within),
                interval: number(nearest.interval),
                size: number(nearest.size),
                ..plain(1, at, resource as u32, lacks)
            },
            Refusal::Time { at, lacks } => plain(2, at, 0, lacks),
            Refusal::NoLink { at, to } => plain(3, at, to, 0),
            Refusal::Busy { at } => plain(4, at, 0, 0),
            Refusal::Nonsense { at } => plain(5, at, 0, 0),
            Refusal::Declined(number) => plain(6, number, 0, 0),
            Refusal::Ended(cause) => {
                let cause = CauseLayout::from(cause);
                Self {
                    silent: cause.silent,
                    ..plain(7, cause.host.get(), cause.kind.get(), 0)
                }
            }
        }
    }
}

impl RefusalLayout {
    pub(super) fn refusal(self) -> Result<Refusal, Malformed> {
        let (at, what) = (self.at.get(), self.what.get());
        let lacks = self.lacks.get();
        let refusal = match self.kind.get() {
            1 => Refusal::Short {
                at,
                resource: resource(what)?,
                lacks,
                nearest: Nearest {
                    within: NonZeroU64::new(self.within.get()),
                    interval: NonZeroU64::new(self.interval.get()),
                    size: NonZeroU64::new(self.size.get()),
                },
            },
            2 => Refusal::Time { at, lacks },
            3 => Refusal::NoLink { at, to: what },
            4 => Refusal::Busy { at },
            5 => Refusal::Nonsense { at },
            6 => Refusal::Declined(at),
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
}

fn resource(number: u32) -> Result<Resource, Malformed> {
    let all = [
        Resource::Processor,
        Resource::Link,
        Resource::Buffers,
        Resource::Quota,
    ];
    let is_meant = |resource: &Resource| *resource as u32 == number;
    let found = all.into_iter().find(is_meant);
    found.ok_or(Malformed::Field("a resource"))
}
