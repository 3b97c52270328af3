//! The null device: what is sent takes its time and is gone, and nothing ever arrives.

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Received};
use laxity_model::nif::registry::ClientId;

use super::leaving::{Leaving, allocate, facts};

/// An interface behind which there is nobody.
#[derive(Debug)]
pub struct Null {
    facts: Facts,
    leaving: Leaving,
    posted: Vec<Box<[u8]>>,
}

impl Null {
    /// One of so many bits a second; 0: sending takes no time.
    #[must_use]
    pub fn new(rate: u64) -> Self {
        let facts = facts("null", 0, 1500);
        Self {
            leaving: Leaving::new(rate, &facts),
            facts,
            posted: Vec::new(),
        }
    }
}

impl Link for Null {
    type Memory = Box<[u8]>;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Box<[u8]>>, LinkError> {
        Ok(allocate(packets, self.facts.mtu))
    }

    fn post(&mut self, memory: Box<[u8]>) -> Result<(), Box<[u8]>> {
        self.posted.push(memory);
        Ok(())
    }

    fn receive(&mut self, _: Instant) -> Result<Option<Received<Box<[u8]>>>, LinkError> {
        Ok(None)
    }

    fn send(
        &mut self,
        memory: Box<[u8]>,
        length: usize,
        now: Instant,
    ) -> Result<(), (Box<[u8]>, LinkError)> {
        if let Err(error) = self.leaving.check(length, &self.facts) {
            return Err((memory, error));
        }
        let leaves = self.leaving.leaves(length, now);
        self.leaving.depart(memory, leaves);
        Ok(())
    }

    fn is_silent(&self) -> bool {
        true
    }

    fn has_discarded(&self) -> bool {
        false
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        Ok(())
    }

    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, _: ClientId) {}

    fn sent(&mut self, now: Instant) -> Option<Box<[u8]>> {
        self.leaving.departed(now)
    }

    fn reclaim(&mut self) -> Option<Box<[u8]>> {
        self.leaving.drop_first().or_else(|| self.posted.pop())
    }

    fn losses(&self) -> Losses {
        Losses::default()
    }
}
