//! What was found in a run, and whose grant it is against.

use laxity_model::{ActivityId, Enforcer, Grade};

/// What was found against what was granted.
pub(super) struct Finding {
    /// Against all of these slots.
    pub(super) slots: Slots,
    /// Against the reservation of this activity, whoever enforces it.
    pub(super) holder: Option<ActivityId>,
    /// Where it is against nothing that was granted it is nothing to be told.
    pub(super) only_there: bool,
    pub(super) grade: Grade,
    /// Why, in the words for where there are no slots, if they are others.
    pub(super) without_slots: Option<String>,
}

/// Slots of several holders.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slots {
    None,
    On(usize),
    All,
    /// And whatever the kernel enforces, on whichever processor that is: what it was worth was not seen either.
    OnAndByDeadline(usize),
}

impl Finding {
    /// Against all slots on a processor.
    pub(super) const fn against_slots(cpu: usize, reason: String) -> Self {
        Self {
            slots: Slots::On(cpu),
            holder: None,
            only_there: false,
            grade: Grade::Unenforced { reason },
            without_slots: None,
        }
    }

    /// Of these slots nobody can tell.
    pub(super) const fn of_doubt(cpu: usize, reason: String) -> Self {
        Self {
            slots: Slots::On(cpu),
            holder: None,
            only_there: false,
            grade: Grade::Uncertain { reason },
            without_slots: None,
        }
    }

    pub(super) fn is_against(&self, (enforcer, holder, cpu): Granted) -> bool {
        let by_slots = enforcer == Enforcer::Slots;
        let concerns = match self.slots {
            Slots::None => false,
            Slots::On(on) => by_slots && on == cpu,
            Slots::All => by_slots,
            Slots::OnAndByDeadline(on) => !by_slots || on == cpu,
        };
        concerns || self.holder == Some(holder)
    }

    pub(super) fn is_against_none(&self, granted: &[Granted]) -> bool {
        !self.only_there && !granted.iter().any(|grant| self.is_against(*grant))
    }

    /// The same, said so where there are no slots.
    pub(super) fn or_without_slots(self, reason: String) -> Self {
        Self {
            without_slots: Some(reason),
            ..self
        }
    }

    /// Why, where it [is against none](Self::is_against_none).
    pub(super) fn against_none(&self) -> Option<&str> {
        self.without_slots.as_deref().or(self.grade.reason())
    }

    /// Whether others than the program could have taken the processor, or did, or could not be seen.
    pub(super) fn is_of_others(&self) -> bool {
        let is_own = self.slots == Slots::None && self.holder.is_none();
        matches!(self.grade, Grade::Unenforced { .. }) && !is_own
    }
}

/// Whom a reservation was granted to, by whom it is enforced, and the kernel's number of the processor.
pub(in crate::host) type Granted = (Enforcer, ActivityId, usize);
