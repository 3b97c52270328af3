//! Real-time channels against what is counted.

mod clocks;
mod reassembly;
mod source;
