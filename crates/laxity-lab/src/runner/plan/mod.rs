//! What would become of a whole scenario before anything runs: per variant, which enforcer can meet what and why, how long everything takes at
//! most, and how long it took in the twin.
//!
//! [`plan`] is admission, which [`run`](super::run) asks too; [`Plan::bounded`] adds the bounds, [`Plan::observed`] what the twin shows.
//!
//! * `machine`: what a profile costs; `modes`: what a modem asks for in each phase; `sources`: everything that takes a processor's time.
//! * `device`: whether a reserved modem gets what its rings need.
//! * `subjects`: whose response times are asked for; `bounds`: those; `observe`: the same, as seen.

mod bounds;
mod device;
mod machine;
mod modes;
mod observe;
mod render;
mod sources;
mod subjects;

pub use device::{DeviceMargins, DeviceNumbers, DevicePlan, Proposal};
pub use render::render;

use laxity_linux::LiveConfig;
use laxity_linux::doctor::Machine;
use laxity_linux::supply;
use laxity_model::admission::{Admission, Demand, Supply, Work, admit};
use laxity_model::analysis::Overflow;
use laxity_model::{Enforcer, HostError, Service, Span};
use laxity_sim::Twin;
use serde::Serialize;

use super::compose::{Composed, RunSpec, compose};
use super::{On, Progress, RunError, twin};
use crate::observe::Probes;
use crate::plan::FILE_VERSION;
use crate::scenario::{Resolved, ResolvedVariant, Start};

/// The interval between two calls of a connected modem's driver, on average (Jones, Saroiu §6.2.1).
const MODEM_PERIOD: Span = Span::from_micros(12_500);

/// The card's shortest interval between two interrupts off hook, and what its handler, and the deferred call behind it, take at most
/// (§6.2.4: 16 µs).
const INTERRUPT_PERIOD: Span = Span::from_micros(11_250);
const HANDLER: Service = Service::from_micros(16);

/// What waking a periodic thread takes besides its work.
const WAKE_UP: Service = Service::from_micros(10);

/// What would become of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    /// The version of this format.
    pub file_version: u32,
    /// The scenario's title.
    pub scenario: String,
    /// What it was planned for.
    pub host: String,
    /// By variant.
    pub variants: Vec<VariantPlan>,
}

/// What would become of one variant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct VariantPlan {
    /// Its name.
    pub name: String,
    /// Whether everything it reserves would be granted.
    pub admitted: bool,
    /// Why not: the resource, the amount missing, and what would fit.
    pub refusals: Vec<String>,
    /// Every reservation that is asked for.
    pub requests: Vec<RequestPlan>,
    /// Everything that recurs, and how long it takes; see [`Plan::bounded`].
    pub activities: Vec<ActivityPlan>,
    /// The activity that is closest to its deadline or furthest behind it, and who takes most of its time.
    pub bottleneck: Option<String>,
    /// Whether the only modem's reservation serves it, if it has one; see [`Plan::bounded`].
    pub device: Option<DevicePlan>,
}

/// How long an activity takes, each time it is asked to work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ActivityPlan {
    /// Its name.
    pub activity: String,
    /// On which of the program's processors.
    pub processor: u16,
    /// The phase of the call for which this holds; none where it holds in all.
    pub phase: Option<String>,
    /// What a job takes at most, in nanoseconds.
    pub cost_ns: Option<u64>,
    /// Jobs arrive at least so far apart, in nanoseconds.
    pub period_ns: Option<u64>,
    /// A job is due so long after it arrived, in nanoseconds; none where nobody says.
    pub deadline_ns: Option<u64>,
    /// From arrival (an interrupt that is raised, an instant that was asked for) to completion at most, in nanoseconds.
    pub bound_ns: Option<u64>,
    /// Why there is no bound.
    pub no_bound: Option<String>,
    /// The deadline less the bound, in nanoseconds; below zero if it can be missed.
    pub slack_ns: Option<i64>,
    /// The longest seen in the twin, in nanoseconds.
    pub observed_max_ns: Option<u64>,
    /// So many jobs were seen complete.
    pub observed_jobs: u64,
}

