//! A sender and a receiver of RTP (RFC 3550), each a process with two sessions of different periods in one real-time thread: a voice (PCMU, 8 kHz), of which a packet is sent every
//! 20 ms, and music (L16, 44.1 kHz), of which four packets are sent every 40 ms with a look after every two. What they hear and say is a tone of 440 Hz.
//!
//! ```sh
//! rtp receive 127.0.0.1:5004 127.0.0.1:5006 10      # ten seconds of voice and music, and tells what came
//! rtp send    127.0.0.1:5004 127.0.0.1:5006 10
//! ```
//!
//! Any other peer will do, such as one that plays the voice:
//!
//! ```sh
//! gst-launch-1.0 udpsrc port=5004 caps='application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU' ! rtppcmudepay ! mulawdec ! autoaudiosink
//! ```
//!
//! Takes the right to be FIFO; without it, says why and what to do, and with `fair` as its last argument runs as an ordinary thread.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::f64::consts::TAU;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use laxity::upcalls::{Call, Options, Pace, Rank, Spec, State, Upcall, Upcalls};
use laxity::{Instant, Service, Span, now};
use rtp_types::{RtpPacket, RtpPacketBuilder};

/// The room for a packet, which both sessions use one after the other: it needs no lock.
type Room = [u8; 1_500];

/// A media format of RFC 3551, and how it is sent.
struct Format {
    name: &'static str,
    payload_type: u8,
    rate_hz: u32,
    samples_a_packet: u16,
    period: Span,
    batch: u32,
    quantum: u32,
    encode: fn(i16, &mut Vec<u8>),
}

const FORMATS: [Format; 2] = [
    Format {
        name: "voice",
        payload_type: 0,
        rate_hz: 8_000,
        samples_a_packet: 160,
        period: Span::from_millis(20),
        batch: 1,
        quantum: 1,
        encode: |sample, to| to.push(mu_law(sample)),
    },
    Format {
        name: "music",
        payload_type: 11,
        rate_hz: 44_100,
        samples_a_packet: 441,
        period: Span::from_millis(40),
        batch: 4,
        quantum: 2,
        encode: |sample, to| to.extend(sample.to_be_bytes()),
    },
];

impl Format {
    /// So many packets are so many seconds of it.
    fn packets(&self, seconds: u32) -> u32 {
        seconds * self.rate_hz / u32::from(self.samples_a_packet)
    }

    /// An upcall for so many packets each period.
    fn spec(&self, period: Span, batch: u32) -> Spec {
        // Some system calls on a machine that is not slow.
        let mut spec = Spec::each(period, Service::from_micros(100));
        spec.name = self.name.to_owned();
        spec.timing.batch = NonZeroU32::new(batch).unwrap_or(NonZeroU32::MIN);
        spec.timing.quantum = NonZeroU32::new(self.quantum).unwrap_or(NonZeroU32::MIN);
        spec
    }
}

/// A sample as ITU-T G.711 companded it by the µ-law: sign, segment and four bits, inverted.
fn mu_law(sample: i16) -> u8 {
    let biased = sample.unsigned_abs().min(32_635) + 132;
    let segment = 8 - biased.leading_zeros() as u16;
    let step = biased >> (segment + 3) & 0xf;
    let sign = if sample < 0 { 0x80 } else { 0 };
    !((sign | segment << 4 | step) as u8)
}

/// What begins anywhere, so that nobody can guess it (RFC 3550, section 5.1).
fn anything() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A session that is sent.
struct Outgoing {
    format: &'static Format,
    socket: UdpSocket,
    source: u32,
    sequence: u16,
    timestamp: u32,
    /// Samples of the tone so far.
    position: u32,
    payload: Vec<u8>,
    sent: u32,
    goal: u32,
    missed: u64,
    refused: u64,
    tell: Sender<String>,
}

