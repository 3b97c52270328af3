//! Every figure and table of the soft-modem study (Jones, Saroiu, "Predictability Requirements of a Soft Modem", SIGMETRICS 2001), in the
//! twin and live.
//!
//! * `figures`: figures 1 to 16 and the stress run, in the twin and on this machine.
//! * `transfers`: file transfers; `tables`: tables 1 to 3, as printed and as the twin has them, and what they depend on;
//!   [`map`]: figure 17, and reservations beyond those of the study.
//! * `calibration`: every constant that was put in or chosen, with its reason.

mod calibration;
mod figures;
pub mod map;
mod tables;
mod transfers;
mod verdicts;

use std::sync::LazyLock;

use laxity::Twin;
use laxity::study::Profile;
use laxity_lab::bench::{Draft, Holes, Made, Request, Round, Runner, Study, Text};
use laxity_lab::report::Verdict;
use laxity_lab::runner::RunError;
use laxity_lab::scenario::Resolved;
use laxity_model::HostError;

pub use figures::{Readings, Run};
use transfers::Batch;
pub use transfers::{Attempt, Transfer};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../../data/modem.toml")));

/// The experiment.
pub struct Modem;

/// What is run.
#[derive(Clone, Debug)]
pub enum Case {
    /// A run that figures are drawn from.
    Run(Run),
    /// A transfer.
    Transfer(Box<Transfer>),
}

/// What was seen of it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// The run's events as series.
    Run(Box<Readings>),
    /// What became of the transfer.
    Transfer(Attempt),
}

impl Study for Modem {
    type Case = Case;
    type Seen = Seen;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn loaded(&self, request: &Request) -> Option<&'static Resolved> {
        figures::is_needed(request).then(|| &*figures::SCENES)
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        if round.live {
            return Ok(figures::here(made));
        }
        let mut batches = tables::batches(request);
        if request.wants(map::KEY) {
            batches.insert(0, map::batch(request)?);
        }
        let transfers = batches.iter().flat_map(Batch::transfers);
        let transfers = transfers.map(|one| Case::Transfer(Box::new(one)));
        let runs = figures::in_twin(request).into_iter();
        Ok(runs.chain(transfers).collect())
    }

    fn name(&self, case: &Case) -> String {
        match case {
            Case::Run(run) => run.name(),
            Case::Transfer(transfer) => transfer.name(),
        }
    }

    fn twin(&self, case: &Case) -> Twin {
        match case {
            Case::Transfer(transfer) => transfer.twin(),
            Case::Run(_) => Twin::new(Profile::WIN2000_PII450),
        }
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        match case {
            Case::Run(run) => run.make(host).map(|seen| Seen::Run(Box::new(seen))),
            Case::Transfer(transfer) => transfer.make(host).map(Seen::Transfer),
        }
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        figures::draw(made, draft);
        let attempts = attempts(made);
        let mut attempts = attempts.as_slice();
        if made.request.wants(map::KEY) {
            map::draw(made.request, &mut attempts, draft)?;
        }
        tables::draw(made.request, &mut attempts, draft);
        draft.table("constants", "constants", &[], calibration::rows()?);
        tell(draft);
        Ok(())
    }
}

/// What became of all transfers, in their order.
fn attempts(made: &Made<'_, Modem>) -> Vec<Attempt> {
    let attempts = made.twin.iter().filter_map(|(_, seen)| match seen {
        Seen::Transfer(attempt) => Some(*attempt),
        _ => None,
    });
    attempts.collect()
}

/// What came of it, for a reader who reads nothing else.
fn tell(draft: &mut Draft<'_>) {
    let (mut agree, mut consistent, mut disagree) = (0, 0, Vec::new());
    for figure in draft.figures() {
        for row in &figure.compared {
            match &row.verdict {
                Verdict::Agrees(_) => agree += 1,
                Verdict::Consistent(_) => consistent += 1,
                Verdict::Alone => {}
                Verdict::Disagrees(how) => {
                    disagree.push([&figure.key, &row.quantity, how].map(String::clone));
                }
            }
        }
    }
    let counts: Holes<'_> = &[
        ("agree", &agree),
        ("consistent", &consistent),
        ("disagree", &disagree.len()),
    ];
    draft.say("counted", counts);
    for [figure, quantity, how] in &disagree {
        let holes: Holes<'_> = &[("figure", figure), ("quantity", quantity), ("how", how)];
        draft.say("disagrees", holes);
    }
}
