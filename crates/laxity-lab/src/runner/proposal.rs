//! What laxity proposes where a scenario leaves a reservation open: by the calls of the device, measured where it will run.
//!
//! A device's calls are measured by themselves ([`alone`](super::alone)); the analysis of devices then finds the least reservation for the longest of them and a
//! margin, by the supply of the enforcer that is asked. All that a variant leaves open is found together. Before anything is measured, the load that is declared stands for them, so that a scenario can be
//! admitted in outline.

mod why;

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::admission::Supply;
use laxity_model::analysis::devices::{MARGIN_PPM, with_margin};
use laxity_model::enforce::slots::{MOST_SHARE_PPM, SUPPLY};
use laxity_model::verify::contract::Phase;
use laxity_model::{Enforcer, ProcessorId, Reservation, Service, Span};

use super::RunError;
use super::left::{Granted, Left};
use super::served::{Needs, Place};
use super::together::{Choice, Outcome, find};
use crate::layout::percent;
use crate::report::value::count;
use crate::scenario::units::{format_open, format_reservation};
use crate::scenario::{Chosen, Proposal, Resolved, ResolvedDevice, ResolvedVariant, TwinProfile};

/// What is proposed has X in multiples of this, the shortest slot of all hosts (50 µs).
pub const GRAIN: Span = SUPPLY.shortest_slot;
/// Y is no shorter.
pub(crate) const SHORTEST_PERIOD: Span = SUPPLY.shortest_period();
/// And where it is open a whole number of milliseconds up to this.
pub(crate) const LONGEST_PERIOD: Span = Span::from_millis(32);

/// All that may be proposed as Y.
pub(crate) fn periods() -> Vec<Span> {
    let whole = Span::from_millis(1);
    (1..=LONGEST_PERIOD / whole)
        .map(|times| whole * times)
        .collect()
}

/// Why nothing is proposed at a period.
pub(crate) fn too_short(period: Span) -> String {
    let least = SHORTEST_PERIOD;
    format!(
        "{} is too short a period to propose, as slots of it would be mostly edges; from {} on it makes sense",
        period.beside(least),
        least.beside(period)
    )
}

/// Whether it makes sense to ask for a reservation: what a table of nothing but slots as short as this keeps, or all that a processor may give, does
/// not.
pub(crate) fn is_sensible(asked: Reservation) -> bool {
    asked.period() >= SHORTEST_PERIOD && asked.share_ppm() <= u64::from(MOST_SHARE_PPM)
}

impl ResolvedDevice {
    /// Whether laxity is to propose what it reserves.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.chosen, Chosen::Open(_))
    }
}

/// The calls that were measured of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calls {
    /// How many, undisturbed.
    pub count: u64,
    /// The service of the longest.
    pub longest: Service,
    /// That of the longest before it was connected, of a device that makes a call; `None` of others, and where nothing was measured of it.
    pub connecting: Option<Service>,
}

impl Proposal {
    /// The least that would have served calls of which the longest took so much, and so much before it was connected, of what is left.
    pub(crate) fn least(
        &self,
        of: (&ResolvedVariant, &ResolvedDevice),
        enforcer: Enforcer,
        calls: (Service, Option<Service>),
        granted: impl Fn(Reservation) -> Granted,
    ) -> Option<Reservation> {
        let place = self.place(of);
        let needs = self.needs(of, &place, calls)?;
        // What is too large to be reckoned with is not proposed.
        let found = needs.propose(self.open, enforcer, &place, granted);
        found.ok().flatten()
    }

    /// Where a device of a variant runs.
    fn place(&self, (variant, device): (&ResolvedVariant, &ResolvedDevice)) -> Place {
        Place::of(variant, device, (self.twin, self.tick))
    }

    /// What a device needs whose longest call takes so much, and so much before it is connected; `None` if that is too large to be reckoned with.
    fn needs(
        &self,
        (_, device): (&ResolvedVariant, &ResolvedDevice),
        place: &Place,
        (longest, connecting): (Service, Option<Service>),
    ) -> Option<Needs> {
        let needs = Needs::new(device, longest.max(Service::from_nanos(1)), place)?;
        Some(match connecting {
            Some(longest) => needs.connecting(device, place, longest),
            None => needs,
        })
    }

    /// What is planned for: more than was measured.
    fn with_margin(&self) -> (Service, Option<Service>) {
        (with_margin(self.longest), self.connecting.map(with_margin))
    }

    /// The longest call that was planned for in a phase: with the margin, up to which a proposal is to serve what then comes.
    pub(super) fn planned(&self, phase: &Phase) -> Service {
        let (at_work, connecting) = self.with_margin();
        let is_at_work = [Phase::CONNECTED, Phase::RUN].contains(phase);
        connecting.filter(|_| !is_at_work).unwrap_or(at_work)
    }

