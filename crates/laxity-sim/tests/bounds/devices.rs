//! Devices: interrupts, the deferred calls that they queue, the threads that those wake.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Preemption, Task};
use laxity_model::{InterruptLevel, Placement, SemaphoreId, Service, Span};
use laxity_sim::Profile;

use crate::bodies::{Trigger, worker};
use crate::common::{CPU, thread};
use crate::workload::{Jobs, Random, levels, phases, random_tasks};
use crate::{Bounded, Tightness, bound_among};

/// What the machine itself takes, as the analysis has to know it.
pub(crate) struct MachineCosts {
    /// The clock's own interrupts, where they cost something.
    pub(crate) clock: Option<Task>,
    pub(crate) interrupt: u64,
    pub(crate) deferred: u64,
    pub(crate) switch: u64,
    /// A thread's timer is as much late.
    pub(crate) tick: u64,
    /// All that nobody can interrupt, one after the other.
    pub(crate) blocking: u64,
}

impl MachineCosts {
    pub(crate) fn of(profile: &Profile) -> Self {
        let costs = profile.costs;
        let nanos = |span: Span| span.as_nanos();
        let tick = profile.tick_hz.map(|hz| 1_000_000_000 / u64::from(hz));
        let clock = tick.filter(|_| !costs.clock_tick.is_zero()).map(|tick| {
            Task::new(costs.clock_tick.as_full_service(), Span::from_nanos(tick)).expect("a task")
        });
        let interrupt = nanos(costs.interrupt_entry) + nanos(costs.interrupt_exit);
        let (deferred, switch) = (nanos(costs.deferred_dispatch), nanos(costs.context_switch));
        Self {
            clock,
            interrupt,
            deferred,
            switch,
            // A tick is at most a nanosecond longer than the rate divided.
            tick: tick.map_or(0, |tick| tick + 1),
            blocking: interrupt + deferred + switch,
        }
    }

    pub(crate) fn longer(task: &Task, by: u64) -> Task {
        let cost = task.cost() + Service::from_nanos(by);
        Task::new(cost, task.period())
            .expect("a task")
            .with_jitter(task.jitter())
    }

    /// By then everybody has begun to wait for the first job.
    pub(crate) fn quiet_until(&self) -> u64 {
        2 * self.tick
    }

    /// A thread's task with its switches, and the wait for the clock if a timer wakes it.
    pub(crate) fn thread(&self, task: &Task, by_timer: bool) -> Task {
        let longest = Service::from_nanos(self.switch);
        let late = if by_timer {
            self.tick.saturating_sub(1)
        } else {
            0
        };
        let task = Self::longer(task, 2 * self.switch);
        let task = task.with_jitter(task.jitter() + Span::from_nanos(late));
        match self.switch {
            0 => task,
            _ => task
                .with_preemption(Preemption::Floating { longest })
                .expect("a switch is a part of the cost"),
        }
    }
}

/// What a device has started: its handler's jobs, and how late after each a job of the next link of the chain is released.
struct Chain {
    jobs: Jobs,
    signals: SemaphoreId,
    late: u64,
}

impl Chain {
    /// A task of the same arrivals that needs up to half of `share`'s share, and costs of `more`, but is released late.
    fn next_task(&self, share: &Task, more: u64) -> Task {
        let period = self.jobs.task.period();
        let cost = share.cost().as_nanos() * period.as_nanos() / share.period().as_nanos();
        let cost = Service::from_nanos((cost / 2).max(1) + more);
        let task = Task::new(cost, period).expect("a task");
        task.with_jitter(Span::from_nanos(self.late))
    }

    /// The jobs of such a task, as they arrive.
    fn next_jobs(&self, share: &Task) -> Jobs {
        let task = self.next_task(share, 0).with_jitter(Span::ZERO);
        Jobs {
            task,
            ..self.jobs.clone()
        }
    }
}

/// A program that grows from the most urgent to the least, with all that is above what comes next.
struct Machine {
    costs: MachineCosts,
    random: Random,
    bounded: Bounded,
    above: Vec<Task>,
}

impl Machine {
    fn bound(&self, task: &Task) -> Option<u64> {
        bound_among(task, &self.above, self.costs.blocking, &Dedicated)
    }

