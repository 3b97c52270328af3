//! Queues over arrays of links, so that queueing allocates nothing: one first-in first-out queue, and a queue for each of 32 levels.

use alloc::vec::Vec;

const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

/// One link for each of those who queue. Queues may share the links if nobody is in more than one of them.
#[derive(Clone, Debug)]
pub struct Links(Vec<Link>);

impl Links {
    /// For those who are numbered from 0 up to this number.
    #[must_use]
    pub fn new(members: usize) -> Self {
        let link = Link {
            next: NOBODY,
            previous: NOBODY,
        };
        Self(alloc::vec![link; members])
    }

    #[inline]
    fn of(&mut self, who: u32) -> &mut Link {
        &mut self.0[who as usize]
    }
}

/// The two ends of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    /// A queue with nobody in it.
    pub const EMPTY: Self = Self {
        first: NOBODY,
        last: NOBODY,
    };

    /// Whether nobody is in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first == NOBODY
    }

    /// Who is at the head.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        somebody(self.first)
    }

    /// All of the queue, from the head on.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        core::iter::successors(self.first(), |who| somebody(links.0[*who as usize].next))
    }

    /// Somebody who is in no queue of these links goes to the tail.
    #[inline]
    pub fn push(&mut self, links: &mut Links, who: u32) {
        *links.of(who) = Link {
            next: NOBODY,
            previous: self.last,
        };
        match somebody(self.last) {
            Some(last) => links.of(last).next = who,
            None => self.first = who,
        }
        self.last = who;
        debug_assert!(self.holds_once(links, who));
    }

    /// Somebody who is in no queue of these links goes to the head.
    #[inline]
    pub fn push_first(&mut self, links: &mut Links, who: u32) {
        *links.of(who) = Link {
            next: self.first,
            previous: NOBODY,
        };
        match somebody(self.first) {
            Some(first) => links.of(first).previous = who,
            None => self.last = who,
        }
        self.first = who;
        debug_assert!(self.holds_once(links, who));
    }

    /// Takes the head out.
    #[inline]
    pub fn pop(&mut self, links: &mut Links) -> Option<u32> {
        let first = self.first()?;
        let next = links.of(first).next;
        match somebody(next) {
            Some(next) => links.of(next).previous = NOBODY,
            None => self.last = NOBODY,
        }
        self.first = next;
        Some(first)
    }

    /// Takes somebody out who is in this queue.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, who: u32) {
        debug_assert!(self.holds_once(links, who));
        let Link { next, previous } = *links.of(who);
        match somebody(previous) {
            Some(previous) => links.of(previous).next = next,
            None => self.first = next,
        }
        match somebody(next) {
            Some(next) => links.of(next).previous = previous,
            None => self.last = previous,
        }
    }

    /// The invariant around each operation: who is queued is in the queue once. A queue that has become a ring is noticed too.
    fn holds_once(&self, links: &Links, who: u32) -> bool {
        let members = self.iter(links).take(links.0.len() + 1);
        members.filter(|member| *member == who).count() == 1
    }
}

fn somebody(who: u32) -> Option<u32> {
    (who != NOBODY).then_some(who)
}

const LEVELS: usize = 32;

/// Thirty-two queues and a bitmap that tells which of them hold somebody: every operation O(1), no allocation after the start.
#[derive(Clone, Debug)]
pub struct Levels {
    occupied: u32,
    queues: [Queue; LEVELS],
    links: Links,
}

impl Levels {
    /// For those who are numbered from 0 up to this number, each in at most one of the queues.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self {
            occupied: 0,
            queues: [Queue::EMPTY; LEVELS],
            links: Links::new(members),
        }
    }

    /// The highest level that holds somebody.
    #[inline]
    pub fn highest(&self) -> Option<u8> {
        self.occupied.checked_ilog2().map(|level| level as u8)
    }

    /// Whether any of the levels in the mask holds somebody.
    #[inline]
    pub const fn any(&self, mask: u32) -> bool {
        self.occupied & mask != 0
    }

    /// Whether this level holds somebody.
    #[inline]
    pub const fn holds(&self, level: u8) -> bool {
        self.any(1 << level)
    }

    /// All of one level, from the head on.
    pub fn iter(&self, level: u8) -> impl Iterator<Item = u32> + '_ {
        self.queues[usize::from(level)].iter(&self.links)
    }

    /// Who comes first at this level.
    #[inline]
    pub fn first(&self, level: u8) -> Option<u32> {
        self.queues[usize::from(level)].first()
    }

    /// Who comes after somebody who is queued.
    #[inline]
    pub fn after(&self, who: u32) -> Option<u32> {
        somebody(self.links.0[who as usize].next)
    }

    /// To the tail of the level.
    #[inline]
    pub fn push(&mut self, level: u8, who: u32) {
        self.queues[usize::from(level)].push(&mut self.links, who);
        self.occupied |= 1 << level;
    }

    /// To the head of the level.
    #[inline]
    pub fn push_first(&mut self, level: u8, who: u32) {
        self.queues[usize::from(level)].push_first(&mut self.links, who);
        self.occupied |= 1 << level;
    }

    /// Takes the head of the level out.
    #[inline]
    pub fn pop(&mut self, level: u8) -> Option<u32> {
        let queue = &mut self.queues[usize::from(level)];
        let first = queue.pop(&mut self.links);
        if queue.is_empty() {
            self.occupied &= !(1 << level);
        }
        first
    }

    /// Takes somebody out who is in the queue of this level.
    #[inline]
    pub fn remove(&mut self, level: u8, who: u32) {
        let queue = &mut self.queues[usize::from(level)];
        queue.remove(&mut self.links, who);
        if queue.is_empty() {
            self.occupied &= !(1 << level);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against plain lists that are searched.
        #[test]
        fn levels_are_plain_lists(ops in prop::collection::vec((0..8_u32, 0..4_u8, 0..4_u8), 0..100)) {
            let mut levels = Levels::new(8);
            let mut lists: Vec<VecDeque<u32>> = alloc::vec![VecDeque::new(); 4];
            for (who, level, op) in ops {
                let place = usize::from(level);
                let holding = lists.iter().position(|list| list.contains(&who));
                match (op, holding) {
                    (0, None) => { levels.push(level, who); lists[place].push_back(who); }
                    (1, None) => { levels.push_first(level, who); lists[place].push_front(who); }
                    (2, Some(at)) => { levels.remove(at as u8, who); lists[at].retain(|other| *other != who); }
                    (3, _) => prop_assert_eq!(levels.pop(level), lists[place].pop_front()),
                    _ => {}
                }
                for level in 0..4 {
                    let list: Vec<u32> = lists[usize::from(level)].iter().copied().collect();
                    prop_assert_eq!(levels.iter(level).collect::<Vec<_>>(), list.clone());
                    prop_assert_eq!(levels.holds(level), !list.is_empty());
                }
                let highest = (0..4).rev().find(|level| !lists[usize::from(*level)].is_empty());
                prop_assert_eq!(levels.highest(), highest);
            }
        }
    }
}
