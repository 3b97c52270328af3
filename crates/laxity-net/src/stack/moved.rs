//! What a connection has worked on.

/// Packets that a connection has worked on since it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Moved {
    /// That arrived for it.
    pub received: Count,
    /// That it sent.
    pub sent: Count,
}

/// How many packets, and their bytes behind the Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Count {
    pub(super) const fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// What came since an earlier look.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
        }
    }
}
