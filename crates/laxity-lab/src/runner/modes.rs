//! What a modem asks for in each phase of its call, in the worst case.
//!
//! The card interrupts at least so far apart as its shortest block lasts, and a call of the signal processing never takes more than the phase's
//! costliest. The call that recognises the answer comes once, as the last of its phase.
//!
//! When a phase is over the card is programmed anew: its next block ends only after a pause and all of that block, and interrupts of before are
//! forgotten, but for one that had been awaited, finds nothing to do, and stands for the next of its phase. So
//! calls of one phase never wait for those of another: the last one of the former is complete before the first of the latter
//! arrives, and when it completes nothing more urgent is waiting either. Whoever is less urgent may see both, unless all that waits is
//! done before the silence is over.
//!
//! All of this is of a call that lasts: what the modem does once it is over, nobody waits for.

use laxity_devices::modem::card::Setting;
use laxity_devices::modem::{CardClock, Costs, Hypothesis, Phase};
use laxity_model::analysis::devices::{Device, DeviceError};
use laxity_model::{Service, Span};

use crate::scenario::{ResolvedDevice, Start, TwinProfile, devices};

/// Calls of the signal processing under one setting of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mode {
    /// Its name.
    pub(crate) name: &'static str,
    /// The phase in which its calls come, with those of all modes that have the same.
    pub(crate) phase: &'static str,
    /// The costliest call.
    pub(crate) cost: Service,
    /// Whether there is only one in a call.
    pub(crate) once: bool,
    /// The shortest block: the least time between two interrupts.
    pub(crate) period: Span,
    /// From the interrupt until the output runs dry unless all of a call's is there: of what is ahead, and of a block's pieces but the last, which
    /// the call has delivered before.
    pub(crate) due: Span,
    /// A call that is complete by then has delivered each piece before it was due: so much of the work comes after each that it was there sooner.
    pub(crate) whole: Span,
    /// From the last interrupt of its phase, which finds nothing to do, to the first of what follows, at least.
    pub(crate) silence: Span,
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A modem as its calls are known.
#[derive(Clone, Copy)]
pub(crate) struct Modem {
    /// What its calls cost.
    pub(crate) costs: Costs,
    /// How the clock of its card stands to the host's.
    pub(crate) clock: CardClock,
    /// In how many pieces a call delivers its output.
    pub(crate) pieces: u64,
}

impl Modem {
    /// What a modem's calls cost, and its clock, where a scenario is run; its phase is not asked for.
    pub(crate) fn of(device: &ResolvedDevice, twin: Option<TwinProfile>) -> Self {
        let usual = twin.map_or(Costs::STUDY, |twin| twin.costs);
        Self {
            costs: Costs {
                data: device.work(twin),
                ..usual
            },
            clock: twin.map_or_else(CardClock::default, |twin| twin.card_clock(0)),
            // Live, a call has computed all of its output before it delivers some.
            pieces: twin.map_or(1, |_| u64::from(Hypothesis::STUDY.pieces)),
        }
    }
}

/// How long a block of so many samples lasts at least.
fn block(setting: Setting, samples: Option<u64>) -> Span {
    Span::from_nanos(samples.unwrap_or(1) * NANOS_PER_SEC / setting.rate_hz)
}

