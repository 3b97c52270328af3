//! Real-time channels against what is counted.

mod fit;
mod reassembly;
mod source;
