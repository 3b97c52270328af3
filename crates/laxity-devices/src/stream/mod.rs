//! Soft devices of all kinds as a host runs them: cards with rings, a driver in one of four placements, and what became of it.
//!
//! * [`card`]: the emulated hardware; [`block`]: the signal processing, once a block; [`served`]: the two together.
//! * [`driver`]: what is called once an interrupt, for one card or several; [`install`]: put into a program.
//! * [`listen`]: who checks what a card sends; [`report`]: the account.
//! * [`modems`]: several modems on one driver.
//!
//! The devices themselves: [`dsl`](crate::dsl), [`radio`](crate::radio), [`audio`](crate::audio). The card and the driver of the
//! [`modem`](crate::modem) are of their own kind: programmed anew with each phase of a call, and with a far end that answers.

pub mod block;
pub mod card;
pub mod driver;
pub mod install;
pub mod listen;
pub mod modems;
pub mod report;
pub mod served;

pub use block::{Block, Checked, Repeated};
pub use card::{Card, Format};
pub use driver::Marks;
pub use install::{DriverParts, Installed, Overheads, Stream};
pub use listen::Listener;
pub use modems::SharedModems;
pub use report::Report;
