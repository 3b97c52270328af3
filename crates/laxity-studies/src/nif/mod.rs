//! The network interface framework's tables (Liao, Tan, Campbell, 1996): TCP's throughput with the protocols as a client and in BSD's way (§4, tables 1 and 2), and how evenly ten frames of
//! video a second are shown beside bulk transfers, by which way packets find their threads (§5, tables 3 and 4).
//!
//! * [`throughput`]: tables 1 and 2; [`ttcp`]: a run.
//! * [`segment`]: who sends video and bulk data of tables 3 and 4; [`trial`]: a run; [`here`]: the same with TCP, also on this machine.
//! * [`intervals`]: how evenly frames were shown; `quoted`: what the paper prints of that; `jitter`: what is shown of tables 3 and 4 in the twin.
//! * [`behind`]: what others' packets cost a packet that comes behind them, and a task beside them; [`outbound`]: video that is sent beside bulk data; `waits`: what is shown of both.
//! * [`stacks`]: the kernel's own TCP beside ours, over each driver of this machine.
//! * `others`: what others had of this machine meanwhile.
//! * `wire`: the ends of a wire, in the twin and on this machine.

pub mod behind;
pub mod here;
pub mod intervals;
mod jitter;
mod others;
pub mod outbound;
mod quoted;
pub mod segment;
pub mod stacks;
#[cfg(test)]
#[cfg(test)]
mod tests;
pub mod throughput;
pub mod trial;
pub mod ttcp;
mod waits;
mod wire;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use laxity::Twin;
use laxity::study::Profile;
use laxity_lab::bench::{Draft, Made, Request, Round, Runner, Said, Study, Text};
use laxity_lab::report::Value;
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Service, Span};

use crate::register::{self, Constant};
use segment::{BLOCK_PACKETS, FRAME_PACKETS, FRAME_PERIOD, PACKET_BYTES, Senders, WIRE_RATE};
use trial::{Outcome, Setup, Way};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../../data/nif.toml")));

/// What a packet takes of the processor: chosen by the longest interval beside one stream.
pub const PACKET: Service = Service::from_micros(1_950);
/// What a sender's disk takes: chosen by the variance beside one stream.
pub const DISK: Span = Span::from_millis(250);
/// How far a frame leaves from its time at the most: chosen by the variance beside none.
pub const VIDEO_JITTER: Span = Span::from_micros(1_220);
/// What an interrupt takes, and each packet of it.
pub const INTERRUPT: (Service, Service) = (Service::from_micros(50), Service::from_micros(50));
/// What the video's thread has of each such time, where it has slots: a packet in each, which is half of the processor.
pub const RESERVED: (Service, Span) = (Service::from_millis(2), Span::from_millis(4));
/// How long a thread of the twin's has the processor before others of its priority get their turn: longer than any run, so that they are first come, first served, as the paper's packets are (§5).
pub const QUANTUM: Span = Span::from_secs(3_600);
/// How long each run lasts: 3,000 frames.
pub const LENGTH: Span = Span::from_secs(300);
/// The most streams.
const STREAMS: u64 = 3;
/// So often what is random is run in the twin, each time from another seed: a number hangs on no single draw.
const RUNS: u32 = 9;
/// The most of the jitter that the wire may make beside three streams, in percent.
const OF_THE_WIRE: u64 = 10;
/// So many times less it has to be, beside three streams.
const BETTER: u64 = 8;
/// And, with TCP, in each further way in which the video does not wait for all that came before it.
const FURTHER: u64 = 3;

/// The experiment.
pub struct Nif;

/// A run of any table.
#[derive(Clone, Debug)]
pub enum Run {
    /// Of tables 1 and 2.
    Throughput(throughput::Case),
    /// Of tables 3 and 4.
    Jitter(Case),
    /// Of tables 3 and 4 once more, which this machine can make too.
    Here(here::Case),
    /// Of what others' packets cost.
    Behind(behind::Case),
    /// Of video that is sent.
    Outbound(outbound::Case),
    /// Of the kernel's TCP beside ours, on this machine.
    Stacks(stacks::Case),
}

/// What was seen in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Bytes a second; and what others had of this machine's processors meanwhile, in parts per million, if it was one of its runs and that is known.
    Throughput(u64, Option<u64>),
    /// Frames of video.
    Jitter(Outcome),
    /// The same where TCP is spoken.
    Here(here::Seen),
    /// Waits.
    Behind(behind::Seen),
    /// The same.
    Outbound(outbound::Seen),
    /// How fast each was.
    Stacks(stacks::Seen),
}

