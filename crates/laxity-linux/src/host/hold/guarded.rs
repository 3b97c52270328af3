//! What a thread of another process had, given back however we end.

use std::mem;

use laxity_model::HostError;

use super::HoldError;
use crate::enforce::guardian::{self, Undo};
use crate::os::claim::Claim;
use crate::os::sched::{Attributes, Policy, Restore, SchedError, Tid};

/// Gives a thread its policy and its processors back when dropped; the guardian does if we are killed. Meanwhile nobody else may hold it.
pub(super) struct Guarded {
    restore: Option<Restore>,
    is_guarded: bool,
    /// Dropped last, when it has them.
    _claim: Claim,
}

impl Guarded {
    /// Remembers what is its own now, as `own` finds it; tells the policy. One that does not outlive us needs no guardian.
    pub(super) fn of(
        thread: Tid,
        outlives_us: bool,
        own: impl FnOnce(Tid) -> Result<Restore, SchedError>,
    ) -> Result<(Self, Attributes), HoldError> {
        let claim = Claim::of(thread)?;
        let restore = own(thread)?;
        if outlives_us {
            let guarded =
                guardian::start().and_then(|guardian| guardian.watch(Undo::Thread(&restore)));
            guarded.map_err(|error| {
                let why = format!("no guardian process gives it back if laxity is killed: {error}");
                HostError::CannotRun(why)
            })?;
        }
        let (_, own, _) = restore.parts();
        let guarded = Self {
            restore: Some(restore),
            is_guarded: outlives_us,
            _claim: claim,
        };
        Ok((guarded, own))
    }

    /// Whether the thread has this policy of its own.
    pub(super) fn had(&self, policy: Policy) -> bool {
        let own = self.restore.as_ref().map(Restore::parts);
        own.is_some_and(|(_, own, _)| own.policy() == policy)
    }

    /// The thread has gone.
    pub(super) fn forget(mut self) {
        if let Some(restore) = self.restore.take() {
            self.strike(&restore);
            mem::forget(restore);
        }
    }

    fn strike(&self, restore: &Restore) {
        if self.is_guarded
            && let Ok(guardian) = guardian::start()
        {
            // Without a guardian there is no list to strike from.
            let _ = guardian.forget(Undo::Thread(restore));
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(restore) = self.restore.take() {
            restore.give_back();
            // Struck afterwards: who is killed in between has it given back twice.
            self.strike(&restore);
            mem::forget(restore);
        }
    }
}
