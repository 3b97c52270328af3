//! `[variants.*]` and `[defaults]`: what is compared, and what is expected of each.

use laxity_model::contract::{Contract, Expectation};
use laxity_model::{Enforcer, Priority, ProcessorId, Reservation};
use toml::de::DeValue;

use super::contracts::{needs_control, needs_device, needs_periodic};
use super::placing::{DETAIL_KEYS, Placed, placed};
use super::reader::{Found, Place, Section};
use super::sections::{Names, named};
use super::types::{
    Device, Expectations, ExpectedGrade, HostSpec, Loss, Outcome, Placing, Rank, Task, TaskKind,
    Variant,
};
use super::units::Share;

/// What a variant may name.
pub(super) struct Scope<'a> {
    pub(super) host: &'a HostSpec,
    pub(super) devices: &'a Names<Device>,
    pub(super) tasks: &'a Names<Task>,
    pub(super) contracts: &'a Names<Contract>,
}

const KEYS: [&str; 9] = [
    "about",
    "on",
    "placement",
    "tasks",
    "contracts",
    "expect",
    "lost",
    "transfer",
    "grade",
];

/// On which hosts a variant is run: live, twin.
type On = (bool, bool);

/// What a variant says, with the places that are needed once all are known.
struct Draft<'a> {
    variant: Variant,
    section: Section<'a>,
    /// The variant named as control.
    control: Option<Found<&'a str>>,
}

/// All variants, or nothing where an error has been found.
pub(super) fn variants(root: &Section<'_>, scope: &Scope<'_>) -> Option<Vec<Variant>> {
    let defaults = defaults(root);
    let drafts = named(root, "variants", |section, name| {
        draft(section, name, scope, defaults.as_ref())
    });
    if !root.has("variants")
        || root
            .section("variants", "")
            .is_some_and(|s| s.entries().is_empty())
    {
        root.findings.error(
            &root.place,
            "the scenario has no variant to run",
            "add one, such as: [variants.reserved] with placement = \"reserved 2ms/8ms\"",
        );
    }
    let names: Vec<&str> = drafts.iter().map(|draft| draft.name.as_str()).collect();
    let complete: Option<Vec<&Draft<'_>>> = drafts.iter().map(|d| d.value.as_ref()).collect();
    // With a broken variant missing, the indices of the others would be wrong.
    let complete = complete?;
    let controls: Vec<_> = complete
        .iter()
        .enumerate()
        .map(|(index, _)| control(index, &complete, &names, scope))
        .collect();
    let mut variants: Vec<Variant> = complete.iter().map(|draft| draft.variant.clone()).collect();
    for (variant, control) in variants.iter_mut().zip(controls) {
        variant.control = control;
    }
    Some(variants)
}

fn defaults<'a>(root: &Section<'a>) -> Option<Section<'a>> {
    let section = root.section("defaults", "[defaults]")?;
    section.allow(&["on", "tasks", "contracts"]);
    Some(section)
}

/// The section that has the key: the variant's own, or the one with the defaults.
fn having<'s, 'a>(
    section: &'s Section<'a>,
    defaults: Option<&'s Section<'a>>,
    key: &str,
) -> Option<&'s Section<'a>> {
    if section.has(key) {
        return Some(section);
    }
    defaults.filter(|defaults| defaults.has(key))
}

