//! laxity-model
#![no_std]
