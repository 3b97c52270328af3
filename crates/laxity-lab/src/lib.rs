//! laxity-lab
