//! The fair class: earliest eligible virtual deadline first (Stoica, Abdel-Wahab 1995), as Linux has had it since 6.6.
//!
//! A thread's virtual time grows as it runs, the slower the heavier it is. Eligible is who is not ahead of the average; of those, the one whose
//! virtual deadline (virtual time plus a slice) comes first runs, and keeps the processor until its slice is used up. Who wakes while
//! another has not used up its slice waits for that.
//!
//! Simplified: one group, no load tracking, no buddies, all slices equal. A thread that sleeps while it is ahead of the average keeps its place in
//! virtual time until the average has caught up (the kernel keeps it queued until then); one that is behind keeps what it lacks.

use laxity_model::Span;

/// What a nice value weighs; a nice step is a factor of about 1.25.
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];
/// The weight of nice 0: its virtual time is real time.
const UNIT: u32 = 1_024;
/// The weight of `SCHED_IDLE`.
const IDLE: u32 = 3;

/// How a thread of the fair class competes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weight {
    shares: u32,
    /// Whether it gives way at once to everybody who is not idle.
    idle: bool,
}

impl Weight {
    pub(super) const IDLE: Self = Self {
        shares: IDLE,
        idle: true,
    };

    pub(super) fn of_nice(nice: i8) -> Self {
        let place = usize::from((nice.clamp(-20, 19) + 20).unsigned_abs());
        Self {
            shares: WEIGHTS[place],
            idle: false,
        }
    }

    /// Virtual time for real time.
    fn virtual_ns(self, real: Span) -> i64 {
        let scaled = u128::from(real.as_nanos()) * u128::from(UNIT) / u128::from(self.shares);
        i64::try_from(scaled).unwrap_or(i64::MAX / 4)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    /// Virtual time, in nanoseconds of a thread of nice 0.
    runtime: i64,
    deadline: i64,
    /// How far it was behind the average when it left.
    lag: i64,
}

/// The ready threads of the fair class on one processor.
#[derive(Clone, Debug)]
pub(super) struct Fair {
    slice: Span,
    /// The most that somebody keeps of what he lacks, as real time.
    most_lag: Span,
    entities: Vec<Entity>,
    ready: Vec<u16>,
    current: Option<u16>,
    /// The average when somebody was last there.
    average: i64,
}

impl Fair {
    pub(super) fn new(threads: usize, slice: Span, tick: Span) -> Self {
        let entity = Entity {
            weight: Weight::of_nice(0),
            runtime: 0,
            deadline: 0,
            lag: 0,
        };
        Self {
            slice,
            most_lag: (slice * 2).max(tick),
            entities: vec![entity; threads],
            ready: Vec::with_capacity(threads),
            current: None,
            average: 0,
        }
    }

    pub(super) fn current(&self) -> Option<u16> {
        self.current
    }

    /// Somebody above the class has the processor: who had it competes again with all others.
    pub(super) fn put_back(&mut self) {
        self.current = None;
    }

    /// Gives a thread that is not ready a weight.
    pub(super) fn weigh(&mut self, thread: u16, weight: Weight) {
        self.entities[usize::from(thread)].weight = weight;
    }

    /// A thread is ready; tells whether the one that runs must give way at once.
    pub(super) fn enter(&mut self, thread: u16) -> bool {
        let average = self.update_average();
        let load: i64 = self.ready.iter().map(|other| self.shares(*other)).sum();
        let slice = self.slice;
        let entity = &mut self.entities[usize::from(thread)];
        entity.runtime = if entity.lag < 0 {
            entity.runtime.max(average)
        } else if load == 0 {
            average
        } else {
            // The average moves towards who joins: what he lacks is stretched, so that he has it afterwards.
            let shares = i64::from(entity.weight.shares);
            average - entity.lag * (load + shares) / load
        };
        entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
        let idle = entity.weight.idle;
        self.ready.push(thread);
        let current = self.current.map(|current| self.entity(current).weight.idle);
        current == Some(true) && !idle
    }

    /// A thread is no longer ready here.
    pub(super) fn leave(&mut self, thread: u16) {
        let average = self.update_average();
        self.ready.retain(|other| *other != thread);
        if self.current == Some(thread) {
            self.current = None;
        }
        let most_lag = self.most_lag;
        let entity = &mut self.entities[usize::from(thread)];
        let most = entity.weight.virtual_ns(most_lag);
        entity.lag = (average - entity.runtime).clamp(-most, most);
    }

    /// The one that runs has run for so long; tells whether its slice is used up.
    pub(super) fn charge(&mut self, ran: Span) -> bool {
        let Some(current) = self.current else {
            return false;
        };
        let slice = self.slice;
        let entity = &mut self.entities[usize::from(current)];
        entity.runtime += entity.weight.virtual_ns(ran);
        let used_up = entity.runtime >= entity.deadline;
        if used_up {
            entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
        }
        used_up
    }

    /// The one that runs lets others go first.
    pub(super) fn give_way(&mut self, thread: u16) {
        let slice = self.slice;
        let entity = &mut self.entities[usize::from(thread)];
        entity.runtime = entity.runtime.max(entity.deadline);
        entity.deadline = entity.runtime + entity.weight.virtual_ns(slice);
    }

    /// Chooses who runs: the one that does, unless `anew`.
    pub(super) fn choose(&mut self, anew: bool) -> Option<u16> {
        if self.current.is_none() || anew {
            self.current = self.first();
        }
        self.current
    }

    /// The eligible thread whose virtual deadline comes first; among equals the one that has waited here longest.
    fn first(&self) -> Option<u16> {
        let average = self.weighted_average()?;
        let eligible = self.ready.iter().copied();
        let eligible = eligible.filter(|thread| self.entity(*thread).runtime <= average);
        eligible.min_by_key(|thread| self.entity(*thread).deadline)
    }

    /// The average of virtual times by weight, rounded down; the least is never above it.
    fn weighted_average(&self) -> Option<i64> {
        let base = self.entity(*self.ready.first()?).runtime;
        let (mut sum, mut load) = (0_i128, 0_i128);
        for thread in &self.ready {
            let shares = i128::from(self.shares(*thread));
            sum += i128::from(self.entity(*thread).runtime - base) * shares;
            load += shares;
        }
        i64::try_from(sum.div_euclid(load))
            .ok()
            .map(|off| base + off)
    }

    fn update_average(&mut self) -> i64 {
        if let Some(average) = self.weighted_average() {
            self.average = average;
        }
        self.average
    }

    fn entity(&self, thread: u16) -> &Entity {
        &self.entities[usize::from(thread)]
    }

    fn shares(&self, thread: u16) -> i64 {
        i64::from(self.entity(thread).weight.shares)
    }
}
