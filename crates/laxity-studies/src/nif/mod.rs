//! The network interface framework's tables (Liao, Tan, Campbell, 1996): TCP's throughput with the protocols as a client and in BSD's way (§4, tables 1 and 2), and how evenly ten frames of
//! video a second are shown beside bulk transfers, by which way packets find their threads (§5, tables 3 and 4).
//!
//! * [`throughput`]: tables 1 and 2; [`ttcp`]: a run.
//! * [`segment`]: who sends video and bulk data of tables 3 and 4; [`trial`]: a run; [`here`]: the same with TCP, also on this machine.
//! * [`intervals`]: how evenly frames were shown; `quoted`: what the paper prints of that.
//! * [`behind`]: what others' packets cost a packet that comes behind them, and a task beside them; [`outbound`]: video that is sent beside bulk data; `waits`: what is shown of both.
//! * [`stacks`]: the kernel's own TCP beside ours, over each driver of this machine.
//! * `wire`: the ends of a wire, in the twin and on this machine.

pub mod behind;
pub mod here;
pub mod intervals;
pub mod outbound;
mod quoted;
pub mod segment;
pub mod stacks;
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
use laxity_lab::bench::{Draft, Holes, Made, Round, Runner, Study, Text};
use laxity_lab::report::{Axis, Chart, Compared, Mark, Origin, Row, Series, Value, nanos};
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Service, Span};

