//! The driver at interrupt level.

use laxity_model::nif::link::{Link, LinkError};
use laxity_model::nif::most::{Costs, Most, Pace};
use laxity_model::nif::registry::Demultiplex;
use laxity_model::{ActivityId, Body, Context, EventKind, Instant, PortId, SemaphoreId, Step};

use crate::client::{Effects, Rank};
use crate::driver::{Driver, DriverError, Polled};

/// An interface's interrupt, as its handler has it.
pub struct Interrupt {
    /// Signalled when it is raised.
    pub raised: SemaphoreId,
    /// To be signalled when frames were sent or the interrupt was unmasked.
    pub doorbell: SemaphoreId,
    /// Has it raised again for what happens from now on.
    pub unmask: Box<dyn FnMut(Instant) + Send>,
    /// What it costs to enter the driver, and each packet there that arrives, and each frame that is sent.
    pub costs: Costs,
    /// How much it takes at the most; what comes beyond waits in the interface, whose interrupt is masked meanwhile.
    pub most: Option<Most>,
}

/// A driver whose interrupts are these.
pub struct Handler<L: Link, D: Demultiplex> {
    driver: Driver<L, D>,
    interrupt: Interrupt,
    pace: Pace,
    /// What the last poll did, until it was charged.
    polled: Option<Polled>,
}

impl<L: Link, D: Demultiplex> Handler<L, D> {
    /// A driver that is polled when its interface's interrupt is raised.
    #[must_use]
    pub fn new(driver: Driver<L, D>, interrupt: Interrupt) -> Self {
        Self {
            driver,
            pace: Pace::new(interrupt.most),
            interrupt,
            polled: None,
        }
    }

    fn poll(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        if self.interrupt.most.is_some() {
            // One look is enough for all that asked for one.
            while context.take(self.interrupt.raised).is_some() {}
        }
        let left = self.pace.left(now);
        match self.driver.poll_at_most(now, &mut Through(context), left) {
            Ok(polled) => {
                let done = polled.all();
                self.pace.took(now, done);
                self.polled = Some(polled);
                Step::Charge(self.interrupt.costs.of(done as u64, polled.bytes))
            }
            Err(error) => {
                // Of an interface that is gone nothing is lost any more, so that who went on would be told that all is well.
                context.fail(match error {
                    DriverError::Link(LinkError::Gone) => {
                        "the interface of a network driver is gone"
                    }
                    _ => "a network driver cannot go on",
                });
                Step::Finish
            }
        }
    }
}

impl<L, D> Body for Handler<L, D>
where
    L: Link + Send,
    D: Demultiplex + Send,
    Driver<L, D>: Send,
{
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let Some(polled) = self.polled.take() else {
            return self.poll(context);
        };
        if let Some(until) = self.pace.rests_until(context.now()) {
            // What was sent leaves all the same.
            context.signal(self.interrupt.doorbell);
            return Step::SleepUntil(until);
        }
        if polled.is_more {
            return self.poll(context);
        }
        (self.interrupt.unmask)(context.now());
        context.signal(self.interrupt.doorbell);
        match polled.again {
            Some(again) => Step::WaitUntil(self.interrupt.raised, again),
            None => Step::Wait(self.interrupt.raised),
        }
    }
}

/// What clients, and whoever takes their packets, do to the rest of a program.
pub struct Through<'a>(pub &'a mut dyn Context);

impl Effects for Through<'_> {
    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        self.0.put(port, payload)
    }

    /// Until the activity waits: [`Context::raise`].
    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        self.0.raise(activity, rank, at);
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        self.0.record(kind, args);
    }
}
