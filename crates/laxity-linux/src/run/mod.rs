//! What all threads of one run share: its ports, its common start, and its end.

pub(crate) mod bell;
pub(crate) mod drivers;
pub(crate) mod ours;
pub(crate) mod own;
pub(crate) mod port;
pub(crate) mod raises;
pub(crate) mod semaphore;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use laxity_model::policy::raise::Raises;
use laxity_model::{ActivityId, HostError, Instant, RunEnd, Span};

use own::Own;
use port::Ports;
use raises::Raiser;

use crate::os::clock;
use crate::os::futex::{self, Woken};
use crate::os::idle::{Awake, LATENCY_FILE};
use crate::os::memory::STACK_BYTES;
use crate::os::sched::{self, Tid};
use crate::os::signals;

/// A thread that has its processor now and again ends within this, once its run is over.
const ENDS_WITHIN: Span = Span::from_millis(50);
/// How often it is looked whether a thread has ended.
const LOOK_EVERY: Span = Span::from_micros(200);

const RUNNING: u32 = 0;
const ENDED: u32 = 1;

/// The state of a run. Nothing on the way of a running thread takes a lock; the mutex is for failures only.
pub(crate) struct Run {
    pub(crate) ports: Ports,
    pub(crate) raises: Raiser,
    /// When all begin, in nanoseconds; 0 until that is known.
    start_ns: AtomicU64,
    started: AtomicU32,
    ready: AtomicUsize,
    alive: AtomicUsize,
    /// The thread of each activity while it lives, 0 before and after.
    tids: Vec<AtomicI32>,
    /// [`RUNNING`] or [`ENDED`]; every sleeping thread waits on this word.
    end: AtomicU32,
    /// When it was ended, in nanoseconds; 0 until then.
    ended_ns: AtomicU64,
    /// When a body wanted the run to end, in nanoseconds; 0 while none does.
    end_wanted_ns: AtomicU64,
    failure: Mutex<Option<HostError>>,
    /// The threads that must stay what they are; each puts itself here before the start.
    own: Mutex<Vec<Own>>,
    /// Rung when somebody should be looked for at once.
    alarm: AtomicU32,
    /// For how long in all those who watch have stood still, in nanoseconds.
    stood_ns: AtomicU64,
    /// Or why idle processors may sleep as they like.
    awake: Result<Awake, String>,
}

impl Run {
    /// For a program of so many activities, of which so many have threads.
    pub(crate) fn new(activities: usize, threads: usize, ports: Ports) -> Self {
        Self {
            ports,
            raises: Raiser::default(),
            start_ns: AtomicU64::new(0),
            started: AtomicU32::new(0),
            ready: AtomicUsize::new(0),
            alive: AtomicUsize::new(threads),
            tids: (0..activities).map(|_| AtomicI32::new(0)).collect(),
            end: AtomicU32::new(RUNNING),
            ended_ns: AtomicU64::new(0),
            end_wanted_ns: AtomicU64::new(0),
            failure: Mutex::new(None),
            own: Mutex::new(Vec::new()),
            alarm: AtomicU32::new(0),
            stood_ns: AtomicU64::new(0),
            awake: Awake::ask().map_err(|error| {
                format!("idle processors may sleep, and wake late: {LATENCY_FILE}: {error} (`laxity doctor`: dma-latency)")
            }),
        }
    }

    /// These may be raised.
    pub(crate) fn raising(mut self, raises: Raises) -> Self {
        self.raises = Raiser::new(raises);
        self
    }

    /// That processors may wake late, and why that could not be held off.
    pub(crate) fn may_sleep(&self) -> Option<&str> {
        self.awake.as_ref().err().map(String::as_str)
    }

    /// A thread has everything it needs; waits for the common start. `None` if the run is over before it begins.
    pub(crate) fn wait_for_start(&self) -> Option<Instant> {
        self.ready.fetch_add(1, Ordering::SeqCst);
        signals::ring();
        while self.started.load(Ordering::SeqCst) == 0 {
            futex::wait(&self.started, 0, None);
        }
        (!self.ended()).then(|| self.start())
    }

    /// How many threads wait for the start.
    pub(crate) fn ready(&self) -> usize {
        self.ready.load(Ordering::SeqCst)
    }

