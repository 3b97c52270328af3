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
use laxity_lab::report::{Compared, Figure, Verdict};
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
        let degraded = tables::draw(made.request, &mut attempts, draft);
        score(&degraded, draft);
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

/// Of the study's rows that were not at full speed, by name, and that what was put in, or chosen by them, leaves open: how many came true, in class and in how slow they were,
/// and how the others came out. Nothing else is so hard to foretell.
fn score(degraded: &[(String, Option<String>)], draft: &mut Draft<'_>) {
    if degraded.is_empty() {
        return;
    }
    let rows = degraded.iter().map(|(name, missed)| match missed {
        None => name.clone(),
        Some(how) => TEXT.say("score-missed", &[("row", name), ("how", how)]),
    });
    let came_true = degraded.iter().filter(|(_, missed)| missed.is_none());
    let holes: Holes<'_> = &[
        ("true", &came_true.count()),
        ("of", &degraded.len()),
        ("rows", &rows.collect::<Vec<_>>().join(", ")),
    ];
    draft.say("score", holes);
}

/// Verdicts of one host.
#[derive(Default)]
struct Counted {
    agree: usize,
    consistent: usize,
    /// Of which the evidence does not tell.
    open: usize,
    /// Figure, quantity, and how.
    disagree: Vec<[String; 3]>,
}

impl Counted {
    fn of<'a>(figures: impl Iterator<Item = &'a Figure>, of: fn(&Compared) -> &Verdict) -> Self {
        let mut counted = Self::default();
        for figure in figures {
            for row in &figure.compared {
                match of(row) {
                    Verdict::Agrees(_) => counted.agree += 1,
                    Verdict::Consistent(_) => counted.consistent += 1,
                    Verdict::Inconclusive(_) => counted.open += 1,
                    Verdict::Alone => {}
                    Verdict::Disagrees(how) => {
                        let words = [&figure.key, &row.quantity, how].map(String::clone);
                        counted.disagree.push(words);
                    }
                }
            }
        }
        counted
    }

    /// Of nothing nothing is said.
    fn say(&self, keys: [&str; 2], draft: &mut Draft<'_>) {
        if self.agree + self.consistent + self.open + self.disagree.len() == 0 {
            return;
        }
        let counts: Holes<'_> = &[
            ("agree", &self.agree),
            ("consistent", &self.consistent),
            ("open", &self.open),
            ("disagree", &self.disagree.len()),
        ];
        draft.say(keys[0], counts);
        for [figure, quantity, how] in &self.disagree {
            let holes: Holes<'_> = &[("figure", figure), ("quantity", quantity), ("how", how)];
            draft.say(keys[1], holes);
        }
    }
}

/// What came of it, for a reader who reads nothing else.
fn tell(draft: &mut Draft<'_>) {
    let twin = Counted::of(draft.figures(), |row| &row.verdict);
    let live = Counted::of(draft.figures(), |row| &row.live_verdict);
    twin.say(["counted", "disagrees"], draft);
    live.say(["counted-live", "disagrees-live"], draft);
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::judge;
    use laxity_lab::report::Report;
    use laxity_model::Span;

    use super::*;

    /// The report on the transfers of this request, as if this had become of each, by its number.
    pub(super) fn judged_as(request: &Request, attempt: impl FnMut(u64) -> Attempt) -> Report {
        let mut made = Made::nothing(request);
        let round = Round {
            live: false,
            number: 0,
        };
        let cases = Modem.cases(round, &made).expect("transfers").into_iter();
        let seen = (0..).map(attempt).map(Seen::Transfer);
        made.twin = cases.zip(seen).collect();
        judge(&Modem, &made).expect("it is judged")
    }

    #[test]
    fn where_nothing_is_compared_no_counts_are_told() {
        let request = Request {
            figures: vec!["constants".into()],
            ..Request::default()
        };
        let report = judge(&Modem, &Made::nothing(&request)).expect("it is judged");
        assert_eq!(report.summary, TEXT.question);
    }

    /// Rows that say nothing are many; who reads one line reads of those that could have come out otherwise.
    #[test]
    fn the_score_of_the_rows_below_full_speed_stands_at_the_head_and_the_counts_follow() {
        let request = Request {
            figures: vec!["table-1".into()],
            repeats: Some(1),
            ..Request::default()
        };
        let report = judged_as(&request, |_| Attempt {
            took: Some(Span::from_secs(37)),
            ..Attempt::default()
        });
        let first = |words: &str| {
            let mut lines = report.summary.iter();
            let at = lines.position(|line| line.contains(words));
            at.unwrap_or_else(|| panic!("{words}: {:?}", report.summary))
        };
        let asked = TEXT.question.len();
        assert_eq!(first("leaves 1 open: 0 of 1 came true in the twin"), asked);
        let missed =
            "not THR 8 of table 1 (the study: slow or not always; the twin: at full speed)";
        assert_eq!(first(missed), asked);
        assert_eq!(first("came out of the twin"), asked + 1);
        assert_eq!(first("table-1, THR 8: "), asked + 2);
    }
}
