//! How reservations are enforced: by the kernel ([`deadline`]) or by a dispatcher ([`slots`]); what becomes of their holders outside them
//! ([`confine`]), who watches ([`witness`]), and who cleans up if we cannot ([`guardian`]).

pub mod confine;
pub mod deadline;
pub mod guardian;
pub(crate) mod holding;
pub mod slots;
pub mod witness;
