//! Real-time channels against what is counted.

mod admission;
mod reassembly;
mod source;
