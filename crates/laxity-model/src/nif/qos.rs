//! Who is made how urgent, by what clients report of their work (§7 of the paper: "each client provides feedback to a QOS module that uses process priorities and deadlines").
//!
//! A client [reports](Standing) when a packet arrives, and whoever takes its packets when he takes one: how much is waiting or at work, and when the most urgent of it is due. A [`Module`] says what comes of that, in
//! priorities of threads and deadlines on executors, which hosts carry out as [raises](crate::policy::raise). Clients of one module are a group; what it knows is what they stand at, and it keeps nothing itself, so it may be asked from
//! several threads at once.
//!
//! * [`AtArrival`]: each client for itself; critical from its packet's logical arrival on, workahead before, by deadline on an executor (§5).
//! * [`LeastLaxity`]: of all that is critical, first who has the least time to spare beside what he has to do.
//!
//! A module of one's own is a type that implements [`Module`]:
//!
//! ```
//! use laxity_model::nif::qos::{Module, Raise, Reported};
//! use laxity_model::policy::Rank;
//!
//! /// Whoever has more than so many packets before him is critical, whenever these came.
//! struct Long(u32);
//!
//! impl Module for Long {
//!     fn decide(&self, reported: &Reported<'_>, raise: &mut Raise<'_>) {
//!         let own = reported.own();
//!         let rank = if own.packets > self.0 {
//!             own.ranks.critical(own.deadline)
//!         } else {
//!             own.ranks.workahead()
//!         };
//!         raise(own.activity, rank, reported.now);
//!     }
//! }
//! ```

use super::urgency::{Stated, Unit};
use crate::policy::Rank;
use crate::{ActivityId, Instant, Priority, Service, Span};

/// How whoever takes the packets is made as urgent as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ranks {
    /// A thread, with two priorities.
    Thread {
        /// For what is critical.
        critical: Priority,
        /// For what has come before its time.
        workahead: Priority,
    },
    /// A handler of an executor that goes by deadlines. What has come before its time is due at the end of time, behind whatever has a deadline.
    Handler,
}

impl Ranks {
    /// Of what is critical, and due then.
    #[must_use]
    pub const fn critical(self, deadline: Instant) -> Rank {
        match self {
            Self::Thread { critical, .. } => Rank::Priority(critical),
            Self::Handler => Rank::Deadline(deadline),
        }
    }

    /// Of what has come before its time.
    #[must_use]
    pub const fn workahead(self) -> Rank {
        match self {
            Self::Thread { workahead, .. } => Rank::Priority(workahead),
            Self::Handler => Rank::Deadline(Instant::MAX),
        }
    }

    /// Of what is critical, and behind so many others that are: one priority less for each, but above what has come before its time.
    const fn behind(self, others: usize, deadline: Instant) -> Rank {
        let Self::Thread {
            critical,
            workahead,
        } = self
        else {
            return self.critical(deadline);
        };
        let room = critical
            .level()
            .saturating_sub(workahead.level())
            .saturating_sub(1);
        let less = if others < room as usize {
            others as u8
        } else {
            room
        };
        match Priority::new(critical.level() - less) {
            Some(priority) => Rank::Priority(priority),
            None => Rank::Priority(critical),
        }
    }
}

/// What a client states, and who takes its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Rate, burst and delay.
    pub stated: Stated,
    /// What these are of.
    pub unit: Unit,
    /// What a packet takes at the most of whoever takes it; zero where nobody says.
    pub packet: Service,
    /// Who takes the packets, and nothing else.
    pub activity: ActivityId,
    /// How urgent that is.
    pub ranks: Ranks,
}

/// How a client stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Who takes its packets.
    pub activity: ActivityId,
    /// How that is made urgent.
    pub ranks: Ranks,
    /// Packets that wait or are at work.
    pub packets: u32,
    /// What is left of these that is critical, and of the most urgent one in any case: as was stated of a packet.
    pub work: Service,
    /// From here on the most urgent one is critical: the one that is at work, or will be taken next.
    pub logical: Instant,
    /// By then it has to be processed.
    pub deadline: Instant,
}

