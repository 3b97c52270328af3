//! A reservation of a tenth of a millisecond while the modem is on hook, changed when it dials: what Jones and Saroiu §5.4 of
//! "Predictability Requirements of a Soft Modem" would have done, had their reservations been finer than a millisecond.

pub mod call;

use std::sync::LazyLock;

use laxity_linux::{LiveConfig, LiveHost, WitnessConfig};
use laxity_model::{Host, HostError, ProcessorId, Span};
use laxity_sim::{Profile, Twin};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::devices::cells::{count, share, span, text};
use call::{Seen, Setup, Way};
use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::{Cell, Check, Figure, Origin, Report, Table};
use laxity_lab::runner::{Progress, RunError};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/on-hook.toml")));

/// The experiment.
pub struct OnHook;

impl Experiment for OnHook {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// Calls of each kind in the twin.
const TWIN_CALLS: u64 = 8;
/// Calls of each kind on this machine.
const LIVE_CALLS: u64 = 2;
/// An on-hook call should be done before the next interrupt.
const ON_HOOK_PERIOD: Span = Span::from_micros(2_500);

/// The calls of one kind.
struct Row {
    way: Way,
    rogue: bool,
    seen: Vec<Seen>,
}

impl Row {
    fn name(&self) -> String {
        let beside = if self.rogue {
            "two spinners and a rogue"
        } else {
            "two spinners"
        };
        format!("{}, beside {beside}", self.way.name())
    }

    fn sum(&self, of: impl Fn(&Seen) -> u64) -> u64 {
        self.seen.iter().map(of).sum()
    }

    fn longest_on_hook(&self) -> Span {
        let longest = self.seen.iter().map(|seen| Seen::longest(&seen.on_hook));
        longest.max().unwrap_or(Span::ZERO)
    }

    fn is_whole(&self) -> bool {
        self.seen.iter().all(Seen::is_whole)
    }
}

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let in_twin = in_twin(request, progress)?;
    let live = if request.live {
        Some(on_this_machine(request, progress)?)
    } else {
        None
    };
    progress.end();
    let host = live.as_ref().map(|(host, _)| host.clone());
    let live = live.map(|(_, rows)| rows);
    Ok(report(request, &in_twin, live.as_deref(), host))
}

fn setup(way: Way, rogue: bool, seed: u64, on_hook: Span) -> Setup {
    Setup {
        way,
        confined: false,
        rogue,
        recognition_within: None,
        on_hook,
        seed,
        length: Span::from_secs(30),
    }
}

fn in_twin(request: &Request, progress: &mut dyn Progress) -> Result<Vec<Row>, RunError> {
    let calls = u64::from(request.repeats.unwrap_or(TWIN_CALLS as u32)).clamp(1, 1_000);
    let kinds: Vec<(bool, Way)> = [false, true]
        .into_iter()
        .flat_map(|rogue| Way::ALL.map(|way| (rogue, way)))
        .collect();
    let setups: Vec<Setup> = kinds
        .iter()
        .flat_map(|(rogue, way)| {
            let seeds = (0..calls).map(|n| request.seed.wrapping_add(n));
            seeds.map(|seed| setup(*way, *rogue, seed, Span::from_secs(2)))
        })
        .collect();
    progress.begin(kinds.len());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.threads)
        .build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let seen: Vec<Result<Seen, HostError>> = pool.install(|| {
        let one = |setup: &Setup| call::run(&mut Twin::new(Profile::WIN2000_PII450), setup);
        setups.par_iter().map(one).collect()
    });
    let seen: Result<Vec<Seen>, HostError> = seen.into_iter().collect();
    let mut seen = seen.map_err(|error| failed("the twin", error))?.into_iter();
    let rows = kinds.into_iter().map(|(rogue, way)| {
        progress.run(way.name(), 0);
        Row {
            way,
            rogue,
            seen: seen.by_ref().take(calls as usize).collect(),
        }
    });
    Ok(rows.collect())
}

