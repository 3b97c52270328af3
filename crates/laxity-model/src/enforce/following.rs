//! What switching costs, followed slot by slot: how early a slot is to be entered and left so that its holder receives what it was promised.
//!
//! The kernel's count of a thread's time holds more than the thread had for itself: the way in and out each time it is given the processor,
//! and interrupt handlers. What these take is measured before a run; while it runs, the dispatcher sees at each slot's end how long it took
//! itself to get the processor, which moves with it. So it knows about what the holder of the slot had for itself, ends slots by that, and
//! prolongs one from which others have taken something.
//!
//! A cost follows its samples by a part of their distance, which counts up to a bound: a constant cost is reached, and a sample that is far
//! off, as a standstill of the machine is, moves it little. A slot that lacks much more than others take was not used by its holder, or the
//! machine stood still: nothing is made up for it, and nothing learnt from it.

use crate::{Instant, Service, Span};

/// A slot that lacks more than this part of its length is not prolonged,
const MOST_PART: i64 = 8;
/// but a short one for so much, up to half of its length: somebody's way in and out takes a large part of it.
const MOST_SHORT_NS: i64 = 50_000;
/// By this part of its length a slot is longer than promised at most before its end is looked at: what it may differ by.
const BEYOND_PART: i64 = 20;
/// What a slot lacks is made up for from this part of its length on: a third of what it may differ by.
const LEAST_PART: i64 = 64;
/// Less is not worth a wake-up, which costs more.
const LEAST_NS: i64 = 2_000;
/// A slot is looked at so many times, the last time only to be ended.
const LOOKS: u8 = 4;
/// A sample counts as no further away than this and half of the cost.
const NEAR_NS: i64 = 2_000;

/// What switching costs on a machine, as it was measured before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switching {
    /// How early the dispatcher wakes before the decision that a slot begins, as long as it has not seen how late it wakes. The rest of the time it
    /// spins.
    pub lead: Span,
    /// From the decision that a slot begins until its holder's first instruction.
    pub entering: Span,
    /// The part of it that passes once the dispatcher has done what it does at an edge.
    pub resuming: Span,
    /// From the instant for which the timer of a slot's end was set until its holder's last instruction, in nanoseconds; negative where a
    /// hypervisor takes the processor before the timer is due.
    pub leaving_ns: i64,
    /// From the same instant until the dispatcher runs.
    pub waking: Span,
    /// What the kernel counts as the holder's each time that it is given the processor, and is not its own: the way in and out.
    pub unseen_each: Span,
    /// What interrupt handlers take of a slot, in parts per million of it, that the kernel counts as the holder's; but for the ticks, if it is
    /// known when they come.
    pub unseen_ppm: u32,
    /// When the kernel's ticks come; `None` where that is not known.
    pub ticks: Option<Ticks>,
    /// What the kernel counts as nobody's from the decision that a slot begins until its end is looked at: a hypervisor's.
    pub nobodys: Span,
}

/// The kernel's ticks on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticks {
    /// One of them: no slot begins before it.
    pub first: Instant,
    /// How far they are apart.
    pub every: Span,
    /// What each takes from the thread that it finds.
    pub each: Span,
}

impl Ticks {
    /// How many came after one instant and no later than the other.
    fn between(&self, from: Instant, to: Instant) -> u64 {
        let until =
            |at: Instant| at.saturating_since(self.first).as_nanos() / self.every.as_nanos().max(1);
        until(to).saturating_sub(until(from))
    }
}

/// A cost that follows what is seen of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Followed {
    ns: i64,
    /// Of a sample's distance above it and below it this part is gone.
    parts: [i64; 2],
}

impl Followed {
    /// As likely to be exceeded as not.
    const fn evenly(ns: i64) -> Self {
        Self { ns, parts: [8, 8] }
    }

    /// Near the least that is seen of it.
    const fn least(ns: i64) -> Self {
        let parts = [16, 4];
        Self { ns, parts }
    }

    fn follow(&mut self, sample_ns: i64) {
        let near = NEAR_NS + self.ns.saturating_abs() / 2;
        let off = sample_ns.saturating_sub(self.ns).clamp(-near, near);
        let [above, below] = self.parts;
        self.ns += off / if off > 0 { above } else { below };
    }
}

fn ns(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn span(ns: i64) -> Span {
    Span::from_nanos(ns.max(0).unsigned_abs())
}

/// `at`, so much later, or earlier.
fn shifted(at: Instant, ns: i64) -> Instant {
    if ns < 0 {
        at.saturating_sub(span(-ns))
    } else {
        at.checked_add(span(ns)).unwrap_or(at)
    }
}

/// So many nanoseconds after, negative before.
fn since(at: Instant, other: Instant) -> i64 {
    let after = ns(at.saturating_since(other));
    after - ns(other.saturating_since(at))
}

/// The kernel's count of a holder, at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// What it has received in all.
    pub service: Service,
    /// How often it was given the processor; `None` where that cannot be seen.
    pub turns: Option<u64>,
}

