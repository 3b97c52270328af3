//! Executes slot tables: a state machine that is asked what to do now, and answers with the next effect.

use alloc::vec::Vec;

use super::allowance::Allowance;
use super::following::{Count, Following, Lead, Look, Switching, most_lacking};
use crate::policy::slots::{Calendar, Occupancy, PlanCosts, SlotTable};
use crate::{Instant, Span};

/// What a dispatcher is to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Give the processor up until this instant, then poll again.
    SleepUntil(Instant),
    /// Keep the processor until this instant, then poll again.
    SpinUntil(Instant),
    /// Say by [`Dispatcher::looked`] what the holder of the slot that ends has received, then poll again.
    Look {
        /// Whose slot it is.
        owner: usize,
    },
    /// Take the processor from one owner and give it to the other at once, then poll again. Whoever gets it is told of by
    /// [`Dispatcher::entered`].
    Switch {
        /// Who had it by the last switch; `None`: nobody's slot.
        from: Option<usize>,
        /// Who has it from now on; `None`: nobody's slot.
        to: Option<usize>,
        /// The edge of the table that this switch carries out: a little ahead of now, or behind it after a stall or where the slot was
        /// prolonged.
        edge: Instant,
    },
}

/// How early edges are carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Pace {
    /// Always alike, and slots end at the table's edges.
    Fixed { lead: Span, compensation: Span },
    /// By what switches cost.
    Followed(Followed),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Followed {
    /// By owner.
    owners: Vec<Following>,
    lead: Lead,
    costs: PlanCosts,
    made_up: Allowance,
}

/// The slot that was entered last: its end is set for another instant than the table's edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shifted {
    owner: usize,
    begins: Instant,
    edge: Instant,
    at: Instant,
}

/// Carries out a [`Calendar`] of slot tables in real or virtual time.
///
/// Before an edge that gives the processor to somebody it wakes early, spins, and switches before the edge by
/// what the switch costs: so the owner runs at the edge, not after it. The planner's cost per slot keeps the time before each
/// slot free of other slots, so that is taken from nobody.
///
/// An edge that only ends a slot is carried out when its owner has received what the table gives it, by what is seen of it
/// ([`Following`]): a little before the edge or after it, but never in the time in which the next slot is prepared, nor so that slots and what is made
/// up for them take more of the processor than [`slots::MOST_IN_ALL_PPM`](super::slots::MOST_IN_ALL_PPM).
///
/// After a stall, however long, the first switch goes straight to whom the table names now: edges that have passed are not replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatcher {
    calendar: Calendar,
    pace: Pace,
    current: Option<usize>,
    /// When it was decided that the slot under way begins.
    decided: Instant,
    shifted: Option<Shifted>,
}

impl Dispatcher {
    /// A dispatcher of `table`, whose first cycle begins at `origin`, on a machine where a switch always costs `compensation`. A lead shorter than
    /// that counts as equal to it.
    #[must_use]
    pub fn new(table: SlotTable, origin: Instant, lead: Span, compensation: Span) -> Self {
        let lead = lead.max(compensation);
        let pace = Pace::Fixed { lead, compensation };
        Self::paced(Calendar::new(table, origin), pace)
    }

    /// A dispatcher of `table`, whose first cycle begins at `origin`, for so many owners, that follows what switches cost: at first as was
    /// measured. The table was planned by these costs.
    #[must_use]
    pub fn following(
        table: SlotTable,
        origin: Instant,
        owners: usize,
        measured: Switching,
        costs: PlanCosts,
    ) -> Self {
        let followed = Followed {
            owners: alloc::vec![Following::new(measured); owners],
            lead: Lead::new(measured.lead),
            costs,
            made_up: Allowance::beside(&table, &costs),
        };
        Self::paced(Calendar::new(table, origin), Pace::Followed(followed))
    }

    const fn paced(calendar: Calendar, pace: Pace) -> Self {
        Self {
            calendar,
            pace,
            current: None,
            decided: Instant::ZERO,
            shifted: None,
        }
    }

