//! Measuring what a reservation's holder receives, window by window, from its own marks.
//!
//! A holder works in small pieces, and marks after each how much service it has received since it began. Between two marks lies at least the
//! piece that lies between their services, so the service in a window that begins at a mark is known to within a piece.

use crate::stage::is_disturbed;
use crate::{Failure, Result, Tolerance, ensure_in_time};
use laxity_model::{
    Body, Context, EventKind, Instant, Mark, Reservation, RunRecord, Service, Step,
};

/// A holder that never blocks, and marks its service after each piece.
pub(crate) fn meter(mark: Mark, piece: Service) -> impl Body + 'static {
    move |context: &mut dyn Context| {
        context.mark(mark, [context.service().as_nanos(), 0]);
        Step::Burn(piece)
    }
}

/// A mark of a meter.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) service: Service,
}

pub(crate) fn readings(record: &RunRecord, mark: Mark) -> Vec<Reading> {
    record
        .marked(mark)
        .map(|event| Reading {
            at: event.at,
            service: Service::from_nanos(event.args[0]),
        })
        .collect()
}

/// One period, and the least service in any window of the reservation that begins in it.
struct Period {
    from: Instant,
    least: Service,
}

/// Whether the holder received its service in every window of its period's length, but for what the host may miss, and over all
/// undisturbed periods together.
pub(crate) fn expect_every_window(
    record: &RunRecord,
    readings: &[Reading],
    reservation: Reservation,
    piece: Service,
    tolerance: &Tolerance,
) -> Result {
    let periods = least_by_period(record, readings, reservation);
    ensure_in_time!(
        !periods.is_empty(),
        "no period of {reservation} was observed"
    );
    let promised = reservation.service();
    let enough = promised.saturating_sub(piece + tolerance.slack(promised));
    let least = periods.iter().map(|period| period.least).min();
    let window = |period: &Period| (period.from, period.from + reservation.period() * 2);
    expect_kept(
        record,
        &periods,
        window,
        |period| period.least >= enough,
        tolerance,
        &format!("{reservation} in a period, of {least:?} at least"),
    )?;
    expect_the_sum(record, readings, reservation, piece, tolerance)
}

/// Whether of these, each within a window of time, those that nothing disturbed are kept, but for what the host may miss.
pub(crate) fn expect_kept<T>(
    record: &RunRecord,
    all: &[T],
    window: impl Fn(&T) -> (Instant, Instant),
    is_kept: impl Fn(&T) -> bool,
    tolerance: &Tolerance,
    what: &str,
) -> Result {
    let is_judged = |one: &&T| {
        let (from, to) = window(one);
        !is_disturbed(record, from, to)
    };
    let judged: Vec<&T> = all.iter().filter(is_judged).collect();
    expect_undisturbed(all.len(), judged.len(), tolerance)?;
    let kept = judged.iter().filter(|one| is_kept(one)).count();
    let judged = judged.len();
    ensure_in_time!(
        tolerance.is_kept(kept, judged),
        "{what}: kept in {kept} of {judged} that nothing disturbed"
    );
    Ok(())
}

/// Whether enough was undisturbed to tell.
pub(crate) fn expect_undisturbed(all: usize, judged: usize, tolerance: &Tolerance) -> Result {
    let disturbed = all.saturating_sub(judged);
    let most = all as u128 * u128::from(tolerance.disturbed_ppm);
    if judged == 0 || disturbed as u128 * 1_000_000 > most {
        let periods = all;
        return Err(Failure::Disturbed { disturbed, periods });
    }
    Ok(())
}

/// Whether the undisturbed periods together gave the holder its service, if they are enough to tell.
pub(crate) fn expect_the_sum(
    record: &RunRecord,
    readings: &[Reading],
    reservation: Reservation,
    piece: Service,
    tolerance: &Tolerance,
) -> Result {
    let undisturbed = received_by_period(record, readings, reservation);
    let first = readings.first().map_or(record.end, |first| first.at);
    let whole = record.end.saturating_since(first) / reservation.period();
    expect_undisturbed(whole as usize, undisturbed.len(), tolerance)?;
    let received: Service = undisturbed.iter().map(|(_, received)| *received).sum();
    let asked = reservation.service().as_nanos() * undisturbed.len() as u64;
    let kept = u128::from(asked) * u128::from(tolerance.service_kept_ppm) / 1_000_000;
    // What is received between two marks is known to within a piece, and periods that follow each other share a mark.
    let is_after = |pair: &&[(u64, Service)]| pair[0].0 + 1 == pair[1].0;
    let rows = undisturbed.len() - undisturbed.windows(2).filter(is_after).count();
    let least = Service::from_nanos(kept as u64).saturating_sub(piece * rows as u64);
    ensure_in_time!(
        received >= least,
        "{reservation}: {received} received in {} undisturbed periods together, and {least} is the least",
        undisturbed.len()
    );
    Ok(())
}

