//! Conservation of buffers: whether a packet is kept, and where each buffer of a client is.
//!
//! Liao, Tan, Campbell 1996, §2 and §2.1, the Resource Exchanger: a client gets a packet only for an empty buffer that it has given
//! before; otherwise the packet is its own loss, and nobody else's. What a pool of buffers does is defined here, in one owner's hands
//! ([`Stock`]); pools that threads share do the same without locks, and are held against it.

/// Whose memory a client's packets may come in (§2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BufferPolicy {
    /// Anybody's: the driver keeps the empty buffer and hands over the one that the packet is in.
    SwapOrReturn,
    /// Its own: the packet is copied into the buffer that was given, which may be of a kind that no interface fills. §2.3 calls it `AlwaysReturn`.
    MustReturn,
    /// It only looks at the packet while it is called, in the driver's memory, and has no buffers to receive into.
    PeekOnly,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Its client had given no empty buffer.
    NoBuffer,
    /// It did not fit into the buffer that its client had given, which stays given.
    TooLong,
    /// Its key could not be read.
    Malformed,
    /// Nobody registered for it, and there is no default.
    Nobodys,
    /// Its client's pool was closed, and the driver had not been told yet.
    Closed,
    /// Its client panicked over it, and has ended.
    Panicked,
    /// Its client was called for it, and had no room to keep it.
    Refused,
}

impl Reason {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::NoBuffer,
        Self::TooLong,
        Self::Malformed,
        Self::Nobodys,
        Self::Closed,
        Self::Panicked,
        Self::Refused,
    ];
}

/// What becomes of a packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Its client has it, in the memory in which it arrived, for an empty buffer.
    Swapped,
    /// Its client has it, copied into a buffer of its own.
    Copied,
    /// Its client has looked at it.
    Peeked,
    /// It is the kernel's.
    Kernels,
    /// Nobody has it.
    Dropped(Reason),
}

/// What a client has for the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Offer {
    /// Its policy.
    pub policy: BufferPolicy,
    /// Bytes of the empty buffer that it gave; `None` if there is none.
    pub room: Option<usize>,
    /// Whether it takes none any more.
    pub is_closed: bool,
}

/// What becomes of a packet of `length` bytes that is this client's.
#[must_use]
pub const fn decide(offer: Offer, length: usize) -> Outcome {
    if offer.is_closed {
        return Outcome::Dropped(Reason::Closed);
    }
    match (offer.policy, offer.room) {
        (BufferPolicy::PeekOnly, _) => Outcome::Peeked,
        (_, None) => Outcome::Dropped(Reason::NoBuffer),
        (BufferPolicy::SwapOrReturn, Some(_)) => Outcome::Swapped,
        (BufferPolicy::MustReturn, Some(room)) if room < length => {
            Outcome::Dropped(Reason::TooLong)
        }
        (BufferPolicy::MustReturn, Some(_)) => Outcome::Copied,
    }
}

/// What became of packets, counted: arrived = swapped + copied + peeked + the kernel's + dropped, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Account {
    /// How many arrived.
    pub arrived: u64,
    /// How many were handed over in the memory in which they arrived.
    pub swapped: u64,
    /// How many were copied.
    pub copied: u64,
    /// How many were looked at.
    pub peeked: u64,
    /// How many were left to the kernel.
    pub kernels: u64,
    /// How many were dropped, in the order of [`Reason::ALL`].
    pub dropped: [u64; Reason::ALL.len()],
}

impl Account {
    /// One more arrived, and this became of it.
    pub const fn count(&mut self, outcome: Outcome) {
        self.arrived += 1;
        match outcome {
            Outcome::Swapped => self.swapped += 1,
            Outcome::Copied => self.copied += 1,
            Outcome::Peeked => self.peeked += 1,
            Outcome::Kernels => self.kernels += 1,
            Outcome::Dropped(reason) => self.dropped[reason as usize] += 1,
        }
    }

    /// How many were dropped for this reason.
    pub const fn dropped(&self, reason: Reason) -> u64 {
        self.dropped[reason as usize]
    }

    /// How many their clients have, or have had.
    pub const fn delivered(&self) -> u64 {
        self.swapped + self.copied + self.peeked
    }

    /// Those of another are counted here, too.
    pub fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.swapped += other.swapped;
        self.copied += other.copied;
        self.peeked += other.peeked;
        self.kernels += other.kernels;
        for (ours, theirs) in self.dropped.iter_mut().zip(other.dropped) {
            *ours += theirs;
        }
    }
}

/// Where the buffers of a pool are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Census {
    /// In the pool, for whoever takes one.
    pub free: u32,
    /// Given to receive into.
    pub given: u32,
    /// In the driver's hands, between given and held; of a driver's own pool, posted to its interface.
    pub in_driver: u32,
    /// On their way out, until their interface gives them back.
    pub sending: u32,
    /// In a client's hands.
    pub held: u32,
}

impl Census {
    /// All of them.
    pub const fn total(&self) -> u32 {
        self.free + self.given + self.in_driver + self.sending + self.held
    }
}

/// A pool of buffers in the hands of one owner: the definition of what a pool does. Each method that moves a buffer tells whether
/// there was one to move.
#[derive(Clone, Debug)]
pub struct Stock {
    policy: BufferPolicy,
    room: usize,
    most: u32,
    size: u32,
    /// So many leave the pool as they come home.
    owed: u32,
    is_closed: bool,
    census: Census,
    account: Account,
}