    /// What is carried out.
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Carries out another calendar from now on; the next poll tells what that means. Returns the one before, so that whoever is in a
    /// hurry need not free its memory.
    pub fn follow(&mut self, calendar: Calendar) -> Calendar {
        if let Pace::Followed(followed) = &mut self.pace {
            let (table, _) = calendar.last();
            followed.made_up.is_now_beside(table, &followed.costs);
        }
        core::mem::replace(&mut self.calendar, calendar)
    }

    /// Who has the processor by the last switch.
    pub const fn current(&self) -> Option<usize> {
        self.current
    }

    /// What the switches of an owner's slots cost, as far as it was seen; `None` where nothing is followed.
    pub fn switching(&self, owner: usize) -> Option<Switching> {
        match &self.pace {
            Pace::Fixed { .. } => None,
            Pace::Followed(followed) => followed.owners.get(owner).map(Following::switching),
        }
    }

    /// What to do now. `now` never goes back. A switch that is returned counts as carried out. O(log entries).
    pub fn poll(&mut self, now: Instant) -> Command {
        if let Some(until) = self.shifted_end(now) {
            return Command::SleepUntil(until);
        }
        let occupancy = self.occupancy(now);
        if occupancy.owner != self.current {
            return self.switch(occupancy, now);
        }
        let edge = occupancy.until;
        let Some(owner) = self.owner_from(edge) else {
            return Command::SleepUntil(edge);
        };
        let wake = edge.saturating_sub(self.lead(owner));
        if now < wake {
            Command::SleepUntil(wake)
        } else {
            Command::SpinUntil(edge.saturating_sub(self.compensation(owner)))
        }
    }

    fn switch(&mut self, occupancy: Occupancy, now: Instant) -> Command {
        if let (Pace::Followed(followed), Some(owner)) = (&mut self.pace, self.current) {
            let following = followed.owners.get_mut(owner);
            if let Some(following) = following {
                if occupancy.owner.is_none() && following.is_to_be_looked_at() {
                    return Command::Look { owner };
                }
                following.end();
            }
            if let Some(shifted) = self.shifted {
                followed.made_up.take(now.saturating_since(shifted.edge));
            }
        }
        if occupancy.owner.is_some() {
            self.decided = now;
            self.shifted = None;
        }
        let from = core::mem::replace(&mut self.current, occupancy.owner);
        Command::Switch {
            from,
            to: occupancy.owner,
            edge: occupancy.since,
        }
    }

    /// The owner of the slot at this edge, to whom the last switch gave the processor, has it, and the dispatcher is done with that `now`: its count was
    /// this before. `None`: nobody is there to use the slot, which ends at its edge.
    pub fn entered(&mut self, edge: Instant, before: Option<Count>, now: Instant) {
        let (Pace::Followed(followed), Some(owner)) = (&mut self.pace, self.current) else {
            return;
        };
        let Some(following) = followed.owners.get_mut(owner) else {
            return;
        };
        following.end();
        let end = self.calendar.at(edge).until;
        let latest = latest(&self.calendar, &followed.costs, end);
        let length = end.saturating_since(edge);
        // Who comes later than what is made up for has what is left of the slot.
        let is_late = now > edge + most_lacking(length);
        if let (Some(before), false) = (before, is_late) {
            let at = following.begin(length, before, self.decided, now);
            let at = at.min(end + followed.made_up.left(now)).min(latest);
            following.set_end(at);
            self.shifted = Some(Shifted {
                owner,
                begins: edge,
                edge: end,
                at,
            });
        }
    }

    /// What was seen of the slot that ends: see [`Command::Look`]. `None`: nobody is there any more.
    pub fn looked(&mut self, look: Option<&Look>, now: Instant) {
        let (Pace::Followed(followed), Some(owner)) = (&mut self.pace, self.current) else {
            return;
        };
        let Some(following) = followed.owners.get_mut(owner) else {
            return;
        };
        let until = look.and_then(|look| following.look(look, now));
        let (Some(until), Some(shifted)) = (until, &mut self.shifted) else {
            return following.end();
        };
        let latest = latest(&self.calendar, &followed.costs, shifted.edge);
        let at = until
            .min(shifted.edge + followed.made_up.left(now))
            .min(latest);
        if at <= now {
            return following.end();
        }
        shifted.at = at;
        following.set_end(at);
    }

