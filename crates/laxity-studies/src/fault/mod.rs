//! Whose fault: who made a device late, from the trace alone. The "systematic latency timing verification of all components" that Jones and
//! Saroiu ask for (§8.1), tried on cases in which it is known who is to blame.
//!
//! * [`case`]: who is in a case, drawn from a seed.
//! * [`mod@trial`]: a case as a program, its run, its verdict ([`laxity_model::verify::attribution`]), and the truth: runs without each of them.

pub mod case;
#[cfg(test)]
mod tests;
pub mod trial;

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Round, Runner, Said, Study, Text};
use laxity_lab::report::{Origin, Row};
use laxity_lab::runner::RunError;
use laxity_model::verify::attribution::{Fault, InterferingTask, LateJob, Rules};
use laxity_model::{HostError, Span};

use case::{Case, Draw, Kind, set};
use trial::{Blame, Truth, Verdict, everybody, listed, name, run, truth};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../../data/fault.toml")));

/// How long each run is.
const LENGTH: Span = Span::from_secs(3);
/// The same on this machine.
const LIVE_LENGTH: Span = Span::from_secs(4);
/// What switches and ticks take from a job here, and the machine's host without the witness seeing it.
const SLACK: Span = Span::from_micros(300);
/// So often a case is drawn anew, if those that keep the rules make jobs late too, or an interfering task none.
const ATTEMPTS: u64 = 200;
/// How finely times are told.
const FINE: Span = Span::from_micros(1);

/// The experiment.
pub struct Whose;

/// Which case: in the twin it is drawn, on this machine it is always the same of its kind.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its number, of which the draws depend.
    pub number: u64,
    /// What is wrong, and whether the victim has a reservation.
    pub kind: (Kind, bool),
    /// The seed of the draws.
    pub seed: u64,
    /// Whether each interfering task has to make jobs late.
    pub all_matter: bool,
}

/// A case with its verdict and the truth.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The case.
    pub case: Case,
    /// What the trace says.
    pub verdict: Verdict,
    /// What is so; nothing is known of a case on this machine.
    pub truth: Truth,
    /// How often it had to be drawn.
    pub attempts: u64,
}

impl Trial {
    /// Whether exactly those are named that are to blame.
    pub fn is_right(&self) -> bool {
        self.verdict.named == self.truth.to_blame && self.verdict.unexplained == 0
    }
}

impl Study for Whose {
    type Case = Asked;
    type Seen = Trial;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Asked>, RunError> {
        let request = made.request;
        let kinds: Vec<(Kind, bool)> = match round.live {
            false if request.wants("cases") || request.wants("evidence") => TEXT.quoted("cases"),
            true if request.wants("live") => TEXT.quoted("live"),
            _ => Vec::new(),
        };
        let asked = |(number, kind)| Asked {
            number,
            kind,
            seed: request.seed,
            all_matter: true,
        };
        Ok((0..).zip(kinds).map(asked).collect())
    }

    fn name(&self, asked: &Asked) -> String {
        format!("case {}, {}", asked.number + 1, asked.kind.0.about())
    }

