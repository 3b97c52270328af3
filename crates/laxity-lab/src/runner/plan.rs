//! Admission of a whole scenario before anything runs: per variant and processor, which enforcer can meet what, and why.

use std::fmt::Write as _;

use laxity_linux::doctor::Machine;
use laxity_linux::{LiveConfig, supply};
use laxity_model::admission::{Admission, Demand, Supply, Work, admit};
use laxity_model::{Enforcer, HostError, Service, Span};
use laxity_sim::Twin;
use serde::Serialize;

use super::compose::{Composed, RunSpec, compose};
use super::{On, RunError, twin};
use crate::scenario::{Resolved, ResolvedVariant, Start, TaskKind};

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
        let admission =
            admission(resolved, variant, &supply).map_err(|e| RunError::of(e, variant))?;
        variants.push(variant_plan(variant, &admission));
    }
    if variants.is_empty() {
        return Err(RunError::Nothing(if on == On::Linux {
            "Linux"
        } else {
            "the twin"
        }));
    }
    Ok(Plan {
        file_version: 1,
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

/// Asks admission about one variant, with what is known of its work.
fn admission(
    resolved: &Resolved,
    variant: &ResolvedVariant,
    supply: &Supply,
) -> Result<Admission, HostError> {
    let spec = RunSpec {
        seed: resolved.seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers: 0,
        start: Start::OnHook,
        gaps_only: false,
    };
    let Composed { program, probes } =
        compose(variant, resolved.host.processors, &resolved.run, spec)?;
    let mut demand = Demand::of(&program);
    if let (Some(modem), Some(device)) = (&probes.modem, variant.devices.first()) {
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
    let periodic = variant.tasks.iter().find_map(|task| match task.kind {
        TaskKind::Periodic {
            period, service, ..
        } => Some(Work {
            service: service + WAKE_UP,
            period,
        }),
        _ => None,
    });
    if let (Some((cothread, _)), Some(work)) = (probes.cothread, periodic) {
        demand = demand.with_work(cothread, work);
    }
    Ok(admit(&demand, supply))
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
    }
}

/// The plan for people.
#[must_use]
pub fn render(plan: &Plan) -> String {
    let mut text = format!("{} on {}\n", plan.scenario, plan.host);
    for variant in &plan.variants {
        let word = if variant.admitted {
            "admitted"
        } else {
            "REFUSED"
        };
        let nothing = if variant.requests.is_empty() {
            " (reserves nothing)"
        } else {
            ""
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {word}{nothing}", variant.name);
        for refusal in &variant.refusals {
            let _ = writeln!(text, "  {refusal}");
        }
        for request in &variant.requests {
            render_request(request, &mut text);
        }
    }
    text
}

fn render_request(request: &RequestPlan, text: &mut String) {
    let span = |nanos: u64| Span::from_nanos(nanos).to_string();
    let _ = writeln!(
        text,
        "  `{}` asks {} for {}/{} on processor {}",
        request.activity,
        request.enforcer,
        span(request.service_ns),
        span(request.period_ns),
        request.processor
    );
    for offer in &request.offers {
        let gap = match (offer.promised_gap_ns, offer.longest_gap_ns) {
            (Some(promised), Some(longest)) => {
                format!(
                    "; gap {} promised, up to {} to expect here",
                    span(promised),
                    span(longest)
                )
            }
            _ => String::new(),
        };
        let grade = offer.grade.as_deref().unwrap_or("not possible");
        let _ = writeln!(
            text,
            "    {:<9} {grade}: {}{gap}",
            offer.enforcer, offer.how
        );
        for note in &offer.notes {
            let _ = writeln!(text, "              {note}");
        }
    }
}
