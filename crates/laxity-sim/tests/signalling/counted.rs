//! A small admission, for more channels than exact tests are quick with: so many go over each link, whatever they are.

use std::collections::BTreeMap;

use laxity_model::Span;
use laxity_model::channels::signalling::{Admits, Delays, Hold, LinkId, Place, Reserved};

/// A link has no room for another channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

/// Of one node. None of its channels has two versions.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    most: u32,
    held: BTreeMap<Hold, (Place, Delays)>,
    links: BTreeMap<LinkId, u32>,
}

impl Counted {
    pub(crate) const fn new(most: u32) -> Self {
        Self {
            most,
            held: BTreeMap::new(),
            links: BTreeMap::new(),
        }
    }
}

impl Admits for Counted {
    type Asked = ();
    type Short = Full;

    fn reserve(&mut self, hold: Hold, place: Place, (): &(), before: Span) -> Result<Span, Full> {
        if let Some(to) = place.to {
            let there = self.links.entry(to).or_default();
            if *there == self.most {
                return Err(Full);
            }
            *there += 1;
        }
        let own = Span::from_micros(100);
        let was = self.held.insert(hold, (place, Delays { before, own }));
        assert!(was.is_none(), "{hold:?} is reserved twice");
        Ok(own)
    }

    fn relax(&mut self, hold: Hold, offered: Delays) -> Delays {
        self.held.get_mut(&hold).expect("it is there").1 = offered;
        offered
    }

    fn release(&mut self, hold: Hold) {
        let (place, _) = self.held.remove(&hold).expect("it is there");
        if let Some(to) = place.to {
            *self.links.get_mut(&to).expect("it is there") -= 1;
        }
    }

    fn agrees<'a>(&self, held: impl Iterator<Item = Reserved<'a, ()>>) -> bool {
        let held: BTreeMap<_, _> = held
            .map(|one| (one.hold, (one.place, one.delays)))
            .collect();
        let mut links: BTreeMap<LinkId, u32> = BTreeMap::new();
        for to in held.values().filter_map(|(place, _)| place.to) {
            *links.entry(to).or_default() += 1;
        }
        let is_same = |(link, count): (&LinkId, &u32)| links.get(link).unwrap_or(&0) == count;
        let fits = links.values().all(|count| *count <= self.most);
        held == self.held && fits && self.links.iter().all(is_same)
    }
}
