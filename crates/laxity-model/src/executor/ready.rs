//! A queue by rank from which any member can be taken.

/// One member: the smallest rank goes first, then who entered first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Member {
    rank: [u64; 2],
    place: u32,
}

/// The places of released jobs by rank, the smallest first; among equal ranks the one that entered first.
///
/// An indexed binary heap: entering and leaving cost O(log N), the first O(1). Of fixed size, so that nothing is allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ready<const N: usize = { super::HANDLERS }> {
    heap: [Member; N],
    /// Where in the heap each place is.
    positions: [Option<usize>; N],
    len: usize,
    /// How many have entered since the beginning.
    entered: u64,
}

impl<const N: usize> Default for Ready<N> {
    fn default() -> Self {
        let nobody = Member {
            rank: [0; 2],
            place: 0,
        };
        Self {
            heap: [nobody; N],
            positions: [None; N],
            len: 0,
            entered: 0,
        }
    }
}

impl<const N: usize> Ready<N> {
    /// A place enters with this rank, behind its equals.
    ///
    /// # Panics
    ///
    /// It is in the queue already, or not below `N`.
    pub fn enter(&mut self, place: u32, rank: u64) {
        let had = self.positions[place as usize];
        assert_eq!(had, None, "place {place} is in the queue");
        let member = Member {
            rank: [rank, self.entered],
            place,
        };
        self.len += 1;
        self.entered += 1;
        self.rise(self.len - 1, member);
    }

    /// The place leaves. Nothing happens if it is not in the queue.
    pub fn leave(&mut self, place: u32) {
        self.take(place);
    }

    /// The place goes behind its equals, with this rank or the one it has. Nothing happens if it is not in the queue.
    pub fn yield_now(&mut self, place: u32, rank: Option<u64>) {
        if let Some(had) = self.take(place) {
            self.enter(place, rank.unwrap_or(had));
        }
    }

    /// The place whose rank is the smallest.
    pub fn first(&self) -> Option<u32> {
        self.members().first().map(|member| member.place)
    }

    fn members(&self) -> &[Member] {
        &self.heap[..self.len]
    }

    /// The rank that the place had, if it was in the queue.
    fn take(&mut self, place: u32) -> Option<u64> {
        let at = self.positions.get_mut(place as usize)?.take()?;
        let [rank, _] = self.heap[at].rank;
        self.len -= 1;
        if at < self.len {
            let moved = self.heap[self.len];
            let at = self.sink(at, moved);
            self.rise(at, moved);
        }
        Some(rank)
    }

    fn put(&mut self, at: usize, member: Member) {
        self.positions[member.place as usize] = Some(at);
        self.heap[at] = member;
    }

    /// Puts the member here, or as far towards the front as it goes before its parent.
    fn rise(&mut self, mut at: usize, member: Member) {
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.heap[parent];
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
            let left = 2 * at + 1;
            let children = self.members().iter().skip(left).take(2);
            let first = children.zip(left..).min();
            let Some((below, child)) = first.map(|(below, child)| (*below, child)) else {
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
        let place = 0..8_u32;
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
        fn behaves_as_a_list_that_is_searched(ops in proptest::collection::vec(op(), 0..200)) {
            let mut ready = Ready::<8>::default();
            let mut list: Vec<(u32, u64)> = Vec::new();
            for op in ops {
                prop_assert_eq!(ready.first(), first(&list));
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
