//! What an upcall takes, and what it is held to.

use super::Upcall;
use crate::executor::pacing::OnOverrun;
use crate::program::{Context, Step};
use crate::{Instant, Service, Span};

/// What a quantum took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::program) struct Took {
    /// On the clock.
    pub(in crate::program) span: Span,
    /// Whether it is the first of its call that took longer than was declared.
    pub(in crate::program) is_over: bool,
}

impl<W> Upcall<W> {
    /// What the last quantum that is over took, if this was not asked since.
    pub(in crate::program) const fn take_took(&mut self) -> Option<Took> {
        self.took.take()
    }

    /// The quantum that was at work, if one was, is over.
    pub(in crate::program) fn measure(&mut self, context: &dyn Context) {
        let Some((began, received, stood)) = self.working.take() else {
            return;
        };
        let now = context.now();
        let span = now.saturating_since(began);
        let declared = self.allowed;
        self.allowed = declared.saturating_sub(span);
        self.over = span > declared;
        let is_over = self.over && !self.over_in_call;
        self.over_in_call |= self.over;
        self.took = Some(Took { span, is_over });
        if let Some(share) = &self.share {
            share.charge(span, now);
        }
        if let Some(account) = &self.account {
            let took = Service::from_nanos(span.as_nanos());
            // What it was kept from the processor is not charged, nor what the machine did; that is asked where it matters.
            let had = || {
                let stood = context.stood().saturating_sub(stood).as_nanos();
                let had = context.service().saturating_sub(received);
                had.saturating_sub(Service::from_nanos(stood))
            };
            account.charge(if self.over { took.min(had()) } else { took });
        }
    }

    /// What is to be done instead of so much, which is declared, of a call with this origin, if anything.
    ///
    /// Who has taken more than it was admitted with goes behind all others; or waits for its next release, where more is to become of overruns than that releases are missed or late.
    pub(super) fn instead(
        &mut self,
        context: &mut dyn Context,
        declared: u64,
        origin: Instant,
        now: Instant,
    ) -> Option<Step> {
        if let Some(account) = &self.account {
            let admitted = account.admits(origin, now);
            let goes_behind = matches!(self.timing.on_overrun, OnOverrun::CatchUp { .. });
            match admitted {
                Err(until) if !goes_behind => return Some(Step::SleepUntil(until)),
                Err(_) if !self.behind => {
                    self.goes_behind(context, true);
                    return Some(Step::Yield);
                }
                Err(_) => {}
                Ok(()) => self.goes_behind(context, false),
            }
        }
        let share = self.share.as_ref()?;
        let admitted = share.admits(Service::from_nanos(declared), now);
        admitted.err().map(Step::SleepUntil)
    }

    pub(super) fn goes_behind(&mut self, context: &mut dyn Context, behind: bool) {
        if self.behind != behind {
            self.behind = behind;
            context.go_behind(behind);
        }
    }
}