fn draft<'a>(
    section: &Section<'a>,
    name: &str,
    scope: &Scope<'_>,
    defaults: Option<&Section<'a>>,
) -> Option<Draft<'a>> {
    let keys: Vec<&str> = KEYS
        .into_iter()
        .chain(DETAIL_KEYS)
        .chain(["control"])
        .collect();
    section.allow(&keys);
    let placed = placed(section, scope.devices, scope.tasks);
    let tasks = tasks(section, scope, defaults, &placed);
    let devices = devices(scope, &placed);
    let on = on(section, defaults);
    live_only(section, scope, &tasks, on);
    check_sums(section, scope, &placed, &devices, &tasks);
    let reserved = is_reserved(scope, &devices, &tasks);
    let expect = expectations(section, !devices.is_empty(), reserved);
    let contracts = contracts(section, scope, defaults, &devices, &tasks);
    check_grade_and_verdicts(section, &expect, &contracts);
    let about = section.text("about", "a string", "The modem in a thread");
    Some(Draft {
        variant: Variant {
            name: name.to_owned(),
            about: about.map_or_else(String::new, |found| found.value.to_owned()),
            live: on.0,
            twin: on.1,
            devices,
            tasks,
            contracts,
            expect,
            control: None,
        },
        section: section.clone(),
        control: section.text("control", "the name of a variant", "none"),
    })
}

fn devices(scope: &Scope<'_>, placed: &Placed) -> Vec<(usize, Placing)> {
    let devices = scope.devices.iter().enumerate();
    devices
        .filter_map(|(index, device)| Some((index, placed.get(&device.name)?.value?)))
        .collect()
}

fn on(section: &Section<'_>, defaults: Option<&Section<'_>>) -> On {
    let words = [
        ("both", (true, true)),
        ("live", (true, false)),
        ("twin", (false, true)),
    ];
    let found = having(section, defaults, "on").and_then(|s| s.choice("on", &words));
    found.map_or((true, true), |found| found.value)
}

/// The tasks that take part: those named, or all.
fn tasks(
    section: &Section<'_>,
    scope: &Scope<'_>,
    defaults: Option<&Section<'_>>,
    placed: &Placed,
) -> Vec<(usize, Option<Placing>)> {
    let with_placing = |index: usize| {
        let task = &scope.tasks[index];
        let is_command = task
            .value
            .as_ref()
            .is_some_and(|task| matches!(task.kind, TaskKind::Command { .. }));
        let own = placed.get(&task.name).and_then(|found| found.value);
        // A command that is not placed is a normal thread, as a shell would start it.
        let placing = own.unwrap_or(Placing::Thread(Priority::NORMAL));
        (index, is_command.then_some(placing))
    };
    let named = having(section, defaults, "tasks")
        .and_then(|s| Some((s, s.texts("tasks", "[\"spinners\", \"cothread\"]")?)));
    let Some((owner, texts)) = named else {
        return (0..scope.tasks.len()).map(with_placing).collect();
    };
    let mut chosen: Vec<usize> = Vec::new();
    for text in texts {
        match scope.tasks.iter().position(|task| task.name == text.value) {
            Some(index) if chosen.contains(&index) => owner.findings.error(
                &text.place,
                format!("the task `{}` is named twice", text.value),
                "name it once; a spinner's `count` says how many there are",
            ),
            Some(index) => chosen.push(index),
            None => {
                let names = scope.tasks.iter().map(|task| task.name.as_str());
                owner.findings.unknown("task", &text, names);
            }
        }
    }
    for (name, found) in placed {
        let absent = |index: &usize| scope.tasks[*index].name != *name;
        let is_task = scope.tasks.iter().any(|task| task.name == *name);
        if is_task && chosen.iter().all(absent) {
            section.findings.error(
                &found.place,
                format!("`{name}` is placed and takes no part"),
                "name it in `tasks`, or remove its placement",
            );
        }
    }
    chosen.into_iter().map(with_placing).collect()
}

/// What the twin cannot run must say `on = "live"`.
fn live_only(section: &Section<'_>, scope: &Scope<'_>, tasks: &[(usize, Option<Placing>)], on: On) {
    let (_, twin) = on;
    let kinds = tasks
        .iter()
        .filter_map(|(index, _)| scope.tasks[*index].value.as_ref());
    for task in kinds.filter(|_| twin) {
        let what = match &task.kind {
            TaskKind::Command { .. } => "a command",
            TaskKind::Rogue {
                rank: Rank::Foreign { .. },
                ..
            } => "a rogue with `fifo`",
            _ => continue,
        };
        let key = if section.has("on") { "on" } else { "tasks" };
        section.findings.error(
            &section.place_of(key),
            format!(
                "the twin cannot run `{}`: {what} is for Linux only",
                task.name
            ),
            format!("write under {}: on = \"live\"", section.path),
        );
    }
}