/// What would become of one reservation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RequestPlan {
    /// Who asks.
    pub activity: String,
    /// On which of the program's processors.
    pub processor: u16,
    /// X, in nanoseconds.
    pub service_ns: u64,
    /// Y, in nanoseconds.
    pub period_ns: u64,
    /// Of whom.
    pub enforcer: String,
    /// What each enforcer would make of it, the one that is asked first.
    pub offers: Vec<Offer>,
}

/// What an enforcer would make of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Offer {
    /// Who.
    pub enforcer: String,
    /// Whether it could be met.
    pub possible: bool,
    /// How literally X is kept, or why it is not possible.
    pub how: String,
    /// `enforced` or `unenforced`; none where it is not possible.
    pub grade: Option<String>,
    /// The longest time without service that is promised to a holder that never blocks, in nanoseconds.
    pub promised_gap_ns: Option<u64>,
    /// The longest to expect on this machine, in nanoseconds.
    pub longest_gap_ns: Option<u64>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether every variant would be admitted.
    #[must_use]
    pub fn admitted(&self) -> bool {
        self.variants.iter().all(|variant| variant.admitted)
    }

    /// The same plan with a bound for everything that recurs, or why there is none: in the twin, where all costs are known, and while a
    /// call lasts; and whether a reserved modem gets what its rings need.
    ///
    /// # Errors
    ///
    /// [`RunError::Failed`] if a number is too large to be reckoned with.
    pub fn bounded(mut self, resolved: &Resolved, on: On) -> Result<Self, RunError> {
        let (_, supply) = supply_of(resolved, on)?;
        for plan in &mut self.variants {
            let Some(variant) = resolved.variants.iter().find(|v| v.name == plan.name) else {
                continue;
            };
            let outline = outline(resolved, variant)?;
            let admission = admit(&outline.demand, &supply);
            let bounded = bounds::of(resolved, variant, &outline, &admission, on);
            let too_large = |error: Overflow| RunError::Failed {
                variant: variant.name.clone(),
                reason: error.to_string(),
            };
            let (activities, bottleneck) = bounded.map_err(too_large)?;
            plan.device = device::of(&outline, &admission, &supply).map_err(too_large)?;
            plan.activities = activities;
            plan.bottleneck = bottleneck;
        }
        Ok(self)
    }

    /// The same plan with what the twin shows of everything that has a line in it: each variant is run once. Only for plans of the twin.
    ///
    /// # Errors
    ///
    /// As [`run`](super::run).
    pub fn observed(
        mut self,
        resolved: &Resolved,
        progress: &mut dyn Progress,
    ) -> Result<Self, RunError> {
        observe::observe(&mut self, resolved, progress)?;
        Ok(self)
    }
}

/// Plans all variants that run on this host.
///
/// # Errors
///
/// [`RunError::CannotRun`] if the machine has fewer processors than the scenario needs; [`RunError::Nothing`] if no variant runs there.
pub fn plan(resolved: &Resolved, on: On) -> Result<Plan, RunError> {
    let (host, supply) = supply_of(resolved, on)?;
    let here = |variant: &&ResolvedVariant| match on {
        On::Linux => variant.live,
        On::Twin { .. } => variant.twin,
    };
    let mut variants = Vec::new();
    for variant in resolved.variants.iter().filter(here) {
        let outline = outline(resolved, variant)?;
        variants.push(variant_plan(variant, &admit(&outline.demand, &supply)));
    }
    if variants.is_empty() {
        return Err(RunError::Nothing(if on == On::Linux {
            "Linux"
        } else {
            "the twin"
        }));
    }
    Ok(Plan {
        file_version: FILE_VERSION,
        scenario: resolved.title.clone(),
        host,
        variants,
    })
}

