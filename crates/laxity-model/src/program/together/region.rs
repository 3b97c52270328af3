//! The memory that processes share, and who goes first by what is written there.

use super::Standing;
use crate::base::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst, fence};
use crate::executor::{Claim, HANDLERS};
use crate::{Instant, Service, Span};

/// So many processes.
pub const SEATS: usize = 32;
/// So many handlers each.
pub const ROWS: usize = HANDLERS;

/// The least urgent rank.
const LAST: u64 = u64::MAX - 1;
/// The layout's version.
const VERSION: u64 = 5;

/// Whose turn it is: a seat or nobody, at work or at rest, and a count that makes every turn another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn(u64);

impl Turn {
    const REST: u64 = 1 << 16;

    /// The seat that has it; a number that may be past the last.
    pub const fn seat(self) -> Option<u16> {
        (self.0 as u16).checked_sub(1)
    }

    /// Whether nobody had anything to do when it was taken: whoever has, may take the baton.
    pub const fn is_at_rest(self) -> bool {
        self.0 & Self::REST != 0 || self.seat().is_none()
    }

    pub(super) fn to(self, seat: Option<u16>, at_rest: bool) -> Self {
        let count = (self.0 >> 17).wrapping_add(1) << 17;
        let rest = if at_rest { Self::REST } else { 0 };
        Self(count | rest | seat.map_or(0, |seat| u64::from(seat) + 1))
    }
}

/// What whoever guards a region counts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The FIFO priority of the executors: the guards are just below and above it.
    pub priority: u32,
    /// The one processor of them all, by the host's number.
    pub processor: u32,
    /// The longest that a quantum may take, above zero.
    pub longest: Service,
    /// So much more than he was admitted with one may take before he has to make up for it, or loses his seat.
    pub tolerance: Service,
}

#[derive(Debug, Default)]
#[repr(C)]
struct Row {
    /// 0: none.
    rank_ns: AtomicU64,
    release_ns: AtomicU64,
}

/// One process: lines of its own, since others read it while it waits.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Seat<const R: usize> {
    standing: AtomicU32,
    /// What its thread waits on: changes at each wake.
    pub(super) word: AtomicU32,
    /// Its executor's thread, by the kernel's number.
    pub(super) thread: AtomicU32,
    /// So many rows are written.
    used: AtomicU32,
    /// When something arrived for it while it did not look; 0 if nothing has.
    pub(super) called_ns: AtomicU64,
    /// How urgent that is.
    pub(super) call_rank_ns: AtomicU64,
    /// When its last stretch of work without a look began.
    pub(super) began_ns: AtomicU64,
    rows: [Row; R],
}

impl<const R: usize> Default for Seat<R> {
    fn default() -> Self {
        Self {
            standing: AtomicU32::default(),
            word: AtomicU32::default(),
            thread: AtomicU32::default(),
            used: AtomicU32::default(),
            called_ns: AtomicU64::default(),
            call_rank_ns: AtomicU64::default(),
            began_ns: AtomicU64::default(),
            rows: core::array::from_fn(|_| Row::default()),
        }
    }
}

impl<const R: usize> Seat<R> {
    pub(super) fn standing(&self) -> Option<Standing> {
        let tag = self.standing.load(SeqCst);
        Standing::ALL.into_iter().find(|known| *known as u32 == tag)
    }

    pub(super) fn stands(&self, standing: Standing) {
        self.standing.store(standing as u32, SeqCst);
    }

    /// The same, as its own process says; nothing comes back that was taken away.
    pub(super) fn becomes(&self, standing: Standing) {
        let gone = [Standing::Removed, Standing::Free].map(|gone| gone as u32);
        let becomes = |tag| (!gone.contains(&tag)).then_some(standing as u32);
        let _ = self.standing.fetch_update(SeqCst, SeqCst, becomes);
    }

    /// It says what only guards do, or nothing that it can: it waits until its process says what it is. `false` if it says neither.
    pub(super) fn is_mended(&self) -> bool {
        let others = [Standing::Free, Standing::Removed];
        let known = Standing::ALL
            .into_iter()
            .filter(|known| !others.contains(known));
        let is_true = |tag| known.clone().any(|known| known as u32 == tag);
        let mended = |tag| (!is_true(tag)).then_some(Standing::Withdrawn as u32);
        self.standing.fetch_update(SeqCst, SeqCst, mended).is_ok()
    }

    /// From one to the other; `false` if it was neither.
    pub(super) fn turns(&self, from: Standing, to: Standing) -> bool {
        let (from, to) = (from as u32, to as u32);
        let turned = self.standing.compare_exchange(from, to, SeqCst, SeqCst);
        turned.is_ok()
    }

