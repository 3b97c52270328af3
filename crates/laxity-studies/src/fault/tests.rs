//! The cases themselves, and many more.

use laxity::Twin;
use laxity::study::Profile;
use laxity_lab::bench::{Request, judge, make, pool};
use laxity_lab::runner::Silent;
use laxity_model::verify::attribution::Findings;

use super::*;
use crate::{disturbed, told_and_open};

/// All kinds, with a reservation and without where both are possible.
const KINDS: [(Kind, bool); 14] = [
    (Kind::InterruptsOff, false),
    (Kind::InterruptsOff, true),
    (Kind::LongDeferred, false),
    (Kind::LongDeferred, true),
    (Kind::TwoNeeded, false),
    (Kind::TwoNeeded, true),
    (Kind::TwoSufficient, false),
    (Kind::TwoSufficient, true),
    (Kind::Rogue, false),
    (Kind::Rogue, true),
    (Kind::Overrun, false),
    (Kind::TooLittle, true),
    (Kind::Nothing, false),
    (Kind::Nothing, true),
];

/// Many cases of all kinds, as they come: nobody has to matter.
fn sweep(seed: u64, cases: u64) -> Vec<Trial> {
    let asked = |number: u64| Asked {
        number,
        kind: KINDS[(number % KINDS.len() as u64) as usize],
        seed,
        all_matter: false,
    };
    let asked: Vec<Asked> = (0..cases).map(asked).collect();
    let one = |asked: Asked| {
        let mut twin = Twin::new(Profile::WIN2000_PII450);
        let trial = Whose.run(&asked, &mut Runner::Twin(&mut twin));
        Ok(trial.expect("the twin runs it"))
    };
    let trials = pool::map(asked, 0, |asked| Whose.name(asked), one, &mut Silent);
    trials.expect("there are threads")
}

fn cases() -> u64 {
    let cases = std::env::var("LAXITY_CASES").ok();
    cases.map_or(280, |cases| {
        cases.parse().expect("LAXITY_CASES is a number")
    })
}

#[test]
fn twenty_of_twenty() {
    let request = Request {
        figures: vec!["cases".into()],
        seed: 1,
        ..Request::default()
    };
    let made = make(&Whose, &request, &mut Silent).expect("the twin runs them");
    assert_eq!(made.twin.len(), 20);
    for (number, (_, trial)) in (1..).zip(&made.twin) {
        let findings = &trial.verdict.findings;
        let nobody = |fault: &Fault| !matches!(fault, Fault::InterferingTasks(_));
        assert!(
            trial.is_right(),
            "case {number}, {:?}: named {:?} {:?}, to blame {:?}; nobody's fault: {:?}",
            trial.case,
            trial.verdict.named.interfering,
            trial.verdict.named.others,
            trial.truth,
            findings.late.iter().find(|job| nobody(&job.fault))
        );
    }
}

/// Cases as they come, also with interfering tasks that make hardly a difference: who is named was to blame, and who was to blame is named.
#[test]
fn many_cases_by_precision_and_recall() {
    let trials = sweep(7, cases());
    let (mut named, mut to_blame, mut both, mut innocents, mut right) = (0, 0, 0, 0, 0);
    for trial in &trials {
        let (blame, truth) = (&trial.verdict.named, &trial.truth.to_blame);
        named += blame.interfering.len() + usize::from(blame.victim);
        to_blame += truth.interfering.len() + usize::from(truth.victim);
        let named_rightly = |task: &&usize| truth.interfering.contains(task);
        both += blame.interfering.iter().filter(named_rightly).count();
        both += usize::from(blame.victim && truth.victim);
        innocents += blame.others.len();
        right += usize::from(trial.is_right());
        if trial.case.kind == Kind::Nothing {
            assert_eq!(trial.verdict.findings.late, []);
        }
    }
    println!(
        "{} cases, {right} right: named {named}, to blame {to_blame}, both {both}, innocents {innocents}",
        trials.len()
    );
    assert_eq!(innocents, 0);
    // At least 95 % of either.
    assert!(both * 100 >= named * 95, "precision: {both} of {named}");
    assert!(both * 100 >= to_blame * 95, "recall: {both} of {to_blame}");
}

/// Who is named wrongly while the machine went on is named wrongly whatever share of the rest was disturbed.
#[test]
fn an_innocent_who_is_named_in_undisturbed_time_is_beyond_doubt() {
    let innocent = || Blame {
        others: vec!["innocent 1 thread".into()],
        ..Blame::default()
    };
    for (named_undisturbed, disturbed_ppm, checks) in [
        (innocent(), 10_001, 1),
        (Blame::default(), 10_001, 0),
        (Blame::default(), 10_000, 1),
    ] {
        let verdict = Verdict {
            findings: Findings {
                jobs: 1,
                ..Findings::default()
            },
            named: innocent(),
            named_undisturbed,
            unexplained: 0,
            names: Vec::new(),
        };
        let asked = Asked {
            number: 0,
            kind: (Kind::Nothing, false),
            seed: 1,
            all_matter: true,
        };
        let trial = Trial {
            case: set(Kind::Nothing),
            verdict,
            truth: Truth::default(),
            attempts: 1,
        };
        let request = Request::default();
        let made = Made {
            live: vec![(asked, trial)],
            said: vec![disturbed(disturbed_ppm)],
            ..Made::nothing(&request)
        };
        let report = judge(&Whose, &made).expect("nothing is analysed");
        assert!(report.checks.iter().all(|check| check.held != Some(true)));
        let found = told_and_open(&report);
        assert_eq!(found, (checks, 1 - checks), "{disturbed_ppm}");
    }
}
