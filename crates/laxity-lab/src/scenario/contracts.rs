//! `[contracts.*]`: limits of one's own, as [`laxity_model::verify::contract`] judges them. `pc99` is built in.

use laxity_model::Span;
use laxity_model::verify::contract::{
    Bound, Contract, Kind, Limit, Phase, Phases, Quantity, Severity, Statistic, Subjects, Unit,
    pc99,
};
use toml::de::DeValue;

use super::Declared;
use super::diagnostic::alternatives;
use super::kinds;
use super::reader::{Found, SPAN, Section};
use super::sections::{Names, chosen, named};
use super::types::{ResolvedDevice, ResolvedTask};
use super::units::{self, UnitError};

/// The phases that a soft modem goes through, and the one of programs without.
const PHASES: [Phase; 5] = [
    Phase::ON_HOOK,
    Phase::DIALING,
    Phase::TRAINING,
    Phase::CONNECTED,
    Phase::RUN,
];

const LIMIT_KEYS: &[&str] = &[
    "quantity",
    "statistic",
    "at_most",
    "at_least",
    "phases",
    "severity",
    "holds_if_seen",
];
const LIMIT_EXAMPLE: &str = "[{ quantity = \"wakeup_gap\", at_most = \"1.05 x control\" }]";

/// A declared component and its kind, if that could be read.
type Component<'a> = (&'a str, Option<Kind>);

/// All contracts of a file, `pc99` first.
pub(super) fn contracts(
    root: &Section<'_>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
) -> Names<Contract> {
    let devices = devices.iter();
    let devices = devices.map(|device| (device.name.as_str(), Some(kinds::MODEM)));
    let tasks = tasks.iter().map(|task| {
        let kind = task.value.as_ref().map(|task| task.kind.kind());
        (task.name.as_str(), kind)
    });
    let all: Vec<Component<'_>> = devices.chain(tasks).collect();
    let built_in = pc99();
    let mut names = vec![Declared {
        name: built_in.name.clone(),
        place: 0..0,
        value: Some(built_in),
    }];
    let own = named(root, "contracts", |section, name| {
        if name == "pc99" {
            let cause = "the contract `pc99` is built in";
            let remedy = "give your own contract another name";
            section.findings.error(&section.place, cause, remedy);
            return None;
        }
        contract(section, name, &all)
    });
    names.extend(own.into_iter().filter(|own| own.name != "pc99"));
    names
}

/// Whether some limit needs a control run to be judged.
pub(crate) fn needs_control(contract: &Contract) -> bool {
    contract.limits.iter().any(|limit| is_relative(limit.bound))
}

const fn is_relative(bound: Bound) -> bool {
    matches!(bound, Bound::AtMostTimesControl { .. })
}

/// Whether some limit is about a device, so that a variant without one cannot keep it.
pub(super) fn needs_device(contract: &Contract) -> bool {
    let about_device = |limit: &Limit| {
        let of = |kind: Kind| kind.quantities.contains(&limit.quantity);
        of(kinds::MODEM) && !of(kinds::PERIODIC) && limit.quantity != Quantity::THREAD_PRIORITY
    };
    contract.limits.iter().any(about_device)
}

/// Whether some limit is about the gaps of a periodic task.
pub(super) fn needs_periodic(contract: &Contract) -> bool {
    let gap = |limit: &Limit| limit.quantity == Quantity::WAKEUP_GAP;
    contract.limits.iter().any(gap)
}

/// Whom the contract is about: `subject = "modem"`, `kind = "periodic"`, or every component of which its quantities are observed.
fn subjects(section: &Section<'_>, all: &[Component<'_>]) -> Option<(Subjects, Option<Kind>)> {
    let words = kinds::KINDS.map(|kind| (kind.name, kind));
    let kind = section.choice("kind", &words);
    let Some(text) = section.text("subject", "a name", "modem") else {
        let kind = kind.map(|found| found.value);
        return Some((kind.map_or(Subjects::All, Subjects::Kind), kind));
    };
    if kind.is_some() {
        let cause = format!("{} names a component and a kind", section.path);
        let remedy = "keep `subject` for one component, or `kind` for all of a kind";
        section.findings.error(&text.place, cause, remedy);
    }
    let Some((name, kind)) = all.iter().find(|(name, _)| *name == text.value) else {
        let names = all.iter().map(|(name, _)| *name);
        section.findings.unknown("component", &text, names);
        return None;
    };
    Some((Subjects::Named((*name).to_owned()), *kind))
}

