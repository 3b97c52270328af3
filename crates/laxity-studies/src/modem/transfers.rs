//! File transfers in the twin, with real samples.

use laxity::{Recording, Twin};
use laxity_devices::modem::{
    Call, CallConfig, Costs, DriverPlacement, FarProfile, Outcome, Timing,
};
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::slots;
use laxity_lab::report::{Attempts, Times};
use laxity_lab::runner::tasks::Spinner;
use laxity_lab::scenario::{TwinProfile, units};
use laxity_lab::workload::Draws;
use laxity_model::{
    Body, Context, HostError, Outside, Placement, Priority, ProcessorId, Program, Reservation,
    ReservationRequest, Span, Step,
};
use serde::Deserialize;

use super::TEXT;
use crate::served::unserved;

/// The study's host.
pub(super) const HOST: TwinProfile = TwinProfile::WIN2000_PII450;
/// The priority of the modem's thread while it is on hook (§5.4).
pub(super) const ON_HOOK_PRIORITY: u8 = 24;
/// Beside the modem runs a spinner of this priority, unless that is the modem's own.
const SPINNER_PRIORITY: Priority = Priority::NORMAL;
/// The index of the draws of a transfer.
const DRAWN: u64 = 17;
/// Data must last so long for a training to count, from the least patient server to the most: half of what was calibrated, and twice that; so it is calibrated, too.
pub(super) const PATIENCE: [Span; 2] = [Span::from_millis(2_500), Span::from_secs(10)];
/// A transfer that takes longer has failed; twice what the longest of the study took, with the call that precedes it.
pub(super) const LIMIT: Span = Span::from_secs(700);

/// Where the driver is, as the study calls it: `INT`, `DPC`, `THR 8`, `RES 2/16`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Place {
    name: String,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Interrupt,
    Deferred,
    Thread(Priority),
    /// In real time.
    Reserved(Reservation),
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let at = match name.split_once(' ') {
            None if name == "INT" => Some(At::Interrupt),
            None if name == "DPC" => Some(At::Deferred),
            Some(("THR", level)) => {
                let priority = level.parse().ok().and_then(Priority::new);
                priority.map(At::Thread)
            }
            Some(("RES", of)) => {
                let reservation = units::reservation(&format!("{}ms", of.replace('/', "ms/")));
                reservation
                    .ok()
                    .map(|asked| At::Reserved(HOST.reserved(asked)))
            }
            _ => None,
        };
        match at {
            Some(at) => Ok(Self { name, at }),
            None => Err(format!("`{name}` is no place for a driver")),
        }
    }
}

impl Place {
    /// The one that full speed is measured by.
    pub(super) fn interrupt() -> Self {
        Self {
            name: "INT".into(),
            at: At::Interrupt,
        }
    }

    /// Threads of all priorities but the lowest, which is nobody's.
    pub(super) fn priorities() -> Vec<Self> {
        let all = (1..=Priority::HIGHEST.level())
            .filter_map(|level| Self::try_from(format!("THR {level}")).ok());
        all.collect()
    }

    /// As the study calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The reservation in real time.
    pub(super) const fn reservation(&self) -> Option<Reservation> {
        match self.at {
            At::Reserved(reservation) => Some(reservation),
            _ => None,
        }
    }

    fn placement(&self, outside: Outside) -> DriverPlacement {
        match self.at {
            At::Interrupt => DriverPlacement::Interrupt,
            At::Deferred => DriverPlacement::Deferred,
            At::Thread(priority) => DriverPlacement::Thread(priority),
            At::Reserved(reservation) => {
                let request = ReservationRequest {
                    begins_at_start: false,
                    ..slots(reservation, outside)
                };
                let on_hook = Priority::new(ON_HOOK_PRIORITY).unwrap_or(Priority::NORMAL);
                DriverPlacement::Reserved(request, on_hook)
            }
        }
    }
}

/// What a transfer is made with, wherever its driver is.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub outside: Outside,
    pub far: FarProfile,
    pub timing: Timing,
    pub costs: Costs,
    /// Of the spinner beside the modem.
    pub quantum: Span,
    /// How much of its first quantum the spinner has behind it when the transfer begins; less than the quantum.
    pub into_quantum: Span,
    pub bytes: u64,
    /// By how much the card's crystal is faster than the host's.
    pub fast_ppb: i32,
    /// A spinner runs beside the modem even where that is its equal.
    pub spins_beside_equal: bool,
    pub seed: u64,
}

