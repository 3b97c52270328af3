//! A queue by rank from which any member can be taken.

/// No position: the place is not in the queue.
const ABSENT: u32 = u32::MAX;

/// One member: the smallest rank goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(C)]
struct Member {
    rank: [u64; 2],
    place: u64,
}

/// The places of released jobs by rank, the smallest first; among equal ranks the one that entered first.
///
/// An indexed binary heap: entering and leaving cost O(log N), the first O(1). Of fixed size and without pointers. An operation that
/// finds its state in contradiction with itself marks it as damaged, and none does anything from then on.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Ready<const N: usize = { super::HANDLERS }> {
    heap: [Member; N],
    /// Where in the heap each place is.
    positions: [u32; N],
    len: u32,
    /// [`INTACT`], or anything else.
    intact: u32,
    /// How many have entered since the beginning.
    entered: u64,
}

/// Not a number that memory holds by itself.
const INTACT: u32 = 0x4c58_5251;

impl<const N: usize> Default for Ready<N> {
    fn default() -> Self {
        let nobody = Member {
            rank: [0; 2],
            place: 0,
        };
        Self {
            heap: [nobody; N],
            positions: [ABSENT; N],
            len: 0,
            intact: INTACT,
            entered: 0,
        }
    }
}

/// The state contradicts itself.
struct Damaged;

impl<const N: usize> Ready<N> {
    /// A place that is not in the queue enters with this rank, behind its equals.
    pub fn enter(&mut self, place: u32, rank: u64) {
        self.guarded(|ready| ready.try_enter(place, rank));
    }

    /// The place leaves. Nothing happens if it is not in the queue.
    pub fn leave(&mut self, place: u32) {
        self.guarded(|ready| ready.try_leave(place).map(drop));
    }

    /// The place goes behind its equals, with this rank or the one it has. Nothing happens if it is not in the queue.
    pub fn yield_now(&mut self, place: u32, rank: Option<u64>) {
        self.guarded(|ready| match ready.try_leave(place)? {
            Some(had) => ready.try_enter(place, rank.unwrap_or(had)),
            None => Ok(()),
        });
    }

    /// The place whose rank is the smallest.
    pub fn first(&mut self) -> Option<u32> {
        let mut first = None;
        self.guarded(|ready| {
            if ready.len()? > 0 {
                first = Some(u32::try_from(ready.member(0)?.place).map_err(|_| Damaged)?);
            }
            Ok(())
        });
        first
    }

    /// Whether the state has never contradicted itself.
    pub const fn is_intact(&self) -> bool {
        self.intact == INTACT
    }

    fn guarded(&mut self, operation: impl FnOnce(&mut Self) -> Result<(), Damaged>) {
        if self.is_intact() && operation(self).is_err() {
            self.intact = 0;
        }
    }

    fn try_enter(&mut self, place: u32, rank: u64) -> Result<(), Damaged> {
        let len = self.len()?;
        if self.position(place)?.is_some() {
            return Err(Damaged);
        }
        let member = Member {
            rank: [rank, self.entered],
            place: place.into(),
        };
        *self.heap.get_mut(len).ok_or(Damaged)? = member;
        self.len += 1;
        self.entered = self.entered.wrapping_add(1);
        self.rise(len)
    }

    /// The rank that the place had, if it was in the queue.
    fn try_leave(&mut self, place: u32) -> Result<Option<u64>, Damaged> {
        let len = self.len()?;
        let Some(at) = self.position(place)? else {
            return Ok(None);
        };
        let [rank, _] = self.member(at)?.rank;
        let last = len.checked_sub(1).ok_or(Damaged)?;
        let moved = self.member(last)?;
        self.len -= 1;
        *self.positions.get_mut(place as usize).ok_or(Damaged)? = ABSENT;
        if at < last {
            self.put(at, moved)?;
            self.sink(at)?;
            self.rise(at)?;
        }
        Ok(Some(rank))
    }

    fn len(&self) -> Result<usize, Damaged> {
        let len = self.len as usize;
        if len > N { Err(Damaged) } else { Ok(len) }
    }

    fn member(&self, at: usize) -> Result<Member, Damaged> {
        self.heap.get(at).copied().ok_or(Damaged)
    }

    /// Where in the heap the place is; checked against what lies there.
    fn position(&self, place: u32) -> Result<Option<usize>, Damaged> {
        let position = self.positions.get(place as usize).ok_or(Damaged)?;
        if *position == ABSENT {
            return Ok(None);
        }
        let at = *position as usize;
        if at >= self.len()? || self.member(at)?.place != u64::from(place) {
            return Err(Damaged);
        }
        Ok(Some(at))
    }

    fn put(&mut self, at: usize, member: Member) -> Result<(), Damaged> {
        let place = usize::try_from(member.place).map_err(|_| Damaged)?;
        *self.positions.get_mut(place).ok_or(Damaged)? = at as u32;
        *self.heap.get_mut(at).ok_or(Damaged)? = member;
        Ok(())
    }

    /// Moves the member towards the front until its parent goes before it.
    fn rise(&mut self, mut at: usize) -> Result<(), Damaged> {
        let member = self.member(at)?;
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.member(parent)?;
            if above <= member {
                break;
            }
            self.put(at, above)?;
            at = parent;
        }
        self.put(at, member)
    }

    /// Moves the member towards the end until it goes before its children.
    fn sink(&mut self, mut at: usize) -> Result<(), Damaged> {
        let (member, len) = (self.member(at)?, self.len()?);
        loop {
            let left = 2 * at + 1;
            if left >= len {
                break;
            }
            let right = left + 1;
            let right_first = right < len && self.member(right)? < self.member(left)?;
            let child = if right_first { right } else { left };
            let below = self.member(child)?;
            if member <= below {
                break;
            }
            self.put(at, below)?;
            at = child;
        }
        self.put(at, member)
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
                prop_assert!(ready.is_intact());
            }
        }

        /// Whatever somebody writes into it: every operation returns, and what does not fit together is noticed.
        #[test]
        fn damage_is_noticed(
            len in any::<u32>(),
            positions in any::<[u32; 4]>(),
            places in any::<[u64; 4]>(),
            ops in proptest::collection::vec(op(), 0..20),
        ) {
            let mut ready = Ready::<4>::default();
            for place in 0..3 {
                ready.enter(place, 7);
            }
            for (member, place) in ready.heap.iter_mut().zip(places) {
                member.place = place;
            }
            (ready.len, ready.positions) = (len, positions);
            for op in ops {
                match op {
                    Op::Enter(place, rank) => ready.enter(place, rank),
                    Op::Leave(place) => ready.leave(place),
                    Op::Yield(place, rank) => ready.yield_now(place, rank),
                    Op::LeaveFirst => if let Some(first) = ready.first() { ready.leave(first) },
                }
            }
            let _ = ready.first();
            prop_assert!(len <= 4 || !ready.is_intact());
        }
    }

    #[test]
    fn nobody_enters_twice_or_where_there_is_no_place() {
        for wrong in [1, 4, u32::MAX] {
            let mut ready = Ready::<4>::default();
            ready.enter(1, 0);
            ready.enter(wrong, 0);
            assert!(!ready.is_intact(), "{wrong}");
            assert_eq!(ready.first(), None);
        }
    }
}