    fn run(&self, asked: &Asked, host: &mut Runner<'_>) -> Result<Trial, HostError> {
        if !host.is_live() {
            return draw(host, asked);
        }
        let case = set(asked.kind.0);
        let rules = Rules {
            slack: SLACK,
            ..Rules::PC99
        };
        Ok(Trial {
            verdict: run(host, &case, &everybody(&case), rules, LIVE_LENGTH)?,
            case,
            truth: Truth::default(),
            attempts: 1,
        })
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let trials: Vec<&Trial> = made.twin.iter().map(|(_, trial)| trial).collect();
        let numbered = || (1_usize..).zip(&trials);
        let again: u64 = trials.iter().map(|trial| trial.attempts - 1).sum();
        draft.circumstance("drawn again", TEXT.say("drawn-again", &[("times", &again)]));
        draft.table("cases", "cases", &[], numbered().map(told));
        draft.table("evidence", "evidence", &[], numbered().filter_map(evidence));
        if !trials.is_empty() {
            judge_twin(draft, &trials);
        }
        let live = || made.live.iter().map(|(_, trial)| trial);
        draft.table("live", "live", &[], live().map(measured));
        for (asked, trial) in &made.live {
            let said = made.said(|case| case.number == asked.number);
            judge_live(draft, trial, &said);
        }
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// Draws the case of this number until those that keep the rules make nobody late, and, if all have to matter, each of the others does.
fn draw(host: &mut Runner<'_>, asked: &Asked) -> Result<Trial, HostError> {
    let (kind, reserved) = asked.kind;
    for attempt in 0..ATTEMPTS {
        let case = Draw::new(asked.seed, asked.number, attempt).case(kind, reserved);
        let (verdict, truth) = truth(host, &case, LENGTH)?;
        let is_right_kind = match kind {
            Kind::TooLittle => truth.to_blame.reservation,
            Kind::Overrun => truth.late_without == 0 && truth.to_blame.victim,
            _ => truth.late_without == 0,
        };
        let matter = truth.to_blame.interfering.len();
        if is_right_kind && (!asked.all_matter || matter == case.interfering.len()) {
            return Ok(Trial {
                case,
                verdict,
                truth,
                attempts: attempt + 1,
            });
        }
    }
    let reason = format!("no case of {} in {ATTEMPTS} attempts", kind.about());
    Err(HostError::Failed(reason))
}

/// A row of the twenty cases.
fn told((number, trial): (usize, &&Trial)) -> Row {
    let Trial { case, verdict, .. } = trial;
    let mut rules: Vec<String> = Vec::new();
    for named in &verdict.findings.named {
        let rule = named.rule.to_string();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let served = match case.reserved {
        Some(service) => format!("reserved {service}/8ms"),
        None => "thread 24".into(),
    };
    let mut row = Origin::Charged.row([number.into(), case.kind.about().into(), served.into()]);
    row.extend(Origin::Simulated.row([
        verdict.findings.jobs.into(),
        verdict.findings.late.len().into(),
        trial.truth.to_blame.to_string().into(),
        verdict.named.to_string().into(),
        rules.join("; ").into(),
    ]));
    row
}

/// The three who held the processor longest, and what made the job late.
fn explained(job: &LateJob, names: &[String]) -> [String; 2] {
    let longest = job.held.iter().take(3);
    let longest =
        longest.map(|held| format!("{} {}", name(held.who, names), held.time.rounded_down(FINE)));
    let longest: Vec<String> = longest.collect();
    let why = match &job.fault {
        Fault::InterferingTasks(interfering) => {
            let each = interfering.iter().map(|task| earlier(task, names));
            each.collect::<Vec<_>>().join(", ")
        }
        Fault::Reservation {
            reserved,
            needed,
            in_slots,
        } => {
            let [needed, in_slots] =
                [needed, in_slots].map(|of| of.as_dedicated_span().rounded_down(FINE));
            let amounts: Holes<'_> = &[
                ("reserved", reserved),
                ("needed", &needed),
                ("in-slots", &in_slots),
            ];
            TEXT.say("too-small", amounts)
        }
        Fault::Rank => "the victim's rank is too low".into(),
        Fault::Overload => "too much in all".into(),
    };
    [longest.join(", "), why]
}

fn earlier(task: &InterferingTask, names: &[String]) -> String {
    let how = match (task.needed, task.suffices) {
        (true, true) => "needed and enough",
        (true, false) => "needed",
        (false, true) => "enough",
        (false, false) => "one of several",
    };
    let earlier = task.explains.rounded_down(FINE);
    format!("{} {earlier} ({how})", name(task.who, names))
}

/// A row of evidence; `None` if no job was late.
fn evidence((number, trial): (usize, &&Trial)) -> Option<Row> {
    let job = trial.verdict.findings.late.first()?;
    let [held, why] = explained(job, &trial.verdict.names);
    let mut row = Origin::Charged.row([number.into()]);
    let released = job.release.since_epoch();
    row.extend(Origin::Simulated.row([
        released.into(),
        job.lateness.into(),
        held.into(),
        why.into(),
    ]));
    Some(row)
}

/// A row of what was run here.
fn measured(trial: &Trial) -> Row {
    let (verdict, findings) = (&trial.verdict, &trial.verdict.findings);
    let mut row = Origin::Charged.row([trial.case.kind.about().into()]);
    row.extend(Origin::Measured.row([
        findings.jobs.into(),
        findings.late.len().into(),
        verdict.named.to_string().into(),
    ]));
    row.extend(match findings.late.first() {
        Some(job) => Origin::Measured.row(explained(job, &verdict.names).map(Into::into)),
        None => vec![None; 2],
    });
    row
}

fn judge_twin(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let right = trials.iter().filter(|trial| trial.is_right()).count();
    let counts: Holes<'_> = &[("right", &right), ("cases", &trials.len())];
    draft.say("right", counts);
    draft.claim("exact", right == trials.len(), counts);
    let innocents = trials.iter().flat_map(|trial| &trial.verdict.named.others);
    let innocents: Vec<String> = innocents.cloned().collect();
    let named = listed(&innocents);
    draft.claim("innocent", innocents.is_empty(), &[("named", &named)]);
}

/// Live: whoever is to blame is named, and of the program's others nobody; the machine and what is not of the program may be named besides.
fn judge_live(draft: &mut Draft<'_>, trial: &Trial, said: &Said) {
    let Verdict {
        named, findings, ..
    } = &trial.verdict;
    let foreign = ["the machine", "something unseen"];
    let innocent = |other: &String| !foreign.contains(&other.as_str());
    let is_wrong = |named: &Blame| named.victim || named.others.iter().any(innocent);
    let held = named.interfering == everybody(&trial.case) && !is_wrong(named) && findings.jobs > 0;
    let claim = match trial.case.kind {
        Kind::Nothing => "live-nothing",
        _ => "live",
    };
    let seen: Holes<'_> = &[
        ("about", &trial.case.kind.about()),
        ("late", &findings.late.len()),
        ("jobs", &findings.jobs),
        ("named", named),
    ];
    // Nobody is named wrongly because the machine stood still at another time.
    let is_certain = is_wrong(&trial.verdict.named_undisturbed);
    draft.claim_here(claim, (held, is_certain), seen, said);
}
