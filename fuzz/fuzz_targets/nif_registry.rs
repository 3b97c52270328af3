//! Clients of every policy, their filters, a default and taps, registered, replaced, closed and ended in any order while packets come: whose each packet is, and where each
//! buffer, is what the definition says.
#![no_main]

#[path = "support/registry/mod.rs"]
mod registry;

use libfuzzer_sys::fuzz_target;
use registry::World;

fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    let (steps, _) = bytes.as_chunks::<3>();
    for step in steps.iter().take(400) {
        world.step(*step);
    }
    world.end();
});
