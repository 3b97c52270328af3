//! Real-time channels: simplex, sequenced, unreliable flows of messages, each of which is due a stated time after its logical arrival.
//!
//! Mehra, Indiresan, Shin, "Structuring Communication Software for Quality-of-Service Guarantees" (RTSS 1996); what a channel states is a linear
//! bounded arrival process of messages, of which [`crate::nif::urgency`] makes logical arrivals and deadlines. Who goes next of all channels that want a processor or a link, [`crate::policy::multiclass`] decides (§2.1, §4.2).
//!
//! * [`admission`]: what each takes of processors, links and buffers, and whether it is granted (§2.2, §3.3).
//! * [`asked`]: what is asked for a channel, and what a host lacks for it.
//! * [`clocks`]: how the clocks of two neighbours stand to each other, and how much is left to a message that comes.
//! * [`fit`]: which rate and burst cover a flow that was recorded.
//! * [`handler`]: from messages to packets on a processor, as cooperative jobs (§3.1).
//! * [`link`]: which packet leaves next, and where that is decided (§4.2).
//! * [`reassembly`]: from a message to its packets and back (§3.1).
//! * [`replay`]: which sealed frames have been seen.
//! * [`ring`]: how an application and its node hand each other messages, in memory that both write.
//! * [`signalling`]: how a channel is opened, changed and ended hop by hop.
//! * [`source`](mod@source): the message queue at the sender, where what is too much or too large is policed (§3.1).

pub mod admission;
pub mod asked;
pub mod clocks;
pub mod fit;
pub mod handler;
pub mod link;
pub mod reassembly;
pub mod replay;
pub mod ring;
pub mod signalling;
pub mod source;
