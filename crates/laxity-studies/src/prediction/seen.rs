//! What is compared of a program: read the same way from a run of the twin and from one of this machine.

use laxity::observe::observe;
use laxity_lab::observe::Probes;
use laxity_lab::scenario::kinds::{MODEM, PROCESSING_TIME, SAMPLES_PENDING};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::Quantity;
use laxity_model::{ActivityId, RunRecord, Service};

/// One program, all its runs together; what overlaps a disturbance is left out.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Gaps of the callback, in nanoseconds.
    pub(super) gaps: Histogram,
    /// From the modem's interrupt to the end of its call, in nanoseconds.
    pub(super) responses: Histogram,
    /// Samples pending after a call.
    pub(super) pending: Histogram,
    /// What each call took, in nanoseconds.
    pub(super) calls: Histogram,
    length_ns: u64,
    /// `None` in a program without one.
    modem: Option<Used>,
    callback: Option<Used>,
    /// Of everybody in the program.
    preemptions: u64,
    service: Service,
    disturbances: u64,
    witness_wakeups: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    service: Service,
    switches: u64,
}

impl Account {
    /// Reads a run.
    pub(super) fn of(record: &RunRecord, probes: &Probes) -> Self {
        let used = |who: Option<ActivityId>| {
            let usage = record.usage.get(who?.index())?;
            Some(Used {
                service: usage.service,
                switches: usage.voluntary_switches + usage.involuntary_switches,
            })
        };
        let mut account = Self {
            length_ns: (record.end - record.start).as_nanos(),
            modem: used(probes.modem().map(|modem| modem.driver)),
            callback: used(probes.cothread().map(|task| task.activity)),
            disturbances: record.disturbances.len() as u64,
            witness_wakeups: record.witness_wakeups,
            ..Self::default()
        };
        for usage in &record.usage {
            account.preemptions += usage.involuntary_switches;
            account.service += usage.service;
        }
        for seen in observe(record, &probes.0) {
            let undisturbed = |quantity| seen.quantities.whole(quantity).undisturbed;
            account.gaps.merge(&undisturbed(Quantity::WAKEUP_GAP));
            if seen.subject.kind == MODEM {
                let responses = undisturbed(Quantity::RESPONSE_TIME);
                account.responses.merge(&responses);
                account.pending.merge(&undisturbed(SAMPLES_PENDING));
                account.calls.merge(&undisturbed(PROCESSING_TIME));
            }
        }
        account
    }

    /// Adds all that another has.
    pub(super) fn merge(&mut self, other: &Self) {
        self.gaps.merge(&other.gaps);
        self.responses.merge(&other.responses);
        self.pending.merge(&other.pending);
        self.calls.merge(&other.calls);
        self.length_ns += other.length_ns;
        for (used, more) in [
            (&mut self.modem, other.modem),
            (&mut self.callback, other.callback),
        ] {
            let Some(more) = more else { continue };
            let used = used.get_or_insert_default();
            used.service += more.service;
            used.switches += more.switches;
        }
        self.preemptions += other.preemptions;
        self.service += other.service;
        self.disturbances += other.disturbances;
        self.witness_wakeups += other.witness_wakeups;
    }

    /// The modem's share of its processor, in parts per million; `None` without a modem.
    pub(super) fn modem_ppm(&self) -> Option<u64> {
        each(self.modem?.service.as_nanos(), 1_000_000, self.length_ns)
    }

    /// Switches a second of the modem's driver; `None` without a modem.
    pub(super) fn driver_switches(&self) -> Option<u64> {
        each(self.modem?.switches, 1_000_000_000, self.length_ns)
    }

    /// Switches a second of the callback; `None` without one.
    pub(super) fn callback_switches(&self) -> Option<u64> {
        each(self.callback?.switches, 1_000_000_000, self.length_ns)
    }

    /// How often somebody lost the processor, for each second that the program had one: who else runs on the machine takes turns, and
    /// preemptions with them.
    pub(super) fn preemptions(&self) -> Option<u64> {
        each(self.preemptions, 1_000_000_000, self.service.as_nanos())
    }

    /// Of the witness's wake-ups, those that were late, in parts per million; `None` without a witness.
    pub(super) fn disturbed_ppm(&self) -> Option<u64> {
        (self.disturbances * 1_000_000).checked_div(self.witness_wakeups)
    }
}

/// So many times `times` of each of `of`; `None` of nothing.
fn each(count: u64, times: u64, of: u64) -> Option<u64> {
    let each = (u128::from(count) * u128::from(times)).checked_div(u128::from(of))?;
    u64::try_from(each).ok()
}
