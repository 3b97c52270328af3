//! Admission of channels: figures by hand, a simulator packet by packet, and every offer taken.

mod figures;
mod host;
mod paths;
mod sets;
mod wire;
