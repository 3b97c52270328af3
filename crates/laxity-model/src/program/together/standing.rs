//! What becomes of a seat.

/// What a seat is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nobody has it.
    Free = 0,
    /// It was given to a process.
    Given = 1,
    /// Its rows are true, and it waits for the baton or rests with it.
    Waiting = 2,
    /// It is at work, with the baton or on what is left of a quantum.
    Working = 3,
    /// It did not take the baton: its rows are skipped until it wakes.
    Withdrawn = 4,
    /// It was taken away: a handler did not come back.
    Removed = 5,
    /// Its process has left.
    Left = 6,
}

impl Standing {
    pub(super) const ALL: [Self; 7] = [
        Self::Free,
        Self::Given,
        Self::Waiting,
        Self::Working,
        Self::Withdrawn,
        Self::Removed,
        Self::Left,
    ];
}
