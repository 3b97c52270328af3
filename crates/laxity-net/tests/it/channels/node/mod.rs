//! Nodes of channels on a line, each in its own calendar's time, from opening to end.

mod bounds;
mod clocks;
mod deaths;
mod faults;
mod lives;
mod sums;
mod twin;
mod world;
