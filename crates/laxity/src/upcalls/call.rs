//! What a handler is told, and what it may ask for.

use std::ops::Deref;

use laxity_model::Context;
use laxity_model::program::upcall;

/// One quantum of a call: what the handler is told of it, what it shares with the others of its executor, and what it may ask for. The rest is that of
/// the [call](upcall::Call) itself: its nominal release, when it began, when the one before ended, the releases that were missed, and whether its own next release has come.
pub struct Call<'a, S = ()> {
    pub(super) call: &'a mut upcall::Call,
    pub(super) context: &'a mut dyn Context,
    /// What all handlers of the executor have, one after the other.
    pub shared: &'a mut S,
    pub(super) wish: Wish,
}

/// What a handler wants when its quantum is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    GoOn,
    Suspend,
    End,
}

impl<S> Deref for Call<'_, S> {
    type Target = upcall::Call;

    fn deref(&self) -> &upcall::Call {
        self.call
    }
}

impl<S> Call<'_, S> {
    /// Whether somebody more urgent waits whom a [pause](Self::pause_after) would let go first: for those who would rather end a quantum early, as the next look comes after it anyhow. In the
    /// last quantum of a call nobody does, unless the upcall [says](upcall::Timing::pauses) that it pauses. It costs a clock reading and one load where nothing has happened; no system call.
    pub fn should_yield(&mut self) -> bool {
        self.call.can_pause() && self.context.should_yield()
    }

    /// There is no more to be done in this call after this quantum.
    pub const fn finish(&mut self) {
        self.call.finish();
    }

    /// So many units are done now, because [somebody more urgent waits](Self::should_yield): the rest of the quantum goes on after them. Who says twice that none are done, while nobody more urgent waits, has no more to do in this call. More than [were to be done](upcall::Call::now) count too, up to the batch; others waited for them longer than was admitted.
    pub fn pause_after(&mut self, units: u32) {
        self.call.pause_after(units);
    }

    /// So many units are done now, and there is no more to be done in this call.
    pub fn finish_after(&mut self, units: u32) {
        self.call.finish_after(units);
    }

    /// After this quantum the upcall is suspended: it is not called until it is to run again.
    pub const fn suspend(&mut self) {
        self.wish = Wish::Suspend;
    }

    /// After this quantum the upcall ends.
    pub const fn end(&mut self) {
        self.wish = Wish::End;
    }
}
