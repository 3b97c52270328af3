//! How well reservations are kept against four ordinary spinners on the same processor, by both enforcers.
//!
//! The holder reads the clock all the time and keeps the stretches in which it could not. Periods that overlap a late wake-up of
//! the witness are left out and counted. `cargo run --release -p laxity-linux --example slots_quality -- [SECONDS]`

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::enforce::Witness;
use laxity_model::{
    Activity, ActivityId, Context, Enforcer, EventKind, Host, Instant, Outside, Placement,
    Priority, ProcessorId, Program, Reservation, ReservationRequest, RunRecord, Service, Span,
    Step,
};

const CPU0: ProcessorId = ProcessorId(0);
/// Readings further apart than this are the two sides of a gap.
const GAP: Span = Span::from_micros(5);
/// What a gap may exceed Y − X by.
const TOLERANCE: Span = Span::from_micros(200);

type Gaps = Arc<Mutex<Vec<(Instant, Instant)>>>;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(5), |arg| arg.parse())?;
    println!(
        "{:<14} {:<9} {:>8} {:>9} {:>9} {:>9} {:>8} {:>11} {:>11} {:>9}  X: worst, 2 %, 50 %, 98 %",
        "X/Y",
        "enforcer",
        "periods",
        "disturbed",
        "gap ok",
        "X +-5%",
        "share",
        "longest gap",
        "worst raw",
        "us a slot"
    );
    for (service_us, period_us) in [
        (1_000, 10_000),
        (100, 2_500),
        (2_000, 8_000),
        (2_000, 13_000),
    ] {
        let reservation = Reservation::new(
            Service::from_micros(service_us),
            Span::from_micros(period_us),
        )?;
        for enforcer in [Enforcer::Slots, Enforcer::Deadline] {
            measure(reservation, enforcer, Span::from_secs(seconds))?;
        }
    }
    Ok(())
}