    /// Why that is proposed, in words.
    pub(crate) fn why(&self) -> String {
        let (open, longest) = (format_open(self.open), self.longest);
        let margin = percent(MARGIN_PPM);
        let of = match self.calls {
            0 => format!(
                "the {longest} that a call of the declared load takes (at the run, 1,000 calls are measured)"
            ),
            calls => format!(
                "the longest of {} undisturbed calls, {longest}",
                count(calls)
            ),
        };
        let before = self.connecting.map_or_else(String::new, |longest| {
            format!(", one of {longest} before it is connected")
        });
        let beside = if self.has_others {
            ", beside what is proposed to the others"
        } else {
            ""
        };
        format!("the least of {open} that serves {of}{before}, and {margin} % more{beside}")
    }
}

/// The grain at which a kernel notices that a budget is used up; zero where it has no budgets.
pub(super) fn tick(supply: &Supply) -> Span {
    let kernel = supply.deadline.as_ref();
    kernel.map_or(Span::ZERO, |kernel| kernel.tick)
}

/// A scenario with everything proposed that it leaves open, where there is anything to propose.
#[derive(Clone, Debug)]
pub struct Settled {
    /// What was proposed is in it.
    pub resolved: Resolved,
    /// The variants for which nothing can be proposed, by their numbers, and why not. In these something is still open.
    pub open: BTreeMap<usize, String>,
}

impl Settled {
    /// The scenario, if nothing in it is open any more.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] for the first variant for which nothing can be proposed.
    pub fn whole(self) -> Result<Resolved, RunError> {
        match self.open.into_iter().next() {
            None => Ok(self.resolved),
            Some((variant, reason)) => Err(RunError::Refused {
                variant: self.resolved.variants[variant].name.clone(),
                reason,
            }),
        }
    }
}

/// Proposes everything that a scenario leaves open, for one host: by the calls of each device, or by its declared load where `calls` knows none. A
/// variant stays open whose calls no such reservations serve that would be granted beside all else. The order in which devices are declared decides nothing.
///
/// # Errors
///
/// What makes a variant's program one that cannot be run.
pub fn settled(
    resolved: &Resolved,
    supply: &Supply,
    live: bool,
    calls: impl Fn(&ResolvedDevice) -> Option<Calls>,
) -> Result<Settled, RunError> {
    let on = (tick(supply), (!live).then_some(resolved.host.profile));
    let (mut settled, mut without) = (resolved.clone(), BTreeMap::new());
    for number in 0..settled.variants.len() {
        let variant = &settled.variants[number];
        let devices = variant.devices.iter().enumerate();
        let open = devices.filter(|(_, device)| device.is_open() && variant.runs(live));
        let mut open: Vec<(usize, &ResolvedDevice)> = open.collect();
        if open.is_empty() {
            continue;
        }
        open.sort_by_key(|(_, device)| device.name.as_str());
        let has_others = open.len() > 1;
        let left = Left::of(&settled, number, on.1, supply)?;
        let open = open.into_iter().filter_map(|(place, device)| {
            let proposal = proposal(device, calls(device), on, has_others)?;
            OpenDevice::new(variant, place, proposal)
        });
        let open: Vec<OpenDevice> = open.collect();
        match settle(variant, &open, &left) {
            Ok(found) => {
                let devices = &mut settled.variants[number].devices;
                for (one, found) in open.iter().zip(found) {
                    devices[one.place].chosen = Chosen::Proposed(one.proposal);
                    devices[one.place].reserve(found);
                }
            }
            Err(why) => {
                without.insert(number, why);
            }
        }
    }
    Ok(Settled {
        resolved: settled,
        open: without,
    })
}

/// What is to be proposed to a device of which something is open, by its calls or its declared load.
fn proposal(
    device: &ResolvedDevice,
    measured: Option<Calls>,
    (tick, twin): (Span, Option<TwinProfile>),
    has_others: bool,
) -> Option<Proposal> {
    let Chosen::Open(open) = device.chosen else {
        return None;
    };
    Some(Proposal {
        open,
        calls: measured.map_or(0, |calls| calls.count),
        longest: measured.map_or_else(
            || match twin {
                Some(_) => device.work(twin),
                None => device.load.work(device.device.period()),
            },
            |calls| calls.longest,
        ),
        connecting: measured.and_then(|calls| calls.connecting),
        has_others,
        tick,
        twin,
    })
}

