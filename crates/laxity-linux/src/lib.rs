//! laxity-linux
