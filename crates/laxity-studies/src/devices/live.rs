//! Runs on this machine: every device's work repeated until it takes the share that it is said to take, and the sets served so.

use laxity_linux::os::signals::Watch;
use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::enforce::Witness;
use laxity_model::enforce::slots::{CHARGE_PER_SLOT, MOST_SHARE_PPM, SHORTEST_SLOT};
use laxity_model::policy::slots::PlanCosts;
use laxity_model::{Host, ProcessorId, Service, Span};

use super::demand::Ground;
use super::kind::Kind;
use super::run::{Member, Outcome, Setup};
use super::serving::{Variant, Way};
use super::twin::failed;
use laxity_lab::runner::{Progress, RunError};

/// How long each calibration run is.
const CALIBRATION: Span = Span::from_millis(700);
/// What handler and deferred call, emulated by threads, are taken to cost together (assumed; the kernel's two wake-ups and switches).
const INTERRUPT: Service = Service::from_micros(25);
/// Work is repeated no more often: this machine is then too fast for the share.
const MOST_FURTHER: usize = 4_000;
/// What a call is taken to cost at most, in percent of what 99 in 100 take.
const MARGIN_PERCENT: u64 = 115;

/// A device with its load on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// What it is.
    pub kind: Kind,
    /// How often its work is repeated.
    pub further: usize,
    /// The share of a processor that it then takes, in parts per million.
    pub share_ppm: u64,
    /// 99 in 100 calls take no longer, interruptions included.
    pub call_p99: Span,
}

/// A machine that is ready: its loads are known.
pub struct Bench {
    host: LiveHost,
    processors: u16,
    /// By kind.
    pub loads: Vec<Loaded>,
}

impl Bench {
    /// Finds the processors; nothing is loaded yet. The witness watches processor 0.
    ///
    /// # Errors
    ///
    /// [`RunError::CannotRun`] if there are too few.
    pub fn new(processors: u16) -> Result<Self, RunError> {
        let config = LiveConfig::detect(processors);
        let mut config = config.map_err(|error| RunError::CannotRun(error.to_string()))?;
        config.witness = Some(Witness::new(ProcessorId(0)));
        Ok(Self {
            host: LiveHost::new(config),
            processors,
            loads: Vec::new(),
        })
    }

    /// What the host calls itself.
    #[must_use]
    pub fn describe(&self) -> String {
        self.host.describe()
    }

    /// Finds how often the work of these kinds must be repeated.
    ///
    /// # Errors
    ///
    /// Those of the runs.
    pub fn calibrate(
        &mut self,
        kinds: &[Kind],
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        for kind in kinds {
            progress.prepare(&format!("the load of the {}", kind.name()));
            let loaded = self.load_of(*kind, seed)?;
            self.loads.push(loaded);
        }
        Ok(())
    }

    fn load_of(&mut self, kind: Kind, seed: u64) -> Result<Loaded, RunError> {
        let wanted = kind.share_ppm();
        let (few, many) = match kind {
            Kind::Modem | Kind::Modems(_) => (20, 70),
            Kind::GLite | Kind::FullRate => (2, 10),
            Kind::Radio => (0, 3),
            Kind::Audio => (10, 60),
        };
        let at_few = self.measure(kind, few, seed)?.share_ppm;
        let at_many = self.measure(kind, many, seed)?.share_ppm;
        let per_step = at_many.saturating_sub(at_few).max(1);
        let step = (many - few) as u64;
        // wanted = at_few + (n - few) · per_step / step
        let more = (wanted.saturating_sub(at_few) * step + per_step / 2) / per_step;
        let fewer = (at_few.saturating_sub(wanted) * step + per_step / 2) / per_step;
        let further = (few as u64 + more).saturating_sub(fewer) as usize;
        self.measure(kind, further.min(MOST_FURTHER), seed)
    }

    /// The device alone in a real-time thread.
    fn measure(&mut self, kind: Kind, further: usize, seed: u64) -> Result<Loaded, RunError> {
        let member = Member {
            kind,
            processor: ProcessorId(0),
            reservation: None,
            further,
        };
        let setup = Setup {
            members: vec![member],
            variant: Variant::of(Way::RealTime, false),
            processors: self.processors,
            seed,
            length: CALIBRATION,
            drifts: false,
            rogues: 0,
            watched: false,
        };
        let outcome = self.run(&format!("load of the {}", kind.name()), &setup)?;
        let seen = &outcome.devices[0];
        let used = seen.service.as_nanos();
        Ok(Loaded {
            kind,
            further,
            share_ppm: used * 1_000_000 / CALIBRATION.as_nanos(),
            call_p99: seen.call_p99,
        })
    }

    /// How often the work of a kind is repeated; several modems on a driver as one.
    #[must_use]
    pub fn further(&self, kind: Kind) -> usize {
        self.load(kind).map_or(0, |loaded| loaded.further)
    }

    fn load(&self, kind: Kind) -> Option<&Loaded> {
        let alike = match kind {
            Kind::Modems(_) => Kind::Modem,
            kind => kind,
        };
        self.loads.iter().find(|loaded| loaded.kind == alike)
    }

    /// What planning needs to know of this machine, for these kinds.
    #[must_use]
    pub fn ground(&self, kinds: &[Kind]) -> Ground {
        let work = |kind: &Kind| {
            let call = self.load(*kind)?.call_p99.as_nanos();
            let most = Service::from_nanos(call * MARGIN_PERCENT / 100);
            Some((*kind, most.max(Service::from_micros(1))))
        };
        Ground {
            work: kinds.iter().filter_map(work).collect(),
            interrupt: INTERRUPT,
            host_ppm: 0,
            costs: PlanCosts {
                per_slot: CHARGE_PER_SLOT.as_full_service(),
                max_share_ppm: MOST_SHARE_PPM,
                other_ppm: 0,
                granularity: SHORTEST_SLOT,
            },
        }
    }

    /// One run.
    ///
    /// # Errors
    ///
    /// Those of the program's making, and the host's; everything is restored.
    pub fn run(&mut self, name: &str, setup: &Setup) -> Result<Outcome, RunError> {
        let watch = Watch::begin();
        let (program, probes) = setup.compose().map_err(|error| failed(name, error))?;
        if let Some(signal) = watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        let record = self
            .host
            .admit_and_run(program, setup.length)
            .map_err(|error| failed(name, error))?;
        Ok(probes.observe(&record))
    }
}
