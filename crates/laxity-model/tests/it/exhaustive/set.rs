//! Small sets of tasks: made at random from a seed, and made smaller where one of them fails.

use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Service, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// The largest sets that are tried.
pub(crate) const MOST_TASKS: usize = 4;

/// How many tasks there are, and for each number of tasks the longest period: what all phasings of a set cost grows with T to the n.
const LONGEST_PERIOD: [u32; MOST_TASKS + 1] = [0, 12, 12, 12, 8];

/// One set in so many has periods up to [`LONGEST_OF_ALL`] with four tasks, too.
const LARGE_ONE_IN: u32 = 24;
const LONGEST_OF_ALL: u32 = 12;

/// Where a job may be preempted: a [`Preemption`] in plain numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Anywhere,
    Floating { longest: u32 },
    Fixed { longest: u32, last: u32 },
    Never,
}

/// A task in plain numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spec {
    pub(crate) cost: u32,
    pub(crate) period: u32,
    pub(crate) deadline: u32,
    pub(crate) jitter: u32,
    pub(crate) burst: u32,
    pub(crate) kind: Kind,
}

impl Spec {
    /// Due at the end of its period, released as it arrives, preemptible anywhere.
    pub(crate) const fn new(cost: u32, period: u32) -> Self {
        Self {
            cost,
            period,
            deadline: period,
            jitter: 0,
            burst: 1,
            kind: Kind::Anywhere,
        }
    }

    /// As the library wants it.
    pub(crate) fn task(&self) -> Task {
        let service = |ticks: u32| Service::from_nanos(ticks.into());
        let span = |ticks: u32| Span::from_nanos(ticks.into());
        let preemption = match self.kind {
            Kind::Anywhere => Preemption::Anywhere,
            Kind::Floating { longest } => Preemption::Floating {
                longest: service(longest),
            },
            Kind::Fixed { longest, last } => Preemption::Fixed {
                longest: service(longest),
                last: service(last),
            },
            Kind::Never => Preemption::Never,
        };
        Task::new(service(self.cost), span(self.period))
            .and_then(|task| task.with_deadline(span(self.deadline)))
            .map(|task| task.with_jitter(span(self.jitter)))
            .map(|task| task.with_burst(u64::from(self.burst).try_into().expect("one at least")))
            .and_then(|task| task.with_preemption(preemption))
            .expect("a task")
    }

    /// Before which units of a job's work it may be preempted, as bits, if its regions lie as `Fixed` regions do: the longest first, the
    /// rest in pieces no longer than that, the last one last. Floating regions lie at the beginning here: with the longest first.
    pub(crate) fn points(&self) -> u32 {
        match self.kind {
            Kind::Anywhere => u32::MAX,
            Kind::Never => 0,
            Kind::Floating { longest } => !((1 << longest) - 1),
            Kind::Fixed { longest, last } => {
                let (mut points, mut at) = (0, 0);
                let last_begins = self.cost - last;
                while at < last_begins {
                    at = (at + longest).min(last_begins);
                    points |= 1 << at;
                }
                points
            }
        }
    }

    /// Whether its longest region is a part of it that lies at a known place: whether that can be met with just begun is not always said.
    pub(crate) const fn is_cut(&self) -> bool {
        matches!(self.kind, Kind::Fixed { longest, .. } if longest < self.cost)
    }

    /// After how many units the longest region begins.
    pub(crate) const fn longest_begins(&self) -> u32 {
        match self.kind {
            Kind::Fixed { longest, last } if self.cost - last < longest => self.cost - last,
            _ => 0,
        }
    }
}

/// The tasks as the library wants them.
pub(crate) fn tasks(specs: &[Spec]) -> Vec<Task> {
    specs.iter().map(Spec::task).collect()
}

/// All periods divide this; small for small periods.
pub(crate) fn hyperperiod(specs: &[Spec]) -> u64 {
    specs.iter().fold(1, |common, spec| {
        common / gcd(common, spec.period.into()) * u64::from(spec.period)
    })
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How much of the processor these need, in parts of the set's hyperperiod: less than, exactly or more than one.
pub(crate) fn load(specs: &[Spec]) -> (u64, u64) {
    let common = hyperperiod(specs);
    let busy = specs
        .iter()
        .map(|spec| u64::from(spec.cost) * (common / u64::from(spec.period)));
    (busy.sum(), common)
}

/// What a set's tasks have in common.
#[derive(Clone, Copy)]
struct Style {
    longest_period: u32,
    regions: u32,
    jitter: bool,
    bursts: bool,
    deadlines: u32,
    sorted: bool,
}

/// The set of this seed: 1 to `most` tasks, U ≤ 1 (one set in 16 more).
pub(crate) fn set(seed: u64, most: usize) -> Vec<Spec> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let count = rng.random_range(1..=most);
    let longest_period = match rng.random_range(0..LARGE_ONE_IN) {
        0 => LONGEST_OF_ALL,
        _ => LONGEST_PERIOD[count],
    };
    let style = Style {
        longest_period,
        regions: rng.random_range(0..10),
        jitter: rng.random_range(0..5) == 0,
        deadlines: rng.random_range(0..4),
        sorted: rng.random_range(0..4) != 0,
        bursts: rng.random_range(0..6) == 0,
    };
    let overloaded = rng.random_range(0..16) == 0;
    loop {
        let mut specs: Vec<Spec> = (0..count).map(|_| spec(&mut rng, style, count)).collect();
        if style.sorted {
            specs.sort_by_key(|spec| (spec.period, spec.deadline));
        }
        let (busy, common) = load(&specs);
        if overloaded || busy <= common {
            return specs;
        }
    }
}

