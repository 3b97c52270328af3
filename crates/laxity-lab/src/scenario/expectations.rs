//! What a variant is expected to show: contracts and their verdicts, loss, transfer and grade.

use laxity_model::verify::contract::{Expectation, Subjects};
use toml::de::DeValue;

use super::contracts::{needs_control, needs_device, needs_periodic};
use super::diagnostic::alternatives;
use super::kinds;
use super::reader::{Section, shortened};
use super::types::{Expectations, ExpectedGrade, Loss, Outcome, Placing};
use super::variants::{Scope, having, periodic};

/// Loss, transfer and grade, with what follows from what is said and from what takes part.
pub(super) fn expectations(
    section: &Section<'_>,
    has_device: bool,
    reserved: bool,
) -> Expectations {
    let losses = [
        ("none", Loss::None),
        ("some", Loss::Some),
        ("any", Loss::Any),
    ];
    let outcomes = [
        ("complete", Outcome::Complete),
        ("fails", Outcome::Fails),
        ("any", Outcome::Any),
    ];
    let grades = [
        ("enforced", ExpectedGrade::Enforced),
        ("unenforced", ExpectedGrade::Unenforced),
    ];
    let lost = section.choice("lost", &losses);
    let transfer = section.choice("transfer", &outcomes);
    let grade = section.choice("grade", &grades).map(|found| found.value);
    for key in ["lost", "transfer"] {
        if !has_device && section.has(key) {
            section.findings.error(
                &section.place_of(key),
                format!("`{key}` is expected, and no device takes part"),
                "remove it, or place the device: placement = \"thread 24\"",
            );
        }
    }
    if section.has("grade") && !reserved {
        section.findings.error(
            &section.place_of("grade"),
            "a grade is expected, and nothing is reserved",
            "remove `grade`, or write for example: placement = \"reserved 2ms/8ms\"",
        );
    }
    // Who cannot be sure of the processor, or loses samples, may lose the line too.
    let unsure = grade == Some(ExpectedGrade::Unenforced);
    let sure = if has_device && !unsure {
        Loss::None
    } else {
        Loss::Any
    };
    let lost = lost.map_or(sure, |found| found.value);
    let follows = if lost == Loss::None {
        Outcome::Complete
    } else {
        Outcome::Any
    };
    let transfer = transfer.map_or(follows, |found| found.value);
    if lost == Loss::None && transfer == Outcome::Fails {
        section.findings.error(
            &section.place_of("transfer"),
            "a transfer that loses no sample does not fail",
            "write lost = \"some\", or transfer = \"complete\"",
        );
    }
    let default = reserved.then_some(ExpectedGrade::Enforced);
    Expectations {
        lost,
        transfer,
        grade: grade.filter(|_| reserved).or(default),
    }
}

/// By which contracts the variant is judged, and what is expected of each.
pub(super) fn contracts(
    section: &Section<'_>,
    scope: &Scope<'_>,
    defaults: Option<&Section<'_>>,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) -> Vec<(usize, Expectation)> {
    let owner = having(section, defaults, "contracts");
    let texts = owner.and_then(|owner| owner.texts("contracts", "[\"pc99\"]"));
    let Some((owner, texts)) = owner.zip(texts) else {
        // What a driver for this kind of device owes to others, unless the file says otherwise.
        let all: Vec<usize> = (0..usize::from(!devices.is_empty())).collect();
        return expected(section, scope, &all);
    };
    let own = section.has("contracts");
    let mut chosen: Vec<usize> = Vec::new();
    for text in texts {
        match scope.contracts.iter().position(|c| c.name == text.value) {
            Some(index) if chosen.contains(&index) => owner.findings.error(
                &text.place,
                format!("the contract `{}` is named twice", text.value),
                "name it once",
            ),
            Some(index) => {
                let missing = missing(scope, index, devices, tasks);
                match missing {
                    None => chosen.push(index),
                    // A default is meant for the variants that it can be judged in.
                    Some(_) if !own => {}
                    Some(missing) => section.findings.error(
                        &text.place,
                        format!("`{}` limits {missing}", text.value),
                        "remove the contract here, or let one take part",
                    ),
                }
            }
            None => {
                let names = scope.contracts.iter().map(|c| c.name.as_str());
                owner.findings.unknown("contract", &text, names);
            }
        }
    }
    expected(section, scope, &chosen)
}

