//! One run of a set, and what was seen of each device.

use laxity_model::base::histogram::Histogram;
use laxity_model::{
    ActivityId, Event, EventKind, HostError, Instant, Mark, Placement, Priority, ProcessorId,
    Program, Reservation, RunRecord, Service, Span, Step,
};

use super::kind::Kind;
use super::place::{Account, Making, Probe};
use super::serving::Variant;
use laxity::periodic;
use laxity_lab::bench::Runner;
use laxity_lab::bench::host::is_disturbed;

/// A device of a set: what, where, and with which reservation if the way of serving has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// What it is.
    pub kind: Kind,
    /// Where its driver runs.
    pub processor: ProcessorId,
    /// What it was granted.
    pub reservation: Option<Reservation>,
    /// How often its work is repeated as load; 0 in the twin.
    pub further: usize,
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
    /// The same, served in another way.
    #[must_use]
    pub fn served(&self, variant: Variant) -> Self {
        Self {
            variant,
            ..self.clone()
        }
    }

    /// Makes the run, and says what was seen of it.
    ///
    /// # Errors
    ///
    /// Those of [`Making::install`], and the host's.
    pub fn run(&self, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        let (program, probes) = self.compose()?;
        let record = host.run(program, self.length)?;
        Ok(probes.observe(&record))
    }

    /// The run as a program, and where its evidence will be.
    ///
    /// # Errors
    ///
    /// Those of [`Making::install`].
    fn compose(&self) -> Result<(Program, Probes), HostError> {
        let mut program = Program::new(self.processors);
        let mut probes = Vec::new();
        for (number, member) in self.members.iter().enumerate() {
            let making = Making {
                number,
                processor: member.processor,
                placement: self.variant.placement(member.reservation),
                seed: self.seed + 16 * number as u64,
                further: member.further,
                length: self.length,
                drifts: self.drifts,
            };
            probes.push(making.install(member.kind, &mut program)?);
        }
        let mut watchers = Vec::new();
        for number in 0..self.processors {
            let processor = ProcessorId(number);
            let may_rogue = number < self.rogues;
            self.variant.add_rivals(&mut program, processor, may_rogue);
            if self.watched {
                let mark = program.mark("callback runs");
                let body = periodic::body(WATCH, mark, |_| Step::Burn(Service::ZERO));
                let highest = Placement::Thread(Priority::HIGHEST);
                watchers.push((program.add("callback", processor, highest, body), mark));
            }
        }
        let probes = Probes {
            devices: probes,
            watchers,
        };
        Ok((program, probes))
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
    /// Of them, the longest from interrupt to end, the undisturbed ones only.
    pub longest_response: Span,
    /// Of them, from beginning to end: 99 in 100 take no longer. The undisturbed ones only.
    pub call_p99: Span,
    /// Processor time that the driver received.
    pub service: Service,
    /// Input samples lost.
    pub samples_lost: u64,
    /// Output samples too late.
    pub samples_underrun: u64,
    /// Of both, those in calls that the machine's own halts had no part in.
    pub undisturbed_damage: u64,
    /// Blocks of which samples were lost, those passed over included.
    pub blocks_lost: u64,
    /// Of them, those that lost more than their frames can spare.
    pub blocks_broken: u64,
    /// Frames that arrived: their CRC was right. `None` for modems, which count octets.
    pub frames_good: Option<u64>,
    /// Frames whose CRC was wrong, or of which nothing arrived. For modems: V.42 frames sent again.
    pub frames_lost: u64,
    /// Octets that the modems' transfers brought.
    pub octets: Option<u64>,
    /// Retrainings, and calls that were lost.
    pub retrained: u64,
    /// Samples that the far end did not deliver in time: more than none makes a modem's run worthless.
    pub undelivered: u64,
    /// Repeated work that came to another result.
    pub load_differs: u64,
}

impl Seen {
    /// Samples lost and underrun.
    #[must_use]
    pub fn damage(&self) -> u64 {
        self.samples_lost + self.samples_underrun
    }

    /// Adds another of the same kind.
    fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        self.calls += other.calls;
        self.longest_response = self.longest_response.max(other.longest_response);
        self.call_p99 = self.call_p99.max(other.call_p99);
        self.service += other.service;
        self.samples_lost += other.samples_lost;
        self.samples_underrun += other.samples_underrun;
        self.undisturbed_damage += other.undisturbed_damage;
        self.blocks_lost += other.blocks_lost;
        self.blocks_broken += other.blocks_broken;
        self.frames_good = sum(self.frames_good, other.frames_good);
        self.frames_lost += other.frames_lost;
        self.octets = sum(self.octets, other.octets);
        self.retrained += other.retrained;
        self.undelivered += other.undelivered;
        self.load_differs += other.load_differs;
    }
}

/// What was seen of all devices of a kind together, each with how many there are; in the order of their first.
#[must_use]
pub fn by_kind(seen: &[Seen]) -> Vec<(usize, Seen)> {
    let mut kinds: Vec<(usize, Seen)> = Vec::new();
    for one in seen {
        match kinds.iter_mut().find(|(_, sum)| sum.kind == one.kind) {
            Some((count, sum)) => {
                *count += 1;
                sum.add(one);
            }
            None => kinds.push((1, one.clone())),
        }
    }
    kinds
}

