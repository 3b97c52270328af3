//! Signal processing.
