//! A small admission: shares of a processor and of each link, and buffers.

use std::collections::BTreeMap;

use laxity_model::Span;
use laxity_model::channels::signalling::{Admits, ChannelId, Delays, Hold, Place, Reserved};

/// What a channel asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    /// Of processor and link, in millionths.
    pub(crate) share: u64,
    /// The smallest delay.
    pub(crate) least: Span,
    /// From one message to the next.
    pub(crate) period: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resource {
    Processor,
    Link,
    Buffers,
}

/// What is short, and by how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Short {
    pub(crate) resource: Resource,
    pub(crate) lacks: u64,
}

/// In the order in which they were asked. Of most channels there is one.
type Versions = Vec<(u32, Place, Asked, Delays)>;

fn version(versions: &mut Versions, number: u32) -> Option<&mut (u32, Place, Asked, Delays)> {
    versions.iter_mut().find(|(version, ..)| *version == number)
}

/// Of one node.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    processor: u64,
    link: u64,
    buffers: u64,
    held: BTreeMap<ChannelId, Versions>,
    used: Used,
}

/// How much is used: of the processor, of buffers, of each link.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Used {
    processor: u64,
    buffers: u64,
    links: BTreeMap<u16, u64>,
}

fn buffers(asked: &Asked, delays: Delays) -> u64 {
    (delays.before + delays.own) / asked.period + 1
}

/// What one channel has: the most of its versions.
fn of(versions: &Versions) -> (u64, u64, Option<u16>) {
    let all = versions.iter();
    let share = all.clone().map(|(_, _, asked, _)| asked.share).max();
    let held = all
        .clone()
        .map(|(_, _, asked, delays)| buffers(asked, *delays))
        .max();
    let link = versions
        .iter()
        .find_map(|(_, place, ..)| place.to.map(|to| to.0));
    (share.unwrap_or(0), held.unwrap_or(0), link)
}

impl Used {
    fn add(&mut self, versions: &Versions) {
        let (share, held, link) = of(versions);
        self.processor += share;
        self.buffers += held;
        if let Some(link) = link {
            *self.links.entry(link).or_default() += share;
        }
    }

    fn remove(&mut self, versions: &Versions) {
        let (share, held, link) = of(versions);
        self.processor -= share;
        self.buffers -= held;
        if let Some(used) = link.and_then(|link| self.links.get_mut(&link)) {
            *used -= share;
        }
        self.links.retain(|_, used| *used > 0);
    }
}

impl Shares {
    pub(crate) fn new(processor: u64, link: u64, buffers: u64) -> Self {
        Self {
            processor,
            link,
            buffers,
            held: BTreeMap::new(),
            used: Used::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.used == Used::default()
    }

    fn lacks(&self, used: &Used) -> Option<Short> {
        let link = used.links.values().max().copied().unwrap_or(0);
        let all = [
            (Resource::Processor, used.processor, self.processor),
            (Resource::Link, link, self.link),
            (Resource::Buffers, used.buffers, self.buffers),
        ];
        let short = all.into_iter().find(|(_, used, most)| used > most);
        short.map(|(resource, used, most)| Short {
            resource,
            lacks: used - most,
        })
    }

    /// As one channel's versions change, if that fits.
    fn changes(
        &mut self,
        channel: ChannelId,
        change: impl FnOnce(&mut Versions),
    ) -> Result<(), Short> {
        let before = self.held.get(&channel).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        let mut used = self.used.clone();
        used.remove(&before);
        used.add(&after);
        if let Some(short) = self.lacks(&used) {
            return Err(short);
        }
        self.used = used;
        match after.is_empty() {
            true => self.held.remove(&channel),
            false => self.held.insert(channel, after),
        };
        Ok(())
    }
}

impl Admits for Shares {
    type Asked = Asked;
    type Short = Short;

    fn reserve(
        &mut self,
        hold: Hold,
        place: Place,
        asked: &Asked,
        before: Span,
    ) -> Result<Span, Short> {
        let own = asked.least;
        let delays = Delays { before, own };
        self.changes(hold.channel, |versions| {
            let was = version(versions, hold.version);
            assert!(was.is_none(), "{hold:?} is reserved twice");
            versions.push((hold.version, place, *asked, delays));
        })?;
        Ok(own)
    }

    fn relax(&mut self, hold: Hold, offered: Delays) -> Delays {
        let held = self.held.get_mut(&hold.channel).expect("it is there");
        let had = version(held, hold.version).expect("it is there").3;
        let halfway = Delays {
            before: had.before,
            own: offered.own,
        };
        for delays in [offered, halfway] {
            let relaxes = |versions: &mut Versions| {
                version(versions, hold.version).expect("it is there").3 = delays;
            };
            if self.changes(hold.channel, relaxes).is_ok() {
                return delays;
            }
        }
        had
    }

    fn release(&mut self, hold: Hold) {
        let released = self.changes(hold.channel, |versions| {
            let before = versions.len();
            versions.retain(|(version, ..)| *version != hold.version);
            assert_eq!(versions.len() + 1, before, "{hold:?} is not reserved");
        });
        assert_eq!(released, Ok(()));
    }

    fn agrees<'a>(&self, held: impl Iterator<Item = Reserved<'a, Asked>>) -> bool {
        let mut all: BTreeMap<ChannelId, Versions> = BTreeMap::new();
        for one in held {
            let versions = all.entry(one.hold.channel).or_default();
            versions.push((one.hold.version, one.place, *one.asked, one.delays));
        }
        let mut used = Used::default();
        all.values().for_each(|versions| used.add(versions));
        all == self.held && used == self.used && self.lacks(&used).is_none()
    }
}
