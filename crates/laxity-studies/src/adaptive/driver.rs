//! A device's thread that adapts its reservation, or keeps it.

use laxity_model::adaptive::{Adapter, Observation};
use laxity_model::{Body, Context, Mark, Service, Span, Step};

use super::trial::PERIOD;
use laxity_lab::bench::bodies::HandsOn;
use laxity_lab::runner::tasks::Times;
use laxity_lab::workload::Draws;

/// Jobs this old are lost: what the study's card buffers, 512 samples, is 64 ms at 8 kHz.
pub(super) const BUFFERED: Span = Span::from_millis(64);

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

/// Where the thread is in its work.
#[derive(Clone, Copy)]
enum State {
    New,
    Signalled,
    /// At work on a job; before it this much service had been received.
    Worked(Service),
    /// A reservation was asked for.
    Asked,
}

/// The thread of a device that interrupts at these times, with its load and what the noise in that is drawn from. Without an adapter its
/// reservation stays.
pub fn driver(
    device: HandsOn,
    marks: Marks,
    times: Times,
    (load, mut draws): (Load, Draws),
    mut adapter: Option<Adapter>,
) -> impl Body + 'static {
    let (mut number, mut state) = (0, State::New);
    move |context: &mut dyn Context| {
        let now = context.now();
        let origin = *device.began.get_or_init(|| now);
        let release = times.at(origin, number);
        match state {
            State::New => {}
            State::Signalled => {
                let work = load.draw(release.saturating_since(origin), &mut draws);
                if now <= release + BUFFERED {
                    state = State::Worked(context.service());
                    return Step::Burn(work);
                }
                context.mark(marks.lost, [release.as_nanos(), 0]);
                number += 1;
            }
            State::Worked(before) => {
                let run = context.service().saturating_sub(before);
                context.mark(marks.done, [release.as_nanos(), run.as_nanos()]);
                number += 1;
                let in_time = now <= release + PERIOD;
                let job = Observation { run, in_time };
                let wanted = adapter
                    .as_mut()
                    .and_then(|adapter| adapter.observe(now, job));
                if let Some(reservation) = wanted {
                    state = State::Asked;
                    return Step::ChangeReservation(reservation);
                }
            }
            State::Asked => match &mut adapter {
                Some(adapter) if context.granted() => adapter.granted(now),
                Some(adapter) => adapter.refused(now),
                None => {}
            },
        }
        state = State::Signalled;
        Step::Wait(device.signal)
    }
}