    /// Its thread is to look; whoever says so wakes it.
    pub(super) fn kick(&self) {
        self.word.fetch_add(1, SeqCst);
    }

    /// Something has arrived for it that is not done. Of this and its being [heard](Self::hears) one sees the other.
    pub(super) fn is_called(&self, at: Instant) {
        self.called_ns.swap(at.as_nanos().max(1), SeqCst);
    }

    /// What has arrived for it until now is looked for next, and found.
    pub(super) fn hears(&self) {
        self.called_ns.swap(0, SeqCst);
    }

    /// What is written of it.
    fn claims(&self) -> impl Iterator<Item = Claim> {
        let call = Claim {
            rank_ns: self.call_rank_ns.load(SeqCst).min(LAST),
            release: Instant::from_nanos(self.called_ns.load(SeqCst)),
        };
        let call = (call.release > Instant::ZERO).then_some(call);
        let used = self.used.load(SeqCst) as usize;
        let rows = self.rows.iter().take(used).map(|row| Claim {
            rank_ns: row.rank_ns.load(SeqCst),
            release: Instant::from_nanos(row.release_ns.load(SeqCst)),
        });
        call.into_iter()
            .chain(rows.filter(|claim| claim.rank_ns > 0))
    }

    /// Writes its rows; more than there is room for are left out, and those of no period, which only calls release.
    pub(super) fn write(&self, own: &mut dyn Iterator<Item = Claim>) {
        let mut rows = self.rows.iter();
        let (mut used, mut most_urgent) = (0, LAST);
        for (claim, row) in own.filter(|claim| claim.rank_ns > CONTROL).zip(&mut rows) {
            row.rank_ns.store(claim.rank_ns, SeqCst);
            row.release_ns.store(claim.release.as_nanos(), SeqCst);
            used += 1;
            most_urgent = most_urgent.min(claim.rank_ns);
        }
        self.used.store(used, SeqCst);
        self.call_rank_ns.store(most_urgent, SeqCst);
    }
}

/// The rank of whoever carries out what is asked of an executor. To others that is as urgent as the most urgent handler of its process: by asking nobody gets more.
pub(in crate::program) const CONTROL: u64 = 1;

/// What is written of all seats but one.
pub(super) struct Scan {
    /// The released job that goes first, and whose it is.
    pub(super) first: Option<(Claim, u16)>,
    /// The earliest release that is to come.
    pub(super) next: Option<(Instant, u16)>,
    /// The earliest release to come of those more urgent than was said.
    pub(super) until: Instant,
    /// Somebody was interrupted at work, or did not take the baton: what is written of him is not true.
    pub(super) is_interrupted: bool,
}

/// The memory that the processes of one processor share. Full of zeros it has no seat taken, and the baton is nobody's.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Region<const S: usize = SEATS, const R: usize = ROWS> {
    /// The layout; written last of all by who makes it.
    layout: AtomicU64,
    /// The [terms](Terms); the longest quantum is 0 if nobody has guarded it.
    longest_ns: AtomicU64,
    priority: AtomicU32,
    processor: AtomicU32,
    /// No seat from here on was ever given.
    used: AtomicU32,
    /// Who watches, if anybody does: waits here for work to begin.
    pub(super) sentinel: AtomicU32,
    pub(super) watchdog: AtomicU32,
    _gap: AtomicU32,
    tolerance_ns: AtomicU64,
    /// How long the machine was seen to stand still while somebody was at work, in all.
    stood_ns: AtomicU64,
    /// By which clock all instants here are.
    clock: AtomicU64,
    turn: AtomicU64,
    /// Raised whenever the holder is to look.
    changes: AtomicU32,
    _space: AtomicU32,
    /// When the watchdog looked last.
    pub(super) looked_ns: AtomicU64,
    _rest: [AtomicU32; 10],
    seats: [Seat<R>; S],
}

impl<const S: usize, const R: usize> Default for Region<S, R> {
    fn default() -> Self {
        let region = Self {
            layout: AtomicU64::default(),
            longest_ns: AtomicU64::default(),
            priority: AtomicU32::default(),
            processor: AtomicU32::default(),
            used: AtomicU32::default(),
            sentinel: AtomicU32::default(),
            watchdog: AtomicU32::default(),
            _gap: AtomicU32::default(),
            tolerance_ns: AtomicU64::default(),
            stood_ns: AtomicU64::default(),
            clock: AtomicU64::default(),
            turn: AtomicU64::default(),
            changes: AtomicU32::default(),
            _space: AtomicU32::default(),
            looked_ns: AtomicU64::default(),
            _rest: core::array::from_fn(|_| AtomicU32::default()),
            seats: core::array::from_fn(|_| Seat::default()),
        };
        region.format();
        region
    }
}

