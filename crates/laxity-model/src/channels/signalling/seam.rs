//! What signalling asks of admission, at each hop.

use core::fmt::Debug;

use super::{Hold, LinkId};
use crate::Span;

/// What a hop is of a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// Where it comes from; `None` at the origin.
    pub from: Option<LinkId>,
    /// Where it goes on; `None` at the far end.
    pub to: Option<LinkId>,
}

/// What a message may take, from its logical arrival on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Delays {
    /// At the hop before, which says how early a message may come; zero at the origin.
    pub before: Span,
    /// At this one.
    pub own: Span,
}

/// What is reserved, as admission was asked and has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserved<'a, S> {
    /// By this name.
    pub hold: Hold,
    /// Of which resources.
    pub place: Place,
    /// What the channel is to carry.
    pub asked: &'a S,
    /// In these times.
    pub delays: Delays,
}

/// The admission of one node: its processor, its links, its buffers. It neither sends nor waits.
pub trait Admits {
    /// What a channel is to carry.
    type Asked: Clone + Debug;
    /// Which resource is short, by how much, and what would fit.
    type Short: Clone + Debug;

    /// Reserves the smallest delay that there is beside all others, and tells it. The delay at the hop before, of which the smallest is known so far, says how early messages may come.
    ///
    /// A hold is reserved once; one that is there already is reserved anew, or stays as it is. Where the channel has another version already, both are held until one is released: its messages may be as either says, though never as both at once, and none later than the shorter delay.
    ///
    /// # Errors
    ///
    /// What is short. Nothing is reserved then.
    fn reserve(
        &mut self,
        hold: Hold,
        place: Place,
        asked: &Self::Asked,
        before: Span,
    ) -> Result<Span, Self::Short>;

    /// What is reserved may take as long as this, here and at the hop before. Tells how much of that it takes: no more than offered, and neither is less than what was reserved with. So this cannot fail: who has no buffers for it takes less. Of what is not reserved nothing changes.
    fn relax(&mut self, hold: Hold, offered: Delays) -> Delays;

    /// Gives it back, if it is there.
    fn release(&mut self, hold: Hold);

    /// Whether these, reckoned from nothing, fit together, and are what is reserved here: no more and no less.
    fn agrees<'a>(&self, held: impl Iterator<Item = Reserved<'a, Self::Asked>>) -> bool
    where
        Self::Asked: 'a;
}
