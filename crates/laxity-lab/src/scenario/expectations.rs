//! What a variant is expected to show: contracts and their verdicts, loss, transfer and grade.

use laxity_model::ReservationRequest;
use laxity_model::verify::contract::{Contract, Expectation, Kind, Quantity, Subject, Subjects};
use toml::de::DeValue;

use super::contracts::{needs, needs_control, needs_device, needs_periodic, unseen, usual};
use super::diagnostic::alternatives;
use super::keys::{Key, Other, Own, Table, Without, Words};
use super::reader::{Section, shortened};
use super::sections::chosen;
use super::types::{
    Expectations, ExpectedGrade, Loss, Outcome, ResolvedDevice, ResolvedVariant, TaskKind,
};
use super::variants::{Draft, Scope, having};

static LOST: Key<Loss> = Key::new(
    "lost",
    &Words(&[
        ("none", Loss::None),
        ("some", Loss::Some),
        ("any", Loss::Any),
    ]),
    Without::Means("`\"none\"`, or `\"any\"` where the grade is to be `\"unenforced\"`"),
    "Whether its devices lose samples: not one of them a single one, at least one of them some, or it is shown and not judged.",
);
static TRANSFER: Key<Outcome> = Key::new(
    "transfer",
    &Words(&[
        ("complete", Outcome::Complete),
        ("fails", Outcome::Fails),
        ("any", Outcome::Any),
    ]),
    Without::Means("`\"complete\"` where nothing is to be lost, else `\"any\"`"),
    "What becomes of the file of each modem.",
);
static GRADE: Key<ExpectedGrade> = Key::new(
    "grade",
    &Words(&[
        ("enforced", ExpectedGrade::Enforced),
        ("unenforced", ExpectedGrade::Unenforced),
    ]),
    Without::Means("`\"enforced\"` where something is reserved"),
    "Whether somebody can take its reservations away. Where nobody can tell, the grade is `uncertain`: that is neither, and leaves the verdict *inconclusive*.",
);
pub(super) static JUDGED_BY: Key<Other> = Key::new(
    "contracts",
    &Own("a list of names"),
    Without::Means(
        "of those that are built in, `pc99` where a modem takes part, `lossless` where another device does, `in-time` where the jobs of a periodic task take something or are due before the next",
    ),
    "The contracts it is judged by.",
);
static EXPECT: Key<Expectation> = Key::new(
    "expect",
    &Words(&VERDICTS),
    Without::Is("\"met\""),
    "What is expected of all its contracts; or a table with a line for each of which something else is: `expect = { pc99 = \"any\" }`.",
);
/// The keys of a variant that say by what it is judged.
pub(super) static EXPECTED: Table = Table {
    heading: "[variants.<name>]",
    kind: None,
    about: "What is expected of it. What is not as expected makes the exit code 2.",
    keys: &[&JUDGED_BY, &EXPECT, &LOST, &TRANSFER, &GRADE],
};

/// What takes part in a variant, or may.
pub(super) struct Present {
    pub(super) device: bool,
    /// A device that makes a call.
    pub(super) call: bool,
    pub(super) reservation: bool,
}

/// Loss, transfer and grade, with what follows from what is said and from what takes part.
pub(super) fn expectations(section: &Section<'_>, present: &Present) -> Expectations {
    let (lost, transfer) = (section.optional(&LOST), section.optional(&TRANSFER));
    let grade = section.optional(&GRADE);
    let needs = [
        (LOST.name, present.device, "device"),
        (TRANSFER.name, present.call, "modem"),
    ];
    for (key, _, what) in needs.into_iter().filter(|(_, is_there, _)| !is_there) {
        if section.has(key) {
            let cause = format!("`{key}` is expected, and no {what} takes part");
            let remedy = format!("remove it, or place the {what}: placement = \"thread 24\"");
            section.wrong(key, cause, remedy);
        }
    }
    if section.has(GRADE.name) && !present.reservation {
        let cause = "a grade is expected, and nothing is reserved";
        let remedy = "remove `grade`, or write for example: placement = \"reserved 2ms/8ms\"";
        section.wrong(GRADE.name, cause, remedy);
    }
    // Who cannot be sure of the processor, or loses samples, may lose the line too.
    let unsure = grade == Some(ExpectedGrade::Unenforced);
    let sure = if present.device && !unsure {
        Loss::None
    } else {
        Loss::Any
    };
    let lost = lost.unwrap_or(sure);
    let follows = if lost == Loss::None {
        Outcome::Complete
    } else {
        Outcome::Any
    };
    let transfer = transfer.unwrap_or(follows);
    if lost == Loss::None && transfer == Outcome::Fails {
        let cause = "a transfer that loses no sample does not fail";
        let remedy = "write lost = \"some\", or transfer = \"complete\"";
        section.wrong(TRANSFER.name, cause, remedy);
    }
    let default = present.reservation.then_some(ExpectedGrade::Enforced);
    Expectations {
        lost,
        transfer,
        grade: grade.filter(|_| present.reservation).or(default),
    }
}

