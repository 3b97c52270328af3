//! One application of each class in one real-time thread, each with what it needs: a video, a transfer, requests, and messages at a high rate.
//!
//! What the work on a packet costs is measured first. Takes the right to be FIFO; without it, says why and what to do, and with `fair` as its argument runs as an ordinary thread.

use std::error::Error;
use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};

use laxity::calibrate::pdu_cost;
use laxity::upcalls::qos::{Class, Limits, Mapping, Path, Release, map};
use laxity::upcalls::{Call, Options, Rank, Spec, Upcalls};
use laxity::{Span, now, sleep_until};

/// So many calls of each.
const CALLS: u64 = 20;

/// What is done with a packet here: the checksum of the Internet protocols.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|word| match *word {
        [high, low] => u32::from(high) << 8 | u32::from(low),
        _ => u32::from(word[0]) << 8,
    });
    let sum = words.fold(0_u32, u32::wrapping_add);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// One of each class.
fn classes() -> Option<[(&'static str, Class); 4]> {
    let video = Class::ContinuousMedia {
        frame_bytes: NonZeroU32::new(30_000)?,
        every: Span::from_millis(40),
        delay: Span::from_millis(150),
    };
    let transfer = Class::Bulk {
        bytes_per_second: NonZeroU64::new(4_000_000)?,
    };
    let requests = Class::Transactions {
        bytes: NonZeroU32::new(200)?,
        every: Span::from_millis(5),
        response: Span::from_millis(2),
    };
    let messages = Class::Messages {
        bytes: NonZeroU32::new(900)?,
        per_second: NonZeroU32::new(2_000)?,
        delay: Span::from_millis(40),
    };
    Some([
        ("video", video),
        ("transfer", transfer),
        ("requests", requests),
        ("messages", messages),
    ])
}

/// In a line.
fn show(name: &str, mapping: &Mapping) {
    let delay = mapping
        .delay
        .map_or("any".to_owned(), |delay| delay.to_string());
    let (room, each) = (mapping.buffers, mapping.period);
    println!(
        "{name}: {} packets of {} bytes every {each}, {} at once; {} bytes a second on the link; room for {}, {} and {} packets; delay {delay}",
        mapping.batch,
        mapping.pdu_bytes,
        mapping.quantum,
        mapping.bytes_per_second,
        room.send,
        room.link,
        room.receive,
    );
}

/// Does the work of a call, so often.
fn handler(mapping: &Mapping) -> impl FnMut(&mut Call<'_>) + Send + 'static {
    let packet = vec![0x5a_u8; mapping.pdu_bytes.get() as usize];
    let mut calls = 0;
    move |call| {
        for _ in 0..call.now() {
            black_box(checksum(&packet));
        }
        calls += u64::from(call.done() + call.now() == call.batch());
        if calls == CALLS {
            call.suspend();
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("fair") => options.rank = Rank::Fair,
        Some(other) => return Err(format!("`{other}` is none of its arguments: qos [fair]").into()),
    }
    let packet = vec![0x5a_u8; 1_400];
    let cost = pdu_cost(&[64, 512, 1_400], |bytes| {
        black_box(checksum(&packet[..bytes as usize]));
    })?;
    println!(
        "a packet takes {} and {} ps a byte",
        cost.each, cost.byte_ps
    );
    let path = Path {
        pdu_bytes: NonZeroU32::new(1_400).ok_or("a packet carries something")?,
        header_bytes: 28,
        latency: Span::from_millis(2),
        jitter: Span::from_millis(1),
    };
    let upcalls = Upcalls::start(options)?;
    let mut running = Vec::new();
    for (name, class) in classes().ok_or("nothing is asked for")? {
        let mapping = map(&class, &cost, &path, &Limits::default())?;
        show(name, &mapping);
        let upcall = upcalls.create(Spec::mapped(name, &mapping), handler(&mapping))?;
        upcall.run()?;
        running.push((upcall, mapping));
    }
    for (upcall, mapping) in &running {
        // Whoever asks, as often as was said.
        for request in 0..CALLS * u64::from(mapping.release == Release::Arrivals) {
            upcall.release([request, 0])?;
            sleep_until(now() + mapping.period);
        }
    }
    for (upcall, _) in &running {
        upcalls.sleep_until(&[upcall], now() + Span::from_secs(10))?;
    }
    for (name, state, counts) in upcalls.list() {
        println!(
            "{name}: {state:?} after {} calls, {} packets",
            counts.calls, counts.units
        );
    }
    Ok(())
}
