//! How long the calls of a device were at most, in all runs of a scenario, and what would have served those.

use laxity_model::admission::Supply;
use laxity_model::analysis::devices::MARGIN_PPM;
use laxity_model::{Reservation, Service};

use super::RunDone;
use super::alone::longest_connecting;
use super::left::Left;
use crate::evidence::subjects::Proposed;
use crate::observe::Watched;
use crate::scenario::{Chosen, Resolved, ResolvedDevice, Start, kinds};

/// The service of the longest call of a device that nothing disturbed, of all runs: whatever the variant, its work is the same.
#[derive(Clone, Copy)]
pub(super) struct Longest {
    /// While it has all to do.
    pub(super) at_work: Option<u64>,
    /// Of one that makes a call, before it is connected.
    pub(super) connecting: Option<u64>,
}

/// The longest calls of a device.
pub(super) fn longest_call(runs: &[RunDone], name: &str) -> Longest {
    let of = |run: &RunDone| {
        let mut seen = run.probes.0.iter().zip(&run.observations);
        let (probe, observation) = seen.find(|(probe, _)| probe.subject.name == name)?;
        let Watched::Device(device) = &probe.watched else {
            return None;
        };
        let at_work = device.at_work();
        let quantities = &observation.quantities;
        // One that lost something by its length is no measure of calls, and none is longer.
        let losing = |is_at_work: bool| {
            let losses = observation.losses.iter().filter(|loss| loss.held.is_zero());
            let losses = losses.filter(|loss| (loss.phase == at_work) == is_at_work);
            let longest = losses.filter_map(|loss| Some(loss.service?[1].as_nanos()));
            longest.max()
        };
        let calls = quantities.get(kinds::PROCESSING_SERVICE, &at_work);
        let calls = calls.and_then(|calls| calls.undisturbed.max());
        Some([
            calls.max(losing(true)),
            longest_connecting(quantities).max(losing(false)),
        ])
    };
    let each = runs.iter().filter_map(of);
    let [at_work, connecting] = each.fold([None; 2], |[one, other], [at_work, before]| {
        [one.max(at_work), other.max(before)]
    });
    Longest {
        at_work,
        connecting,
    }
}

/// What was proposed to a device of a variant, beside what its longest call then needed, where all others are as they were.
pub(super) fn proposed(
    resolved: &Resolved,
    (number, supply): (usize, &Supply),
    device: &ResolvedDevice,
    longest: Longest,
) -> Option<Proposed> {
    let variant = &resolved.variants[number];
    let (Chosen::Proposed(proposal), request) = (device.chosen, device.placing.request()?) else {
        return None;
    };
    let held = request.reservation;
    // A twin's modem says itself what it takes before it is connected.
    let counts = proposal.connecting.is_some() && variant.start == Start::OnHook;
    let connecting = longest.connecting.filter(|_| counts);
    let least = longest.at_work.and_then(|longest| {
        let calls = (
            Service::from_nanos(longest),
            connecting.map(Service::from_nanos),
        );
        // Of what the others left, like what was proposed.
        let left = Left::of(resolved, number, proposal.twin, supply).ok()?;
        let place = variant
            .devices
            .iter()
            .position(|one| one.name == device.name)?;
        proposal.least((variant, device), request.enforcer, calls, |asked| {
            left.grants(place, asked)
        })
    });
    let times = |least: Reservation| (held.share_ppm() * 1_000_000).checked_div(least.share_ppm());
    Some(Proposed {
        service_ns: held.service().as_nanos(),
        period_ns: held.period().as_nanos(),
        calls: proposal.calls,
        longest_call_ns: proposal.longest.as_nanos(),
        margin_ppm: MARGIN_PPM,
        why: proposal.why(),
        longest_call_here_ns: longest.at_work,
        longest_connecting_here_ns: connecting,
        least_service_ns: least.map(|least| least.service().as_nanos()),
        least_period_ns: least.map(|least| least.period().as_nanos()),
        times_least_ppm: least.and_then(times),
        has_others: proposal.has_others,
    })
}
