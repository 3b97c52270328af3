//! laxity