impl Standing {
    /// Of a client with so many packets, the first of which has this logical arrival.
    #[must_use]
    pub fn of(terms: &Terms, packets: u32, logical: Instant, now: Instant) -> Self {
        let critical = match terms.unit {
            Unit::Packets => terms.stated.critical(packets, logical, now),
            // How many of so many bytes nobody knows before they are taken.
            Unit::Bytes => packets.min(1),
        };
        let work = terms.packet.checked_mul(u64::from(critical));
        Self {
            activity: terms.activity,
            ranks: terms.ranks,
            packets,
            work: work.unwrap_or(Service::MAX),
            logical,
            deadline: terms.stated.due(logical),
        }
    }

    /// The time until the most urgent one's deadline, less the work that is left; `None` where the work is more.
    #[must_use]
    pub fn laxity(&self, now: Instant) -> Option<Span> {
        let left = self.deadline.saturating_since(now);
        let work = self.work.as_dedicated_span();
        (work <= left).then(|| left.saturating_sub(work))
    }

    /// When the work has to begin, or should have, as it is left now: of two who are asked at one time the one with less laxity has to begin earlier, whenever that is.
    #[must_use]
    pub fn latest_start(&self) -> Instant {
        self.deadline.saturating_sub(self.work.as_dedicated_span())
    }
}

/// When a client reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// A packet has arrived, for it counts already.
    Arrival,
    /// A packet is taken, and at work from now on.
    Taken,
}

/// One of a group has reported.
#[derive(Clone, Copy, Debug)]
pub struct Reported<'a> {
    /// How all of the group stand.
    pub all: &'a [Standing],
    /// Which of them it is, which has one packet at least.
    pub who: usize,
    /// Why it reports.
    pub moment: Moment,
    /// When.
    pub now: Instant,
}

impl Reported<'_> {
    /// How the one that has reported stands.
    #[must_use]
    pub const fn own(&self) -> &Standing {
        &self.all[self.who]
    }
}

/// From an instant on, or from now on if that is past, an activity is so urgent; what was arranged for it before and has not happened never will.
pub type Raise<'a> = dyn FnMut(ActivityId, Rank, Instant) + 'a;

/// Sets priorities and deadlines by what clients report. It may be called at interrupt time, so it neither waits nor allocates.
pub trait Module: Send + Sync {
    /// Says who is how urgent from now on, or from when on; of whom it says nothing, that stays as it is.
    fn decide(&self, reported: &Reported<'_>, raise: &mut Raise<'_>);
}

/// Critical from then on, and workahead until then.
fn at_its_time(standing: &Standing, critical: Rank, now: Instant, raise: &mut Raise<'_>) {
    if now < standing.logical {
        // In this order: what is for now takes away what was arranged for a packet that is done.
        raise(standing.activity, standing.ranks.workahead(), now);
    }
    raise(standing.activity, critical, standing.logical);
}

/// Each for itself, by the packet that it is at work on or takes next: critical from its logical arrival on, and due at its deadline on an executor; before, it is workahead, and delays nobody who is critical.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtArrival;

impl Module for AtArrival {
    fn decide(&self, reported: &Reported<'_>, raise: &mut Raise<'_>) {
        let own = reported.own();
        // One that arrives behind others changes nothing, or it would hold up the one before it.
        if reported.moment == Moment::Taken || own.packets == 1 {
            at_its_time(own, own.ranks.critical(own.deadline), reported.now, raise);
        }
    }
}

/// Of all in the group that is critical, first who has the least laxity, whoever of them is served with which delay; what has come before its time stays behind all of it. Threads have one priority less for each that goes first, as far as there
/// are any above their own for workahead; on an executor each is due when it has to begin at the latest, so that admission counts those as due that much earlier. All threads of the group are raised with each report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeastLaxity;

impl Module for LeastLaxity {
    fn decide(&self, reported: &Reported<'_>, raise: &mut Raise<'_>) {
        for (number, one) in reported.all.iter().enumerate() {
            let is_concerned = number == reported.who || matches!(one.ranks, Ranks::Thread { .. });
            if one.packets == 0 || !is_concerned {
                continue;
            }
            let place = |number: usize, one: &Standing| (one.latest_start(), number);
            let others = reported.all.iter().enumerate();
            let first = others.filter(|(other, standing)| {
                let is_critical = standing.logical <= one.logical.max(reported.now);
                standing.packets > 0 && is_critical && place(*other, standing) < place(number, one)
            });
            let critical = one.ranks.behind(first.count(), one.latest_start());
            at_its_time(one, critical, reported.now, raise);
        }
    }
}
