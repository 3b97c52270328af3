//! The witness: a thread above all others that wakes at fixed instants, and so sees when the machine itself stands still.
//!
//! A virtual machine may stop for 20 ms without counting steal time. Whatever overlaps a late wake-up of the witness before which it was
//! not even runnable was disturbed from outside, and is judged apart. If it was runnable and waited, somebody held the processor: that is
//! no excuse, and is looked into at once. Where slots are dispatched, the dispatcher records too what was late at its own instants.

use std::sync::Arc;

use laxity_model::base::ring::Producer;
use laxity_model::enforce::{Lateness, WITNESS_ACTIVITY, Witness, ranks};
use laxity_model::{ActivityId, Event, EventKind, HostError, Instant, Span};

use crate::os::clock;
use crate::os::memory::prefault_stack;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::schedstat::Account;
use crate::os::usage;
use crate::run::own::{Kept, Ought, Own, Role};
use crate::run::{self, Run, Thread};

/// The calling thread's watch over its own wake-ups. It allocates nothing: other threads may be parked inside the allocator.
pub(crate) struct Vigil {
    rule: Witness,
    /// As what it records.
    activity: ActivityId,
    waits: Option<Account>,
    /// How long the thread had waited for its processor when it went to sleep.
    before: Option<Span>,
    /// How often it had waited for anything.
    waits_before: u64,
}

impl Vigil {
    pub(crate) fn new(rule: Witness, activity: ActivityId) -> Self {
        Self {
            rule,
            activity,
            waits: Account::of_current(),
            before: None,
            waits_before: 0,
        }
    }

    /// How long the thread has waited for its processor so far.
    fn waited(&self) -> Option<Span> {
        Some(self.waits.as_ref()?.read().ok()?.waited)
    }

    /// The thread is about to wait for an instant, once. Two system calls.
    pub(crate) fn begin(&mut self) {
        self.before = self.waited();
        self.waits_before = usage::waits();
    }

    /// Whether the thread waited for something else too than what it was waiting for: a signal stopped it, or a debugger, or its control group was frozen.
    fn was_stopped(&self) -> bool {
        usage::waits() > self.waits_before + 1
    }

    /// It woke at `now`, and should have at `due`: records that if it was late, and raises the alarm if somebody may have held it up.
    pub(crate) fn end(&self, (due, now): (Instant, Instant), ring: &mut Producer, run: &Run) {
        // Who is in time has not waited too long.
        if now.saturating_since(due) <= self.rule.tolerance {
            return;
        }
        let waited = self.waited().zip(self.before);
        let waited = waited.map(|(total, before)| total.saturating_sub(before));
        let Some(late) = self.rule.late(due, now, waited) else {
            return;
        };
        let kind = match late.why {
            _ if self.was_stopped() => EventKind::Stopped,
            Lateness::Standstill => EventKind::Disturbed,
            Lateness::Held | Lateness::Untold => EventKind::Held,
        };
        ring.push(Event {
            at: now,
            kind,
            processor: self.rule.processor,
            activity: self.activity,
            args: [late.stretch.from, late.stretch.to].map(Instant::as_nanos),
        });
        if kind == EventKind::Held {
            run.raise_alarm();
        }
    }
}

/// Starts a witness. It hands back how often it woke; when it was late is among its events.
pub(crate) fn spawn(
    config: Witness,
    cpu: usize,
    mut ring: Producer,
    run: Arc<Run>,
) -> Result<Thread<u64>, HostError> {
    run::spawn(format!("witness/{cpu}"), run, move |run| {
        let wakeups = watch(config, cpu, &mut ring, run);
        wakeups.map_err(|error| HostError::Failed(format!("the witness: {error}")))
    })
}

fn watch(config: Witness, cpu: usize, ring: &mut Producer, run: &Run) -> Result<u64, SchedError> {
    clock::use_exact_timers();
    prefault_stack();
    ring.prefault();
    sched::pin(cpu)?;
    settle(Role::Witness, cpu, ranks::WITNESS, run)?;
    let mut vigil = Vigil::new(config, WITNESS_ACTIVITY);
    let mut wakeups = 0;
    let Some(mut due) = run.wait_for_start() else {
        return Ok(wakeups);
    };
    vigil.begin();
    loop {
        let goes_on = run.sleep_until(due);
        let now = clock::now();
        // What holds the processor over the run's end is seen once all is over.
        if now >= due {
            wakeups += 1;
            vigil.end((due, now), ring, run);
        }
        if !goes_on {
            return Ok(wakeups);
        }
        due = config.next(due, now);
        vigil.begin();
    }
}

/// Gives the calling thread its rank for good, and has it looked after that it keeps that: by others, and by itself as often as it likes.
pub(crate) fn settle(role: Role, cpu: usize, rank: u8, run: &Run) -> Result<Arc<Kept>, SchedError> {
    let tid = Tid::current();
    let policy = Policy::Fifo(rank);
    sched::set_policy(tid, policy)?;
    let what = match role {
        Role::Dispatcher => "dispatcher",
        Role::Lookout => "lookout",
        _ => "witness",
    };
    let kept = Arc::new(Kept::new(tid, policy));
    run.register(Own {
        tid,
        who: format!("the {what} of processor {cpu}"),
        role,
        cpu,
        may_wander: false,
        ought: Ought::Kept(Arc::clone(&kept)),
    });
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use laxity_model::ProcessorId;
    use laxity_model::base::ring;

    use super::*;
    use crate::os::sched::affinity;
    use crate::run::port::Ports;

    /// What is recorded of a wake-up that came so late, after the thread had waited for its processor for so long or more.
    fn recorded(late: Span, after_waiting: Span) -> EventKind {
        let run = Run::new(0, 0, Ports::new(&[], Vec::new()).expect("none"));
        let (mut producer, mut consumer) = ring::channel(4);
        let mut vigil = Vigil::new(Witness::new(ProcessorId(0)), WITNESS_ACTIVITY);
        vigil.begin();
        let begun = vigil.before.expect("the kernel tells");
        while vigil.waited().expect("the kernel tells") < begun + after_waiting {
            std::hint::spin_loop();
        }
        let due = clock::now();
        vigil.end((due, due + late), &mut producer, &run);
        let mut events = Vec::new();
        consumer.drain(&mut events);
        assert_eq!(events.len(), 1, "{events:?}");
        let is_held = events[0].kind == EventKind::Held;
        assert_eq!(run.alarm(), u32::from(is_held), "somebody is looked for");
        events[0].kind
    }

    /// Beside a thread that shares its processor it has waited as the kernel counts it; before it waited for nobody there was nobody.
    #[test]
    fn who_waited_was_held_up_and_who_did_not_met_a_halt() {
        if Account::of_current().is_none() {
            return;
        }
        let hour = Span::from_secs(3_600);
        assert_eq!(recorded(hour, Span::ZERO), EventKind::Disturbed);
        let cpus = affinity(Tid::current()).expect("its own");
        let cpu = cpus.iter().next().expect("it runs somewhere");
        let over = AtomicBool::new(false);
        let late = Span::from_millis(20);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sched::pin(cpu).expect("its own");
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let beside = scope.spawn(move || {
                sched::pin(cpu).expect("its own");
                recorded(late, late)
            });
            let kind = beside.join();
            over.store(true, Ordering::Relaxed);
            assert_eq!(kind.expect("it ends"), EventKind::Held);
        });
    }
}