use crate::register::{self, Constant};
use intervals::{Intervals, square};
use quoted::Quoted;
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
/// How long each run lasts: 3,000 frames.
pub const LENGTH: Span = Span::from_secs(300);
/// The most streams.
const STREAMS: u64 = 3;
/// The most of the jitter that the wire may make beside three streams, in percent.
const OF_THE_WIRE: u64 = 10;
/// So many times less it has to be, beside three streams.
const BETTER: u64 = 8;
/// And in each further way in which the video does not wait for all that came before it.
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
    /// Bytes a second.
    Throughput(u64),
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
        let seed = made.request.seed;
        let ways = Way::ALL.into_iter();
        let all = ways.flat_map(|way| (0..=STREAMS).map(move |streams| case(way, streams, seed)));
        let jitter = all.chain([wire(seed)]).map(Run::Jitter);
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
        Twin::new(Profile::IDEAL)
    }

    fn run(&self, case: &Run, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        match case {
            Run::Throughput(case) => {
                ttcp::run(host, case.setup(), case.length).map(Seen::Throughput)
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
        let jitters: Vec<Trial<'_>> = jitters.collect();
        if !rates.is_empty() {
            throughput::judge(&rates, draft);
        }
        if !jitters.is_empty() {
            jitter(&jitters, draft);
        }
        let rates: Vec<_> = made.live.iter().filter_map(rate).collect();
        if !rates.is_empty() {
            let said = made.said(|run| matches!(run, Run::Throughput(_)));
            throughput::judge_here(&rates, &said, draft);
        }
        here::shown::judge(draft, made);
        stacks::judge(draft, made);
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

/// A run of tables 1 and 2, and what was seen in it.
const fn rate(trial: &(Run, Seen)) -> Option<(throughput::Case, u64)> {
    match trial {
        (Run::Throughput(case), Seen::Throughput(rate)) => Some((*case, *rate)),
        _ => None,
    }
}

/// Draws tables 3 and 4.
fn jitter(trials: &[Trial<'_>], draft: &mut Draft<'_>) {
    let quoted = Quoted::all();
    draft.table(
        "jitter",
        "jitter",
        &[],
        trials.iter().map(|trial| row(*trial, &quoted)),
    );
    draft.chart("jitter", chart(trials));
    for row in &quoted {
        compare(draft, row, trials);
    }
    claims(draft, trials);
}

type Trial<'a> = (&'a Case, &'a Outcome);

fn values() -> BTreeMap<&'static str, Value> {
    let mut all = throughput::values();
    let ((packet, pause, jitter), reserved) = here::constants();
    let reserved = reserved.map(|one| (one.service().as_dedicated_span(), one.period()));
    let (service, period) = reserved.unwrap_or_default();
    all.extend([
        ("tcp-packet", packet.as_dedicated_span().into()),
        ("tcp-pause", pause.into()),
        ("tcp-jitter", jitter.into()),
        ("tcp-reserved", service.into()),
        ("tcp-reserved-period", period.into()),
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

/// What was seen in this way beside so many streams.
fn of<'a>(trials: &[Trial<'a>], way: Way, streams: u64) -> Option<&'a Intervals> {
    let mut all = trials.iter();
    let found = all.find(|(case, _)| {
        !case.is_wire && case.setup.way == way && case.setup.senders.streams == streams
    });
    found.map(|(_, seen)| &seen.intervals)
}

fn variance_of(trials: &[Trial<'_>], way: Way, streams: u64) -> Option<u64> {
    of(trials, way, streams)?.variance()
}

fn row((case, seen): Trial<'_>, quoted: &[Quoted]) -> Row {
    let (way, streams) = (case.setup.way, case.setup.senders.streams);
    let name = if case.is_wire { "wire" } else { way.key() };
    let mut row = Origin::Charged.row([TEXT.say(name, &[]).into(), streams.into()]);
    let mut quoted = quoted.iter();
    let paper = quoted.find(|row| !case.is_wire && row.is_of(way, streams));
    let intervals = &seen.intervals;
    let both = |paper: Option<Value>, twin: Option<Value>| {
        [
            paper.and_then(|value| Origin::Quoted.cell(value)),
            twin.and_then(|value| Origin::Simulated.cell(value)),
        ]
    };
    let ms = |ms: u64| Value::from(Span::from_millis(ms));
    row.extend(both(
        paper.map(|row| square(row.variance * 1_000).into()),
        intervals.variance().map(|variance| square(variance).into()),
    ));
    row.extend(both(
        paper.map(|row| ms(row.longest_ms)),
        intervals.longest().map(Value::from),
    ));
    row.extend(both(
        paper.map(|row| ms(row.shortest_ms)),
        intervals.shortest().map(Value::from),
    ));
    row.push(Origin::Simulated.cell(Value::share(seen.busy_ppm)));
    row
}

fn chart(trials: &[Trial<'_>]) -> Chart {
    let series = Way::ALL.map(|way| {
        let points = (0..=STREAMS).filter_map(|streams| {
            let seen = of(trials, way, streams)?;
            let longest = seen.longest()?.saturating_sub(FRAME_PERIOD);
            Some((streams.try_into().ok()?, nanos(longest)))
        });
        Series::new(TEXT.say(way.key(), &[]), Mark::Line, points.collect())
    });
    let axes = (
        Axis::count("bulk streams"),
        Axis::time("longest interval beyond 100 ms"),
    );
    Chart::new(TEXT.say("chart", &[]), axes, series.into())
}

/// What was chosen by a row: the variance beside none and one, and the longest interval beside one.
fn is_chosen(way: &str, streams: u64, what: &str) -> bool {
    way == Way::Late.key() && matches!((streams, what), (0 | 1, "variance") | (1, "longest"))
}

fn compare(draft: &mut Draft<'_>, row: &Quoted, trials: &[Trial<'_>]) {
    let way = Way::ALL.into_iter().find(|way| way.key() == row.way);
    let seen = way.and_then(|way| of(trials, way, row.streams));
    for number in row.numbers() {
        let twin = seen.and_then(number.of);
        let is_chosen = is_chosen(&row.way, row.streams, number.what);
        if let Some(figure) = draft.figure("jitter") {
            figure.compared.push(Compared {
                paper: Origin::Quoted.cell((number.value)(number.paper)),
                twin: twin.and_then(|twin| Origin::Simulated.cell((number.value)(twin))),
                verdict: number.verdict(twin, is_chosen),
                ..Compared::new(row.name(&number))
            });
        }
    }
}

fn claims(draft: &mut Draft<'_>, trials: &[Trial<'_>]) {
    let all = |way: Way| {
        let all = (0..=STREAMS).map(|streams| variance_of(trials, way, streams));
        all.collect::<Option<Vec<u64>>>().unwrap_or_default()
    };
    let [late, bsd, alike, early] = [Way::Late, Way::Bsd, Way::EarlyAlike, Way::Early].map(all);
    let further = [Way::BsdFirst, Way::Slots, Way::Due].map(all);
    let words = |all: &[u64]| {
        let words: Vec<String> = all.iter().map(|one| square(*one)).collect();
        words.join(", ")
    };
    let wire = trials.iter().find(|(case, _)| case.is_wire);
    let wire = wire.and_then(|(_, seen)| seen.intervals.variance());
    let last = |all: &[u64]| all.last().copied();
    let times = last(&late).zip(last(&early));
    let times = times.and_then(|(late, early)| (late * 10).checked_div(early));
    let or = |seen: Option<String>| crate::or(seen, "nothing was shown");
    let least = further.each_ref().map(|all| last(all));
    let holes: Holes<'_> = &[
        ("late", &words(&late)),
        ("bsd", &words(&bsd)),
        ("alike", &words(&alike)),
        ("early", &words(&early)),
        ("wire", &or(wire.map(square))),
        ("further", &least.map(|one| or(one.map(square))).join(", ")),
        ("less", &FURTHER),
        ("of-the-wire", &OF_THE_WIRE),
        ("better", &BETTER),
        (
            "times",
            &or(times.map(|times| format!("{}.{}", times / 10, times % 10))),
        ),
    ];
    let grows = late.len() > 1 && late.windows(2).all(|pair| pair[0] < pair[1]);
    draft.claim("grows", grows, holes);
    let is_less = wire.zip(last(&late));
    let is_less = is_less.is_some_and(|(wire, late)| wire * 100 <= late * OF_THE_WIRE);
    draft.claim("wire-is-little", is_less, holes);
    let pairs = || late.iter().zip(&early).skip(1);
    draft.claim(
        "early-is-less",
        pairs().len() > 0 && pairs().all(|(late, early)| early < late),
        holes,
    );
    draft.claim(
        "much-less",
        times.is_some_and(|times| times >= BETTER * 10),
        holes,
    );
    let is_less = |one: &Option<u64>| {
        let both = last(&late).zip(*one);
        both.is_some_and(|(late, one)| one * FURTHER <= late)
    };
    draft.claim("further-is-less", least.iter().all(is_less), holes);
    draft.say("found", holes);
}
