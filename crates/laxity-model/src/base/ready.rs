//! A queue by rank from which any member can be taken.

use alloc::boxed::Box;
use alloc::vec;
use core::hint::select_unpredictable;

/// Of how many the best one goes on to the next round: with more there would be fewer rounds, of more comparisons than a line of the cache has members for.
const GROUP: usize = 4;

/// No queue has more rounds than these.
const ROUNDS: usize = (PLACE_BITS / GROUP.ilog2()) as usize;

/// One in the queue: its rank, how many had entered before it, and its place, in one number, so that the smallest goes first. The count is of
/// 40 bits: once in 10¹² entries one of equals may overtake another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member(u128);

const PLACE_BITS: u32 = 24;
const COUNT_BITS: u32 = 40;

impl Member {
    /// Whose place is not in the queue: behind all who are. Nobody's number is that, since the last place is not given away.
    const ABSENT: Self = Self(u128::MAX);

    #[inline]
    const fn new(rank: u64, entered: u64, place: u32) -> Self {
        let count = entered & ((1 << COUNT_BITS) - 1);
        Self((rank as u128) << 64 | (count << PLACE_BITS) as u128 | place as u128)
    }

    #[inline]
    const fn rank(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    const fn place(self) -> u32 {
        self.0 as u32 & ((1 << PLACE_BITS) - 1)
    }

    #[inline]
    fn is_there(self) -> bool {
        self.0 as u64 != u64::MAX
    }

    /// Which of two goes first. Nobody can foresee it, so nothing branches on it.
    #[inline]
    fn or_before(self, other: Self) -> Self {
        select_unpredictable(other < self, other, self)
    }
}

/// Places by rank, the smallest first; among equal ranks the one that entered first.
///
/// A tournament in groups of four: entering and leaving cost O(log N), where N is the greatest place that ever entered, and the first O(1). Where a member meets whom is known
/// beforehand, other than in a heap, so no round waits for the one before it but for who goes on. Of the size that it was made with, so that nothing is allocated after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByRank<M> {
    /// Who is at each place.
    places: M,
    /// Who is the first of each group of places, of each group of such groups, and so on, in one round behind the other; but not of the last, of which one remains.
    rounds: M,
    /// Where each round begins.
    begins: [u32; ROUNDS],
    /// How many rounds there are so far: none where nobody but of the first group has ever entered.
    played: usize,
    /// All places before this one meet in them.
    reach: usize,
    /// Who remains.
    first: Member,
    /// How many have entered since the beginning.
    entered: u64,
}

/// [`ByRank`] of `N` places, all within itself.
pub type Ready<const N: usize> = ByRank<[Member; N]>;

/// [`ByRank`] of as many places as are asked for.
pub type ReadyOf = ByRank<Box<[Member]>>;

impl<const N: usize> Default for Ready<N> {
    fn default() -> Self {
        const {
            assert!(
                N < 1 << PLACE_BITS && rounds_of(N).1 <= N,
                "so many places have no numbers"
            );
        }
        Self::of(N, [Member::ABSENT; N], [Member::ABSENT; N])
    }
}

impl ReadyOf {
    /// For places from 0 to below this number.
    ///
    /// # Panics
    ///
    /// It is 2²⁴ or more.
    #[must_use]
    pub fn new(places: usize) -> Self {
        assert!(places < 1 << PLACE_BITS, "so many places have no numbers");
        let of = |members| vec![Member::ABSENT; members].into();
        Self::of(places, of(places), of(rounds_of(places).1))
    }
}

/// Of so many places: where each round begins, and how many members all have. The groups of a round are full, with members that are not there.
const fn rounds_of(places: usize) -> ([u32; ROUNDS], usize) {
    let (mut begins, mut members) = ([0; ROUNDS], 0);
    let (mut round, mut groups) = (0, places.div_ceil(GROUP));
    while groups > 1 {
        begins[round] = members as u32;
        members += groups.next_multiple_of(GROUP);
        round += 1;
        groups = groups.div_ceil(GROUP);
    }
    (begins, members)
}

impl<M> ByRank<M> {
    const fn of(number: usize, places: M, rounds: M) -> Self {
        Self {
            places,
            rounds,
            begins: rounds_of(number).0,
            played: 0,
            reach: GROUP,
            first: Member::ABSENT,
            entered: 0,
        }
    }

    /// The place whose rank is the smallest.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.first.is_there().then(|| self.first.place())
    }

    /// The smallest rank.
    #[inline]
    pub fn least(&self) -> Option<u64> {
        self.first.is_there().then(|| self.first.rank())
    }

    #[inline]
    fn entering(&mut self, place: u32, rank: u64) -> Member {
        self.entered += 1;
        Member::new(rank, self.entered, place)
    }
}

