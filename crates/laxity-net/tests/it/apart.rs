//! Two clients never see each other's bytes, though memory goes round among them.

use laxity_model::Instant;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_net::buffers::PoolSize;
use laxity_net::clients::early;
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_net::emulated::{End, Faults, Wire};
use proptest::prelude::*;

/// The world: three clients, each a circuit, whose packets consist of its own number.
const CLIENTS: u16 = 3;

fn send(far: &mut End, channel: u16, length: usize) {
    let circuit = Circuit { path: 0, channel };
    let mut memory = far.allocate(1).unwrap().pop().unwrap();
    memory[..length].fill(0xa0 + channel as u8);
    memory[..circuit.header().len()].copy_from_slice(&circuit.header());
    far.send(memory, length, Instant::ZERO).unwrap();
}

/// Behind the header there is nothing but what the client got, wrote, or zeros.
fn is_its_own(packet: &[u8], channel: u16) -> bool {
    let header = Circuit { path: 0, channel }.header().len();
    let own = [0, 0xa0 + channel as u8, 0xb0 + channel as u8];
    packet[header..].iter().all(|byte| own.contains(byte))
}

proptest! {
    #[test]
    fn whatever_a_client_looks_at_is_its_own(
        story in prop::collection::vec((0..CLIENTS, 20_usize..1500, 0_u8..4, 20_usize..1500), 1..60),
    ) {
        let (_wire, mut far, near) = Wire::new(Faults::default(), 1);
        let limits = Limits { posted: 2, ..Limits::default() };
        let mut driver = Driver::new(near, Circuits::default(), limits, Host::default()).unwrap();
        let sleeper = Host::default().sleeper;
        let mut clients = Vec::new();
        for channel in 0..CLIENTS {
            let (client, queue) = early::client(2, None, &sleeper);
            let circuit = Circuit { path: 0, channel };
            let registered = driver.register(Interest::In(&circuit), PoolSize::fixed(2), client).unwrap();
            registered.pool.give(1);
            clients.push((registered.pool, queue));
        }
        for (channel, length, how, looks) in story {
            send(&mut far, channel, length);
            driver.poll(Instant::ZERO, &mut ()).unwrap();
            let (pool, queue) = &clients[usize::from(channel)];
            let mut packet = queue.try_next().unwrap().unwrap();
            prop_assert!(is_its_own(packet.bytes(), channel));
            match how {
                0 => {
                    packet.set_length(looks).unwrap();
                    prop_assert!(is_its_own(packet.bytes(), channel));
                    drop(packet);
                }
                1 => {
                    let mut empty = packet.emptied();
                    prop_assert!(is_its_own(empty.space(), channel));
                    empty.space().fill(0xb0 + channel as u8);
                }
                2 => {
                    let filled = packet.emptied().filled(looks).unwrap();
                    prop_assert!(is_its_own(filled.bytes(), channel));
                    filled.send(Default::default()).ok();
                    driver.poll(Instant::ZERO, &mut ()).unwrap();
                    driver.poll(Instant::from_millis(10), &mut ()).unwrap();
                }
                _ => drop(packet),
            }
            pool.give(1);
        }
    }
}