/// A run of tables 3 and 4.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is tried.
    pub setup: Setup,
    /// Whether the processor takes nothing, so that only the wire is left.
    pub is_wire: bool,
}

fn case(way: Way, streams: u64, seed: u64) -> Case {
    let senders = Senders {
        streams,
        video_jitter: VIDEO_JITTER,
        disk: DISK,
        seed,
    };
    let setup = Setup {
        way,
        senders,
        packet: PACKET,
        interrupt: INTERRUPT,
        reserved: RESERVED,
    };
    Case {
        setup,
        is_wire: false,
    }
}

/// Beside three streams, with a processor that takes nothing.
fn wire(seed: u64) -> Case {
    let mut case = case(Way::Late, STREAMS, seed);
    case.is_wire = true;
    case.setup.packet = Service::ZERO;
    case.setup.interrupt = (Service::ZERO, Service::ZERO);
    case
}

/// Tables 3 and 4 from this seed on.
fn jitter_cases(seed: u64) -> impl Iterator<Item = Case> {
    let ways = Way::ALL.into_iter();
    let all = ways.flat_map(move |way| (0..=STREAMS).map(move |streams| case(way, streams, seed)));
    all.chain([wire(seed)])
}

/// How often what is random is run in the twin.
fn runs(request: &Request) -> u32 {
    request.repeats.unwrap_or(RUNS)
}

impl Study for Nif {
    type Case = Run;
    type Seen = Seen;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Run>, RunError> {
        let here = here::cases(made.request, round.live).map(Run::Here);
        let here = here.filter(|_| made.request.wants("here"));
        let behind = behind::cases(made.request, round.live).map(Run::Behind);
        let behind = behind.filter(|_| made.request.wants("behind"));
        let outbound = outbound::cases(made.request, round.live).map(Run::Outbound);
        let outbound = outbound.filter(|_| made.request.wants("outbound"));
        let here = here.chain(behind).chain(outbound);
        if round.live {
            let throughput = throughput::Case::here(made.request).map(Run::Throughput);
            let throughput = throughput.filter(|_| made.request.wants("throughput"));
            let stacks = stacks::cases(made.request).map(Run::Stacks);
            let stacks = stacks.filter(|_| made.request.wants("stacks"));
            return Ok(throughput.chain(stacks).chain(here).collect());
        }
        let seeds = 0..runs(made.request);
        let seeds = seeds.map(|run| made.request.seed.wrapping_add(run.into()));
        let jitter = seeds.flat_map(jitter_cases).map(Run::Jitter);
        Ok(throughput::Case::all()
            .map(Run::Throughput)
            .filter(|_| made.request.wants("throughput"))
            .chain(jitter.filter(|_| made.request.wants("jitter")))
            .chain(here)
            .collect())
    }

    fn name(&self, case: &Run) -> String {
        match case {
            Run::Throughput(case) => case.name(),
            Run::Jitter(case) => {
                let streams = case.setup.senders.streams;
                format!("{}, {streams} streams", TEXT.say(case.setup.way.key(), &[]))
            }
            Run::Here(case) => case.name(),
            Run::Stacks(_) => TEXT.say("stacks", &[]),
            Run::Behind(case) => {
                let way = if case.is_bsd {
                    "bsd-behind"
                } else {
                    "own-behind"
                };
                format!("behind {} packets, {}", case.queued, TEXT.say(way, &[]))
            }
            Run::Outbound(case) => {
                let way = if case.by_priority {
                    "by-priority"
                } else {
                    "in-turn"
                };
                format!("outbound video, {}", TEXT.say(way, &[]))
            }
        }
    }

    fn twin(&self, _: &Run) -> Twin {
        let mut machine = Profile::IDEAL;
        machine.bands.quantum = QUANTUM;
        Twin::new(machine)
    }

