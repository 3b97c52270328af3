//! `[variants.*]` and `[defaults]`: what is compared, and what is expected of each.

use crate::each_once::each_once;
use laxity_model::verify::contract::Contract;
use laxity_model::{Priority, ProcessorId, Reservation};

use super::Placing;
use super::control::control;
use super::expectations::{check_grade_and_verdicts, contracts, expectations};
use super::placing::{DETAIL_KEYS, Placed, placed};
use super::reader::{Found, Section};
use super::sections::{Names, chosen, named};
use super::types::{
    HostSpec, Rank, ResolvedDevice, ResolvedTask, ResolvedVariant, Start, TaskKind,
};
use super::units::{Share, format_reservation};

/// What a variant may name.
pub(super) struct Scope<'a> {
    pub(super) host: &'a HostSpec,
    pub(super) devices: &'a Names<ResolvedDevice>,
    pub(super) tasks: &'a Names<ResolvedTask>,
    pub(super) contracts: &'a Names<Contract>,
}

impl Scope<'_> {
    /// Whether something that is declared could not be read: whoever would then not take part is not missed.
    pub(super) fn is_broken(&self) -> bool {
        self.devices.iter().any(|one| one.value.is_none())
            || self.tasks.iter().any(|one| one.value.is_none())
    }
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
    pub(super) variant: ResolvedVariant,
    pub(super) section: Section<'a>,
    /// The variant named as control.
    pub(super) control: Option<Found<&'a str>>,
}

/// All variants, or nothing where an error has been found.
pub(super) fn variants(root: &Section<'_>, scope: &Scope<'_>) -> Option<Vec<ResolvedVariant>> {
    let defaults = defaults(root);
    let drafts = named(root, "variants", |section, name| {
        Some(draft(section, name, scope, defaults.as_ref()))
    });
    let table = root.section("variants", "");
    if !root.has("variants") || table.is_some_and(|table| table.entries().is_empty()) {
        let cause = "the scenario has no variant to run";
        let remedy = "add one, such as: [variants.reserved] with placement = \"reserved 2ms/8ms\"";
        root.findings.error(&root.place, cause, remedy);
    }
    // With a broken variant missing, the indices of the others would be wrong.
    let drafts: Option<Vec<Draft<'_>>> = drafts.into_iter().map(|draft| draft.value).collect();
    let drafts = drafts?;
    let controls = (0..drafts.len()).map(|index| control(index, &drafts));
    let controls: Vec<Option<usize>> = controls.collect();
    let complete = drafts.into_iter().zip(controls);
    let complete = complete.map(|(draft, control)| ResolvedVariant {
        control,
        ..draft.variant
    });
    Some(complete.collect())
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
) -> Draft<'a> {
    let keys = KEYS.into_iter().chain(DETAIL_KEYS).chain(["control"]);
    section.allow(&keys.collect::<Vec<_>>());
    let placed = placed(section, scope.devices, scope.tasks);
    let tasks = tasks(section, scope, defaults, &placed);
    let devices = devices(scope, &placed);
    let (live, twin) = on(section, defaults);
    let starts = [("on-hook", Start::OnHook), ("connected", Start::Connected)];
    let start = section.choice("start", &starts);
    if start.is_some() && devices.is_empty() && !scope.is_broken() {
        let cause = "`start` is about a call, and there is no device";
        section.wrong("start", cause, "remove `start`");
    }
    let about = section.text("about", "a string", "The modem in a thread");
    let reserved = !reservations(&devices, &tasks).is_empty() || scope.is_broken();
    let has_device = !devices.is_empty() || scope.is_broken();
    let mut variant = ResolvedVariant {
        name: name.to_owned(),
        about: about.map_or_else(String::new, |found| found.value.to_owned()),
        live,
        twin,
        devices,
        tasks,
        contracts: Vec::new(),
        expect: expectations(section, has_device, reserved),
        start: start.map_or(Start::OnHook, |found| found.value),
        control: None,
    };
    if twin {
        live_only(section, &variant.tasks);
    }
    check_sums(section, scope.host, &placed, &variant);
    variant.contracts = contracts(section, scope, defaults, &variant);
    check_grade_and_verdicts(section, &variant);
    Draft {
        variant,
        section: section.clone(),
        control: section.text("control", "the name of a variant", "none"),
    }
}

