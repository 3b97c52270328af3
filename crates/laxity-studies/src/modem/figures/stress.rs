//! The stress run of §6.1: a spinner, and a search of every file of the disk at priority 10, beside the modem.

use laxity_lab::bench::Holes;
use laxity_lab::report::{Compared, Figure, Origin, Row, Verdict};
use serde::Deserialize;

use super::super::verdicts::resting;
use super::quantity::judge;
use super::reading::{Measure, Runs, said};
use super::readings::Readings;
use super::runs::SCENES;
use super::{Plan, TEXT};

/// A difference of so many samples pending is none: what a block of 512 holds is not at stake.
const SAME_SAMPLES: u64 = 16;

/// A placement that is put under stress.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    name: String,
    /// Its run beside the spinner alone, and under stress.
    pub(super) runs: [String; 2],
    /// What is put in and leaves the twin no other outcome.
    rests_on: Option<String>,
}

/// What is compared of a run: the last three columns of the table.
struct Summary {
    pending: u64,
    /// Samples lost or sent as garbage while nothing disturbed.
    damage: u64,
    /// The others.
    disturbed: u64,
}

impl Summary {
    /// `None` if the modem was never called, or not in training nor after.
    fn of(run: &Readings, columns: &[Measure]) -> Option<Self> {
        let column = |place: usize| columns[place].of(&[run]);
        Some(Self {
            pending: column(3)?,
            damage: column(4)?,
            disturbed: column(5)?,
        })
    }

    fn lost(&self) -> String {
        match self.disturbed {
            0 => self.damage.to_string(),
            more => format!(
                "{} (and {more} while this machine stood still)",
                self.damage
            ),
        }
    }
}

/// The stress run.
pub(super) fn draw(plan: &Plan, [twin, live]: [&Runs<'_>; 2], figure: &mut Figure) {
    let rows = plan.stress.iter();
    figure.compared = rows
        .map(|pair| compared(plan, pair, [twin, live]))
        .collect();
    let hosts = [
        ("twin", twin, Origin::Simulated),
        ("live", live, Origin::Measured),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for name in plan.stress.iter().flat_map(|pair| &pair.runs) {
        let mut scenes = SCENES.variants.iter();
        let scene = scenes.find(|scene| scene.name == *name);
        for (host, runs, origin) in hosts {
            if let (Some(scene), Some(run)) = (scene, first(runs, name)) {
                let mut row = origin.row([format!("{host}: {}", scene.about).into()]);
                let columns = plan.stress_columns.iter();
                row.extend(columns.map(|column| origin.cell(column.value(column.of(&[run])?))));
                rows.push(row);
            }
        }
    }
    figure.tables.push(TEXT.table("stress", &[], rows));
}

fn first<'a>(runs: &Runs<'a>, name: &str) -> Option<&'a Readings> {
    runs.get(name)?.first().copied()
}

fn compared(plan: &Plan, pair: &Pair, [twin, here]: [&Runs<'_>; 2]) -> Compared {
    let both = |runs: &Runs<'_>| {
        let [alone, stressed] = pair.runs.each_ref().map(|name| first(runs, name));
        alone.zip(stressed).map(|(alone, stressed)| {
            let [alone, stressed] =
                [alone, stressed].map(|run| Summary::of(run, &plan.stress_columns));
            Some([alone?, stressed?])
        })
    };
    let told = |[alone, stressed]: &[Summary; 2]| {
        let holes: Holes<'_> = &[
            ("pending", &stressed.pending),
            ("lost", &stressed.lost()),
            ("alone-pending", &alone.pending),
            ("alone-lost", &alone.lost()),
        ];
        TEXT.say("stress", holes)
    };
    let (seen, live) = (both(twin), both(here));
    let verdict = |seen: &Option<[Summary; 2]>, origin| {
        let Some([alone, stressed]) = seen else {
            return Verdict::Disagrees("no call to judge".into());
        };
        let is_same = stressed.pending.abs_diff(alone.pending) <= SAME_SAMPLES;
        let more = stressed.pending.saturating_sub(alone.pending);
        judge(
            stressed.damage == 0 && is_same,
            "the same to within 16 samples (our criterion)",
            &TEXT.say(
                "stress-more",
                &[("more", &more), ("lost", &stressed.damage)],
            ),
            origin,
        )
    };
    let [of_twin, of_live] = [(&seen, Origin::Simulated), (&live, Origin::Measured)]
        .map(|(seen, origin)| seen.as_ref().map(|seen| verdict(seen, origin)));
    let of_live = of_live.map(|of_live| {
        let runs = pair.runs.iter().filter_map(|name| first(here, name));
        said(runs).doubt().map_or(of_live, Verdict::Inconclusive)
    });
    Compared {
        paper: Origin::Quoted.cell("as with the spinner alone"),
        twin: seen
            .flatten()
            .and_then(|seen| Origin::Simulated.cell(told(&seen))),
        live: live
            .flatten()
            .and_then(|seen| Origin::Measured.cell(told(&seen))),
        verdict: resting(of_twin.unwrap_or(Verdict::Alone), pair.rests_on.as_deref()),
        live_verdict: of_live.unwrap_or(Verdict::Alone),
        ..Compared::new(&pair.name)
    }
}
