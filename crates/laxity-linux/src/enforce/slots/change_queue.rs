//! Where threads ask for changes of a slot table while it is carried out.
//!
//! The thread that asks also plans: the admission's answers cost it time and memory, not the dispatcher. What was granted it posts; the
//! dispatcher takes the post at its next edge, or when its doorbell rings, by exchanging two pointers, and confirms. A post that comes too late, because its
//! thread was kept from the processor between planning and posting, is turned down, and the thread plans again with more notice: what
//! is answered is always what is carried out.
//!
//! Threads of all ranks ask, and confined ones are stopped wherever they are when their slot ends. So all plan on copies of their own. The lock
//! is held from posting until the dispatcher has confirmed, which takes a switch to it and back; who holds it inherits the rank of who
//! waits, does not park, and neither allocates nor frees. A copy of an admission state that is not the current one any more is given up, and what
//! it was for is decided again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use laxity_model::admission::changes::AdmissionState;
use laxity_model::enforce::Dispatcher;
use laxity_model::policy::slots::{Calendar, SlotTable};
use laxity_model::{Instant, Refused, Reservation, Span, TimeConstraint};

use super::doorbell::Doorbell;
use super::inherit::Inheriting;
use super::park::unparked;
use crate::os::clock;
use crate::os::futex;

/// From a decision until the dispatcher has surely heard of it: the first and the later attempts.
const NOTICES: [Span; 3] = [
    Span::from_micros(500),
    Span::from_millis(4),
    Span::from_millis(32),
];
/// So often others may come first while somebody decides.
const OVERTAKEN_AT_MOST: usize = 16;

const NOTHING: u32 = 0;
const POSTED: u32 = 1;
const TAKEN: u32 = 2;
const TOO_LATE: u32 = 3;
/// The dispatcher is gone.
const CLOSED: u32 = 4;
/// Somebody else's post came first: nothing was posted.
const OVERTAKEN: u32 = 5;

/// A calendar to follow, if it is taken by then.
struct Post {
    /// Taken for a moment while it is exchanged.
    calendar: Option<Calendar>,
    by: Instant,
}

/// The queue of changes to one processor's slots: one is carried out at a time.
pub(crate) struct ChangeQueue {
    /// The current one. Locked while somebody posts; never by the dispatcher.
    admission: OnceLock<Inheriting<Arc<AdmissionState>>>,
    /// Of who has locked the admission, and of the dispatcher, which does not wait for it.
    post: Mutex<Option<Post>>,
    /// What became of the post.
    state: AtomicU32,
    closed: AtomicBool,
    doorbell: Arc<Doorbell>,
}

impl ChangeQueue {
    pub(crate) fn new(doorbell: Arc<Doorbell>) -> Self {
        Self {
            admission: OnceLock::new(),
            post: Mutex::new(None),
            state: AtomicU32::new(NOTHING),
            closed: AtomicBool::new(false),
            doorbell,
        }
    }

    /// The run is about to begin: the table's origin is known. Nobody asks before.
    pub(crate) fn open(&self, admission: AdmissionState) {
        // Opened once, by the one dispatcher.
        let _ = self.admission.set(Inheriting::new(Arc::new(admission)));
    }

    /// The dispatcher goes: whoever waits for it waits no more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.state.store(CLOSED, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }

    /// What an owner holds; `None` for one without a reservation, and before the run.
    pub(crate) fn held(&self, owner: usize) -> Option<Reservation> {
        self.current()?.held(owner)
    }

    /// The table of what was granted last, and when it begins or began; `None` before the run.
    pub(crate) fn followed(&self) -> Option<(SlotTable, Instant)> {
        let admission = self.current()?;
        let (table, from) = admission.calendar().last();
        Some((table.clone(), from))
    }

    /// Asks for another reservation of an owner's.
    pub(crate) fn change(&self, owner: usize, asked: Reservation) -> Result<Instant, Refused> {
        // Planning takes milliseconds, deciding microseconds: only the second is a matter of notice.
        let admission = self.current().ok_or(Refused::NotAnswered)?;
        let proposal = admission.propose(owner, asked)?;
        drop(admission);
        self.ask(|admission| admission.change(proposal.clone(), clock::now()))
    }

    /// Asks for a time constraint of an owner's.
    pub(crate) fn constrain(
        &self,
        owner: usize,
        asked: TimeConstraint,
    ) -> Result<Instant, Refused> {
        self.ask(|admission| admission.constrain(owner, asked, clock::now()))
    }

