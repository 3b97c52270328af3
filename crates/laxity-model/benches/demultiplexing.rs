//! How long it takes to find whose a packet is: parsing and classifying, arrivals at random, beside a bare probe of a hash table.
//!
//! UDP over IPv4, frames of 64 bytes one behind the other, each of a flow at random. A row is the median and
//! the least of several passes, in nanoseconds a packet.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hint::black_box;
use std::time::Instant;

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::{Behind, Key, Tail, parse};
use laxity_model::nif::table::{Registration, Table};

const PACKETS: usize = 1 << 18;
const PASSES: usize = 15;
const FRAME: usize = 64;

/// A UDP packet of a flow, with its number in address and port.
fn frame(flow: usize) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&50_u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    let flow = flow as u32;
    frame[26..30].copy_from_slice(&(0x0a00_0000 | flow >> 4).to_be_bytes());
    frame[30..34].copy_from_slice(&[10, 0, 0, 1]);
    frame[34..36].copy_from_slice(&(1_024 + (flow & 15) as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&9_u16.to_be_bytes());
    frame[38..40].copy_from_slice(&30_u16.to_be_bytes());
    frame
}

/// Time of each pass for a packet, in nanoseconds: the median and the least.
fn measure(mut pass: impl FnMut() -> u64) -> (f64, f64) {
    let mut took: Vec<f64> = (0..PASSES)
        .map(|_| {
            let begin = Instant::now();
            black_box(pass());
            begin.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
        })
        .collect();
    took.sort_by(f64::total_cmp);
    (took[PASSES / 2], took[0])
}

fn row(name: &str, (median, least): (f64, f64)) {
    println!("| {name} | {median:.1} | {least:.1} |");
}

fn key(frame: &[u8], tail: Option<Tail>) -> Key {
    parse(frame, tail).key
}

/// A table of so many flows, and what keeps them.
fn table(flows: usize, tail: Option<Tail>, further: &[&str]) -> (Table<u32>, Vec<Registration>) {
    let mut table = Table::new(0x5eed);
    let exact = (0..flows).map(|flow| Filter::flow(&key(&frame(flow), None)).expect("ports"));
    let further = further
        .iter()
        .map(|text| Filter::parse(text, tail).unwrap_or_else(|error| panic!("{text}: {error}")));
    let kept = exact
        .chain(further)
        .zip(0..)
        .map(|(filter, owner)| table.insert(filter, owner).expect("no overlap"))
        .collect();
    (table, kept)
}

/// Rows of so many flows: ours, ours without parsing, and a bare probe.
fn rows(flows: usize, tail: Option<Tail>, further: &[&str]) {
    let mut random = SplitMix64::new(7);
    let order: Vec<usize> = (0..PACKETS)
        .map(|_| (random.draw() % flows as u64) as usize)
        .collect();
    let frames: Vec<[u8; FRAME]> = order.iter().map(|flow| frame(*flow)).collect();
    let keys: Vec<Key> = frames.iter().map(|frame| key(frame, tail)).collect();
    let (table, _kept) = table(flows, tail, further);
    let name = format!("{flows} flows, {} masks", table.masks());
    let expected: u64 = order.iter().map(|flow| *flow as u64).sum();
    let both = || {
        let found = frames
            .iter()
            .map(|frame| table.find(&key(black_box(frame), tail)));
        let found: u64 = found.map(|owner| u64::from(owner.unwrap_or(0))).sum();
        assert_eq!(found, expected);
        found
    };
    row(&format!("{name}: parse and classify"), measure(both));
    let only = || {
        keys.iter().fold(0, |found, key| {
            found + u64::from(table.find(black_box(key)).unwrap_or(0))
        })
    };
    row(&format!("{name}: classify"), measure(only));
    let mut bare: HashMap<u64, u32, BuildHasherDefault<Folded>> = HashMap::default();
    for flow in 0..flows {
        bare.insert(flow as u64, flow as u32);
    }
    let probe = || {
        order.iter().fold(0, |found, flow| {
            found + u64::from(bare[&(*black_box(flow) as u64)])
        })
    };
    row(&format!("{flows} flows: bare probe"), measure(probe));
}

/// The cheapest hash of a number that still spreads it.
#[derive(Default)]
struct Folded(u64);

impl std::hash::Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("numbers only")
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number ^ 0x9e37_79b9_7f4a_7c15) * 0xbf58_476d_1ce4_e5b9;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

fn main() {
    println!("| | median, ns | least, ns |\n|---|---|---|");
    let frames: Vec<[u8; FRAME]> = (0..PACKETS).map(|n| frame(n % 1_000)).collect();
    let parsing = || {
        let ports = frames.iter().map(|frame| key(black_box(frame), None));
        ports.fold(0, |sum, key| sum + key.words().as_array()[1])
    };
    row("parse alone", measure(parsing));
    for flows in [1, 10_000, 100_000] {
        rows(flows, None, &[]);
    }
    // More specific than the flows, so each is probed before: by tail, of 8, 16, 24 and 32 bits.
    let tail = Tail::new(Behind::Udp, 0, 4);
    let flow =
        "ip src host 10.99.0.1 and ip dst host 10.0.0.1 and udp src port 9 and udp dst port 9 and";
    let further = [8, 16, 24, 32].map(|bits| format!("{flow} tail 0x{bits:02x}000000/{bits}"));
    let further: Vec<&str> = further.iter().map(String::as_str).collect();
    rows(10_000, tail, &further);
    let before = Instant::now();
    let (mut table, _kept) = table(100_000, None, &[]);
    let each = before.elapsed().as_secs_f64() * 1e9 / 100_000.0;
    println!("a registration, in the mean of 100000: {each:.0} ns");
    let mut longest = 0.0_f64;
    for flow in 100_000..200_000 {
        let filter = Filter::flow(&key(&frame(flow), None)).expect("ports");
        let before = Instant::now();
        let _kept = table.insert(filter, 0).expect("no overlap");
        longest = longest.max(before.elapsed().as_secs_f64() * 1e6);
    }
    println!("the longest of 100000 further ones: {longest:.0} us");
}
