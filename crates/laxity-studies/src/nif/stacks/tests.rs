use laxity_lab::bench::{Made, Request, judge};
use laxity_lab::report::Report;

use super::super::{Nif, Run};
use super::shown::CLAIMED;
use super::*;
use crate::disturbed;

/// What is told of a run in which all were alike, and these were not there.
fn report(absent: &[(Way, bool)]) -> Report {
    let there = CONTENDERS.into_iter().filter(|one| !absent.contains(one));
    let figures = there.flat_map(|contender| {
        MESSAGES.map(|message| Figures {
            contender,
            message,
            rates: [1_000_000; 2],
            costs: [1; 2],
            trip: 1,
        })
    });
    let seen = Seen {
        figures: figures.collect(),
        absent: absent
            .iter()
            .map(|one| (*one, "no right".to_owned()))
            .collect(),
    };
    let request = Request::default();
    let mut made = Made::nothing(&request);
    for case in cases(&request) {
        made.live
            .push((Run::Stacks(case), super::super::Seen::Stacks(seen.clone())));
        made.said.push(disturbed(0));
    }
    judge(&Nif, &made).expect("it is judged")
}

#[test]
fn who_could_not_begin_is_told_and_leaves_open_what_is_claimed_of_him() {
    let held = |report: &Report| {
        let mut checks = report.checks.iter();
        let check = checks.find(|check| check.claim.contains("over a TAP"));
        check.expect("it is claimed").held
    };
    let told = |report: &Report| {
        let all = report.summary.iter();
        all.filter(|words| words.contains("no right")).count()
    };
    for (absent, is_held, times) in [
        (&[][..], Some(true), 0),
        (&[(Way::Xdp, false)], Some(true), 1),
        (&[CLAIMED, (Way::Tap, false)], None, 2),
    ] {
        let report = report(absent);
        assert_eq!(
            (held(&report), told(&report)),
            (is_held, times),
            "{absent:?}"
        );
    }
}