/// What was received in each undisturbed period, counted from the first reading, with the period's number.
pub(crate) fn received_by_period(
    record: &RunRecord,
    readings: &[Reading],
    reservation: Reservation,
) -> Vec<(u64, Service)> {
    let period = reservation.period();
    let Some(first) = readings.first() else {
        return Vec::new();
    };
    let until = |at: Instant| {
        let so_far = readings.partition_point(|reading| reading.at <= at);
        readings[so_far - 1].service
    };
    let whole = record.end.saturating_since(first.at) / period;
    let periods = (0..whole).map(|number| (number, first.at + period * number));
    let undisturbed = periods.filter(|(_, from)| !is_disturbed(record, *from, *from + period * 2));
    undisturbed
        .map(|(number, from)| (number, until(from + period).saturating_sub(until(from))))
        .collect()
}

fn least_by_period(
    record: &RunRecord,
    readings: &[Reading],
    reservation: Reservation,
) -> Vec<Period> {
    let window = reservation.period();
    let Some(first) = readings.first() else {
        return Vec::new();
    };
    let mut periods: Vec<Period> = Vec::new();
    let (mut last, mut current) = (0, None);
    for begin in readings {
        let to = begin.at + window;
        if to > record.end {
            break;
        }
        while readings.get(last + 1).is_some_and(|next| next.at <= to) {
            last += 1;
        }
        let service = readings[last].service.saturating_sub(begin.service);
        let index = (begin.at - first.at) / window;
        // A period in which no window begins is one without service: the windows before it tell.
        if current.replace(index) != Some(index) {
            let from = first.at + window * index;
            let least = service;
            periods.push(Period { from, least });
        }
        if let Some(period) = periods.last_mut() {
            period.least = period.least.min(service);
        }
    }
    periods
}

/// Stretches between an activity's events of two kinds.
pub(crate) fn stretches(
    record: &RunRecord,
    who: laxity_model::ActivityId,
    begin: EventKind,
    end: EventKind,
) -> Vec<(Instant, Instant)> {
    let mut since = None;
    let mut found = Vec::new();
    for event in record.events.iter().filter(|event| event.activity == who) {
        if event.kind == begin {
            since = Some(event.at);
        } else if event.kind == end {
            found.extend(since.take().map(|since| (since, event.at)));
        }
    }
    found.extend(since.map(|since| (since, record.end)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    use laxity_model::{Disturbance, ProcessorId, Span};

    /// Service `x` at the start of every period of 10 ms, but nothing in one of them; all in microseconds.
    fn record_of(x_us: u64, missing: Option<u64>) -> (RunRecord, Vec<Reading>) {
        let mut service = 0;
        let mut readings = Vec::new();
        for period in 0..50 {
            for piece in 0..=x_us / 50 {
                if missing == Some(period) {
                    continue;
                }
                service += if piece > 0 { 50 } else { 0 };
                readings.push(Reading {
                    at: Instant::from_micros(period * 10_000 + piece * 50),
                    service: Service::from_micros(service),
                });
            }
        }
        let record = RunRecord::empty(Instant::ZERO, Instant::from_millis(500));
        (record, readings)
    }

    fn judge(record: &RunRecord, readings: &[Reading], tolerance: &Tolerance) -> Result {
        let promised = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
        let piece = Service::from_micros(50);
        expect_every_window(record, readings, promised, piece, tolerance)
    }

    #[test]
    fn what_is_kept_passes_and_what_is_not_fails() {
        let (record, readings) = record_of(1_000, None);
        assert_eq!(judge(&record, &readings, &Tolerance::NONE), Ok(()));
        let (record, readings) = record_of(900, None);
        assert!(matches!(
            judge(&record, &readings, &Tolerance::NONE),
            Err(Failure::Untimely(_))
        ));
        assert!(judge(&record, &[], &Tolerance::NONE).is_err());
    }

    #[test]
    fn one_missing_slot_fails_unless_tolerated_or_disturbed() {
        let (mut record, readings) = record_of(1_000, Some(20));
        assert!(judge(&record, &readings, &Tolerance::NONE).is_err());
        let most = Tolerance {
            kept_ppm: 950_000,
            service_kept_ppm: 980_000,
            ..Tolerance::NONE
        };
        assert_eq!(judge(&record, &readings, &most), Ok(()));
        record.disturbances.push(Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_micros(200_100),
            to: Instant::from_micros(209_000),
        });
        let disturbed = Err(Failure::Disturbed {
            disturbed: 1,
            periods: 49,
        });
        assert_eq!(judge(&record, &readings, &Tolerance::NONE), disturbed);
        let noisy = Tolerance {
            disturbed_ppm: 100_000,
            ..Tolerance::NONE
        };
        assert_eq!(judge(&record, &readings, &noisy), Ok(()));
    }
    #[test]
    fn periods_that_are_excused_one_by_one_must_make_up_the_sum() {
        let each_may_miss = Tolerance {
            kept_ppm: 0,
            service_kept_ppm: 920_000,
            ..Tolerance::NONE
        };
        let (record, readings) = record_of(950, None);
        assert_eq!(judge(&record, &readings, &each_may_miss), Ok(()));
        let (record, readings) = record_of(850, None);
        assert!(matches!(
            judge(&record, &readings, &each_may_miss),
            Err(Failure::Untimely(_))
        ));
    }
}
