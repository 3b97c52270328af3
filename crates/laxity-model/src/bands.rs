//! bands