fn supply_of(resolved: &Resolved, on: On) -> Result<(String, Supply), RunError> {
    let processors = resolved.host.processors;
    match on {
        On::Twin { .. } => {
            let twin = Twin::new(twin::profile(resolved.host.profile));
            Ok((
                format!("twin {}", resolved.host.profile.name()),
                twin.supply(processors),
            ))
        }
        On::Linux => {
            let cannot = |error: HostError| RunError::CannotRun(error.to_string());
            let config = LiveConfig::detect(processors).map_err(cannot)?;
            let machine = Machine::probe();
            let host = format!("linux {}", machine.kernel.release);
            Ok((host, supply(&config, &machine)))
        }
    }
}

/// A variant's program without its bodies.
struct Outline {
    demand: Demand,
    probes: Probes,
}

/// What one variant asks for, with what is known of its work.
fn outline(resolved: &Resolved, variant: &ResolvedVariant) -> Result<Outline, RunError> {
    let spec = RunSpec {
        seed: resolved.seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers: 0,
        start: Start::OnHook,
        gaps_only: false,
    };
    let Composed { program, probes } =
        compose(variant, resolved.host.processors, &resolved.run, spec)
            .map_err(|error| RunError::of(error, variant))?;
    let mut demand = Demand::of(&program);
    for (modem, device) in probes.modems().zip(&variant.devices) {
        let modem = &modem.installed;
        let share = u64::from(device.load.share.ppm);
        let service =
            Span::from_nanos(MODEM_PERIOD.as_nanos() * share / 1_000_000).as_full_service();
        let handler = Work {
            service: HANDLER,
            period: INTERRUPT_PERIOD,
        };
        demand = demand.with_work(modem.interrupt, handler);
        if let Some(deferred) = modem.deferred {
            demand = demand.with_work(deferred, handler);
        }
        // Last: under INT and DPC the driver is one of the two.
        demand = demand.with_work(
            modem.driver,
            Work {
                service,
                period: MODEM_PERIOD,
            },
        );
    }
    for task in probes.periodic() {
        let work = Work {
            service: task.service + WAKE_UP,
            period: task.period,
        };
        demand = demand.with_work(task.activity, work);
    }
    Ok(Outline { demand, probes })
}

fn variant_plan(variant: &ResolvedVariant, admission: &Admission) -> VariantPlan {
    let requests = admission.requests.iter().map(|request| {
        let asked = request.request.enforcer;
        let other = match asked {
            Enforcer::Deadline => Enforcer::Slots,
            Enforcer::Slots => Enforcer::Deadline,
        };
        let offer = |enforcer: Enforcer| match request.by(enforcer) {
            Ok(prediction) => Offer {
                enforcer: enforcer.to_string(),
                possible: true,
                how: format!(
                    "{} {}",
                    request.request.reservation.service(),
                    prediction.keeps
                ),
                grade: Some(prediction.grade.to_string()),
                promised_gap_ns: Some(prediction.promised_gap.as_nanos()),
                longest_gap_ns: Some(prediction.longest_gap.as_nanos()),
                notes: prediction.notes.clone(),
            },
            Err(denial) => Offer {
                enforcer: enforcer.to_string(),
                possible: false,
                how: denial.why.to_string(),
                grade: None,
                promised_gap_ns: None,
                longest_gap_ns: None,
                notes: Vec::new(),
            },
        };
        RequestPlan {
            activity: request.name.clone(),
            processor: request.processor.0,
            service_ns: request.request.reservation.service().as_nanos(),
            period_ns: request.request.reservation.period().as_nanos(),
            enforcer: asked.to_string(),
            offers: [asked, other].map(offer).into(),
        }
    });
    VariantPlan {
        name: variant.name.clone(),
        admitted: admission.granted(),
        refusals: admission.explain(),
        requests: requests.collect(),
        activities: Vec::new(),
        bottleneck: None,
        device: None,
    }
}
