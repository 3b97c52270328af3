//! `limits = [{ … }]` of a contract: what is limited of a quantity, and to what.

use laxity_model::Span;
use laxity_model::verify::contract::{
    Bound, Limit, Phase, Phases, Quantity, Severity, Statistic, Unit,
};
use toml::de::DeValue;

use super::diagnostic::alternatives;
use super::keys::{Key, Other, Own, Table, Within, Without, Words};
use super::kinds;
use super::quantities::SPAN;
use super::reader::{Found, Section, string};
use super::sections::{DURATIONS, chosen};
use super::units::{self, UnitError};

/// The phases that a soft modem goes through, and the one of programs without.
const PHASES: [Phase; 5] = [
    Phase::ON_HOOK,
    Phase::DIALING,
    Phase::TRAINING,
    Phase::CONNECTED,
    Phase::RUN,
];

static QUANTITY: Key<Other> = Key::new(
    "quantity",
    &Own("one of the [quantities](#quantities)"),
    Without::Refused("\"wakeup_gap\""),
    "What is limited.",
);
static STATISTIC: Key<Other> = Key::new(
    "statistic",
    &Own("`minimum`, `maximum`, `total`, a percentile such as `p99.9`, or a list of such"),
    Without::Means("`total` of what is counted, else the extreme that the bound is about"),
    "What of all its values.",
);
static AT_MOST: Key<Other> = Key::new(
    "at_most",
    &Own("a duration, an integer, or a factor such as \"1.05 x control\""),
    Without::Means("`at_least` says it"),
    "The bound; in the last form of the same statistic of the variant's control, for a variant with a device: what that does to others.",
);
static AT_LEAST: Key<Other> = Key::new(
    "at_least",
    &Own("a duration or an integer"),
    Without::Means("`at_most` says it"),
    "The bound from below.",
);
static IN_EVERY: Key<Span> = Key::new(
    "in_every",
    &Within(&SPAN, DURATIONS),
    Without::Means("each value, or the whole run, as `statistic` says"),
    "The sum of what is counted in every window of this length that lies in the run, wherever it begins: `{ quantity = \"jobs_done\", in_every = \"1s\", at_least \
        = 24 }` is a throughput, `{ quantity = \"deadline_misses\", in_every = \"100ms\", at_most = 1 }` of a task of 10 ms that no more than 1 of any 10 jobs is late. A \
        window may begin just after a job: of a job every 10 ms, 9 end in every 100 ms. One that is longer than every run is a mistake.",
);
static IN_PHASES: Key<Other> = Key::new(
    "phases",
    &Own("`whole`, `each`, or a list of phases"),
    Without::Is("\"whole\""),
    "In the whole run, in each of a modem's phases, or in some: of these, those that are not over where the variant's call begins.",
);
static SEVERITY: Key<Severity> = Key::new(
    "severity",
    &Words(&[
        ("required", Severity::Required),
        ("advisory", Severity::Advisory),
    ]),
    Without::Is("\"required\""),
    "Judged, or only told.",
);
static HOLDS_IF_SEEN: Key<Other> = Key::new(
    "holds_if_seen",
    &Own("one of the [quantities](#quantities)"),
    Without::Means("where nothing was seen, nothing is known"),
    "The limit holds where nothing of its own quantity was seen, if something of this one was.",
);
pub(super) static KEYS: Table = Table {
    heading: "limits = { … } of [contracts.<name>]",
    kind: None,
    about: "A limit.",
    keys: &[
        &QUANTITY,
        &STATISTIC,
        &AT_MOST,
        &AT_LEAST,
        &IN_EVERY,
        &IN_PHASES,
        &SEVERITY,
        &HOLDS_IF_SEEN,
    ],
};

/// Whose contract it is: what is observed differs, and what it can be compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A scenario's, for its devices and tasks, beside which a control may run.
    Scenario,
    /// A program's that is no component of one: there is nothing to compare it with.
    Program,
}

impl Of {
    /// All that can be limited.
    fn quantities(self) -> Vec<Quantity> {
        match self {
            Self::Scenario => kinds::quantities(),
            Self::Program => kinds::PROGRAM.quantities.to_vec(),
        }
    }

    /// One of them, as it is written.
    const fn example(self) -> &'static str {
        match self {
            Self::Scenario => "\"wakeup_gap\"",
            Self::Program => "\"service_gap\"",
        }
    }
}

pub(super) const fn is_relative(bound: Bound) -> bool {
    matches!(bound, Bound::AtMostTimesControl { .. })
}

/// The limits that one line means: one for each statistic and bound.
pub(super) fn limits(section: &Section<'_>, of: Of) -> Option<Vec<Limit>> {
    section.keyed([&KEYS]);
    section.require(QUANTITY.name, of.example());
    let quantity = quantity(section, QUANTITY.name, of)?;
    let quantity = in_windows(section, quantity, of)?;
    let phases = phases(section);
    let severity = section.take(&SEVERITY);
    let seen = self::quantity(section, HOLDS_IF_SEEN.name, of);
    let bounds = [
        bound(section, "at_most", quantity, of),
        bound(section, "at_least", quantity, of),
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
            limit.severity = severity;
            limits.push(match seen {
                Some(witness) => limit.holds_unseen_with(witness),
                None => limit,
            });
        }
    }
    Some(limits)
}

