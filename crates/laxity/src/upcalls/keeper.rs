//! The handlers, on the executor's own thread, which they never leave.

use std::any::Any;
use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex};

use laxity_model::executor::account::Account;
use laxity_model::executor::share::Share;
use laxity_model::program::upcall::{self, PacedBy, Timing};
use laxity_model::program::upcalls::{Entrant, Keeper, Rests};
use laxity_model::{Context, Instant, PortId, Service, Span, Step};

use super::call::{Call, Wish};
use super::core::Core;
use super::members::Predecessor;

type Handler<S> = Box<dyn FnMut(&mut Call<'_, S>)>;

/// What makes a handler, with what all share.
type Make<S> = Box<dyn FnOnce(&mut S) -> Handler<S> + Send>;

/// When an upcall is called.
pub(super) struct When {
    pub(super) timing: Timing,
    pub(super) deadline: Span,
    pub(super) paced_by: Option<(PortId, Span)>,
    pub(super) unit: Service,
    pub(super) share: Option<Arc<Share>>,
    pub(super) account: Option<Arc<Account>>,
    /// Which one of its place it is.
    pub(super) serial: u64,
    pub(super) after: Option<Predecessor>,
}

/// What an upcall is made of, on its way to the executor's thread. Whoever writes it has done so before the executor is told to look.
pub(super) struct Letter<S> {
    pub(super) when: When,
    pub(super) make: Make<S>,
}

/// By place.
pub(super) type Letters<S> = Arc<[Mutex<Option<Letter<S>>>]>;

/// What is of the executor's thread.
struct Local<S> {
    shared: S,
    handlers: Vec<Option<Handler<S>>>,
}

thread_local! {
    static LOCAL: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// The calling thread is the executor's, and has this to share.
pub(super) fn install<S: 'static>(shared: S) {
    let local = Local {
        shared,
        handlers: Vec::new(),
    };
    LOCAL.set(Some(Box::new(local)));
}

/// On the executor's thread, outside of any handler; `None` elsewhere.
fn with<S: 'static, T>(work: impl FnOnce(&mut Local<S>) -> T) -> Option<T> {
    LOCAL.with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        local.as_mut()?.downcast_mut().map(work)
    })
}

/// The text of a panic. What else it left is never dropped, since that may panic again.
pub(super) fn text(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| {
        mem::forget(payload);
        "it left no message".to_owned()
    })
}

/// Who has the handlers.
pub(super) struct Keep<S> {
    core: Arc<Core>,
    letters: Letters<S>,
    /// So many arrivals wait for each upcall.
    events: u32,
    when: Vec<Option<When>>,
}

impl<S> Drop for Keep<S> {
    /// What is shared goes with the executor, and not when the thread's own end comes, of which nobody is told.
    fn drop(&mut self) {
        drop(LOCAL.take());
    }
}

impl<S: 'static> Keep<S> {
    pub(super) fn new(core: Arc<Core>, letters: Letters<S>, events: u32) -> Self {
        let when = letters.iter().map(|_| None).collect();
        Self {
            core,
            letters,
            events,
            when,
        }
    }

    /// Puts a handler at its place; what was there is dropped.
    fn put(&self, place: u16, handler: Option<Handler<S>>) -> bool {
        let before = with::<S, _>(|local| {
            let places = local.handlers.len().max(usize::from(place) + 1);
            local.handlers.resize_with(places, || None);
            mem::replace(&mut local.handlers[usize::from(place)], handler)
        });
        // Outside of the borrow: what it drops may close other upcalls.
        self.try_to(place, || drop(before)).is_some()
    }

    /// Does what a user wrote; `None` if that panicked, and what it said is kept.
    fn try_to<T>(&self, place: u16, work: impl FnOnce() -> T) -> Option<T> {
        let done = self.core.try_to(work);
        done.map_err(|payload| keep(&self.core, place, text(payload)))
            .ok()
    }
}

/// Keeps what a handler said, unless somebody reads there just now: the executor waits for nobody.
fn keep(core: &Core, place: u16, said: String) {
    if let Ok(mut place) = core.panics[usize::from(place)].try_lock() {
        *place = said;
    }
}

impl<S: 'static> Keeper for Keep<S> {
    fn make(&mut self, place: u16) -> bool {
        let index = usize::from(place);
        // Whoever wrote it holds it no more.
        let letter = self.letters[index].try_lock().ok();
        let Some(letter) = letter.and_then(|mut letter| letter.take()) else {
            return false;
        };
        self.when[index] = Some(letter.when);
        let make = || with::<S, _>(|local| (letter.make)(&mut local.shared));
        match self.try_to(place, make).flatten() {
            Some(handler) => self.put(place, Some(handler)),
            None => false,
        }
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let when = self.when[usize::from(place)].as_ref()?;
        let core = Arc::clone(&self.core);
        Some(Entrant {
            timing: when.timing.clone(),
            paced_by: when.paced_by.map(|(port, apart)| PacedBy {
                port,
                apart,
                room: self.events,
            }),
            deadline: when.deadline,
            unit: when.unit,
            share: when.share.clone(),
            account: when.account.clone(),
            work: Box::new(move |context, call| quantum::<S>(&core, place, context, call)),
        })
    }

    fn after(&self, place: u16) -> Option<u16> {
        let when = |place: u16| self.when.get(usize::from(place))?.as_ref();
        let before = when(place)?.after?;
        // Whoever has that place now may be another.
        let is_there = when(before.place)?.serial == before.serial;
        is_there.then_some(before.place)
    }

    fn discard(&mut self, place: u16) {
        self.when[usize::from(place)] = None;
        self.put(place, None);
    }

    fn rests(&self) -> Arc<Rests> {
        Arc::clone(&self.core.rests)
    }

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        let core = Arc::clone(&self.core);
        Arc::new(move || {
            core.close_abandoned();
            core.changed();
        })
    }
}

/// Has a handler do one quantum.
fn quantum<S: 'static>(
    core: &Core,
    place: u16,
    context: &mut dyn Context,
    call: &mut upcall::Call,
) -> Step {
    let work = || {
        with::<S, _>(|local| {
            let handler = local.handlers.get_mut(usize::from(place))?.as_mut()?;
            let mut call = Call {
                call,
                context,
                shared: &mut local.shared,
                wish: Wish::GoOn,
            };
            handler(&mut call);
            Some(call.wish)
        })
    };
    match core.try_to(work) {
        Ok(Some(Some(Wish::GoOn))) => Step::Charge(Service::ZERO),
        Ok(Some(Some(Wish::Suspend))) => Step::SleepUntil(Instant::MAX),
        Ok(_) => Step::Finish,
        Err(payload) => {
            keep(core, place, text(payload));
            core.boards[usize::from(place)].note_panic();
            Step::Finish
        }
    }
}
