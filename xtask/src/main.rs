//! Everything that CI runs.
fn main() {}
