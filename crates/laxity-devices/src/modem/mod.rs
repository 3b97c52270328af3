//! The soft modem as a host runs it: what its card and driver do in a call, and the far end of the line.
//!
//! * `near`: the modem's software, from the AT command to the file; `far`: everything beyond the card.
//! * [`card`](mod@card): how the card is set; `unit`: what the driver does once an interrupt.
//! * `call`: all of it put together, for one call or several; `report`: what became of it.
//! * `phase`, `cost`: how long things last, and what they cost on the study's machine.
//! * `hypothesis`, `far_profile`: what is assumed of the device and of the server's modems; [`needs`]: what follows for who serves it.

mod call;
pub mod card;
mod cost;
mod exchange;
mod far;
mod far_profile;
mod hypothesis;
mod load;
mod near;
pub mod needs;
mod phase;
mod report;
mod unit;

pub use crate::card::{Asking, CardClock, DriverPlacement, Marks};
pub use call::{Call, CallConfig, Installed, SharedModems};
pub use cost::Costs;
pub use far::{FAR_DELAY, PIECES_HZ};
pub use far_profile::FarProfile;
pub use hypothesis::Hypothesis;
pub use near::{ANSWER_GRACE, DIAL_TONE_LIMIT, NearModem, TRAINING_LIMIT};
pub use phase::{DIAL_TONE, Phase, TRAINING, Timing};
pub use report::{Outcome, Report};
pub use unit::ModemUnit;
