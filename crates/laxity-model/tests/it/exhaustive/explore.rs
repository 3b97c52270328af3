//! All phasings of a set: the longest response times that there are.
//!
//! Time is discrete, so there are only so many: each task's first release at 0 to T, at least one at 0. A run is followed until nothing
//! is pending: what comes after that is the run of another phasing, which is tried too. Some tasks release one job a tick before all
//! others: so every region that can just have begun when the others are released, has. Floating regions lie where they hurt: at the
//! beginning of the jobs of all tasks but the one that is looked at (a region of its own cannot delay it), and nowhere in it and, by
//! fixed priority, in more urgent ones. Of jobs that are due at once, the one that is looked at comes last.
//!
//! With release jitter J the first job of a task is released J after it arrived, and all others as they arrive.

use core::cmp::Ordering;

use rand::RngExt;
use rand_pcg::Pcg64;

use crate::exhaustive::machine::{Dense, Job, Machine, Releases, Rule, Seen, Until, collect};
use crate::exhaustive::set::{Kind, MOST_TASKS, Spec, load};

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    FixedPriority,
    EarliestDeadline,
    FirstReleased,
}

/// The response times of all tasks.
pub(crate) type Responses = [Seen; MOST_TASKS];

/// Runs of a set that overloads the processor would not end.
const LONGEST_OVERLOADED_RUN: i32 = 240;

/// Runs of a set that leaves something of the processor end long before.
const LONGEST_RUN: i32 = 1 << 20;

/// A span that covers the longest busy window; or, if the set fills the processor, all that happens before it happens again.
pub(crate) fn horizon(specs: &[Spec]) -> i32 {
    let (busy, common) = load(specs);
    let late = specs.iter().map(|spec| spec.period + spec.jitter).max();
    // What may wait at one instant.
    let backlog = specs
        .iter()
        .map(|spec| (spec.jitter / spec.period + 1 + spec.burst) * spec.cost);
    match busy.cmp(&common) {
        Ordering::Less => LONGEST_RUN,
        Ordering::Equal => 2 * (common as u32 + late.unwrap_or(0) + backlog.sum::<u32>()) as i32,
        Ordering::Greater => LONGEST_OVERLOADED_RUN,
    }
}

/// The machine in which this task looks worst.
pub(crate) fn machine_against(specs: &[Spec], policy: Policy, unlucky: usize) -> Machine {
    let mut points = [u32::MAX; MOST_TASKS];
    for (index, spec) in specs.iter().enumerate() {
        let harmless = match policy {
            Policy::FixedPriority => index <= unlucky,
            Policy::EarliestDeadline => index == unlucky,
            Policy::FirstReleased => {
                // Each to its end.
                points[index] = 0;
                continue;
            }
        };
        if !(harmless && matches!(spec.kind, Kind::Floating { .. })) {
            points[index] = spec.points();
        }
    }
    let rule = match policy {
        Policy::FixedPriority => Rule::FixedPriority,
        Policy::EarliestDeadline => Rule::EarliestDeadline { unlucky },
        Policy::FirstReleased => Rule::FirstReleased { unlucky },
    };
    Machine::new(specs, points, rule)
}

/// Calls `f` with all offsets from 0 to T, one at least 0.
pub(crate) fn for_each_phasing(specs: &[Spec], mut f: impl FnMut([i32; MOST_TASKS])) {
    let mut offsets = [0; MOST_TASKS];
    loop {
        if offsets[..specs.len()].contains(&0) {
            f(offsets);
        }
        let mut index = 0;
        loop {
            if index == specs.len() {
                return;
            }
            offsets[index] += 1;
            if offsets[index] <= specs[index].period as i32 {
                break;
            }
            offsets[index] = 0;
            index += 1;
        }
    }
}

/// The set's jobs, as dense as they can be.
pub(crate) fn dense(specs: &[Spec], offsets: [i32; MOST_TASKS]) -> Dense {
    let mut dense = Dense {
        offsets,
        periods: [1; MOST_TASKS],
        bursts: [1; MOST_TASKS],
        late: [0; MOST_TASKS],
        skipping: None,
    };
    for (index, spec) in specs.iter().enumerate() {
        dense.periods[index] = spec.period as i32;
        dense.late[index] = spec.jitter as i32;
        dense.bursts[index] = spec.burst as i32;
    }
    dense
}

/// The task that begins alone, if its longest region is not at its beginning, and where it is.
fn alone(specs: &[Spec], offsets: [i32; MOST_TASKS]) -> Option<(usize, u32)> {
    let mut at_zero = (0..specs.len()).filter(|index| offsets[*index] == 0);
    let first = at_zero.next()?;
    let begins = specs[first].longest_begins();
    (at_zero.next().is_none() && begins > 0).then_some((first, begins))
}