fn spec(rng: &mut Pcg64, style: Style, count: usize) -> Spec {
    let period = rng.random_range(1..=style.longest_period);
    let share = if count == 1 { 1 } else { 2 };
    let mut spec = Spec::new(rng.random_range(1..=period.div_ceil(share)), period);
    spec.deadline = match style.deadlines {
        0 => period,
        1 => rng.random_range(spec.cost.min(period)..=period),
        2 => rng.random_range(1..=period),
        _ => rng.random_range(1..=2 * period),
    };
    if style.jitter && rng.random_range(0..2) == 0 {
        spec.jitter = rng.random_range(1..=period + period / 2);
    }
    spec.kind = kind(rng, style.regions, spec.cost);
    if style.bursts && rng.random_range(0..2) == 0 {
        spec.burst = rng.random_range(2..=3);
    }
    spec
}

fn kind(rng: &mut Pcg64, style: u32, cost: u32) -> Kind {
    let kind = match style {
        0..=3 => 0,
        4 => 1,
        5 | 6 => 2,
        7 => 3,
        _ => rng.random_range(0..4),
    };
    match kind {
        0 => Kind::Anywhere,
        1 => Kind::Floating {
            longest: rng.random_range(1..=cost),
        },
        2 => {
            // The longest region must be there: the last one, or one before it.
            let last = rng.random_range(1..=cost);
            let longest = rng.random_range(last..=last.max(cost - last));
            Kind::Fixed { longest, last }
        }
        _ => Kind::Never,
    }
}

/// A least set that `fails`: no task less, no number smaller, no region simpler.
pub(crate) fn shrink(mut specs: Vec<Spec>, fails: impl Fn(&[Spec]) -> bool) -> Vec<Spec> {
    loop {
        let found = smaller(&specs).find(|specs| fails(specs));
        match found {
            Some(smaller) => specs = smaller,
            None => return specs,
        }
    }
}

/// Sets that are a step smaller.
fn smaller(specs: &[Spec]) -> impl Iterator<Item = Vec<Spec>> {
    let without = (0..specs.len()).filter(|_| specs.len() > 1).map(|index| {
        let mut rest = specs.to_vec();
        rest.remove(index);
        rest
    });
    let with_one_less = (0..specs.len()).flat_map(move |index| {
        simpler(specs[index]).into_iter().map(move |spec| {
            let mut changed = specs.to_vec();
            changed[index] = spec;
            changed
        })
    });
    without.chain(with_one_less)
}

/// The same task with one thing less.
fn simpler(spec: Spec) -> Vec<Spec> {
    let kinds = simpler_kinds(spec);
    let with_kind = |kind| Spec { kind, ..spec };
    let shorter = spec.period - 1;
    let mut out: Vec<Spec> = kinds.into_iter().map(with_kind).collect();
    out.extend([
        Spec { jitter: 0, ..spec },
        Spec { burst: 1, ..spec },
        Spec {
            jitter: spec.jitter.saturating_sub(1),
            ..spec
        },
        Spec {
            cost: spec.cost - 1,
            ..spec
        },
        Spec {
            deadline: spec.period,
            ..spec
        },
        Spec {
            period: shorter,
            ..spec
        },
        Spec {
            period: shorter,
            deadline: shorter,
            ..spec
        },
    ]);
    if spec.deadline != spec.period {
        out.push(Spec {
            deadline: spec.deadline - 1,
            ..spec
        });
    }
    out.retain(|simpler| *simpler != spec && is_task(*simpler));
    out
}

fn simpler_kinds(spec: Spec) -> Vec<Kind> {
    let mut kinds = vec![Kind::Anywhere];
    match spec.kind {
        Kind::Anywhere => {}
        Kind::Never => kinds.push(Kind::Floating { longest: spec.cost }),
        Kind::Floating { longest } => kinds.push(Kind::Floating {
            longest: longest - 1,
        }),
        Kind::Fixed { longest, last } => kinds.extend([
            Kind::Fixed {
                longest: longest - 1,
                last,
            },
            Kind::Fixed {
                longest: longest - 1,
                last: last - 1,
            },
            Kind::Fixed {
                longest,
                last: last - 1,
            },
        ]),
    }
    kinds
}

/// Whether these numbers are a task, with a longest region that is there.
fn is_task(spec: Spec) -> bool {
    let fits = match spec.kind {
        Kind::Anywhere | Kind::Never => true,
        Kind::Floating { longest } => (1..=spec.cost).contains(&longest),
        Kind::Fixed { longest, last } => {
            (1..=spec.cost).contains(&last)
                && (last..=last.max(spec.cost - last)).contains(&longest)
        }
    };
    fits && spec.cost > 0 && spec.period > 0 && spec.deadline > 0
}
