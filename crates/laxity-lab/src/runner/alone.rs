//! A device's driver as the only device: how much it takes of this machine's processor, and how long its calls take.
//!
//! It runs in a thread just below whoever has a slot, connected. Its load is measured with nothing beside it but what the far end takes on another
//! processor; its calls beside the ordinary threads and programs of the variants in which something is to be proposed to it: these never outrank it, yet
//! they share caches, memory and the kernel with it, by which a call takes longer. A measurement that
//! was disturbed, lossy, or made beside strangers who rank above a slot is told as what it is, and never made into a figure.

use laxity::observe::{Observation, observe};
use laxity::{LiveHost, Twin, Watch};
use laxity_devices::modem::CardClock;
use laxity_model::base::histogram::Histogram;
use laxity_model::enforce::ranks::HIGHEST_BELOW_SLOTS;
use laxity_model::verify::contract::{Observations, Phase};
use laxity_model::{Host, HostError, RunRecord, Service, Span};

use super::compose::{Around, RunSpec, compose};
use super::live::watched_host;
use super::load::{
    CALLS, Calibration, Counted, Found, Measured, Next, NoCount, PILOTS, Trouble, beside_nobody,
    calls_for, fast_ppb, pace, pilot, strangers,
};
use super::proposal::Calls;
use super::schedule::longest_open;
use super::{RunError, commands, load};
use crate::observe::DeviceProbe;
use crate::scenario::kinds::{PROCESSING_SERVICE, SAMPLES_LOST};
use crate::scenario::{
    LengthSpec, Phases, Placing, Resolved, ResolvedDevice, ResolvedVariant, Start, TwinProfile,
};

/// What it is called in messages.
const CALIBRATION: &str = "calibration";
/// And what comes after it, where something is to be proposed.
const PILOT: &str = "calls for a proposal";
/// Work is repeated no more often: the machine is then too fast for the load asked for.
const MOST_REPEATS: usize = 2_000;
/// How long a measurement is: 32 blocks of a modem.
const MEASUREMENT: Span = Span::from_millis(400);
/// A call that is made to see what it takes goes on for so long once it ought to be connected.
const AFTER_CONNECTION: Span = Span::from_millis(500);
/// The phases before that.
const BEFORE: [Phase; 3] = [Phase::ON_HOOK, Phase::DIALING, Phase::TRAINING];

/// A device's driver on a host of its own.
pub struct Alone<'a> {
    resolved: &'a Resolved,
    variant: ResolvedVariant,
    host: LiveHost,
    watch: Watch,
}

/// What a run of it showed.
struct Seen {
    record: RunRecord,
    observation: Observation,
    undelivered: u64,
    /// The phase in which the device has all to do.
    at_work: Phase,
}

impl<'a> Alone<'a> {
    /// On this machine, with a witness where the device's driver works.
    ///
    /// # Errors
    ///
    /// [`RunError::CannotRun`] if there are too few processors, or the rights are missing.
    pub fn live(resolved: &'a Resolved, device: &ResolvedDevice) -> Result<Self, RunError> {
        let host = watched_host(resolved.host.processors, &[device.processor])?;
        let variant = by_itself(resolved, device);
        Ok(Self {
            resolved,
            variant,
            host,
            watch: Watch::begin(),
        })
    }

    fn device(&self) -> &ResolvedDevice {
        &self.variant.devices[0]
    }

    /// How often the work of the device must be repeated for its load, as it was measured in the end.
    ///
    /// # Errors
    ///
    /// [`RunError::Inconclusive`] if the machine was not left alone long enough, naming who was in the way, or if its speed moves too much;
    /// [`RunError::CannotRun`] if no count makes this load here; and the host's.
    pub fn calibrate(&mut self) -> Result<Found, RunError> {
        let ResolvedDevice { load, device, .. } = self.device();
        let few = device.fewest_repeats().unwrap_or(0);
        let mut calibration = Calibration::new(*load, device.period(), few, MOST_REPEATS);
        loop {
            match calibration.next() {
                Ok(Next::Found(found)) => return Ok(found),
                Ok(Next::Measure(receivers)) => calibration.take(self.measure(receivers)?),
                Err(no) => return Err(self.no_count(&no)),
            }
        }
    }

