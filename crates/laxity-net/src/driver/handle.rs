//! How other threads ask something of a driver while packets flow: a [question](crate::questions) is run by the driver's thread between two packets, at most one in a poll.

use std::sync::Arc;

use laxity_model::Instant;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::Demultiplex;

use super::Driver;
use crate::buffers::Line;
use crate::questions::{Answer, Questions};

/// A way to a driver from any thread. Who has it may do whatever the driver can: it is the owner's, and no client's.
pub struct Handle<L: Link, D: Demultiplex> {
    questions: Arc<Questions<Driver<L, D>>>,
    line: Arc<Line>,
}

impl<L: Link, D: Demultiplex> Clone for Handle<L, D> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.questions), Arc::clone(&self.line))
    }
}

impl<L: Link, D: Demultiplex> Handle<L, D> {
    pub(super) const fn new(questions: Arc<Questions<Driver<L, D>>>, line: Arc<Line>) -> Self {
        Self { questions, line }
    }

    /// Asks the driver, such as to register a client. It is for the answer to wait.
    pub fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver<L, D>) -> R + Send + 'static,
    ) -> Answer<R> {
        let answer = self.questions.ask(question);
        self.line.wake();
        answer
    }
}

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Whether another thread has asked something that was not answered yet: then it is in the next poll, unless somebody asks just then.
    pub fn is_asked(&self) -> bool {
        self.questions.is_any()
    }

    /// Answers the question that waits for the longest time. One relaxed load where there is none.
    pub(super) fn answer(&mut self, now: Instant) {
        if let Some(question) = self.questions.take() {
            // What was sent before it was asked leaves, though it may be that its client is to end.
            self.collect(now);
            question(self);
        }
    }
}
