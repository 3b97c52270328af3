//! Real-time channels against what is counted.

mod admission;
mod clocks;
mod fit;
mod handler;
mod reassembly;
mod replay;
mod ring;
mod source;
