//! The devices of a processor, each with what its own driver has to do.

use laxity_devices::modem::CardClock;
use laxity_model::{Service, Span};

use crate::observe::DeviceProbe;
use crate::runner::modes::{Mode, Modem, by_the_host, modes};
use crate::scenario::devices::Installed;
use crate::scenario::{Placing, ResolvedDevice, Start, TwinProfile};

/// A modem, which has more or less to do from phase to phase of its call.
pub(super) struct Calling<'a> {
    pub(super) installed: &'a Installed,
    pub(super) placing: Placing,
    /// What its own calls ask for.
    pub(super) modes: Vec<Mode>,
}

impl<'a> Calling<'a> {
    pub(super) fn of(
        probe: &'a DeviceProbe,
        device: &ResolvedDevice,
        (start, twin): (Start, Option<TwinProfile>),
    ) -> Self {
        Self {
            installed: &probe.installed,
            placing: probe.placing,
            modes: modes(start, Modem::of(device, twin)),
        }
    }
}

/// During what of a call everybody is looked at: all modems of a variant begin theirs at the same point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum During {
    /// All of it.
    Call,
    /// The phase of this name.
    Phase(&'static str),
    /// The mode of this name.
    Mode(&'static str),
}

impl During {
    pub(super) fn has(self, mode: &Mode) -> bool {
        match self {
            Self::Call => true,
            Self::Phase(phase) => mode.phase == phase,
            Self::Mode(name) => mode.name == name,
        }
    }
}

/// How those wake that sleep until instants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Wakes {
    /// Late by no more than this.
    pub(super) late: Span,
    /// Whether a thread's jobs are counted by their period, each late; else it is only known that it wakes no more than once a tick.
    pub(super) by_period: bool,
}

/// Whether these are of more than one phase.
pub(super) fn are_several(modes: &[Mode]) -> bool {
    let mut pairs = modes.windows(2);
    pairs.any(|pair| pair[0].phase != pair[1].phase)
}

/// A device that has the same to do all the time.
pub(super) struct Streaming<'a> {
    pub(super) installed: &'a Installed,
    pub(super) placing: Placing,
    /// From interrupt to interrupt, at least.
    pub(super) period: Span,
    /// The most that a call takes.
    pub(super) work: Service,
    /// So long after its interrupt a call is to be complete.
    pub(super) due: Option<Span>,
}

impl<'a> Streaming<'a> {
    pub(super) fn of(
        probe: &'a DeviceProbe,
        device: &ResolvedDevice,
        twin: Option<TwinProfile>,
    ) -> Self {
        let work = device.work(twin);
        let clock = twin.map_or_else(CardClock::default, |twin| twin.card_clock(0));
        let analysed = device.device.analysed(work).ok();
        let due = analysed.and_then(|own| {
            own.input_limit()
                .into_iter()
                .chain(own.output_limit())
                .min()
        });
        Self {
            installed: &probe.installed,
            placing: probe.placing,
            period: by_the_host(clock, device.device.interrupts_every()),
            work,
            due: due.map(|due| by_the_host(clock, due)),
        }
    }
}
