//! Real-time channels against what is counted.

mod fit;
mod handler;
mod admission;
mod clocks;
mod reassembly;
mod replay;
mod source;
