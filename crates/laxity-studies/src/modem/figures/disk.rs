//! The stress of §6.1 in the twin: a thread of priority 10 that searches every file of the disk, and the disk's interrupts and deferred calls.
//!
//! The study prints nothing of its disk but its make (§3.1: a SCSI disk of 7,200 revolutions a minute) and that its interrupt ranks above the modem's
//! (§5.1). *Assumed*, each drawn evenly between two ends: a request takes the disk 1 to 15 ms, from the next sector to a seek
//! and a whole turn; the search works 0.2 to 3 ms on what it has read; the handler 10 to 25 µs, the deferred call that completes the request
//! 30 to 80 µs. So the search takes about a sixth of the processor, and interrupts about a hundred times a second.

use laxity_lab::workload::Draws;
use laxity_model::{
    Body, Context, InterruptLevel, Placement, Priority, ProcessorId, Program, SemaphoreId, Service,
    Span, Step,
};

/// The modem's.
const PROCESSOR: ProcessorId = ProcessorId(0);

/// The SCSI disk's level: above the modem's (§5.1).
const LEVEL: InterruptLevel = InterruptLevel(6);
/// Of the search (§6.1).
const PRIORITY: u8 = 10;

/// Ends of the ranges, in microseconds.
const DISK_US: (u64, u64) = (1_000, 15_000);
const SEARCH_US: (u64, u64) = (200, 3_000);
const HANDLER_US: (u64, u64) = (10, 25);
const DEFERRED_US: (u64, u64) = (30, 80);

/// Adds the search and its disk to a program.
pub(super) fn install(program: &mut Program, seed: u64) {
    let [requested, raised, queued, read] = [0; 4].map(|count| program.semaphore(count));
    let stage = |number, waits, signals, range, kind| Stage {
        waits,
        signals,
        range,
        kind,
        next: Next::Wait,
        draws: Draws::new(seed, number),
    };
    let disk = stage(1, requested, raised, DISK_US, Kind::Device);
    program.add("disk", PROCESSOR, Placement::External, disk);
    let handler = stage(2, raised, queued, HANDLER_US, Kind::Handler);
    program.add(
        "disk interrupt",
        PROCESSOR,
        Placement::Interrupt(LEVEL),
        handler,
    );
    let deferred = stage(3, queued, read, DEFERRED_US, Kind::Handler);
    program.add(
        "disk deferred call",
        PROCESSOR,
        Placement::Deferred,
        deferred,
    );
    let mut search = stage(4, read, requested, SEARCH_US, Kind::Thread);
    // It begins with a request, of which nothing has been read yet.
    search.next = Next::Signal;
    let priority = Priority::new(PRIORITY).unwrap_or(Priority::NORMAL);
    program.add(
        "disk search",
        PROCESSOR,
        Placement::Thread(priority),
        search,
    );
}

/// What spends a stage's time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The disk itself: time passes.
    Device,
    /// A handler or a deferred call: it signals first, as those of the modem do, and is charged.
    Handler,
    /// A thread: it works, and signals then.
    Thread,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Wait,
    Spend,
    Signal,
}

/// One stage of a disk request: waits for the stage before, takes some time, and signals the next.
struct Stage {
    waits: SemaphoreId,
    signals: SemaphoreId,
    range: (u64, u64),
    kind: Kind,
    next: Next,
    draws: Draws,
}

impl Stage {
    fn spend(&mut self, context: &mut dyn Context) -> Step {
        let micros = self.draws.between(self.range.0, self.range.1);
        match self.kind {
            Kind::Device => {
                self.next = Next::Signal;
                Step::SleepUntil(context.now() + Span::from_micros(micros))
            }
            Kind::Handler => {
                context.signal(self.signals);
                self.next = Next::Wait;
                Step::Charge(Service::from_micros(micros))
            }
            Kind::Thread => {
                self.next = Next::Signal;
                Step::Burn(Service::from_micros(micros))
            }
        }
    }
}

impl Body for Stage {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.next {
            Next::Spend => return self.spend(context),
            Next::Signal => context.signal(self.signals),
            Next::Wait => {}
        }
        self.next = Next::Spend;
        Step::Wait(self.waits)
    }
}