    /// Interrupts, by level.
    fn interrupts(&mut self, count: u64, least: u64) -> Vec<Chain> {
        let handlers = random_tasks(&mut self.random, count, least, 250_000);
        let first = phases(&mut self.random, &handlers, self.costs.quiet_until());
        let mut chains = Vec::new();
        for (device, handler) in handlers.iter().enumerate() {
            let known = MachineCosts::longer(handler, self.costs.interrupt);
            let late = self.bound(&known).expect("there is enough for interrupts");
            self.above.push(known);
            let done = self.bounded.mark(Some(late));
            let signals = self.bounded.program.semaphore(0);
            let jobs = Jobs::new(&mut self.random, *handler, first[device]);
            let body = worker(jobs.clone(), Trigger::Timer, Some(signals), done);
            let level = Placement::Interrupt(InterruptLevel(20 - device as u8));
            self.bounded.program.add("handler", CPU, level, body);
            chains.push(Chain {
                jobs,
                signals,
                late,
            });
        }
        chains
    }

    /// Deferred calls, first come, first served: each may wait for all others.
    fn deferred_calls(&mut self, chains: Vec<Chain>, least: u64) -> Vec<Chain> {
        let shares = random_tasks(&mut self.random, chains.len() as u64, least, 250_000);
        let known = chains.iter().zip(&shares);
        let known: Vec<Task> = known
            .map(|(chain, share)| chain.next_task(share, self.costs.deferred))
            .collect();
        let mut next = Vec::new();
        for (index, (chain, share)) in chains.into_iter().zip(&shares).enumerate() {
            let mut above = self.above.clone();
            let others = known
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index);
            above.extend(others.map(|(_, other)| *other));
            let bound = bound_among(&known[index], &above, self.costs.blocking, &Dedicated);
            let late = bound.expect("there is enough for deferred calls");
            let done = self.bounded.mark(Some(late));
            let signals = self.bounded.program.semaphore(0);
            let trigger = Trigger::Signal(chain.signals);
            let body = worker(chain.next_jobs(share), trigger, Some(signals), done);
            self.bounded
                .program
                .add("call", CPU, Placement::Deferred, body);
            next.push(Chain {
                signals,
                late,
                ..chain
            });
        }
        self.above.extend(known);
        next
    }

    /// Threads that calls wake, and threads with timers, in any order of priority.
    fn threads(&mut self, chains: &[Chain], with_timers: u64, least: u64) {
        let mut threads: Vec<(Task, Jobs, Trigger)> = Vec::new();
        let shares = random_tasks(&mut self.random, chains.len() as u64, least, 200_000);
        for (chain, share) in chains.iter().zip(&shares) {
            let known = self.costs.thread(&chain.next_task(share, 0), false);
            threads.push((
                known,
                chain.next_jobs(share),
                Trigger::Signal(chain.signals),
            ));
        }
        for task in random_tasks(&mut self.random, with_timers, least, 400_000) {
            let phase = self.random.from(0, task.period().as_nanos());
            let first = self.costs.quiet_until() + phase;
            let jobs = Jobs::new(&mut self.random, task, first);
            threads.push((self.costs.thread(&task, true), jobs, Trigger::Timer));
        }
        for index in (1..threads.len()).rev() {
            let other = self.random.from(0, index as u64) as usize;
            threads.swap(index, other);
        }
        let levels = levels(&mut self.random, threads.len());
        for ((known, jobs, trigger), level) in threads.into_iter().zip(levels) {
            let bound = self.bound(&known);
            let done = self.bounded.mark(bound);
            self.above.push(known);
            let body = worker(jobs, trigger, None, done);
            self.bounded.program.add("thread", CPU, thread(level), body);
        }
    }
}

/// Devices whose handlers are followed by deferred calls, and those by threads, among threads with timers of their own.
pub(crate) fn devices_and_threads(
    profile: Profile,
    least: u64,
    seed: u64,
    tightness: &mut Tightness,
) {
    let costs = MachineCosts::of(&profile);
    let mut machine = Machine {
        above: costs.clock.into_iter().collect(),
        costs,
        random: Random(seed),
        bounded: Bounded::new(),
    };
    let (devices, threads) = (machine.random.from(1, 2), machine.random.from(1, 3));
    let interrupts = machine.interrupts(devices, least);
    let calls = machine.deferred_calls(interrupts, least);
    machine.threads(&calls, threads, 2 * least);
    machine.bounded.check(profile, 240 * least, seed, tightness);
}