impl Setting {
    /// The study's call to its own server.
    pub(super) fn study(bytes: u64, outside: Outside, seed: u64) -> Self {
        Self {
            outside,
            far: FarProfile::DATAFIRE,
            timing: Timing::study(),
            costs: HOST.costs,
            quantum: HOST.machine.bands.quantum,
            into_quantum: Span::ZERO,
            bytes,
            fast_ppb: HOST.card_fast_ppb,
            spins_beside_equal: false,
            seed,
        }
    }

    /// With what the study does not tell drawn from its seed: the quantum of the spinner, which is longer the further its window is in front (§2.2), how
    /// patient the server is with a line that keeps retraining, and where in its quantum the spinner is, which was there before the modem dialed.
    pub(super) fn drawn(self) -> Self {
        let mut draws = Draws::new(self.seed, DRAWN);
        let quanta = quanta();
        let quantum = quanta[(draws.between(1, quanta.len() as u64) - 1) as usize];
        let [from, to] = PATIENCE.map(|patience| patience.as_micros() / 1_000);
        let training_lasts = Span::from_millis(draws.between(from, to));
        // Drawn last: whatever else is drawn stays as it was for each seed.
        let into_quantum = Span::from_nanos(draws.between(0, quantum.as_nanos() - 1));
        Self {
            quantum,
            into_quantum,
            timing: Timing {
                training_lasts,
                ..self.timing
            },
            ..self
        }
    }

    /// As often as asked for, each with another seed.
    pub(super) fn repeated(self, times: u32) -> Vec<Self> {
        let seed = self.seed.wrapping_mul(1_000);
        let one = |repeat: u32| Self {
            seed: seed + u64::from(repeat),
            ..self.clone()
        };
        (0..times).map(one).collect()
    }
}

/// The quanta that a thread of priority 8 may have on the study's host.
pub(super) fn quanta() -> Vec<Span> {
    let all = TEXT.quoted::<Vec<u64>>("quanta_us").into_iter();
    all.map(Span::from_micros).collect()
}

/// The spinner, with so much of its first quantum behind it: it gives up its turn once the rest is used, and has whole quanta from then on. The quantum of a
/// thread stands still while others have the processor, so what is cut off once moves all turns that follow.
fn spinner(quantum: Span, into_quantum: Span) -> impl Body + 'static {
    let rest = (quantum - into_quantum).as_full_service();
    let is_cut = !into_quantum.is_zero();
    let mut first = [Step::Burn(rest), Step::Yield]
        .into_iter()
        .filter(move |_| is_cut);
    move |context: &mut dyn Context| first.next().unwrap_or_else(|| Spinner.step(context))
}

/// One transfer.
#[derive(Clone, Debug)]
pub struct Transfer {
    place: Place,
    setting: Setting,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attempt {
    /// How long the file took, if it arrived whole.
    pub(super) took: Option<Span>,
    /// Calls of the signal processing.
    pub(super) calls: u64,
    /// Blocks whose call began too late to be of use.
    pub(super) abandoned: u64,
    /// Output samples sent as garbage.
    pub(super) underrun: u64,
    /// Input samples lost to overflow.
    pub(super) overflown: u64,
    /// Retrainings, as the near end counts them.
    pub(super) retrainings: u64,
    /// The longest time from an interrupt to its call, once training began; `None` if it never did.
    pub(super) latest_begin: Option<Span>,
}

impl Transfer {
    pub(super) fn name(&self) -> String {
        self.place.name.clone()
    }

    pub(super) fn twin(&self) -> Twin {
        let mut profile = HOST.machine;
        profile.bands.quantum = self.setting.quantum;
        Twin::new(profile).recording(Recording::NONE)
    }

