//! Streams that were mapped from what an application asks for: what becomes of every PDU of them, from source to sink, and whether that is what was asked for.
//!
//! A sender's upcall takes PDUs from its buffer and gives them to a link, a receiver's takes them from there: both in one executor, beside those of other streams. The link is arithmetic. So all phases can be tried, and the buffers
//! can be seen to suffice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::stage::CPU;
use crate::{Result, ensure, ensure_in_time};
use laxity_model::program::upcall::{Call, First, Upcall};
use laxity_model::program::upcalls::qos::{Class, Mapping, Path, Release};
use laxity_model::{Body, Context, ExecutorId, Instant, Placement, PortId, Program, Span, Step};

/// A stream as it was asked for, and how it is put to the test.
#[derive(Clone, Debug)]
pub struct Asked {
    /// For messages.
    pub name: String,
    /// What an application needs.
    pub class: Class,
    /// What that was mapped to.
    pub mapping: Mapping,
    /// What its PDUs go over.
    pub path: Path,
    /// Whether the link sends a PDU each [`Mapping::spacing`]; else at once.
    pub is_paced: bool,
    /// Its first frame, the sender's first release and the receiver's, after the program's epoch: the receiver's comes first.
    pub phases: [Span; 3],
    /// So many frames, messages or requests; of a bulk, PDUs.
    pub units: u64,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Seen {
    /// Frames, messages or requests that arrived whole.
    units: u64,
    longest_delay: Span,
    /// From the first bulk PDU that was there to be sent until the last was received.
    took: Span,
    /// The most PDUs in the sender's buffer, at the link, and in the receiver's.
    most: [u64; 3],
}

/// A PDU under way.
#[derive(Clone, Copy)]
struct Pdu {
    number: u64,
    /// When its frame came into being.
    made: Instant,
    /// When it is at the receiver.
    arrives: Instant,
}

#[derive(Default)]
struct State {
    /// When the first frame comes into being, once that is known.
    first: Option<Instant>,
    made: u64,
    send: VecDeque<Pdu>,
    receive: VecDeque<Pdu>,
    /// When the link has sent each of those that it still has.
    leaving: VecDeque<Instant>,
    last_arrival: Instant,
    /// So many of each buffer are being worked on.
    in_work: [usize; 2],
    seen: Seen,
}

/// A stream in a program.
#[derive(Clone)]
pub struct Stream {
    asked: Arc<Asked>,
    state: Arc<Mutex<State>>,
}

impl Stream {
    /// Puts its upcalls on the executor; no more than what was mapped is declared of them, and done.
    ///
    /// # Errors
    ///
    /// Its numbers are no task.
    pub fn install(asked: Asked, program: &mut Program, executor: ExecutorId) -> Result<Self> {
        let stream = Self {
            asked: Arc::new(asked),
            state: Arc::default(),
        };
        match stream.asked.mapping.release {
            Release::Timer => {
                stream.add(program, executor, 0, None)?;
                stream.add(program, executor, 1, None)?;
            }
            Release::Arrivals => {
                let port = program.port(4);
                stream.add(program, executor, 0, Some(port))?;
                stream.add_client(program, port);
            }
        }
        Ok(stream)
    }

    /// One end of it: the sender (0), which also answers requests, or the receiver (1).
    fn add(
        &self,
        program: &mut Program,
        executor: ExecutorId,
        end: usize,
        port: Option<PortId>,
    ) -> Result {
        let (asked, mapping) = (&self.asked, &self.asked.mapping);
        let mut timing = mapping.timing();
        timing.first = First::After(program.epoch.clone(), asked.phases[end + 1]);
        let whole = mapping.service * u64::from(mapping.batch.get());
        let task = timing.task(whole, mapping.deadline);
        let task = task.map_err(|error| crate::Failure::Wrong(error.to_string()))?;
        let begins = program.mark(&format!("{} begins", asked.name));
        let (stream, service) = (self.clone(), mapping.service);
        let work = move |context: &mut dyn Context, call: &mut Call| {
            if call.done() == 0 {
                stream.called(end, context.now(), call);
            }
            let most = call.now();
            let units = stream.begin(end, context.now(), most);
            if units < most {
                call.finish_after(units);
            }
            Step::Burn(service * u64::from(units))
        };
        let mut upcall = Upcall::paced_by(port, timing, begins, work);
        let stream = self.clone();
        let body = move |context: &mut dyn Context| {
            stream.end(end, context.now());
            upcall.step(context)
        };
        let task = Some(task);
        program.add(&asked.name, CPU, Placement::On { executor, task }, body);
        Ok(())
    }