    /// A thousand undisturbed calls of the device with so many further receivers, or more for long runs, beside those who share the
    /// machine with it.
    ///
    /// # Errors
    ///
    /// [`RunError::Inconclusive`] if there were too few, with what was in the way; and the host's.
    pub fn calls(&mut self, receivers: usize) -> Result<Calls, RunError> {
        self.variant = beside_ordinary(self.resolved, self.device());
        let pace = pace(self.device().load.share.ppm.into());
        let clock = CardClock {
            fast_ppb: fast_ppb(pace),
            ..CardClock::default()
        };
        let period = self.device().device.period();
        let wanted = calls_for(longest_open(self.resolved, self.device())?, period);
        let length = pilot(wanted, period, pace);
        let (mut all, mut last) = (Histogram::new(), None);
        for _ in 0..PILOTS {
            let how = (Start::Connected, clock);
            match self.run((None, PILOT), receivers, how, length)? {
                // What was lost or disturbed is not among the calls; what else there was is as good as ever.
                Ok(seen) => {
                    let counted = seen.counted();
                    all.merge(&counted.calls);
                    last = counted.measured(&seen.record, period / pace).err();
                }
                Err(trouble) => last = Some(trouble),
            }
            if let Some(longest) = all.max().filter(|_| all.count() >= wanted) {
                return Ok(Calls {
                    count: all.count(),
                    longest: Service::from_nanos(longest),
                    connecting: self.connecting(receivers, clock, pace)?,
                });
            }
        }
        Err(too_few(self.device(), (all.count(), wanted), last.as_ref()))
    }

    /// The longest undisturbed call before the device is connected, of a call that it makes with so many further receivers; `None` of one that makes none.
    /// It calls again where not all of that was seen undisturbed.
    fn connecting(
        &mut self,
        receivers: usize,
        clock: CardClock,
        pace: u64,
    ) -> Result<Option<Service>, RunError> {
        let (resolved, mut variant) = (self.resolved, self.variant.clone());
        let device = &mut variant.devices[0];
        device.set_phases(Phases::SHORT);
        let before = device.device.before_transfer(Phases::SHORT);
        let mut live = resolved.variants.iter().filter(|variant| variant.live);
        let calls = live.any(|one| one.start == Start::OnHook && one.leaves_open(device));
        let Some(before) = before.filter(|_| calls) else {
            return Ok(None);
        };
        let (length, period) = (
            (before + AFTER_CONNECTION) / pace,
            self.device().device.period(),
        );
        let (mut connecting, mut last) = (Connecting::default(), None);
        for _ in 0..PILOTS {
            let how = (Start::OnHook, clock);
            match self.run((Some(&variant), PILOT), receivers, how, length)? {
                Ok(seen) => match seen.connected() {
                    Some(seen) if connecting.take(seen) => break,
                    Some(_) => {}
                    None => last = seen.counted().measured(&seen.record, period / pace).err(),
                },
                Err(trouble) => last = Some(trouble),
            }
        }
        if connecting.longest.is_some() {
            return Ok(connecting.longest);
        }
        let why = last.map_or_else(String::new, |last| format!("; in the last of them {last}"));
        Err(RunError::Inconclusive(format!(
            "what to propose to `{}`: none of {PILOTS} calls that it made came to a connection{why}",
            self.device().name
        )))
    }

    fn go_on(&self) -> Result<(), RunError> {
        let caught = self.watch.caught();
        caught.map_or(Ok(()), |signal| Err(RunError::Interrupted(signal)))
    }

    fn no_count(&self, no: &NoCount) -> RunError {
        let said = format!("the load of `{}`: {no}", self.device().name);
        match no {
            NoCount::Inconclusive(_) => RunError::Inconclusive(said),
            NoCount::Impossible(_) => RunError::CannotRun(said),
        }
    }

    /// The service of a block with so many further receivers.
    fn measure(&mut self, receivers: usize) -> Result<Measured, RunError> {
        let period = self.device().device.period();
        let how = (Start::Connected, CardClock::default());
        let seen = self.run((None, CALIBRATION), receivers, how, MEASUREMENT)?;
        Ok(seen.and_then(|seen| seen.counted().measured(&seen.record, period)))
    }

    /// A run of the device, in a variant of its own if one is given, that nobody was beside and of which no event was lost.
    fn run(
        &mut self,
        (variant, what): (Option<&ResolvedVariant>, &str),
        receivers: usize,
        how: (Start, CardClock),
        length: Span,
    ) -> Result<Result<Seen, Trouble>, RunError> {
        self.go_on()?;
        let (resolved, on) = (self.resolved, self.device().processor);
        let of = (resolved, variant.unwrap_or(&self.variant), None);
        let seen = beside_nobody(
            &mut self.host,
            length,
            |host| strangers(host, resolved.host.processors, on),
            |host| {
                let commands = commands::start(of.1, host.config())?;
                host.run_beside(commands.beside());
                let seen = run(host, of, receivers, how, length)?;
                commands.end(&seen.record);
                Ok(seen)
            },
        );
        let seen = seen.map_err(|error| RunError::of(error, what))?;
        Ok(seen.and_then(|seen| match seen.record.events_lost {
            0 => Ok(seen),
            lost => Err(Trouble::EventsLost(lost)),
        }))
    }
}

