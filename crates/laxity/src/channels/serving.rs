//! The thread of a node: takes in what came, has the node do what is due, fills the links, and sleeps until there is something to do.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use laxity_linux::host::alone::served::{Next, Serve};
use laxity_linux::os::clock;
use laxity_model::{Instant, Span};

use super::Asks;
use super::core::Core;

/// A question waits for so long where whoever asks another has the list just now.
const ASKED: Span = Span::from_micros(50);

/// What the thread has.
pub(super) struct Serving {
    pub(super) core: Core,
    pub(super) asks: Arc<Asks>,
}

impl Serve for Serving {
    fn work(&mut self, now: Instant, is_ready: bool) -> Next {
        let Self { core, asks } = self;
        core.looks += 1;
        core.spare.looks();
        core.hear(now, is_ready);
        // Where too much was asked, what is asked waits.
        let mut answers = core.spare.rests_until(now);
        if answers.is_none()
            && let Some(question) = asks.take()
        {
            question(core);
            answers = core.spare.spent(now, clock::now());
        }
        let mut is_more = core.take_in();
        core.listen();
        is_more |= core.take_messages();
        if core.node.next() <= now {
            core.node.wake(clock::now());
        }
        core.listen();
        core.give_out();
        core.listen();
        if is_more {
            return Next::Again;
        }
        let now = clock::now();
        let Some(until) = core.rests(now) else {
            return Next::Again;
        };
        let until = until.min(core.node.next());
        match asks.is_any() {
            true => {
                let soon = now.checked_add(ASKED).unwrap_or(until);
                Next::Sleep(until.min(answers.unwrap_or(soon)))
            }
            false => Next::Sleep(until),
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.core.stirs.as_fd()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.asks.end();
    }
}
