//! What can be tried of each way without an interface; all is given back at once.

use super::error::OpenCause;
use super::{interface, packet as packets, tap as taps, xdp as hooks};

/// A packet socket.
pub(crate) fn packet() -> Result<(), OpenCause> {
    packets::raw_socket().map(drop)
}

/// A socket of `AF_XDP`, memory for so many packets, a map and a program.
pub(crate) fn xdp(packets: usize) -> Result<(), OpenCause> {
    hooks::try_program(packets)
}

/// The device of TAP interfaces, and the right to make one.
pub(crate) fn tap() -> Result<(), OpenCause> {
    taps::try_right()
}

/// Whether an interface has its other end on this machine. One that does not say what it is has none.
pub(crate) fn is_pair(name: &str) -> bool {
    interface::is_pair(name).unwrap_or(false)
}
