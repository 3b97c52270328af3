//! Real-time channels against what is counted.

mod reassembly;
mod replay;
mod source;
