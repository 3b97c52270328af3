//! One run of a set, and what was seen of each device.

use laxity_model::base::histogram::Histogram;
use laxity_model::{
    HostError, Instant, Mark, Placement, Priority, ProcessorId, Program, Reservation, RunRecord,
    Service, Span, Step,
};

use super::install::{Account, Probe, install};
use super::kind::Kind;
use super::serving::Variant;
use crate::served::{Served, calls, unserved};
use laxity::periodic;
use laxity_devices::card::Unserved;
use laxity_lab::bench::Runner;
use laxity_lab::bench::host::{is_disturbed, marked};

/// A device of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// What it is.
    pub kind: Kind,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// What it was granted, for the ways of serving that have reservations.
    pub reservation: Option<Reservation>,
    /// How often its work is repeated as load; 0 in the twin.
    pub further: usize,
    /// Why it is on this processor.
    pub why: String,
}

impl Member {
    /// A device on the first processor, without a reservation or load.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            processor: ProcessorId(0),
            reservation: None,
            further: 0,
            why: String::new(),
        }
    }
}

/// A run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The devices.
    pub members: Vec<Member>,
    /// How they are served.
    pub variant: Variant,
    /// How many processors there are.
    pub processors: u16,
    /// What all payload and noise comes from.
    pub seed: u64,
    /// How long it is.
    pub length: Span,
    /// Whether cards have crystals of their own: in the twin.
    pub drifts: bool,
    /// On so many processors there is a rogue, if the variant has one.
    pub rogues: u16,
    /// Whether a callback of priority 31 watches each processor, every millisecond.
    pub watched: bool,
}

/// So often the callback runs.
const WATCH: Span = Span::from_millis(1);

impl Setup {
    /// Makes the run, and says what was seen of it.
    ///
    /// # Errors
    ///
    /// Those of [`install`], and the host's.
    pub fn run(&self, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        self.beside(host, |_| ())
    }

    /// Makes the run beside what is `added` to its program.
    fn beside(
        &self,
        host: &mut Runner<'_>,
        added: impl FnOnce(&mut Program),
    ) -> Result<Outcome, HostError> {
        let mut program = Program::new(self.processors);
        let probes = (0..self.members.len())
            .map(|number| install(self, number, &mut program))
            .collect::<Result<Vec<Probe>, HostError>>()?;
        let mut watchers = Vec::new();
        for number in 0..self.processors {
            let processor = ProcessorId(number);
            let may_rogue = number < self.rogues;
            self.variant.add_rivals(&mut program, processor, may_rogue);
            if self.watched {
                let mark = program.mark("callback runs");
                let body = periodic::body(WATCH, mark, |_| Step::Burn(Service::ZERO));
                let highest = Placement::Thread(Priority::HIGHEST);
                program.add("callback", processor, highest, body);
                watchers.push(mark);
            }
        }
        added(&mut program);
        let record = host.run(program, self.length)?;
        let gaps = watchers.into_iter().map(|mark| largest_gap(&record, mark));
        let devices = probes.iter().map(|probe| of(&record, probe));
        Ok(Outcome {
            gaps: gaps.collect(),
            devices: devices.collect::<Result<Vec<Seen>, HostError>>()?,
        })
    }
}

/// What was seen of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// Where its driver ran.
    pub processor: ProcessorId,
    /// Calls of the signal processing that ended in the run.
    pub calls: u64,
    /// Of them, the longest from interrupt to end, the undisturbed ones only; or as long as one has waited that the run's end found.
    pub longest_response: Span,
    /// Of the calls, from beginning to end: 99 in 100 take no longer. The undisturbed ones only.
    pub call_p99: Span,
    /// Processor time that the driver received.
    pub service: Service,
    /// Samples lost or late in calls, those that the run's end found included, that the machine's own halts had no part in.
    pub undisturbed_damage: u64,
    /// What its driver and its far end counted, and the samples that the run's end found lost.
    pub counts: Counts,
}

/// The account of a device.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Input samples lost.
    pub samples_lost: u64,
    /// Output samples too late.
    pub samples_underrun: u64,
    /// Blocks of which samples were lost, those passed over included.
    pub blocks_lost: u64,
    /// Of them, those that lost more than their frames can spare.
    pub blocks_broken: u64,
    /// Frames that arrived: their CRC was right. For modems: octets that their transfers brought.
    pub delivered: u64,
    /// Frames whose CRC was wrong, or of which nothing arrived. For modems: V.42 frames sent again.
    pub frames_lost: u64,
    /// Retrainings, and calls that were lost.
    pub retrained: u64,
    /// Samples that the far end did not deliver in time: more than none makes a modem's run worthless.
    pub undelivered: u64,
    /// Repeated work that came to another result.
    pub load_differs: u64,
}

impl Counts {
    /// Samples lost and underrun.
    pub const fn damage(&self) -> u64 {
        self.samples_lost + self.samples_underrun
    }
}

