//! Slots for threads that no program of ours runs: a dispatcher with its witness and its watcher, on one processor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::admission::{Launch, admit};
use laxity_model::base::ring;
use laxity_model::enforce::{Switching, Witness, ranks, slots};
use laxity_model::policy::slots::SlotTable;
use laxity_model::verify::delivery::Held;
use laxity_model::{
    Activity, Context, Enforcer, Grade, HostError, Instant, Outside, Placement, ProcessorId,
    Program, Refused, Reservation, ReservationRequest, Scheduling, Span, Step,
};

use super::super::admit::{ProcessorSlots, prepare};
use super::super::supervise::dispatcher;
use super::super::supply::supply;
use super::super::switching::measure;
use super::super::unready::await_all;
use super::super::{LiveConfig, thread};
use super::seen::{Anew, Seen};
use super::watcher::{self, BESIDE_SLOTS, IsHolders, Looks, Watcher, WatcherStart};
use super::{HoldRequest, How, Observer};
use crate::doctor::outranking::outranks;
use crate::doctor::probe;
use crate::enforce::holding::Place;
use crate::enforce::slots::{self as enforcer, Dispatched, Doorbell, ParkSignal};
use crate::enforce::witness;
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::fact::{Fact, Unknown};
use crate::os::fork::PerProcess;
use crate::os::proc::{self, RealTimeThread};
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};
use crate::os::slot_lock::{SlotLock, SlotLockError};
use crate::run::drivers::{self, Charged};
use crate::run::own::Own;
use crate::run::port::Ports;
use crate::run::{self, Run, Thread};

/// From the moment all threads are ready until they begin.
const LEAD_IN: Span = Span::from_millis(1);
/// Records that fit a ring: those of some hundred periods, and it is emptied every period.
pub(super) const RING_CAPACITY: usize = 1 << 10;
/// A slot that was prolonged to make up for what others took from it is over by then.
const SETTLED_AFTER: Span = Span::from_micros(300);

/// A dispatcher that gives slots to one holder, until this is dropped.
pub(super) struct SlotSession {
    run: Arc<Run>,
    doorbell: Arc<Doorbell>,
    dispatcher: Option<Thread<Dispatched>>,
    witness: Option<Thread<u64>>,
    watcher: Option<Thread<Option<Watcher>>>,
    pub(super) place: Place,
    pub(super) seen: Arc<Seen>,
    pub(super) cpu: usize,
    /// After the threads.
    _park: ParkSignal,
    _claim: Claim,
}

impl SlotSession {
    /// Admits the request on what this machine can enforce now, and begins to give slots: to nobody yet. The calling thread is as before.
    /// `stops`: who is confined stands still outside its slots. `is_holders`: who is to have them, besides the calling thread.
    pub(super) fn begin(
        request: &HoldRequest,
        placed: Scheduling,
        (stops, is_holders): (bool, IsHolders),
    ) -> Result<Self, HostError> {
        let (claim, config) = choose(request.processor)?;
        let (place, slots, grade) = admitted(request, placed, &config)?;
        let measured = switching(claim.cpu, request.outside)?;
        let table = slots.plan.table.clone();
        let mut session = Self {
            run: Arc::new(Run::new(1, 0, Ports::default())),
            doorbell: Arc::clone(&slots.doorbell),
            dispatcher: None,
            witness: None,
            watcher: None,
            place,
            seen: Seen::new(grade),
            cpu: claim.cpu,
            _park: ParkSignal::install(),
            _claim: claim,
        };
        session.start(
            request,
            &config,
            (slots, measured, table),
            (stops, is_holders),
        )?;
        Ok(session)
    }

