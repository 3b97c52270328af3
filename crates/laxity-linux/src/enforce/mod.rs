//! How reservations are enforced: by the kernel ([`deadline`]) or by a dispatcher ([`slots`]); who watches ([`witness`]), and who cleans
//! up if we cannot (`guardian`).

pub mod deadline;
pub(crate) mod guardian;
pub(crate) mod holding;
pub mod slots;
pub mod witness;