    /// Waits until so many threads wait for the start, no longer than until then, and tells whether they do.
    pub(crate) fn await_ready(&self, expected: usize, until: Instant) -> Result<bool, HostError> {
        loop {
            let doorbell = signals::doorbell();
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if self.ready() >= expected {
                return Ok(true);
            }
            if clock::now() >= until {
                return Ok(false);
            }
            signals::wait(doorbell, Some(until));
        }
    }

    /// Lets all threads go; they begin at `start`.
    pub(crate) fn begin(&self, start: Instant) {
        self.start_ns.store(start.as_nanos(), Ordering::SeqCst);
        self.started.store(1, Ordering::SeqCst);
        futex::wake_all(&self.started);
    }

    /// The common start.
    pub(crate) fn start(&self) -> Instant {
        Instant::from_nanos(self.start_ns.load(Ordering::SeqCst))
    }

    /// Whether the run is over. A relaxed load: cheap enough for every turn of a spinning loop.
    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.end.load(Ordering::Relaxed) == ENDED
    }

    /// When it was ended, if it was: what comes later is none of it.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        let ended = self.ended_ns.load(Ordering::SeqCst);
        (ended > 0).then(|| Instant::from_nanos(ended))
    }

    /// Whether it was ended so long ago that its threads are gone, unless somebody keeps them from ending.
    pub(crate) fn is_overdue(&self) -> bool {
        let ended = self.ended_at();
        ended.is_some_and(|ended| clock::now() > ended + ENDS_WITHIN)
    }

    /// Sleeps until the instant; `false` if the run ended first.
    pub(crate) fn sleep_until(&self, until: Instant) -> bool {
        loop {
            if self.end.load(Ordering::Acquire) == ENDED {
                return false;
            }
            // Looked at first: the futex is not asked for an instant that is past.
            let is_over = clock::now() >= until;
            if is_over || futex::wait(&self.end, RUNNING, Some(until)) == Woken::TimedOut {
                return true;
            }
        }
    }

    /// A body wants the run to end; the first counts.
    pub(crate) fn want_end(&self) {
        let now = clock::now().as_nanos();
        let wanted = &self.end_wanted_ns;
        let _ = wanted.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        signals::ring();
    }

    /// When a body first wanted that, if one did. Who ends the run serves nobody any more, however late that is seen.
    pub(crate) fn end_was_wanted(&self) -> Option<Instant> {
        let wanted = self.end_wanted_ns.load(Ordering::SeqCst);
        (wanted > 0).then(|| Instant::from_nanos(wanted))
    }

    /// A thread failed; the first failure is kept.
    pub(crate) fn fail(&self, error: HostError) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        signals::ring();
    }

    pub(crate) fn failure(&self) -> Option<HostError> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A thread says what it must stay. Before the start, as it takes a lock.
    pub(crate) fn register(&self, own: Own) {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(own);
    }

    /// The threads that have registered since this was asked last.
    pub(crate) fn take_own(&self) -> Vec<Own> {
        std::mem::take(&mut *self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Somebody should be looked for at once. Takes no lock and no memory.
    pub(crate) fn raise_alarm(&self) {
        self.alarm.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.alarm);
    }

    /// How often the alarm was raised.
    pub(crate) fn alarm(&self) -> u32 {
        self.alarm.load(Ordering::SeqCst)
    }

    /// One of those who watch has stood still for so long: a witness or a dispatcher. Takes no lock and no memory.
    pub(crate) fn stood_still(&self, long: Span) {
        self.stood_ns.fetch_add(long.as_nanos(), Ordering::SeqCst);
    }

    /// For how long in all those who watch have stood still until now, each for itself.
    pub(crate) fn stood(&self) -> Span {
        Span::from_nanos(self.stood_ns.load(Ordering::SeqCst))
    }

    /// Sleeps until the instant, or until the alarm is raised since it had this number, or the run ends; returns its number now.
    pub(crate) fn wait_for_alarm(&self, seen: u32, until: Instant) -> u32 {
        while !self.ended()
            && self.alarm() == seen
            && futex::wait(&self.alarm, seen, Some(until)) != Woken::TimedOut
        {}
        self.alarm()
    }

    /// Whether the program has this activity.
    pub(crate) fn has(&self, activity: ActivityId) -> bool {
        activity.index() < self.tids.len()
    }

    /// The calling thread is this activity's, until what is handed back is dropped.
    pub(crate) fn enter(&self, activity: ActivityId) -> Alive<'_> {
        let tid = self.tids.get(activity.index());
        if let Some(tid) = tid {
            tid.store(Tid::current().0, Ordering::SeqCst);
        }
        Alive { run: self, tid }
    }

    /// The threads of activities that are not done.
    pub(crate) fn unfinished(&self) -> Vec<Tid> {
        let tids = self.tids.iter().map(|tid| tid.load(Ordering::SeqCst));
        tids.filter(|tid| *tid != 0).map(Tid).collect()
    }

    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Why the run should end now, if it should.
    pub(crate) fn reason_to_end(&self) -> Option<RunEnd> {
        if self.end_was_wanted().is_some() {
            Some(RunEnd::EndRun)
        } else if self.alive() == 0 {
            Some(RunEnd::AllFinished)
        } else {
            None
        }
    }

    /// Ends the run: whoever waits or sleeps returns, whoever works sees it at the next look.
    pub(crate) fn finish(&self) {
        let (now, ended) = (clock::now().as_nanos(), &self.ended_ns);
        let _ = ended.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        self.end.store(ENDED, Ordering::SeqCst);
        futex::wake_all(&self.end);
        self.raise_alarm();
        self.raises.ring();
        self.ports.close();
        self.started.store(1, Ordering::SeqCst);
        futex::wake_all(&self.started);
    }
}

