//! One run of a set, and what was seen of each device.

use laxity_model::base::histogram::Histogram;
use laxity_model::request::Work;
use laxity_model::{
    HostError, Instant, Mark, Placement, Priority, ProcessorId, Program, Reservation, RunRecord,
    Service, Span, Step, Whereabouts,
};

use super::install::{Probe, install};
use super::kind::Kind;
use super::serving::Variant;
use crate::served::{Served, calls, unserved};
use laxity::observe::Disturbances;
use laxity_devices::card::Unserved;
use laxity_lab::bench::Runner;
use laxity_lab::bench::load::{Counted, Measured, Trouble, beside_nobody};
use laxity_lab::scenario::devices::Account;
use laxity_model::program::upcall::{Timing, Upcall};

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
    /// How many times as fast as the host's clock the cards' go.
    pub pace: u64,
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
        let (program, probes, watchers) = self.program()?;
        let record = host.run(program, self.length)?;
        let gaps = watchers.into_iter().map(|mark| largest_gap(&record, mark));
        let devices = probes.iter().map(|probe| of(&record, probe));
        Ok(Outcome {
            gaps: gaps.collect(),
            devices: devices.collect::<Result<Vec<Seen>, HostError>>()?,
            in_the_way: None,
        })
    }

    /// Its program, where its devices are in it, and the marks of those who watch.
    fn program(&self) -> Result<(Program, Vec<Probe>, Vec<Mark>), HostError> {
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
                let body = Upcall::new(Timing::each(WATCH), mark, |_, _| Step::Burn(Service::ZERO));
                let highest = Placement::Thread(Priority::HIGHEST);
                let callback = program.add("callback", processor, highest, body);
                // It ranks above the slots, and takes next to nothing from them.
                let (service, period) = (Service::ZERO, WATCH);
                program.declare_work(callback, Work { service, period });
                watchers.push(mark);
            }
        }
        Ok((program, probes, watchers))
    }

    /// Makes the run, of one device, if nobody is there who outranks it.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn run_beside_nobody(&self, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        let on = self.members[0].processor;
        let strangers = |host: &mut Runner<'_>| host.strangers(self.processors, on);
        let made = beside_nobody(host, self.length, strangers, |host| self.run(host))?;
        Ok(made.unwrap_or_else(|trouble| Outcome {
            devices: Vec::new(),
            gaps: Vec::new(),
            in_the_way: Some(trouble),
        }))
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
    /// Of them, the longest from interrupt to end, less what the machine's own halts added; or as long as one has waited that the run's end found; `None` if
    /// all of them may be the machine's doing.
    pub longest_response: Option<Span>,
    /// The service of each call that lost nothing and that nothing disturbed.
    pub services: Histogram,
    /// The service of a block, if the run says what it is.
    pub block: Measured,
    /// Samples lost or late in calls, those that the run's end found included, that the machine's own halts do not excuse.
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
    /// By processor, if it was watched: the largest gap between two callbacks, the undisturbed ones only; `None` if there was none.
    pub gaps: Vec<Option<Span>>,
    /// Why it was not made, where that was asked before.
    pub in_the_way: Option<Trouble>,
}

impl Outcome {
    /// The largest gap on any processor; `None` if they were not watched, or one had no undisturbed one.
    pub fn largest_gap(&self) -> Option<Span> {
        let all = self.gaps.iter().copied();
        all.collect::<Option<Vec<Span>>>()?.into_iter().max()
    }
}

/// The one that is open when the run ends counts as far as it got, and where nothing was seen, all of the run. Of one in which halts of the machine were
/// hardly of weight, the rest is judged.
fn largest_gap(record: &RunRecord, mark: Mark) -> Option<Span> {
    let runs = record.marked(mark);
    let still = match runs.clone().next() {
        Some(event) => Disturbances::of(record, [&event.activity]),
        None => Disturbances::of_who_ran(record, [Whereabouts::Anywhere]),
    };
    let mut runs: Vec<Instant> = runs.map(|event| event.at).collect();
    if runs.is_empty() {
        runs.push(record.start);
    }
    runs.push(record.end);
    let gaps = runs.windows(2).map(|pair| {
        let [from, to] = [pair[0], pair[1]];
        still.told_apart(to.saturating_since(from), [from, to], None)
    });
    let judged = gaps.filter(|(_, disturbed)| !disturbed);
    judged.map(|(gap, _)| gap).max()
}

