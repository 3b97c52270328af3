//! Network cards, and the wire between two of them.
//!
//! A [`Cable`] has a [`Card`] at each end. Each queue of a card is a [`Link`](laxity_model::nif::link::Link), which a driver polls at
//! interrupt level; what the hardware does by itself (transfers to and from memory, the wire, interrupts) is one body
//! [outside the machine](Cable::hardware), which signals a semaphore for each interrupt. Two hosts in one run are two processors of one
//! program, each with the interrupts and threads of its own card; a peer that costs nothing is a body outside that has the far card.
//!
//! What a frame goes through: a descriptor of the sender's ring; the card fetches it from memory; it has the wire for itself, or one of
//! its two ways; it flies; the far card stores it into memory that was posted to the queue or the circuit that it is for, or loses it;
//! once it is there, an interrupt is due, at once or moderated.
//!
//! ATM adapters put what arrives for a circuit into memory that was taken when the circuit was opened (Liao, Tan, Campbell 1996, §3.1):
//! see [`Card::open`].

mod cable;
mod card;
mod hardware;
mod ring;

pub use cable::{Cable, Line};
pub use card::{Card, Circuits, Moderation, Queue, Shape, TakenError, Transfers};
