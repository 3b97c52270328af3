//! Both ends of a wire: cards in the twin, two interfaces here.

use laxity::net::twin::{Cable, Line, Shape};
use laxity_lab::bench::Runner;
use laxity_lab::runner::network::{End, Wires};
use laxity_model::nif::link::Link;
use laxity_model::{HostError, Placement, ProcessorId, Program, SemaphoreId};

/// What a program has at the ends of a wire, whatever these are.
pub(super) trait AtEnds {
    /// Adds it.
    ///
    /// # Errors
    ///
    /// What does not fit.
    fn build<L>(self, program: &mut Program, ends: [End<L>; 2]) -> Result<(), HostError>
    where
        L: Link + Send + 'static,
        L::Memory: 'static;
}

/// What is signalled: by whoever sends, and when the interrupt of either end is raised.
#[derive(Clone, Copy)]
pub(super) struct Signals {
    pub(super) doorbell: SemaphoreId,
    pub(super) raised: [SemaphoreId; 2],
}

impl Signals {
    /// Nothing yet.
    pub(super) fn new(program: &mut Program) -> Self {
        let [doorbell, near, far] = [(); 3].map(|()| program.semaphore(0));
        Self {
            doorbell,
            raised: [near, far],
        }
    }
}

/// Adds a wire and what is at its ends to a program.
///
/// # Errors
///
/// [`HostError::CannotRun`] where this machine makes no interfaces, and what does not fit.
pub(super) fn between(
    host: &mut Runner<'_>,
    program: &mut Program,
    (line, card): (Line, Shape),
    Signals { doorbell, raised }: Signals,
    what: impl AtEnds,
) -> Result<(), HostError> {
    if let Runner::Live(live, _) = host {
        let (wires, fed) = Wires::open()?;
        what.build(program, wires.ends(raised)?)?;
        fed.feed(live);
        return Ok(());
    }
    let (cable, near, far) = Cable::new(line, [card; 2], 1);
    let hardware = cable.hardware(doorbell, [vec![raised[0]], vec![raised[1]]]);
    program.add("hardware", ProcessorId(0), Placement::External, hardware);
    let ends = [End::of(&near, raised[0]), End::of(&far, raised[1])];
    what.build(program, ends)
}

/// Something of the framework does not fit.
pub(super) fn failed(error: impl std::fmt::Display) -> HostError {
    HostError::Failed(error.to_string())
}
