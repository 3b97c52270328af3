//! How other threads ask something of one that must not wait: a question is run by that thread, when it looks for one.
//!
//! Questions wait behind a lock that it only tries, and only when it has seen that there are any: who asks never holds it up.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

use crate::lock;

/// What is asked of a `T`.
pub type Question<T> = Box<dyn FnOnce(&mut T) + Send>;

/// What waits to be asked of the one `T` that answers, in order; nothing is taken once that has ended.
pub struct Questions<T> {
    waiting: Mutex<Option<Vec<Question<T>>>>,
    is_any: AtomicBool,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Some(Vec::new())),
            is_any: AtomicBool::new(false),
        }
    }
}

/// Who was asked has ended, and answers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("who was asked has ended")]
pub struct NoAnswer;

/// What will be answered.
#[derive(Debug)]
pub struct Answer<R>(Receiver<R>);

impl<R> Answer<R> {
    /// Waits for it.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    pub fn wait(self) -> Result<R, NoAnswer> {
        self.0.recv().map_err(|_| NoAnswer)
    }
}

impl<T> Questions<T> {
    /// Asks; whoever answers is to be woken then. It is for the answer to wait.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Answer<R> {
        let (answer, answered) = sync_channel(1);
        let asked: Question<T> = Box::new(move |of| {
            // There is room for one, and nobody may wait for it any more.
            answer.try_send(question(of)).ok();
        });
        if let Some(waiting) = &mut *lock(&self.waiting) {
            waiting.push(asked);
            self.is_any.store(true, Ordering::Release);
        }
        Answer(answered)
    }

    /// Whether something is asked that was not taken: then the next look finds it, unless somebody asks just then. One relaxed load.
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// The question that waits for the longest time; `None` too where somebody asks just now. One relaxed load where there is none.
    pub fn take(&self) -> Option<Question<T>> {
        if !self.is_any() {
            return None;
        }
        let mut waiting = self.waiting.try_lock().ok()?;
        let waiting = waiting.as_mut()?;
        let first = (!waiting.is_empty()).then(|| waiting.remove(0));
        self.is_any.store(!waiting.is_empty(), Ordering::Release);
        first
    }

    /// Nothing is answered any more: who waits is told.
    pub fn end(&self) {
        drop(mem::take(&mut *lock(&self.waiting)));
    }
}
