//! The derivation itself: integers, and every remainder to the safe side.

use core::num::NonZeroU32;

use super::{Buffers, Class, Cost, Limits, Mapping, Path, Release, Unmappable};
use crate::{Service, Span};

type Result<T, E = Unmappable> = core::result::Result<T, E>;

const SECOND: u64 = 1_000_000_000;

/// Frames of more PDUs than this are spread over no more calls.
const MOST_CALLS: u64 = 4_096;

/// What a class of stream needs, where the work on its PDUs costs so much, they go over this path, and upcalls keep to these limits.
///
/// # Errors
///
/// [`Unmappable`]: what is asked for cannot be, by this alone; whether there is time for it beside others is a question of [admission](super::super::admit_among).
pub fn map(class: &Class, cost: &Cost, path: &Path, limits: &Limits) -> Result<Mapping> {
    if limits.shortest.is_zero() {
        return Err(Unmappable::Zero("the shortest period"));
    }
    if limits.shortest > limits.longest {
        return Err(Unmappable::Limits {
            shortest: limits.shortest,
            longest: limits.longest,
        });
    }
    let mapper = Mapper {
        cost: *cost,
        path: *path,
        limits: *limits,
        most_bytes: most_bytes(cost, path, limits)?,
    };
    match *class {
        Class::ContinuousMedia {
            frame_bytes,
            every,
            delay,
        } => mapper.stream(frame_bytes, every, delay),
        Class::Messages {
            bytes,
            per_second,
            delay,
        } => {
            let every = Span::from_nanos(SECOND / u64::from(per_second.get()));
            mapper.stream(bytes, every, delay)
        }
        Class::Bulk { bytes_per_second } => mapper.bulk(bytes_per_second.get()),
        Class::Transactions {
            bytes,
            every,
            response,
        } => mapper.transactions(bytes, every, response),
    }
}

/// The most that a PDU may carry: what the path lets it, and what can be worked on within a quantum.
fn most_bytes(cost: &Cost, path: &Path, limits: &Limits) -> Result<u32> {
    let most = cost.most_bytes(limits.quantum).filter(|most| *most > 0);
    let most = most.ok_or(Unmappable::PduTooDear {
        each: cost.each,
        quantum: limits.quantum,
    })?;
    if cost.of(1).is_zero() {
        return Err(Unmappable::Zero("the cost of a PDU"));
    }
    Ok(u32::try_from(most).map_or(path.pdu_bytes.get(), |most| most.min(path.pdu_bytes.get())))
}

struct Mapper {
    cost: Cost,
    path: Path,
    limits: Limits,
    most_bytes: u32,
}

/// What is common to all PDUs of a stream.
#[derive(Clone, Copy)]
struct Unit {
    /// Of a frame.
    pdus: u64,
    bytes: u32,
    service: Service,
}

/// A batch and a period.
#[derive(Clone, Copy)]
struct Choice {
    batch: u64,
    period: u64,
    /// Calls that a frame takes.
    calls: u64,
}

impl Mapper {
    /// Frames of this size in PDUs of one size, as few as can be.
    fn unit(&self, bytes: NonZeroU32) -> Unit {
        let pdus = bytes.get().div_ceil(self.most_bytes);
        let each = bytes.get().div_ceil(pdus);
        Unit {
            pdus: pdus.into(),
            bytes: each,
            service: self.cost.of(each),
        }
    }

    /// What a call takes of a processor, with what it takes besides its PDUs; in nanoseconds.
    fn work(&self, unit: &Unit, choice: &Choice) -> u64 {
        let pdus = unit.service.as_nanos().saturating_mul(choice.batch);
        pdus.saturating_add(self.limits.call.as_nanos())
    }

    /// Whole nanoseconds from PDU to PDU, so that the link is never behind; but no less than the shortest period.
    fn rounded(&self, period: u64, batch: u64) -> u64 {
        (period / batch * batch).max(self.limits.shortest.as_nanos())
    }