/// The calls of a device in a twin that is like this one: always the same, so that as many are seen as are wanted.
///
/// # Errors
///
/// The twin's.
pub(super) fn calls_in_twin(
    mut twin: Twin,
    resolved: &Resolved,
    device: &ResolvedDevice,
) -> Result<Calls, RunError> {
    let variant = by_itself(resolved, device);
    let profile = resolved.host.profile;
    // Until its card begins there are no calls.
    let silent = profile.card_clock(resolved.seed).begins_after;
    let length = silent + pilot(CALLS, device.device.period(), 1);
    let seen = run(
        &mut twin,
        (resolved, &variant, Some(profile)),
        0,
        (Start::Connected, CardClock::default()),
        length,
    );
    let seen = seen.map_err(|error| RunError::of(error, PILOT))?;
    let calls = seen.counted().calls;
    let longest = calls.max().filter(|_| calls.count() >= CALLS);
    longest.map_or_else(
        || Err(too_few(device, (calls.count(), CALLS), None)),
        |longest| {
            Ok(Calls {
                count: calls.count(),
                longest: Service::from_nanos(longest),
                // The twin's modem says what it takes then.
                connecting: None,
            })
        },
    )
}

/// Why nothing can be proposed.
fn too_few(device: &ResolvedDevice, calls: (u64, u64), last: Option<&Trouble>) -> RunError {
    let whose = format!("`{}`", device.name);
    RunError::Inconclusive(load::too_few(&whose, calls, last))
}

/// A variant with nothing in it but the device, in a thread.
fn by_itself(resolved: &Resolved, device: &ResolvedDevice) -> ResolvedVariant {
    ResolvedVariant {
        devices: vec![ResolvedDevice {
            // Whoever outranks this outranks a slot's occupant too, and is found.
            placing: Placing::Thread(HIGHEST_BELOW_SLOTS),
            ..device.clone()
        }],
        tasks: Vec::new(),
        ..resolved.variants[0].clone()
    }
}

/// A variant of the device and, of those in which something is to be proposed to it, every task whose threads are ordinary ones, each once: spinners and
/// commands.
fn beside_ordinary(resolved: &Resolved, device: &ResolvedDevice) -> ResolvedVariant {
    let mut variant = by_itself(resolved, device);
    let open = resolved.variants.iter().filter(|one| one.live);
    let open = open.filter(|one| one.leaves_open(device));
    for task in open.flat_map(|one| &one.tasks) {
        if task.is_ordinary() && variant.tasks.iter().all(|known| known.name != task.name) {
            variant.tasks.push(task.clone());
        }
    }
    variant
}

/// Runs the device for so long from there, with so many further receivers and such a clock of its card.
fn run(
    host: &mut impl Host,
    (resolved, variant, twin): (&Resolved, &ResolvedVariant, Option<TwinProfile>),
    further_receivers: usize,
    (start, clock): (Start, CardClock),
    idle: Span,
) -> Result<Seen, HostError> {
    let spec = RunSpec {
        seed: resolved.seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers,
        start,
        gaps_only: true,
        clock,
    };
    let length = LengthSpec {
        idle,
        ..resolved.run
    };
    let (program, probes) = compose(
        variant,
        resolved.host.processors,
        &length,
        Around {
            twin,
            seed: spec.seed,
            wires: None,
        },
        |_| spec,
    )?;
    let record = host.admit_and_run(program, idle)?;
    let mut seen = observe(&record, &probes.0, &[]);
    let probe = probes.devices().next();
    let call = probe.and_then(|probe| probe.installed.report.modem());
    let undelivered = call.map_or(0, |call| call.samples_undelivered.get());
    Ok(Seen {
        at_work: probe.map_or(Phase::RUN, DeviceProbe::at_work),
        observation: seen.swap_remove(0),
        undelivered,
        record,
    })
}

/// The service of the longest undisturbed call before a modem was connected, in nanoseconds.
pub(super) fn longest_connecting(quantities: &Observations) -> Option<u64> {
    let calls = BEFORE
        .iter()
        .filter_map(|phase| quantities.get(PROCESSING_SERVICE, phase));
    calls.filter_map(|calls| calls.undisturbed.max()).max()
}

