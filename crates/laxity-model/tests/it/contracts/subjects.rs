//! Contracts about one component, about all of a kind, and about all.

use super::*;

/// Response times of three components, of which the second is too late, and their reasons.
fn three(contract: &Contract, order: [usize; 3]) -> (Outcome, Vec<String>) {
    let all = [
        ("quick", TASK, Some(90)),
        ("slow", TASK, Some(110)),
        ("still", ANYTHING, None),
    ];
    let all = order.map(|index| {
        let (name, kind, took) = all[index];
        let took: Vec<_> = took
            .iter()
            .map(|took| (Quantity::RESPONSE_TIME, &Phase::RUN, *took))
            .collect();
        evidence(name, kind, &[observe(&took)], &[])
    });
    let verdict = judge_all(contract, &all, &QUIET);
    let mut reasons = texts(&verdict);
    reasons.sort();
    (verdict.result, reasons)
}

#[test]
fn every_component_is_judged_by_itself_in_any_order() {
    let limit = Limit::new(
        Quantity::RESPONSE_TIME,
        Statistic::Maximum,
        Bound::AtMost(100),
    );
    let about = |subjects| Contract {
        subjects,
        ..contract(limit.clone())
    };
    let slow = "slow: response time: maximum 110ns exceeds 100ns (1.1 times)".to_owned();
    let still = "still: response time: nothing was observed".to_owned();
    let named = |name: &str| Subjects::Named(name.into());
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for (subjects, result, reasons) in [
            (
                Subjects::All,
                Outcome::Violated,
                vec![slow.clone(), still.clone()],
            ),
            (Subjects::Kind(TASK), Outcome::Violated, vec![slow.clone()]),
            (
                Subjects::Kind(ANYTHING),
                Outcome::Inconclusive,
                vec![still.clone()],
            ),
            (named("quick"), Outcome::Met, vec![]),
            (named("slow"), Outcome::Violated, vec![slow.clone()]),
            (named("still"), Outcome::Inconclusive, vec![still.clone()]),
        ] {
            let found = three(&about(subjects.clone()), order);
            assert_eq!(found, (result, reasons), "{subjects:?} in {order:?}");
        }
    }
}

#[test]
fn a_contract_about_one_component_knows_no_grant_of_another() {
    let seen = observe(&[(Quantity::RESPONSE_TIME, &Phase::RUN, 1)]);
    let reason = "somebody is above it".to_owned();
    let mut holder = evidence("holder", TASK, std::slice::from_ref(&seen), &[]);
    holder.grades = vec![("2ms/8ms".into(), Grade::Unenforced { reason })];
    let all = [holder, evidence("other", TASK, &[seen], &[])];
    let limit = Limit::new(
        Quantity::RESPONSE_TIME,
        Statistic::Maximum,
        Bound::AtMost(100),
    );
    for (name, result) in [("holder", Outcome::Violated), ("other", Outcome::Met)] {
        let contract = Contract {
            subjects: Subjects::Named(name.into()),
            ..contract(limit.clone())
        };
        assert_eq!(judge_all(&contract, &all, &QUIET).result, result, "{name}");
    }
}

#[test]
fn the_grants_of_every_component_are_looked_at() {
    let seen = observe(&[(Quantity::RESPONSE_TIME, &Phase::RUN, 1)]);
    let holder = |name: &str, grade| {
        let mut holder = evidence(name, TASK, std::slice::from_ref(&seen), &[]);
        holder.grades = vec![("2ms/8ms".into(), grade)];
        holder
    };
    let reason = "somebody is above it".to_owned();
    let unenforced = Grade::Unenforced { reason };
    let all = [holder("firm", Grade::Enforced), holder("weak", unenforced)];
    let limit = Limit::new(
        Quantity::RESPONSE_TIME,
        Statistic::Maximum,
        Bound::AtMost(100),
    );
    let verdict = judge_all(&contract(limit), &all, &QUIET);
    assert_eq!(verdict.result, Outcome::Violated);
    assert_eq!(
        texts(&verdict),
        ["weak: unenforced: the reservation of 2ms/8ms: somebody is above it"]
    );
}

/// A limit on what only others show is kept or broken by them alone.
#[test]
fn a_contract_about_nobody_by_name_rests_on_the_grants_of_whom_it_limits() {
    const OTHER: Kind = Kind {
        name: "other",
        quantities: &[Quantity::WAKEUP_GAP],
    };
    let seen = |quantity| observe(&[(quantity, &Phase::RUN, 1)]);
    let reason = "somebody is above it".to_owned();
    let mut holder = evidence("holder", TASK, &[seen(Quantity::RESPONSE_TIME)], &[]);
    holder.grades = vec![("2ms/8ms".into(), Grade::Unenforced { reason })];
    let other = evidence("other", OTHER, &[seen(Quantity::WAKEUP_GAP)], &[]);
    let all = [holder, other];
    for (quantity, result) in [
        (Quantity::WAKEUP_GAP, Outcome::Met),
        (Quantity::RESPONSE_TIME, Outcome::Violated),
    ] {
        let limit = Limit::new(quantity, Statistic::Maximum, Bound::AtMost(100));
        let verdict = judge_all(&contract(limit), &all, &QUIET);
        assert_eq!(verdict.result, result, "{quantity:?}");
    }
    let nothing = Contract {
        limits: Vec::new(),
        ..gap_at_most(100)
    };
    assert_eq!(judge_all(&nothing, &all, &QUIET).result, Outcome::Violated);
}

