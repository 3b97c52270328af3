//! What is known of the work of a scenario's parts before they run: admission charges it to the slots below.

use laxity_devices::modem::Installed;
use laxity_model::request::Work;
use laxity_model::{ActivityId, Program, Service, Span};

use crate::scenario::ResolvedDevice;

/// The interval between two calls of a connected modem's driver, on average (Jones, Saroiu §6.2.1).
pub(crate) const MODEM_PERIOD: Span = Span::from_micros(12_500);
/// The card's shortest interval between two interrupts off hook, and what its handler, and the deferred call behind it, take at most
/// (§6.2.4: 16 µs).
const INTERRUPT_PERIOD: Span = Span::from_micros(11_250);
const HANDLER: Service = Service::from_micros(16);
/// What waking a periodic thread takes besides its work.
const WAKE_UP: Service = Service::from_micros(10);

/// Declares the work of a modem: that of its handlers, and the load that its driver is to be.
pub(super) fn declare_modem(program: &mut Program, modem: &Installed, device: &ResolvedDevice) {
    let handler = Work {
        service: HANDLER,
        period: INTERRUPT_PERIOD,
    };
    program.declare_work(modem.interrupt, handler);
    if let Some(deferred) = modem.deferred {
        program.declare_work(deferred, handler);
    }
    let share = u64::from(device.load.share.ppm);
    let service = Span::from_nanos(MODEM_PERIOD.as_nanos() * share / 1_000_000).as_full_service();
    // Last: under INT and DPC the driver is one of the two.
    program.declare_work(
        modem.driver,
        Work {
            service,
            period: MODEM_PERIOD,
        },
    );
}

/// Declares the work of a periodic task in this thread, with that of those that take turns with it: all of it as often as the shortest period.
pub(super) fn declare_periodic(
    program: &mut Program,
    thread: ActivityId,
    service: Service,
    period: Span,
) {
    let known = program.work.iter().find(|(known, _)| *known == thread);
    let others = known.map(|(_, work)| *work);
    let work = Work {
        service: service + WAKE_UP + others.map_or(Service::ZERO, |others| others.service),
        period: others.map_or(period, |others| others.period.min(period)),
    };
    program.declare_work(thread, work);
}
