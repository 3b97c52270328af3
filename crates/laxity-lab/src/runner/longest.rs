//! How long the calls of a device were at most, in all runs of a scenario.

use super::RunDone;
use super::alone::longest_connecting;
use crate::observe::Watched;
use crate::scenario::kinds;

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
