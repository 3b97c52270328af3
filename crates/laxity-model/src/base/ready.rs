//! A queue by rank from which any member can be taken.

use alloc::boxed::Box;
use alloc::vec;
use core::hint::select_unpredictable;

/// How many children each has: of a queue of thousands, fewer levels are worth more comparisons in one line of the cache.
const CHILDREN: usize = 4;

/// Where one is who is not in the queue.
const NOWHERE: u32 = u32::MAX;

/// One in the queue: its rank, how many had entered before it, and its place, in one number, so that the smallest goes first. The count is of
/// 40 bits: once in 10¹² entries one of equals may overtake another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Member(u128);

const PLACE_BITS: u32 = 24;
const COUNT_BITS: u32 = 40;

impl Member {
    const fn new(rank: u64, entered: u64, place: u32) -> Self {
        let count = entered & ((1 << COUNT_BITS) - 1);
        Self((rank as u128) << 64 | (count << PLACE_BITS) as u128 | place as u128)
    }

    const fn rank(self) -> u64 {
        (self.0 >> 64) as u64
    }

    const fn place(self) -> u32 {
        self.0 as u32 & ((1 << PLACE_BITS) - 1)
    }
}

/// Places by rank, the smallest first; among equal ranks the one that entered first.
///
/// An indexed heap: entering and leaving cost O(log N), the first O(1). Of the size that it was made with, so that nothing is allocated after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByRank<M, P> {
    heap: M,
    /// Where in the heap each place is.
    positions: P,
    len: usize,
    /// How many have entered since the beginning.
    entered: u64,
}

/// [`ByRank`] of `N` places, all within itself.
pub type Ready<const N: usize> = ByRank<[Member; N], [u32; N]>;

/// [`ByRank`] of as many places as are asked for.
pub type ReadyOf = ByRank<Box<[Member]>, Box<[u32]>>;

impl<const N: usize> Default for Ready<N> {
    fn default() -> Self {
        Self {
            heap: [Member::default(); N],
            positions: [NOWHERE; N],
            len: 0,
            entered: 0,
        }
    }
}

impl ReadyOf {
    /// For places from 0 to below this number.
    ///
    /// # Panics
    ///
    /// It is more than 2²⁴.
    #[must_use]
    pub fn new(places: usize) -> Self {
        assert!(places <= 1 << PLACE_BITS, "so many places have no numbers");
        Self {
            heap: vec![Member::default(); places].into(),
            positions: vec![NOWHERE; places].into(),
            len: 0,
            entered: 0,
        }
    }
}

impl<M, P> ByRank<M, P>
where
    M: AsRef<[Member]> + AsMut<[Member]>,
    P: AsRef<[u32]> + AsMut<[u32]>,
{
    /// A place enters with this rank, behind its equals.
    ///
    /// # Panics
    ///
    /// It is in the queue already, or there is no such place.
    pub fn enter(&mut self, place: u32, rank: u64) {
        let had = self.positions.as_ref()[place as usize];
        assert_eq!(had, NOWHERE, "place {place} is in the queue");
        let member = self.entering(place, rank);
        self.len += 1;
        self.rise(self.len - 1, member);
    }

    /// The place leaves. Nothing happens if it is not in the queue.
    pub fn leave(&mut self, place: u32) {
        let Some(at) = self.position(place) else {
            return;
        };
        self.positions.as_mut()[place as usize] = NOWHERE;
        self.len -= 1;
        if at < self.len {
            let moved = self.heap.as_ref()[self.len];
            self.settle(at, moved);
        }
    }

    /// The place goes behind its equals, with this rank or the one it has. Nothing happens if it is not in the queue.
    pub fn yield_now(&mut self, place: u32, rank: Option<u64>) {
        if let Some(at) = self.position(place) {
            let had = self.heap.as_ref()[at].rank();
            let member = self.entering(place, rank.unwrap_or(had));
            self.settle(at, member);
        }
    }

    /// The place whose rank is the smallest.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.members().first().map(|member| member.place())
    }

    /// The smallest rank.
    #[inline]
    pub fn least(&self) -> Option<u64> {
        self.members().first().map(|member| member.rank())
    }

    /// Whether the place is in the queue.
    #[inline]
    pub fn holds(&self, place: u32) -> bool {
        self.position(place).is_some()
    }

    fn members(&self) -> &[Member] {
        &self.heap.as_ref()[..self.len]
    }

    fn position(&self, place: u32) -> Option<usize> {
        let at = *self.positions.as_ref().get(place as usize)?;
        (at != NOWHERE).then_some(at as usize)
    }

    fn entering(&mut self, place: u32, rank: u64) -> Member {
        self.entered += 1;
        Member::new(rank, self.entered, place)
    }

    fn put(&mut self, at: usize, member: Member) {
        self.positions.as_mut()[member.place() as usize] = at as u32;
        self.heap.as_mut()[at] = member;
    }

    /// Puts the member here, or where it goes from here.
    fn settle(&mut self, at: usize, member: Member) {
        let at = self.sink(at, member);
        self.rise(at, member);
    }

    /// Puts the member here, or as far towards the front as it goes before its parent.
    fn rise(&mut self, mut at: usize, member: Member) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            let above = self.heap.as_ref()[parent];
            if above <= member {
                break;
            }
            self.put(at, above);
            at = parent;
        }
        self.put(at, member);
    }

    /// How far towards the end the member goes from here: those that go before it have moved up.
    fn sink(&mut self, mut at: usize, member: Member) -> usize {
        loop {
            let first = CHILDREN * at + 1;
            let Some((child, below)) = least(self.members(), first) else {
                return at;
            };
            if member <= below {
                return at;
            }
            self.put(at, below);
            at = child;
        }
    }
}