impl<M> ByRank<M>
where
    M: AsRef<[Member]> + AsMut<[Member]>,
{
    /// A place enters with this rank, behind its equals.
    ///
    /// # Panics
    ///
    /// It is in the queue already, or there is no such place.
    #[inline]
    pub fn enter(&mut self, place: u32, rank: u64) {
        assert!(!self.holds(place), "place {place} is in the queue");
        let member = self.entering(place, rank);
        self.places.as_mut()[place as usize] = member;
        self.play_for(place);
        let rounds = self.rounds.as_mut();
        let mut at = place as usize;
        // It goes on until somebody of its group goes before it: then all is as it was.
        for begin in &self.begins[..self.played] {
            at /= GROUP;
            let before = &mut rounds[*begin as usize + at];
            if *before < member {
                return;
            }
            *before = member;
        }
        self.first = self.first.or_before(member);
    }

    /// The place leaves. Nothing happens if it is not in the queue.
    #[inline]
    pub fn leave(&mut self, place: u32) {
        if self.holds(place) {
            self.settle(place, Member::ABSENT);
        }
    }

    /// The place goes behind its equals, with this rank or the one it has. Nothing happens if it is not in the queue.
    #[inline]
    pub fn yield_now(&mut self, place: u32, rank: Option<u64>) {
        let had = self.places.as_ref().get(place as usize).copied();
        if let Some(had) = had.filter(|had| had.is_there()) {
            let member = self.entering(place, rank.unwrap_or(had.rank()));
            self.settle(place, member);
        }
    }

    /// The rank of a place; `None` if it is not in the queue.
    #[must_use]
    pub fn rank(&self, place: u32) -> Option<u64> {
        let member = self.places.as_ref().get(place as usize)?;
        member.is_there().then(|| member.rank())
    }

    /// Whether the place is in the queue.
    #[inline]
    pub fn holds(&self, place: u32) -> bool {
        let member = self.places.as_ref().get(place as usize);
        member.is_some_and(|member| member.is_there())
    }

    #[inline]
    fn settle(&mut self, place: u32, member: Member) {
        let begins = &self.begins[..self.played];
        let (places, rounds) = (self.places.as_mut(), self.rounds.as_mut());
        self.first = first_of_all(places, rounds, begins, place as usize, member);
    }

    /// There are as many rounds as it takes until this place meets all others. Whoever remained until now is the first of the first group of a new one.
    #[inline]
    fn play_for(&mut self, place: u32) {
        while self.reach <= place as usize {
            let begin = self.begins[self.played] as usize;
            self.rounds.as_mut()[begin] = self.first;
            self.played += 1;
            self.reach *= GROUP;
        }
    }
}

/// Puts this one at its place, and whoever goes first now into each round. It tells who remains.
///
/// For arrays of any length: where the length is known, and with it that each group is full, the compiler branches on who goes first, which takes twice the time.
#[inline(never)]
fn first_of_all(
    places: &mut [Member],
    rounds: &mut [Member],
    begins: &[u32],
    place: usize,
    member: Member,
) -> Member {
    let (mut at, mut winner) = (place, first_of_group(places, place, member));
    for begin in begins {
        at /= GROUP;
        winner = first_of_group(rounds, *begin as usize + at, winner);
    }
    winner
}

/// Puts this one there, and tells who goes first of its group. The others do not wait for who it is: only the last comparison does.
#[inline]
fn first_of_group(round: &mut [Member], at: usize, member: Member) -> Member {
    let (begin, within) = (at - at % GROUP, at % GROUP);
    let group = &mut round[begin..];
    if let Some(group) = group.first_chunk_mut::<GROUP>() {
        group[within] = member;
        let other = |distance: usize| group[within ^ distance];
        return member.or_before(other(1).or_before(other(2)).or_before(other(3)));
    }
    group[within] = member;
    group.iter().copied().fold(member, Member::or_before)
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

    fn op(places: u32) -> impl Strategy<Value = Op> {
        let place = 0..places;
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

    fn follows<M>(mut ready: ByRank<M>, ops: Vec<Op>) -> Result<(), TestCaseError>
    where
        M: AsRef<[Member]> + AsMut<[Member]>,
    {
        let mut list: Vec<(u32, u64)> = Vec::new();
        for op in ops {
            prop_assert_eq!(ready.first(), first(&list));
            prop_assert_eq!(ready.least(), list.iter().map(|(_, rank)| *rank).min());
            let found = |place: u32| list.iter().position(|(other, _)| *other == place);
            match op {
                Op::Enter(place, rank) => {
                    if found(place).is_none() {
                        ready.enter(place, rank);
                        list.push((place, rank));
                    }
                }
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
                Op::LeaveFirst => {
                    if let Some(place) = first(&list) {
                        ready.leave(place);
                        list.retain(|(other, _)| *other != place);
                    }
                }
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn behaves_as_a_list_that_is_searched(ops in proptest::collection::vec(op(23), 0..400)) {
            follows(Ready::<23>::default(), ops)?;
        }

        /// Of every number of places up to several rounds, with groups that are full and such that are not.
        #[test]
        fn of_any_size_behaves_as_a_list_that_is_searched(
            (places, ops) in (1..90_u32).prop_flat_map(|places| (Just(places), proptest::collection::vec(op(places), 0..300))),
        ) {
            follows(ReadyOf::new(places as usize), ops)?;
        }
    }

    #[test]
    fn the_greatest_rank_goes_before_nobody() {
        let mut ready = ReadyOf::new(2);
        assert_eq!((ready.first(), ready.least()), (None, None));
        ready.enter(1, u64::MAX);
        assert_eq!((ready.first(), ready.least()), (Some(1), Some(u64::MAX)));
        assert_eq!(ReadyOf::new(0).first(), None);
    }

    #[test]
    #[should_panic = "place 1 is in the queue"]
    fn nobody_enters_twice() {
        let mut ready = Ready::<4>::default();
        ready.enter(1, 0);
        ready.enter(1, 0);
    }
}
