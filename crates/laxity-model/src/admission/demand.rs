//! What a program asks of a machine.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{ActivityId, Placement, ProcessorId, Program, ReservationRequest, Service, Span};

/// Work that is known to come: at most `service` in every `period`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// How much.
    pub service: Service,
    /// How often; more than zero.
    pub period: Span,
}

impl Work {
    /// The share of one processor in parts per million, rounded up; work without a period takes all of it.
    #[must_use]
    pub fn share_ppm(self) -> u64 {
        let period = u128::from(self.period.as_nanos());
        if period == 0 {
            return 1_000_000;
        }
        let share = (u128::from(self.service.as_nanos()) * 1_000_000).div_ceil(period);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

/// One activity, as admission sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActivityDemand {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// How.
    pub placement: Placement,
    /// The reservation it asks for, now or later.
    pub reservation: Option<ReservationRequest>,
    /// What is known of its work.
    pub work: Option<Work>,
}

/// What a program asks for: its outline, without the bodies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// By [`ActivityId`].
    pub activities: Vec<ActivityDemand>,
}

impl Demand {
    /// The demand of a program. Nothing is known of any work yet: see [`Self::with_work`].
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let outline = program.activities.iter().map(|activity| ActivityDemand {
            name: activity.name.clone(),
            processor: activity.processor,
            placement: activity.placement,
            reservation: activity.reservation,
            work: None,
        });
        Self {
            activities: outline.collect(),
        }
    }

    /// The same, with the work of an activity known. An id that does not exist changes nothing.
    #[must_use]
    pub fn with_work(mut self, activity: ActivityId, work: Work) -> Self {
        if let Some(demand) = self.activities.get_mut(activity.index()) {
            demand.work = Some(work);
        }
        self
    }
}