/// A device of a variant of which something is open.
struct OpenDevice {
    /// Its number in the variant.
    place: usize,
    name: String,
    processor: ProcessorId,
    enforcer: Enforcer,
    proposal: Proposal,
    /// What it needs, unless that is too large to be reckoned with; then nothing is proposed.
    needs: Option<Needs>,
    choice: Choice,
}

impl OpenDevice {
    /// `None` of one that reserves nothing.
    fn new(variant: &ResolvedVariant, place: usize, proposal: Proposal) -> Option<Self> {
        let device = &variant.devices[place];
        let enforcer = device.placing.request()?.enforcer;
        let of = (variant, device);
        let own = proposal.place(of);
        let needs = proposal.needs(of, &own, proposal.with_margin());
        let alone = needs.as_ref().and_then(|needs| {
            let alone = needs.alone(proposal.open, enforcer, &own);
            alone.ok()
        });
        Some(Self {
            place,
            name: device.name.clone(),
            processor: device.processor,
            enforcer,
            proposal,
            needs,
            choice: alone.unwrap_or_else(|| Choice::new(proposal.open, Vec::new())),
        })
    }
}

/// What is proposed to each of these devices, all together; or why nothing is, of those of one processor alone where it is so of them without the others.
fn settle(
    variant: &ResolvedVariant,
    open: &[OpenDevice],
    left: &Left,
) -> Result<Vec<Reservation>, String> {
    if let Some(why) = open.iter().find_map(|one| one.why_never(variant)) {
        return Err(why);
    }
    let all: Vec<&OpenDevice> = open.iter().collect();
    settle_together(variant, &all, left).map_err(|why| {
        // What the kernel reserves is taken from slots on every processor.
        let by_slots = all.iter().all(|one| one.enforcer == Enforcer::Slots);
        let processors: BTreeSet<_> = all.iter().map(|one| one.processor).collect();
        let several = processors.len() > 1 && by_slots;
        let mut alone = processors.iter().filter(|_| several).filter_map(|on| {
            let there = all.iter().copied().filter(|one| one.processor == *on);
            settle_together(variant, &there.collect::<Vec<_>>(), left).err()
        });
        alone.next().unwrap_or(why)
    })
}

fn settle_together(
    variant: &ResolvedVariant,
    open: &[&OpenDevice],
    left: &Left,
) -> Result<Vec<Reservation>, String> {
    let mut with = variant.clone();
    let (places, choices): (Vec<usize>, Vec<&Choice>) =
        open.iter().map(|one| (one.place, &one.choice)).unzip();
    let by_number = |asked: &[Reservation]| -> Vec<_> {
        places.iter().copied().zip(asked.iter().copied()).collect()
    };
    let mut judge = |asked: &[Reservation]| {
        let Some(granted) = left.grants_all(&by_number(asked)) else {
            return Outcome::Refused;
        };
        // What the kernel reserves for one is taken from the slots of another.
        for (one, asked) in open.iter().zip(asked) {
            let device = &mut with.devices[one.place];
            device.chosen = Chosen::Proposed(one.proposal);
            device.reserve(*asked);
        }
        let each = open.iter().zip(asked).zip(&granted).enumerate();
        let unserved = each.filter(|(_, ((one, asked), granted))| {
            let place = one.proposal.place((&with, &with.devices[one.place]));
            let asked = (one.enforcer, **asked);
            let needs = one.needs.as_ref();
            let is_served = needs.and_then(|needs| needs.is_served_as(granted, asked, &place));
            is_served != Some(true)
        });
        let unserved: Vec<usize> = unserved.map(|(number, _)| number).collect();
        match unserved.is_empty() {
            true => Outcome::Served,
            false => Outcome::Unserved(unserved),
        }
    };
    find(&choices, &mut judge).map_err(|nothing| {
        let begin: Option<Vec<_>> = choices.iter().map(|choice| choice.first()).collect();
        let short = begin.and_then(|begin| match judge(&begin) {
            Outcome::Refused => left.too_much(&by_number(&begin)),
            Outcome::Unserved(who) => Some(why::unserved(open, &who)),
            Outcome::Served => None,
        });
        why::nothing(open, &nothing, short) + &why::who_fits(variant, open, left)
    })
}

/// The devices whose calls a proposal needs on this host, each once.
pub(crate) fn to_measure(resolved: &Resolved, live: bool) -> Vec<&ResolvedDevice> {
    let variants = resolved.variants.iter().filter(|one| one.runs(live));
    let devices = variants.flat_map(|variant| &variant.devices);
    let mut found: Vec<&ResolvedDevice> = Vec::new();
    for device in devices.filter(|device| device.is_open()) {
        if found.iter().all(|known| known.name != device.name) {
            found.push(device);
        }
    }
    found
}

