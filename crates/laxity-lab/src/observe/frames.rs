//! Which calls of a player the frames were of that did not arrive: a call plays one frame, the one of its own number, which is heard some calls later, or
//! before the call is over if that is late. A call that is late with little loses none.

/// The calls that are over, and the frames that did not arrive.
pub(super) struct Frames {
    /// Their numbers, from 0 as the calls are, in their order.
    wrong: Vec<u64>,
    calls: u64,
}

impl Frames {
    pub(super) const fn of(wrong: Vec<u64>) -> Self {
        Self { wrong, calls: 0 }
    }

    /// The next call is over. Returns whether its frame did not arrive.
    pub(super) fn next_is_wrong(&mut self) -> bool {
        let number = self.calls;
        self.calls += 1;
        self.wrong.binary_search(&number).is_ok()
    }

    /// How many did not arrive of calls that are not over.
    pub(super) fn left(&self) -> u64 {
        let over = self.wrong.partition_point(|number| *number < self.calls);
        (self.wrong.len() - over) as u64
    }
}