/// The longest response times over all phasings, on a processor that is there where `supplied`.
pub(crate) fn worst(
    specs: &[Spec],
    policy: Policy,
    supplied: impl Fn(i32) -> bool,
    until: Until,
) -> Responses {
    let together = policy == Policy::FixedPriority
        && !specs
            .iter()
            .any(|spec| matches!(spec.kind, Kind::Floating { .. }));
    let mut all = Responses::default();
    let unlucky = if together {
        specs.len() - 1..specs.len()
    } else {
        0..specs.len()
    };
    for task in unlucky {
        let machine = machine_against(specs, policy, task);
        let mut seen = Responses::default();
        for_each_phasing(specs, |offsets| {
            let mut releases = dense(specs, offsets);
            machine.run(&releases, &supplied, until, collect(&mut seen));
            releases.skipping = alone(specs, offsets);
            if releases.skipping.is_some() {
                machine.run(&releases, &supplied, until, collect(&mut seen));
            }
            if policy == Policy::EarliestDeadline {
                // A job that is released less late is due later, which is not always to its good.
                for late in 0..specs[task].jitter {
                    releases.late[task] = late as i32;
                    machine.run(&releases, &supplied, until, collect(&mut seen));
                }
            }
        });
        if together {
            return seen;
        }
        all[task] = seen[task];
    }
    all
}

/// The longest response times over all phasings on a dedicated processor.
pub(crate) fn worst_dedicated(specs: &[Spec], policy: Policy) -> Responses {
    let until = Until {
        idle: true,
        horizon: horizon(specs),
    };
    worst(specs, policy, |_| true, until)
}

/// One run with jobs that are not as dense, as long or as regular as they might be.
pub(crate) fn sample(
    specs: &[Spec],
    policy: Policy,
    rng: &mut Pcg64,
    supplied: impl Fn(i32) -> bool,
    seen: &mut Responses,
) {
    const LENGTH: u32 = 120;
    let mut machine = machine_against(specs, policy, rng.random_range(0..specs.len()));
    let mut jobs: Vec<Vec<Job>> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        if let Kind::Floating { longest } = spec.kind {
            machine.points[index] = random_points(rng, longest);
        }
        jobs.push(random_jobs(rng, spec, LENGTH));
    }
    let until = Until {
        idle: false,
        horizon: 4 * LENGTH as i32,
    };
    machine.run(jobs.as_slice(), supplied, until, collect(seen));
}

/// Points with no more than so many units between them.
fn random_points(rng: &mut Pcg64, longest: u32) -> u32 {
    let (mut points, mut at) = (0, 0);
    while at < u32::BITS {
        at += rng.random_range(1..=longest);
        points |= 1_u32.checked_shl(at).unwrap_or(0);
    }
    points
}

fn random_jobs(rng: &mut Pcg64, spec: &Spec, length: u32) -> Vec<Job> {
    let (sparse, short, late) = (
        rng.random_range(0..3),
        rng.random_range(0..3) == 0,
        rng.random_range(0..2),
    );
    let mut arrival = rng.random_range(0..=spec.period);
    let mut release = 0;
    let (ahead, mut without_burst) = ((spec.burst - 1) * spec.period, 0);
    let mut jobs = Vec::new();
    while arrival < length {
        let jitter = match late {
            0 => rng.random_range(0..=spec.jitter),
            _ => spec.jitter * rng.random_range(0..=1),
        };
        // Jobs of a task are released in the order of their arrival.
        release = (arrival + jitter).max(release);
        let skipped = if short {
            rng.random_range(0..spec.cost)
        } else {
            0
        };
        jobs.push(Job {
            arrival: arrival as i32,
            release: release as i32,
            skipped,
        });
        let delay = if rng.random_range(0..4) < sparse {
            rng.random_range(0..=spec.period)
        } else {
            0
        };
        without_burst = arrival.max(without_burst) + spec.period;
        arrival = arrival.max(without_burst.saturating_sub(ahead)) + delay;
    }
    jobs
}

/// Whether the machine completes a job of this task, with this release and this deadline, too late.
pub(crate) fn misses(
    machine: &Machine,
    releases: &impl Releases,
    until: Until,
    task: usize,
    (release, due): (i32, i32),
) -> bool {
    let mut found = false;
    machine.run(
        releases,
        |_| true,
        until,
        |done| {
            let deadline = done.job.arrival + machine.deadlines[task];
            found |= done.task == task
                && done.job.release == release
                && deadline.max(0) == due
                && done.at > deadline;
        },
    );
    found
}