/// What is limited, if it is in windows: `in_every = "1s"`.
fn in_windows(section: &Section<'_>, quantity: Quantity, of: Of) -> Option<Quantity> {
    let Some(window) = section.find(&IN_EVERY) else {
        return (!section.has(IN_EVERY.name)).then_some(quantity);
    };
    // They say the same otherwise: the least or the most of all windows of the run is what is limited.
    for key in [STATISTIC.name, IN_PHASES.name, HOLDS_IF_SEEN.name] {
        if section.has(key) {
            let cause = format!("`{key}` and `in_every` do not go together");
            let remedy = "remove one: every window of the run is to keep the bound";
            section.wrong(key, cause, remedy);
        }
    }
    let windowed = quantity.in_every(window.value);
    if windowed.is_none() {
        let all = of.quantities().into_iter();
        let all = all.filter(|one| one.in_every(window.value).is_some());
        let names: Vec<&str> = all.map(Quantity::name).collect();
        let name = quantity.name();
        let cause = format!("of `{name}` nothing is counted in its time");
        let remedy = match names.is_empty() {
            true => format!("remove `{}`", IN_EVERY.name),
            false => format!("limit {}", alternatives(names)),
        };
        section.findings.error(&window.place, cause, remedy);
    }
    windowed
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

fn quantity(section: &Section<'_>, key: &str, of: Of) -> Option<Quantity> {
    let all = of.quantities();
    let elsewhere = kinds::quantities().into_iter();
    let mut elsewhere = elsewhere
        .filter(|one| !all.contains(one))
        .map(Quantity::name);
    if let Some(text) = section.value(key).and_then(string)
        && elsewhere.any(|name| name == text.value)
    {
        let (name, kind) = (text.value, kinds::PROGRAM.name);
        let cause = format!("`{name}` is not observed of a {kind}");
        let remedy = format!(
            "limit {}",
            alternatives(all.into_iter().map(Quantity::name))
        );
        section.findings.error(&text.place, cause, remedy);
        return None;
    }
    let words: Vec<_> = all.iter().map(|one| (one.name(), *one)).collect();
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
fn bound(section: &Section<'_>, key: &str, quantity: Quantity, of: Of) -> Option<Found<Bound>> {
    let absolute = |value| match key {
        "at_most" => Bound::AtMost(value),
        _ => Bound::AtLeast(value),
    };
    let value = section.value(key)?;
    if let DeValue::String(text) = value.get_ref()
        && text.contains("control")
    {
        let text = section.text(key, "a bound", "1.05 x control")?;
        if of == Of::Program {
            let cause = "there is no control to compare with";
            let remedy = format!(
                "write a bound of its own, such as: {key} = {}",
                example(quantity)
            );
            section.findings.error(&text.place, cause, remedy);
            return None;
        }
        if quantity.window().is_some() {
            let cause = "what is counted in windows is not compared with a control";
            let remedy = "write how many there may be, such as: at_most = 1";
            section.findings.error(&text.place, cause, remedy);
            return None;
        }
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

#[cfg(test)]
mod tests {
    use crate::scenario::parse_contract;

    /// What is wrong with the contract of a program, and what is advised.
    fn advised(text: &str) -> (String, String) {
        let mut found = parse_contract(text, "c.toml").expect_err("it is wrong");
        assert_eq!(found.len(), 1, "one error is told once: {found:?}");
        let found = found.remove(0);
        (found.cause, found.remedy)
    }

    #[test]
    fn what_a_program_is_advised_to_limit_is_observed_of_a_program() {
        let limit = |limit: &str| advised(&format!("limits = [{{ {limit} }}]"));
        let all = "limit `service_gap`, `short_periods`, `short_stretches` or `overruns`";
        for bound in ["\"1ms\"", "\"1.05 x control\""] {
            let (cause, remedy) = limit(&format!("quantity = \"wakeup_gap\", at_most = {bound}"));
            assert_eq!(cause, "`wakeup_gap` is not observed of a program");
            assert_eq!(remedy, all);
        }
        let (_, remedy) = limit("quantity = \"wakeup_gap\", at_least = 1, in_every = \"1s\"");
        assert_eq!(remedy, all);
        let (_, remedy) = limit("quantity = \"service_gp\", at_most = \"1ms\"");
        assert_eq!(remedy, "did you mean `service_gap`?");
        let (_, remedy) = limit("quantity = \"wakeup_gp\", at_most = \"1ms\"");
        assert!(!remedy.contains("wakeup_gap"), "{remedy}");
        let (cause, remedy) = limit("quantity = \"service_gap\", at_most = \"1.05 x control\"");
        assert_eq!(cause, "there is no control to compare with");
        assert!(remedy.ends_with("such as: at_most = \"1.5ms\""), "{remedy}");
        let (_, remedy) = limit("at_most = \"8ms\"");
        assert!(remedy.ends_with("quantity = \"service_gap\""), "{remedy}");
    }

    /// What is written as an example is a contract.
    #[test]
    fn examples_for_a_program_can_be_written_as_they_stand() {
        for text in ["limits = []", "", "limits = \"x\""] {
            let (_, remedy) = advised(text);
            let (_, example) = remedy.split_once("limits = ").expect("an example");
            let contract = parse_contract(&format!("limits = {example}"), "c.toml");
            assert!(contract.is_ok(), "{remedy}");
        }
    }
}
