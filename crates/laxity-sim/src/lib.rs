//! laxity-sim
