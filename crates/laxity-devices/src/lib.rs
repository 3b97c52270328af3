//! Soft devices: real signal processing on the host's processor, driven by an emulated card.
//!
//! * [`bits`]: the seam between signal processing and link layer.
//! * [`pump`]: the modem's signal processing in both directions, and the telephone line between.
//! * [`link`]: dialling, error correction, PPP and TCP/IP, and the file that is transferred.
//! * [`modem`]: card, driver and far end: the device as a host runs it.
//! * [`stream`]: the same for devices that only receive or only play; [`dsl`], [`radio`], [`audio`]: which there are.
#![forbid(unsafe_code)]

pub mod audio;
pub mod bits;
pub mod dsl;
pub mod link;
pub mod modem;
pub mod pump;
pub mod radio;
pub mod stream;
