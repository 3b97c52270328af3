//! Threads of `SCHED_DEADLINE` on one processor: bounds against servers that wake by the kernel's rule, and what has no margin.

mod timesharing;

use laxity_lab::import::{Format, TaskSet, read};
use laxity_lab::plan::set::{Options, plan};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::plans::only;
use crate::random_sets::cases;

/// Not observed: no budget is run in the twin.
fn unobserved() -> Options {
    Options {
        observe: false,
        ..Options::default()
    }
}

/// X every Y due in D, and so much every so often; in microseconds.
#[derive(Clone, Copy, Debug)]
struct Thread {
    runtime: u64,
    period: u64,
    deadline: u64,
    run: u64,
    every: u64,
}

/// X of one of a fixed priority: like a server whose budgets are never used up and due after all others.
const BELOW: u64 = 1_000_000_000;

fn below(run: u64, every: u64) -> Thread {
    Thread {
        runtime: BELOW,
        period: BELOW,
        deadline: BELOW,
        run,
        every,
    }
}

fn set_of(threads: &[Thread]) -> TaskSet {
    let tasks = threads.iter().enumerate().map(|(number, thread)| {
        let Thread { runtime, period, deadline, run, every } = thread;
        if *runtime == BELOW {
            return format!(
                r#""d{number}": {{ "policy": "SCHED_FIFO", "priority": 50, "run": {run}, "timer": {{ "ref": "unique", "period": {every} }} }}"#
            );
        }
        format!(
            r#""d{number}": {{ "policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "dl-deadline": {deadline}, "run": {run}, "timer": {{ "ref": "unique", "period": {every} }} }}"#
        )
    });
    let tasks = tasks.collect::<Vec<_>>().join(", ");
    let text = format!(r#"{{ "tasks": {{ {tasks} }} }}"#);
    read(&text, "x.json", Format::RtApp).expect("a task set")
}

/// A thread and its server as the kernel has it (`update_dl_entity`, `dl_check_constrained_dl`, `replenish_dl_entity`), on a machine that takes
/// nothing; in nanoseconds.
struct Server {
    of: Thread,
    budget: i64,
    /// When the budget is; zero before the first one.
    due: u64,
    /// Until when it is throttled.
    until: Option<u64>,
    /// When the job at hand, or the next, is released.
    release: u64,
    /// What is left of the job at hand; none where it sleeps.
    left: u64,
    longest: u64,
}

/// Of a microsecond.
const NANOS: u64 = 1_000;

impl Server {
    fn new(of: Thread, release: u64) -> Self {
        let [runtime, period, deadline, run, every] =
            [of.runtime, of.period, of.deadline, of.run, of.every].map(|us| us * NANOS);
        let of = Thread {
            runtime,
            period,
            deadline,
            run,
            every,
        };
        let (release, due, longest) = (release * NANOS, 0, 0);
        Self {
            of,
            budget: 0,
            due,
            until: None,
            release,
            left: 0,
            longest,
        }
    }

    fn next_period(&self) -> u64 {
        self.due + self.of.period - self.of.deadline
    }

    fn renew(&mut self, now: u64) {
        (self.due, self.budget) = (now + self.of.deadline, self.of.runtime.cast_signed());
    }

    /// The thread wakes.
    fn wake(&mut self, now: u64) {
        self.left = self.of.run;
        if self.due == 0 {
            return self.renew(now);
        }
        if self.until.is_some() {
            return;
        }
        let is_constrained = self.of.deadline < self.of.period;
        if is_constrained && self.due < now && now < self.next_period() {
            (self.until, self.budget) = (Some(self.next_period()), 0);
            return;
        }
        if self.due < now {
            return self.renew(now);
        }
        let (rest, budget) = (self.due - now, self.budget.cast_unsigned());
        if u128::from(budget) * u128::from(self.of.deadline)
            <= u128::from(rest) * u128::from(self.of.runtime)
        {
            return;
        }
        match is_constrained {
            true => self.budget = (rest * self.of.runtime / self.of.deadline).cast_signed(),
            false => self.renew(now),
        }
    }

    /// The timer of one that is throttled.
    fn replenish(&mut self, now: u64) {
        self.until = None;
        while self.budget <= 0 {
            self.due += self.of.period;
            self.budget += self.of.runtime.cast_signed();
        }
        if self.due < now {
            self.renew(now);
        }
    }

    fn run(&mut self, now: u64, nanos: u64) {
        self.left -= nanos;
        self.budget -= nanos.cast_signed();
        if self.budget <= 0 {
            self.until = Some(self.next_period());
        }
        if self.left == 0 {
            self.longest = self.longest.max(now - self.release);
            self.release += self.of.every;
            // Who is late does not sleep.
            if self.release <= now {
                self.left = self.of.run;
            }
        }
    }
}

/// The longest response of each thread, in nanoseconds, if their first jobs come then.
fn simulated(threads: &[Thread], releases: &[u64], length: u64) -> Vec<u64> {
    let pairs = threads.iter().zip(releases);
    let mut servers: Vec<Server> = pairs.map(|(of, at)| Server::new(*of, *at)).collect();
    let mut now = 0;
    while now < length * NANOS {
        for server in &mut servers {
            if server.until.is_some_and(|until| until <= now) {
                server.replenish(now);
            }
            if server.left == 0 && server.release <= now {
                server.wake(now);
            }
        }
        let events = servers.iter().flat_map(|server| {
            let wakes = Some(server.release).filter(|_| server.left == 0);
            wakes.into_iter().chain(server.until)
        });
        let next = events
            .filter(|at| *at > now)
            .min()
            .unwrap_or(length * NANOS);
        let ready = servers
            .iter_mut()
            .filter(|one| one.left > 0 && one.until.is_none());
        let Some(first) = ready.min_by_key(|server| server.due) else {
            now = next;
            continue;
        };
        if first.budget <= 0 {
            first.until = Some(first.next_period());
            continue;
        }
        let nanos = (next - now)
            .min(first.left)
            .min(first.budget.cast_unsigned());
        now += nanos;
        first.run(now, nanos);
    }
    servers.iter().map(|server| server.longest).collect()
}

const TWO: [Thread; 2] = [
    Thread {
        runtime: 2_000,
        period: 6_000,
        deadline: 6_000,
        run: 2_000,
        every: 6_000,
    },
    Thread {
        runtime: 2_000,
        period: 10_000,
        deadline: 10_000,
        run: 1_000,
        every: 5_000,
    },
];

/// The second one wakes at 5 ms with 1 ms left of a budget that is due at 10 ms, and goes before the first, which came at 4.5 ms and is due at 10.5 ms.
#[test]
fn who_goes_on_with_an_old_budget_goes_before_others() {
    let seen = simulated(&TWO, &[4_500, 0], 60_000);
    assert_eq!(seen[0], 3_000_000);
    let found = only(&set_of(&TWO), &unobserved());
    let bound = found.lines[0].bound_ns.expect("a bound");
    assert!(bound >= seen[0], "{bound}");
    assert_eq!(bound, 6_000_000);
    // With a timer no shorter than the budget's period each job has a budget of its own.
    let [first, second] = TWO;
    let alone = [
        first,
        Thread {
            every: 10_000,
            ..second
        },
    ];
    let found = only(&set_of(&alone), &unobserved());
    let bounds: Vec<_> = found.lines.iter().map(|line| line.bound_ns).collect();
    assert_eq!(bounds, [Some(2_000_000), Some(4_000_000)]);
}

/// Each job of the first has a budget of its own, and no two of those lie back to back.
#[test]
fn who_is_below_a_budget_waits_for_one_a_job() {
    let [first, second] = [
        Thread {
            runtime: 2_000,
            period: 10_000,
            deadline: 10_000,
            run: 2_000,
            every: 10_000,
        },
        below(1_000, 4_000),
    ];
    let of = |first: Thread| only(&set_of(&[first, second]), &unobserved());
    let found = of(first);
    let bound = |name: &str| {
        let mut lines = found.lines.iter();
        lines
            .find(|line| line.name == name)
            .expect("its line")
            .bound_ns
    };
    assert!(found.admitted);
    assert_eq!(
        [bound("d0"), bound("d1")],
        [Some(2_000_000), Some(3_000_000)]
    );
    let seen = simulated(&[first, second], &[0, 0], 60_000);
    assert_eq!(seen, [2_000_000, 3_000_000]);
    // Of one that may begin with a part of a budget two may lie there, and both are told.
    let cut = of(Thread {
        deadline: 9_500,
        every: 12_000,
        ..first
    });
    let bottleneck = cut.bottleneck.expect("the second is the closest");
    assert_eq!(bottleneck.contributor.as_deref(), Some("d0"));
    assert_eq!(bottleneck.contribution_ns, 4_000_000);
}

/// Budgets that are due before their periods end may be more than there is where one of them is gone on with, however they look when each is released whole.
#[test]
fn who_goes_on_with_an_old_budget_may_make_others_late() {
    let tight = Thread {
        runtime: 4_000,
        period: 20_000,
        deadline: 4_500,
        run: 3_900,
        every: 20_000,
    };
    let other = Thread {
        runtime: 4_000,
        period: 10_000,
        deadline: 10_000,
        run: 1_000,
        every: 5_000,
    };
    let found = only(&set_of(&[tight, other]), &unobserved());
    assert!(!found.admitted);
    let why = found.lines[0].no_bound.as_deref().expect("none is known");
    assert!(
        why.contains("`d1` may wake before its last budget is due"),
        "{why}"
    );
    let whole = Thread {
        every: 10_000,
        ..other
    };
    assert!(only(&set_of(&[tight, whole]), &unobserved()).admitted);
}

/// Up to three threads whose timers are as long as their budgets' periods, longer or shorter, and whose jobs are a part of a budget or all of one.
fn random(random: &mut Pcg64Mcg) -> Vec<Thread> {
    let count = random.random_range(1..=3);
    let threads = (0..count).map(|_| {
        let period = 1_000 * random.random_range(2..=12_u64);
        let runtime = random.random_range(200..=period * 9 / 10 / count);
        let deadline = match random.random_range(0..3) {
            0 => random.random_range(runtime..=period),
            _ => period,
        };
        let run = match random.random_range(0..3) {
            0 => runtime,
            _ => random.random_range(100..=runtime),
        };
        let every = match random.random_range(0..3) {
            0 => period,
            1 => period + 500 * random.random_range(1..=6_u64),
            _ => (period * random.random_range(3..=9_u64) / 10).max(1_000),
        };
        Thread {
            runtime,
            period,
            deadline,
            run,
            every,
        }
    });
    threads.collect()
}

#[test]
fn servers_of_the_kernel_keep_their_bounds() {
    let (mut compared, mut resuming, mut reached) = (0, 0, 0);
    for seed in 0..4 * cases() {
        let mut source = Pcg64Mcg::seed_from_u64(seed);
        let mut threads = random(&mut source);
        if seed % 2 == 0 {
            let run = source.random_range(100..=2_000);
            threads.push(below(run, 500 * source.random_range(2..=24_u64)));
        }
        let found = only(&set_of(&threads), &unobserved());
        let bound = |number: usize| {
            let mut lines = found.lines.iter();
            let line = lines.find(|line| line.name == format!("d{number}"));
            line.expect("its line").bound_ns
        };
        let bounds: Vec<Option<u64>> = (0..threads.len()).map(bound).collect();
        if bounds.iter().all(Option::is_none) {
            continue;
        }
        for _ in 0..4 {
            let releases = threads
                .iter()
                .map(|of| 500 * source.random_range(0..of.every / 500));
            let seen = simulated(&threads, &releases.collect::<Vec<_>>(), 300_000);
            for (bound, seen) in bounds.iter().zip(&seen) {
                let is_within = bound.is_none_or(|bound| *seen <= bound);
                assert!(is_within, "seed {seed}: {bounds:?} {seen} of {threads:?}");
                compared += u64::from(bound.is_some());
            }
            let is_below = threads.last().is_some_and(|of| of.runtime == BELOW);
            reached += u64::from(
                is_below && bounds.last() == seen.last().map(|seen| Some(*seen)).as_ref(),
            );
        }
        resuming += u64::from(threads.iter().any(|of| of.every < of.period));
    }
    println!(
        "{compared} bounds compared, in {resuming} sets with who goes on with old budgets; {reached} of who is below reached"
    );
    assert!(
        compared > 4 * cases() && resuming > cases() / 2 && reached > 0,
        "{compared}, {resuming}, {reached}"
    );
}

/// Used up at the end of the job, the budget is filled up when its period ends, with a deadline 60 ms after the next job: 8.571 ms of it are left to that.
#[test]
fn a_job_that_is_all_of_its_budget_has_no_margin() {
    let full = Thread {
        runtime: 10_000,
        period: 80_000,
        deadline: 70_000,
        run: 10_000,
        every: 90_000,
    };
    let seen = simulated(&[full], &[0], 2_000_000);
    assert!(seen[0] > 70_000_000, "{seen:?}");
    let said = "`d0` has no margin: its job is all of its budget";
    for (thread, is_noted, bound_ns) in [
        (full, true, None),
        (Thread { run: 9_999, ..full }, false, Some(10_000_000)),
        (
            Thread {
                every: 80_000,
                ..full
            },
            true,
            // One that comes a little late is cut as well.
            None,
        ),
        (
            Thread {
                deadline: 80_000,
                ..full
            },
            true,
            Some(10_000_000),
        ),
    ] {
        let set = set_of(&[thread]);
        let plan = plan(&set, &unobserved()).expect("a plan");
        let is_said = plan.notes.iter().any(|note| note.starts_with(said));
        assert_eq!(is_said, is_noted, "{thread:?} {:?}", plan.notes);
        let line = &plan.processors[0].lines[0];
        assert_eq!(line.bound_ns, bound_ns, "{thread:?}");
        assert_eq!(plan.admitted, bound_ns.is_some(), "{thread:?}");
        if let Some(bound) = bound_ns {
            let seen = simulated(&[thread], &[0], 2_000_000);
            assert!(seen[0] <= bound, "{thread:?} {seen:?}");
        }
    }
}

/// Behind a sleep it has a new budget where it has much of the old one, and so may go behind others for the rest of its job.
#[test]
fn who_sleeps_within_its_jobs_has_no_bound_by_its_budget() {
    let reserved = |runtime: u32, period: u32, does: &str| {
        format!(
            r#""policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, {does}, "timer": {{ "ref": "unique", "period": {period} }}"#
        )
    };
    let sleeps = reserved(
        6_200,
        10_000,
        r#""run0": 1000, "sleep": 4200, "run1": 1000"#,
    );
    let other = reserved(2_400, 9_000, r#""run": 2300"#);
    let text = format!(r#"{{ "tasks": {{ "a": {{ {sleeps} }}, "b": {{ {other} }} }} }}"#);
    let set = read(&text, "x.json", Format::RtApp).expect("a task set");
    let found = only(&set, &unobserved());
    assert!(!found.admitted && found.unknown, "{found:?}");
    let bounds: Vec<_> = found.lines.iter().map(|line| line.bound_ns).collect();
    assert_eq!(bounds, [None, Some(9_000_000)]);
}
