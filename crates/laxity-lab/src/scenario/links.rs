//! What tasks on an executor have to do with each other: chains, by `after`, and `[groups.*]`.

use laxity_model::{Service, Span};

use super::keys::{Key, Other, Own, Table, Within, Without};
use super::kinds;
use super::periodic::{ON, PERIOD, PHASE};
use super::quantities::{SERVICE, SPAN};
use super::reader::{Entry, Found, Section};
use super::sections::{DURATIONS, NONE, Names, named};
use super::tasks::{SERVICES, Scope};
use super::types::{PeriodicRank, TaskGroup, TaskLinks, TurnPolicy};

pub(super) static AFTER: Key<Other> = Key::new(
    "after",
    &Own("the name of a periodic task on the same executor"),
    Without::Means("time releases it"),
    "The end of each job of that task releases one of this, which has its period; the executor's policy is `rmdp`.",
);
pub(super) static GROUP: Key<Other> = Key::new(
    "group",
    &Own("the name of a group"),
    NONE,
    "With whom it has a budget together. Its place among others is then that of its group, whose period counts as its deadline there; nothing is promised of it alone. The executor's policy is `rmdp`.",
);
static BUDGET: Key<Service> = Key::new(
    "budget",
    &Within(&SERVICE, SERVICES),
    Without::Refused("\"2ms\""),
    "What its tasks together get of each period at most, which is no shorter; what is over waits for the next, as does a quantum of which not all is left.",
);
static BUDGETS: Key<Span> = Key::new(
    "period",
    &Within(&SPAN, DURATIONS),
    Without::Refused("\"10ms\""),
    "From one budget to the next; its place among the other tasks of the executor.",
);
pub(super) static GROUP_KEYS: Table = Table {
    heading: "[groups.<name>]",
    kind: None,
    about: "A budget that tasks of one executor have together.",
    keys: &[&BUDGET, &BUDGETS],
};

/// `[groups.*]`.
pub(super) fn groups(root: &Section<'_>) -> Names<TaskGroup> {
    named(root, "groups", |section, name| {
        section.keyed([&GROUP_KEYS]);
        let (budget, period) = (section.find(&BUDGET), section.optional(&BUDGETS));
        let (budget, period) = (budget?, period?);
        if budget.value.as_dedicated_span() > period {
            let cause = format!("{} has a budget of more than its period", section.path);
            let remedy = "write a `budget` of no more than the `period`";
            section.findings.error(&budget.place, cause, remedy);
        }
        Some(TaskGroup {
            name: name.to_owned(),
            budget: budget.value,
            period,
        })
    })
}

/// The section of the first of the chain that a task is in: its own, where time releases it.
pub(super) fn first<'a>(section: &Section<'a>, scope: &Scope<'a>) -> Option<Section<'a>> {
    for key in [PERIOD.name, PHASE.name] {
        if section.has(AFTER.name) && section.has(key) {
            let cause = format!(
                "{} has `after` and `{key}`: the end of another one's job releases it, not time",
                section.path
            );
            let remedy = format!("remove `{key}`, or `after` where time is to release it");
            section.wrong(key, cause, remedy);
        }
    }
    let mut chain = vec![section.clone()];
    while let Some(at) = chain.last().filter(|at| at.has(AFTER.name)) {
        let (_, before) = before(at, scope)?;
        if chain.iter().any(|known| known.place == before.place) {
            // Who leads to a circle is not in it; and the first in the file tells of it.
            let is_own = before.place == section.place;
            let is_first = chain
                .iter()
                .all(|one| section.place.start <= one.place.start);
            if is_own && is_first {
                let cause = format!(
                    "{} comes after itself, so that nothing releases it",
                    section.path
                );
                let remedy =
                    "write a `period` in place of `after` for one of the tasks of this circle";
                section.wrong(AFTER.name, cause, remedy);
            }
            return None;
        }
        chain.push(before);
    }
    chain.pop()
}