impl Outgoing {
    fn call(&mut self, call: &mut Call<'_, Room>) {
        let is_first = self.sent == 0;
        if call.done() == 0 && !is_first {
            // The sound went on while nobody sent: the receiver hears silence.
            let missed = call.paced.missed;
            let period = u32::from(self.format.samples_a_packet) * self.format.batch;
            self.timestamp = self
                .timestamp
                .wrapping_add(period.wrapping_mul(missed as u32));
            self.missed += missed;
        }
        for unit in 0..call.now() {
            let after_silence = is_first || call.paced.missed > 0;
            self.packet(call.shared, after_silence && call.done() + unit == 0);
        }
        if self.sent >= self.goal {
            call.suspend();
        }
    }

    fn packet(&mut self, room: &mut Room, begins: bool) {
        let samples = u32::from(self.format.samples_a_packet);
        self.payload.clear();
        for number in self.position..self.position + samples {
            let phase = f64::from(number % self.format.rate_hz) / f64::from(self.format.rate_hz);
            let sample = ((phase * 440.0 * TAU).sin() * 12_000.0) as i16;
            (self.format.encode)(sample, &mut self.payload);
        }
        let packet = RtpPacketBuilder::<_, &[u8]>::new()
            .payload_type(self.format.payload_type)
            .marker_bit(begins)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp)
            .ssrc(self.source)
            .payload(&self.payload[..]);
        let written = packet.write_into(room).ok();
        let sent = written.and_then(|length| self.socket.send(&room[..length]).ok());
        // A packet that the network does not take is lost, as one on its way is.
        self.refused += u64::from(sent.is_none());
        self.position = (self.position + samples) % self.format.rate_hz;
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(samples);
        self.sent += 1;
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let Self {
            sent,
            missed,
            refused,
            ..
        } = self;
        let name = self.format.name;
        let said = format!("{name}: {sent} packets sent, {refused} refused, {missed} calls missed");
        let _ = self.tell.send(said);
    }
}

/// What came of a session: RFC 3550, sections 6.4.1 and A.1.
#[derive(Default)]
struct Heard {
    source: u32,
    first: u32,
    /// The highest sequence number, with its turns of 65,536.
    highest: u32,
    first_timestamp: u32,
    timestamp: u32,
    packets: u32,
    others: u64,
    /// When the last came, less when it was due, in units of its clock; and how much that varies, times 16.
    transit: i64,
    jitter: u64,
}

impl Heard {
    fn packet(&mut self, format: &Format, packet: &[u8], at: Instant) {
        let packet = RtpPacket::parse(packet).ok();
        let packet = packet.filter(|packet| packet.payload_type() == format.payload_type);
        let is_known = |packet: &RtpPacket<'_>| self.packets == 0 || packet.ssrc() == self.source;
        let Some(packet) = packet.filter(is_known) else {
            self.others += 1;
            return;
        };
        let (sequence, timestamp) = (packet.sequence_number(), packet.timestamp());
        let clock = u128::from(at.as_nanos()) * u128::from(format.rate_hz) / 1_000_000_000;
        if self.packets == 0 {
            self.source = packet.ssrc();
            self.first = u32::from(sequence);
            self.highest = self.first;
            (self.first_timestamp, self.timestamp) = (timestamp, timestamp);
            self.transit = clock as i64;
        }
        let since = i64::from(timestamp.wrapping_sub(self.first_timestamp));
        let transit = clock as i64 - since;
        let smoothed = self.jitter - (self.jitter + 8) / 16;
        self.jitter = smoothed + transit.abs_diff(self.transit);
        self.transit = transit;
        let ahead = sequence.wrapping_sub(self.highest as u16);
        // What is not ahead comes late.
        if ahead < 0x8000 {
            self.highest += u32::from(ahead);
            self.timestamp = timestamp;
        }
        self.packets += 1;
    }

    const fn expected(&self) -> u32 {
        if self.packets == 0 {
            return 0;
        }
        self.highest - self.first + 1
    }
}

/// A session that is received.
struct Incoming {
    format: &'static Format,
    socket: UdpSocket,
    goal: u32,
    heard: Heard,
    tell: Sender<String>,
}

