//! The stress of §6.1 in the twin: a thread of priority 10 that searches every file of the disk, and the disk's interrupts and deferred calls.
//!
//! The study prints nothing of its disk but its make (§3.1: a Quantum Viking II, SCSI) and that its interrupt ranks above the modem's
//! (§5.1). *Assumed*, each drawn evenly between two ends: a request takes the disk 1 to 15 ms, from the next sector to a seek
//! and a whole turn; the search works 0.2 to 3 ms on what it has read; the handler 10 to 25 µs, the deferred call that completes the request
//! 30 to 80 µs. So the search takes about a sixth of the processor, and interrupts about a hundred times a second.

use laxity_lab::workload::Draws;
use laxity_model::{
    Body, Context, Instant, InterruptLevel, Placement, Priority, ProcessorId, Program, SemaphoreId,
    Service, Span, Step,
};

/// The modem's.
const PROCESSOR: ProcessorId = ProcessorId(0);

/// The SCSI disk's level: above the modem's (§5.1).
const LEVEL: InterruptLevel = InterruptLevel(6);
/// Of the search (§6.1).
const PRIORITY: u8 = 10;

/// Ends of the ranges, in microseconds.
pub(in crate::modem) const DISK_US: (u64, u64) = (1_000, 15_000);
pub(in crate::modem) const SEARCH_US: (u64, u64) = (200, 3_000);
pub(in crate::modem) const HANDLER_US: (u64, u64) = (10, 25);
pub(in crate::modem) const DEFERRED_US: (u64, u64) = (30, 80);

/// What so many microseconds of a stage are.
type Spend = fn(Instant, u64) -> Step;

/// Adds the search and its disk to a program.
pub(super) fn install(program: &mut Program, seed: u64) {
    let [requested, raised, queued, read] = [0; 4].map(|count| program.semaphore(count));
    let search = Placement::Thread(Priority::new(PRIORITY).unwrap_or(Priority::NORMAL));
    let passes: Spend = |now, us| Step::SleepUntil(now + Span::from_micros(us));
    let charged: Spend = |_, us| Step::Charge(Service::from_micros(us));
    let worked: Spend = |_, us| Step::Burn(Service::from_micros(us));
    let (device, int) = (Placement::External, Placement::Interrupt(LEVEL));
    let call = Placement::Deferred;
    for (number, (name, placement, semaphores, range, spend)) in (1..).zip([
        ("disk", device, [requested, raised], DISK_US, passes),
        ("disk interrupt", int, [raised, queued], HANDLER_US, charged),
        (
            "disk deferred call",
            call,
            [queued, read],
            DEFERRED_US,
            charged,
        ),
        ("disk search", search, [read, requested], SEARCH_US, worked),
    ]) {
        let stage = Stage {
            semaphores,
            range,
            spend,
            signals_first: [int, call].contains(&placement),
            has_waited: false,
            // The search begins with a request, of which nothing has been read yet.
            has_spent: placement == search,
            draws: Draws::new(seed, number),
        };
        program.add(name, PROCESSOR, placement, stage);
    }
}

/// One stage of a disk request: waits for the stage before, takes some time, and signals the next.
struct Stage {
    /// What it waits for, and what it signals.
    semaphores: [SemaphoreId; 2],
    range: (u64, u64),
    spend: Spend,
    /// As the modem's handler and deferred call do.
    signals_first: bool,
    has_waited: bool,
    /// Its time is spent, and the next stage is not signalled yet.
    has_spent: bool,
    draws: Draws,
}

impl Body for Stage {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let [waits, signals] = self.semaphores;
        let begins = std::mem::take(&mut self.has_waited);
        if std::mem::take(&mut self.has_spent) || begins && self.signals_first {
            context.signal(signals);
        }
        if begins {
            self.has_spent = !self.signals_first;
            let micros = self.draws.between(self.range.0, self.range.1);
            return (self.spend)(context.now(), micros);
        }
        self.has_waited = true;
        Step::Wait(waits)
    }
}
