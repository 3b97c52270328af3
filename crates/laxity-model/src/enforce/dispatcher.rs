//! Executes slot tables: a state machine that is asked what to do now, and answers with the next effect.

use crate::policy::slots::{Calendar, Occupancy, SlotTable};
use crate::{Instant, Span};

/// What a dispatcher is to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Give the processor up until this instant, then poll again.
    SleepUntil(Instant),
    /// Keep the processor until this instant, then poll again.
    SpinUntil(Instant),
    /// Take the processor from one owner and give it to the other at once, then poll again.
    Switch {
        /// Who had it by the last switch; `None`: nobody's slot.
        from: Option<usize>,
        /// Who has it from now on; `None`: nobody's slot.
        to: Option<usize>,
        /// The edge of the table that this switch carries out: a little ahead of now, or behind it after a stall.
        edge: Instant,
    },
}

/// Carries out a [`Calendar`] of slot tables in real or virtual time.
///
/// Before an edge that gives the processor to somebody it wakes `lead` early, spins, and switches `compensation` before the edge,
/// which is what the switch costs: so the owner runs at the edge, not after it. An edge that only ends a slot is neither led nor
/// compensated: that time would be taken from the service that was promised. The planner's cost per slot keeps the time before each
/// slot free of other slots, so the lead is taken from nobody either.
///
/// After a stall, however long, the first switch goes straight to whom the table names now: edges that have passed are not replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatcher {
    calendar: Calendar,
    lead: Span,
    compensation: Span,
    current: Option<usize>,
}

impl Dispatcher {
    /// A dispatcher of `table`, whose first cycle begins at `origin`. A lead shorter than the compensation counts as equal to it.
    #[must_use]
    pub fn new(table: SlotTable, origin: Instant, lead: Span, compensation: Span) -> Self {
        Self {
            calendar: Calendar::new(table, origin),
            lead: lead.max(compensation),
            compensation,
            current: None,
        }
    }

    /// What is carried out.
    pub const fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Carries out another calendar from now on; the next poll tells what that means. Returns the one before, so that whoever is in a
    /// hurry need not free its memory.
    pub fn follow(&mut self, calendar: Calendar) -> Calendar {
        core::mem::replace(&mut self.calendar, calendar)
    }

    /// Who has the processor by the last switch.
    pub const fn current(&self) -> Option<usize> {
        self.current
    }

    /// What to do now. `now` never goes back. A switch that is returned counts as carried out. O(log entries).
    pub fn poll(&mut self, now: Instant) -> Command {
        let occupancy = self.occupancy(now);
        if occupancy.owner != self.current {
            let from = core::mem::replace(&mut self.current, occupancy.owner);
            return Command::Switch {
                from,
                to: occupancy.owner,
                edge: occupancy.since,
            };
        }
        let edge = occupancy.until;
        if self.owner_from(edge).is_none() {
            return Command::SleepUntil(edge);
        }
        let wake = edge.saturating_sub(self.lead);
        if now < wake {
            Command::SleepUntil(wake)
        } else {
            Command::SpinUntil(edge.saturating_sub(self.compensation))
        }
    }

    /// Who is to have the processor, the switch that is due within the compensation already counted.
    fn occupancy(&self, now: Instant) -> Occupancy {
        let occupancy = self.calendar.at(now);
        let due = occupancy.until.saturating_sub(self.compensation) <= now;
        if due && self.owner_from(occupancy.until).is_some() {
            self.calendar.at(occupancy.until)
        } else {
            occupancy
        }
    }

    /// Whose slot begins at this edge, if one does.
    fn owner_from(&self, edge: Instant) -> Option<usize> {
        self.calendar.at(edge).owner
    }
}
