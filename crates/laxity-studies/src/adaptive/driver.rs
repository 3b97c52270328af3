//! A device's thread that adapts its reservation, or keeps it.

use laxity_model::adaptive::{Adapter, Observation};
use laxity_model::{Body, Context, Instant, Mark, SemaphoreId, Service, Span, Step};

use laxity_lab::bench::bodies::{Began, Times};
use laxity_lab::workload::Draws;

/// Jobs this old are lost: what the study's card buffers, 512 samples, is 64 ms at 8 kHz.
const BUFFERED: Span = Span::from_millis(64);

/// Run times over time.
#[derive(Clone, Debug)]
pub struct Load {
    /// Each load lasts so long; the last one for ever.
    pub stretch: Span,
    /// The mean run times, one after the other.
    pub means: Vec<Service>,
    /// Run times lie within so much of the mean on either side, in percent.
    pub noise_percent: u64,
}

impl Load {
    /// The mean run time at this time after the start.
    #[must_use]
    pub fn mean(&self, after: Span) -> Service {
        let place = usize::try_from(after / self.stretch).unwrap_or(usize::MAX);
        let mean = self.means.get(place).or(self.means.last());
        mean.copied().unwrap_or(Service::ZERO)
    }

    fn draw(&self, after: Span, draws: &mut Draws) -> Service {
        let noise = 10 * self.noise_percent;
        let permille = draws.between(1_000 - noise, 1_000 + noise);
        Service::from_nanos(self.mean(after).as_nanos() / 1_000 * permille)
    }
}

/// The driver's marks.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// A job is complete. Arguments: when it was released; the processor time it took, both in nanoseconds.
    pub done: Mark,
    /// A job was lost: too old. Argument: when it was released.
    pub lost: Mark,
}

#[derive(Clone, Copy)]
enum State {
    New,
    Signalled,
    /// At work on a job; before it this much service had been received.
    Worked(Service),
    /// A reservation was asked for.
    Asked,
}

/// The thread.
pub struct Driver {
    /// Signalled once an interrupt.
    pub signal: SemaphoreId,
    /// What it records.
    pub marks: Marks,
    times: Times,
    deadline: Span,
    load: Load,
    draws: Draws,
    adapter: Option<Adapter>,
    began: Began,
    number: u64,
    state: State,
}

impl Driver {
    /// For a device that interrupts at these times after it began; jobs are due after `deadline`. Without an adapter the reservation stays.
    #[must_use]
    pub fn new(
        (signal, marks): (SemaphoreId, Marks),
        (times, began, deadline): (Times, Began, Span),
        (load, seed): (Load, u64),
        adapter: Option<Adapter>,
    ) -> Self {
        Self {
            signal,
            marks,
            times,
            deadline,
            load,
            draws: Draws::new(seed, 0),
            adapter,
            began,
            number: 0,
            state: State::New,
        }
    }

    /// A job is complete: what to ask for, if anything.
    fn complete(&mut self, context: &mut dyn Context, origin: Instant, before: Service) -> Step {
        let now = context.now();
        let release = self.times.at(origin, self.number);
        let run = context.service().saturating_sub(before);
        context.mark(self.marks.done, [release.as_nanos(), run.as_nanos()]);
        self.number += 1;
        let job = Observation {
            run,
            in_time: now <= release + self.deadline,
        };
        let wanted = self
            .adapter
            .as_mut()
            .and_then(|adapter| adapter.observe(now, job));
        match wanted {
            Some(reservation) => {
                self.state = State::Asked;
                Step::ChangeReservation(reservation)
            }
            None => self.wait(),
        }
    }

    fn wait(&mut self) -> Step {
        self.state = State::Signalled;
        Step::Wait(self.signal)
    }

    fn begin(&mut self, context: &mut dyn Context, origin: Instant) -> Step {
        let now = context.now();
        let release = self.times.at(origin, self.number);
        let work = self
            .load
            .draw(release.saturating_since(origin), &mut self.draws);
        if now > release + BUFFERED {
            context.mark(self.marks.lost, [release.as_nanos(), 0]);
            self.number += 1;
            return self.wait();
        }
        self.state = State::Worked(context.service());
        Step::Burn(work)
    }
}

impl Body for Driver {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let origin = *self.began.get_or_init(|| context.now());
        match self.state {
            State::New => self.wait(),
            State::Signalled => self.begin(context, origin),
            State::Worked(before) => self.complete(context, origin, before),
            State::Asked => {
                let (now, granted) = (context.now(), context.granted());
                if let Some(adapter) = &mut self.adapter {
                    if granted {
                        adapter.granted(now);
                    } else {
                        adapter.refused(now);
                    }
                }
                self.wait()
            }
        }
    }
}
