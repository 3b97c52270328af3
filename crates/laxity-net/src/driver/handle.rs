//! How other threads ask something of a driver while packets flow: a question is run by the driver's thread between two packets, at most one in a poll.
//!
//! Questions wait behind a lock that the driver only tries, and only when it has seen that there are any: who asks never holds it up.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use laxity_model::Instant;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::Demultiplex;

use super::Driver;
use crate::buffers::Line;
use crate::lock;

type Question<L, D> = Box<dyn FnOnce(&mut Driver<L, D>) + Send>;

/// What waits to be asked; `None` once the driver has ended.
pub(super) struct Questions<L: Link, D: Demultiplex> {
    waiting: Mutex<Option<Vec<Question<L, D>>>>,
    is_any: AtomicBool,
}

impl<L: Link, D: Demultiplex> Default for Questions<L, D> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Some(Vec::new())),
            is_any: AtomicBool::new(false),
        }
    }
}

/// The driver has ended, and answers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the driver has ended")]
pub struct DriverEnded;

/// A way to a driver from any thread. Who has it may do whatever the driver can: it is the owner's, and no client's.
pub struct Handle<L: Link, D: Demultiplex> {
    questions: Arc<Questions<L, D>>,
    line: Arc<Line>,
}

impl<L: Link, D: Demultiplex> Clone for Handle<L, D> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.questions), Arc::clone(&self.line))
    }
}

impl<L: Link, D: Demultiplex> Handle<L, D> {
    pub(super) const fn new(questions: Arc<Questions<L, D>>, line: Arc<Line>) -> Self {
        Self { questions, line }
    }

    /// Asks the driver, such as to register a client. It is for the answer to wait.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver<L, D>) -> R + Send + 'static,
    ) -> Answer<R> {
        let (answer, answered) = sync_channel(1);
        let asked: Question<L, D> = Box::new(move |driver| {
            // There is room for one, and nobody may wait for it any more.
            answer.try_send(question(driver)).ok();
        });
        let mut waiting = lock(&self.questions.waiting);
        if let Some(waiting) = &mut *waiting {
            waiting.push(asked);
            self.questions.is_any.store(true, Ordering::Release);
        }
        drop(waiting);
        self.line.wake();
        Answer(answered)
    }
}

/// What a driver will answer.
#[derive(Debug)]
pub struct Answer<R>(Receiver<R>);

impl<R> Answer<R> {
    /// Waits for it: for the next poll of the driver.
    ///
    /// # Errors
    ///
    /// The driver has ended.
    pub fn wait(self) -> Result<R, DriverEnded> {
        self.0.recv().map_err(|_| DriverEnded)
    }
}

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Whether another thread has asked something that was not answered yet: then it is in the next poll, unless somebody asks just then.
    pub fn is_asked(&self) -> bool {
        self.questions.is_any.load(Ordering::Relaxed)
    }

    /// Answers the question that waits for the longest time. One relaxed load where there is none.
    pub(super) fn answer(&mut self, now: Instant) {
        if !self.questions.is_any.load(Ordering::Relaxed) {
            return;
        }
        let questions = Arc::clone(&self.questions);
        let question = {
            // Whoever asks has it just now: then in the next poll.
            let Ok(mut waiting) = questions.waiting.try_lock() else {
                return;
            };
            let Some(waiting) = &mut *waiting else {
                return;
            };
            let first = (!waiting.is_empty()).then(|| waiting.remove(0));
            questions
                .is_any
                .store(!waiting.is_empty(), Ordering::Release);
            first
        };
        if let Some(question) = question {
            // What was sent before it was asked leaves, though it may be that its client is to end.
            self.collect(now);
            question(self);
        }
    }

    /// Nothing is answered any more: who waits is told.
    pub(super) fn end_questions(&self) {
        drop(mem::take(&mut *lock(&self.questions.waiting)));
    }
}
