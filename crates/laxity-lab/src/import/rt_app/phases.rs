//! Phases that are scheduled otherwise than their thread, of which nothing is analysed.
//!
//! rt-app does what a phase says of its scheduling when the phase begins, and leaves what it says nothing of as the phases before made it. But where a phase
//! names a policy, the rest has rt-app's defaults and not the thread's; and so has a reservation of which it names a part.

use std::collections::BTreeSet;

use jsonc_parser::ast::{Object, ObjectProp};

use super::{Class, File, Wrong, bytes};
use crate::import::Policy;

/// What a reservation is made of.
const RESERVATION: [&str; 3] = ["dl-runtime", "dl-period", "dl-deadline"];

/// What a phase may say only as its thread does, word by word; rt-app does not look for the two old spellings in phases, and older ones did not know phases.
const ALIKE: [&str; 10] = [
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
    "util_min",
    "util_max",
    "nodes_membind",
    "membind_nodes",
    "taskgroup",
];

/// How a thread is scheduled that is not scheduled in one way.
pub(super) struct Otherwise {
    /// Which key says so.
    pub(super) why: String,
    /// What it may be at most.
    pub(super) policy: Policy,
    /// Whether it is on other processors in a phase.
    pub(super) moves: bool,
}

/// What an object says of its scheduling, each key once. It may have any number of events beside that, which nobody is to go through again for each
/// phase.
struct Said<'a, 't>(Vec<&'a ObjectProp<'t>>);

impl<'a, 't> Said<'a, 't> {
    fn by(object: &'a Object<'t>) -> Self {
        let mut said = Self(Vec::new());
        for property in &object.properties {
            let key = property.name.as_str();
            let is_meant = ALIKE.contains(&key) || ["policy", "priority", "cpus"].contains(&key);
            if is_meant && said.get(key).is_none() {
                said.0.push(property);
            }
        }
        said
    }

    fn get(&self, key: &str) -> Option<&'a ObjectProp<'t>> {
        let mut all = self.0.iter();
        all.find(|property| property.name.as_str() == key).copied()
    }

    /// A value, as it is written.
    fn word<'s>(&self, file: File<'s>, key: &str) -> Option<&'s str> {
        file.source.text.get(bytes(&self.get(key)?.value))
    }
}

/// A thread, and how it is scheduled by its own object.
struct Thread<'a, 't> {
    said: Said<'a, 't>,
    class: Class,
    processors: Result<BTreeSet<u16>, Wrong>,
}

/// Whether some phase of a thread is scheduled otherwise than the thread's own object says.
///
/// # Errors
///
/// For a policy, a priority or processors that there are not.
pub(super) fn otherwise(
    file: File<'_>,
    object: &Object<'_>,
    class: Class,
) -> Result<Option<Otherwise>, Wrong> {
    let said = Said::by(object);
    let processors = said
        .get("cpus")
        .map_or(Ok(BTreeSet::new()), |own| file.processors(&own.value));
    let thread = Thread {
        said,
        class,
        processors,
    };
    let mut now = class;
    let mut has_reserved = class == Class::Deadline;
    let mut level = match class {
        Class::Fixed => Some(file.level(thread.said.get("priority"))?),
        Class::Timesharing | Class::Deadline => None,
    };
    let (mut why, mut moves) = (None, false);
    let phases = object.get("phases");
    let phases = phases.and_then(|phases| phases.value.as_object());
    for phase in phases.into_iter().flat_map(|phases| &phases.properties) {
        let Some(phase) = phase.value.as_object() else {
            continue;
        };
        let phase = Said::by(phase);
        if let Some(policy) = phase.get("policy") {
            now = file.class(&policy.value)?;
        }
        has_reserved |= now == Class::Deadline;
        if now == Class::Fixed
            && ["policy", "priority"]
                .iter()
                .any(|key| phase.get(key).is_some())
        {
            level = level.max(Some(file.level(phase.get("priority"))?));
        }
        for property in &phase.0 {
            if thread.is_contradicted(file, &phase, (property, now))? {
                let (key, line) = (property.name.as_str(), file.line(&property.name));
                moves |= key == "cpus";
                why.get_or_insert_with(|| {
                    format!(
                        "`{key}` in line {line} has a phase scheduled otherwise than its thread"
                    )
                });
            }
        }
    }
    let policy = match level {
        _ if has_reserved => Policy::Changing(None),
        Some(_) => Policy::Changing(level),
        None => Policy::Timesharing,
    };
    Ok(why.map(|why| Otherwise { why, policy, moves }))
}

/// Why a reservation is not what its thread's object seems to say: rt-app looks for an old spelling only where it found nothing in the new ones, and
/// takes the runtime for a period that is left out, and the period for a deadline.
pub(super) fn unread(file: File<'_>, object: &Object<'_>, class: Class) -> Option<String> {
    let is_new = |keys: &[&str]| keys.iter().any(|key| object.get(key).is_some());
    let pairs = [
        ("period", &RESERVATION[1..2], &RESERVATION[..1]),
        ("deadline", &RESERVATION[2..], &RESERVATION[..2]),
    ];
    let mut unread = pairs.into_iter().filter_map(|(old, new, before)| {
        let found = object.get(old)?;
        (!is_new(new) && is_new(before)).then_some((old, found))
    });
    let (old, found) = unread.next().filter(|_| class == Class::Deadline)?;
    let line = file.line(&found.name);
    Some(format!(
        "`{old}` in line {line} is of an older rt-app, and not read beside `dl-runtime` or `dl-period`; write `dl-{old}`"
    ))
}

impl Thread<'_, '_> {
    /// Whether a phase that is scheduled by this class has this key with another meaning than the thread.
    fn is_contradicted(
        &self,
        file: File<'_>,
        phase: &Said<'_, '_>,
        (property, now): (&ObjectProp<'_>, Class),
    ) -> Result<bool, Wrong> {
        let key = property.name.as_str();
        let sets = match self.class {
            Class::Timesharing | Class::Fixed => ["policy", "priority"].contains(&key),
            Class::Deadline => {
                let besides = ["policy", "priority", "util_min", "util_max"];
                RESERVATION.contains(&key) || besides.contains(&key)
            }
        };
        if sets && (now != self.class || !self.is_restated(file, phase)?) {
            return Ok(true);
        }
        if key == "cpus" {
            let own = self.processors.as_ref().map_err(Clone::clone)?;
            return Ok(file.processors(&property.value)? != *own);
        }
        Ok(ALIKE.contains(&key) && phase.word(file, key) != self.said.word(file, key))
    }

    /// Whether what a phase of the thread's own class says of its place there is what the thread says.
    fn is_restated(&self, file: File<'_>, phase: &Said<'_, '_>) -> Result<bool, Wrong> {
        Ok(match self.class {
            Class::Timesharing => {
                let nice = |said: &Said<'_, '_>| said.word(file, "priority").unwrap_or("0");
                nice(phase) == nice(&self.said)
            }
            Class::Fixed => {
                file.level(phase.get("priority"))? == file.level(self.said.get("priority"))?
            }
            Class::Deadline => {
                let is_alike = |key| phase.word(file, key) == self.said.word(file, key);
                phase.get(RESERVATION[0]).is_some() && RESERVATION.into_iter().all(is_alike)
            }
        })
    }
}
