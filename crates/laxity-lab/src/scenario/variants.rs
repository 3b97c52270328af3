//! `[variants.*]` and `[defaults]`: what is compared, and what is expected of each.

use laxity_model::analysis::devices::Open;
use laxity_model::verify::contract::Contract;
use laxity_model::{Priority, Span};

use super::Placing;
use super::control::control;
use super::expectations::{
    EXPECTED, JUDGED_BY, Present, check_grade_and_verdicts, contracts, expectations,
};
use super::keys::{Key, Other, Own, Table, Texts, Without, Words};
use super::lengths::LengthSpec;
use super::network::{self, CLIENTS_KEY, Networks};
use super::placing::{DETAILS, PLACEMENT_KEYS, Place, Placed, placed};
use super::reader::{Found, Section};
use super::sections::{NONE, Names, chosen, named};
use super::types::{Chosen, Rank, ResolvedDevice, ResolvedTask, ResolvedVariant, Start, TaskKind};
use super::units::format_reservation;

/// What a variant may name.
pub(super) struct Scope<'a> {
    pub(super) devices: &'a Names<ResolvedDevice>,
    pub(super) tasks: &'a Names<ResolvedTask>,
    pub(super) networks: &'a Networks,
    pub(super) contracts: &'a Names<Contract>,
    pub(super) lengths: [(&'a str, &'a LengthSpec); 2],
}

impl Scope<'_> {
    /// Whether something that is declared could not be read: whoever would then not take part is not missed.
    pub(super) fn is_broken(&self) -> bool {
        self.devices.iter().any(|one| one.value.is_none())
            || self.tasks.iter().any(|one| one.value.is_none())
            || self.networks.clients.iter().any(|one| one.value.is_none())
    }
}

static ABOUT: Key<String> = Key::new(
    "about",
    &Texts("a string", "The modem in a thread"),
    NONE,
    "One line about it.",
);
static ON: Key<On> = Key::new(
    "on",
    &Words(&[
        ("both", (true, true)),
        ("live", (true, false)),
        ("twin", (false, true)),
    ]),
    Without::Is("\"both\""),
    "Where it is run: on Linux, in the twin, or on both.",
);
static TASKS: Key<Other> = Key::new(
    "tasks",
    &Own("a list of names"),
    Without::Means("all of them"),
    "The tasks that take part.",
);
static CLIENTS: Key<Other> = Key::new(
    CLIENTS_KEY,
    &Own("a list of names"),
    NONE,
    "The clients that take part, all of one interface, and with them the flows whose packets they take: none of two clients.",
);
static START: Key<Start> = Key::new(
    "start",
    &Words(&[("on-hook", Start::OnHook), ("connected", Start::Connected)]),
    Without::Is("\"on-hook\""),
    "Where a modem's call begins: at its first moment, or with the transfer about to begin.",
);
static CONTROL: Key<Other> = Key::new(
    "control",
    &Own("the name of a variant"),
    Without::Means(
        "of a variant with a device, the only one without that has the same periodic tasks",
    ),
    "The variant without devices that `x control` compares with.",
);
pub(super) static KEYS: Table = Table {
    heading: "[variants.<name>]",
    kind: None,
    about: "Something that is run and judged. Besides these keys it has those of a placement.",
    keys: &[&ABOUT, &ON, &TASKS, &CLIENTS, &START, &CONTROL],
};
pub(super) static DEFAULTS: Table = Table {
    heading: "[defaults]",
    kind: None,
    about: "What holds for every variant that says nothing else; of the contracts, those that can be judged in it.",
    keys: &[&ON, &TASKS, &CLIENTS, &JUDGED_BY],
};

/// On which hosts a variant is run: live, twin.
type On = (bool, bool);

/// What a variant says, with the places that are needed once all are known.
pub(super) struct Draft<'a> {
    pub(super) variant: ResolvedVariant,
    pub(super) section: Section<'a>,
    /// The variant named as control.
    pub(super) control: Option<Found<&'a str>>,
    /// Who takes part, where or on which host could not be read: nothing follows from who does not.
    pub(super) is_unknown: bool,
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
    section.keyed([&DEFAULTS]);
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
    section.keyed([&KEYS, &EXPECTED, &PLACEMENT_KEYS, &DETAILS]);
    let errors = section.findings.errors();
    let (live, twin) = on(section, defaults);
    let is_meant = section.findings.errors() == errors;
    let placed = placed(section, scope.devices, scope.tasks);
    let mut tasks = tasks(section, scope, defaults, &placed);
    tasks.extend(clients(section, scope, defaults));
    let is_unknown = scope.is_broken() || section.findings.errors() > errors;
    check_given(section, scope, &placed);
    let devices = devices(scope, &placed);
    let reserves = devices
        .iter()
        .any(|device| device.placing.request().is_some())
        || tasks.iter().any(|task| task.request().is_some());
    let present = Present {
        device: !devices.is_empty() || is_unknown,
        call: devices.iter().any(ResolvedDevice::calls) || is_unknown,
        reservation: reserves || is_unknown,
    };
    if section.has(START.name) && !present.call {
        let cause = "`start` is about a call, and there is no modem";
        section.wrong(START.name, cause, "remove `start`");
    }
    let variant = ResolvedVariant {
        name: name.to_owned(),
        about: section.optional(&ABOUT).unwrap_or_default(),
        live,
        twin,
        devices,
        tasks,
        contracts: Vec::new(),
        expect: expectations(section, &present),
        start: section.take(&START),
        control: None,
    };
    links_take_part(section, &variant.tasks);
    if twin && is_meant {
        live_only(section, &variant.tasks);
    }
    let mut draft = Draft {
        variant,
        section: section.clone(),
        control: section.text("control", "the name of a variant", "none"),
        is_unknown,
    };
    draft.variant.contracts = contracts(&draft, scope, defaults);
    windows_fit(&draft, scope);
    check_grade_and_verdicts(&draft);
    draft
}