    /// Makes it, from the first moment on hook to the last byte.
    ///
    /// # Errors
    ///
    /// The host's.
    pub(super) fn make(&self, host: &mut Runner<'_>) -> Result<Attempt, HostError> {
        let setting = &self.setting;
        let twin = TwinProfile {
            costs: setting.costs,
            card_fast_ppb: setting.fast_ppb,
            ..HOST
        };
        let call = Call::new(CallConfig {
            far: setting.far,
            ..twin.call(setting.timing, setting.seed, setting.bytes)
        });
        let mut program = Program::new(1);
        let placement = self.place.placement(setting.outside);
        let installed = call.install(&mut program, ProcessorId(0), placement);
        if setting.spins_beside_equal || self.place.at != At::Thread(SPINNER_PRIORITY) {
            let placement = Placement::Thread(SPINNER_PRIORITY);
            let spinner = spinner(setting.quantum, setting.into_quantum);
            program.add("spinner", ProcessorId(0), placement, spinner);
        }
        let record = host.run(program, LIMIT)?;
        let left = unserved(&record, &installed)?;
        let report = installed.report;
        let took = match report.outcome() {
            Some(Outcome::Done(arrived)) if arrived.intact => Some(arrived.took),
            _ => None,
        };
        Ok(Attempt {
            took,
            calls: report.calls.get(),
            abandoned: report.blocks_abandoned.get(),
            underrun: report.samples_underrun.get() + left.underrun,
            overflown: report.samples_lost.get() + left.lost,
            retrainings: report.retrainings.get(),
            // No call begins at the very moment of its interrupt.
            latest_begin: match report.begin_latest_ns.get() {
                0 => None,
                latest => Some(Span::from_nanos(latest)),
            },
        })
    }
}

/// Transfers that are shown together: from each place, with each setting.
pub(super) struct Batch {
    pub(super) places: Vec<Place>,
    pub(super) settings: Vec<Setting>,
}

impl Batch {
    /// Place by place.
    pub(super) fn transfers(&self) -> impl Iterator<Item = Transfer> {
        self.places.iter().flat_map(|place| {
            self.settings.iter().map(|setting| Transfer {
                place: place.clone(),
                setting: setting.clone(),
            })
        })
    }

    /// What became of them, by place, of all that was made; the rest stays.
    pub(super) fn taken<'a>(&self, made: &mut &'a [Attempt]) -> Vec<&'a [Attempt]> {
        let (own, rest) = made.split_at(self.places.len() * self.settings.len());
        *made = rest;
        own.chunks(self.settings.len()).collect()
    }
}

/// So many transfers, in words; `what` stands before the word.
pub(super) fn transfers(count: u32, what: &str) -> String {
    match count {
        1 => format!("one {what}transfer"),
        many => format!("{many} {what}transfers"),
    }
}

/// The statistics that the study prints.
pub(super) fn statistics(attempts: &[Attempt]) -> Attempts {
    let times: Vec<u64> = attempts
        .iter()
        .filter_map(|attempt| attempt.took)
        .map(Span::as_nanos)
        .collect();
    Attempts {
        made: attempts.len() as u32,
        succeeded: times.len() as u32,
        times: times_of(&times),
    }
}