/// Reports limits on what is not observed of the kind that the contract is about.
fn check_observed(section: &Section<'_>, kind: Kind, limits: &[Limit]) {
    let key = ["subject", "kind"].into_iter().find(|key| section.has(key));
    for limit in limits {
        if kind.quantities.contains(&limit.quantity) {
            continue;
        }
        let remedy = if kind.quantities.is_empty() {
            "leave it out: such a component is there for what it does to others".to_owned()
        } else {
            let names = kind.quantities.iter().map(|quantity| quantity.name());
            format!("limit {}", alternatives(names))
        };
        let (quantity, kind) = (limit.quantity.name(), kind.name);
        let cause = format!("`{quantity}` is not observed of a {kind}");
        section.wrong(key.unwrap_or("limits"), cause, remedy);
    }
}

fn contract(section: &Section<'_>, name: &str, all: &[Component<'_>]) -> Option<Contract> {
    section.allow(&["limits", "subject", "kind"]);
    let subjects = subjects(section, all);
    section.require("limits", LIMIT_EXAMPLE);
    let path = format!("a limit of {}", section.path);
    let tables = section.sections("limits", &path, LIMIT_EXAMPLE)?;
    if tables.is_empty() {
        let cause = format!("{} limits nothing", section.path);
        let remedy = format!("write for example: limits = {LIMIT_EXAMPLE}");
        section.wrong("limits", cause, remedy);
    }
    let limits: Vec<Limit> = tables.iter().filter_map(limits).flatten().collect();
    let (subjects, kind) = subjects?;
    if let Some(kind) = kind {
        check_observed(section, kind, &limits);
    }
    Some(Contract {
        name: name.to_owned(),
        subjects,
        limits,
    })
}

/// The limits that one line means: one for each statistic and bound.
fn limits(section: &Section<'_>) -> Option<Vec<Limit>> {
    section.allow(LIMIT_KEYS);
    let quantity = quantity(section, "quantity");
    section.require("quantity", "\"wakeup_gap\"");
    let quantity = quantity?;
    let phases = phases(section);
    let severities = [
        ("required", Severity::Required),
        ("advisory", Severity::Advisory),
    ];
    let severity = section.choice("severity", &severities);
    let seen = self::quantity(section, "holds_if_seen");
    let bounds = [
        bound(section, "at_most", quantity),
        bound(section, "at_least", quantity),
    ];
    if !section.has("at_most") && !section.has("at_least") {
        section.missing("at_most", example(quantity));
    }
    let mut limits = Vec::new();
    for bound in bounds.into_iter().flatten() {
        if !phases_have_control(section, bound.value, &phases) {
            continue;
        }
        for statistic in statistics(section, quantity, bound.value) {
            let mut limit = Limit::new(quantity, statistic, bound.value).during(phases.clone());
            limit.severity = severity.as_ref().map_or(Severity::Required, |s| s.value);
            limits.push(match seen {
                Some(witness) => limit.holds_unseen_with(witness),
                None => limit,
            });
        }
    }
    Some(limits)
}

/// A control runs without the device whose phases these are.
fn phases_have_control(section: &Section<'_>, bound: Bound, phases: &Phases) -> bool {
    if !is_relative(bound) || *phases == Phases::Whole {
        return true;
    }
    let cause = "a control run has no phases to compare with";
    let remedy = "remove `phases`: a bound relative to the control is judged over the whole run";
    section.wrong("phases", cause, remedy);
    false
}

fn quantity(section: &Section<'_>, key: &str) -> Option<Quantity> {
    let all = kinds::quantities().into_iter();
    let words: Vec<_> = all.map(|quantity| (quantity.name(), quantity)).collect();
    section.choice(key, &words).map(|found| found.value)
}

/// The smallest bound that makes sense, for messages.
fn example(quantity: Quantity) -> &'static str {
    match quantity.unit() {
        Unit::Nanoseconds => "\"1.5ms\"",
        Unit::Count => "30",
    }
}

/// `at_most = "100us"`, `at_most = 30`, `at_most = "1.05 x control"`.
fn bound(section: &Section<'_>, key: &str, quantity: Quantity) -> Option<Found<Bound>> {
    let absolute = |value| match key {
        "at_most" => Bound::AtMost(value),
        _ => Bound::AtLeast(value),
    };
    let value = section.value(key)?;
    if let DeValue::String(text) = value.get_ref()
        && text.contains("control")
    {
        let text = section.text(key, "a bound", "1.05 x control")?;
        if key != "at_most" {
            let cause = "only an upper bound can be relative to the control";
            let remedy = "write for example: at_most = \"1.05 x control\"";
            section.findings.error(&text.place, cause, remedy);
            return None;
        }
        return section.parsed(&text, relative);
    }
    let value = match quantity.unit() {
        Unit::Nanoseconds => section.quantity(key, &SPAN)?.map(Span::as_nanos),
        Unit::Count => section.integer(key, &(0..=u32::MAX))?.map(u64::from),
    };
    Some(value.map(absolute))
}

