//! `[variants.*]` and `[defaults]`: what is compared, and what is expected of each.

use laxity_model::verify::contract::Contract;
use laxity_model::{Enforcer, Priority, ProcessorId, Reservation};

use super::control::control;
use super::expectations::{check_grade_and_verdicts, contracts, expectations};
use super::placing::{DETAIL_KEYS, Placed, placed};
use super::reader::{Found, Section};
use super::sections::{Names, named};
use super::types::{Device, HostSpec, Placing, Rank, Start, Task, TaskKind, Variant};
use super::units::Share;

/// What a variant may name.
pub(super) struct Scope<'a> {
    pub(super) host: &'a HostSpec,
    pub(super) devices: &'a Names<Device>,
    pub(super) tasks: &'a Names<Task>,
    pub(super) contracts: &'a Names<Contract>,
}

const KEYS: [&str; 10] = [
    "about",
    "on",
    "placement",
    "tasks",
    "contracts",
    "expect",
    "lost",
    "transfer",
    "grade",
    "start",
];

/// On which hosts a variant is run: live, twin.
type On = (bool, bool);

/// What a variant says, with the places that are needed once all are known.
pub(super) struct Draft<'a> {
    pub(super) variant: Variant,
    pub(super) section: Section<'a>,
    /// The variant named as control.
    pub(super) control: Option<Found<&'a str>>,
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
pub(super) fn having<'s, 'a>(
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
    let starts = [("on-hook", Start::OnHook), ("connected", Start::Connected)];
    let start = section.choice("start", &starts);
    if let (Some(found), true) = (&start, devices.is_empty()) {
        let cause = "`start` is about a call, and there is no device";
        section
            .findings
            .error(&found.place, cause, "remove `start`");
    }
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
            start: start.map_or(Start::OnHook, |found| found.value),
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

/// The tasks that take part, those named or all, with the placement of the commands among them.
fn tasks(
    section: &Section<'_>,
    scope: &Scope<'_>,
    defaults: Option<&Section<'_>>,
    placed: &Placed,
) -> Vec<(usize, Option<Placing>)> {
    let named = having(section, defaults, "tasks")
        .and_then(|s| Some((s, s.texts("tasks", "[\"spinners\", \"cothread\"]")?)));
    let chosen = match named {
        None => (0..scope.tasks.len()).collect(),
        Some((owner, texts)) => {
            let chosen = named_tasks(owner, scope, &texts);
            check_placed_take_part(section, scope, placed, &chosen);
            chosen
        }
    };
    let with_placing = |index: usize| {
        let task = &scope.tasks[index];
        let kind = task.value.as_ref().map(|task| &task.kind);
        if !matches!(kind, Some(TaskKind::Command { .. })) {
            return Some((index, None));
        }
        match placed.get(&task.name) {
            Some(found) => found.value.map(|placing| (index, Some(placing))),
            // A command that is not placed is a normal thread, as a shell would start it.
            None => Some((index, Some(Placing::Thread(Priority::NORMAL)))),
        }
    };
    chosen.into_iter().filter_map(with_placing).collect()
}

fn named_tasks(owner: &Section<'_>, scope: &Scope<'_>, texts: &[Found<&str>]) -> Vec<usize> {
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
                owner.findings.unknown("task", text, names);
            }
        }
    }
    chosen
}

fn check_placed_take_part(
    section: &Section<'_>,
    scope: &Scope<'_>,
    placed: &Placed,
    chosen: &[usize],
) {
    for (name, found) in placed {
        let index = scope.tasks.iter().position(|task| task.name == *name);
        if index.is_some_and(|index| !chosen.contains(&index)) {
            section.findings.error(
                &found.place,
                format!("`{name}` is placed and takes no part"),
                "name it in `tasks`, or remove its placement",
            );
        }
    }
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

/// The periodic tasks among these.
pub(super) fn periodic(scope: &Scope<'_>, tasks: &[(usize, Option<Placing>)]) -> Vec<usize> {
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