fn of(record: &RunRecord, probe: &Probe) -> Result<Seen, HostError> {
    let calls = calls(record, &probe.device)?;
    let own = [probe.device.interrupt, probe.device.driver];
    let still = Disturbances::of(record, &own);
    let quiet = |call: &&Served| !still.overlap(call.raised.min(call.begun), call.done);
    let mut services = Histogram::new();
    for call in calls.iter().filter(|call| !call.is_left).filter(quiet) {
        if let (Some(service), 0) = (call.service, call.damage) {
            services.record(service.as_nanos());
        }
    }
    let counts = counts(&probe.device.report, &unserved(record, &probe.device)?);
    let counted = Counted {
        calls: services,
        lost: counts.damage(),
        undelivered: counts.undelivered,
    };
    let judged = calls.iter().filter_map(|call| call.judged);
    let responses = judged.map(|judged| judged.response);
    Ok(Seen {
        kind: probe.kind,
        processor: probe.processor,
        calls: calls.iter().filter(|call| !call.is_left).count() as u64,
        longest_response: responses.max(),
        block: counted.measured(record, probe.kind.period()),
        services: counted.calls,
        undisturbed_damage: calls.iter().map(Served::undisturbed_damage).sum(),
        counts,
    })
}

/// What the device counted itself, and what it was owed at the run's end.
fn counts(account: &Account, left: &Unserved) -> Counts {
    let mut counts = Counts::default();
    match account {
        Account::Stream(report, ..) => {
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
    use laxity_lab::runner::tasks::{Spinner, rogue};
    use laxity_model::enforce::machine::Machine;
    use laxity_model::{ActivityId, Body, Disturbance, Event, EventKind, Grade};

    use super::super::serving::Way;
    use super::*;

    /// What is seen in three seconds of a device in a thread beside somebody of the highest priority, as the machine stood still for 0.15 ms at each of
    /// these milliseconds.
    fn seen_beside(kind: Kind, other: impl Body + 'static, still_ms: &[u64]) -> Seen {
        let setup = Setup {
            members: vec![Member::new(kind)],
            variant: Variant::of(Way::RealTime, false),
            processors: 1,
            seed: 1,
            length: Span::from_secs(3),
            drifts: false,
            pace: 1,
            rogues: 0,
            watched: false,
        };
        let mut program = Program::new(1);
        let probe = install(&setup, 0, &mut program).expect("it fits");
        let highest = Placement::Thread(Priority::HIGHEST);
        program.add("other", ProcessorId(0), highest, other);
        let mut twin = Twin::new(Profile::WIN2000_PII450);
        let record = Runner::Twin(&mut twin).run(program, setup.length);
        let mut record = record.expect("the twin runs it");
        let still = still_ms.iter().map(|ms| Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_millis(*ms),
            to: Instant::from_millis(*ms) + Span::from_micros(150),
        });
        record.disturbances = still.collect();
        of(&record, &probe).expect("the driver is gone")
    }

    /// Nothing is claimed of reservations that nobody enforces, so who watches them may not be why.
    #[test]
    fn who_watches_takes_no_reservation_away() {
        let two_of_eight = Reservation::new(Service::from_millis(2), Span::from_millis(8));
        let setup = Setup {
            members: vec![Member {
                reservation: Some(two_of_eight.expect("valid")),
                ..Member::new(Kind::Audio)
            }],
            variant: Variant::of(Way::Reserved, true),
            processors: 1,
            seed: 1,
            length: Span::from_millis(50),
            drifts: false,
            pace: 1,
            rogues: 1,
            watched: true,
        };
        let (program, ..) = setup.program().expect("it fits");
        let mut twin = Twin::linux(&Machine::without_costs(250), 1);
        let record = Runner::Twin(&mut twin).run(program, setup.length);
        let record = record.expect("the twin runs it");
        let grants = record.usage.iter().filter_map(|usage| usage.grant.as_ref());
        let grades: Vec<&Grade> = grants.map(|grant| &grant.grade).collect();
        assert_eq!(grades, [&Grade::Enforced]);
    }

    #[test]
    fn a_starved_callback_shows_its_gap_to_the_end_whatever_short_halt_was_in_it() {
        let mark = Mark(0);
        let gap = |runs_ms: &[u64], still_us: u64| {
            let at = Instant::from_millis;
            let event = |ms: &u64| Event {
                at: at(*ms),
                kind: EventKind::Mark(mark),
                processor: ProcessorId(0),
                activity: ActivityId(0),
                args: [0; 2],
            };
            let record = RunRecord {
                events: runs_ms.iter().map(event).collect(),
                disturbances: vec![Disturbance {
                    processor: ProcessorId(0),
                    from: at(50),
                    to: at(50) + Span::from_micros(still_us),
                }],
                ..RunRecord::empty(Instant::ZERO, at(100))
            };
            largest_gap(&record, mark)
        };
        let us = |us| Some(Span::from_micros(us));
        assert_eq!(gap(&[1, 2, 3, 4], 150), us(95_850));
        assert_eq!(gap(&[1, 2, 90, 91, 99], 150), us(87_850));
        assert_eq!(gap(&[], 150), us(99_850));
        // All of it may be the machine's.
        assert_eq!(gap(&[1, 2, 90, 91, 99], 20_000), us(8_000));
        assert_eq!(gap(&[], 50_000), None, "nothing else was seen");
    }

    #[test]
    fn a_processor_on_which_no_gap_is_judged_leaves_the_largest_unknown() {
        let largest = |gaps: &[Option<u64>]| {
            let gaps = gaps.iter().map(|gap| gap.map(Span::from_millis));
            let outcome = Outcome {
                devices: Vec::new(),
                gaps: gaps.collect(),
                in_the_way: None,
            };
            outcome.largest_gap()
        };
        assert_eq!(largest(&[Some(1), Some(3)]), Some(Span::from_millis(3)));
        assert_eq!([largest(&[Some(1), None]), largest(&[])], [None; 2]);
    }

    const KINDS: [Kind; 3] = [Kind::Modem, Kind::GLite, Kind::Audio];

    #[test]
    fn a_device_that_is_never_served_loses_all_of_its_samples() {
        for kind in KINDS {
            let seen = seen_beside(kind, Spinner, &[]);
            assert_eq!(seen.calls, 0, "{kind:?}");
            assert_eq!(seen.undisturbed_damage, seen.counts.damage(), "{kind:?}");
            assert!(seen.counts.damage() > 10_000, "{kind:?}: {seen:?}");
            let longest = seen.longest_response.expect("one waited");
            assert!(longest > Span::from_secs(2), "{seen:?}");
        }
    }

    #[test]
    fn a_halt_excuses_no_more_of_an_overloaded_device_than_it_delayed() {
        let each = Span::from_millis(10);
        let most = || rogue(Service::from_micros(9_700), each, each);
        for kind in KINDS {
            let [never, late] = [
                [
                    seen_beside(kind, Spinner, &[]),
                    seen_beside(kind, Spinner, &[1_000]),
                ],
                [
                    seen_beside(kind, most(), &[]),
                    seen_beside(kind, most(), &[1_000]),
                ],
            ];
            assert_eq!(never[1].calls, 0, "{kind:?}");
            assert!(late[1].calls > 0, "{kind:?}");
            for [without, with] in [never, late] {
                assert!(without.undisturbed_damage > 10_000, "{kind:?}: {without:?}");
                // A ring and a block at most, and what comes in meanwhile.
                let excused = without.undisturbed_damage - with.undisturbed_damage;
                assert!(
                    excused < without.undisturbed_damage / 20,
                    "{kind:?}: {excused} of {without:?}"
                );
                let longest = |seen: &Seen| seen.longest_response.expect("one waited");
                let hidden = longest(&without) - longest(&with);
                assert!(hidden <= Span::from_millis(1), "{kind:?}: {with:?}");
            }
        }
    }

    /// As in a run of a scenario: the emulation's own failure leaves open what came of the devices.
    #[test]
    fn a_far_end_that_came_too_late_is_a_doubt_and_no_loss() {
        let mut seen = seen_beside(Kind::Modem, Spinner, &[]);
        let doubt = |seen: &Seen| super::super::doubt(&[("".into(), seen)]);
        assert_eq!(doubt(&seen), None);
        seen.counts.undelivered = 3;
        let why = doubt(&seen).expect("the far end was late");
        assert!(why.contains("3 samples"), "{why}");
    }
}
