//! By what terms a coordinator serves.

use std::collections::BTreeMap;

use laxity_model::program::coordinator::Terms;
use laxity_model::program::together::SEATS;
use laxity_model::{Service, Span};

use super::At;
use crate::host::together::Watch;

/// To hand the baton on and back again, with both switches.
const PASS: Service = Service::from_micros(20);

/// What a coordinator is asked to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Where it is.
    pub at: At,
    /// How it guards the baton; `None`: its executors are ordinary threads, and nobody does.
    pub watch: Option<Watch>,
    /// Every user may connect, and not its own alone.
    pub everyone: bool,
    /// What the processes of one user may [keep from others](laxity_model::program::coordinator::Registry::holds) together, in millionths of the processor; `u64::MAX`: whatever there is.
    pub share_ppm: u64,
    /// The same of single users.
    pub quotas: BTreeMap<u32, u64>,
    /// So long what a dead process had is kept for those who have not settled that.
    pub kept: Span,
    /// It ends when nobody has been there for so long.
    pub linger: Span,
    /// Who has no seat, and says nothing that can be understood for so long, is let go.
    pub silence: Span,
}

impl Settings {
    /// The user's own, which gives away all of the processor and guards the baton.
    #[must_use]
    pub fn new(at: At) -> Self {
        Self {
            at,
            watch: Some(Watch::default()),
            everyone: false,
            share_ppm: u64::MAX,
            quotas: BTreeMap::new(),
            kept: Span::from_secs(1),
            linger: Span::from_secs(5),
            silence: Span::from_secs(1),
        }
    }

    pub(super) fn terms(&self) -> Terms {
        let watch = self.watch.unwrap_or_default();
        let switches = Span::from_nanos(2 * PASS.as_nanos());
        Terms {
            longest: watch.longest,
            tolerance: watch.tolerance,
            switches: watch.grace.checked_add(switches).unwrap_or(Span::MAX),
            pass: PASS,
            share_ppm: self.share_ppm,
            quotas: self.quotas.clone(),
            seats_of_one: if self.everyone { SEATS / 2 } else { SEATS },
            kept: self.kept,
        }
    }
}