    /// Whoever puts requests, as often as was said.
    fn add_client(&self, program: &mut Program, port: PortId) {
        let (asked, mut put) = (Arc::clone(&self.asked), 0);
        let mut next = None;
        let client = move |context: &mut dyn Context| {
            let Some(at) = next else {
                let first = context.now() + asked.phases[0];
                next = Some(first);
                return Step::SleepUntil(first);
            };
            if put == asked.units {
                return Step::Finish;
            }
            context.put(port, [context.now().as_nanos(), 0]);
            put += 1;
            // Never sooner than was said, whenever this one was put.
            let after = at.max(context.now()) + asked.mapping.period;
            next = Some(after);
            Step::SleepUntil(after)
        };
        program.add("client", CPU, Placement::External, client);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins at one end.
    fn called(&self, end: usize, now: Instant, call: &Call) {
        let mut state = self.state();
        if let Some([put, _]) = call.arrived {
            return self.make(&mut state, Instant::from_nanos(put), now);
        }
        if end > 0 || state.first.is_some() {
            return;
        }
        let [first, sender, _] = self.asked.phases;
        state.first = Some(match self.every() {
            Some(_) => call.paced.release.saturating_sub(sender) + first,
            None => now,
        });
    }

    /// So many PDUs there are to be worked on at one end, and no more than `most`.
    fn begin(&self, end: usize, now: Instant, most: u32) -> u32 {
        let mut state = self.state();
        let there = self.there(&mut state, end, now);
        let units = u32::try_from(there).unwrap_or(u32::MAX).min(most);
        state.in_work[end] = units as usize;
        units
    }

    /// What waits at one end, with what is worked on.
    fn there(&self, state: &mut State, end: usize, now: Instant) -> usize {
        self.come_to(state, now);
        match end {
            0 => state.send.len(),
            _ => state.receive.partition_point(|pdu| pdu.arrives <= now),
        }
    }

    /// From frame to frame; `None` of what comes otherwise.
    fn every(&self) -> Option<Span> {
        match self.asked.class {
            Class::ContinuousMedia { every, .. } => Some(every),
            Class::Messages { per_second, .. } => {
                let every = 1_000_000_000_u64.div_ceil(per_second.get().into());
                Some(Span::from_nanos(every))
            }
            Class::Bulk { .. } | Class::Transactions { .. } => None,
        }
    }

    /// What comes into being until now, as often as it may; of a bulk, as much as there is room for.
    fn come_to(&self, state: &mut State, now: Instant) {
        let (asked, Some(first)) = (&self.asked, state.first) else {
            return;
        };
        let is_bulk = matches!(asked.class, Class::Bulk { .. });
        while state.made < asked.units {
            let made = match self.every() {
                Some(every) => first + every * state.made,
                None => now,
            };
            let room = !is_bulk || (state.send.len() as u64) < asked.mapping.buffers.send;
            if made > now || !room || asked.mapping.release == Release::Arrivals {
                return;
            }
            self.make(state, made, now);
        }
    }

    /// A frame comes into being.
    fn make(&self, state: &mut State, made: Instant, now: Instant) {
        let pdus = u64::from(self.asked.mapping.unit_pdus.get());
        let pdu = |number| Pdu {
            number,
            made,
            arrives: now,
        };
        state.send.extend((0..pdus).map(pdu));
        state.made += 1;
    }

    /// The work that was begun at one end is done, if there was any.
    fn end(&self, end: usize, now: Instant) {
        let mut state = self.state();
        let here = self.there(&mut state, end, now);
        let most = &mut state.seen.most[2 * end];
        *most = (*most).max(here as u64);
        let done = std::mem::take(&mut state.in_work[end]);
        for _ in 0..done {
            let pdu = match end {
                0 => state.send.pop_front(),
                _ => state.receive.pop_front(),
            };
            match (pdu, self.asked.mapping.release) {
                (Some(pdu), Release::Timer) if end == 0 => self.hand_over(&mut state, pdu, now),
                (Some(pdu), _) => self.arrive(&mut state, pdu, now),
                (None, _) => {}
            }
        }
    }

    /// The link has it.
    fn hand_over(&self, state: &mut State, pdu: Pdu, now: Instant) {
        let path = &self.asked.path;
        while state.leaving.front().is_some_and(|left| *left <= now) {
            state.leaving.pop_front();
        }
        let free = state.leaving.back().map_or(now, |last| (*last).max(now));
        let left = match self.asked.is_paced {
            true => free + self.asked.mapping.spacing,
            false => now,
        };
        state.leaving.push_back(left);
        let most = &mut state.seen.most[1];
        *most = (*most).max(state.leaving.len() as u64);
        // As late as can be, and as early.
        let earlier = match pdu.number % 3 {
            0 => path.jitter,
            _ => Span::ZERO,
        };
        let arrives = (left + path.latency.saturating_sub(earlier)).max(state.last_arrival);
        state.last_arrival = arrives;
        state.receive.push_back(Pdu { arrives, ..pdu });
    }

    /// It is where it was to come to.
    fn arrive(&self, state: &mut State, pdu: Pdu, now: Instant) {
        if pdu.number + 1 < self.asked.mapping.unit_pdus.get().into() {
            return;
        }
        let seen = &mut state.seen;
        seen.units += 1;
        seen.longest_delay = seen.longest_delay.max(now.saturating_since(pdu.made));
        seen.took = now.saturating_since(state.first.unwrap_or(now));
    }

    /// So long a run must last for all of it to arrive.
    pub fn lasts(&self) -> Span {
        let (asked, mapping) = (&self.asked, &self.asked.mapping);
        let calls = asked.units * u64::from(mapping.unit_pdus.get());
        let calls = calls.div_ceil(mapping.batch.get().into());
        let comes = match mapping.release {
            Release::Timer => self.every().unwrap_or_default() * asked.units,
            Release::Arrivals => mapping.period * 2 * asked.units,
        };
        let begins = asked.phases.into_iter().max().unwrap_or_default();
        let goes = (mapping.period * calls).max(comes);
        begins + goes + mapping.period * 8 + asked.path.latency * 2
    }

    /// Whether it had what was asked for: all arrived; none later than is said; no buffer held more than it was said to need; a bulk's throughput, from when it begins.
    ///
    /// # Errors
    ///
    /// What it did not have.
    pub fn check(&self) -> Result {
        let (asked, mapping, seen) = (&self.asked, &self.asked.mapping, self.state().seen);
        let name = &asked.name;
        ensure_in_time!(
            seen.units == asked.units,
            "{name}: {} of {} arrived",
            seen.units,
            asked.units
        );
        let wanted = match asked.class {
            Class::ContinuousMedia { delay, .. } | Class::Messages { delay, .. } => Some(delay),
            Class::Transactions { response, .. } => Some(response),
            Class::Bulk { bytes_per_second } => {
                // The first has come, and the last is not waited for: two calls, the link between them, and two waits.
                let under_way = mapping.period * 4 + asked.path.latency;
                let bytes = asked.units * u64::from(mapping.pdu_bytes.get());
                let most = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.get());
                let most = Span::from_nanos(most as u64) + under_way;
                ensure_in_time!(seen.took <= most, "{name}: took {}, not {most}", seen.took);
                None
            }
        };
        if let (Some(bound), Some(wanted)) = (mapping.delay, wanted) {
            ensure!(bound <= wanted, "{name}: {bound} is promised of {wanted}");
            ensure_in_time!(
                seen.longest_delay <= bound,
                "{name}: a delay of {}, not {bound}",
                seen.longest_delay
            );
        }
        let buffers = mapping.buffers;
        let room = [buffers.send, buffers.link, buffers.receive];
        let fits = seen.most.iter().zip(room).all(|(most, room)| *most <= room);
        ensure_in_time!(fits, "{name}: {:?} PDUs waited, not {room:?}", seen.most);
        Ok(())
    }
}