    fn start(
        &mut self,
        request: &HoldRequest,
        config: &LiveConfig,
        (slots, measured, table): (ProcessorSlots, Switching, SlotTable),
        (stops, is_holders): (bool, IsHolders),
    ) -> Result<(), HostError> {
        let own = Tid::current();
        let cannot = |error: SchedError| HostError::CannotRun(error.to_string());
        let _restore = Restore::of(own).map_err(cannot)?;
        // The policy before the processor, and both before the threads, which inherit them: so none can starve before it has its own.
        sched::set_policy_inherited(own, thread::STARTER).map_err(cannot)?;
        sched::pin(self.cpu).map_err(cannot)?;
        let (to_dispatcher, from_dispatcher) = ring::channel(config.ring_capacity);
        let (to_witness, from_witness) = ring::channel(config.ring_capacity);
        let run = || Arc::clone(&self.run);
        let witness = config.witnesses.first().copied();
        let start = dispatcher(slots, measured, witness, to_dispatcher);
        self.dispatcher = Some(enforcer::spawn(start, run())?);
        if let Some(witness) = witness {
            self.witness = Some(witness::spawn(witness, self.cpu, to_witness, run())?);
        }
        let confined = request.outside == Outside::Confined;
        let watcher = WatcherStart {
            reservation: request.reservation,
            held: if confined {
                Held::Confined
            } else {
                Held::BySlots
            },
            stops: confined && stops,
            slots_on: Some(self.cpu),
            // The calling thread has a rank above all until everything has begun.
            is_holders: Box::new(move |thread| thread.tid == own || is_holders(thread)),
            witnessed: vec![self.cpu],
            cpu: Some(config.external),
            keeps_stretches: false,
            consumers: vec![from_dispatcher, from_witness],
        };
        let looks = move |begin| looks(slots::origin(begin, &table) + table.cycle(), &table);
        let watcher = watcher::spawn(watcher, looks, Arc::clone(&self.seen), run())?;
        self.watcher = Some(watcher);
        let expected = 2 + usize::from(self.witness.is_some());
        let run = &self.run;
        let are_ready = |until| run.await_ready(expected, until);
        await_all(expected, || run.ready(), are_ready)?;
        self.run.begin(clock::now() + LEAD_IN);
        Ok(())
    }

    /// Changes what is held, with no moment in between at which less than either is given: the dispatcher goes on, and what is told of the holder begins
    /// anew when the change holds. `false`: that was not answered in time, as where somebody held who asked, and nothing is changed.
    pub(super) fn change(&self, asked: Reservation) -> Result<bool, HostError> {
        let Place::Slots(bound) = &self.place else {
            return Err(HostError::Failed("no slots were granted".to_owned()));
        };
        let from = match bound.changes.change(bound.owner, asked) {
            Ok(from) => from,
            Err(Refused::NotAnswered) => return Ok(false),
            Err(why) => return Err(HostError::Refused(why.to_string())),
        };
        let followed = bound.changes.followed();
        self.seen.begin_anew(Anew {
            reservation: asked,
            looks: followed.map(|(table, from)| looks(from, &table)),
            from,
        });
        Ok(true)
    }

    /// Gives no slots any more: nobody is bound to any when this returns.
    pub(super) fn end(&mut self) {
        self.seen.note_failure(&self.run);
        self.run.finish();
        self.doorbell.ring();
        let _ = self.dispatcher.take().map(run::join);
    }

    /// This thread is to stay what it is.
    pub(super) fn register(&self, own: Own) {
        self.run.register(own);
    }

    /// Tells what this thread has of them; or the program of which this is the first, and whose others the watcher knows.
    pub(super) fn observer(&self, holder: Tid, is_watched: bool) -> Observer {
        Observer {
            holder,
            is_watched,
            seen: Arc::clone(&self.seen),
            how: How::Slots(self.cpu, Arc::clone(&self.run)),
        }
    }
}

impl Drop for SlotSession {
    fn drop(&mut self) {
        self.end();
        // What they saw the watcher hears; one that failed left its reason with the run.
        let _ = self.witness.take().map(run::join);
        let watcher = self.watcher.take().and_then(run::join).flatten();
        watcher.into_iter().for_each(Watcher::note_ends);
    }
}

/// Shortly after each of the holder's slots, the first of which is in a cycle that begins then: then all that it waited for the slot is counted, and it has
/// had the slot.
fn looks(cycle: Instant, table: &SlotTable) -> Looks {
    let slot = table.slots().first();
    let (start, length) = slot.map_or((Span::ZERO, Span::ZERO), |slot| (slot.start, slot.length));
    let idle = table.cycle().saturating_sub(length);
    let settled = (length / 8 + SETTLED_AFTER).min(idle / 2);
    let first = cycle + start + length + settled;
    Looks::new(first, table.cycle(), BESIDE_SLOTS)
}