/// The name of the task that another one comes after, and its section.
fn before<'a>(section: &Section<'a>, scope: &Scope<'a>) -> Option<(Found<&'a str>, Section<'a>)> {
    let name = section.text(AFTER.name, "the name of a task", "decode")?;
    let tasks = scope.tasks.as_ref()?;
    let entries = tasks.entries();
    let is_it = |entry: &&Entry<'_>| entry.name.value == name.value;
    let Some(entry) = entries.iter().find(is_it) else {
        let names = entries.iter().map(|entry| entry.name.value);
        section.findings.unknown("task", &name, names);
        return None;
    };
    let before = tasks.child(
        entry,
        &format!("[tasks.{}]", super::reader::shortened(name.value)),
    )?;
    let kind = before
        .value("kind")
        .and_then(|kind| kind.get_ref().as_str());
    if kind.is_some_and(|kind| kind != kinds::PERIODIC.name) {
        let cause = format!(
            "`{}` is no periodic task, and has no jobs that end",
            name.value
        );
        let remedy = format!("name a task of kind = \"{}\"", kinds::PERIODIC.name);
        section.wrong(AFTER.name, cause, remedy);
        return None;
    }
    Some((name, before))
}

/// What a task has to do with others, which is on this executor or none, and whose quantum takes so much.
pub(super) fn links(
    section: &Section<'_>,
    scope: &Scope<'_>,
    (rank, quantum): (&PeriodicRank, Service),
) -> Option<TaskLinks> {
    for key in [AFTER.name, GROUP.name] {
        let (cause, remedy) = match rank {
            _ if !section.has(key) => continue,
            PeriodicRank::On(executor) if executor.policy != TurnPolicy::RateMonotonic => (
                format!(
                    "`{key}` needs an executor whose order is by rate, and `{}` is not",
                    executor.name
                ),
                format!(
                    "write policy = \"rmdp\" under [executors.{}]",
                    executor.name
                ),
            ),
            PeriodicRank::On(_) => continue,
            _ => (
                format!(
                    "`{key}` is for tasks that take turns, and {} has a thread of its own",
                    section.path
                ),
                "remove it, or put the task on an executor".to_owned(),
            ),
        };
        section.wrong(key, cause, remedy);
    }
    let after = match section.has(AFTER.name) {
        true => Some(after(section, scope)?),
        false => None,
    };
    let group = match section.has(GROUP.name) {
        true => Some(group(section, scope, quantum)?),
        false => None,
    };
    Some(TaskLinks { after, group })
}

/// The one that it comes after, which is on the same executor and in no group.
fn after(section: &Section<'_>, scope: &Scope<'_>) -> Option<String> {
    let (name, before) = before(section, scope)?;
    let [own, other] = [section, &before].map(|one| one.value(ON.name));
    let [own, other] = [own, other].map(|on| on.and_then(|on| on.get_ref().as_str()));
    if own.is_some() && own != other {
        let where_to = other.map_or("has a thread of its own".to_owned(), |on| {
            format!("is on `{on}`")
        });
        let cause = format!(
            "{} comes after `{}`, which {where_to}",
            section.path, name.value
        );
        section.wrong(AFTER.name, cause, "put both on one executor");
    }
    if section.has(GROUP.name) || before.has(GROUP.name) {
        let cause = "a chain has no bound where one of it shares a budget";
        section.wrong(AFTER.name, cause, "remove `after` here, or `group` of both");
    }
    Some(name.value.to_owned())
}

/// The group that it is in, with others of its executor only.
fn group(section: &Section<'_>, scope: &Scope<'_>, quantum: Service) -> Option<TaskGroup> {
    let name = section.text(GROUP.name, "the name of a group", "media")?;
    let mut groups = scope.groups.iter();
    let Some(declared) = groups.find(|declared| declared.name == name.value) else {
        let names = scope.groups.iter().map(|declared| declared.name.as_str());
        section.findings.unknown("group", &name, names);
        return None;
    };
    let group = declared.value.clone()?;
    if quantum > group.budget {
        let cause = format!(
            "a quantum of {} takes {quantum}, and its group has {} a period",
            section.path, group.budget
        );
        let remedy = "write a smaller `quantum`, or a larger `budget` of the group";
        section.wrong(GROUP.name, cause, remedy);
    }
    let text = |one: &Section<'_>, key: &str| one.value(key)?.get_ref().as_str().map(str::to_owned);
    let tasks = scope.tasks.as_ref()?;
    let others = tasks.entries().into_iter();
    let others = others.filter_map(|entry| tasks.child(&entry, entry.name.value));
    let mut others = others.filter(|one| text(one, GROUP.name).as_deref() == Some(name.value));
    if let Some(other) = others.find(|one| text(one, ON.name) != text(section, ON.name)) {
        let cause = format!(
            "`{}` is in the group `{}`, too, and on no executor with {}",
            other.path, name.value, section.path
        );
        let remedy = "put all tasks of a group on one executor";
        section.wrong(GROUP.name, cause, remedy);
    }
    Some(group)
}