/// Two components that are alike, and what nobody knows of the first: what is judged of both, of the first and of the other.
fn with_doubts(limit: &Limit, seen: &Observations, doubts: Doubts) -> [(Outcome, Vec<String>); 3] {
    let mut all = ["first", "other"].map(|name| {
        let seen = std::slice::from_ref(seen);
        evidence(name, ANYTHING, seen, &[])
    });
    all[0].doubts = doubts;
    let named = |name: &str| Subjects::Named(name.into());
    [Subjects::All, named("first"), named("other")].map(|subjects| {
        let contract = Contract {
            subjects,
            ..contract(limit.clone())
        };
        let verdict = judge_all(&contract, &all, &QUIET);
        (verdict.result, texts(&verdict))
    })
}

#[test]
fn who_may_have_held_one_component_up_leaves_no_other_open() {
    let mut seen = observe(&[(Quantity::RESPONSE_TIME, &Phase::RUN, 90)]);
    seen.record(Quantity::RESPONSE_TIME, &Phase::RUN, 110, true);
    let bound = Bound::AtMost(100);
    let limit = Limit::new(Quantity::RESPONSE_TIME, Statistic::Maximum, bound);
    let doubts = Doubts {
        held: 2,
        ..Doubts::default()
    };
    let [all, first, other] = with_doubts(&limit, &seen, doubts);
    assert_eq!(
        [all.0, first.0, other.0],
        [Outcome::Inconclusive, Outcome::Inconclusive, Outcome::Met]
    );
    let told = "first: a processor was held 2 times, and nobody";
    for reasons in [&all.1, &first.1] {
        let doubtful = reasons.iter().filter(|reason| reason.contains("was held"));
        let doubtful: Vec<&String> = doubtful.collect();
        assert!(
            doubtful.len() == 1 && doubtful[0].starts_with(told),
            "{reasons:?}"
        );
    }
    assert!(!other.1.iter().any(|reason| reason.contains("was held")));
}

#[test]
fn halts_that_nobody_saw_leave_open_what_one_component_lost_and_nothing_else() {
    let seen = observe(&[
        (LOST, &Phase::RUN, 9),
        (Quantity::RESPONSE_TIME, &Phase::RUN, 110),
    ]);
    let doubts = Doubts {
        halts_unseen: HaltsUnseen::Of(&[LOST]),
        ..Doubts::default()
    };
    let lost = Limit::new(LOST, Statistic::Total, Bound::AtMost(0));
    let [all, first, other] = with_doubts(&lost, &seen, doubts);
    assert_eq!(
        [all.0, first.0, other.0],
        [Outcome::Violated, Outcome::Inconclusive, Outcome::Violated]
    );
    let told = [
        "first: samples lost: total 9 where none is allowed",
        "other: samples lost: total 9 where none is allowed",
        "first: nobody saw whether the machine stood still, so it may be what broke the limit",
    ];
    assert_eq!(all.1, told);
    // What it lost in windows is the same; how long it took is not.
    let mut in_windows = Observations::new();
    let window = LOST
        .in_every(Span::from_millis(100))
        .expect("it is counted");
    in_windows.record(window, &Phase::RUN, 9, false);
    let most = Limit::new(window, Statistic::Maximum, Bound::AtMost(0));
    let [_, first, _] = with_doubts(&most, &in_windows, doubts);
    assert_eq!(first.0, Outcome::Inconclusive, "{:?}", first.1);
    let in_time = Limit::new(
        Quantity::RESPONSE_TIME,
        Statistic::Maximum,
        Bound::AtMost(100),
    );
    let [_, first, _] = with_doubts(&in_time, &seen, doubts);
    assert_eq!(first.0, Outcome::Violated, "{:?}", first.1);
    // So it is with what a device lost in calls that outgrew those that its reservation was proposed for.
    let doubts = Doubts {
        outgrown: &[LOST],
        ..Doubts::default()
    };
    let outcomes = |limit: &Limit| {
        let all = with_doubts(limit, &seen, doubts);
        (all.each_ref().map(|one| one.0), all[1].1.clone())
    };
    let ([_, first, other], told) = outcomes(&lost);
    assert_eq!([first, other], [Outcome::Inconclusive, Outcome::Violated]);
    let kept = "calls took longer than was foreseen, and nothing that was promised was missing";
    assert!(told.iter().any(|one| one.contains(kept)), "{told:?}");
    assert_eq!(outcomes(&in_time).0[1], Outcome::Violated);
}