/// The processors on which this process gives slots to threads of no program, and what switching costs there by the kind of confinement.
struct Processors {
    taken: BTreeSet<usize>,
    switching: BTreeMap<(usize, bool), Switching>,
}

fn processors() -> MutexGuard<'static, Processors> {
    // A child gives no slots, and switching costs it what it costs its parent.
    static PROCESSORS: PerProcess<Mutex<Processors>> = PerProcess::new(|parents| {
        let known = parents.and_then(|all| Some(all.try_lock().ok()?.switching.clone()));
        Mutex::new(Processors {
            taken: BTreeSet::new(),
            switching: known.unwrap_or_default(),
        })
    });
    let all = PROCESSORS.get().lock();
    all.unwrap_or_else(PoisonError::into_inner)
}

/// A processor on which one holder has slots.
struct Claim {
    cpu: usize,
    /// `None` where there is none to be had.
    _lock: Option<SlotLock>,
    _charged: Charged,
}

/// Why somebody has none on a processor.
enum Taken {
    /// There are slots of this one, in words.
    By(String),
    /// Whether there are cannot be seen.
    Unseen(Unknown),
}

impl Claim {
    /// What is there is admitted by that one alone. Of those who do not have the same lock it is known by who is seen among these threads.
    fn of(cpu: usize, threads: &Fact<Vec<RealTimeThread>>) -> Result<Self, Taken> {
        let lock = match SlotLock::of(cpu) {
            Ok(lock) => Some(lock),
            Err(SlotLockError::Held(other)) => return Err(Taken::By(other)),
            Err(SlotLockError::Unknown) => None,
        };
        match (threads, &lock) {
            (Ok(threads), _) => {
                if let Some(other) = threads.iter().find(|thread| gives_slots(thread, cpu)) {
                    return Err(Taken::By(other.to_string()));
                }
            }
            // That not everybody is seen is in the grade.
            (Err(_), Some(_)) => {}
            (Err(why), None) => return Err(Taken::Unseen(why.clone())),
        }
        match processors().taken.insert(cpu) {
            true => Ok(Self {
                cpu,
                _lock: lock,
                _charged: drivers::charge(cpu),
            }),
            false => Err(Taken::By("another thread of this process".to_owned())),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        processors().taken.remove(&self.cpu);
    }
}

/// Whether this thread gives slots of another laxity on a processor, or may: where it may run is not known of all. One that ended while it was looked at
/// gives none.
fn gives_slots(thread: &RealTimeThread, cpu: usize) -> bool {
    thread.of_laxity
        && thread.policy == Policy::Fifo(ranks::DISPATCHER)
        && match &thread.affinity {
            Ok(affinity) => *affinity == CpuSet::single(cpu),
            Err(_) => !proc::has_gone(format!("/proc/{}", thread.tid)),
        }
}

/// The processor that was asked for, or the first that is free, and on which nobody is seen who would outrank the holder, if there is such a one; and one for what
/// watches.
fn choose(asked: Option<usize>) -> Result<(Claim, LiveConfig), HostError> {
    let usable =
        sched::affinity(Tid::current()).map_err(|error| HostError::CannotRun(error.to_string()))?;
    let threads = proc::real_time_threads();
    let is_contended = |cpu: &usize| {
        let mut threads = threads.iter().flatten();
        threads.any(|thread| outranks(thread, *cpu))
    };
    let mut candidates: Vec<usize> = asked.map_or_else(|| usable.iter().collect(), |cpu| vec![cpu]);
    candidates.sort_by_key(is_contended);
    let mut theirs = Vec::new();
    for cpu in candidates {
        match Claim::of(cpu, &threads) {
            Ok(claim) => {
                let config = config(cpu, &usable);
                return Ok((claim, config));
            }
            Err(Taken::By(whom)) => theirs.push(format!("of {whom} on processor {cpu}")),
            Err(Taken::Unseen(why)) => {
                return Err(HostError::CannotRun(format!(
                    "whether another laxity gives slots on processor {cpu} cannot be seen: {why}"
                )));
            }
        }
    }
    Err(HostError::Refused(format!(
        "there are slots already, {}, and each laxity admits its own alone, and one holder a processor: {}let that end first, or reserve by `deadline`, which the kernel admits for all",
        theirs.join(", "),
        elsewhere(asked, &usable)
    )))
}

/// How there may be slots on another processor than on those that are taken, in words; nothing where there is no other.
fn elsewhere(asked: Option<usize>, usable: &CpuSet) -> String {
    if asked.is_some_and(|taken| usable.iter().any(|other| other != taken)) {
        return "name another processor, ".to_owned();
    }
    let has_others = |online: CpuSet| online.iter().any(|other| !usable.contains(other));
    if probe::online().is_ok_and(has_others) {
        return format!(
            "allow who asks other processors than {usable} (`taskset`, sched_setaffinity(): what a holder of slots starts or forks may run where that one may), "
        );
    }
    String::new()
}

/// What runs there, and what watches, on another processor where there is one.
fn config(cpu: usize, usable: &CpuSet) -> LiveConfig {
    let other = usable.iter().filter(|other| *other != cpu).last();
    LiveConfig {
        processors: vec![cpu],
        others: Vec::new(),
        external: other.unwrap_or(cpu),
        witnesses: vec![Witness::new(ProcessorId(0))],
        lock_memory: false,
        ring_capacity: RING_CAPACITY,
    }
}

/// Has the only admission there is decide.
fn admitted(
    request: &HoldRequest,
    placed: Scheduling,
    config: &LiveConfig,
) -> Result<(Place, ProcessorSlots, Grade), HostError> {
    let usable =
        sched::affinity(Tid::current()).map_err(|error| HostError::CannotRun(error.to_string()))?;
    if let Some(cpu) = config.processors.iter().find(|cpu| !usable.contains(**cpu)) {
        return Err(HostError::NoProcessor {
            missing: cpu.to_string(),
            usable: usable.to_string(),
        });
    }
    let mut program = Program::new(1);
    program.push(Activity {
        name: request.name.clone(),
        processor: ProcessorId(0),
        placement: Placement::Linux(placed),
        reservation: Some(ReservationRequest {
            reservation: request.reservation,
            enforcer: Enforcer::Slots,
            outside: request.outside,
            begins_at_start: true,
        }),
        // What it does is no business of ours.
        body: Box::new(|_: &mut dyn Context| Step::Finish),
    });
    let supply = supply("this machine, for one holder".to_owned(), config);
    let Launch {
        program,
        slots,
        deadline,
        mut grades,
    } = admit(program, &supply)?.launch(&supply.host)?;
    let (mut places, mut slots) = prepare(&program, (slots, deadline), config);
    let nothing = || HostError::Failed("nothing was granted to the only request".to_owned());
    let place = places.pop().ok_or_else(nothing)?;
    let slots = slots.pop().ok_or_else(nothing)?;
    let grade = grades.pop().flatten().ok_or_else(nothing)?;
    Ok((place, slots, grade))
}

/// What switching costs on a processor; measured the first time (0.1 s).
fn switching(cpu: usize, outside: Outside) -> Result<Switching, HostError> {
    let key = (cpu, outside == Outside::Confined);
    if let Some(measured) = processors().switching.get(&key) {
        return Ok(*measured);
    }
    let measured = measure(cpu, outside, "nothing was started or changed")?;
    processors().switching.insert(key, measured);
    Ok(measured)
}

/// As a thread of this policy is placed.
pub(super) fn placed(policy: Policy) -> Scheduling {
    match policy {
        Policy::Fifo(priority) => Scheduling::Fifo(priority),
        Policy::RoundRobin(priority) => Scheduling::RoundRobin(priority),
        Policy::Idle => Scheduling::Idle,
        Policy::Other { nice } | Policy::Batch { nice } => Scheduling::Fair {
            nice: nice.clamp(-20, 19) as i8,
        },
        Policy::Deadline(_) | Policy::Unknown(_) => Scheduling::Fair { nice: 0 },
    }
}