impl<const S: usize, const R: usize> Region<S, R> {
    /// All seats: what guards look at, whoever has written what is used.
    pub(super) const ALL: u32 = S as u32;
    /// The version, and so many seats and rows.
    const LAYOUT: u64 = 0x4c58 << 48 | VERSION << 32 | (S as u64) << 16 | R as u64;

    /// Memory full of zeros is a region from now on.
    pub fn format(&self) {
        self.layout.store(Self::LAYOUT, SeqCst);
    }

    /// Whether it is laid out as this process knows it.
    pub fn is_known(&self) -> bool {
        self.layout.load(SeqCst) == Self::LAYOUT
    }

    /// Whoever makes the region says by which clock its instants are, by a number of the host's.
    pub fn tells_by(&self, clock: u64) {
        self.clock.store(clock, SeqCst);
    }

    /// The clock of whoever has made it, by the host's number.
    pub fn clock(&self) -> u64 {
        self.clock.load(SeqCst)
    }

    /// Whoever guards the region says what it counts on.
    pub fn limit(&self, terms: Terms) {
        self.priority.store(terms.priority, SeqCst);
        self.processor.store(terms.processor, SeqCst);
        self.tolerance_ns.store(terms.tolerance.as_nanos(), SeqCst);
        self.longest_ns.store(terms.longest.as_nanos(), SeqCst);
    }

    /// What whoever guards it has said; `None` if nobody has.
    pub fn terms(&self) -> Option<Terms> {
        let longest = self.longest_ns.load(SeqCst);
        (longest > 0).then(|| Terms {
            priority: self.priority.load(SeqCst),
            processor: self.processor.load(SeqCst),
            longest: Service::from_nanos(longest),
            tolerance: Service::from_nanos(self.tolerance_ns.load(SeqCst)),
        })
    }

    /// How long the machine was seen to stand still while somebody was at work, in all: whoever was is charged none of that.
    pub fn stood(&self) -> Span {
        Span::from_nanos(self.stood_ns.load(SeqCst))
    }

    pub(super) fn adds_standstill(&self, stood: Span) {
        if stood > Span::ZERO {
            self.stood_ns.fetch_add(stood.as_nanos(), SeqCst);
        }
    }

    /// Gives this seat away, whatever is written of it: whoever gives knows that nobody has it.
    pub fn gives(&self, number: u16) {
        let Some(seat) = self.seat(number) else {
            return;
        };
        self.uses(number);
        seat.used.store(0, SeqCst);
        seat.thread.store(0, SeqCst);
        seat.called_ns.store(0, SeqCst);
        seat.stands(Standing::Given);
    }

    /// The seat's process has gone: nobody has it any more. Tells whom to wake.
    pub fn vacate(&self, number: u16, now: Instant) -> Option<u16> {
        let seat = self.seat(number)?;
        seat.stands(Standing::Left);
        let woken = self.hand_on_from(number, now);
        seat.stands(Standing::Free);
        woken
    }

    /// What a seat is; `None` if there is no such seat, or it is none of what one can be.
    pub fn standing(&self, number: u16) -> Option<Standing> {
        self.seat(number)?.standing()
    }

    /// How many seats are taken by processes that take part.
    pub fn members(&self) -> usize {
        let there = |seat: &&Seat<R>| {
            let standing = seat.standing();
            !matches!(standing, Some(Standing::Free | Standing::Left) | None)
        };
        self.seats.iter().filter(there).count()
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        Turn(self.turn.load(SeqCst))
    }

    /// The word that a seat's thread waits on.
    pub fn word(&self, number: u16) -> Option<&AtomicU32> {
        self.seat(number).map(|seat| &seat.word)
    }

    /// The word that the sentinel waits on, and the watchdog's.
    pub fn guards(&self) -> [&AtomicU32; 2] {
        [&self.sentinel, &self.watchdog]
    }

    /// The thread of a seat, as its process says, by the kernel's number.
    pub fn thread(&self, number: u16) -> Option<u32> {
        Some(self.seat(number)?.thread.load(SeqCst))
    }

    pub(super) fn seat(&self, number: u16) -> Option<&Seat<R>> {
        self.seats.get(usize::from(number))
    }