/// What is seen when a slot's end has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The kernel's count of its holder.
    pub count: Count,
    /// When the dispatcher had woken at its end.
    pub woke: Instant,
    /// What the kernel counted as the dispatcher's since it decided that the slot begins; `None` where it did other things too.
    pub own: Option<Span>,
}

/// The slot under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UnderWay {
    length_ns: i64,
    before: Count,
    /// When it was decided that it begins, and when the dispatcher was done with that.
    decided: Instant,
    done: Instant,
    /// When its holder was to run.
    runs: Instant,
    /// For when its end is set.
    end: Instant,
    looks: u8,
}

/// What the switches of one owner's slots cost.
///
/// ```
/// use laxity_model::enforce::{Count, Following, Look, Switching};
/// use laxity_model::{Instant, Service, Span};
///
/// let us = Span::from_micros;
/// let measured = Switching { entering: us(10), resuming: us(6), unseen_each: us(5), ..Switching::default() };
/// let mut following = Following::new(measured);
/// let count = |service| Count { service: Service::from_micros(service), turns: Some(1) };
/// let decided = Instant::from_millis(20);
/// // Of 10 µs until the holder runs 4 have passed.
/// let before = Count { turns: Some(0), ..count(7_000) };
/// let end = following.begin(us(1_000), before, decided, decided + us(4));
/// assert_eq!(end, decided + us(1_010));
/// // It received 905 µs, of which 5 were the way in and out: 100 more, and the 6 that pass until it runs again.
/// let look = Look { count: count(7_905), woke: end, own: None };
/// let until = following.look(&look, end).expect("it lacks so much");
/// assert_eq!(until.saturating_since(end).as_nanos() / 1_000, 106);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Following {
    measured: Switching,
    entering: Followed,
    /// The part of it that comes after the dispatcher is done.
    resuming: Followed,
    waking: Followed,
    nobodys: Followed,
    /// How much longer than promised a slot is from its holder's first instruction to the instant for which its end is set. Slots that lack more
    /// are prolonged, but what was too much is not taken back: so it is nearer to the least that is needed.
    beyond: Followed,
    slot: Option<UnderWay>,
}

impl Following {
    /// Nothing has been seen but what was measured before.
    #[must_use]
    pub const fn new(measured: Switching) -> Self {
        let entering = measured.entering.as_nanos() as i64;
        Self {
            measured,
            entering: Followed::evenly(entering),
            resuming: Followed::evenly(measured.resuming.as_nanos() as i64),
            waking: Followed::evenly(measured.waking.as_nanos() as i64),
            nobodys: Followed::least(measured.nobodys.as_nanos() as i64),
            beyond: Followed::least(-measured.leaving_ns),
            slot: None,
        }
    }

    /// How long before a slot it is to be decided that it begins.
    pub fn entering(&self) -> Span {
        span(self.entering.ns)
    }

    /// The costs as they are now.
    pub fn switching(&self) -> Switching {
        Switching {
            entering: self.entering(),
            resuming: span(self.resuming.ns),
            leaving_ns: -self.beyond.ns,
            waking: span(self.waking.ns),
            unseen_each: span(self.unseen_each_ns()),
            nobodys: span(self.nobodys.ns),
            ..self.measured
        }
    }

    /// A slot of this length begins: it was decided at one instant, and the dispatcher is done with it at the other. Its holder's count is from
    /// before. Returns for when its end is to be set.
    pub fn begin(
        &mut self,
        length: Span,
        before: Count,
        decided: Instant,
        done: Instant,
    ) -> Instant {
        let length_ns = ns(length);
        self.beyond.ns = bounded(self.beyond.ns, length_ns);
        let runs = shifted(done, self.resuming.ns);
        let end = shifted(runs, length_ns.saturating_add(self.beyond.ns)).max(done);
        self.slot = Some(UnderWay {
            length_ns,
            before,
            decided,
            done,
            runs,
            end,
            looks: 0,
        });
        end
    }

    /// The slot under way is over, or there is none.
    pub const fn end(&mut self) {
        self.slot = None;
    }

    /// The end of the slot under way is not set for when it was to be, but for then.
    pub const fn set_end(&mut self, end: Instant) {
        if let Some(slot) = &mut self.slot {
            slot.end = end;
        }
    }

    /// Whether a slot is under way whose end is still to be looked at.
    pub fn is_to_be_looked_at(&self) -> bool {
        self.slot.is_some_and(|slot| slot.looks < LOOKS)
    }

