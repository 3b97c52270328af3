//! Frames that leave one after the other, each as long as it takes at the device's rate.

use std::collections::VecDeque;

use laxity_model::Instant;
use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Facts, LinkError, Medium};
use laxity_model::nif::wire::Framing;

/// What is below an emulated interface.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Bits a second; 0: a frame takes no time.
    rate: u64,
    free_at: Instant,
    below: VecDeque<(Instant, Box<[u8]>)>,
}

impl Leaving {
    pub(super) fn new(rate: u64, facts: &Facts) -> Self {
        Self {
            rate,
            free_at: Instant::ZERO,
            below: VecDeque::with_capacity(facts.reach),
        }
    }

    /// Why a frame cannot be taken now.
    pub(super) fn check(&self, length: usize, facts: &Facts) -> Result<(), LinkError> {
        let most = facts.mtu + HEADER;
        if length > most {
            Err(LinkError::TooLong(length, most))
        } else if self.below.len() >= facts.reach {
            Err(LinkError::Full)
        } else {
            Ok(())
        }
    }

    /// When the last bit of a frame leaves that is taken now.
    pub(super) fn leaves(&self, length: usize, now: Instant) -> Instant {
        let begins = self.free_at.max(now);
        let takes = Framing::Bare.takes(length, self.rate);
        begins.checked_add(takes).unwrap_or(Instant::MAX)
    }

    /// Takes a frame that leaves then.
    pub(super) fn depart(&mut self, memory: Box<[u8]>, leaves: Instant) {
        self.free_at = leaves;
        self.below.push_back((leaves, memory));
    }

    /// Memory of the frame that was taken first, once it has left.
    pub(super) fn departed(&mut self, now: Instant) -> Option<Box<[u8]>> {
        let (leaves, _) = self.below.front()?;
        if *leaves > now {
            return None;
        }
        self.drop_first()
    }

    /// The same, whether it has left or not.
    pub(super) fn drop_first(&mut self) -> Option<Box<[u8]>> {
        self.below.pop_front().map(|(_, memory)| memory)
    }
}

/// What an emulated interface is.
pub(super) fn facts(name: &str, address: u8, mtu: usize) -> Facts {
    Facts {
        name: name.to_owned(),
        // Administered locally.
        address: [2, 0, 0, 0, 0, address],
        mtu,
        reach: 64,
        is_shared_with_kernel: false,
        medium: Medium::Ethernet,
        gathers: false,
        // Memory is handed on as it is.
        copies: false,
    }
}

/// Memory for packets, zeroed.
pub(super) fn allocate(packets: usize, mtu: usize) -> Vec<Box<[u8]>> {
    let one = |_| vec![0; mtu + HEADER].into_boxed_slice();
    (0..packets).map(one).collect()
}
