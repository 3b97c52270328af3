//! The one kind of link that a live driver has: any interface, with those clients that are found at its hook.
//!
//! It costs a match and a count for each packet, and nothing where no client is found early. So no type above it depends on what the interface is.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use laxity_linux::net::{AnyLink, AnyMemory};
use laxity_linux::os::clock;
use laxity_model::nif::link::{Facts, Left, Link, LinkError, Losses, Received};
use laxity_model::nif::registry::ClientId;
use laxity_model::{Instant, Span};

use super::hook::Hook;

/// An interface as its driver has it.
#[derive(Debug)]
pub struct LiveLink {
    link: AnyLink,
    hook: Option<Arc<Hook>>,
    /// When it is looked again what was lost below the hook.
    looks_at: Instant,
}

/// So often that is looked at.
const LOOKS_EVERY: Span = Span::from_millis(100);

impl LiveLink {
    pub(super) const fn new(link: AnyLink, hook: Option<Arc<Hook>>) -> Self {
        Self {
            link,
            hook,
            looks_at: Instant::ZERO,
        }
    }
}

impl AsFd for LiveLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Link for LiveLink {
    type Memory = AnyMemory;

    fn facts(&self) -> &Facts {
        self.link.facts()
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<AnyMemory>, LinkError> {
        self.link.allocate(packets)
    }

    fn post(&mut self, memory: AnyMemory) -> Result<(), AnyMemory> {
        self.link.post(memory)?;
        if let Some(hook) = &self.hook {
            hook.posted();
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, now: Instant) -> Result<Option<Received<AnyMemory>>, LinkError> {
        let received = self.link.receive(now)?;
        let Some(hook) = &self.hook else {
            return Ok(received);
        };
        if received.is_none()
            && now >= self.looks_at
            && let AnyLink::Xdp(link) = &self.link
        {
            self.looks_at = now.checked_add(LOOKS_EVERY).unwrap_or(Instant::MAX);
            if let Some(lost) = link.lost_below() {
                hook.mend(lost);
            }
        }
        Ok(received.map(|mut packet| {
            let number = packet.early.unwrap_or(0);
            packet.early = hook.took(number, packet.at, packet.stamp);
            packet
        }))
    }

    fn ended(&mut self, client: ClientId) {
        if let Some(hook) = &self.hook {
            hook.ended(client, clock::now());
        }
        self.link.ended(client);
    }

    fn has_discarded(&self) -> bool {
        self.link.has_discarded()
    }

    fn send(
        &mut self,
        memory: AnyMemory,
        length: usize,
        now: Instant,
    ) -> Result<(), (AnyMemory, LinkError)> {
        self.link.send(memory, length, now)
    }

    fn queue(
        &mut self,
        memory: AnyMemory,
        length: usize,
        left: Left,
        now: Instant,
    ) -> Result<(), (AnyMemory, LinkError)> {
        self.link.queue(memory, length, left, now)
    }

    fn queue_gathered(
        &mut self,
        memory: AnyMemory,
        length: usize,
        behind: &[&[u8]],
        left: Left,
        now: Instant,
    ) -> Result<bool, (AnyMemory, LinkError)> {
        self.link.queue_gathered(memory, length, behind, left, now)
    }

    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        self.link.flush(now)
    }

    fn is_silent(&self) -> bool {
        self.link.is_silent()
    }

    fn finishes(&self) -> bool {
        self.link.finishes()
    }

    fn sent(&mut self, now: Instant) -> Option<AnyMemory> {
        self.link.sent(now)
    }

    fn has_thrown_away(&self) -> bool {
        self.link.has_thrown_away()
    }

    fn reclaim(&mut self) -> Option<AnyMemory> {
        self.link.reclaim()
    }

    fn losses(&self) -> Losses {
        self.link.losses()
    }
}
