//! The thread of a live driver: polls it, and sleeps until there is something to do.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use laxity_linux::host::alone::served::{Next, Serve};
use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Facts, LinkError};
use laxity_model::nif::most::{Costs, Most, Pace};
use laxity_model::{Instant, Service, Span};
use laxity_net::driver::{DriverError, Polled};

use super::LiveDriver;
use super::effects::Live;
use super::error::Ended;

/// So often a driver looks whether its interface is there and up, though nothing happens.
const LOOKS_EVERY: Span = Span::from_millis(100);
/// A question waits for so long where whoever asks another has the list just now.
const ASKED: Span = Span::from_micros(50);
/// A descriptor that says that it can be read, and has nothing, so often in a row is not listened to for a while.
const LIES: u32 = 8;
const NOT_HEARD: Span = Span::from_millis(1);
/// The same of an interface that fails.
const FAILED: Span = Span::from_millis(10);

/// What other threads know of a driver's thread.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) ended: OnceLock<Ended>,
    failures: AtomicU64,
    last: Mutex<Option<String>>,
}

impl Told {
    fn failed(&self, error: &DriverError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        // Who reads it just now has one like it.
        if let Ok(mut last) = self.last.try_lock() {
            *last = Some(error.to_string());
        }
    }

    /// How often a poll failed, and why last.
    pub(super) fn failures(&self) -> (u64, Option<String>) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (self.failures.load(Ordering::Relaxed), last.clone())
    }
}

/// Of so many bytes is a packet of this interface at the most.
pub(super) fn longest(interface: &Facts) -> u32 {
    u32::try_from(interface.mtu + HEADER).unwrap_or(u32::MAX)
}

/// What the thread has.
pub(super) struct Serving {
    driver: LiveDriver,
    effects: Live,
    told: Arc<Told>,
    pace: Pace,
    /// What each that the bound counts is charged: a packet as long as one may be, as admission charged it.
    each: Service,
    lies: u32,
}

impl Serving {
    pub(super) fn new(
        driver: LiveDriver,
        effects: Live,
        told: Arc<Told>,
        (most, costs): (Option<Most>, Option<Costs>),
    ) -> Self {
        let longest = longest(driver.facts());
        Self {
            driver,
            effects,
            told,
            pace: Pace::new(most),
            each: costs.map_or(Service::ZERO, |costs| costs.each(longest)),
            lies: 0,
        }
    }

    fn next(&mut self, now: Instant, polled: Polled, due: Option<Instant>, is_ready: bool) -> Next {
        self.pace.took(now, polled.all());
        let is_nothing = polled.arrived == 0 && polled.discarded == 0 && polled.sent == 0;
        self.lies = if is_ready && is_nothing {
            self.lies + 1
        } else {
            0
        };
        if polled.is_more {
            return Next::Again;
        }
        let after = |span: Span| now.checked_add(span).unwrap_or(Instant::MAX);
        let mut until = after(LOOKS_EVERY);
        let mut no_later = |than: Instant| until = until.min(than);
        due.into_iter().chain(polled.again).for_each(&mut no_later);
        if self.driver.is_asked() {
            no_later(after(ASKED));
        }
        if self.lies >= LIES {
            return Next::Pause(until.min(after(NOT_HEARD)));
        }
        Next::Sleep(until)
    }
}

impl Serve for Serving {
    fn work(&mut self, now: Instant, is_ready: bool) -> Next {
        let due = self.effects.until(now);
        if let Some(until) = self.pace.rests_until(now) {
            return Next::Rest(due.map_or(until, |due| due.min(until)));
        }
        let left = self.pace.left(now);
        match self.driver.poll_at_most(now, &mut self.effects, left) {
            Ok(polled) => {
                // Clients may have said since what is to be done later.
                let due = self.effects.until(now).or(due);
                self.next(now, polled, due, is_ready)
            }
            Err(DriverError::Link(LinkError::Gone)) => {
                // Only the first word counts.
                let _ = self.told.ended.set(Ended::Gone);
                Next::End
            }
            Err(error) => {
                // What it had done before that is not told.
                self.pace.took(now, left);
                self.told.failed(&error);
                Next::Pause(now.checked_add(FAILED).unwrap_or(Instant::MAX))
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.driver.link().as_fd()
    }

    fn charged(&self) -> Service {
        self.pace.charged(self.each)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let ended = if std::thread::panicking() {
            Ended::Panicked
        } else {
            Ended::Closed
        };
        // Only the first word counts.
        let _ = self.told.ended.set(ended);
    }
}