/// What was seen of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// By device.
    pub devices: Vec<Seen>,
    /// By processor, if it was watched: the largest gap between two callbacks, the undisturbed ones only.
    pub gaps: Vec<Span>,
}

fn largest_gap(record: &RunRecord, mark: Mark) -> Span {
    let runs: Vec<Instant> = marked(record, mark).map(|event| event.at).collect();
    let pairs = runs.windows(2).map(|pair| (pair[0], pair[1]));
    let quiet = pairs.filter(|(from, to)| !is_disturbed(record, *from, *to));
    let gaps = quiet.map(|(from, to)| to.saturating_since(from));
    gaps.max().unwrap_or(Span::ZERO)
}

fn of(record: &RunRecord, probe: &Probe) -> Result<Seen, HostError> {
    let calls = calls(record, &probe.device)?;
    // When the last call that the machine's halts had a part in ended: what waited behind it is disturbed too, until all has been caught
    // up with.
    let mut disturbed_until = None;
    let quiet = calls.iter().filter(|call| {
        let waited = disturbed_until.is_some_and(|until| call.raised < until);
        let is_disturbed = waited || is_disturbed(record, call.raised, call.done);
        if is_disturbed {
            disturbed_until = Some(call.done);
        }
        !is_disturbed
    });
    let quiet: Vec<&Served> = quiet.collect();
    let mut lengths = Histogram::new();
    for call in quiet.iter().filter(|call| !call.is_left) {
        lengths.record(call.done.saturating_since(call.begun).as_nanos());
    }
    let responses = quiet.iter().map(|call| call.response());
    Ok(Seen {
        kind: probe.kind,
        processor: probe.processor,
        calls: calls.iter().filter(|call| !call.is_left).count() as u64,
        longest_response: responses.max().unwrap_or_default(),
        call_p99: Span::from_nanos(lengths.percentile(990_000).unwrap_or(0)),
        service: record.usage[probe.device.driver.index()].service,
        undisturbed_damage: quiet.iter().map(|call| call.damage).sum(),
        counts: counts(&probe.device.report, &unserved(record, &probe.device)?),
    })
}

/// What the device counted itself, and what it was owed at the run's end.
fn counts(account: &Account, left: &Unserved) -> Counts {
    let mut counts = Counts::default();
    match account {
        Account::Stream(report) => {
            let damaged = report.blocks_damaged.get() + report.blocks_underrun.get();
            let skipped = report.blocks_skipped.get();
            counts = Counts {
                samples_lost: report.samples_lost.get(),
                samples_underrun: report.samples_underrun.get(),
                blocks_lost: damaged + skipped,
                blocks_broken: report.blocks_broken.get() + skipped,
                delivered: report.frames_good.get(),
                frames_lost: report.frames_lost(),
                load_differs: report.load_differs.get(),
                ..counts
            };
        }
        Account::Modems(reports) => {
            for report in reports {
                counts.samples_lost += report.samples_lost.get();
                counts.samples_underrun += report.samples_underrun.get();
                counts.frames_lost += report.retransmissions_near.get();
                counts.frames_lost += report.retransmissions_far.get();
                counts.delivered += report.octets.get();
                counts.retrained += report.retrainings.get();
                counts.retrained += u64::from(report.outcome().is_some());
                counts.undelivered += report.samples_undelivered.get();
                counts.load_differs += report.receiver_bit_errors.get();
            }
        }
    }
    counts.samples_lost += left.lost;
    counts.samples_underrun += left.underrun;
    counts
}

#[cfg(test)]
mod tests {
    use laxity::Twin;
    use laxity::study::Profile;
    use laxity_lab::runner::tasks::Spinner;

    use super::super::serving::Way;
    use super::*;

    #[test]
    fn a_device_that_is_never_served_loses_all_of_its_samples() {
        for kind in [Kind::Modem, Kind::GLite, Kind::Audio] {
            let setup = Setup {
                members: vec![Member::new(kind)],
                variant: Variant::of(Way::RealTime, false),
                processors: 1,
                seed: 1,
                length: Span::from_secs(3),
                drifts: false,
                rogues: 0,
                watched: false,
            };
            let mut twin = Twin::new(Profile::WIN2000_PII450);
            let outcome = setup.beside(&mut Runner::Twin(&mut twin), |program| {
                let highest = Placement::Thread(Priority::HIGHEST);
                program.add("rogue", ProcessorId(0), highest, Spinner);
            });
            let outcome = outcome.expect("the twin runs it");
            let seen = &outcome.devices[0];
            assert_eq!(seen.calls, 0, "{kind:?}");
            assert_eq!(seen.undisturbed_damage, seen.counts.damage(), "{kind:?}");
            assert!(seen.counts.damage() > 10_000, "{kind:?}: {seen:?}");
            assert!(seen.longest_response > Span::from_secs(2), "{seen:?}");
        }
    }
}
