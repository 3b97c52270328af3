//! Real-time channels: simplex, sequenced, unreliable flows of messages, each of which is due a stated time after its logical arrival.
//!
//! Mehra, Indiresan, Shin, "Structuring Communication Software for Quality-of-Service Guarantees" (RTSS 1996); what a channel states is a linear
//! bounded arrival process of messages, of which [`crate::nif::urgency`] makes logical arrivals and deadlines.
//!
//! * [`handler`]: from messages to packets on a processor, as cooperative jobs (§3.1).
//! * [`link`]: which packet leaves next, and where that is decided (§4.2).
//! * [`classes`]: who goes next, of all channels that want a processor or a link (§2.1, §4.2).
//! * [`source`](mod@source): the message queue at the sender, where what is too much or too large is policed (§3.1).
//! * [`reassembly`]: from a message to its packets and back (§3.1).

pub mod handler;
pub mod link;
pub mod reassembly;
pub mod source;

pub use crate::policy::multiclass as classes;
