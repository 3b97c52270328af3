//! How upcalls end, and executors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_linux::os::stderr::say_at_once;
use laxity_model::program::upcalls::{Command, Counts, Order, STOP};
use laxity_model::{Instant, PortId, Span};

use super::core::{COMMANDS, Core, PATIENCE, PLACES};
use super::{Error, Upcalls};

/// Where it is kept whether the upcall of a place is abandoned: which word, and which bit of it.
const fn abandoned(place: u16) -> (usize, u64) {
    (place as usize / 64, 1 << (place % 64))
}

/// For whose answer nobody waits.
fn unasked(place: u16, command: Command) -> [u64; 2] {
    let order = Order {
        place,
        command,
        ticket: 0,
    };
    order.payload()
}

impl Core {
    /// Closes an upcall, whose place is free when that is done; tells what it has done until then. Nothing feeds its port any more.
    pub(super) fn close(
        self: &Arc<Self>,
        place: u16,
        port: Option<PortId>,
        closed: &AtomicBool,
    ) -> Result<Counts, Error> {
        let asked = self.ask(place, Command::Close, closed);
        // Whoever closed it does this, and nobody else, before the place can be another's.
        if !matches!(asked, Err(Error::Ended | Error::Busy)) {
            self.end_feed(port);
        }
        let counts = self.boards[usize::from(place)].counts();
        // Where it is not answered yet it is all the same, when it is.
        if matches!(asked, Ok(()) | Err(Error::NoAnswer(_))) {
            self.gone[usize::from(place)].store(true, Ordering::Release);
        }
        asked?;
        self.gives_back();
        Ok(counts)
    }

    /// Closes one that nobody has any more, and waits for nothing: where there is no room to say so, it is said as soon as there is.
    pub(super) fn abandon(&self, place: u16, port: Option<PortId>, closed: &AtomicBool) {
        if closed.swap(true, Ordering::SeqCst) || self.is_over() {
            return;
        }
        self.end_feed(port);
        let _its_own = self.stay(place);
        let (word, bit) = abandoned(place);
        self.abandoned[word].fetch_or(bit, Ordering::SeqCst);
        // After the next command it is closed: this one, or where there is no room for it, one of those that wait.
        self.inbox.put(COMMANDS, unasked(place, Command::Suspend));
    }

    /// Closes those that were abandoned, as far as there is room to say so now. For the executor's thread alone.
    pub(super) fn close_abandoned(&self) {
        for place in 0..PLACES as u16 {
            let (word, bit) = abandoned(place);
            let is_abandoned = self.abandoned[word].load(Ordering::SeqCst) & bit != 0;
            if is_abandoned && self.inbox.put(COMMANDS, unasked(place, Command::Close)) {
                self.abandoned[word].fetch_and(!bit, Ordering::SeqCst);
                self.gone[usize::from(place)].store(true, Ordering::Release);
            }
        }
    }

    /// An upcall that was never made has its place no more.
    pub(super) fn forget(self: &Arc<Self>, place: u16, port: Option<PortId>, closed: &AtomicBool) {
        // Else whoever drops it would close what is at its place then.
        closed.store(true, Ordering::SeqCst);
        self.end_feed(port);
        self.gone[usize::from(place)].store(true, Ordering::Release);
        self.gives_back();
    }

    /// Has the executor end. Where there is no room until then to say so, it ends at its next wait.
    fn stop(&self, until: Option<Instant>) {
        while !self.is_over() && !self.inbox.put(COMMANDS, STOP) {
            if until.is_some_and(|until| crate::now() >= until) {
                return self.inbox.close();
            }
            thread::yield_now();
        }
        self.inbox.leave();
    }
}

impl<S> Upcalls<S> {
    /// Ends all upcalls, and the executor with them: when the quantum that is under way is over and all handlers are dropped, for which this waits no longer than `limit`. To drop it
    /// is the same with a limit of ten seconds, and says on standard error what this returns then.
    ///
    /// # Errors
    ///
    /// [`Error::NoAnswer`]: a handler has not come back. The executor is [over](Error::Over) then all the same. Its thread is left behind with all that it has, which stays valid; it is an ordinary thread from
    /// now on, unless it has a reservation, and ends when the handler does come back. [`Error::Inside`]: a handler cannot wait for that, and it comes after its quantum. [`Error::Over`], in a child that was forked.
    pub fn close(self, limit: Span) -> Result<(), Error> {
        self.end(limit)
    }

    /// The same for one that several share. Where a handler had not come back this may be asked again, and waits for that again.
    ///
    /// # Errors
    ///
    /// Those of [`Self::close`].
    pub fn end(&self, limit: Span) -> Result<(), Error> {
        let core = &self.core;
        if core.is_elsewhere() {
            self.alone.forget();
            return Err(Error::Over);
        }
        let until = crate::now().checked_add(limit);
        core.stop(until);
        if core.is_inside() {
            self.alone.leave();
            return Err(Error::Inside);
        }
        let has_ended = || core.has_ended().then_some(());
        if core.bell.wait_for(until, has_ended).is_none() {
            core.gives_up();
            self.alone.demote();
            self.alone.leave();
            return Err(Error::NoAnswer(limit));
        }
        self.alone.join();
        if let Some(books) = &core.books {
            books.leave();
        }
        Ok(())
    }
}

impl<S> Drop for Upcalls<S> {
    fn drop(&mut self) {
        // Else it was ended before, or its thread left behind.
        if self.alone.is_there()
            && let Err(error @ Error::NoAnswer(_)) = self.end(PATIENCE)
        {
            say_at_once(&format!("laxity: {error}; its thread is left behind\n"));
        }
    }
}