/// Everything that is reserved in a variant: who, where, how much, and where that was said.
fn reservations<'s>(
    scope: &'s Scope<'_>,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) -> Vec<(&'s str, ProcessorId, Enforcer, Reservation)> {
    let mut all = Vec::new();
    for (index, placing) in devices {
        let device = scope.devices[*index].value.as_ref();
        if let (Some(device), Placing::Reserved { request, .. }) = (device, placing) {
            let name = device.name.as_str();
            all.push((
                name,
                device.processor,
                request.enforcer,
                request.reservation,
            ));
        }
    }
    for (index, placing) in tasks {
        let Some(task) = scope.tasks[*index].value.as_ref() else {
            continue;
        };
        let request = match (&task.kind, placing) {
            (TaskKind::Periodic { reservation, .. }, _) => *reservation,
            (_, Some(Placing::Reserved { request, .. })) => Some(*request),
            _ => None,
        };
        if let Some(request) = request {
            let name = task.name.as_str();
            all.push((name, task.processor, request.enforcer, request.reservation));
        }
    }
    all
}

fn is_reserved(
    scope: &Scope<'_>,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) -> bool {
    !reservations(scope, devices, tasks).is_empty()
}

/// No processor can be reserved more than once over. What a machine admits is less, and is said by its admission.
fn check_sums(
    section: &Section<'_>,
    scope: &Scope<'_>,
    placed: &Placed,
    devices: &[(usize, Placing)],
    tasks: &[(usize, Option<Placing>)],
) {
    let all = reservations(scope, devices, tasks);
    for processor in 0..scope.host.processors {
        let here = all.iter().filter(|(_, at, ..)| at.0 == processor);
        let sum: u64 = here
            .clone()
            .map(|(.., reservation)| reservation.share_ppm())
            .sum();
        if sum <= 1_000_000 {
            continue;
        }
        let parts: Vec<String> = here
            .clone()
            .map(|(name, .., reservation)| {
                format!(
                    "`{name}` {}",
                    super::units::format_reservation(*reservation)
                )
            })
            .collect();
        let named = here.clone().find_map(|(name, ..)| placed.get(*name));
        let place = named.map_or_else(|| section.place_of("tasks"), |found| found.place.clone());
        let total = Share::from_ppm(u32::try_from(sum).unwrap_or(u32::MAX));
        section.findings.error(
            &place,
            format!(
                "{total} of processor {processor} are reserved: {}",
                parts.join(" and ")
            ),
            "ask for less, or give one of them a processor of its own",
        );
    }
}

fn expectations(section: &Section<'_>, has_device: bool, reserved: bool) -> Expectations {
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
fn contracts(
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
                        format!("`{}` limits {missing}, and none takes part", text.value),
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
) -> Option<&'static str> {
    let contract = scope.contracts[contract].value.as_ref()?;
    if needs_device(contract) && devices.is_empty() {
        return Some("a device");
    }
    if needs_periodic(contract) && periodic(scope, tasks).is_empty() {
        return Some("the gaps of a periodic task");
    }
    // A control is not compared with itself.
    (needs_control(contract) && devices.is_empty()).then_some("what a device does to others")
}

/// The periodic tasks among these.
fn periodic(scope: &Scope<'_>, tasks: &[(usize, Option<Placing>)]) -> Vec<usize> {
    let is_periodic = |index: &usize| {
        let task = scope.tasks[*index].value.as_ref();
        task.is_some_and(|task| matches!(task.kind, TaskKind::Periodic { .. }))
    };
    tasks
        .iter()
        .map(|(index, _)| *index)
        .filter(is_periodic)
        .collect()
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
            let what = "contract of this variant";
            table.findings.unknown(what, &entry.name, names.clone());
        }
    }
    let of = |index: &usize| {
        let found = table.choice(&scope.contracts[*index].name, &VERDICTS);
        (*index, found.map_or(Expectation::Met, |found| found.value))
    };
    chosen.iter().map(of).collect()
}