    /// Gives back what is left of an owner's time constraint; its deadline, if there was one that is not past.
    pub(crate) fn release(&self, owner: usize) -> Option<Instant> {
        loop {
            let base = self.current()?;
            let mut trial = AdmissionState::clone(&base);
            let released = trial.release(owner, clock::now())?;
            // Somebody else was answered meanwhile: that ends, as this takes microseconds and answers do not.
            if self.commit(&base, trial, Instant::MAX) != OVERTAKEN {
                return Some(released);
            }
        }
    }

    /// Decides on copies of the admission, and has one carried out if the dispatcher takes it in time.
    fn ask(
        &self,
        decide: impl Fn(&mut AdmissionState) -> Result<Instant, Refused>,
    ) -> Result<Instant, Refused> {
        let mut notices = NOTICES.into_iter();
        let mut notice = notices.next();
        let mut overtaken = 0;
        while let Some(given) = notice {
            let base = self.current().ok_or(Refused::NotAnswered)?;
            let mut trial = AdmissionState::clone(&base);
            trial.set_notice(given);
            let asked_at = clock::now();
            let from = decide(&mut trial)?;
            match self.commit(&base, trial, asked_at + given) {
                TAKEN => return Ok(from),
                OVERTAKEN if overtaken < OVERTAKEN_AT_MOST => overtaken += 1,
                TOO_LATE => notice = notices.next(),
                _ => break,
            }
        }
        Err(Refused::NotAnswered)
    }

    /// The admission as it is, if it is open.
    fn current(&self) -> Option<Arc<AdmissionState>> {
        let admission = self.admission.get()?;
        Some(unparked(|| Arc::clone(&admission.lock())))
    }

    /// Makes `next` the current admission if the dispatcher takes its calendar by then, and [`OVERTAKEN`] if `base` is current no more.
    fn commit(&self, base: &Arc<AdmissionState>, next: AdmissionState, by: Instant) -> u32 {
        let Some(admission) = self.admission.get() else {
            return CLOSED;
        };
        let post = Post {
            calendar: Some(next.calendar().clone()),
            by,
        };
        let next = Arc::new(next);
        // What is left over of either is freed here, when nobody waits for it.
        let (state, _left) = unparked(|| {
            let mut current = admission.lock();
            if !Arc::ptr_eq(&current, base) {
                return (OVERTAKEN, Some(post));
            }
            let (state, left) = self.post(post);
            if state == TAKEN {
                // `base` keeps the one before.
                *current = next;
            }
            (state, left)
        });
        state
    }

