//! Link layers.