impl Incoming {
    fn call(&mut self, call: &mut Call<'_, Room>) {
        for unit in 0..call.now() {
            match self.socket.recv(call.shared) {
                Ok(length) => self
                    .heard
                    .packet(self.format, &call.shared[..length], now()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    call.finish_after(unit);
                    break;
                }
                // Of another packet, which somebody refused.
                Err(_) => self.heard.others += 1,
            }
        }
        if self.heard.expected() >= self.goal {
            call.suspend();
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let heard = &self.heard;
        let lost = i64::from(heard.expected()) - i64::from(heard.packets);
        let samples = u32::from(self.format.samples_a_packet);
        let span = heard.timestamp.wrapping_sub(heard.first_timestamp);
        let silence = i64::from(span) - i64::from(heard.expected().saturating_sub(1) * samples);
        let jitter = heard.jitter * 1_000_000 / 16 / u64::from(self.format.rate_hz);
        let said = format!(
            "{}: {} packets, {lost} lost, {silence} samples of silence, {} others, jitter {jitter} us",
            self.format.name, heard.packets, heard.others
        );
        let _ = self.tell.send(said);
    }
}

/// The sessions, which are sent to these addresses.
fn send(
    upcalls: &Upcalls<Room>,
    (addresses, seconds): (&[String], u32),
    tell: &Sender<String>,
) -> Result<Vec<Upcall>, Box<dyn Error>> {
    let mut sessions = Vec::new();
    for (format, to) in FORMATS.iter().zip(addresses) {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(to)?;
        // What waits for room on the way out would be late.
        socket.set_nonblocking(true)?;
        let mut session = Outgoing {
            format,
            socket,
            source: anything() as u32,
            sequence: anything() as u16,
            timestamp: anything() as u32,
            position: 0,
            payload: Vec::with_capacity(2 * usize::from(format.samples_a_packet)),
            sent: 0,
            goal: format.packets(seconds),
            missed: 0,
            refused: 0,
            tell: tell.clone(),
        };
        let spec = format.spec(format.period, format.batch);
        sessions.push(upcalls.create(spec, move |call| session.call(call))?);
    }
    Ok(sessions)
}

/// The sessions, which are received at these addresses, each as its packets come: twice as often as they should at most.
fn receive(
    upcalls: &Upcalls<Room>,
    (addresses, seconds): (&[String], u32),
    tell: &Sender<String>,
) -> Result<Vec<Upcall>, Box<dyn Error>> {
    let mut sessions = Vec::new();
    for (format, at) in FORMATS.iter().zip(addresses) {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        println!("{} at {}", format.name, socket.local_addr()?);
        let mut spec = format.spec(format.period / 2, format.batch * 2);
        spec.pace = Pace::Descriptor(Arc::new(OwnedFd::from(socket.try_clone()?)));
        let mut session = Incoming {
            format,
            socket,
            goal: format.packets(seconds),
            heard: Heard::default(),
            tell: tell.clone(),
        };
        sessions.push(upcalls.create(spec, move |call| session.call(call))?);
    }
    Ok(sessions)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Options::default();
    if arguments.last().is_some_and(|last| last == "fair") {
        options.rank = Rank::Fair;
        arguments.pop();
    }
    let usage = "rtp send|receive VOICE:PORT MUSIC:PORT SECONDS [fair]";
    let [what, addresses @ .., seconds] = &arguments[..] else {
        return Err(usage.into());
    };
    let asked = (addresses, seconds.parse()?);
    let upcalls = Upcalls::sharing(options, || [0; 1_500])?;
    let (tell, told) = mpsc::channel();
    let sessions = match (what.as_str(), addresses.len()) {
        ("send", 2) => send(&upcalls, asked, &tell)?,
        ("receive", 2) => receive(&upcalls, asked, &tell)?,
        _ => return Err(usage.into()),
    };
    for session in &sessions {
        session.run()?;
    }
    // A packet that is lost at the end is not waited for long.
    let until = now() + Span::from_secs(u64::from(asked.1) + 10);
    for session in sessions {
        while session.state() == State::Active && now() < until {
            upcalls.sleep_until(&[&session], until)?;
        }
        session.close()?;
        println!("{}", told.recv()?);
    }
    println!("{}", upcalls.grade());
    Ok(())
}
