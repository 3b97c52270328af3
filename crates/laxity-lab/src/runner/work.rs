//! What is known of the work of a scenario's parts before they run: admission charges it to the slots below.

use laxity_model::request::Work;
use laxity_model::{Program, Service};

use crate::scenario::devices::Installed;
use crate::scenario::{ResolvedDevice, TwinProfile};

/// What a card's interrupt handler, and the deferred call behind it, take at most (Jones, Saroiu §6.2.4: 16 µs).
pub(super) const HANDLER: Service = Service::from_micros(16);

/// Declares the work of a device: that of its handlers, and of its driver's calls, which is the load that it is to be, or what it is charged in a twin.
pub(super) fn declare(
    program: &mut Program,
    installed: &Installed,
    device: &ResolvedDevice,
    twin: Option<TwinProfile>,
) {
    let own = &device.device;
    let handler = Work {
        service: HANDLER,
        period: own.interrupts_every(),
    };
    program.declare_work(installed.interrupt, handler);
    if let Some(deferred) = installed.deferred {
        program.declare_work(deferred, handler);
    }
    let period = own.period();
    let service = twin.map_or_else(|| device.load.work(period), |_| device.work(twin));
    // Last: under INT and DPC the driver is one of the two.
    program.declare_work(installed.driver, Work { service, period });
}