impl Stock {
    /// A pool of `size` buffers of `room` bytes each, that may grow to `most`.
    #[must_use]
    pub fn new(policy: BufferPolicy, room: usize, size: u32, most: u32) -> Self {
        let census = Census {
            free: size.min(most),
            ..Census::default()
        };
        Self {
            policy,
            room,
            most,
            size: census.free,
            owed: 0,
            is_closed: false,
            census,
            account: Account::default(),
        }
    }

    /// Where its buffers are.
    pub const fn census(&self) -> Census {
        self.census
    }

    /// What became of its packets.
    pub const fn account(&self) -> Account {
        self.account
    }

    /// Its client takes one that is free.
    pub fn take(&mut self) -> bool {
        let moved = !self.is_closed && less(&mut self.census.free);
        self.census.held += u32::from(moved);
        self.checked(moved)
    }

    /// Its client gives one that it holds.
    pub fn give(&mut self) -> bool {
        let moved = !self.is_closed && less(&mut self.census.held);
        self.census.given += u32::from(moved);
        self.checked(moved)
    }

    /// Its client lets go of one that it holds.
    pub fn put_back(&mut self) -> bool {
        let moved = less(&mut self.census.held);
        self.home(u32::from(moved));
        self.checked(moved)
    }

    /// A packet of `length` bytes arrives for it.
    pub fn arrive(&mut self, length: usize) -> Outcome {
        let offer = Offer {
            policy: self.policy,
            room: (self.census.given > 0).then_some(self.room),
            is_closed: self.is_closed,
        };
        let outcome = decide(offer, length);
        if let Outcome::Swapped | Outcome::Copied = outcome {
            self.census.given -= 1;
            self.census.held += 1;
        }
        self.account.count(outcome);
        self.checked(true);
        outcome
    }

    /// Its client sends one that it holds.
    pub fn send(&mut self) -> bool {
        let moved = !self.is_closed && less(&mut self.census.held);
        self.census.sending += u32::from(moved);
        self.checked(moved)
    }

    /// One has left, or will not.
    pub fn sent(&mut self) -> bool {
        let moved = less(&mut self.census.sending);
        self.home(u32::from(moved));
        self.checked(moved)
    }

    /// It grows by so many, or as many as it may; what was to leave stays first. Tells how many are new.
    pub fn grow(&mut self, buffers: u32) -> u32 {
        let stay = buffers.min(self.owed);
        self.owed -= stay;
        let new = (buffers - stay).min(self.most - self.size);
        self.size += new;
        self.census.free += new;
        self.checked(true);
        new
    }

    /// It shrinks by so many, or to nothing: those that are free leave at once, others as they come home.
    pub fn shrink(&mut self, buffers: u32) {
        self.owed += buffers.min(self.size - self.owed);
        let free = core::mem::take(&mut self.census.free);
        self.home(free);
        self.checked(true);
    }

    /// No more is given or taken: what was given comes home.
    pub fn close(&mut self) {
        self.is_closed = true;
        let given = core::mem::take(&mut self.census.given);
        self.home(given);
        self.checked(true);
    }

    fn home(&mut self, buffers: u32) {
        let leave = buffers.min(self.owed);
        self.owed -= leave;
        self.size -= leave;
        self.census.free += buffers - leave;
    }

    fn checked(&self, moved: bool) -> bool {
        assert_eq!(self.census.total(), self.size, "{self:?}");
        moved
    }
}

/// One less, if there is one.
const fn less(count: &mut u32) -> bool {
    if let Some(left) = count.checked_sub(1) {
        *count = left;
        true
    } else {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_buffers_given_are_so_many_packets_received() {
        let mut stock = Stock::new(BufferPolicy::SwapOrReturn, 64, 3, 3);
        while stock.take() {
            assert!(stock.give());
        }
        for _ in 0..3 {
            assert_eq!(stock.arrive(64), Outcome::Swapped);
        }
        assert_eq!(stock.arrive(64), Outcome::Dropped(Reason::NoBuffer));
        assert_eq!(stock.census().held, 3);
    }

    #[test]
    fn only_a_copy_can_be_too_long_and_costs_no_buffer() {
        let mut stock = Stock::new(BufferPolicy::MustReturn, 64, 1, 1);
        assert!(stock.take() && stock.give());
        assert_eq!(stock.arrive(65), Outcome::Dropped(Reason::TooLong));
        assert_eq!(stock.arrive(64), Outcome::Copied);
        let mut peek = Stock::new(BufferPolicy::PeekOnly, 0, 0, 0);
        assert_eq!(peek.arrive(9000), Outcome::Peeked);
    }

    #[test]
    fn what_is_to_leave_leaves_as_it_comes_home_and_stays_if_the_pool_grows_first() {
        let mut stock = Stock::new(BufferPolicy::SwapOrReturn, 64, 4, 6);
        assert!(stock.take() && stock.take() && stock.take());
        stock.shrink(3);
        assert_eq!(stock.census().total(), 3);
        assert!(stock.put_back());
        assert_eq!(stock.census().total(), 2);
        assert_eq!(stock.grow(2), 1);
        assert!(stock.put_back() && stock.put_back());
        assert_eq!(stock.census().free, 3);
        assert_eq!(stock.grow(9), 3);
    }

    #[test]
    fn what_was_given_comes_home_when_the_pool_closes_and_what_is_held_later() {
        let mut stock = Stock::new(BufferPolicy::SwapOrReturn, 64, 2, 2);
        assert!(stock.take() && stock.give() && stock.take());
        stock.close();
        assert_eq!(stock.arrive(1), Outcome::Dropped(Reason::Closed));
        assert!(!stock.give() && !stock.send() && !stock.take());
        assert!(stock.put_back());
        assert_eq!(stock.census().free, 2);
    }
}