/// What was seen of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// By device.
    pub devices: Vec<Seen>,
    /// By processor, if it was watched: the largest gap between two callbacks, the undisturbed ones only.
    pub gaps: Vec<Span>,
}

/// Where the evidence of a run will be.
struct Probes {
    /// By device.
    devices: Vec<Probe>,
    /// By processor, if it is watched: the callback, and what it records.
    watchers: Vec<(ActivityId, Mark)>,
}

impl Probes {
    /// Reads a run's record.
    fn observe(&self, record: &RunRecord) -> Outcome {
        let gap = |watcher: &(ActivityId, Mark)| largest_gap(record, *watcher);
        Outcome {
            devices: self.devices.iter().map(|probe| of(record, probe)).collect(),
            gaps: self.watchers.iter().map(gap).collect(),
        }
    }
}

fn largest_gap(record: &RunRecord, (callback, mark): (ActivityId, Mark)) -> Span {
    let own = record
        .events
        .iter()
        .filter(|event| event.activity == callback);
    let runs = own
        .filter(|event| event.kind == EventKind::Mark(mark))
        .map(|event| event.at);
    let runs: Vec<Instant> = runs.collect();
    let pairs = runs.windows(2).map(|pair| (pair[0], pair[1]));
    let quiet = pairs.filter(|(from, to)| !is_disturbed(record, *from, *to));
    quiet
        .map(|(from, to)| to.saturating_since(from))
        .max()
        .unwrap_or(Span::ZERO)
}

fn of(record: &RunRecord, probe: &Probe) -> Seen {
    let mut calls = Calls::default();
    let own = record
        .events
        .iter()
        .filter(|event| event.activity == probe.driver);
    for event in own {
        calls.take(event, probe, record);
    }
    let usage = &record.usage[probe.driver.index()];
    let mut seen = Seen {
        kind: probe.kind,
        processor: probe.processor,
        calls: calls.ended,
        longest_response: calls.longest_response,
        call_p99: Span::from_nanos(calls.lengths.percentile(990_000).unwrap_or(0)),
        service: usage.service,
        samples_lost: 0,
        samples_underrun: 0,
        undisturbed_damage: calls.undisturbed_damage,
        blocks_lost: 0,
        blocks_broken: 0,
        frames_good: None,
        frames_lost: 0,
        octets: None,
        retrained: 0,
        undelivered: 0,
        load_differs: 0,
    };
    match &probe.account {
        Account::Stream(report) => {
            seen.samples_lost = report.samples_lost.get();
            seen.samples_underrun = report.samples_underrun.get();
            let damaged = report.blocks_damaged.get() + report.blocks_underrun.get();
            let skipped = report.blocks_skipped.get();
            seen.blocks_lost = damaged + skipped;
            seen.blocks_broken = report.blocks_broken.get() + skipped;
            seen.frames_good = Some(report.frames_good.get());
            seen.frames_lost = report.frames_lost();
            seen.load_differs = report.load_differs.get();
        }
        Account::Modems(reports) => {
            for report in reports {
                seen.samples_lost += report.samples_lost.get();
                seen.samples_underrun += report.samples_underrun.get();
                seen.frames_lost +=
                    report.retransmissions_near.get() + report.retransmissions_far.get();
                seen.octets = Some(seen.octets.unwrap_or(0) + report.octets.get());
                let lost_call = u64::from(report.outcome().is_some());
                seen.retrained += report.retrainings.get() + lost_call;
                seen.undelivered += report.samples_undelivered.get();
                seen.load_differs += report.receiver_bit_errors.get();
            }
        }
    }
    seen
}

/// The calls of a driver, from its marks.
#[derive(Default)]
struct Calls {
    began: Option<(Instant, Instant)>,
    damage: u64,
    ended: u64,
    longest_response: Span,
    lengths: Histogram,
    undisturbed_damage: u64,
    /// When the last call that the machine's halts had a part in ended.
    disturbed_until: Option<Instant>,
}

impl Calls {
    fn take(&mut self, event: &Event, probe: &Probe, record: &RunRecord) {
        let EventKind::Mark(mark) = event.kind else {
            return;
        };
        if mark == probe.begin {
            self.began = Some((Instant::from_nanos(event.args[1]), event.at));
        } else if mark == probe.end
            && let Some((raised, began)) = self.began.take()
        {
            self.ended += 1;
            let new = event.args[1] - self.damage;
            self.damage = event.args[1];
            // What waited behind a disturbed call is disturbed too, until all has been caught up with.
            let waited = self.disturbed_until.is_some_and(|until| raised < until);
            if waited || is_disturbed(record, raised, event.at) {
                self.disturbed_until = Some(event.at);
                return;
            }
            let response = event.at.saturating_since(raised);
            self.longest_response = self.longest_response.max(response);
            let length = event.at.saturating_since(began);
            self.lengths.record(length.as_nanos());
            self.undisturbed_damage += new;
        }
    }
}
