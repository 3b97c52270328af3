//! What all figures of upcalls show alike.

use laxity_lab::bench::{Draft, Holes, Said};
use laxity_lab::report::{Compared, Origin, Row, Value, Verdict, fixed};

use super::trial::{Look, Serving};
use super::{Case, PERCENT_PPM, TEXT, Trial, Where};
use crate::or;
pub(super) use crate::spread::Spread;

/// How upcalls are served, in words.
pub(super) fn way(serving: Serving, look: Look) -> String {
    let who = match serving {
        Serving::Threads => return TEXT.say("threads", &[]),
        Serving::Kernel => return TEXT.say("kernel", &[]),
        Serving::Intervals => return TEXT.say("intervals", &[]),
        Serving::ByRate => "by-rate",
        Serving::ByDeadline => "by-deadline",
    };
    let when = match look {
        Look::AtOnce => TEXT.say("at-once", &[]),
        Look::AT_THE_END => TEXT.say("at-the-end", &[]),
        Look::Parts(parts) => TEXT.say("parts", &[("parts", &parts)]),
    };
    TEXT.say(who, &[("when", &when)])
}

pub(super) fn of<'a>(trials: &'a [Trial], figure: &str) -> Vec<&'a Trial> {
    let all = trials.iter().filter(|(case, _)| case.figure == figure);
    all.collect()
}

/// What the paper says, in percent, and what the twin shows, in parts per million, and what that says.
pub(super) fn compare(
    draft: &mut Draft<'_>,
    figure: &str,
    what: &str,
    (paper, twin): (u64, Option<u64>),
    verdict: Verdict,
) {
    let compared = Compared {
        twin: twin.and_then(|twin| Origin::Simulated.cell(Value::share(twin))),
        verdict,
        ..quoted(what, paper)
    };
    if let Some(figure) = draft.figure(figure) {
        figure.compared.push(compared);
    }
}

/// The same of what this machine shows.
pub(super) fn compare_here(
    draft: &mut Draft<'_>,
    figure: &str,
    what: &str,
    (paper, live): (u64, Option<u64>),
    verdict: Verdict,
) {
    let compared = Compared {
        live: live.and_then(|live| Origin::Measured.cell(Value::share(live))),
        live_verdict: verdict,
        ..quoted(what, paper)
    };
    if let Some(figure) = draft.figure(figure) {
        figure.compared.push(compared);
    }
}

fn quoted(what: &str, paper: u64) -> Compared {
    Compared {
        paper: Origin::Quoted.cell(Value::share(paper * PERCENT_PPM)),
        ..Compared::new(TEXT.say(&format!("compared-{what}"), &[]))
    }
}

/// Up to so much of a number of the paper's is as much as it, in percent.
pub(super) const AS_MUCH: u64 = 150;

/// Whether it is as much as the paper prints, which is in percent: no less, and no more than half as much again.
pub(super) fn is_as_much(paper: u64, seen_ppm: u64) -> bool {
    (paper * PERCENT_PPM..=paper * AS_MUCH * PERCENT_PPM / 100).contains(&seen_ppm)
}

/// What a comparison with a gain of the paper's says where not all of the paper's set is told: that it is as much shows that nothing is broken.
pub(super) fn as_much(paper: u64, seen_ppm: Option<u64>, why: &str) -> Verdict {
    let why = TEXT.say("as-much", &[("why", &why)]);
    verdict(seen_ppm.map(|seen| is_as_much(paper, seen)), why)
}

/// The same of what the paper tells to be no less than that, and not how much more.
pub(super) fn no_less(paper: u64, seen_ppm: Option<u64>, why: &str) -> Verdict {
    let why = TEXT.say("no-less", &[("why", &why)]);
    verdict(seen_ppm.map(|seen| seen >= paper * PERCENT_PPM), why)
}

fn verdict(is_so: Option<bool>, why: String) -> Verdict {
    match is_so {
        Some(true) => Verdict::Consistent(why),
        Some(false) => Verdict::Disagrees(why),
        None => Verdict::Inconclusive(TEXT.say("nothing-served", &[])),
    }
}

impl Spread {
    /// A row that tells it.
    pub(super) fn row(&self, what: &str, value: impl Fn(u64) -> Value) -> Row {
        let mut row = Origin::Simulated.row([what.into()]);
        let all = [self.least, self.median, self.most];
        row.extend(Origin::Simulated.row(all.map(value)));
        row
    }

    /// Of percents, in words.
    pub(super) fn percent(&self) -> String {
        let Self {
            least,
            median,
            most,
            ..
        } = self;
        format!("{median} % ({least} to {most} %)")
    }

    /// Of parts per million, in words.
    pub(super) fn share(&self) -> String {
        self.words(percent)
    }
}

/// How much less that is, in whole percent; of nothing nothing is less.
pub(super) fn less(before: u64, after: u64) -> Option<u64> {
    let saved = before.saturating_sub(after) * 100;
    saved.checked_div(before)
}

/// By how much it has changed, in words.
pub(super) fn change(before: u64, after: u64) -> String {
    let (changed, word) = match after > before {
        true => (after - before, "more"),
        false => (before - after, "fewer"),
    };
    let percent = (changed * 100).checked_div(before);
    known(percent.map(|percent| format!("{percent} % {word}")))
}

/// So many switches a job.
pub(super) fn a_job(switches: u64, jobs: u64) -> Option<Value> {
    (switches * 1_000).checked_div(jobs).map(Value::Ratio)
}

/// What is known, in words.
pub(super) fn known(value: Option<impl std::fmt::Display>) -> String {
    or(value, &TEXT.say("unknown", &[]))
}

/// Claims something of what was served, judged with what the runs `said` of themselves; `None`: nothing was, so that there is nothing to judge, and it stays open.
pub(super) fn claim(
    draft: &mut Draft<'_>,
    key: &str,
    holds: Option<bool>,
    holes: Holes<'_>,
    said: &Said,
) {
    let why = holds.is_none().then(|| TEXT.say("nothing-served", &[]));
    let holds = holds.unwrap_or(true);
    draft.claim_here(key, (holds, false), holes, &said.clone().but(why));
}

/// A share with three decimals.
pub(super) fn finely(ppm: u64) -> String {
    format!("{} %", fixed(ppm, PERCENT_PPM, 3))
}

/// A share with one decimal.
pub(super) fn percent(ppm: u64) -> String {
    format!("{} %", fixed(ppm, PERCENT_PPM, 1))
}

pub(super) fn place(case: &Case, live: bool) -> (&'static str, Origin) {
    match &case.place {
        _ if live => ("this machine", Origin::Measured),
        Where::Here(_) => ("twin of this machine", Origin::Predicted),
        Where::In1995 => ("twin of 1995", Origin::Simulated),
        Where::Ideal => ("twin without costs", Origin::Simulated),
    }
}
