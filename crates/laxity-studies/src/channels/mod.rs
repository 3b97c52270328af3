//! Real-time channels at their sender: Mehra, Indiresan, Shin, "Structuring Communication Software for Quality-of-Service Guarantees" (RTSS 1996), §5, figures 5, 6 and 7.
//!
//! * [`workload`]: who sends; [`machine`]: the paper's host and its null device; [`sender`]: a run; `host`: what runs there; [`tally`]: what is counted of it.
//! * `figures`: what is claimed of each figure; `shown`: what all show alike; `constants`: what was put in or chosen.
//! * [`flagship`]: what laxity's own and others do with a control loop and a camera beside best effort, on this machine.

mod constants;
mod figures;
pub mod flagship;
mod host;
pub mod machine;
pub mod sender;
mod shown;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod workload;

use std::sync::LazyLock;

use laxity::{LiveConfig, Recording, Twin};
use laxity_lab::bench::{Draft, Made, Request, Round, Runner, Study, Text};
use laxity_lab::runner::RunError;
use laxity_model::HostError;

use sender::{Setup, Way};
use tally::{Counted, Tally};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/channels.toml")));

/// What best effort offers in figures 5 and 7, in KB/s.
pub const LOADS: [u64; 11] = [
    250, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_500, 6_000, 9_000,
];
/// What it offers in figure 6 (§5.2).
pub const BESIDE: u64 = 1_900;
/// What channel 0 offers of its rate in figure 6, in percent.
pub const VIOLATIONS: [u64; 7] = [100, 125, 150, 175, 200, 250, 300];
/// Messages of best effort that may wait in figure 7a.
pub const ROOMS: [u32; 2] = [8, 32];
/// What channel 0 offers of its rate where nothing is shaped, in percent.
pub const UNSHAPED: u64 = 300;

/// The experiment.
pub struct Channels;

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// Of a figure, in the twin.
    Figure(Case),
    /// Of the flagship, on this machine.
    Flagship(flagship::Case),
}

/// What was seen in it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// Packets.
    Figure(Box<Tally>),
    /// Messages.
    Flagship(flagship::Seen),
}

/// A run of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Its figure.
    pub figure: &'static str,
    /// What is run.
    pub setup: Setup,
}

/// All runs of the figures that are wanted.
fn cases(request: &Request) -> Result<Vec<Case>, RunError> {
    let thousands = request.option(&TEXT, "thousands")?;
    let counted = Counted {
        packets: thousands * 1_000,
        cut: thousands * 1_000 / 16,
    };
    let case = |figure, way, best_effort, violation| Case {
        figure,
        setup: Setup {
            way,
            best_effort,
            violation,
            counted,
            seed: request.seed,
        },
    };
    let mut all: Vec<Case> = Vec::new();
    all.extend(LOADS.map(|load| case("figure-5", Way::Proposed, load, 100)));
    all.extend(VIOLATIONS.map(|violation| case("figure-6", Way::Proposed, BESIDE, violation)));
    for load in LOADS {
        all.extend(ROOMS.map(|room| case("figure-7a", Way::Unpreemptible(room), load, 100)));
        let ahead = [false, true].map(|drains| Way::Ahead { drains });
        all.extend(ahead.map(|way| case("figure-7b", way, load, 100)));
    }
    let ways = [Way::Proposed, Way::Unshaped];
    all.extend(ways.map(|way| case("unshaped", way, BESIDE, UNSHAPED)));
    all.retain(|case| request.wants(case.figure));
    Ok(all)
}

impl Study for Channels {
    type Case = Run;
    type Seen = Seen;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Run>, RunError> {
        let all = match round.live {
            true if !made.request.wants(flagship::shown::FIGURE) => Vec::new(),
            true => flagship::cases(made.request)?
                .into_iter()
                .map(Run::Flagship)
                .collect(),
            false => cases(made.request)?.into_iter().map(Run::Figure).collect(),
        };
        Ok(all)
    }

    fn name(&self, case: &Run) -> String {
        let case = match case {
            Run::Flagship(case) => return flagship::shown::name(case),
            Run::Figure(case) => case,
        };
        let Setup {
            best_effort,
            violation,
            ..
        } = case.setup;
        format!(
            "{}, best effort {best_effort} KB/s, channel 0 at {violation} %",
            case.figure
        )
    }

    fn twin(&self, _: &Run) -> Twin {
        Twin::new(machine::XKERNEL_68040).recording(Recording::NONE)
    }

    /// The near host's and the far one's, where there are two.
    fn processors(&self) -> u16 {
        LiveConfig::detect(2).map_or(1, |_| 2)
    }

    fn run(&self, case: &Run, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        match case {
            Run::Figure(case) => sender::run(host, case.setup)
                .map(Box::new)
                .map(Seen::Figure),
            Run::Flagship(case) => flagship::run(host, *case).map(Seen::Flagship),
        }
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let figures = made.twin.iter().filter_map(|trial| match trial {
            (Run::Figure(case), Seen::Figure(tally)) => Some((*case, Tally::clone(tally))),
            _ => None,
        });
        let flagship = made.live.iter().filter_map(|trial| match trial {
            (Run::Flagship(case), Seen::Flagship(seen)) => Some((*case, seen.clone())),
            _ => None,
        });
        let flagship: Vec<_> = flagship.collect();
        let said = |is_read: &dyn Fn(&flagship::Case) -> bool| {
            made.said(|run| matches!(run, Run::Flagship(case) if is_read(case)))
        };
        flagship::shown::judge(draft, &flagship, &said);
        let figure = flagship::shown::FIGURE;
        // Beside others its absence from the twin is nothing to tell.
        if !made.request.live && made.request.figures.iter().any(|asked| asked == figure) {
            draft.say("flagship-not-here", &[]);
        }
        figures::judge(draft, &figures.collect::<Vec<_>>())
    }
}