fn measure(
    reservation: Reservation,
    enforcer: Enforcer,
    length: Span,
) -> Result<(), Box<dyn Error>> {
    let mut config = LiveConfig::detect(1)?;
    config.witnesses = vec![Witness::new(CPU0)];
    let mut host = LiveHost::new(config);
    let gaps: Gaps = Arc::new(Mutex::new(Vec::with_capacity(1_000_000)));
    let mut program = Program::new(1);
    let holder = program.push(Activity {
        name: "holder".to_owned(),
        processor: CPU0,
        placement: Placement::Thread(Priority::NORMAL),
        reservation: Some(ReservationRequest {
            reservation,
            enforcer,
            outside: Outside::Confined,
            begins_at_start: true,
        }),
        body: Box::new(observer(&gaps)),
    });
    for _ in 0..4 {
        let spin = |_: &mut dyn Context| Step::Burn(Service::from_millis(1));
        program.add("spinner", CPU0, Placement::Thread(Priority::NORMAL), spin);
    }
    let record = host.admit_and_run(program, length)?;
    let gaps = gaps.lock().unwrap_or_else(PoisonError::into_inner);
    let quality = evaluate(reservation, &gaps, &record, holder);
    let (cost, timing) = host.slot_reports().first().map_or_else(
        || ("-".to_owned(), String::new()),
        |report| {
            let cost = report.spent.as_nanos() as f64 / report.slots.max(1) as f64 / 1e3;
            let followed = report.followed.first().copied().unwrap_or_default();
            let timing = format!(
                "  entering {}, waking {}, each way {}",
                followed.entering, followed.waking, followed.unseen_each
            );
            (format!("{cost:.1}"), timing)
        },
    );
    println!(
        "{:<14} {:<9} {:>8} {:>9} {:>8.2}% {:>8.2}% {:>7.2}% {:>11} {:>11} {cost:>9}  {}, {}, {}, {}{timing}",
        reservation.to_string(),
        enforcer.to_string(),
        quality.periods,
        quality.disturbed,
        percent(quality.gap_kept, quality.periods),
        percent(quality.service_kept, quality.periods),
        100.0 * record.usage[holder.index()].service.as_nanos() as f64
            / (record.end - record.start).as_nanos() as f64,
        quality.longest.to_string(),
        quality.longest_raw.to_string(),
        quality.worst(reservation.service()),
        quality.received_at(2),
        quality.received_at(50),
        quality.received_at(98),
    );
    Ok(())
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Reads the clock for 200 µs at a time and keeps the gaps.
fn observer(gaps: &Gaps) -> impl FnMut(&mut dyn Context) -> Step + Send + use<> {
    let gaps = Arc::clone(gaps);
    let mut last: Option<Instant> = None;
    move |context: &mut dyn Context| {
        let until = context.now() + Span::from_micros(200);
        loop {
            let now = context.now();
            if let Some(last) = last
                && now.saturating_since(last) > GAP
            {
                let mut gaps = gaps.lock().unwrap_or_else(PoisonError::into_inner);
                if gaps.len() < gaps.capacity() {
                    gaps.push((last, now));
                }
            }
            last = Some(now);
            if now >= until {
                return Step::Charge(Service::ZERO);
            }
        }
    }
}

#[derive(Default)]
struct Quality {
    periods: u64,
    disturbed: u64,
    gap_kept: u64,
    service_kept: u64,
    received: Vec<Service>,
    longest: Span,
    longest_raw: Span,
}

impl Quality {
    /// The service in the window that differs most.
    fn worst(&self, promised: Service) -> Service {
        let off = |received: &&Service| received.as_nanos().abs_diff(promised.as_nanos());
        let worst = self.received.iter().max_by_key(off);
        worst.copied().unwrap_or(Service::ZERO)
    }

    /// The service in a window at this percentile.
    fn received_at(&self, percentile: usize) -> Service {
        let index = self.received.len() * percentile / 100;
        self.received.get(index).copied().unwrap_or(Service::ZERO)
    }
}

/// Looks at windows of one period that begin in the middle of the time outside the slots, so that each has one slot whole.
fn evaluate(
    reservation: Reservation,
    gaps: &[(Instant, Instant)],
    record: &RunRecord,
    holder: ActivityId,
) -> Quality {
    let period = reservation.period();
    let promised = reservation.service();
    let first_slot = record
        .events
        .iter()
        .find(|event| event.kind == EventKind::SlotBegin && event.activity == holder)
        .map_or(record.start, |event| Instant::from_nanos(event.args[0]));
    let mut quality = Quality::default();
    let mut from = first_slot + period - reservation.longest_gap() / 2;
    let mut at = 0;
    while from + period * 2 < record.end {
        let to = from + period;
        while gaps.get(at).is_some_and(|(_, end)| *end <= from) {
            at += 1;
        }
        // A gap counts where it ends, whole; as lost service it counts where it lies.
        let here = gaps[at..].iter().take_while(|(begin, _)| *begin < to);
        let mut lost = Span::ZERO;
        let mut longest = Span::ZERO;
        let mut began = from;
        for (begin, end) in here {
            lost += (*end).min(to).saturating_since((*begin).max(from));
            if *end <= to {
                longest = longest.max(*end - *begin);
                began = began.min(*begin);
            }
        }
        quality.longest_raw = quality.longest_raw.max(longest);
        let disturbed = record
            .disturbances
            .iter()
            .any(|disturbance| disturbance.overlaps(began, to));
        if disturbed {
            quality.disturbed += 1;
        } else {
            let received = period.saturating_sub(lost).as_full_service();
            quality.periods += 1;
            quality.longest = quality.longest.max(longest);
            quality.gap_kept += u64::from(longest <= reservation.longest_gap() + TOLERANCE);
            let off = received.as_nanos().abs_diff(promised.as_nanos());
            quality.received.push(received);
            quality.service_kept += u64::from(off * 20 <= promised.as_nanos());
        }
        from = to;
    }
    quality.received.sort_unstable();
    quality
}