impl ResolvedVariant {
    /// What is expected of it beside its contracts, in words, as far as anything takes part of which it can be expected.
    pub(crate) fn expected_besides(&self) -> Vec<String> {
        let lost = match self.expect.lost {
            Loss::None => Some("no sample lost"),
            Loss::Some => Some("samples lost"),
            Loss::Any => None,
        };
        let transfer = match self.expect.transfer {
            Outcome::Complete => Some("transfer complete"),
            Outcome::Fails => Some("transfer failed"),
            Outcome::Any => None,
        };
        let grade = self.expect.grade.map(|grade| match grade {
            ExpectedGrade::Enforced => "reservation enforced",
            ExpectedGrade::Unenforced => "reservation unenforced",
        });
        let calls = self.devices.iter().any(ResolvedDevice::calls);
        let all = [
            lost.filter(|_| !self.devices.is_empty()),
            transfer.filter(|_| calls),
            grade,
        ];
        all.into_iter().flatten().map(str::to_owned).collect()
    }
}

/// By which contracts the variant is judged, and what is expected of each.
pub(super) fn contracts(
    draft: &Draft<'_>,
    scope: &Scope<'_>,
    defaults: Option<&Section<'_>>,
) -> Vec<(Contract, Expectation)> {
    let Draft {
        section, variant, ..
    } = draft;
    let owner = having(section, defaults, "contracts");
    let texts = owner.and_then(|owner| owner.texts("contracts", "[\"pc99\"]"));
    let Some((owner, texts)) = owner.zip(texts) else {
        // What is owed by those who take part, unless the file says otherwise.
        let usual: Vec<String> = usual(variant).collect();
        let all = scope.contracts.iter().enumerate();
        let all = all.filter(|(_, one)| usual.contains(&one.name));
        let all: Vec<usize> = all.map(|(index, _)| index).collect();
        return expected(draft, scope, &all);
    };
    let own = section.has("contracts");
    let names = scope.contracts.iter().map(|c| c.name.as_str());
    let mut judged = Vec::new();
    for (index, text) in chosen(owner, ("contract", "name it once"), &texts, names) {
        let contract = scope.contracts[index].value.as_ref();
        let has_control = section.has("control");
        let wrong = contract.and_then(|contract| {
            let missing = missing(contract, variant, has_control);
            let missing = missing.map(|missing| (missing, TAKES_NO_PART.to_owned()));
            // A default that others are judged by too is judged, and left open.
            let is_own = own || contract.subjects != Subjects::All;
            missing.or_else(|| unreserved(contract, variant).filter(|_| is_own))
        });
        match wrong.filter(|_| !draft.is_unknown) {
            None => judged.push(index),
            // A default is meant for the variants that it can be judged in.
            Some(_) if !own => {}
            Some((wrong, remedy)) => {
                let cause = format!("`{}` limits {wrong}", text.value);
                section.findings.error(&text.place, cause, remedy);
            }
        }
    }
    expected(draft, scope, &judged)
}

/// Everything that takes part; and whether it holds a reservation, or runs in one.
fn subjects(variant: &ResolvedVariant) -> impl Iterator<Item = (Subject, bool)> + Clone {
    let one = |name: &str, kind: Kind, request: Option<ReservationRequest>| {
        let name = name.to_owned();
        (Subject { name, kind }, request.is_some())
    };
    let devices = variant.devices.iter();
    let devices = devices
        .map(move |one_of| one(&one_of.name, one_of.device.kind(), one_of.placing.request()));
    let tasks = variant.tasks.iter();
    devices.chain(tasks.map(move |task| one(&task.name, task.kind.kind(), task.request())))
}

/// What helps where nothing takes part that a contract is about.
const TAKES_NO_PART: &str = "remove the contract here, or let one take part";

/// That the contract limits the gaps of a command which has no reservation, so that nobody looks at them; and what would be right.
fn unreserved(contract: &Contract, variant: &ResolvedVariant) -> Option<(String, String)> {
    if !needs(contract, Quantity::SERVICE_GAP) {
        return None;
    }
    let commands = variant.tasks.iter();
    let mut commands = commands.filter(|task| matches!(task.kind, TaskKind::Command { .. }));
    let task = commands.find(|task| {
        let (name, kind) = (task.name.clone(), task.kind.kind());
        task.request().is_none() && contract.subjects.include(&Subject { name, kind })
    })?;
    let (name, gap) = (&task.name, Quantity::SERVICE_GAP.name());
    let wrong =
        format!("`{gap}`, which is seen of a command only in a reservation, and `{name}` has none");
    let whom = match contract.subjects {
        Subjects::All => "name in the contract whom it is about (kind = \"periodic\"); or ",
        Subjects::Named(_) | Subjects::Kind(_) => "",
    };
    let remedy = format!(
        "{whom}write placement = {{ {name} = \"reserved 2ms/8ms\" }} with enforcer = \"deadline\", or remove the contract here"
    );
    Some((wrong, remedy))
}

