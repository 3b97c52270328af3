//! Who runs next: the policies, as state machines that take `now` and return effects.
//!
//! * [`bands`]: priority bands with quanta and boosts, as the modem study's host has them.
//! * [`slots`]: tables of time slots, their planner and its oracle.

pub mod bands;
pub mod slots;