    /// The end of the slot under way has come. Returns until when it is to be prolonged; `None` if it is not to be.
    pub fn look(&mut self, look: &Look, now: Instant) -> Option<Instant> {
        let mut slot = self.slot?;
        let is_first = slot.looks == 0;
        slot.looks += 1;
        self.slot = Some(slot);
        if is_first {
            self.waking.follow(since(look.woke, slot.end));
        }
        let received = look.count.service.saturating_sub(slot.before.service);
        let received = ns(received.as_dedicated_span());
        let ways = self.ways(&slot, received, look, now);
        let unseen = ways.saturating_mul(self.unseen_each_ns());
        let unseen = unseen.saturating_add(self.handlers_ns(&slot, look.woke));
        let own = received.saturating_sub(unseen);
        let lacking = slot.length_ns - own;
        // By the kernel's count: what is not seen of a way in and out takes nobody's place who was not there.
        if slot.length_ns - received > most_lacking_ns(slot.length_ns) {
            return None;
        }
        if is_first {
            self.learn(&slot, ways, own, lacking);
        }
        let least = least_ns(slot.length_ns).max(self.measured.leaving_ns);
        let is_worth_it = lacking > least && slot.looks < LOOKS;
        let late = self.measured.leaving_ns;
        is_worth_it.then(|| shifted(now, self.resuming.ns.max(0).saturating_add(lacking - late)))
    }

    /// How often the holder of a slot was given the processor, as far as it can be known.
    fn ways(&mut self, slot: &UnderWay, received_ns: i64, look: &Look, now: Instant) -> i64 {
        let turns = look.count.turns.zip(slot.before.turns);
        let turns = turns.map_or(1, |(all, before)| all.saturating_sub(before).max(1));
        let mut ways = i64::try_from(turns).unwrap_or(i64::MAX);
        if let (1, Some(own)) = (ways, look.own) {
            // What nobody on this processor took, what is below the kernel did: that is a way out and in too.
            let nobodys = since(now, slot.decided) - ns(own) - received_ns;
            let is_more = nobodys - self.nobodys.ns > LEAST_NS.max(self.unseen_each_ns() / 2);
            ways += i64::from(is_more);
            self.nobodys.follow(nobodys);
        }
        ways
    }

    /// A slot was used: its holder had so much for itself of what it was given, and lacked so much.
    fn learn(&mut self, slot: &UnderWay, ways: i64, own_ns: i64, lacking_ns: i64) {
        let given = since(slot.end, slot.runs) - slot.length_ns;
        // What it lacks and is not made up for is as much above what it is to have as below.
        let middle = least_ns(slot.length_ns) / 2;
        self.beyond
            .follow(given.saturating_add(lacking_ns).saturating_add(middle));
        self.beyond.ns = bounded(self.beyond.ns, slot.length_ns);
        if ways == 1 {
            // Nobody came in between: it ran from its first instruction to the timer.
            let left = shifted(slot.end, self.measured.leaving_ns);
            let entering = since(left, slot.decided) - own_ns;
            self.entering.follow(entering);
            self.resuming
                .follow(entering - since(slot.done, slot.decided));
        }
    }

    /// What interrupt handlers took of a slot.
    fn handlers_ns(&self, slot: &UnderWay, now: Instant) -> i64 {
        let spread = slot.length_ns / 1_000 * i64::from(self.measured.unseen_ppm) / 1_000;
        let ticks = self.measured.ticks.map_or(0, |ticks| {
            let came = i64::try_from(ticks.between(slot.runs, now)).unwrap_or(i64::MAX);
            came.saturating_mul(self.as_it_moves(ticks.each))
        });
        spread.saturating_add(ticks)
    }

    fn unseen_each_ns(&self) -> i64 {
        self.as_it_moves(self.measured.unseen_each)
    }

    /// As measured, and as much more as the dispatcher takes longer to get the processor: an interrupt and a switch are part of both.
    fn as_it_moves(&self, measured: Span) -> i64 {
        let more = self.waking.ns - ns(self.measured.waking);
        ns(measured).saturating_add(more).max(0)
    }
}

/// What is made up for in a slot of this length at least.
fn least_ns(length_ns: i64) -> i64 {
    LEAST_NS.max(length_ns / LEAST_PART)
}

/// What is made up for in a slot of this length at most.
pub(super) fn most_lacking(length: Span) -> Span {
    span(most_lacking_ns(ns(length)))
}

fn most_lacking_ns(length_ns: i64) -> i64 {
    (length_ns / MOST_PART).max(MOST_SHORT_NS.min(length_ns / 2))
}

/// By so much the end of a slot of this length may be shifted before it is looked at.
fn bounded(beyond_ns: i64, length_ns: i64) -> i64 {
    beyond_ns.clamp(-most_lacking_ns(length_ns), length_ns / BEYOND_PART)
}

/// How early the dispatcher wakes before it is decided that a slot begins: so early that it is seldom late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lead(Followed);

impl Lead {
    /// So early at first.
    pub(super) const fn new(first: Span) -> Self {
        Self(Followed {
            ns: first.as_nanos() as i64,
            parts: [2, 64],
        })
    }

    /// It woke so long after it had to.
    pub(super) fn follow(&mut self, late: Span) {
        self.0.follow(ns(late));
    }

    /// So early.
    pub(super) fn span(&self) -> Span {
        span(self.0.ns)
    }
}