/// What is said of what was proposed in a variant: a sentence for each device.
pub(crate) fn said(variant: &ResolvedVariant) -> Vec<String> {
    let proposed = variant.devices.iter().filter_map(|device| {
        let (Chosen::Proposed(proposal), Some(request)) = (device.chosen, device.placing.request())
        else {
            return None;
        };
        let reservation = format_reservation(request.reservation);
        Some(format!(
            "`{}` is proposed {reservation}: {}; served: complete before its card's ring is full or dry",
            device.name,
            proposal.why()
        ))
    });
    proposed.collect()
}

#[cfg(test)]
mod tests {
    use laxity_model::analysis::devices::Open;

    use super::*;
    use crate::scenario::Length;

    fn proposal(open: Open, calls: u64, longest_us: u64) -> Proposal {
        Proposal {
            open,
            calls,
            longest: Service::from_micros(longest_us),
            connecting: None,
            has_others: false,
            tick: Span::from_millis(4),
            twin: None,
        }
    }

    fn variant() -> ResolvedVariant {
        let text = include_str!("../../../../scenarios/soft-modem.toml");
        let scenario = crate::scenario::parse(text, "soft-modem.toml").expect("a scenario");
        let resolved = scenario.resolve(Length::Quick);
        let mut variants = resolved.variants.into_iter();
        variants
            .find(|variant| !variant.devices.is_empty())
            .expect("one with a modem")
    }

    /// The median of a run moved between 1.3 and 2.2 ms, and 99 in 100 calls took up to 2.7 ms.
    #[test]
    fn what_is_proposed_serves_a_machine_whose_speed_moves() {
        let (every_8, variant) = (Open::Service(Span::from_millis(8)), variant());
        let modem = &variant.devices[0];
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            let proposed = proposal(every_8, 1_000, 2_200);
            let of = (&variant, modem);
            let margin = proposed.with_margin();
            let reservation = proposed
                .least(of, enforcer, margin, |_| Granted::Whole)
                .expect("one serves");
            let slow = (Service::from_micros(2_700), None);
            let slow = proposed.least(of, enforcer, slow, |_| Granted::Whole);
            let slow = slow.expect("one serves");
            assert!(slow.service() <= reservation.service(), "{enforcer}");
            let same = proposed
                .least(of, enforcer, (proposed.longest, None), |_| Granted::Whole)
                .expect("one");
            let ratio = reservation.service().as_nanos() * 100 / same.service().as_nanos();
            assert!((100..=130).contains(&ratio), "{ratio} %");
        }
    }

    /// A modem once took 5.4 ms before it was connected, and lost samples by that: nobody had reckoned with it.
    #[test]
    fn what_a_call_takes_before_it_is_connected_counts_where_it_is_made() {
        let (every_8, mut variant) = (Open::Service(Span::from_millis(8)), variant());
        let proposed = |variant: &ResolvedVariant, connecting_us| {
            let proposal = Proposal {
                connecting: Some(Service::from_micros(connecting_us)),
                ..proposal(every_8, 1_000, 1_000)
            };
            let of = (variant, &variant.devices[0]);
            let margin = proposal.with_margin();
            let found = proposal.least(of, Enforcer::Slots, margin, |_| Granted::Whole);
            (found.expect("one serves").service(), proposal.why())
        };
        let (usual, _) = proposed(&variant, 900);
        let (long, why) = proposed(&variant, 5_400);
        assert!(usual < long, "{usual} {long}");
        assert!(why.contains("calls, 1ms, one of 5.400ms before"), "{why}");
        variant.start = crate::scenario::Start::Connected;
        assert_eq!(proposed(&variant, 5_400).0, usual, "it makes none");
    }

    #[test]
    fn a_proposal_says_what_it_rests_on() {
        let every_8 = Open::Service(Span::from_millis(8));
        assert_eq!(
            proposal(every_8, 1_012, 2_061).why(),
            "the least of auto/8ms that serves the longest of 1012 undisturbed calls, 2.061ms, and 25.0 % more"
        );
        let declared = proposal(Open::Both, 0, 1_838).why();
        assert!(
            declared.contains("a call of the declared load"),
            "{declared}"
        );
    }

    #[test]
    fn what_nothing_serves_is_not_proposed() {
        let every_8 = Open::Service(Span::from_millis(8));
        let hopeless = proposal(every_8, 1_000, 12_000);
        let variant = variant();
        let modem = &variant.devices[0];
        let of = (&variant, modem);
        let margin = hopeless.with_margin();
        let found = hopeless.least(of, Enforcer::Slots, margin, |_| Granted::Whole);
        assert_eq!(found, None);
    }
}
