//! How executors end.

use laxity_linux::os::stderr::say_at_once;
use laxity_model::Span;

use super::core::PATIENCE;
use super::{Error, Upcalls};

impl<S> Upcalls<S> {
    /// Ends all upcalls, and the executor with them: when the quantum that is under way is over and all handlers are dropped, for which this waits no longer than `limit`. To drop it
    /// is the same with a limit of ten seconds, and says on standard error what this returns then.
    ///
    /// # Errors
    ///
    /// [`Error::NoAnswer`]: a handler has not come back. The executor is [over](Error::Over) then all the same. Its thread is left behind with all that it has, which stays valid; it is an ordinary thread from
    /// now on, unless it has a reservation, and ends when the handler does come back. [`Error::Inside`]: a handler cannot wait for that, and it comes after its quantum. [`Error::Over`], in a child that was forked.
    pub fn close(mut self, limit: Span) -> Result<(), Error> {
        self.finish(limit)
    }

    fn finish(&mut self, limit: Span) -> Result<(), Error> {
        if !self.alone.is_there() {
            return Ok(());
        }
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
        let is_over = || core.is_over().then_some(());
        if core.bell.wait_for(until, is_over).is_none() {
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
        if let Err(error @ Error::NoAnswer(_)) = self.finish(PATIENCE) {
            say_at_once(&format!("laxity: {error}; its thread is left behind\n"));
        }
    }
}
