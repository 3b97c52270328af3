//! The sets of devices that a study declares, each placed on one or more processors, and what was seen of them.

use std::num::NonZeroU16;
use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Made, Request, Round, Runner, Said, Study, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::HostError;
use laxity_model::analysis::devices::with_margin;
use serde::Deserialize;

use super::demand::Ground;
use super::kind::Kind;
use super::load::{self, Loads};
use super::run::{Member, Outcome, Seen, Setup};
use super::serving::{Variant, Way};
use super::{Case, Purpose, Trial, by_kind, counted, length, name_of};

/// With reservations, beside a rogue.
pub const RESERVED: Variant = Variant::of(Way::Reserved, true);
/// In real-time threads, beside a rogue.
pub const OUTRANKED: Variant = Variant::of(Way::RealTime, true);

/// The devices of a system where they are, in its order; or why they are nowhere.
pub type Placing = Result<Vec<Member>, String>;

/// Devices on one or more processors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The figure it belongs to.
    pub figure: String,
    /// How many processors there are.
    #[serde(default = "one")]
    pub processors: NonZeroU16,
    /// What is on them.
    pub devices: Vec<Kind>,
    /// Its number among all systems of the study.
    #[serde(skip)]
    pub number: usize,
    /// Where its devices are.
    #[serde(skip, default = "nowhere")]
    pub placing: Placing,
    /// Devices that are not in it on this machine, because there was no room for them beside the others.
    #[serde(skip)]
    pub left_out: Vec<Kind>,
}

const fn one() -> NonZeroU16 {
    NonZeroU16::MIN
}

const fn nowhere() -> Placing {
    Ok(Vec::new())
}

/// A study that declares systems in its data file, under `systems`.
pub struct Systems {
    /// Its words.
    pub text: &'static LazyLock<Text>,
    /// How many processors of this machine it needs.
    pub processors: u16,
    /// Whether callbacks watch the processors.
    pub watched: bool,
    /// Whether a system is one for this machine (`true`), or for the twin.
    pub is_for: fn(&System, bool) -> bool,
    /// Where the devices of a system are; [`RunError`] if the analysis cannot tell.
    pub place: fn(&System, &Ground) -> Result<Placing, RunError>,
    /// Whether on this machine a system is as large as there is room for.
    pub is_sized: bool,
    /// In which ways a system is served, on this machine or in the twin.
    pub variants: fn(&System, bool) -> &'static [Variant],
    /// What is shown and claimed, as [`Study::judge`].
    pub judge: fn(&Self, &Made<'_, Self>, &mut Draft<'_>) -> Result<(), RunError>,
}

impl Study for Systems {
    type Case = Case;
    type Seen = Outcome;

    fn text(&self) -> &'static Text {
        self.text
    }

    fn rounds(&self, live: bool) -> usize {
        if live { load::ROUNDS + 1 } else { 1 }
    }

    fn processors(&self) -> u16 {
        self.processors
    }

    /// Live, the loads come first.
    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        let loads = Loads::of(&made.live);
        let systems = self.systems(request, round.live.then_some(&loads))?;
        if round.live && round.number < load::ROUNDS {
            let kinds = systems.iter().flat_map(|system| &system.devices);
            let (processors, seed) = (self.processors, request.seed);
            return load::cases(kinds, &made.live, processors, seed);
        }
        let cases = systems.iter().flat_map(|system| {
            let variants = (self.variants)(system, round.live).iter();
            variants
                .filter_map(|variant| system.served(*variant, request, round.live, self.watched))
        });
        Ok(cases.collect())
    }

    fn name(&self, case: &Case) -> String {
        let setup = &case.setup;
        let kinds: Vec<Kind> = setup.members.iter().map(|member| member.kind).collect();
        match case.purpose {
            Purpose::Load(kind) => format!("load of the {}", kind.name()),
            Purpose::Calls(kind) => format!("calls of the {}", kind.name()),
            Purpose::System(_) => {
                format!("{}: {}", on(&kinds, setup.processors), setup.variant.name())
            }
        }
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        match case.purpose {
            Purpose::Load(_) | Purpose::Calls(_) => case.setup.run_beside_nobody(host),
            Purpose::System(_) => case.setup.run(host),
        }
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        draft.circumstance("length of a run", length(made.request).to_string());
        (self.judge)(self, made, draft)
    }
}

impl Systems {
    /// The systems that are asked for, placed: in the twin, or with these loads on this machine.
    ///
    /// # Errors
    ///
    /// Those of placing.
    pub fn systems(
        &self,
        request: &Request,
        loads: Option<&Loads>,
    ) -> Result<Vec<System>, RunError> {
        let mut systems: Vec<System> = self.text.quoted("systems");
        let numbered = systems.iter_mut().enumerate();
        numbered.for_each(|(number, system)| system.number = number);
        let is_for = |system: &System| (self.is_for)(system, loads.is_some());
        systems.retain(|system| request.wants(&system.figure) && is_for(system));
        for system in &mut systems {
            let ground = loads.map_or_else(Ground::twin, |loads| loads.ground(&system.devices));
            system.placing = (self.place)(system, &ground)?;
            if loads.is_some() && self.is_sized && system.placing.is_err() {
                self.size(system, &ground)?;
            }
            for member in system.placing.iter_mut().flatten() {
                member.further = loads.map_or(0, |loads| loads.further(member.kind));
            }
        }
        Ok(systems)
    }

