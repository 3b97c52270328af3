//! One end of the flagship's flows over zenoh, as `tools/rivals/README.md` has it.
//!
//! Control goes at zenoh's real-time priority, video below it, best effort last; all in one session over TCP, which the receiver listens for. As `installed`, everything else is zenoh's default:
//! what finds its queue full is dropped. `tuned`: a small send buffer and small batches, so that little lies below the priorities, longer queues above them, and who finds one full waits.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Config, Session, Wait};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What has not come so long after the last message was due is lost.
const REST_NS: u64 = 500_000_000;
const TUNED: [(&str, &str); 3] = [
    ("transport/link/tx/batch_size", "4096"),
    ("transport/link/tx/queue/size/real_time", "16"),
    ("transport/link/tx/queue/size/interactive_high", "16"),
];
const TUNED_ENDPOINT: &str = "#so_sndbuf=16384";

/// One flow, as it is told: `control:64:1000000`.
#[derive(Clone)]
struct Flow {
    name: String,
    bytes: usize,
    period_ns: u64,
}

impl Flow {
    fn parse(word: &str) -> Result<Self> {
        match word.split(':').collect::<Vec<_>>()[..] {
            [name, bytes, period] => Ok(Self {
                name: name.to_owned(),
                bytes: bytes.parse()?,
                period_ns: period.parse()?,
            }),
            _ => Err(format!("no flow: {word}").into()),
        }
    }

    fn priority(&self) -> Priority {
        match &*self.name {
            "control" => Priority::RealTime,
            "video" => Priority::InteractiveHigh,
            _ => Priority::Background,
        }
    }

    fn key(&self) -> String {
        format!("laxity/{}", self.name)
    }
}

/// The monotonic clock's, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep_until(then: u64) {
    thread::sleep(Duration::from_nanos(then.saturating_sub(now())));
}

/// Says that it can be told when, and is told: the first message's instant, and from when on there is none.
fn when() -> Result<(u64, u64)> {
    println!("ready");
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let mut next = || words.next().ok_or("not told when");
    Ok((next()?.parse()?, next()?.parse()?))
}

fn open(sends: bool, is_tuned: bool, endpoint: &str) -> Result<Session> {
    let mut config = Config::default();
    config.insert_json5("mode", "\"peer\"")?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    config.insert_json5("listen/endpoints", "[]")?;
    let tuned = if is_tuned { TUNED_ENDPOINT } else { "" };
    let place = if sends {
        "connect/endpoints"
    } else {
        "listen/endpoints"
    };
    config.insert_json5(place, &format!("[\"{endpoint}{tuned}\"]"))?;
    if is_tuned {
        for (key, value) in TUNED {
            config.insert_json5(key, value)?;
        }
    }
    zenoh::open(config).wait()
}

fn send(session: &Session, is_tuned: bool, flows: &[Flow]) -> Result<()> {
    let publishers = flows.iter().map(|flow| {
        let blocking = match is_tuned {
            true => CongestionControl::Block,
            false => CongestionControl::Drop,
        };
        let publisher = session.declare_publisher(flow.key());
        let publisher = publisher
            .priority(flow.priority())
            .congestion_control(blocking)
            .wait()?;
        while !publisher.matching_status().wait()?.matching() {
            thread::sleep(Duration::from_millis(10));
        }
        Ok((flow, publisher))
    });
    let publishers = publishers.collect::<Result<Vec<_>>>()?;
    let (from, until) = when()?;
    thread::scope(|scope| {
        let sending = publishers.iter().map(|(flow, publisher)| {
            scope.spawn(move || -> Result<()> {
                let mut message = vec![0; flow.bytes];
                for number in 0_u64.. {
                    let scheduled = from + number * flow.period_ns;
                    if scheduled >= until {
                        break;
                    }
                    sleep_until(scheduled);
                    if now() >= until {
                        break;
                    }
                    message[..8].copy_from_slice(&number.to_le_bytes());
                    message[flow.bytes - 8..].copy_from_slice(&number.to_le_bytes());
                    publisher.put(message.clone()).wait()?;
                }
                Ok(())
            })
        });
        let sending: Vec<_> = sending.collect();
        sending
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

fn receive(session: &Session, flows: &[Flow]) -> Result<String> {
    let arrivals = Arc::new(Mutex::new(Vec::with_capacity(1 << 16)));
    let subscribers = flows.iter().enumerate().map(|(place, flow)| {
        let (arrivals, bytes) = (Arc::clone(&arrivals), flow.bytes);
        let came = move |sample: zenoh::sample::Sample| {
            let message = sample.payload().to_bytes();
            let at = now();
            let ends = message.first_chunk::<8>().zip(message.last_chunk::<8>());
            if let Some((front, back)) = ends
                && message.len() == bytes
                && front == back
            {
                let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
                arrivals.push((place, u64::from_le_bytes(*front), at));
            }
        };
        session.declare_subscriber(flow.key()).callback(came).wait()
    });
    let subscribers = subscribers.collect::<Result<Vec<_>>>()?;
    let (_, until) = when()?;
    sleep_until(until + REST_NS);
    drop(subscribers);
    let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let line =
        |(place, number, at): &(usize, u64, u64)| format!("{} {number} {at}\n", flows[*place].name);
    Ok(arrivals.iter().map(line).collect())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [does, how, _interface, _near, far, port, flows @ ..] = &words[..] else {
        return Err(
            "usage: zenoh send|receive installed|tuned INTERFACE NEAR FAR PORT FLOW...".into(),
        );
    };
    let flows = flows
        .iter()
        .map(|word| Flow::parse(word))
        .collect::<Result<Vec<_>>>()?;
    let (sends, is_tuned) = (does == "send", how == "tuned");
    let session = open(sends, is_tuned, &format!("tcp/{far}:{port}"))?;
    let told = match sends {
        true => send(&session, is_tuned, &flows).map(|()| String::new())?,
        false => receive(&session, &flows)?,
    };
    let mut out = io::stdout();
    writeln!(out, "{told}end")?;
    out.flush()?;
    // What closing it waits for is nobody's latency.
    std::process::exit(0);
}