    /// Has the dispatcher take the calendar, and waits until it says whether it has. What is left is for its thread to free.
    fn post(&self, post: Post) -> (u32, Option<Post>) {
        if self.closed.load(Ordering::SeqCst) {
            return (CLOSED, Some(post));
        }
        self.state.store(POSTED, Ordering::SeqCst);
        *self.post.lock().unwrap_or_else(PoisonError::into_inner) = Some(post);
        self.doorbell.ring();
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state != POSTED {
                // Among it the calendar from before, which the dispatcher does not free.
                let mut left = self.post.lock().unwrap_or_else(PoisonError::into_inner);
                return (state, left.take());
            }
            if self.closed.load(Ordering::SeqCst) {
                return (CLOSED, None);
            }
            futex::wait(&self.state, POSTED, None);
        }
    }

    /// The dispatcher's side: takes what was posted. Never waits, allocates or frees.
    pub(crate) fn collect(&self, dispatcher: &mut Dispatcher) {
        if self.state.load(Ordering::SeqCst) != POSTED {
            return;
        }
        // Locked only for a moment by who posts, and the doorbell rings after it.
        let Ok(mut found) = self.post.try_lock() else {
            return;
        };
        let Some(post) = found.as_mut() else { return };
        let state = if clock::now() < post.by {
            let next = post.calendar.take();
            post.calendar = next.map(|next| dispatcher.follow(next));
            TAKEN
        } else {
            TOO_LATE
        };
        drop(found);
        self.state.store(state, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use laxity_model::Service;
    use laxity_model::policy::slots::{PlanCosts, plan};

    const COSTS: PlanCosts = PlanCosts {
        per_slot: Service::from_micros(50),
        max_share_ppm: 940_000,
        other_ppm: 0,
        granularity: Span::from_micros(50),
    };

    fn ms(service: u64, period: u64) -> Reservation {
        Reservation::new(Service::from_millis(service), Span::from_millis(period)).unwrap()
    }

    /// An open queue for one reservation and some guests; and its table, which began at this instant.
    fn open(held: Reservation, guests: usize) -> (ChangeQueue, SlotTable, Instant) {
        let table = plan(&[held], &COSTS).unwrap();
        let changes = ChangeQueue::new(Arc::new(Doorbell::default()));
        let origin = clock::now();
        changes.open(AdmissionState::new(
            (vec![held], guests),
            (table.clone(), origin),
            COSTS,
            Span::ZERO,
        ));
        (changes, table, origin)
    }

    /// Asks while somebody serves the queue whenever the doorbell rings, and does this before; tells what calendar is followed then.
    fn served<T>(
        (changes, table, origin): &(ChangeQueue, SlotTable, Instant),
        mut before: impl FnMut() + Send,
        ask: impl FnOnce() -> T,
    ) -> (T, Calendar) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let dispatcher = scope.spawn(|| {
                let mut machine = Dispatcher::new(table.clone(), *origin, Span::ZERO, Span::ZERO);
                while !done.load(Ordering::SeqCst) {
                    let rung = changes.doorbell.number();
                    before();
                    changes.collect(&mut machine);
                    if !done.load(Ordering::SeqCst) {
                        futex::wait(changes.doorbell.word(), rung, None);
                    }
                }
                changes.close();
                machine.calendar().clone()
            });
            let asked = ask();
            done.store(true, Ordering::SeqCst);
            changes.doorbell.ring();
            (asked, dispatcher.join().unwrap())
        })
    }

    #[test]
    fn no_answer_is_lost_where_several_ask_at_once() {
        const GUESTS: usize = 4;
        let at = open(ms(1, 10), GUESTS);
        let changes = &at.0;
        let guest = |owner: usize| {
            let mut granted = 0;
            for _ in 0..50 {
                let now = clock::now();
                // So far away that it is not past when it is given back.
                let until = now + Span::from_millis(900);
                let asked = TimeConstraint::new(now, until, Service::from_micros(300)).unwrap();
                if changes.constrain(owner, asked).is_ok() {
                    granted += 1;
                    let admission = changes.current().unwrap();
                    assert!(admission.is_constrained(owner, now), "it was answered");
                    assert_eq!(changes.release(owner), Some(until));
                }
            }
            granted
        };
        let (granted, followed) = served(
            &at,
            || {},
            || {
                thread::scope(|scope| {
                    let guests = [1, 2, 3, 4].map(|owner| scope.spawn(move || guest(owner)));
                    guests.map(|guest| guest.join().unwrap())
                })
            },
        );
        assert!(granted.iter().all(|granted| *granted > 0), "{granted:?}");
        let admission = changes.current().unwrap();
        assert_eq!(
            admission.calendar(),
            &followed,
            "what is answered is carried out"
        );
    }

    #[test]
    fn what_is_posted_too_late_is_decided_again_with_more_notice() {
        let at = open(ms(1, 10), 0);
        let changes = &at.0;
        let mut posts = Vec::new();
        let look_late = || {
            let post = changes.post.lock().unwrap().as_ref().map(|post| post.by);
            let Some(by) = post.filter(|by| !posts.contains(by)) else {
                return;
            };
            posts.push(by);
            if posts.len() < NOTICES.len() {
                clock::sleep_until(by);
            }
        };
        let asked_at = clock::now();
        let (answer, _) = served(&at, look_late, || changes.change(0, ms(2, 8)));
        assert!(answer.unwrap() >= asked_at + NOTICES[2]);
        assert_eq!(changes.current().unwrap().held(0), Some(ms(2, 8)));
    }

    #[test]
    fn a_queue_that_nobody_serves_says_so_and_changes_nothing() {
        let unopened = ChangeQueue::new(Arc::new(Doorbell::default()));
        assert_eq!(unopened.change(0, ms(2, 8)), Err(Refused::NotAnswered));
        let (changes, _, _) = open(ms(1, 10), 0);
        changes.close();
        assert_eq!(changes.change(0, ms(2, 8)), Err(Refused::NotAnswered));
        assert_eq!(changes.current().unwrap().held(0), Some(ms(1, 10)));
    }
}
