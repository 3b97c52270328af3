//! A link of a node, live: a socket of UDP to the neighbour, and perhaps a class of its interface.

use std::net::SocketAddr;

use laxity_linux::net::egress::{Bottleneck, Egress, Own, Owned, unenforced};
use laxity_linux::net::{Settings, Stirs, UdpLink, way};
use laxity_linux::os::clock;
use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Left, Link as _, LinkError, Memory as _};
use laxity_model::{Instant, Span};
use laxity_net::channels::frame::ETHER_TYPE;
use laxity_net::channels::path::Handed;

use super::error::Error;
use super::setup::Neighbour;
use super::spare::Spare;

/// So many frames may come between two looks of the thread.
const POSTED: usize = 512;
/// q: so many frames are out of reach.
pub(super) const REACH: usize = 2;
/// So many frames are taken in a look, and then those that wait for another link have their turn.
const AT_ONCE: usize = 32;

/// A link of a node.
#[derive(Debug)]
pub(super) struct Way {
    link: UdpLink,
    /// Where frames are made.
    frame: Box<[u8]>,
    /// In front of frames, while they are with the link.
    headers: Vec<Box<[u8]>>,
    /// Until when nothing is asked of a link that failed.
    rests_until: Instant,
    /// Until when nothing is taken in, if anything waits for that.
    deaf_until: Option<Instant>,
    failures: u64,
    _owned: Option<Owned>,
}

/// After a failure.
const RESTS: Span = Span::from_millis(1);

impl Way {
    /// Opens it, in this thread's network namespace; and tells all that stands against a bound on it.
    pub(super) fn open(local: SocketAddr, to: &Neighbour) -> Result<(Self, Vec<String>), Error> {
        let interface = way::to(to.at.ip()).map_err(|why| Error::NoWay(to.at, why))?;
        let mut reasons = Vec::new();
        let owned = match to.own {
            Own::Class => take(&interface, to).map_err(|why| reasons.push(why)).ok(),
            Own::None => None,
        };
        let stands = unenforced(&interface, to.own, to.rate.get());
        reasons.extend(stands.iter().map(ToString::to_string));
        let settings = Settings {
            posted: POSTED,
            reach: REACH,
            class: owned.as_ref().map(Owned::class),
            ..Settings::default()
        };
        let mut link = UdpLink::open_bare(local, to.at, ETHER_TYPE, &settings)?;
        let none = |why: LinkError| Error::Link(to.at, why);
        let mut memory = link.allocate(POSTED + REACH + 1).map_err(none)?;
        let headers = memory.split_off(POSTED);
        let length = link.facts().mtu + HEADER;
        for memory in memory {
            // There is room for as many as are posted.
            let _ = link.post(memory);
        }
        let way = Self {
            link,
            frame: vec![0; length].into(),
            headers,
            rests_until: Instant::ZERO,
            deaf_until: None,
            failures: 0,
            _owned: owned,
        };
        Ok((way, reasons))
    }

    /// What it carries behind a header of Ethernet, in bytes.
    pub(super) fn mtu(&self) -> usize {
        self.link.facts().mtu
    }

    /// As a descriptor.
    pub(super) const fn link(&self) -> &UdpLink {
        &self.link
    }

    /// Whether a frame has left, the oldest of those of which that was not said yet.
    pub(super) fn has_left(&mut self, now: Instant) -> bool {
        let memory = self.link.sent(now);
        let has_left = memory.is_some();
        self.headers.extend(memory);
        has_left
    }

    /// Hands over frames that came, a bounded number; whether there may be more. Who takes them says of each whether it was granted.
    pub(super) fn came(
        &mut self,
        (stirs, spare): (&Stirs, &mut Spare),
        mut to: impl FnMut(Instant, Instant, &mut [u8]) -> bool,
    ) -> bool {
        let mut now = clock::now();
        if self.deaf_until.is_some_and(|until| until > now) {
            return false;
        }
        if self.deaf_until.take().is_some() {
            // Else it is deaf until something is sent.
            self.failures += u64::from(stirs.hears(&self.link, true).is_err());
        }
        for _ in 0..AT_ONCE {
            let since = now;
            let is_granted = match self.link.receive(now) {
                Ok(Some(mut packet)) => {
                    let frame = &mut packet.memory.bytes_mut()[HEADER..packet.length];
                    let is_granted = to(now, packet.at, frame);
                    // It was posted before.
                    let _ = self.link.post(packet.memory);
                    is_granted
                }
                Ok(None) if !self.link.has_discarded() => return false,
                Ok(None) => false,
                Err(_) => {
                    self.failures += 1;
                    return false;
                }
            };
            now = clock::now();
            if is_granted {
                continue;
            }
            self.deaf_until = spare.spent(since, now);
            if self.deaf_until.is_some() {
                // Else it is woken for nothing.
                self.failures += u64::from(stirs.hears(&self.link, false).is_err());
                return false;
            }
        }
        true
    }

    /// Whether a frame can be handed over now.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        !self.headers.is_empty() && self.rests_until <= now
    }

    /// From when on that is so of a link that has failed, or something is taken in again.
    pub(super) fn rests_until(&self, now: Instant) -> Option<Instant> {
        let fails = (self.rests_until > now).then_some(self.rests_until);
        [fails, self.deaf_until].into_iter().flatten().min()
    }

    /// Lets somebody make a frame, and sends it.
    pub(super) fn fill<T>(
        &mut self,
        now: Instant,
        make: impl FnOnce(&mut [u8], &mut dyn FnMut(&[u8]) -> Handed) -> T,
    ) -> T {
        let Self {
            link,
            frame,
            headers,
            rests_until,
            failures,
            ..
        } = self;
        make(frame, &mut |frame| {
            let Some(header) = headers.pop() else {
                return Handed::NoRoom;
            };
            let left = Left::default();
            let Err((header, why)) = link.queue_gathered(header, HEADER, &[frame], left, now)
            else {
                return Handed::Taken;
            };
            headers.push(header);
            match why {
                LinkError::Full => {
                    *rests_until = now.checked_add(RESTS).unwrap_or(Instant::MAX);
                    Handed::NoRoom
                }
                // What waits meanwhile is late in any case.
                _ => {
                    *failures += 1;
                    Handed::Refused
                }
            }
        })
    }
}

fn take(interface: &str, to: &Neighbour) -> Result<Owned, String> {
    let egress = Egress {
        rate: to.rate.get(),
        overhead: to.overhead,
        bottleneck: if to.is_shaped {
            Bottleneck::Class
        } else {
            Bottleneck::Below
        },
        single_segments: true,
    };
    Owned::take(interface, egress).map_err(|error| error.to_string())
}