/// The least of those who have their places from here on, of one parent, and where it is. Which of them it is nobody can foresee: so nothing branches on it.
#[inline]
fn least(members: &[Member], first: usize) -> Option<(usize, Member)> {
    let children = members.get(first..)?;
    let less = |a: (usize, Member), b: (usize, Member)| select_unpredictable(b.1 < a.1, b, a);
    if let Some(&[a, b, c, d]) = children.first_chunk::<CHILDREN>() {
        let pairs = [less((0, a), (1, b)), less((2, c), (3, d))];
        let (child, member) = less(pairs[0], pairs[1]);
        return Some((first + child, member));
    }
    let last = children.iter().copied().enumerate().reduce(less);
    last.map(|(child, member)| (first + child, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Enter(u32, u64),
        Leave(u32),
        Yield(u32, Option<u64>),
        LeaveFirst,
    }

    fn op() -> impl Strategy<Value = Op> {
        let place = 0..23_u32;
        prop_oneof![
            3 => (place.clone(), 0..5_u64).prop_map(|(place, rank)| Op::Enter(place, rank)),
            1 => place.clone().prop_map(Op::Leave),
            1 => (place, proptest::option::of(0..5_u64)).prop_map(|(place, rank)| Op::Yield(place, rank)),
            1 => Just(Op::LeaveFirst),
        ]
    }

    /// The oracle: a list in the order of entry, searched for the least rank.
    fn first(list: &[(u32, u64)]) -> Option<u32> {
        let least = list.iter().min_by_key(|(_, rank)| *rank);
        least.map(|(place, _)| *place)
    }

    proptest! {
        #[test]
        fn behaves_as_a_list_that_is_searched(ops in proptest::collection::vec(op(), 0..400)) {
            let mut ready = Ready::<23>::default();
            let mut list: Vec<(u32, u64)> = Vec::new();
            for op in ops {
                prop_assert_eq!(ready.first(), first(&list));
                prop_assert_eq!(ready.least(), list.iter().map(|(_, rank)| *rank).min());
                let found = |place: u32| list.iter().position(|(other, _)| *other == place);
                match op {
                    Op::Enter(place, rank) => if found(place).is_none() {
                        ready.enter(place, rank);
                        list.push((place, rank));
                    },
                    Op::Leave(place) => {
                        ready.leave(place);
                        list.retain(|(other, _)| *other != place);
                    }
                    Op::Yield(place, rank) => {
                        ready.yield_now(place, rank);
                        if let Some(at) = found(place) {
                            let (_, had) = list.remove(at);
                            list.push((place, rank.unwrap_or(had)));
                        }
                    }
                    Op::LeaveFirst => if let Some(place) = first(&list) {
                        ready.leave(place);
                        list.retain(|(other, _)| *other != place);
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic = "place 1 is in the queue"]
    fn nobody_enters_twice() {
        let mut ready = Ready::<4>::default();
        ready.enter(1, 0);
        ready.enter(1, 0);
    }
}