/// A contract cannot be met with a grant that is not enforced.
fn check_grade_and_verdicts(
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

/// The variant that this one is compared with.
fn control(
    index: usize,
    drafts: &[&Draft<'_>],
    names: &[&str],
    scope: &Scope<'_>,
) -> Option<usize> {
    let Draft {
        variant,
        section,
        control,
    } = drafts.get(index)?;
    if let Some(named) = control {
        return named_control(index, named, drafts, names, scope);
    }
    let contract = |index: &usize| scope.contracts[*index].value.as_ref();
    let needed = variant
        .contracts
        .iter()
        .filter_map(|(index, _)| contract(index))
        .find(|contract| needs_control(contract));
    if variant.devices.is_empty() {
        return None;
    }
    let own = periodic(scope, &variant.tasks);
    let fits = |other: &Draft<'_>| {
        let other = &other.variant;
        other.devices.is_empty() && periodic(scope, &other.tasks) == own && serves(other, variant)
    };
    let candidates: Vec<usize> = (0..drafts.len()).filter(|i| fits(drafts[*i])).collect();
    match (candidates.as_slice(), needed) {
        ([only], _) => Some(*only),
        (_, None) => None,
        ([], Some(contract)) => {
            no_control(section, contract);
            None
        }
        ([first, second, ..], Some(_)) => {
            section.findings.error(
                &section.place,
                format!(
                    "{} could be compared with `{}` or `{}`",
                    section.path, names[*first], names[*second]
                ),
                format!("say which, such as: control = \"{}\"", names[*first]),
            );
            None
        }
    }
}

/// A control is run wherever what is compared with it is.
fn serves(control: &Variant, variant: &Variant) -> bool {
    (control.live || !variant.live) && (control.twin || !variant.twin)
}

fn no_control(section: &Section<'_>, contract: &Contract) {
    let place: Place = section.place.clone();
    section.findings.error(
        &place,
        format!(
            "`{}` compares {} with a control, and there is none",
            contract.name, section.path
        ),
        "add a variant with the same periodic task: [variants.none] with placement = \"absent\"",
    );
}

fn named_control(
    index: usize,
    named: &Found<&str>,
    drafts: &[&Draft<'_>],
    names: &[&str],
    scope: &Scope<'_>,
) -> Option<usize> {
    let Draft {
        variant, section, ..
    } = drafts.get(index)?;
    let Some(found) = names.iter().position(|name| *name == named.value) else {
        section
            .findings
            .unknown("variant", named, names.iter().copied());
        return None;
    };
    let other = &drafts.get(found)?.variant;
    let wrong = if found == index {
        Some((
            "a variant cannot be its own control".to_owned(),
            "name another variant".to_owned(),
        ))
    } else if !other.devices.is_empty() {
        let cause = format!(
            "in `{}` a device takes part, so it is no control",
            other.name
        );
        Some((
            cause,
            "name a variant with placement = \"absent\"".to_owned(),
        ))
    } else if periodic(scope, &other.tasks) != periodic(scope, &variant.tasks) {
        let cause = format!(
            "`{}` has other periodic tasks, so the gaps do not compare",
            other.name
        );
        Some((
            cause,
            "name a control with the same periodic tasks".to_owned(),
        ))
    } else if !serves(other, variant) {
        let cause = format!(
            "`{}` is not run on every host that this variant is run on",
            other.name
        );
        Some((cause, "give both the same `on`".to_owned()))
    } else {
        None
    };
    match wrong {
        None => Some(found),
        Some((cause, remedy)) => {
            section.findings.error(&named.place, cause, remedy);
            None
        }
    }
}
