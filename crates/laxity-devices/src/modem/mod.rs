//! The soft modem as a host runs it: card, interrupt handler, driver, and the far end of the line.
//!
//! * [`card`]: the emulated hardware; [`driver`]: what is called once an interrupt, and in which context.
//! * [`near`]: the modem's software, from the AT command to the file; [`far`]: everything beyond the card.
//! * [`call`]: all of it put together; [`report`]: what became of it.
//! * [`phase`], [`cost`]: how long things last, and what they cost on the study's machine.
//! * [`hypothesis`], [`far_profile`]: what is assumed of the device and of the server's modems.

pub mod call;
pub mod card;
pub mod clock;
pub mod cost;
pub mod driver;
mod exchange;
pub mod far;
pub mod far_profile;
pub mod hypothesis;
pub(crate) mod interrupt;
mod load;
pub mod near;
pub mod phase;
pub mod report;

pub use call::{Call, CallConfig, DriverPlacement, Installed};
pub use clock::CardClock;
pub use cost::Costs;
pub use driver::{Asking, Marks};
pub use far_profile::FarProfile;
pub use hypothesis::Hypothesis;
pub use phase::{Phase, Timing};
pub use report::{Outcome, Report};
