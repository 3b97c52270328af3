//! Frames: a header, a body and a trailer, in network byte order, without gaps, of one version.
//!
//! The same frame travels in a UDP datagram or with an Ethernet type of its own. Its trailer is a tag where it is [sealed](super::session), and a checksum where it is not. Parsing takes any bytes, checks every length,
//! and refuses whatever the encoder would not have written: so a body that is parsed and encoded again has the same bytes. `docs/wire.md` has every layout, with examples that a test compares.

mod body;
mod carrier;
mod checked;
mod data;
mod handshake;
mod layout;
mod signal;

pub use body::Body;
pub use carrier::{Carrier, ETHER_TYPE, MOST_OVERHEAD};
pub use checked::{check, checked};
pub use data::{Data, Left};
pub use handshake::{Answer, Cipher, First, MAC};
pub use layout::{
    CHECKSUM, DATA, Frame, HEADER, Header, Kind, LONGEST, Malformed, NoRoom, TAG, VERSION,
};
pub(super) use signal::{CauseLayout, Count, Reader, RefusalLayout, Sink, SpecLayout, Writer};
pub use signal::{SIGNAL_PAYLOAD, Signal};

pub(super) use layout::begin;