    /// It was to wake at one instant, and did at the other: how early it does before a slot follows that.
    pub fn woke(&mut self, due: Instant, now: Instant) {
        if let (Pace::Followed(followed), None) = (&mut self.pace, self.current) {
            followed.lead.follow(now.saturating_since(due));
        }
    }

    /// The end of the slot under way, if that is still to come and another than the table's edge.
    fn shifted_end(&self, now: Instant) -> Option<Instant> {
        let Shifted {
            owner,
            begins,
            edge,
            at,
        } = self.shifted?;
        // It was entered a little ahead of its edge.
        let occupancy = self.calendar.at(now.max(begins));
        let is_under_way = occupancy.owner == Some(owner) && occupancy.until == edge;
        let is_over = occupancy.owner.is_none() && occupancy.since == edge;
        if self.current != Some(owner) || !(is_under_way || is_over) {
            return None;
        }
        let Pace::Followed(followed) = &self.pace else {
            return None;
        };
        // Somebody may have been granted the time after it since its end was set.
        let at = at.min(latest(&self.calendar, &followed.costs, edge));
        (at > now).then_some(at)
    }

    /// Who is to have the processor, the switch that is due within the compensation already counted.
    fn occupancy(&self, now: Instant) -> Occupancy {
        let mut occupancy = self.calendar.at(now);
        if let Some(shifted) = self.shifted
            && occupancy.owner == Some(shifted.owner)
            && (occupancy.until, self.owner_from(shifted.edge)) == (shifted.edge, None)
            && shifted.at <= now
        {
            // Its owner has received what the rest of the slot was for.
            let (owner, since, until) = (None, shifted.edge, shifted.edge);
            occupancy = Occupancy {
                owner,
                since,
                until,
            };
        }
        match self.owner_from(occupancy.until) {
            Some(owner) if occupancy.until.saturating_sub(self.compensation(owner)) <= now => {
                self.calendar.at(occupancy.until)
            }
            _ => occupancy,
        }
    }

    /// Whose slot begins at this edge, if one does.
    fn owner_from(&self, edge: Instant) -> Option<usize> {
        self.calendar.at(edge).owner
    }

    /// How long before a slot of this owner's it is decided that it begins.
    fn compensation(&self, owner: usize) -> Span {
        match &self.pace {
            Pace::Fixed { compensation, .. } => *compensation,
            Pace::Followed(followed) => {
                let following = followed.owners.get(owner);
                let entering = following.map_or(Span::ZERO, Following::entering);
                entering.min(self.longest_lead())
            }
        }
    }

    /// How long before a slot of this owner's it wakes.
    fn lead(&self, owner: usize) -> Span {
        match &self.pace {
            Pace::Fixed { lead, .. } => *lead,
            Pace::Followed(followed) => {
                let lead = self.compensation(owner) + followed.lead.span();
                lead.min(self.longest_lead())
            }
        }
    }

    /// What the planner keeps free before each slot: what is done before one is done there, whatever it costs.
    fn longest_lead(&self) -> Span {
        match &self.pace {
            Pace::Fixed { lead, .. } => *lead,
            Pace::Followed(followed) => followed.costs.per_slot.as_dedicated_span(),
        }
    }
}

/// Until when a slot that ends at this edge may be prolonged: not into the time in which the next slot is prepared.
fn latest(calendar: &Calendar, costs: &PlanCosts, edge: Instant) -> Instant {
    let after = calendar.at(edge);
    if after.owner.is_some() {
        return edge;
    }
    let prepared = after
        .until
        .saturating_sub(costs.per_slot.as_dedicated_span());
    prepared.max(edge)
}