/// An activity's thread that is not done.
pub(crate) struct Alive<'a> {
    run: &'a Run,
    tid: Option<&'a AtomicI32>,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        if let Some(tid) = self.tid {
            tid.store(0, Ordering::SeqCst);
        }
        self.run.alive.fetch_sub(1, Ordering::SeqCst);
        signals::ring();
    }
}

/// A thread of a run; it hands back nothing if it failed, and the run with it.
pub(crate) struct Thread<T> {
    handle: JoinHandle<Option<T>>,
    /// 0 until it has begun.
    tid: Arc<AtomicI32>,
    run: Arc<Run>,
}

impl<T> Thread<T> {
    pub(crate) fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Where somebody keeps it from seeing that its run is over, it may see that on any other processor.
    pub(crate) fn let_loose(&self) {
        let tid = self.tid.load(Ordering::SeqCst);
        // The number of one that has ended may be a stranger's.
        if tid != 0 && !self.is_finished() && self.run.is_overdue() {
            // Where it has no other processor it ends when it is let.
            let _ = sched::allow_all(Tid(tid));
        }
    }
}

/// Starts a thread of a run. It inherits the starter's policy, so it cannot starve before it has its own.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    run: Arc<Run>,
    work: impl FnOnce(&Arc<Run>) -> Result<T, HostError> + Send + 'static,
) -> Result<Thread<T>, HostError> {
    let tid = Arc::new(AtomicI32::new(0));
    let (begun, of) = (Arc::clone(&tid), Arc::clone(&run));
    // The kernel keeps 15 bytes of a thread's name.
    let short: String = name.chars().filter(|c| *c != '\0').take(15).collect();
    let builder = thread::Builder::new().name(short).stack_size(STACK_BYTES);
    let cannot_start = format!("cannot start {name}");
    let whole = move || {
        begun.store(Tid::current().0, Ordering::SeqCst);
        let _ours = ours::Ours::enter();
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(&run)));
        let done = done.unwrap_or_else(|payload| {
            let text = format!("{name} panicked: {}", message(&*payload));
            Err(HostError::Failed(text))
        });
        done.map_err(|error| run.fail(error)).ok()
    };
    let started = builder.spawn(whole);
    let started = started.map(|handle| Thread {
        handle,
        tid,
        run: of,
    });
    started.map_err(|error| HostError::Failed(format!("{cannot_start}: {error}")))
}

/// What a thread of a run that is over hands back when it has ended.
pub(crate) fn join<T>(thread: Thread<T>) -> Option<T> {
    while !thread.is_finished() {
        thread.let_loose();
        clock::sleep_until(clock::now() + LOOK_EVERY);
    }
    // It catches its own panics; a join can only fail by a bug in that.
    let done = thread.handle.join();
    done.unwrap_or_else(|payload| panic::resume_unwind(payload))
}

/// The text of a panic.
fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
