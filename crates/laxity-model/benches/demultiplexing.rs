//! How long it takes to find whose a packet is: parsing and classifying, arrivals at random, beside a bare probe of a hash table.
//!
//! UDP over IPv4, frames of 64 bytes in a ring's worth of memory, which are written anew before each pass, each of a flow at random. A row is
//! the median and the least of many passes, in nanoseconds a packet. A pass is short, so that most have the processor to themselves.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::hint::black_box;
use std::time::Instant;

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::{Behind, Key, Tail, parse};
use laxity_model::nif::table::{Registration, Table};

const PACKETS: usize = 1 << 12;
const PASSES: usize = 501;
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

/// Time of each pass for a packet, in nanoseconds: the median and the least. Each has flows of its own to look for, and answers their sum.
fn measure<T>(
    flows: usize,
    prepare: impl Fn(&[usize]) -> Vec<T>,
    pass: impl Fn(&[T]) -> u64,
) -> (f64, f64) {
    let mut random = SplitMix64::new(7);
    let mut one = |_| {
        let flow = |_| (random.draw() % flows as u64) as usize;
        let order: Vec<usize> = (0..PACKETS).map(flow).collect();
        let packets = prepare(&order);
        let begin = Instant::now();
        let sum = black_box(pass(black_box(&packets)));
        let took = begin.elapsed();
        assert_eq!(sum, order.iter().map(|flow| *flow as u64).sum());
        took.as_secs_f64() * 1e9 / PACKETS as f64
    };
    let mut took: Vec<f64> = (0..PASSES).map(&mut one).collect();
    took.sort_by(f64::total_cmp);
    (took[PASSES / 2], took[0])
}

fn row(name: &str, (median, least): (f64, f64)) {
    println!("| {name} | {median:.1} | {least:.1} |");
}

#[inline]
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

fn frames(order: &[usize]) -> Vec<[u8; FRAME]> {
    order.iter().map(|flow| frame(*flow)).collect()
}

/// Rows of so many flows: ours, ours without parsing, and a bare probe.
fn rows(flows: usize, tail: Option<Tail>, further: &[&str]) {
    let (table, _kept) = table(flows, tail, further);
    let name = format!("{flows} flows, {} masks", table.masks());
    let both = |frames: &[[u8; FRAME]]| {
        let owners = frames.iter().map(|frame| table.find(&key(frame, tail)));
        owners.map(|owner| u64::from(owner.unwrap_or(0))).sum()
    };
    row(
        &format!("{name}: parse and classify"),
        measure(flows, frames, both),
    );
    let keys = |order: &[usize]| {
        let frames = frames(order);
        frames.iter().map(|frame| key(frame, tail)).collect()
    };
    let classify = |keys: &[Key]| {
        let owners = keys.iter().map(|key| table.find(key));
        owners.map(|owner| u64::from(owner.unwrap_or(0))).sum()
    };
    row(&format!("{name}: classify"), measure(flows, keys, classify));
    let mut bare: HashMap<u64, u32, BuildHasherDefault<Folded>> = HashMap::default();
    bare.extend((0..flows).map(|flow| (flow as u64, flow as u32)));
    let numbers = |order: &[usize]| order.iter().map(|flow| *flow as u64).collect();
    let probe = |numbers: &[u64]| numbers.iter().map(|flow| u64::from(bare[flow])).sum();
    row(
        &format!("{flows} flows: bare probe"),
        measure(flows, numbers, probe),
    );
}

/// What a registration takes, among so many and twice as many.
fn registrations(flows: usize) {
    let (mut table, mut kept) = table(flows, None, &[]);
    let register = |flow| {
        let filter = Filter::flow(&key(&frame(flow), None)).expect("ports");
        let begin = Instant::now();
        kept.push(table.insert(filter, 0).expect("no overlap"));
        begin.elapsed().as_secs_f64() * 1e9
    };
    let mut took: Vec<f64> = (flows..2 * flows).map(register).collect();
    took.sort_by(f64::total_cmp);
    let (median, longest) = (took[flows / 2], took[flows - 1]);
    println!(
        "| {flows} flows: registering as many more, the longest {longest:.0} | {median:.0} | {:.0} |",
        took[0]
    );
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
    let number = |key: Key| {
        let [_, ports, _, source, ..] = *key.words().as_array();
        ((source - 0x0a00_0000) << 4) | ((ports >> 16) - 1_024)
    };
    let parse = |frames: &[[u8; FRAME]]| frames.iter().map(|frame| number(key(frame, None))).sum();
    row("parse alone", measure(1_000, frames, parse));
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
    for flows in [10_000, 100_000] {
        registrations(flows);
    }
}