/// What must take part for the contract to be judged, and does not.
fn missing(contract: &Contract, variant: &ResolvedVariant, has_control: bool) -> Option<String> {
    let mut present = subjects(variant);
    let is_there = present.any(|(subject, _)| contract.subjects.include(&subject));
    match &contract.subjects {
        Subjects::Named(wanted) if !is_there => {
            return Some(format!("`{wanted}`, which takes no part"));
        }
        Subjects::Kind(wanted) if !is_there => {
            return Some(format!("each {}, and none takes part", wanted.name));
        }
        _ => {}
    }
    let no_device = variant.devices.is_empty();
    let what = if needs_device(contract) && no_device {
        "a device"
    } else if needs_periodic(contract) && variant.periodic().is_empty() {
        "the gaps of a periodic task"
    } else if needs_control(contract) && no_device && !has_control {
        // It may be the control of others, and is not compared with itself.
        let what = "what is compared with a control; without a device, a variant says with which: control = \"none\"";
        return Some(what.to_owned());
    } else {
        // Whom a contract names, it was held against when it was read.
        let shown = subjects(variant).map(|(subject, _)| subject.kind);
        let shown: Vec<Kind> = shown.collect();
        let unseen = unseen(contract, &shown).filter(|_| contract.subjects == Subjects::All)?;
        let name = unseen.name();
        return Some(format!(
            "`{name}`, which is observed of nothing that takes part"
        ));
    };
    Some(format!("{what}, and none takes part"))
}

const VERDICTS: [(&str, Expectation); 4] = [
    ("met", Expectation::Met),
    ("violated", Expectation::Violated),
    ("inconclusive", Expectation::Inconclusive),
    ("any", Expectation::Any),
];

/// `expect = "violated"` for every contract, or a table with one line for each that is not met.
fn expected(
    draft: &Draft<'_>,
    scope: &Scope<'_>,
    chosen: &[usize],
) -> Vec<(Contract, Expectation)> {
    let section = &draft.section;
    let is_table =
        |value: &toml::Spanned<DeValue<'_>>| matches!(value.get_ref(), DeValue::Table(_));
    if !section.value("expect").is_some_and(is_table) {
        let all = section.find(&EXPECT);
        if all.is_some() && chosen.is_empty() && !draft.is_unknown {
            let cause = "a verdict is expected, and there is no contract to judge by";
            let remedy = "remove `expect`, or write for example: contracts = [\"pc99\"]";
            section.wrong(EXPECT.name, cause, remedy);
        }
        let all = all.map_or(Expectation::Met, |found| found.value);
        return judged(scope, chosen, |_| all);
    }
    let path = format!("`expect` of {}", section.path);
    let Some(table) = section.section("expect", &path) else {
        return Vec::new();
    };
    // By which it is judged where nothing is said, follows from who takes part.
    let all: Vec<usize> = (0..scope.contracts.len()).collect();
    let known = if draft.is_unknown { &all } else { chosen };
    let names = known
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
    judged(scope, chosen, |name| {
        let found = table.choice(name, &VERDICTS);
        found.map_or(Expectation::Met, |found| found.value)
    })
}

/// Contracts with what is expected of each, by its name; those that could not be read are left out.
fn judged(
    scope: &Scope<'_>,
    chosen: &[usize],
    expected: impl Fn(&str) -> Expectation,
) -> Vec<(Contract, Expectation)> {
    let each = chosen.iter().filter_map(|index| {
        let declared = &scope.contracts[*index];
        let expected = expected(&declared.name);
        Some((declared.value.clone()?, expected))
    });
    each.collect()
}

/// A contract cannot be met that is about everybody who holds a reservation, where one of these is not enforced.
pub(super) fn check_grade_and_verdicts(draft: &Draft<'_>) {
    let variant = &draft.variant;
    if variant.expect.grade != Some(ExpectedGrade::Unenforced) || draft.is_unknown {
        return;
    }
    let mut holders = subjects(variant).filter(|(_, reserved)| *reserved);
    let mut met = variant.contracts.iter();
    let is_impossible = met.any(|(contract, expected)| {
        let about = |(subject, _)| contract.rests_on(&subject);
        *expected == Expectation::Met && holders.clone().all(about)
    });
    if is_impossible && holders.next().is_some() {
        draft.section.wrong(
            "grade",
            "an unenforced grant violates every contract that is about its holder, and `met` is expected",
            "write expect = \"violated\", or contracts = []",
        );
    }
}