/// What lasts so long by the card's clock lasts so long by the host's, at least.
pub(crate) fn by_the_host(clock: CardClock, span: Span) -> Span {
    let billion = u128::from(NANOS_PER_SEC);
    let faster = billion.saturating_add_signed(clock.fast_ppb.into());
    let nanos = u128::from(span.as_nanos()) * billion / faster.max(1);
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A device whose blocks come by this clock.
pub(crate) fn paced(device: Device, clock: CardClock) -> Result<Device, DeviceError> {
    device.paced(by_the_host(clock, device.period()))
}

/// The call that recognises the answer.
pub(crate) const ANSWER: &str = "answer";

fn mode(modem: Modem, phase: Phase, follows: Option<Phase>, last_call: Service) -> Mode {
    let (costs, clock) = (modem.costs, modem.clock);
    let setting = phase.setting();
    let blocks = setting.blocks.iter().copied();
    // The last call was asked for by the interrupt before the empty one, and has programmed the card when it was complete.
    let silence = follows.map_or(Span::MAX, |follows| {
        let next = follows.setting();
        let first = block(next, next.blocks.first().copied());
        let since = by_the_host(clock, Hypothesis::STUDY.programming_pause + first);
        let since = since + last_call.as_dedicated_span();
        since.saturating_sub(block(setting, blocks.clone().max()))
    });
    let cost = costs.call(phase, false);
    Mode {
        name: phase.name(),
        phase: phase.name(),
        cost,
        once: false,
        period: by_the_host(clock, block(setting, blocks.min())),
        due: due(modem, setting, modem.pieces),
        whole: whole(modem, setting, cost),
        silence,
    }
}

/// From the interrupt until the output runs dry unless so many pieces of a call's are there, of its shortest block.
fn due(modem: Modem, setting: Setting, pieces: u64) -> Span {
    let shortest = setting.blocks.iter().min();
    let before = shortest.map(|samples| samples * (pieces - 1) / modem.pieces);
    let ahead = Hypothesis::STUDY.output_lead + block(setting, before);
    by_the_host(modem.clock, ahead)
}

/// By when a call that takes so much is to be complete, so that none of its pieces can have been late.
fn whole(modem: Modem, setting: Setting, cost: Service) -> Span {
    let piece = Span::from_nanos(cost.as_nanos() / modem.pieces);
    let pieces = 1..=modem.pieces;
    let ends = pieces.map(|done| due(modem, setting, done) + piece * (modem.pieces - done));
    ends.min().unwrap_or(Span::ZERO)
}

/// The modes that a call goes through while it lasts.
pub(crate) fn modes(start: Start, modem: Modem) -> Vec<Mode> {
    let connected = mode(modem, Phase::Connected, None, Service::ZERO);
    if start == Start::Connected {
        return vec![connected];
    }
    let costs = modem.costs;
    let answer_cost = costs.call(Phase::Dialing, true);
    let on_hook = mode(
        modem,
        Phase::OnHook,
        Some(Phase::Dialing),
        costs.call(Phase::OnHook, false),
    );
    let dialing = mode(modem, Phase::Dialing, Some(Phase::Training), answer_cost);
    let answer = Mode {
        name: ANSWER,
        cost: answer_cost,
        once: true,
        whole: whole(modem, Phase::Dialing.setting(), answer_cost),
        ..dialing
    };
    vec![on_hook, dialing, answer, connected]
}

/// The modes of a device in a twin; none where it is no modem, or live, where what its calls take is measured.
pub(crate) fn modes_of(
    device: &ResolvedDevice,
    (twin, start): (Option<TwinProfile>, Start),
) -> Vec<Mode> {
    let is_modem = device.device.kind() == devices::KINDS[0];
    match twin.filter(|_| is_modem) {
        Some(twin) => modes(start, Modem::of(device, Some(twin))),
        None => Vec::new(),
    }
}

/// What the calls of a device take from others: so much so often, and once so much more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand {
    pub(crate) usual: Service,
    pub(crate) every: Span,
    /// By the one call that recognises the answer.
    pub(crate) more: Option<Service>,
}

impl Demand {
    /// Of a device with these modes; without any it has the same to do all the time, and that is its `work`. A call of such a cost `takes` so much.
    pub(crate) fn of(
        device: &ResolvedDevice,
        modes: &[Mode],
        work: Service,
        takes: impl Fn(Service) -> Service,
    ) -> Self {
        let last = modes.last();
        let every = last.map_or(device.device.interrupts_every(), |mode| mode.period);
        // The phases of a call lie so far apart that no window has more of two than of the one that takes most.
        let usual = modes.iter().filter(|mode| !mode.once);
        let usual =
            usual.map(|mode| takes(mode.cost) * every.as_nanos().div_ceil(mode.period.as_nanos()));
        let usual = usual.max().unwrap_or_else(|| takes(work));
        let once = modes.iter().find(|mode| mode.once);
        let more = once.map(|mode| takes(mode.cost).saturating_sub(usual));
        Self { usual, every, more }
    }
}

/// The mode in which a phase's calls are; `None` once the call is over.
pub(crate) const fn mode_of(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::OnHook | Phase::Dialing => Some(phase.name()),
        Phase::Training | Phase::Connected => Some(Phase::Connected.name()),
        Phase::Ended => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_the_studys() {
        let told = |pieces: u64| {
            let modem = Modem {
                costs: Costs::STUDY,
                clock: CardClock::default(),
                pieces,
            };
            let modes = modes(Start::OnHook, modem).into_iter();
            modes.map(|mode| {
                let (cost, period) = (mode.cost.as_micros(), mode.period.as_micros());
                let (due, silence) = (mode.due.as_micros(), mode.silence.as_micros());
                (mode.name, cost, period, due, silence)
            })
        };
        let whole = [
            ("on-hook", 60, 2_500, 12_500, 13_060),
            ("dialing", 460, 12_500, 12_500, 6_925),
            ("answer", 3_300, 12_500, 12_500, 6_925),
            ("connected", 1_840, 11_250, 12_500, u64::MAX / 1_000),
        ];
        assert!(told(1).eq(whole));
        // The last of eight pieces is due seven later: 15 of 18, 78 of 90 and 157 of 180 samples.
        let due = told(8).map(|(.., due, _)| due);
        assert_eq!(due.collect::<Vec<_>>(), [14_583, 23_333, 23_333, 22_312]);
        // The first is due when the lead is over, and seven eighths of the work come after it.
        let whole = [1, 8].map(|pieces| {
            let modem = Modem {
                costs: Costs::STUDY,
                clock: CardClock::default(),
                pieces,
            };
            let modes = modes(Start::OnHook, modem).into_iter();
            modes.map(|mode| mode.whole.as_micros()).collect::<Vec<_>>()
        });
        assert_eq!(whole[0], [12_500; 4]);
        assert_eq!(whole[1], [12_552, 12_902, 15_387, 14_110]);
    }
}