fn devices(scope: &Scope<'_>, placed: &Placed) -> Vec<ResolvedDevice> {
    let devices = scope.devices.iter();
    let devices = devices.filter_map(|declared| {
        let Place { placing, open } = placed.get(&declared.name)?.value?;
        let device = declared.value.clone()?;
        Some(ResolvedDevice {
            placing,
            chosen: open.map_or(Chosen::ByAuthor, Chosen::Open),
            ..device
        })
    });
    devices.collect()
}

/// What a length gives in place of `auto` must be what the placement leaves open.
fn check_given(section: &Section<'_>, scope: &Scope<'_>, placed: &Placed) {
    let given = scope.lengths.iter();
    let given = given.filter_map(|(key, length)| Some((key, length.auto?)));
    for (key, given) in given {
        for found in placed.values() {
            let fits = match found.value.and_then(|place| place.open) {
                Some(Open::Service(period)) => given.period() == period,
                Some(Open::Period(service)) => given.service() == service,
                Some(Open::Both) | None => true,
            };
            if !fits {
                let given = format_reservation(given);
                section.findings.error(
                    &found.place,
                    format!("`auto` under [{key}] is {given}, which is not what is left open here"),
                    "let both have the same service or period",
                );
            }
        }
    }
}

/// A window that is longer than every run lies in none.
fn windows_fit(draft: &Draft<'_>, scope: &Scope<'_>) {
    let calls = draft.variant.devices.iter().any(ResolvedDevice::calls);
    let lengths = scope.lengths.iter();
    let longest = lengths.map(|(_, length)| match calls {
        true => length.limit.max(length.idle),
        false => length.idle,
    });
    let longest = longest.max().unwrap_or(Span::ZERO);
    for (Contract { name, limits, .. }, _) in &draft.variant.contracts {
        let windows = limits.iter().filter_map(|limit| limit.quantity.window());
        if let Some(window) = windows.max().filter(|window| *window > longest) {
            let cause =
                format!("no window of {window}, as `{name}` has, lies in a run of {longest}");
            let remedy = "shorten `in_every`, or lengthen `idle` under [quick] or [full]";
            draft.section.wrong(JUDGED_BY.name, cause, remedy);
        }
    }
}

fn on(section: &Section<'_>, defaults: Option<&Section<'_>>) -> On {
    ON.of(having(section, defaults, ON.name))
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
            let placed = placed.get(&task.name);
            let placing = placed.map_or(normal, |found| Some(found.value?.placing));
            task.placing = Some(placing?);
        }
        Some(task)
    };
    chosen.into_iter().filter_map(with_placing).collect()
}

/// The clients that take part, and their flows.
fn clients(
    section: &Section<'_>,
    scope: &Scope<'_>,
    defaults: Option<&Section<'_>>,
) -> Vec<ResolvedTask> {
    let owner = having(section, defaults, CLIENTS.name);
    let named = owner.and_then(|owner| Some((owner, owner.texts(CLIENTS.name, "[\"viewer\"]")?)));
    let Some((owner, texts)) = named else {
        return Vec::new();
    };
    let names = scope.networks.clients.iter();
    let names = names.map(|client| client.name.as_str());
    let chosen = chosen(owner, ("client", "name it once"), &texts, names);
    let chosen: Vec<usize> = chosen.into_iter().map(|(index, _)| index).collect();
    network::taking_part(owner, scope.networks, &chosen)
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

/// Whoever is released by another's end takes part with that one.
fn links_take_part(section: &Section<'_>, tasks: &[ResolvedTask]) {
    for task in tasks {
        let Some(before) = task.after() else { continue };
        if tasks.iter().all(|other| other.name != before) {
            let cause = format!(
                "`{}` takes part, and not `{before}`, whose end releases it",
                task.name
            );
            section.wrong("tasks", cause, "name both in `tasks`, or neither");
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
