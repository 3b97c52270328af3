//! Who holds what on one processor, and the answer to every request to change that while the table is carried out.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use super::mode_change::{self, Missed, Promise, promises};
use super::slack::{Need, Terms, allocate};
use crate::base::number::last_of;
use crate::policy::slots::{Calendar, Extra, Objective, PlanCosts, SlotTable, find_table};
use crate::{Instant, Refused, Reservation, Service, Span, TimeConstraint};

/// How far ahead a deadline may be, which bounds what is looked at.
const FARTHEST: Span = Span::from_secs(1);
/// Changes that are granted and not yet carried out.
const PENDING_AT_MOST: usize = 8;
/// Limits of over-allocation of the tables tried, in parts per million: the usual one, none, and more than is wise otherwise.
const OBJECTIVES_PPM: [u32; 4] = [50_000, 0, 400_000, 3_200_000];

/// Another reservation for an owner, and the tables that would keep it: what takes time to find, and does not depend on the time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    owner: usize,
    asked: Reservation,
    /// What everyone held when it was made.
    held: Vec<Reservation>,
    tables: Vec<Arc<SlotTable>>,
}

/// A time constraint that was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    asked: TimeConstraint,
    /// Its start, or when it was granted if that was later: from then on all that its owner gets counts.
    as_of: Instant,
}

/// Tables to change over to, and what must hold across that: better, and at least.
struct Goal<'a> {
    tables: &'a [Arc<SlotTable>],
    kept: [&'a [Promise]; 2],
    /// The longest window of anybody, before and after.
    longest: Span,
}

/// So much service for a time constraint.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    owner: usize,
    open: Open,
    service: Service,
}

/// The reservations and time constraints of one processor: a state machine. It is told what is asked for and when, answers at once,
/// and keeps the [`Calendar`] that whoever switches is to carry out. Owners are those with a reservation, in the order of the table,
/// and after them those who may ask for time constraints only.
///
/// Nothing it grants takes anything from what it granted before: see [`Self::change`] and [`Self::constrain`].
#[derive(Clone, Debug)]
pub struct AdmissionState {
    costs: PlanCosts,
    /// From an answer until the calendar it changes reaches the thread that carries it out.
    notice: Span,
    held: Vec<Reservation>,
    open: Vec<Option<Open>>,
    calendar: Calendar,
    /// The longest window that the last change had to keep.
    kept: Span,
}

impl AdmissionState {
    /// `table` has been planned for the reservations `held` under `costs`, and begins at `origin`; `others` more owners may ask for
    /// time constraints. No answer takes effect sooner than `notice` after it was asked for.
    #[must_use]
    pub fn new(
        (held, others): (Vec<Reservation>, usize),
        (table, origin): (SlotTable, Instant),
        costs: PlanCosts,
        notice: Span,
    ) -> Self {
        Self {
            costs,
            notice,
            open: vec![None; held.len() + others],
            held,
            calendar: Calendar::new(table, origin),
            kept: Span::ZERO,
        }
    }

    /// Who has the processor when, by all that was granted.
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// No later answer takes effect sooner than this after it was asked for.
    pub fn set_notice(&mut self, notice: Span) {
        self.notice = notice;
    }

    /// What an owner holds, or will when the last change takes effect; `None` for one without a reservation.
    pub fn held(&self, owner: usize) -> Option<Reservation> {
        self.held.get(owner).copied()
    }

    /// Whether an owner has a time constraint whose deadline is not past.
    pub fn is_constrained(&self, owner: usize, now: Instant) -> bool {
        let open = self.open.get(owner).copied().flatten();
        open.is_some_and(|open| open.asked.deadline() > now)
    }

    /// Plans for another reservation of an owner's, without deciding anything. Refused if there is no table. An owner without a
    /// reservation has none to change: a bug of the caller's, and a panic. Cost: that of four plans, some milliseconds.
    pub fn propose(&self, owner: usize, asked: Reservation) -> Result<Proposal, Refused> {
        let mut wanted = self.held.clone();
        wanted[owner] = asked;
        Ok(Proposal {
            owner,
            asked,
            held: self.held.clone(),
            tables: self.tables(&wanted)?,
        })
    }

    /// Tables of several kinds that keep these reservations, the usual one first.
    fn tables(&self, wanted: &[Reservation]) -> Result<Vec<Arc<SlotTable>>, Refused> {
        let mut tables: Vec<Arc<SlotTable>> = Vec::new();
        for most_over_ppm in OBJECTIVES_PPM {
            let table = find_table(wanted, &self.costs, Objective { most_over_ppm });
            let table = table.map_err(Refused::Slots)?;
            if tables.iter().all(|known| **known != table) {
                tables.push(Arc::new(table));
            }
        }
        Ok(tables)
    }