    /// What the live runs of systems that were served so say of themselves.
    pub fn said(made: &Made<'_, Self>, variant: Variant) -> Said {
        made.said(|case| {
            matches!(case.purpose, Purpose::System(_)) && case.setup.variant == variant
        })
    }

    /// Leaves out of a system what finds no room beside those before it.
    fn size(&self, system: &mut System, ground: &Ground) -> Result<(), RunError> {
        for kind in std::mem::take(&mut system.devices) {
            system.devices.push(kind);
            system.placing = (self.place)(system, ground)?;
            if system.placing.is_err() {
                system.devices.pop();
                system.left_out.push(kind);
            }
        }
        system.placing = (self.place)(system, ground)?;
        Ok(())
    }
}

/// Devices on so many processors, in words.
fn on(kinds: &[Kind], processors: u16) -> String {
    let set = name_of(kinds);
    match processors {
        1 => set,
        several => format!("{set} on {several} processors"),
    }
}

impl System {
    /// In words.
    pub fn name(&self) -> String {
        on(&self.devices, self.processors.get())
    }

    /// Its devices where they are; none if there is no room.
    pub fn placed(&self) -> &[Member] {
        self.placing.as_deref().unwrap_or_default()
    }

    /// Its run in one way, if its devices are somewhere. Live cards go by the host's clock, and the rogue is on the first processor only: on
    /// the second it would keep the far ends from delivering.
    fn served(
        &self,
        variant: Variant,
        request: &Request,
        live: bool,
        watched: bool,
    ) -> Option<Case> {
        let processors = self.processors.get();
        if self.devices.is_empty() {
            return None;
        }
        let setup = Setup {
            members: self.placing.clone().ok()?,
            variant,
            processors,
            seed: request.seed,
            length: length(request),
            drifts: !live,
            pace: 1,
            rogues: if live { 1 } else { processors },
            watched,
        };
        Some(Case {
            purpose: Purpose::System(self.number),
            setup,
        })
    }

    /// What was seen of it, by variant.
    pub fn outcomes<'a>(&self, trials: &'a [Trial]) -> impl Iterator<Item = &'a Trial> {
        let purpose = Purpose::System(self.number);
        trials
            .iter()
            .filter(move |(case, _)| case.purpose == purpose)
    }

    /// What was seen of it, served so.
    pub fn outcome<'a>(&self, trials: &'a [Trial], variant: Variant) -> Option<&'a Outcome> {
        let mut outcomes = self.outcomes(trials);
        let found = outcomes.find(|(case, _)| case.setup.variant == variant);
        found.map(|(_, outcome)| outcome)
    }

    /// What was seen of its devices, served so, each with its name.
    pub fn seen<'a>(&self, trials: &'a [Trial], variant: Variant) -> Vec<(String, &'a Seen)> {
        let outcome = self.outcome(trials, variant).into_iter();
        let set = self.name();
        let named = outcome.flat_map(|outcome| &outcome.devices).map(|seen| {
            let name = format!("{} on {} of ({set})", seen.kind.name(), seen.processor);
            (name, seen)
        });
        named.collect()
    }

    /// Adds what was seen of it: a row for each variant and kind of device.
    pub fn show(&self, draft: &mut Draft<'_>, figure: &str, trials: &[Trial], origin: Origin) {
        let rows = self.outcomes(trials).flat_map(|(case, outcome)| {
            let kinds = by_kind(&outcome.devices, |seen| seen.kind).into_iter();
            kinds.map(move |devices| row(case.setup.variant, &devices, origin))
        });
        draft.table(figure, "seen", &[("system", &self.name())], rows);
    }
}

/// What was seen of the devices of one kind together.
fn row(variant: Variant, devices: &[&Seen], origin: Origin) -> Row {
    let kind = devices[0].kind;
    let sum = |of: fn(&Seen) -> u64| devices.iter().map(|seen| of(seen)).sum::<u64>();
    let longest = devices
        .iter()
        .filter_map(|seen| seen.longest_response)
        .max();
    let unit = if kind.is_modem() { "octets" } else { "frames" };
    let delivered = format!("{} {unit}", sum(|seen| seen.counts.delivered));
    let mut row = origin.row([
        variant.name().into(),
        counted(devices.len(), kind).into(),
        sum(|seen| seen.calls).into(),
    ]);
    row.push(longest.and_then(|longest| origin.cell(longest)));
    row.extend(origin.row([
        sum(|seen| seen.counts.samples_lost).into(),
        sum(|seen| seen.counts.samples_underrun).into(),
        delivered.into(),
        sum(|seen| seen.counts.frames_lost).into(),
        sum(|seen| seen.counts.retrained).into(),
    ]));
    row
}

/// Adds how devices are loaded on this machine.
pub fn show_loads(draft: &mut Draft<'_>, figure: &str, loads: &Loads) {
    let rows = loads.0.iter().map(|(kind, load)| {
        let mut row = Origin::Measured.row([kind.name().into()]);
        row.push(Origin::Calibrated.cell(load.further + 1));
        row.extend(Origin::Measured.row([
            Value::share(load.share_ppm),
            load.calls.into(),
            load.longest.as_dedicated_span().into(),
        ]));
        let planned = with_margin(load.longest).as_dedicated_span();
        row.push(Origin::Predicted.cell(planned));
        row
    });
    draft.table(figure, "loads", &[], rows);
}
