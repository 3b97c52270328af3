//! What stands outside the machine: a video source and bulk senders on one segment, which carries one frame at a time.

use std::collections::VecDeque;

use laxity_lab::workload::Draws;
use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::registry::Circuit;
use laxity_model::nif::wire::Framing;
use laxity_model::{Body, Context, Instant, PortId, SemaphoreId, Span, Step};
use laxity_net::emulated::End;

/// A frame of video every so often.
pub const FRAME_PERIOD: Span = Span::from_millis(100);
/// Packets of a frame of video.
pub const FRAME_PACKETS: u64 = 3;
/// Packets that a bulk sender has on their way at the most: a socket's 16 KB.
pub const BLOCK_PACKETS: u64 = 11;
/// Bytes of each packet.
pub const PACKET_BYTES: usize = 1_460;
/// Bits a second.
pub const WIRE_RATE: u64 = 10_000_000;

/// What the senders do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Senders {
    /// So many send bulk data.
    pub streams: u64,
    /// A frame of video leaves at most so much before or after its time.
    pub video_jitter: Span,
    /// From the last acknowledgement of a block until the next one is sent, in the mean: what the sender's disk takes.
    pub disk: Span,
    /// Everything random follows from it.
    pub seed: u64,
}

/// The circuit of the video, or of a bulk sender.
pub const fn circuit(station: u64) -> Circuit {
    Circuit {
        path: 0,
        channel: 32 + station as u16,
    }
}

/// Behind its circuit, a packet says of which station it is, and its number there.
pub fn station_of(packet: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize| {
        packet
            .get(at..at + 8)?
            .try_into()
            .ok()
            .map(u64::from_be_bytes)
    };
    Some((number(4)?, number(12)?))
}

/// One that sends: the video is the first.
struct Station {
    draws: Draws,
    /// When it sends again; at the end of time, while it waits for acknowledgements.
    next: Instant,
    waiting: VecDeque<u64>,
    sent: u64,
    unacknowledged: u64,
}

/// The segment, as a body outside the machine. It signals `line` when a frame has arrived at the other end, and is told in `acknowledged` of which station a packet has been processed: this takes no wire.
pub struct Segment {
    near: End,
    line: SemaphoreId,
    acknowledged: PortId,
    senders: Senders,
    stations: Vec<Station>,
    /// Who comes next.
    turn: usize,
    /// Until when a frame is on it.
    busy: Option<Instant>,
    memory: Vec<Box<[u8]>>,
    frames: u64,
    origin: Option<Instant>,
}

impl Segment {
    /// Nothing has been sent.
    pub fn new(near: End, line: SemaphoreId, acknowledged: PortId, senders: Senders) -> Self {
        Self {
            near,
            line,
            acknowledged,
            senders,
            stations: Vec::new(),
            turn: 0,
            busy: None,
            memory: Vec::new(),
            frames: 0,
            origin: None,
        }
    }

    fn begin(&mut self, now: Instant) {
        let Senders { streams, seed, .. } = self.senders;
        self.origin = Some(now);
        self.stations = (0..=streams)
            .map(|station| {
                let mut draws = Draws::new(seed, station);
                let next = match station {
                    0 => now,
                    _ => now + draws.exponential(self.senders.disk),
                };
                Station {
                    draws,
                    next,
                    waiting: VecDeque::new(),
                    sent: 0,
                    unacknowledged: 0,
                }
            })
            .collect();
    }

    /// A packet of this station has been processed.
    fn acknowledge(&mut self, station: u64, now: Instant) {
        let Some(of) = self.stations.get_mut(station as usize) else {
            return;
        };
        of.unacknowledged = of.unacknowledged.saturating_sub(1);
        if of.unacknowledged == 0 && station > 0 {
            of.next = now + of.draws.exponential(self.senders.disk);
        }
    }

    /// Has everybody whose time it is hand over what is to be sent.
    fn produce(&mut self, now: Instant, origin: Instant) {
        for (number, station) in self.stations.iter_mut().enumerate() {
            if station.next > now {
                continue;
            }
            let packets = if number == 0 {
                self.frames += 1;
                let jitter = self.senders.video_jitter.as_nanos();
                let early = station.draws.between(0, 2 * jitter);
                station.next = origin + FRAME_PERIOD * self.frames + Span::from_nanos(early);
                FRAME_PACKETS
            } else {
                station.next = Instant::MAX;
                BLOCK_PACKETS
            };
            for _ in 0..packets {
                station.waiting.push_back(station.sent);
                station.sent += 1;
            }
            station.unacknowledged += packets;
        }
    }

    /// Sends the frame of whoever's turn it is: each station sends one, and lets others go first.
    fn send(&mut self, now: Instant) -> Result<(), &'static str> {
        while let Some(memory) = self.near.sent(now) {
            self.memory.push(memory);
        }
        let count = self.stations.len();
        let turns = (0..count).map(|after| (self.turn + after) % count);
        let mut ready = turns.filter(|station| !self.stations[*station].waiting.is_empty());
        let Some(station) = ready.next() else {
            return Ok(());
        };
        let Some(number) = self.stations[station].waiting.pop_front() else {
            return Ok(());
        };
        self.turn = station + 1;
        let mut memory = match self.memory.pop() {
            Some(memory) => memory,
            None => {
                let more = self.near.allocate(1).ok().and_then(|mut more| more.pop());
                more.ok_or("the segment has no memory")?
            }
        };
        let bytes = memory.bytes_mut();
        bytes[..4].copy_from_slice(&circuit(station as u64).header());
        bytes[4..12].copy_from_slice(&(station as u64).to_be_bytes());
        bytes[12..20].copy_from_slice(&number.to_be_bytes());
        let sent = self.near.send(memory, PACKET_BYTES, now);
        sent.map_err(|_| "the segment takes no frame")?;
        self.busy = Some(now + Framing::Bare.takes(PACKET_BYTES, WIRE_RATE));
        Ok(())
    }
}

impl Body for Segment {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        let Some(origin) = self.origin else {
            self.begin(now);
            return Step::WaitUntil(self.acknowledged, now);
        };
        if let Some(arrival) = context.arrival() {
            self.acknowledge(arrival.payload[0], now);
        }
        if self.busy.is_some_and(|until| until <= now) {
            self.busy = None;
            context.signal(self.line);
        }
        self.produce(now, origin);
        if self.busy.is_none()
            && let Err(why) = self.send(now)
        {
            context.fail(why);
            return Step::Finish;
        }
        let next = self.stations.iter().map(|station| station.next).min();
        let next = next.into_iter().chain(self.busy).min();
        Step::WaitUntil(self.acknowledged, next.unwrap_or(Instant::MAX))
    }
}