    /// Decides on a proposal: from when it holds, or why nothing changes.
    ///
    /// Across the change every other reservation has its X in every window of Y, also in those that begin before and end after; every
    /// time constraint has what was granted; and who changes has the lesser X in every window of the longer Y. Up to the change it
    /// has its old reservation, and from then on its new one.
    ///
    /// Cost: mostly some microseconds; bounded, some milliseconds for each table that no mode change to is found, and where none is found to
    /// any, that of four more plans for a table on the way.
    pub fn change(&mut self, proposal: Proposal, now: Instant) -> Result<Instant, Refused> {
        let Proposal {
            owner,
            asked,
            held,
            tables,
        } = proposal;
        if held != self.held {
            // Somebody else's change was granted meanwhile: this plan knows nothing of it.
            let again = self.propose(owner, asked)?;
            return self.change(again, now);
        }
        self.tidy(now);
        if self.held.get(owner) == Some(&asked) {
            return Ok(now.max(self.calendar.last().1));
        }
        if self.calendar.to_come(now) >= PENDING_AT_MOST {
            return Err(Refused::Changing);
        }
        let mut wanted = self.held.clone();
        wanted[owner] = asked;
        let (least, better) = promises(&self.held, &wanted);
        let longest = self.longest_window(&wanted);
        let to = Goal {
            tables: &tables,
            kept: [&better, &least],
            longest: longest.max(self.kept),
        };
        let direct = self.mode_change(&self.calendar, now, &to);
        let found = direct.or_else(|missed| {
            let bridged = self.by_a_bridge(now, &to);
            bridged.map_err(|too| too.max(missed))
        });
        let (at, calendar) = found.map_err(|missed| match missed {
            Missed::Nowhere => Refused::NoModeChange {
                within: self.calendar.last().0.cycle(),
            },
            Missed::Unfinished => Refused::SearchEnded,
        })?;
        self.calendar = calendar;
        self.held = wanted;
        self.kept = longest;
        debug_assert!(self.conserves(now), "a change took what was granted");
        Ok(at)
    }

    /// The earliest mode change to the first table that can be had.
    fn mode_change(
        &self,
        from: &Calendar,
        now: Instant,
        to: &Goal,
    ) -> Result<(Instant, Calendar), Missed> {
        let earliest = self.earliest_mode_change(from, now, to.longest);
        let mut missed = Missed::Nowhere;
        for kept in to.kept {
            for table in to.tables {
                let start = (earliest, self.cost());
                let settled = |candidate: Calendar| self.with_constraints(candidate, now, None);
                match mode_change::find(from, table, kept, start, settled) {
                    Ok(found) => return Ok(found),
                    Err(why) => missed = missed.max(why),
                }
            }
        }
        Err(missed)
    }

    /// By way of another table of what is held now.
    fn by_a_bridge(&self, now: Instant, to: &Goal) -> Result<(Instant, Calendar), Missed> {
        let bridges = self.tables(&self.held).map_err(|_| Missed::Nowhere)?;
        let (kept, _) = promises(&self.held, &self.held);
        let mut missed = Missed::Nowhere;
        for bridge in bridges.chunks(1) {
            let over = Goal {
                tables: bridge,
                kept: [&kept, &kept],
                longest: to.longest,
            };
            let onto = self.mode_change(&self.calendar, now, &over);
            match onto.and_then(|(_, calendar)| self.mode_change(&calendar, now, to)) {
                Ok(found) => return Ok(found),
                Err(why) => missed = missed.max(why),
            }
        }
        Err(missed)
    }

    /// Decides on a time constraint of an owner's: from when it holds, which is its start or now, or why nothing changes.
    ///
    /// The owner's own slots between start and deadline count for it; what they lack is given from unreserved time, earliest deadline
    /// first among all constraints, so it is granted if and only if there is a way to meet all of them (switches, which cost time,
    /// apart). It takes nothing from any reservation. All that it gets is planned now, so that nobody who is late takes it away.
    pub fn constrain(
        &mut self,
        owner: usize,
        asked: TimeConstraint,
        now: Instant,
    ) -> Result<Instant, Refused> {
        self.tidy(now);
        if self.is_constrained(owner, now) {
            return Err(Refused::HasConstraint);
        }
        if asked.deadline().saturating_since(now) > FARTHEST {
            return Err(Refused::TooFarAhead { at_most: FARTHEST });
        }
        let as_of = asked.start().max(now);
        let fits = |service| {
            let calendar = self.calendar.clone();
            let more = Wanted {
                owner,
                open: Open { asked, as_of },
                service,
            };
            self.with_constraints(calendar, now, Some(more))
        };
        let Some(calendar) = fits(asked.service()) else {
            let fits = |nanos| Ok::<_, Infallible>(fits(Service::from_nanos(nanos)).is_some());
            let Ok(most) = last_of(0, asked.service().as_nanos(), fits);
            return Err(Refused::Time {
                needed: asked.service(),
                available: Service::from_nanos(most),
            });
        };
        self.calendar = calendar;
        self.open[owner] = Some(Open { asked, as_of });
        debug_assert!(self.conserves(now), "a constraint took what was granted");
        Ok(as_of)
    }

