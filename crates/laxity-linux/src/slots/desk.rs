//! Where threads ask for changes of a slot table while it is carried out.
//!
//! The thread that asks also plans: the ledger's answers cost it time and memory, not the dispatcher. What was granted it posts; the
//! dispatcher takes the post at its next edge or bell, by exchanging two pointers, and confirms. A post that comes too late, because its
//! thread was kept from the processor between planning and posting, is turned down, and the thread plans again with more notice: what
//! is answered is always what is carried out.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use laxity_model::slots::{Calendar, Dispatcher, Ledger};
use laxity_model::{Instant, Refused, Reservation, Span, TimeConstraint};

use super::seat::Bell;
use crate::{clock, futex};

/// From a decision until the dispatcher has surely heard of it: the first and the later attempts.
const NOTICES: [Span; 3] = [
    Span::from_micros(500),
    Span::from_millis(4),
    Span::from_millis(32),
];

const NOTHING: u32 = 0;
const POSTED: u32 = 1;
const TAKEN: u32 = 2;
const TOO_LATE: u32 = 3;
/// The dispatcher is gone.
const CLOSED: u32 = 4;

/// A calendar to follow, if it is taken by then.
struct Post {
    /// Taken for a moment while it is exchanged.
    calendar: Option<Calendar>,
    by: Instant,
}

/// The desk of one processor's slots.
pub(crate) struct Desk {
    /// Held while somebody plans; never by the dispatcher.
    ledger: OnceLock<Mutex<Ledger>>,
    post: Mutex<Option<Post>>,
    /// What became of the post.
    state: AtomicU32,
    closed: AtomicBool,
    bell: Arc<Bell>,
}

impl Desk {
    pub(crate) fn new(bell: Arc<Bell>) -> Self {
        Self {
            ledger: OnceLock::new(),
            post: Mutex::new(None),
            state: AtomicU32::new(NOTHING),
            closed: AtomicBool::new(false),
            bell,
        }
    }

    /// The run is about to begin: the table's origin is known. Nobody asks before.
    pub(crate) fn open(&self, ledger: Ledger) {
        // Opened once, by the one dispatcher.
        let _ = self.ledger.set(Mutex::new(ledger));
    }

    /// The dispatcher goes: whoever waits for it waits no more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.state.store(CLOSED, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }

    /// Asks for another reservation of an owner's.
    pub(crate) fn change(&self, owner: usize, asked: Reservation) -> Result<Instant, Refused> {
        // Planning takes milliseconds, deciding microseconds: only the second is a matter of notice.
        let ledger = self.ledger.get().ok_or(Refused::Changing)?;
        let proposal = lock(ledger).propose(owner, asked)?;
        self.ask(|ledger| ledger.change(proposal.clone(), clock::now()))
    }

    /// Asks for a time constraint of an owner's.
    pub(crate) fn constrain(
        &self,
        owner: usize,
        asked: TimeConstraint,
    ) -> Result<Instant, Refused> {
        self.ask(|ledger| ledger.constrain(owner, asked, clock::now()))
    }

    /// Gives back what is left of an owner's time constraint; its deadline, if there was one that is not past.
    pub(crate) fn release(&self, owner: usize) -> Option<Instant> {
        let mut ledger = lock(self.ledger.get()?);
        let released = ledger.release(owner, clock::now())?;
        self.post(ledger.calendar().clone(), Instant::MAX);
        Some(released)
    }

    /// Decides on a copy of the ledger, and keeps it if the dispatcher takes it in time.
    fn ask(
        &self,
        decide: impl Fn(&mut Ledger) -> Result<Instant, Refused>,
    ) -> Result<Instant, Refused> {
        let mut ledger = lock(self.ledger.get().ok_or(Refused::Changing)?);
        for notice in NOTICES {
            let mut trial = ledger.clone();
            trial.set_notice(notice);
            let asked_at = clock::now();
            let from = decide(&mut trial)?;
            if self.post(trial.calendar().clone(), asked_at + notice) == TAKEN {
                *ledger = trial;
                return Ok(from);
            }
        }
        Err(Refused::Changing)
    }

    /// Has the dispatcher take the calendar, and waits until it says whether it has.
    fn post(&self, calendar: Calendar, by: Instant) -> u32 {
        if self.closed.load(Ordering::SeqCst) {
            return CLOSED;
        }
        self.state.store(POSTED, Ordering::SeqCst);
        *lock(&self.post) = Some(Post {
            calendar: Some(calendar),
            by,
        });
        self.bell.ring();
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state != POSTED {
                // The calendar from before is freed here, not by the dispatcher.
                lock(&self.post).take();
                return state;
            }
            if self.closed.load(Ordering::SeqCst) {
                return CLOSED;
            }
            futex::wait(&self.state, POSTED, None);
        }
    }

    /// The dispatcher's side: takes what was posted. Never waits, allocates or frees.
    pub(crate) fn collect(&self, dispatcher: &mut Dispatcher) {
        if self.state.load(Ordering::SeqCst) != POSTED {
            return;
        }
        // Locked only for a moment by who posts, and the bell rings after it.
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

/// A panic of another thread leaves what it was about to change as it was.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