/// The longest undisturbed call before a modem is connected, of those that it made for it.
#[derive(Default)]
struct Connecting {
    longest: Option<Service>,
}

impl Connecting {
    /// Takes what was seen where it came to a connection. Whether that was all: the longest call may be among those that a halt of the machine touched, or
    /// that lost something.
    fn take(&mut self, seen: &Observations) -> bool {
        let longest = longest_connecting(seen).map(Service::from_nanos);
        self.longest = self.longest.max(longest);
        let was_seen = |phase: &Phase| {
            let calls = seen.get(PROCESSING_SERVICE, phase);
            let lost = seen.get(SAMPLES_LOST, phase);
            calls.is_none_or(|calls| calls.disturbed.is_empty())
                && lost.is_none_or(|lost| lost.raw().sum() == 0)
        };
        longest.is_some() && BEFORE.iter().all(was_seen)
    }
}

impl Seen {
    /// What was seen, if it came to a connection.
    fn connected(&self) -> Option<&Observations> {
        let Observation {
            phases, quantities, ..
        } = &self.observation;
        let is_connected = phases.iter().any(|(_, phase)| *phase == self.at_work);
        is_connected.then_some(quantities)
    }

    fn counted(&self) -> Counted {
        let quantities = &self.observation.quantities;
        let calls = quantities.get(PROCESSING_SERVICE, &self.at_work);
        let lost = quantities.whole(SAMPLES_LOST).raw().sum();
        Counted {
            calls: calls.map_or_else(Histogram::new, |calls| calls.undisturbed.clone()),
            lost: u64::try_from(lost).unwrap_or(u64::MAX),
            undelivered: self.undelivered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Length;

    #[test]
    fn calls_are_measured_beside_what_shares_the_machine_and_never_outranks_it() {
        let beside = |name: &str, text: &str| {
            let scenario = crate::scenario::parse(text, name).expect("a scenario");
            let resolved = scenario.resolve(Length::Quick);
            let devices = resolved.variants.iter().flat_map(|one| &one.devices);
            let device = devices.clone().find(|one| one.is_open()).expect("one");
            let beside = beside_ordinary(&resolved, device);
            assert_eq!(beside.devices.len(), 1);
            let names = beside.tasks.iter().map(|task| task.name.clone());
            names.collect::<Vec<_>>()
        };
        let main = include_str!("../../../../scenarios/soft-modem.toml");
        assert_eq!(
            beside("soft-modem.toml", main),
            ["spinners"],
            "no rogue, and no co-thread"
        );
        let hour = include_str!("../../../../scenarios/one-hour.toml");
        assert_eq!(
            beside("one-hour.toml", hour),
            ["spinners", "compile", "disk"]
        );
    }

    #[test]
    fn more_calls_are_measured_for_long_runs() {
        let block = Span::from_micros(12_500);
        let calls = |seconds| calls_for(Span::from_secs(seconds), block);
        assert_eq!([calls(5), calls(400)], [CALLS; 2]);
        assert_eq!(calls(3_900), 9_750);
    }

    #[test]
    fn a_modem_calls_again_where_not_all_before_its_connection_was_seen_undisturbed() {
        let seen = |calls: &[(u64, bool)], lost: u64| {
            let mut seen = Observations::new();
            for (service, disturbed) in calls {
                seen.record(PROCESSING_SERVICE, &Phase::TRAINING, *service, *disturbed);
            }
            seen.record(SAMPLES_LOST, &Phase::DIALING, lost, false);
            seen
        };
        let mut connecting = Connecting::default();
        let longest = |connecting: &Connecting| connecting.longest.map(Service::as_nanos);
        assert!(!connecting.take(&seen(&[(5_400, true)], 0)));
        assert_eq!(longest(&connecting), None);
        assert!(!connecting.take(&seen(&[(1_800, false), (5_400, true)], 0)));
        assert!(!connecting.take(&seen(&[(1_900, false)], 48)));
        assert_eq!(longest(&connecting), Some(1_900));
        assert!(connecting.take(&seen(&[(1_700, false), (5_300, false)], 0)));
        assert_eq!(longest(&connecting), Some(5_300));
        // What is lost once it is connected is no matter of these.
        let mut after = seen(&[(1_600, false)], 0);
        after.record(SAMPLES_LOST, &Phase::CONNECTED, 48, false);
        assert!(connecting.take(&after));
        assert_eq!(longest(&connecting), Some(5_300));
    }
}