    /// An owner needs no more of its time constraint; returns its deadline if there was one that is not past. What it still had of
    /// unreserved time is unreserved again from `now` on.
    pub fn release(&mut self, owner: usize, now: Instant) -> Option<Instant> {
        let open = self.open.get_mut(owner)?.take()?;
        let extras = self.calendar.extras().iter();
        let left = extras.filter_map(|extra| {
            let until = match extra.owner == owner {
                true => extra.until.min(now),
                false => extra.until,
            };
            (extra.from < until).then_some(Extra { until, ..*extra })
        });
        self.calendar = self.calendar.clone().with_extras(left.collect());
        debug_assert!(self.conserves(now), "a release took what was granted");
        (open.asked.deadline() > now).then(|| open.asked.deadline())
    }

    /// Whether all that was granted is there, and nothing is there twice: the last table keeps every reservation, no unreserved time is
    /// given to two or lies in a slot, and every open time constraint has its service. Holds after every operation.
    fn conserves(&self, now: Instant) -> bool {
        let (table, _) = self.calendar.last();
        let extras = self.calendar.extras();
        let mut to_come = extras.iter().filter(|extra| extra.from >= now);
        let unreserved = |extra: &Extra| {
            let mut pieces = self.calendar.pieces(extra.from, extra.until);
            pieces.all(|piece| piece.owner.is_none())
        };
        let has_its_service = |(owner, open): (usize, Open)| {
            let (from, to) = (open.as_of, open.asked.deadline());
            let own = self.own_service(&self.calendar, owner, from, to);
            own + self.calendar.extra_service(owner, from, to) >= open.asked.service()
        };
        let open = self.open.iter().enumerate();
        let open = open.filter_map(|(owner, open)| Some((owner, (*open)?)));
        let mut open = open.filter(|(_, open)| open.asked.deadline() > now);
        table.keeps(&self.held)
            && extras.is_sorted_by(|one, next| one.until <= next.from)
            && to_come.all(unreserved)
            && open.all(has_its_service)
    }

    fn cost(&self) -> Span {
        self.costs.per_slot.as_dedicated_span()
    }

    /// No window of any reservation may hold two mode changes.
    fn earliest_mode_change(&self, from: &Calendar, now: Instant, longest: Span) -> Instant {
        let earliest = (now + self.notice).max(from.last().1);
        let after_last = from.last_mode_change();
        let after_last = after_last.and_then(|last| last.checked_add(longest));
        earliest.max(after_last.unwrap_or(Instant::ZERO))
    }

    fn longest_window(&self, wanted: &[Reservation]) -> Span {
        let all = self.held.iter().chain(wanted);
        all.map(|held| held.period()).max().unwrap_or(Span::ZERO)
    }

    /// Forgets what is past.
    fn tidy(&mut self, now: Instant) {
        for open in &mut self.open {
            if open.is_some_and(|open| open.asked.deadline() <= now) {
                *open = None;
            }
        }
        let longest = self.longest_window(&[]).max(self.kept).max(FARTHEST);
        self.calendar.forget(now, longest);
    }

    /// The calendar with unreserved time given to all constraints, and to one more; `None` if it does not suffice. What is given
    /// already within the notice stays as it is.
    fn with_constraints(
        &self,
        candidate: Calendar,
        now: Instant,
        more: Option<Wanted>,
    ) -> Option<Calendar> {
        let from = now + self.notice;
        let mut kept: Vec<Extra> = Vec::new();
        let given = self.calendar.extras().iter();
        kept.extend(given.filter(|extra| extra.from < from).map(|extra| Extra {
            until: extra.until.min(from),
            ..*extra
        }));
        let current = kept.last().filter(|last| last.until == from);
        let current = current.map(|last| last.owner);
        let open = self.open.iter().enumerate();
        let open = open.filter_map(|(owner, open)| {
            let open = (*open)?;
            let service = open.asked.service();
            Some(Wanted {
                owner,
                open,
                service,
            })
        });
        let needs = open.chain(more).map(|wanted| {
            let (owner, Open { asked, as_of }) = (wanted.owner, wanted.open);
            let own = self.own_service(&candidate, owner, as_of, asked.deadline());
            let had = self.calendar.extra_service(owner, as_of, from);
            Need {
                owner,
                release: asked.start().max(from),
                deadline: asked.deadline(),
                service: wanted.service.saturating_sub(own).saturating_sub(had),
            }
        });
        let terms = Terms {
            cost: self.cost(),
            shortest: self.costs.granularity,
        };
        let new = allocate(&candidate, from, current, needs.collect(), terms).ok()?;
        kept.extend(new);
        Some(candidate.with_extras(kept))
    }

    /// What an owner with a reservation has by the tables.
    fn own_service(
        &self,
        calendar: &Calendar,
        owner: usize,
        from: Instant,
        to: Instant,
    ) -> Service {
        if owner < self.held.len() {
            calendar.service_by_tables(owner, from, to)
        } else {
            Service::ZERO
        }
    }
}
