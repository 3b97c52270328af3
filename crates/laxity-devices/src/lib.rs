//! Soft devices: real signal processing on the host's processor, driven by an emulated card.
//!
//! * [`bits`]: the seam between signal processing and link layer.
//! * [`pump`]: the modem's signal processing in both directions, and the telephone line between.
//! * [`link`]: dialling, error correction, PPP and TCP/IP, and the file that is transferred.
//! * [`card`]: the one card of all devices, and its driver as a host runs it.
//! * [`modem`]: a whole call, from its first moment on hook to the file; [`dsl`], [`radio`], [`audio`]: devices that only receive or only play.
#![forbid(unsafe_code)]

pub mod audio;
pub mod bits;
pub mod card;
pub mod dsl;
pub mod link;
pub mod modem;
pub mod pump;
pub mod radio;
mod signal;
