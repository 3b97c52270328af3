//! The data path of a host: from messages to frames, from frames to frames, and from frames to messages.
//!
//! * [`WayOut`]: one link, with all channels that leave by it. Of those that begin here, messages are policed, cut and queued; frames of those that only pass are taken in by [`WayOut::forward`]. Which packet leaves next is one decision for all.
//! * [`FarEnd`]: one channel that ends here: messages put together, and of each whether it was in time.
//! * [`Table`]: whose a frame is that comes, by its label.
//!
//! Nothing here reads a clock, sends, or allocates once a channel is made: `now` and bytes go in, bytes and effects come out. All that is decided is the model's ([`laxity_model::channels`]); what is here are the bytes, whose they are, and the counts.
//!
//! A channel has two [lanes](Lane): what keeps its promise, and what goes as best effort. Each has its own buffers, order and numbers, and messages of one never wait for those of the other.
//!
//! # What is early, and what is believed
//!
//! A frame says how long it left before it was due at the hop before. So it is current here that long after it came, and is never sent before, where the link does not work ahead. No hop sends sooner than its own horizon before a message is current there, so nothing is earlier than that
//! hop's delay and horizon: what says so is taken for no earlier than that. And in no interval has a channel more packets that are current than it was granted, give or take what the link before may take unseen: what is more is dropped, as is
//! what finds none of the channel's own buffers free. So whoever sends frames, or makes them up, harms his own channel only.

mod counts;
mod far;
mod origin;
mod pace;
mod relay;
mod table;
mod way_out;

pub use counts::{Came, Ended, Packets, Passed};
pub use far::{Ends, Event, FarEnd, Lost, Received, Stored};
pub use origin::{Began, Offer, Queue};
pub use pace::Pace;
pub use relay::{Forwarded, Passes, Relay};
pub use table::{NotOurs, Table};
pub use way_out::{Effect, Full, Granted, Handed, Leaves, Limits, Next, WayOut};

pub use laxity_model::channels::signalling::Label;

use laxity_model::channels::clocks::{Carried, Crossing, Logical, Offset};
use laxity_model::{Instant, Span};

use super::frame::Data;

/// Which of a channel's two ways a message goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// What keeps the promise, and is due.
    RealTime,
    /// What does not, and is never due.
    BestEffort,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::RealTime, Self::BestEffort];

    const fn of(best_effort: bool) -> Self {
        match best_effort {
            true => Self::BestEffort,
            false => Self::RealTime,
        }
    }
}

/// How a frame came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// How the clock of who sent it stands to this host's, if that is known.
    pub clocks: Option<Offset>,
    /// Over which link, and how long it may take there.
    pub link: Crossing,
}

/// Of which nothing but its instant is known, over a way's first link.
impl From<Instant> for Arrival {
    fn from(at: Instant) -> Self {
        let link = Crossing {
            number: 0,
            propagation: Span::ZERO,
            longest: Span::ZERO,
        };
        let clocks = None;
        Self { at, clocks, link }
    }
}

impl Arrival {
    /// When a frame's message is current here, which is never so early as to be before `most`; whether the frame was believed, too. What a link took that no host sees makes it look later, by no more than the clocks tell.
    fn logical(&self, data: &Data<'_>, most: Span) -> (Logical, bool) {
        let (latest, is_believed) = logical(self.at, data.earliness, most);
        let most = i64::try_from(most.as_nanos()).unwrap_or(i64::MAX);
        let carried = Carried {
            left: data.left.at,
            earliness: data.earliness.min(most),
            error: data.left.error,
            late: data.left.late,
        };
        let known = carried.arrives(self.clocks, self.at, self.link);
        let at = latest.min(known.at);
        let least = known.at.saturating_sub(known.error);
        let error = match known.error {
            Span::MAX => Span::MAX,
            _ => at.saturating_since(least),
        };
        (Logical { at, error, ..known }, is_believed)
    }
}

/// How many of something each lane has.
pub type PerLane<T> = [T; 2];

/// When a message of a frame is current here that came then and says that it is so early; it is never so early as to be before `most`. Whether it was believed, too.
fn logical(came: Instant, earliness: i64, most: Span) -> (Instant, bool) {
    match u64::try_from(earliness) {
        Ok(early) => {
            let early = Span::from_nanos(early);
            let logical = came.checked_add(early.min(most));
            (logical.unwrap_or(Instant::MAX), early <= most)
        }
        Err(_) => (
            came.saturating_sub(Span::from_nanos(earliness.unsigned_abs())),
            true,
        ),
    }
}