    /// Frames that come no closer than `every`.
    fn stream(&self, bytes: NonZeroU32, every: Span, delay: Span) -> Result<Mapping> {
        if every.is_zero() {
            return Err(Unmappable::Zero("the time between two frames or messages"));
        }
        let (unit, every) = (self.unit(bytes), every.as_nanos());
        let [shortest, longest] = [self.limits.shortest, self.limits.longest].map(Span::as_nanos);
        let within = delay.saturating_sub(self.path.latency).as_nanos();
        // Several calls a frame, or one.
        let several = (1..=unit.pdus.min(MOST_CALLS)).map(|calls| {
            let period = (every / calls).min(within / (calls + 4)).min(longest);
            (calls, unit.pdus.div_ceil(calls), period)
        });
        // Or one for several frames: as many as come in whole multiples of their time, or in as long as can be.
        let most = (within / 5).min(longest);
        let batched = [most / every * every, most].into_iter();
        let batched = batched.filter(|period| *period > every);
        let batched = batched.map(|period| {
            let frames = period.div_ceil(every);
            (1, unit.pdus.saturating_mul(frames), period)
        });
        let choices = several.chain(batched).filter_map(|(calls, batch, period)| {
            let choice = Choice {
                batch,
                period: self.rounded(period, batch),
                calls: unit.pdus.div_ceil(batch).min(calls),
            };
            (period >= shortest && period >= batch).then_some(choice)
        });
        let share = |choice: &Choice| [self.work(&unit, choice), choice.period].map(u128::from);
        let least = choices.reduce(|best, other| {
            let ([best_work, best_period], [work, period]) = (share(&best), share(&other));
            let is_less = work * best_period < best_work * period;
            if is_less { other } else { best }
        });
        let choice = least.ok_or(Unmappable::TooSoon {
            delay,
            shortest: self.limits.shortest,
            least: Span::from_nanos(
                shortest
                    .saturating_mul(5)
                    .saturating_add(self.path.latency.as_nanos()),
            ),
        })?;
        let delay = (choice.calls + 4) * choice.period + self.path.latency.as_nanos();
        let deadline = choice.period;
        self.mapping(&unit, choice, (Release::Timer, deadline), Some(delay))
    }

    fn bulk(&self, bytes_per_second: u64) -> Result<Mapping> {
        let unit = Unit {
            pdus: 1,
            bytes: self.most_bytes,
            service: self.cost.of(self.most_bytes),
        };
        let [rate, bytes] = [bytes_per_second, unit.bytes.into()].map(u128::from);
        let longest = u128::from(self.limits.longest.as_nanos());
        let batch = (rate * longest / (bytes * u128::from(SECOND))).max(1);
        let fills = |batch: u128| batch * bytes * u128::from(SECOND) / rate;
        // One more than fit into the longest period is more than is asked for, and the only way to a period that is not too short.
        let batch = batch + u128::from(fills(batch) < self.limits.shortest.as_nanos().into());
        let period = longest.min(fills(batch));
        let [batch, period] = [batch, period].map(u64::try_from);
        let too_large = |_| Unmappable::TooLarge("the batch");
        let (batch, period) = (batch.map_err(too_large)?, period.map_err(too_large)?);
        if period < batch {
            return Err(Unmappable::TooLarge("the throughput"));
        }
        let choice = Choice {
            batch,
            period: self.rounded(period, batch),
            calls: 1,
        };
        self.mapping(&unit, choice, (Release::Timer, choice.period), None)
    }

    fn transactions(&self, bytes: NonZeroU32, every: Span, response: Span) -> Result<Mapping> {
        if response.is_zero() {
            return Err(Unmappable::Zero("the response time"));
        }
        if every < self.limits.shortest {
            return Err(Unmappable::TooOften {
                every,
                shortest: self.limits.shortest,
            });
        }
        let (unit, period) = (self.unit(bytes), every.as_nanos());
        let choice = Choice {
            batch: unit.pdus,
            period,
            calls: 1,
        };
        let deadline = response.as_nanos().min(period);
        self.mapping(&unit, choice, (Release::Arrivals, deadline), Some(deadline))
    }

    fn mapping(
        &self,
        unit: &Unit,
        choice: Choice,
        (release, deadline): (Release, u64),
        delay: Option<u64>,
    ) -> Result<Mapping> {
        let Choice { batch, period, .. } = choice;
        let needs = self.work(unit, &choice);
        if needs > deadline {
            return Err(Unmappable::TooMuch {
                needs: Service::from_nanos(needs),
                of: Span::from_nanos(deadline),
            });
        }
        let positive = |number: u64, what| {
            let number = u32::try_from(number).map_err(|_| Unmappable::TooLarge(what))?;
            NonZeroU32::new(number).ok_or(Unmappable::Zero(what))
        };
        let quantum = self.limits.quantum.as_nanos() / unit.service.as_nanos();
        let spacing = (period / batch).max(1);
        let wire = u128::from(unit.bytes) + u128::from(self.path.header_bytes);
        let rate = (wire * u128::from(SECOND)).div_ceil(u128::from(spacing));
        let jitter = self.path.jitter.as_nanos().div_ceil(spacing);
        Ok(Mapping {
            period: Span::from_nanos(period),
            deadline: Span::from_nanos(deadline),
            batch: positive(batch, "the batch")?,
            quantum: positive(quantum.clamp(1, batch), "the quantum")?,
            service: unit.service,
            release,
            pdu_bytes: positive(unit.bytes.into(), "the PDU")?,
            unit_pdus: positive(unit.pdus, "the PDUs of a frame")?,
            spacing: Span::from_nanos(spacing),
            bytes_per_second: u64::try_from(rate)
                .map_err(|_| Unmappable::TooLarge("the bandwidth"))?,
            buffers: Buffers {
                send: unit.pdus.max(batch) + batch,
                link: 2 * batch,
                receive: jitter.saturating_add(4 * batch),
            },
            delay: delay.map(Span::from_nanos),
        })
    }
}
