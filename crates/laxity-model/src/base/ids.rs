//! Names for the things of a program, so that a processor's number is never taken for an activity's.

use derive_more::Display;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Display)]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into a table with one entry an id.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A processor of the host, counted from 0 as the host counts them.
    ProcessorId(u16)
}
id! {
    /// An activity of a [`Program`](crate::program::Program): its place in the list of activities.
    ActivityId(u16)
}
id! {
    /// A port of a program: a queue of arrivals, or, as a [`SemaphoreId`], a count of them.
    PortId(u16)
}
id! {
    /// An executor of a program.
    ExecutorId(u16)
}

/// A port that only counts.
pub use PortId as SemaphoreId;

/// A thread's priority: 0 (idle) to 31; 1–15 vary with boosts and quanta, 16–31 are real time (modem study §2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct Priority(u8);

impl Priority {
    /// The processor's idle thread.
    pub const IDLE: Self = Self(0);
    /// What an ordinary thread has.
    pub const NORMAL: Self = Self(8);
    /// The lowest that quanta and boosts leave alone.
    pub const REAL_TIME: Self = Self(16);
    /// The highest of all.
    pub const HIGHEST: Self = Self(31);
    /// How many priorities there are.
    pub const COUNT: usize = 32;

    /// A priority from 0 to 31; `None` above.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if level < 32 { Some(Self(level)) } else { None }
    }

    /// 0 to 31.
    pub const fn level(self) -> u8 {
        self.0
    }

    /// Whether quanta and boosts leave this priority alone (16 and above).
    pub const fn is_real_time(self) -> bool {
        self.0 >= Self::REAL_TIME.0
    }
}

/// An interrupt's level: a handler is interrupted by handlers of higher levels only (0 to 31).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterruptLevel(pub u8);
