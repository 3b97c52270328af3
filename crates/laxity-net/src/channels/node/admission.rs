//! A host's admission, with the small channels that are the node's own.

use laxity_model::Span;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::{Host, Lack, Traffic};
use laxity_model::channels::asked::{Asked, Name, Shortage};
use laxity_model::channels::signalling::{
    Admits, ChannelId, Delays, Hold, HostId, LinkId, Place, Reserved,
};

/// A host's admission, in which each link's signals are admitted first.
#[derive(Clone, Debug)]
pub struct Admission<S> {
    host: Host<S>,
    own: Vec<Own>,
}

/// What a link's signals have.
#[derive(Clone, Debug)]
struct Own {
    hold: Hold,
    place: Place,
    asked: Asked,
    delays: Delays,
}

/// No life of a host is of this number, so no channel of an application has the name of a link's own.
const NO_LIFE: u32 = u32::MAX;

impl<S: SupplyBound> Admission<S> {
    pub(super) const fn new(host: Host<S>) -> Self {
        let own = Vec::new();
        Self { host, own }
    }

    /// The signals of a link of this host are to be carried, each before the next one; answers within which time.
    pub(super) fn carries(
        &mut self,
        origin: HostId,
        link: LinkId,
        traffic: Traffic,
    ) -> Result<Span, Lack> {
        let channel = ChannelId {
            origin,
            generation: NO_LIFE,
            number: link.0.into(),
        };
        let hold = Hold {
            channel,
            version: 0,
        };
        let place = Place {
            from: None,
            to: Some(link),
        };
        let held = self.host.grant(hold, place, &traffic, Span::ZERO)?;
        // With the least delay no frame of anybody else could be in the way.
        let offered = Delays {
            before: Span::ZERO,
            own: traffic.interval().max(held.delays.own),
        };
        let delays = self.host.relax(hold, offered);
        let asked = Asked {
            name: Name::new("signals").expect("it is one"),
            traffic,
            discard: false,
        };
        self.own.push(Own {
            hold,
            place,
            asked,
            delays,
        });
        Ok(delays.own)
    }

    /// What is reserved, with what is the node's own.
    #[must_use]
    pub const fn host(&self) -> &Host<S> {
        &self.host
    }
}

impl<S: SupplyBound> Admits for Admission<S> {
    type Asked = Asked;
    type Short = Shortage;

    fn reserve(
        &mut self,
        hold: Hold,
        place: Place,
        asked: &Asked,
        before: Span,
    ) -> Result<Span, Shortage> {
        self.host.reserve(hold, place, asked, before)
    }

    fn relax(&mut self, hold: Hold, offered: Delays) -> Delays {
        self.host.relax(hold, offered)
    }

    fn release(&mut self, hold: Hold) {
        self.host.release(hold);
    }

    fn agrees<'a>(&self, held: impl Iterator<Item = Reserved<'a, Asked>>) -> bool {
        let own = self.own.iter().map(|own| Reserved {
            hold: own.hold,
            place: own.place,
            asked: &own.asked,
            delays: own.delays,
        });
        // Both are borrowed for as long as this takes.
        let held: Vec<Reserved<'_, Asked>> = held.collect();
        self.host.agrees(own.chain(held))
    }
}
