//! The runs of the figures in the twin of the study's host.

use std::collections::BTreeMap;

use laxity_model::{Host, Reservation, Service, Span};
use laxity_sim::{Profile, Twin};

use super::disk;
use super::readings::Readings;
use super::scene::{Beside, Driver, Scene, length};
use crate::modem::transfers::TICK_HZ;
use laxity_lab::bench::{Request, pool};
use laxity_lab::runner::compose::{Composed, RunSpec, compose};
use laxity_lab::runner::{Progress, RunError};
use laxity_lab::scenario::{Phases, Placing, ResolvedDevice, Start};

/// The study's traces end five seconds after the connection (§6.2.3).
const TRACE: Span = Span::from_secs(28);
/// 30,000 wake-ups a millisecond apart (§6.3.1).
const CALLBACKS: Span = Span::from_secs(30);
/// Calls beside each callback.
const CALLS: u32 = 10;
/// Each of those calls stays on hook so much longer than the one before: one of the card's blocks, two and a half ticks of the host's
/// clock and a bit. So they lie in ten different ways to that clock, as the study's card did by chance.
const SHIFT: Span = Span::from_micros(2_500);
/// TCP's maximum segment size, bytes; no figure depends on it.
const MSS_BYTES: u16 = 536;

/// Makes these runs, on as many threads as asked for. The results do not depend on how many.
pub(super) fn run(
    scenes: &[Scene],
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<BTreeMap<Scene, Vec<Readings>>, RunError> {
    let calls = |&scene: &Scene| {
        let again = scene.beside == Beside::Callback && scene.driver != Driver::Absent;
        (0..if again { CALLS } else { 1 }).map(move |call| (scene, call))
    };
    let planned: Vec<(Scene, u32)> = scenes.iter().flat_map(calls).collect();
    let name = |(scene, _): &(Scene, u32)| format!("twin: {}", scene.name());
    let one = |(scene, call): &(Scene, u32)| run_one(*scene, request.seed, *call);
    let made = pool::map(&planned, request.threads, name, one, progress)?;
    let mut readings = BTreeMap::<Scene, Vec<Readings>>::new();
    for ((scene, _), made) in planned.into_iter().zip(made) {
        readings.entry(scene).or_default().push(made);
    }
    Ok(readings)
}

fn run_one(scene: Scene, seed: u64, call: u32) -> Result<Readings, RunError> {
    let span = match scene.beside {
        Beside::Spinner | Beside::DiskSearch => TRACE,
        Beside::Callback => CALLBACKS,
    };
    let phases = Phases {
        on_hook: Phases::STUDY.on_hook + SHIFT * u64::from(call),
        ..Phases::STUDY
    };
    let mut variant = scene.variant(phases, Start::OnHook);
    variant.devices.iter_mut().for_each(reserve_in_ticks);
    let spec = RunSpec {
        seed: seed + u64::from(call),
        mss_bytes: MSS_BYTES,
        further_receivers: 0,
        start: Start::OnHook,
        gaps_only: true,
    };
    let wrong = |error| RunError::of(error, &variant);
    let composed = compose(&variant, 1, &length(phases, span), spec).map_err(wrong)?;
    let Composed {
        mut program,
        probes,
    } = composed;
    if scene.beside == Beside::DiskSearch {
        disk::install(&mut program, seed);
    }
    let record = Twin::new(Profile::WIN2000_PII450).admit_and_run(program, span);
    Ok(Readings::of(&record.map_err(wrong)?, &probes))
}

/// The study's milliseconds are ticks of the host's clock, as in its tables: see [`TICK_HZ`].
fn reserve_in_ticks(device: &mut ResolvedDevice) {
    let Placing::Reserved(request, _) = &mut device.placing else {
        return;
    };
    let ticks = |nanos: u64| nanos * 1_000 / TICK_HZ;
    let asked = request.reservation;
    let service = Service::from_nanos(ticks(asked.service().as_nanos()));
    let period = Span::from_nanos(ticks(asked.period().as_nanos()));
    request.reservation = Reservation::new(service, period).unwrap_or(asked);
}