/// `1.05 x control`, `1.05 × control`.
fn relative(text: &str) -> Result<Bound, UnitError> {
    let remedy = "write a factor from 0.01 to 1000, such as \"1.05 x control\"";
    let text = text.trim();
    let wrong = || UnitError::new(format!("`{text}` is no bound"), remedy);
    let factor = text.strip_suffix("control").ok_or_else(wrong)?.trim_end();
    let factor = factor.strip_suffix(['x', '×', '*']).ok_or_else(wrong)?;
    let ratio_ppm = units::factor_ppm(factor)?;
    match u32::try_from(ratio_ppm) {
        Ok(ratio_ppm) if (10_000..=1_000_000_000).contains(&ratio_ppm) => {
            Ok(Bound::AtMostTimesControl { ratio_ppm })
        }
        _ => Err(UnitError::new(
            format!("the factor of `{text}` is out of range"),
            remedy,
        )),
    }
}

/// `statistic = "p99"` or a list of such; by default the extreme that the bound is about, or the sum of things that are counted.
fn statistics(section: &Section<'_>, quantity: Quantity, bound: Bound) -> Vec<Statistic> {
    let key = "statistic";
    let texts = match section.value(key).map(toml::Spanned::get_ref) {
        Some(DeValue::Array(_)) => section.texts(key, "[\"p99\", \"maximum\"]"),
        Some(_) => section
            .text(key, "a statistic", "p99")
            .map(|text| vec![text]),
        None => None,
    };
    if let Some(texts) = texts {
        let parsed = texts
            .iter()
            .filter_map(|text| section.parsed(text, statistic));
        return parsed
            .filter(|found| tells_of_all(section, quantity, bound, found))
            .map(|found| found.value)
            .collect();
    }
    vec![match bound {
        _ if quantity.is_summed() => Statistic::Total,
        Bound::AtLeast(_) => Statistic::Minimum,
        Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => Statistic::Maximum,
    }]
}

/// Reports a limit on the wrong extreme of things that are counted: one job that missed nothing would keep it, however many did.
fn tells_of_all(
    section: &Section<'_>,
    quantity: Quantity,
    bound: Bound,
    statistic: &Found<Statistic>,
) -> bool {
    let is_lower = matches!(bound, Bound::AtLeast(_));
    let (extreme, key) = match statistic.value {
        Statistic::Minimum if !is_lower => ("fewest", "at_most"),
        Statistic::Maximum if is_lower => ("most", "at_least"),
        _ => return true,
    };
    if !quantity.is_summed() {
        return true;
    }
    let name = quantity.name();
    let cause = format!("`{key}` of the {extreme} `{name}` at a time says nothing of all others");
    let remedy = "write statistic = \"total\", or leave it out: the sum is what is limited then";
    section.findings.error(&statistic.place, cause, remedy);
    false
}

fn statistic(text: &str) -> Result<Statistic, UnitError> {
    let percentile = |text: &str| {
        let ppm = units::share(&format!("{} %", text.strip_prefix('p')?))
            .ok()?
            .ppm;
        (ppm > 0 && ppm < 1_000_000).then_some(Statistic::Percentile(ppm))
    };
    match text {
        "minimum" => Ok(Statistic::Minimum),
        "maximum" => Ok(Statistic::Maximum),
        "total" => Ok(Statistic::Total),
        _ => percentile(text).ok_or_else(|| {
            UnitError::new(
                format!("`{}` is no statistic", super::reader::shortened(text)),
                "write `minimum`, `maximum`, `total`, or a percentile such as `p50`, `p99`, `p99.9`",
            )
        }),
    }
}

/// `phases = "whole"`, `"each"`, or a list of names.
fn phases(section: &Section<'_>) -> Phases {
    let key = "phases";
    let Some(DeValue::Array(_)) = section.value(key).map(toml::Spanned::get_ref) else {
        let words = [("whole", 0), ("each", 1)];
        return match section.choice(key, &words).map(|found| found.value) {
            Some(1) => Phases::Each,
            _ => Phases::Whole,
        };
    };
    let texts = section.texts(key, "[\"connected\"]").unwrap_or_default();
    if texts.is_empty() {
        let names = alternatives(PHASES.iter().map(Phase::name));
        let cause = "no phase is named";
        let remedy = format!("name some of {names}, or write: phases = \"whole\"");
        section.wrong(key, cause, remedy);
    }
    let names = PHASES.iter().map(Phase::name);
    let named = chosen(section, ("phase", "remove one"), &texts, names).into_iter();
    Phases::Only(named.map(|(index, _)| PHASES[index].clone()).collect())
}
