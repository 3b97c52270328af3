//! The one card of all soft devices: rings, a sample clock, interrupts, and a driver in one of four placements.
//!
//! * `ring`: the emulated hardware; `cursor`: how a driver reads and writes it; `clock`: the device's own time.
//! * `served`: the work that an interrupt asks for; `stream`: that work for devices that are only received or only played, and
//!   `block`: their signal processing. The [`modem`](crate::modem) has work of its own kind.
//! * `driver`: what runs once an interrupt, for one card or several; `interrupt`: what is before it; `install`: all of it put into a
//!   program.
//! * `listen`: who checks what a card sends; `report`: the account.

mod block;
mod clock;
mod cursor;
mod driver;
mod install;
mod interrupt;
mod listen;
mod report;
mod ring;
mod served;
mod stream;

pub use block::{Block, Checked, Repeated};
pub use clock::CardClock;
pub(crate) use clock::DeviceClock;
pub(crate) use cursor::Cursor;
pub(crate) use driver::Unit;
pub use driver::{Asking, Left, Marks};
pub(crate) use install::DriverParts;
pub use install::{DriverPlacement, Installed, Overheads};
pub use listen::Listener;
pub use report::{Counter, Report};
pub(crate) use ring::Programming;
pub use ring::{Card, Setting};
pub use served::{Served, Unserved, Work};
pub use stream::{Format, Stream, StreamUnit};
