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
use laxity_devices::modem::{Costs, Hypothesis, Phase};
use laxity_model::{Service, Span};

use crate::scenario::Start;

/// Calls of the signal processing under one setting of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode {
    /// Its name.
    pub(super) name: &'static str,
    /// The phase in which its calls come, with those of all modes that have the same.
    pub(super) phase: &'static str,
    /// The costliest call.
    pub(super) cost: Service,
    /// Whether there is only one in a call.
    pub(super) once: bool,
    /// The shortest block: the least time between two interrupts, and how long a block of output may take.
    pub(super) period: Span,
    /// From the last interrupt of its phase, which finds nothing to do, to the first of what follows, at least.
    pub(super) silence: Span,
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// How long a block of so many samples lasts at least.
fn block(setting: Setting, samples: Option<u64>) -> Span {
    Span::from_nanos(samples.unwrap_or(1) * NANOS_PER_SEC / setting.rate_hz)
}

/// The call that recognises the answer.
pub(super) const ANSWER: &str = "answer";

fn mode(phase: Phase, follows: Option<Phase>, last_call: Service) -> Mode {
    let setting = phase.setting();
    let blocks = setting.blocks.iter().copied();
    // The last call was asked for by the interrupt before the empty one, and has programmed the card when it was complete.
    let silence = follows.map_or(Span::MAX, |follows| {
        let next = follows.setting();
        let first = block(next, next.blocks.first().copied());
        let since = Hypothesis::STUDY.programming_pause + first + last_call.as_dedicated_span();
        since.saturating_sub(block(setting, blocks.clone().max()))
    });
    Mode {
        name: phase.name(),
        phase: phase.name(),
        cost: Costs::STUDY.call(phase, false),
        once: false,
        period: block(setting, blocks.min()),
        silence,
    }
}

/// The modes that a call goes through while it lasts.
pub(super) fn modes(start: Start) -> Vec<Mode> {
    let connected = mode(Phase::Connected, None, Service::ZERO);
    if start == Start::Connected {
        return vec![connected];
    }
    let costs = Costs::STUDY;
    let answer_cost = costs.call(Phase::Dialing, true);
    let on_hook = mode(
        Phase::OnHook,
        Some(Phase::Dialing),
        costs.call(Phase::OnHook, false),
    );
    let dialing = mode(Phase::Dialing, Some(Phase::Training), answer_cost);
    let answer = Mode {
        name: ANSWER,
        cost: answer_cost,
        once: true,
        ..dialing
    };
    vec![on_hook, dialing, answer, connected]
}

/// The mode in which a phase's calls are; `None` once the call is over.
pub(super) const fn mode_of(phase: Phase) -> Option<&'static str> {
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
        let modes = modes(Start::OnHook);
        let told = modes.iter().map(|mode| {
            let (cost, period) = (mode.cost.as_micros(), mode.period.as_micros());
            (mode.name, cost, period, mode.silence.as_micros())
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ("on-hook", 60, 2_500, 13_060),
                ("dialing", 460, 12_500, 6_925),
                ("answer", 3_300, 12_500, 6_925),
                ("connected", 1_840, 11_250, u64::MAX / 1_000),
            ]
        );
    }
}
