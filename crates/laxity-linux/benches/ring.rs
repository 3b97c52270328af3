//! What recording an event costs, against the processor's bare time stamp and against `tracing` into the same ring.
//!
//! `cargo bench -p laxity-linux --bench ring`. Batches of 8192 events, all contenders in turn in every round, median of 101 rounds:
//! on a shared machine the ratios of one run can be trusted, the nanoseconds less.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::time::Instant as Wall;

use laxity_model::base::ring::{self, Consumer, Producer};
use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

const BATCH: u64 = 8192;
const ROUNDS: usize = 101;

/// The processor's invariant counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: `rdtsc` only reads a counter, and Linux does not forbid it to user space.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The processor's invariant counter.
#[cfg(target_arch = "aarch64")]
#[inline]
fn ticks() -> u64 {
    let ticks;
    // SAFETY: reads the virtual counter, which Linux opens to user space, and nothing else.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// As the live host turns ticks into nanoseconds: one multiplication and a shift.
#[derive(Clone, Copy)]
struct Scale {
    nanos_per_tick_q32: u64,
}

impl Scale {
    fn measure() -> Self {
        let (wall, first) = (Wall::now(), ticks());
        while wall.elapsed().as_millis() < 50 {
            std::thread::yield_now();
        }
        let (nanos, ticks) = (wall.elapsed().as_nanos(), u128::from(ticks() - first));
        Self {
            nanos_per_tick_q32: ((nanos << 32) / ticks) as u64,
        }
    }

    #[inline]
    fn nanos(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.nanos_per_tick_q32)) >> 32) as u64
    }
}

#[inline]
fn event(at: u64, kind: EventKind, number: u64) -> Event {
    Event {
        at: Instant::from_nanos(at),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(1),
        args: [number, 0],
    }
}

const MARK: EventKind = EventKind::Mark(Mark(3));

thread_local! {
    /// The ring that the `tracing` subscriber writes to.
    static TRACED: UnsafeCell<Option<Producer>> = const { UnsafeCell::new(None) };
}

/// The least that a `tracing` subscriber can do: no spans, no registry, two numbers into the ring.
struct Bare;

struct Numbers([u64; 2]);

impl Visit for Numbers {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0[field.index() & 1] = value;
    }
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Bare {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, source: &tracing::Event<'_>) {
        let mut numbers = Numbers([0; 2]);
        source.record(&mut numbers);
        TRACED.with(|cell| {
            // SAFETY: the cell belongs to this thread, and `push` does not come back here, so this is the only reference.
            if let Some(producer) = unsafe { &mut *cell.get() } {
                producer.push(event(ticks(), MARK, numbers.0[0]));
            }
        });
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// One thing that is measured: its name, and one batch of it.
type Contender<'a> = (&'static str, Box<dyn FnMut() + 'a>);

fn push_batch(producer: &mut Producer, mut event: impl FnMut(u64) -> Event) {
    for number in 0..BATCH {
        producer.push(event(number));
    }
}

/// A loop around `rdtsc` alone, then recording in its forms, then recording switched off.
fn contenders<'a>(
    producers: &'a mut [Producer; 4],
    off: &'a mut Option<Producer>,
    scale: Scale,
) -> Vec<Contender<'a>> {
    let [plain, varied, scaled, clocked] = producers;
    vec![
        (
            "bare time stamp",
            Box::new(|| (0..BATCH).for_each(|_| _ = black_box(ticks()))),
        ),
        (
            "ring, time stamp",
            Box::new(|| push_batch(plain, |n| event(ticks(), MARK, n))),
        ),
        (
            "ring, kind known at run time",
            Box::new(|| push_batch(varied, |n| event(ticks(), black_box(EventKind::SlotEnd), n))),
        ),
        (
            "ring, time stamp in ns",
            Box::new(move || push_batch(scaled, |n| event(scale.nanos(ticks()), MARK, n))),
        ),
        (
            "ring, clock_gettime",
            Box::new(|| {
                let start = Wall::now();
                push_batch(clocked, |n| {
                    event(start.elapsed().as_nanos() as u64, MARK, n)
                });
            }),
        ),
        (
            "tracing into the ring",
            Box::new(|| (0..BATCH).for_each(|n| tracing::info!(first = n, second = 0u64))),
        ),
        (
            "ring, off",
            Box::new(move || {
                for number in 0..BATCH {
                    if let Some(producer) = black_box(&mut *off) {
                        producer.push(event(ticks(), MARK, number));
                    }
                }
            }),
        ),
        (
            "tracing, off",
            Box::new(|| {
                (0..BATCH).for_each(|n| tracing::trace!(first = black_box(n), second = 0u64));
            }),
        ),
    ]
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

fn faulted_ring() -> (Producer, Consumer) {
    let (mut producer, consumer) = ring::channel(2 * BATCH as usize);
    producer.prefault();
    (producer, consumer)
}

fn main() {
    let (producers, mut consumers): (Vec<_>, Vec<_>) = (0..4).map(|_| faulted_ring()).unzip();
    let mut producers: [Producer; 4] = producers.try_into().ok().expect("four were made");
    let (traced, traced_consumer) = faulted_ring();
    consumers.push(traced_consumer);
    TRACED.with(|cell| {
        // SAFETY: nothing else refers to the cell yet.
        unsafe { *cell.get() = Some(traced) };
    });
    tracing::subscriber::set_global_default(Bare).expect("nobody else set a subscriber");
    let scale = Scale::measure();
    let mut off = None;

    let mut contenders = contenders(&mut producers, &mut off, scale);
    let mut samples = vec![(Vec::new(), Vec::new()); contenders.len()];
    let mut sink = Vec::new();
    for _ in 0..ROUNDS {
        for ((_, batch), (nanos, stamps)) in contenders.iter_mut().zip(&mut samples) {
            let (wall, first) = (Wall::now(), ticks());
            batch();
            stamps.push(ticks() - first);
            nanos.push(wall.elapsed().as_nanos() as u64);
        }
        for consumer in &mut consumers {
            sink.clear();
            consumer.drain(&mut sink);
        }
    }

    for consumer in &consumers {
        let emitted = BATCH * ROUNDS as u64;
        assert_eq!((consumer.recorded(), consumer.lost()), (emitted, 0));
    }
    println!("{:30} {:>9} {:>9} {:>8}", "", "ns/event", "ticks", "x bare");
    let bare = median(samples[0].0.clone());
    for ((name, _), (nanos, stamps)) in contenders.iter().zip(samples) {
        let (nanos, stamps, batch) = (median(nanos), median(stamps), BATCH as f64);
        println!(
            "{name:30} {:9.2} {:9.1} {:8.2}",
            nanos / batch,
            stamps / batch,
            nanos / bare
        );
    }
}