fn devices(scope: &Scope<'_>, placed: &Placed) -> Vec<ResolvedDevice> {
    let devices = scope.devices.iter();
    let devices = devices.filter_map(|declared| {
        let placing = placed.get(&declared.name)?.value?;
        let device = declared.value.clone()?;
        Some(ResolvedDevice { placing, ..device })
    });
    devices.collect()
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
) -> Vec<ResolvedTask> {
    let named = having(section, defaults, "tasks")
        .and_then(|s| Some((s, s.texts("tasks", "[\"spinners\", \"cothread\"]")?)));
    let chosen = match named {
        None => (0..scope.tasks.len()).collect(),
        Some((owner, texts)) => {
            let names = scope.tasks.iter().map(|task| task.name.as_str());
            let twice = "name it once; a spinner's `count` says how many there are";
            let chosen = chosen(owner, ("task", twice), &texts, names).into_iter();
            let chosen = chosen.map(|(index, _)| index).collect::<Vec<_>>();
            check_placed_take_part(section, scope, placed, &chosen);
            chosen
        }
    };
    let with_placing = |index: usize| {
        let mut task = scope.tasks[index].value.clone()?;
        if matches!(task.kind, TaskKind::Command { .. }) {
            // A command that is not placed is a normal thread, as a shell would start it.
            let normal = Some(Placing::Thread(Priority::NORMAL));
            let placing = placed.get(&task.name).map_or(normal, |found| found.value);
            task.placing = Some(placing?);
        }
        Some(task)
    };
    chosen.into_iter().filter_map(with_placing).collect()
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
            let cause = format!("`{name}` is placed and takes no part");
            let remedy = "name it in `tasks`, or remove its placement";
            section.findings.error(&found.place, cause, remedy);
        }
    }
}

/// What the twin cannot run must say `on = "live"`.
fn live_only(section: &Section<'_>, tasks: &[ResolvedTask]) {
    for task in tasks {
        let what = match &task.kind {
            TaskKind::Command { .. } => "a command",
            TaskKind::Rogue {
                rank: Rank::Foreign { .. },
                ..
            } => "a rogue with `fifo`",
            _ => continue,
        };
        let name = &task.name;
        section.wrong(
            if section.has("on") { "on" } else { "tasks" },
            format!("the twin cannot run `{name}`: {what} is for Linux only"),
            format!("write under {}: on = \"live\"", section.path),
        );
    }
}

/// Everything that is reserved: by whom, where, and how much.
fn reservations<'v>(
    devices: &'v [ResolvedDevice],
    tasks: &'v [ResolvedTask],
) -> Vec<(&'v str, ProcessorId, Reservation)> {
    let devices = devices.iter();
    let devices = devices.map(|one| (&*one.name, one.processor, one.placing.request()));
    let tasks = tasks.iter();
    let all = devices.chain(tasks.map(|one| (one.holder(), one.processor, one.request())));
    // Those that share an executor share its reservation.
    each_once(all.filter_map(|(name, on, request)| Some((name, on, request?.reservation))))
}

/// No processor can be reserved more than once over. What a machine admits is less, and is said by its admission.
fn check_sums(section: &Section<'_>, host: &HostSpec, placed: &Placed, variant: &ResolvedVariant) {
    let all = reservations(&variant.devices, &variant.tasks);
    for processor in 0..host.processors {
        let here = all.iter().filter(|(_, at, _)| at.0 == processor);
        let sum: u64 = here.clone().map(|(.., held)| held.share_ppm()).sum();
        if sum <= 1_000_000 {
            continue;
        }
        let part =
            |(name, _, held): &(&str, _, _)| format!("`{name}` {}", format_reservation(*held));
        let parts: Vec<String> = here.clone().map(part).collect();
        let named = here.clone().find_map(|(name, ..)| placed.get(*name));
        let place = named.map_or_else(|| section.place_of("tasks"), |found| found.place.clone());
        let total = Share {
            ppm: u32::try_from(sum).unwrap_or(u32::MAX),
        };
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