fn on_this_machine(
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<(String, Vec<Row>), RunError> {
    let config = LiveConfig::detect(1).map_err(|error| failed("this machine", error))?;
    let mut host = LiveHost::new(LiveConfig {
        witness: Some(WitnessConfig::new(ProcessorId(0))),
        ..config
    });
    let mut rows = Vec::new();
    for rogue in [false, true] {
        for way in Way::ALL {
            let mut seen = Vec::new();
            for n in 0..LIVE_CALLS {
                progress.run(way.name(), n as u32);
                let seed = request.seed.wrapping_add(n);
                let setup = setup(way, rogue, seed, Span::from_secs(2));
                seen.push(call::run(&mut host, &setup).map_err(|e| failed(way.name(), e))?);
            }
            rows.push(Row { way, rogue, seen });
        }
    }
    Ok((host.describe(), rows))
}

pub(super) fn failed(name: &str, error: HostError) -> RunError {
    super::devices::twin::failed(name, error)
}

fn report(request: &Request, twin: &[Row], live: Option<&[Row]>, host: Option<String>) -> Report {
    let mut tables = vec![table("In the twin", twin, Origin::Simulated)];
    tables.extend(live.map(|rows| table("On this machine", rows, Origin::Measured)));
    let mut circumstances = vec![
        ("twin", "win2000-pii450".to_owned()),
        ("seed", request.seed.to_string()),
        (
            "beside the modem",
            "two spinners of priority 8; the rogue has priority 26 and runs for 15 ms twenty times a second".to_owned(),
        ),
        (
            "charged",
            "an on-hook call 60 µs, handler and deferred call 5.4 µs each".to_owned(),
        ),
    ];
    circumstances.extend(host.map(|host| ("measured on", host)));
    let mut checks = checks_in_twin(twin);
    checks.extend(live.map(check_live));
    Report {
        experiment: "on-hook",
        title: "On hook: a reservation of a tenth of a millisecond, and its change".into(),
        summary: summary(twin, live),
        circumstances,
        figures: vec![Figure {
            key: "calls".into(),
            title: "Calls from on hook to the end of a transfer".into(),
            about: "Each row: whole calls (2 s on hook, dialing, training, a file of 4,000 octets), each with another line and phase of the card's clock.".into(),
            charts: Vec::new(),
            compared: Vec::new(),
            tables,
            remarks: vec![
                "2 ms in 8 are too coarse for on hook as well: its gaps of up to 6 ms are longer than two interrupts are apart. The card's buffer covers that; nothing is lost, but the calls come in bunches.".into(),
            ],
        }],
        checks,
    }
}

/// The question, and what came of it.
fn summary(twin: &[Row], live: Option<&[Row]>) -> Vec<String> {
    let mut all = vec![
        "On hook the modem needs some 60 µs every 2.5 ms. Without a reservation whoever outranks its thread delays it; with the 2 ms in 8 that it needs later a quarter of the processor is set aside for a fiftieth of its work.".into(),
        "0.1 ms in every 2.5 ms sets 4 % aside. When the modem dials it asks for 2 ms in 8 instead: is the change granted, and does it lose samples on the way?".into(),
    ];
    for (place, rows) in [("In the twin", Some(twin)), ("On this machine", live)] {
        let Some(rows) = rows else { continue };
        let growing = || rows.iter().filter(|row| row.way == Way::Growing);
        let sum = |of: fn(&Seen) -> u64| growing().map(|row| row.sum(of)).sum::<u64>();
        let longest = growing().map(Row::longest_on_hook).max();
        all.push(format!(
            "{place}, of {} calls: {} changes granted, {} refused; {} samples lost or underrun; on hook no call was done later than {} after its interrupt.",
            sum(|_| 1),
            sum(|seen| seen.answers[0]),
            sum(|seen| seen.answers[1]),
            sum(|seen| seen.damage[0] + seen.damage[1]),
            longest.unwrap_or(Span::ZERO),
        ));
    }
    all
}

fn table(caption: &str, rows: &[Row], origin: Origin) -> Table {
    let columns = [
        "what holds it up",
        "calls made",
        "reserved on hook",
        "longest response on hook",
        "longest response after",
        "samples lost",
        "samples underrun",
        "blocks abandoned",
        "changes granted",
        "refused",
        "files arrived",
    ];
    Table {
        caption: caption.into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.iter().map(|row| cells(row, origin)).collect(),
    }
}

fn cells(row: &Row, origin: Origin) -> Vec<Option<Cell>> {
    let reserved = row
        .way
        .on_hook()
        .map_or(0, laxity_model::Reservation::share_ppm);
    let after = row.seen.iter().map(|seen| Seen::longest(&seen.off_hook));
    vec![
        text(row.name(), origin),
        count(row.seen.len() as u64, origin),
        share(reserved, Origin::Charged),
        span(row.longest_on_hook(), origin),
        span(after.max().unwrap_or(Span::ZERO), origin),
        count(row.sum(|seen| seen.damage[0]), origin),
        count(row.sum(|seen| seen.damage[1]), origin),
        count(row.sum(|seen| seen.damage[2]), origin),
        count(row.sum(|seen| seen.answers[0]), origin),
        count(row.sum(|seen| seen.answers[1]), origin),
        count(row.sum(|seen| u64::from(seen.file_arrived)), origin),
    ]
}

fn checks_in_twin(rows: &[Row]) -> Vec<Check> {
    let growing = rows.iter().filter(|row| row.way == Way::Growing);
    let (mut whole, mut asked, mut longest) = (true, true, Span::ZERO);
    let (mut calls, mut on_hook) = (0, 0);
    for row in growing {
        let all = row.seen.len() as u64;
        calls += all;
        on_hook += row.sum(|seen| seen.on_hook.len() as u64);
        whole &= row.is_whole() && row.sum(|seen| u64::from(seen.file_arrived)) == all;
        asked &= row.sum(|s| s.answers[0]) == all && row.sum(|s| s.answers[1]) == 0;
        longest = longest.max(row.longest_on_hook());
    }
    let hindered = rows.iter().find(|row| row.way == Way::Thread && row.rogue);
    let hindered = hindered.map_or(Span::ZERO, Row::longest_on_hook);
    vec![
        Check {
            claim: "in the twin, a call that changes from 0.1/2.5 to 2/8 when it dials loses no sample, whoever is beside it".into(),
            held: whole && calls > 0,
            seen: format!("{calls} calls, {}", if whole { "all whole" } else { "not all whole" }),
        },
        Check {
            claim: "in the twin, each change is granted".into(),
            held: asked && calls > 0,
            seen: format!("{calls} calls"),
        },
        Check {
            claim: "in the twin, 0.1 ms in 2.5 ms serve each on-hook interrupt within two of its periods beside a rogue".into(),
            held: longest <= ON_HOOK_PERIOD * 2 && on_hook > 0,
            seen: format!("at most {longest}, of {on_hook}"),
        },
        Check {
            claim: "in the twin, a thread of priority 24 does not, where a thread of priority 26 runs for 15 ms".into(),
            held: hindered > ON_HOOK_PERIOD * 2,
            seen: format!("up to {hindered}"),
        },
    ]
}

fn check_live(rows: &[Row]) -> Check {
    let growing = rows.iter().filter(|row| row.way == Way::Growing);
    let seen: Vec<&Seen> = growing.flat_map(|row| &row.seen).collect();
    let quiet = seen.iter().filter(|seen| seen.disturbances == 0).count();
    let broken = seen.iter().filter(|seen| !seen.is_whole());
    let broken_quiet = broken.clone().filter(|seen| seen.disturbances == 0).count();
    let broken = broken.count();
    let changed = seen.iter().filter(|seen| seen.answers[0] == 1).count();
    // A call that lost something while the machine stood still says nothing; one that lost nothing all the same does.
    let telling = seen.len() - (broken - broken_quiet);
    Check {
        claim: "on this machine, each change from 0.1/2.5 to 2/8 is granted, and no sample is lost unless the machine stood still".into(),
        held: broken_quiet == 0 && changed == seen.len() && telling > 0,
        seen: format!(
            "{} calls, {changed} changes, {quiet} never disturbed; not whole: {broken}",
            seen.len(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lost: u64, disturbances: usize) -> Seen {
        Seen {
            on_hook: Vec::new(),
            off_hook: Vec::new(),
            damage: [lost, 0, 0],
            answers: [1, 0],
            file_arrived: true,
            disturbances,
        }
    }

    fn row(seen: Vec<Seen>) -> Row {
        Row {
            way: Way::Growing,
            rogue: false,
            seen,
        }
    }

    #[test]
    fn a_claim_about_nothing_does_not_hold() {
        assert!(checks_in_twin(&[]).iter().all(|check| !check.held));
        assert!(!check_live(&[]).held);
        assert!(!check_live(&[row(vec![seen(5, 1)])]).held);
    }

    #[test]
    fn what_the_machine_lost_itself_is_no_loss_of_the_change() {
        assert!(check_live(&[row(vec![seen(5, 1), seen(0, 0)])]).held);
        assert!(check_live(&[row(vec![seen(0, 3)])]).held);
        assert!(!check_live(&[row(vec![seen(0, 0), seen(5, 0)])]).held);
    }
}