    fn run(&self, case: &Run, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        match case {
            Run::Throughput(case) => {
                let before = others::Had::now().filter(|_| host.is_live());
                let rate = ttcp::run(host, case.setup(), case.length)?;
                let others = before.and_then(|before| others::Had::now()?.others_since(before));
                Ok(Seen::Throughput(rate, others))
            }
            Run::Jitter(case) => trial::run(host, case.setup, LENGTH).map(Seen::Jitter),
            Run::Here(case) => here::run(host, case).map(Seen::Here),
            Run::Stacks(case) => stacks::run(host, *case).map(Seen::Stacks),
            Run::Behind(case) => behind::run(host, *case).map(Seen::Behind),
            Run::Outbound(case) => outbound::run(host, *case).map(Seen::Outbound),
        }
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let rates: Vec<_> = made.twin.iter().filter_map(rate).collect();
        let jitters = made.twin.iter().filter_map(|trial| match trial {
            (Run::Jitter(case), Seen::Jitter(seen)) => Some((case, seen)),
            _ => None,
        });
        let jitters: Vec<jitter::Trial<'_>> = jitters.collect();
        if !rates.is_empty() {
            throughput::judge(&rates, draft);
        }
        if !jitters.is_empty() {
            jitter::judge(&jitters, draft);
        }
        let rates: Vec<_> = made.live.iter().filter_map(rate).collect();
        if !rates.is_empty() {
            throughput::judge_here(&rates, |which| said_of(made, which), draft);
        }
        here::shown::judge(draft, made);
        stacks::shown::judge(draft, made);
        waits::judge(draft, made);
        let constants: Vec<Constant> = TEXT.quoted("constants");
        draft.table(
            "constants",
            "constants",
            &[],
            register::rows(&constants, values())?,
        );
        Ok(())
    }
}

/// What the live runs of a row of tables 1 and 2 say of themselves, or those of all rows.
fn said_of(made: &Made<'_, Nif>, row: Option<throughput::Way>) -> Said {
    let is_read = |case: &throughput::Case| row.is_none_or(|row| row == case.way());
    let said = made.said(|run| matches!(run, Run::Throughput(case) if is_read(case)));
    let others = made.live.iter().filter_map(|trial| match trial {
        (Run::Throughput(case), Seen::Throughput(_, others)) => is_read(case).then_some(*others),
        _ => None,
    });
    said.but(throughput::doubt(others))
}

/// A run of tables 1 and 2, and what was seen in it.
const fn rate(trial: &(Run, Seen)) -> Option<(throughput::Case, u64)> {
    match trial {
        (Run::Throughput(case), Seen::Throughput(rate, _)) => Some((*case, *rate)),
        _ => None,
    }
}

fn values() -> BTreeMap<&'static str, Value> {
    let mut all = throughput::values();
    all.extend(here::values());
    all.extend([
        ("pool", (trial::POOL as u64).into()),
        ("buffers", u64::from(trial::BUFFERS).into()),
        ("ordinary", u64::from(trial::ORDINARY.level()).into()),
        ("first", u64::from(trial::FIRST.level()).into()),
        ("runs", u64::from(RUNS).into()),
        ("quantum", QUANTUM.into()),
        ("square", "ms²".into()),
        ("packet", PACKET.as_dedicated_span().into()),
        ("disk", DISK.into()),
        ("video-jitter", VIDEO_JITTER.into()),
        ("interrupt", INTERRUPT.0.as_dedicated_span().into()),
        ("interrupt-packet", INTERRUPT.1.as_dedicated_span().into()),
        ("reserved", RESERVED.0.as_dedicated_span().into()),
        ("reserved-period", RESERVED.1.into()),
        ("frame-period", FRAME_PERIOD.into()),
        ("frame-packets", FRAME_PACKETS.into()),
        ("block-packets", BLOCK_PACKETS.into()),
        ("packet-bytes", (PACKET_BYTES as u64).into()),
        ("wire-rate", Value::BitRate(WIRE_RATE)),
        ("length", LENGTH.into()),
        ("burst", behind::BURST.into()),
        ("burst-packet", behind::PACKET.as_dedicated_span().into()),
        ("task", behind::TASK.0.as_dedicated_span().into()),
        ("task-period", behind::TASK.1.into()),
        (
            "burst-interrupt",
            behind::INTERRUPT.0.as_dedicated_span().into(),
        ),
        (
            "burst-interrupt-packet",
            behind::INTERRUPT.1.as_dedicated_span().into(),
        ),
        ("outbound-period", outbound::PERIOD.into()),
        ("backlog", u64::from(outbound::BACKLOG).into()),
        ("reach", (outbound::REACH as u64).into()),
    ]);
    all
}
