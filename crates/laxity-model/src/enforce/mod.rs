//! How what was admitted is carried out: the dispatcher of slot tables and how it follows what switches cost, the witness's rule, how it tells a processor that crawls, what a late
//! wake-up means and whom it excuses, which Linux policy stands for
//! which placement, what a host must do and hand back, and what a machine costs.

mod above;
mod allowance;
mod busy;
mod dispatcher;
mod disturbance;
mod following;
pub mod host;
mod lateness;
pub mod machine;
mod piece_times;
pub mod ranks;
pub mod slots;
mod unforeseen;
mod witness;

pub use above::above;
pub use busy::{BusyPeriod, DeviceCall, Excuse, Losing};
pub use dispatcher::{Command, Dispatcher};
pub(crate) use disturbance::between_looks;
pub use disturbance::{Disturbance, Disturbances, Stretches, Whereabouts};
pub use following::{Count, Following, Look, Switching, Ticks};
pub use lateness::{Holder, KERNELS_OWN, Lateness, Waits};
pub use piece_times::PieceTimes;
pub use unforeseen::Unforeseen;
pub use witness::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY, Witness, WitnessLate, longest_own_hold};
