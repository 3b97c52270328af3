//! What is compared of a program: read the same way from a run of the twin and from one of this machine.

use std::collections::BTreeMap;

use laxity::observe::observe;
use laxity_lab::observe::Probes;
use laxity_lab::scenario::kinds::{MODEM, PROCESSING_TIME, SAMPLES_PENDING};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::Quantity;
use laxity_model::{RunRecord, Service};
use serde::Deserialize;

/// What is to be known of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Of {
    /// The callback's gaps, in nanoseconds.
    Gaps,
    /// From the modem's interrupt to the end of its call, in nanoseconds.
    Responses,
    /// Samples pending after a call.
    Pending,
    /// What each call took, in nanoseconds.
    Calls,
    /// The modem's share of its processor, in parts per million.
    Share,
    /// Switches of the modem's driver a second.
    Driver,
    /// Switches of the callback a second.
    Callback,
    /// How often somebody lost the processor, for each second that the program had one: who else runs on the machine takes turns, and
    /// preemptions with them.
    Preemptions,
}

/// One program, all its runs together; what overlaps a disturbance is left out.
#[derive(Clone, Debug, Default)]
pub struct Account {
    seen: BTreeMap<Of, Histogram>,
    /// What becomes a share or a rate: nanoseconds, or how often.
    counts: BTreeMap<Of, u64>,
    length_ns: u64,
    /// Of everybody in the program.
    service: Service,
}

impl Account {
    /// Reads a run.
    pub(super) fn of(record: &RunRecord, probes: &Probes) -> Self {
        let mut account = Self {
            length_ns: (record.end - record.start).as_nanos(),
            ..Self::default()
        };
        let modem = probes.modem().map(|modem| modem.driver);
        let callback = probes.cothread().map(|task| task.activity);
        for (of, activity) in [(Of::Driver, modem), (Of::Callback, callback)] {
            if let Some(usage) = activity.and_then(|who| record.usage.get(who.index())) {
                account.count(of, usage.voluntary_switches + usage.involuntary_switches);
                if of == Of::Driver {
                    account.count(Of::Share, usage.service.as_nanos());
                }
            }
        }
        for usage in &record.usage {
            account.count(Of::Preemptions, usage.involuntary_switches);
            account.service += usage.service;
        }
        for seen in observe(record, &probes.0, &[]) {
            let mut saw = |of, quantity| {
                account.saw(of, &seen.quantities.whole(quantity).undisturbed);
            };
            saw(Of::Gaps, Quantity::WAKEUP_GAP);
            if seen.subject.kind == MODEM {
                saw(Of::Responses, Quantity::RESPONSE_TIME);
                saw(Of::Pending, SAMPLES_PENDING);
                saw(Of::Calls, PROCESSING_TIME);
            }
        }
        account
    }

    fn count(&mut self, of: Of, more: u64) {
        *self.counts.entry(of).or_default() += more;
    }

    fn saw(&mut self, of: Of, more: &Histogram) {
        self.seen.entry(of).or_default().merge(more);
    }

    /// Adds all that another has.
    pub(super) fn merge(&mut self, other: &Self) {
        for (of, more) in &other.seen {
            self.saw(*of, more);
        }
        for (of, more) in &other.counts {
            self.count(*of, *more);
        }
        self.length_ns += other.length_ns;
        self.service += other.service;
    }

    /// How often which values of a distribution were seen; `None` of what is not there.
    pub(super) fn histogram(&self, of: Of) -> Option<&Histogram> {
        self.seen.get(&of).filter(|seen| !seen.is_empty())
    }

    /// Whether there is anything of which this could be told: nobody loses a processor in a program that takes no time of any.
    pub(super) const fn tells(&self, of: Of) -> bool {
        !matches!(of, Of::Preemptions) || !self.service.is_zero()
    }

    /// A number; of a distribution its percentile, in parts per million. `None` of what is not there.
    pub(super) fn number(&self, of: Of, ppm: u32) -> Option<u64> {
        let each = |times, of_ns| each(*self.counts.get(&of)?, times, of_ns);
        match of {
            Of::Share => each(1_000_000, self.length_ns),
            Of::Driver | Of::Callback => each(1_000_000_000, self.length_ns),
            Of::Preemptions => each(1_000_000_000, self.service.as_nanos()),
            _ => self.seen.get(&of)?.percentile(ppm),
        }
    }
}

/// So many, times `times`, of each of `of`; `None` of nothing.
fn each(count: u64, times: u64, of: u64) -> Option<u64> {
    let each = (u128::from(count) * u128::from(times)).checked_div(u128::from(of))?;
    u64::try_from(each).ok()
}

#[cfg(test)]
impl Account {
    /// In which nothing was seen but that everybody together had so much, and lost the processor so often.
    pub(super) fn of_usage(service: Service, preemptions: u64) -> Self {
        Self {
            counts: [(Of::Preemptions, preemptions)].into(),
            service,
            ..Self::default()
        }
    }

    /// In which nothing was seen but what calls took, in nanoseconds.
    pub(super) fn of_calls(calls: impl IntoIterator<Item = u64>) -> Self {
        let mut took = Histogram::new();
        calls.into_iter().for_each(|call| took.record(call));
        Self {
            seen: [(Of::Calls, took)].into(),
            ..Self::default()
        }
    }

    /// The callback's switches, of a second in which nothing else was seen.
    pub(super) fn set_callback(&mut self, switches: u64) {
        self.counts.insert(Of::Callback, switches);
        self.length_ns = 1_000_000_000;
    }
}