fn times_of(times: &[u64]) -> Option<Times> {
    let (min, max) = (times.iter().min()?, times.iter().max()?);
    let count = times.len() as u128;
    let sum: u128 = times.iter().map(|t| u128::from(*t)).sum();
    let mean = (sum + count / 2) / count;
    let squares: u128 = times
        .iter()
        .map(|t| u128::from(*t).abs_diff(mean).pow(2))
        .sum();
    let deviation = match count {
        1 => 0,
        _ => (squares / (count - 1)).isqrt(),
    };
    Some(Times {
        min: Span::from_nanos(*min),
        max: Span::from_nanos(*max),
        mean: Span::from_nanos(mean as u64),
        deviation: Span::from_nanos(deviation as u64),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use laxity::study::Profile;
    use laxity_model::Host;

    use super::*;

    #[test]
    fn statistics_are_those_of_a_sample() {
        let took = |ms| Attempt {
            took: Some(Span::from_millis(ms)),
            ..Attempt::default()
        };
        let attempts = statistics(&[took(2), Attempt::default(), took(4), took(9)]);
        assert_eq!((attempts.made, attempts.succeeded), (4, 3));
        let times = attempts.times.unwrap();
        assert_eq!(times.mean, Span::from_millis(5));
        // Squares of 3, 1 and 4: 26, halved.
        assert_eq!(times.deviation.as_nanos(), 3_605_551);
        assert_eq!(statistics(&[Attempt::default()]).times, None);
    }

    #[test]
    fn what_is_drawn_follows_from_the_seed_and_is_all_drawn_in_the_end() {
        let drawn = |seed| Setting::study(1, Outside::Confined, seed).drawn();
        assert_eq!(drawn(3).quantum, drawn(3).quantum);
        let all: Vec<Setting> = (0..200).map(drawn).collect();
        for quantum in quanta() {
            assert!(all.iter().any(|one| one.quantum == quantum), "{quantum}");
        }
        let patience = all.iter().map(|one| one.timing.training_lasts);
        let (least, most) = (patience.clone().min(), patience.max());
        assert!(least >= Some(PATIENCE[0]) && most <= Some(PATIENCE[1]));
        assert!(most > least.map(|least| least * 3));
    }

    #[test]
    fn where_in_its_quantum_the_spinner_is_follows_from_the_seed_and_may_be_anywhere() {
        let drawn = |seed| Setting::study(1, Outside::Confined, seed).drawn();
        assert_eq!(drawn(3).into_quantum, drawn(3).into_quantum);
        assert_ne!(drawn(3).into_quantum, drawn(4).into_quantum);
        let all: Vec<Setting> = (0..200).map(drawn).collect();
        assert!(all.iter().all(|one| one.into_quantum < one.quantum));
        // In percent of the quantum.
        let parts = all
            .iter()
            .map(|one| one.into_quantum.as_nanos() * 100 / one.quantum.as_nanos());
        let (least, most) = (parts.clone().min(), parts.max());
        assert!(
            least < Some(5) && most > Some(94),
            "{least:?} to {most:?} %"
        );
    }

    /// When a thread that is the spinner's equal, and always gives way at once, has its turns.
    fn turns_beside(into_quantum: Span) -> Vec<Span> {
        let quantum = Profile::IDEAL.bands.quantum;
        let (turns, cpu) = (Arc::new(Mutex::new(Vec::new())), ProcessorId(0));
        let own = Arc::clone(&turns);
        let equal = move |context: &mut dyn Context| {
            let mut turns = own.lock().expect("nobody panicked");
            turns.push(context.now().since_epoch());
            Step::Yield
        };
        let mut program = Program::new(1);
        let placement = Placement::Thread(SPINNER_PRIORITY);
        program.add("spinner", cpu, placement, spinner(quantum, into_quantum));
        program.add("equal", cpu, placement, equal);
        let mut twin = Twin::new(Profile::IDEAL);
        let record = twin.admit_and_run(program, quantum * 3);
        record.expect("it is admitted");
        turns.lock().expect("nobody panicked").clone()
    }

    #[test]
    fn a_spinner_within_its_quantum_has_the_rest_of_it_first_and_whole_ones_then() {
        let quantum = Profile::IDEAL.bands.quantum;
        for into in [
            Span::ZERO,
            Span::from_millis(7),
            quantum - Span::from_nanos(1),
        ] {
            let turns = turns_beside(into);
            let wanted = [quantum - into, quantum * 2 - into];
            assert_eq!(turns[..2], wanted, "{into}");
        }
    }

    /// What stands in a row must not hang on the moment at which the run begins: to draw that moment changes what is late.
    #[test]
    fn what_a_call_beside_its_reservation_has_hangs_on_where_the_spinner_is() {
        let attempt = |into_quantum| {
            let setting = Setting {
                timing: Timing::short(),
                into_quantum,
                ..Setting::study(1_000, Outside::Timesharing(SPINNER_PRIORITY), 1)
            };
            let place = Place::try_from("RES 1/8".to_owned()).expect("a place");
            let transfer = Transfer { place, setting };
            let made = transfer.make(&mut Runner::Twin(&mut transfer.twin()));
            made.expect("it is admitted")
        };
        let [begun, again, within] = [0, 0, 50].map(|ms| attempt(Span::from_millis(ms)));
        assert_eq!(begun, again);
        assert_ne!(begun, within);
    }

    #[test]
    fn a_place_is_called_as_the_study_calls_it() {
        let place = Place::try_from("RES 0.5/16".to_owned()).unwrap();
        assert_eq!(place.name(), "RES 0.5/16");
        let reservation = place.reservation().unwrap();
        assert_eq!(reservation.period(), Span::from_nanos(15_625_000));
        assert!(Place::try_from("RES 2".to_owned()).is_err());
        assert!(Place::try_from("THR 32".to_owned()).is_err());
    }
}
