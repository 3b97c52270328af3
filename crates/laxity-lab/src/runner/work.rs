//! What is known of the work of a scenario's parts before they run: admission charges it to the slots below.

use laxity_model::request::{ONCE, Work};
use laxity_model::{Program, Service};

use super::modes::{Demand, modes_of};
use crate::scenario::devices::Installed;
use crate::scenario::{ResolvedDevice, Start, TwinProfile};

/// What a card's interrupt handler, and the deferred call behind it, take at most (Jones, Saroiu §6.2.4: 16 µs).
pub(super) const HANDLER: Service = Service::from_micros(16);

/// Declares the work of a device: that of its handlers, and of its driver's calls, which is the load that it is to be, or what it is charged in a twin.
pub(super) fn declare(
    program: &mut Program,
    installed: &Installed,
    device: &ResolvedDevice,
    (twin, start): (Option<TwinProfile>, Start),
) {
    let own = &device.device;
    let modes = modes_of(device, (twin, start));
    let often = modes.iter().map(|mode| mode.period).min();
    let handler = Work {
        service: HANDLER,
        period: often.unwrap_or(own.interrupts_every()),
    };
    program.declare_work(installed.interrupt, handler);
    if let Some(deferred) = installed.deferred {
        program.declare_work(deferred, handler);
    }
    let call = twin.map_or_else(|| device.load.work(own.period()), |_| device.work(twin));
    let demand = Demand::of(device, &modes, call, |call| call);
    let usual = Work {
        service: demand.usual,
        period: demand.every,
    };
    // Last: under INT and DPC the driver is one of the two.
    program.declare_work(installed.driver, usual);
    if let Some(more) = demand.more {
        // And the interrupt behind that call, which finds nothing to do.
        let once = Work {
            service: more + HANDLER,
            period: ONCE,
        };
        program.declare_more_work(installed.driver, once);
    }
}
