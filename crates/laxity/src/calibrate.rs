//! What this machine costs, packets of a driver among it.

pub use laxity_linux::calibrate::*;

/// Measures everything on one processor, and says before each measurement what it is: as [`laxity_linux`]'s does, and then what packets take of a driver by each of the [`WAYS`]
/// to an interface that can be had here, between two interfaces in a network namespace of their own, or over loopback.
///
/// # Errors
///
/// See [`CalibrateError`].
pub fn calibrate(
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<Calibration, CalibrateError> {
    calibrate_with(settings, Some(crate::net::measure), progress)
}
