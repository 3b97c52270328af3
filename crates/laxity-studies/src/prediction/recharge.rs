//! Gives a program of the study's machine the costs of this one: what a call of the signal processing charges becomes what a call was
//! measured to take here.

use laxity_devices::modem::{Costs, Hypothesis};
use laxity_lab::scenario::devices::Installed;
use laxity_model::enforce::machine::Quantiles;
use laxity_model::{ActivityId, Body, Context, Program, Service, Span, Step};

use laxity_lab::workload::Draws;

/// Where a distribution of calls is looked at.
const SHARES: [u32; 9] = [
    0, 10_000, 100_000, 250_000, 500_000, 750_000, 900_000, 990_000, 1_000_000,
];
/// What the handler and the deferred call take that only pass the interrupt on; the signal itself is the machine's.
const PASSING_ON: Service = Service::from_micros(1);

/// The distribution of what was measured, by its percentiles in nanoseconds; `None` if nothing was.
pub(super) fn distribution(percentile: impl Fn(u32) -> Option<u64>) -> Option<Quantiles> {
    let at = |ppm| Some((ppm, Span::from_nanos(percentile(ppm)?)));
    let points: Option<Vec<_>> = SHARES.into_iter().map(at).collect();
    Quantiles::new(points?).ok()
}

/// What calls take without what the machine itself takes from them (its ticks and timers, which the twin charges besides): `measured`
/// less, at the median, what `with_machine` has more. That is what the twin makes of calls that are charged as `measured`.
pub(super) fn without_machine(measured: &Quantiles, with_machine: &Quantiles) -> Quantiles {
    let more = with_machine.median().saturating_sub(measured.median());
    let points = measured.points().iter();
    let less = points.map(|(share, span)| (*share, span.saturating_sub(more)));
    Quantiles::new(less.collect()).unwrap_or_else(|_| measured.clone())
}

/// What calls take while a reference block takes `here`, if they were measured while one took `there`; both in nanoseconds.
pub(super) fn at_pace(measured: &Quantiles, (here, there): (u64, u64)) -> Quantiles {
    let scaled = |span: Span| {
        let scaled = u128::from(span.as_nanos()) * u128::from(here) / u128::from(there.max(1));
        Span::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    };
    let points = measured.points().iter();
    let points = points.map(|(share, span)| (*share, scaled(*span)));
    Quantiles::new(points.collect()).unwrap_or_else(|_| measured.clone())
}

/// Replaces the costs of the modem's parts; calls take what is drawn from `calls`.
pub(super) fn recharge(program: &mut Program, modem: &Installed, calls: &Quantiles, seed: u64) {
    let others = [Some(modem.interrupt), modem.deferred];
    for other in others.into_iter().flatten() {
        if other != modem.driver {
            wrap(program, other, |_| PASSING_ON);
        }
    }
    let pieces = u64::from(Hypothesis::STUDY.pieces);
    let nominal = Costs::STUDY.data / pieces;
    let mut draws = Draws::new(seed, 0);
    let calls = calls.clone();
    let (mut piece, mut call) = (0, Service::ZERO);
    wrap(program, modem.driver, move |charged| {
        // A call that found its output run dry, or one of another phase, is no call of the data mode.
        if charged != nominal {
            return charged;
        }
        if piece == 0 {
            let ppm = draws.between(0, 1_000_000) as u32;
            call = calls.at(ppm).as_full_service();
        }
        piece = (piece + 1) % pieces;
        call / pieces
    });
}

/// What the activity's body charges costs something else from here on.
fn wrap(
    program: &mut Program,
    activity: ActivityId,
    mut cost: impl FnMut(Service) -> Service + Send + 'static,
) {
    let Some(activity) = program.activities.get_mut(activity.index()) else {
        return;
    };
    let unused: Box<dyn Body> = Box::new(|_: &mut dyn Context| Step::Finish);
    let mut body = std::mem::replace(&mut activity.body, unused);
    let recharged = move |context: &mut dyn Context| match body.step(context) {
        Step::Charge(charged) => Step::Charge(cost(charged)),
        step => step,
    };
    activity.body = Box::new(recharged);
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity::Twin;
    use laxity::study::Profile;
    use laxity_model::ProcessorId;
    use laxity_model::base::histogram::Histogram;
    use laxity_model::{Host, Placement, Priority};

    #[test]
    fn a_wrapped_body_charges_what_it_is_told_and_does_everything_else_itself() {
        let mut program = Program::new(1);
        let mut step = 0;
        let body = move |_: &mut dyn Context| {
            step += 1;
            match step {
                1 => Step::Charge(Service::from_millis(5)),
                2 => Step::Burn(Service::from_millis(3)),
                _ => Step::Finish,
            }
        };
        let thread = Placement::Thread(Priority::NORMAL);
        let who = program.add("worker", ProcessorId(0), thread, body);
        wrap(&mut program, who, |charged| charged / 5);
        let record = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_secs(1));
        let record = record.expect("the program is right");
        assert_eq!(record.usage[0].service, Service::from_millis(4));
    }

    #[test]
    fn what_the_machine_takes_is_charged_once() {
        let us = Span::from_micros;
        let at = |shift: u64| {
            let points = [(0, us(90 + shift)), (1_000_000, us(110 + shift))];
            Quantiles::new(points.into()).expect("rising")
        };
        let charged = without_machine(&at(0), &at(5));
        assert_eq!(charged.median(), us(95));
        assert_eq!(without_machine(&charged, &charged), charged);
    }

    #[test]
    fn calls_are_as_slow_as_the_machine_is() {
        let us = Span::from_micros;
        let measured = [(0, us(1_500)), (1_000_000, us(2_000))];
        let measured = Quantiles::new(measured.into()).expect("rising");
        let slower = at_pace(&measured, (1_300_000, 1_000_000));
        assert_eq!(slower.points(), [(0, us(1_950)), (1_000_000, us(2_600))]);
        assert_eq!(at_pace(&measured, (7, 7)), measured);
    }

    #[test]
    fn a_distribution_is_what_was_measured() {
        let mut measured = Histogram::new();
        assert_eq!(distribution(|ppm| measured.percentile(ppm)), None);
        (1..=1_000).for_each(|us| measured.record(us * 1_000));
        let distribution = distribution(|ppm| measured.percentile(ppm));
        let distribution = distribution.expect("there is something");
        let median = distribution.median().as_micros();
        assert!((495..=505).contains(&median), "{median}");
    }
}
