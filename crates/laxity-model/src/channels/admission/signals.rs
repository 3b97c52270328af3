//! Signalling's own channel on each link: small, and there before all others, so that over a link which is full channels are still opened and ended, and who is there still says so.
//!
//! In each direction a frame may go each half of the time after which a message is said [again](Terms::resend), and is heard within that: so what is said is answered before it is said again, and over fifteen links, as a route has at the most, word of a death that was noticed takes 75 ms, which
//! with the 175 ms until it is [noticed](Terms::silent) is 250. Four fifths of it are for the way out, over processor and link, and one for the processor at the other end. A link that is too slow for that is late with what is said; and one on which a heartbeat could be later than what a neighbour has to be
//! silent for beyond three of them has no signalling, as whoever is alive would be taken for dead.

use core::num::NonZeroU32;

use super::host::{Host, Lack};
use super::resource::Short;
use super::traffic::{Traffic, TrafficError};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::channels::signalling::{Admits, ChannelId, Delays, Hold, LinkId, Place, Terms};

/// What signalling has of each link, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Signals {
    /// What it may send.
    pub traffic: Traffic,
    /// In which time it leaves its host, where there is so much.
    pub out: Span,
    /// In which time the other end has taken it in.
    pub into: Span,
    /// It takes no longer than this to leave, or there is none.
    pub most: Span,
}

impl Signals {
    /// Of frames that take of a link what a data frame with so many bytes takes.
    ///
    /// # Errors
    ///
    /// Something is said again at once.
    pub fn new(terms: &Terms, largest: NonZeroU32) -> Result<Self, TrafficError> {
        let once = terms.resend / 2;
        Ok(Self {
            traffic: Traffic::new(largest.get(), (1, once), 1)?,
            out: once / 5 * 4,
            into: once / 5,
            most: terms.silent.saturating_sub(terms.heartbeat * 3),
        })
    }
}

impl<S: SupplyBound> Host<S> {
    /// Reserves what signalling has of this host for a link: before there are channels, or beside them. Answers in which times, out and in: those that were meant, or as short ones as there are.
    ///
    /// # Errors
    ///
    /// [`Lack`]; nothing has changed then.
    pub fn signals(&mut self, link: LinkId, signals: &Signals) -> Result<[Span; 2], Lack> {
        let (from, to) = (Some(link), Some(link));
        let out = Place { from: None, to };
        let into = Place { from, to: None };
        let left = self.signal((link, out), signals, signals.out)?;
        if left > signals.most {
            let (asked, least) = (signals.most, left);
            // The link: of what a processor alone takes it is the lesser part.
            let stage = self.way(out)?.last().unwrap_or_default();
            self.release(hold(link, out));
            let short = Short::Delay { asked, least };
            return Err(Lack::Stage { stage, short });
        }
        let taken = self.signal((link, into), signals, signals.into);
        let taken = taken.inspect_err(|_| self.release(hold(link, out)))?;
        Ok([left, taken])
    }

    fn signal(
        &mut self,
        (link, place): (LinkId, Place),
        signals: &Signals,
        within: Span,
    ) -> Result<Span, Lack> {
        let before = match place.from {
            None => Span::ZERO,
            Some(_) => signals.most.max(signals.out),
        };
        let hold = hold(link, place);
        let least = self.grant(hold, place, &signals.traffic, before)?.delays;
        let own = within.max(least.own);
        Ok(self.relax(hold, Delays { before, own }).own)
    }
}

const fn hold(link: LinkId, place: Place) -> Hold {
    Hold {
        channel: ChannelId::of_signals(link, place.from.is_some()),
        version: 0,
    }
}
