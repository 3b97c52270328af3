//! Dispatchers that were late, and the witness beside them was not.

use std::collections::BTreeMap;

use laxity_model::enforce::DISPATCHER_ACTIVITY;
use laxity_model::{Disturbance, Event, EventKind, Stretches};

use super::finding::Finding;
use super::{Evidence, is_late, witnessed};

impl Evidence<'_> {
    /// Takes out what dispatchers were late by while the witness beside them woke in time: then nothing else stood still, and somebody stopped them, or was
    /// of their rank and did not give the processor up.
    pub(super) fn late_alone(&self, events: &mut Vec<Event>, findings: &mut Vec<Finding>) {
        let seen = Stretches::of(witnessed(events).chain(self.before.iter().copied()));
        let mut alone: BTreeMap<_, Vec<Disturbance>> = BTreeMap::new();
        events.retain(|event| {
            let late = Disturbance::of(event);
            let mut witnesses = self.witnesses.iter();
            let would_see = witnesses
                .any(|one| one.processor == late.processor && one.would_see(late.from, late.to));
            let is_alone = is_late(event)
                && event.activity == DISPATCHER_ACTIVITY
                && would_see
                && seen.overlapping(&late).is_empty();
            if is_alone {
                let here = (self.cpu(late.processor), self.what_was_done(event.kind));
                alone.entry(here).or_default().push(late);
            }
            !is_alone
        });
        for ((cpu, what), all) in alone {
            let often = self.often(&all);
            let text = format!("the dispatcher of processor {cpu} was {what} {often}");
            findings.push(Finding::against_slots(cpu, text));
        }
    }

    /// What somebody did to a dispatcher that was late alone, as it recorded that.
    fn what_was_done(&self, recorded: EventKind) -> &'static str {
        match (recorded, self.tells) {
            (EventKind::Held, Some(true)) => {
                "kept from its processor, by somebody of its own rank,"
            }
            (EventKind::Held, _) => {
                "stopped, or kept from its processor by somebody of its own rank,"
            }
            _ => "stopped",
        }
    }
}
