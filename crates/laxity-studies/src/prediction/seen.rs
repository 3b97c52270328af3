//! What is compared of a program: read the same way from a run of the twin and from one of this machine.

use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::Quantity;
use laxity_model::{RunRecord, Service};

use laxity::observe::{Observation, observe};
use laxity_lab::observe::Probes;
use laxity_lab::scenario::kinds::{MODEM, PROCESSING_TIME, SAMPLES_PENDING};

/// One program, all its runs together; what overlaps a disturbance is left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
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
    /// Adds a run whose events have been read already.
    pub(super) fn add(&mut self, record: &RunRecord, probes: &Probes, seen: &[Observation]) {
        for observation in seen {
            let undisturbed = |quantity| observation.quantities.whole(quantity).undisturbed;
            self.gaps.merge(&undisturbed(Quantity::WAKEUP_GAP));
            if observation.subject.kind == MODEM {
                self.responses.merge(&undisturbed(Quantity::RESPONSE_TIME));
                self.pending.merge(&undisturbed(SAMPLES_PENDING));
                self.calls.merge(&undisturbed(PROCESSING_TIME));
            }
        }
        self.length_ns += (record.end - record.start).as_nanos();
        let add = |used: &mut Option<Used>, who: Option<laxity_model::ActivityId>| {
            if let Some(usage) = who.and_then(|who| record.usage.get(who.index())) {
                let used = used.get_or_insert_default();
                used.service += usage.service;
                used.switches += usage.voluntary_switches + usage.involuntary_switches;
            }
        };
        let modem = probes.modem().map(|modem| modem.driver);
        add(&mut self.modem, modem);
        add(
            &mut self.callback,
            probes.cothread().map(|task| task.activity),
        );
        for usage in &record.usage {
            self.preemptions += usage.involuntary_switches;
            self.service += usage.service;
        }
        self.disturbances += record.disturbances.len() as u64;
        self.witness_wakeups += record.witness_wakeups;
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

    /// Reads a run.
    pub(super) fn read(&mut self, record: &RunRecord, probes: &Probes) {
        self.add(record, probes, &observe(record, &probes.0));
    }

    /// The modem's share of its processor, in parts per million; `None` without a modem.
    pub(super) fn modem_ppm(&self) -> Option<u64> {
        let ppm = u128::from(self.modem?.service.as_nanos()) * 1_000_000;
        let ppm = ppm.checked_div(u128::from(self.length_ns))?;
        Some(u64::try_from(ppm).unwrap_or(u64::MAX))
    }

    /// Switches a second, of the modem's driver and of the callback; and how often somebody lost the processor, for each second that the
    /// program had one: who else runs on the machine takes turns, and preemptions with them. `None` of who is not there.
    pub(super) fn switches(&self) -> [(&'static str, Option<u64>); 3] {
        let rate = |count: u64, nanos: u64| {
            let each = u128::from(count) * 1_000_000_000;
            Some(each.checked_div(u128::from(nanos))? as u64)
        };
        let of = |used: Option<Used>| rate(used?.switches, self.length_ns);
        [
            ("switches a second, driver", of(self.modem)),
            ("switches a second, callback", of(self.callback)),
            (
                "preemptions a second of processor time",
                rate(self.preemptions, self.service.as_nanos()),
            ),
        ]
    }

    /// Of the witness's wake-ups, those that were late, in parts per million; `None` without a witness.
    pub(super) fn disturbed_ppm(&self) -> Option<u32> {
        let late = self.disturbances * 1_000_000;
        let ppm = late.checked_div(self.witness_wakeups)?;
        Some(u32::try_from(ppm).unwrap_or(u32::MAX))
    }
}