/// What must take part for the contract to be judged, and does not.
fn missing(
    scope: &Scope<'_>,
    contract: usize,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) -> Option<String> {
    let contract = scope.contracts[contract].value.as_ref()?;
    if let Some(missing) = missing_subject(scope, &contract.subjects, devices, tasks) {
        return Some(missing);
    }
    let what = if needs_device(contract) && devices.is_empty() {
        "a device"
    } else if needs_periodic(contract) && periodic(scope, tasks).is_empty() {
        "the gaps of a periodic task"
    } else if needs_control(contract) && devices.is_empty() {
        // A control is not compared with itself.
        "what a device does to others"
    } else {
        return None;
    };
    Some(format!("{what}, and none takes part"))
}

fn missing_subject(
    scope: &Scope<'_>,
    subjects: &Subjects,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) -> Option<String> {
    let devices = devices.iter().map(|(index, _)| {
        let name = scope.devices[*index].name.clone();
        (name, Some(kinds::MODEM))
    });
    let tasks = tasks.iter().map(|(index, _)| {
        let task = &scope.tasks[*index];
        let kind = task.value.as_ref().map(|task| task.kind.kind());
        (task.name.clone(), kind)
    });
    let mut present = devices.chain(tasks);
    match subjects {
        Subjects::All => None,
        Subjects::Named(wanted) => {
            let is_there = present.any(|(name, _)| name == *wanted);
            (!is_there).then(|| format!("`{wanted}`, which takes no part"))
        }
        Subjects::Kind(wanted) => {
            let is_there = present.any(|(_, kind)| kind.is_some_and(|kind| kind == *wanted));
            (!is_there).then(|| format!("each {}, and none takes part", wanted.name))
        }
    }
}

const VERDICTS: [(&str, Expectation); 4] = [
    ("met", Expectation::Met),
    ("violated", Expectation::Violated),
    ("inconclusive", Expectation::Inconclusive),
    ("any", Expectation::Any),
];

/// `expect = "violated"` for every contract, or a table with one line for each that is not met.
fn expected(
    section: &Section<'_>,
    scope: &Scope<'_>,
    chosen: &[usize],
) -> Vec<(usize, Expectation)> {
    let is_table =
        |value: &toml::Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Table(_));
    if !section.value("expect").is_some_and(is_table) {
        let all = section.choice("expect", &VERDICTS);
        if all.is_some() && chosen.is_empty() {
            section.findings.error(
                &section.place_of("expect"),
                "a verdict is expected, and there is no contract to judge by",
                "remove `expect`, or write for example: contracts = [\"pc99\"]",
            );
        }
        let all = all.map_or(Expectation::Met, |found| found.value);
        return chosen.iter().map(|index| (*index, all)).collect();
    }
    let path = format!("`expect` of {}", section.path);
    let Some(table) = section.section("expect", &path) else {
        return Vec::new();
    };
    let names = chosen
        .iter()
        .map(|index| scope.contracts[*index].name.as_str());
    for entry in table.entries() {
        if !names.clone().any(|name| name == entry.name.value) {
            table.findings.error(
                &entry.name.place,
                format!(
                    "`{}` is not among this variant's contracts",
                    shortened(entry.name.value)
                ),
                format!("expect something of {}", alternatives(names.clone())),
            );
        }
    }
    let of = |index: &usize| {
        let found = table.choice(&scope.contracts[*index].name, &VERDICTS);
        (*index, found.map_or(Expectation::Met, |found| found.value))
    };
    chosen.iter().map(of).collect()
}

/// A contract cannot be met with a grant that is not enforced.
pub(super) fn check_grade_and_verdicts(
    section: &Section<'_>,
    expect: &Expectations,
    contracts: &[(usize, Expectation)],
) {
    let unenforced = expect.grade == Some(ExpectedGrade::Unenforced);
    let met = contracts
        .iter()
        .any(|(_, verdict)| *verdict == Expectation::Met);
    if unenforced && met {
        section.findings.error(
            &section.place_of("grade"),
            "an unenforced grant violates every contract, and `met` is expected",
            "write expect = \"violated\", or contracts = []",
        );
    }
}
