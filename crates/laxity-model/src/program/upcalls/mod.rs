//! Upcalls that are made and ended while their executor runs.
//!
//! Whoever wants one puts a [`Command`] into a port, with the upcall's *place*: a number below [`HANDLERS`](crate::executor::HANDLERS) that it keeps until it is closed.
//! [`Control`] is the handler that carries commands out; [`Standing::asked`] says what one means to an upcall as it is. What becomes of each upcall is read from its
//! [`Board`], without a lock. Only an upcall that is [active](Standing::Active) is a handler of the executor: one that is suspended has nothing in any
//! queue, and when it runs again it is on the same grid as before, since that rests on its first release alone.
//!
//! [`admit_among`] says beforehand whether there is time for another one, and how much there would be; [`beside`] what several executors are to each other; [`qos`] what an upcall is to be for an application of one of four classes.

mod admission;
pub mod beside;
mod board;
mod control;
pub mod qos;
mod standing;

pub use admission::{NotAdmitted, Overhead, admit_among, charged, task};
pub use board::{Board, Counts};
pub use control::{Control, Entrant, Keeper, Order, Rests, STOP, Work, turns};
pub use standing::{Command, Denied, Effect, Standing};