    /// No seat from this number on was ever given, as is written.
    pub(super) fn used(&self) -> u32 {
        self.used.load(SeqCst)
    }

    /// This seat is used, whatever is written.
    pub(super) fn uses(&self, number: u16) {
        self.used.fetch_max(u32::from(number) + 1, SeqCst);
    }

    /// What only ever grows, and is raised when somebody is to look.
    pub(super) fn changes(&self) -> &AtomicU32 {
        &self.changes
    }

    pub(super) fn changed(&self) {
        self.changes.fetch_add(1, SeqCst);
    }

    /// From one turn to the next; `false` if it is over.
    pub(super) fn pass(&self, from: Turn, to: Turn) -> bool {
        let passed = self.turn.compare_exchange(from.0, to.0, SeqCst, SeqCst);
        passed.is_ok()
    }

    /// What is written of those who wait, but for one, in the first so many seats.
    pub(super) fn scan(
        &self,
        (now, used): (Instant, u32),
        except: Option<u16>,
        rank_ns: u64,
    ) -> Scan {
        let mut scan = Scan {
            first: None,
            next: None,
            until: Instant::MAX,
            is_interrupted: false,
        };
        for (number, seat) in (0_u16..).zip(self.seats.iter().take(used as usize)) {
            if Some(number) == except {
                continue;
            }
            match seat.standing() {
                Some(Standing::Waiting) => {}
                Some(Standing::Working | Standing::Withdrawn) => {
                    scan.is_interrupted = true;
                    continue;
                }
                _ => continue,
            }
            for claim in seat.claims() {
                if claim.release <= now {
                    let before = scan.first;
                    let is_first = before.is_none_or(|first| (claim, number) < first);
                    scan.first = if is_first {
                        Some((claim, number))
                    } else {
                        before
                    };
                    continue;
                }
                if claim.release == Instant::MAX {
                    continue;
                }
                let coming = (claim.release, number);
                scan.next = Some(scan.next.map_or(coming, |next| next.min(coming)));
                if claim.rank_ns < rank_ns {
                    scan.until = scan.until.min(claim.release);
                }
            }
        }
        scan
    }

    /// The baton goes on to whoever is to have it, if this is the turn still; tells whom to wake. `None`: the turn is over.
    pub(super) fn hand_on(&self, from: Turn, now: Instant) -> Option<Option<u16>> {
        let seen = self.changes.load(SeqCst);
        let (to, mut next) = self.hand(from, now)?;
        fence(SeqCst);
        // Who called before the baton rested saw it at work, and may not have been seen: he is now. Who calls after that takes it.
        if next.is_none() && self.changes.load(SeqCst) != seen {
            next = self.hand(to, now).and_then(|(_, next)| next);
        }
        // Whoever had it sees at its next look that it has it no more.
        self.changed();
        if let Some(seat) = next.and_then(|next| self.seat(next)) {
            seat.kick();
        }
        Some(next)
    }

    /// From this turn to that of whoever is to have the baton by what is written now, or to nobody's; `None` if the turn is over.
    fn hand(&self, from: Turn, now: Instant) -> Option<(Turn, Option<u16>)> {
        let scan = self.scan((now, Self::ALL), from.seat(), 0);
        let first = scan.first.map(|(_, seat)| seat);
        let next = first.or(scan.next.map(|(_, seat)| seat));
        let to = from.to(next, next.is_none());
        self.pass(from, to).then_some((to, next))
    }

    /// The same, if a seat has it.
    pub(super) fn hand_on_from(&self, number: u16, now: Instant) -> Option<u16> {
        let turn = self.turn();
        if turn.seat() != Some(number) {
            return None;
        }
        self.hand_on(turn, now).flatten()
    }

    /// Something has arrived for the process of a seat, which may not look: any thread of it says so. Tells whether its executor's thread is to be woken, and the
    /// guards [as well](Self::begun): work begins where the baton rested.
    pub fn call(&self, number: u16, now: Instant) -> bool {
        let Some(seat) = self.seat(number) else {
            return false;
        };
        // In this order: a holder that comes to rest finds the call, or we find that it rests.
        seat.is_called(now);
        self.changed();
        fence(SeqCst);
        loop {
            let turn = self.turn();
            if !turn.is_at_rest() || seat.standing() != Some(Standing::Waiting) {
                return false;
            }
            // Who rests with it himself takes it up when he wakes.
            let is_own = turn.seat() == Some(number);
            if is_own || self.pass(turn, turn.to(Some(number), false)) {
                seat.kick();
                return true;
            }
        }
    }
}
