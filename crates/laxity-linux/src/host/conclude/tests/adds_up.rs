//! What nobody was found for, each time no longer than the kernel's own work; who took little beside others; and who is found when all is over.

use super::*;

/// One thread at FIFO 99 for 9 ms of 20, which has stepped down whenever somebody looks.
fn toggling(from_turn: u64, turns: u64) -> Vec<Event> {
    let turns = from_turn..from_turn + turns;
    turns
        .map(|turn| late(EventKind::Held, 7 + 20 * turn, 9))
        .collect()
}

#[test]
fn what_nobody_was_found_for_is_in_doubt_where_it_adds_up() {
    let told = "processor 3 was held 125 times, for 9ms at most, first 7ms after the start, 1.125s in all, and nobody was found who could: ";
    let all = found(&Seen::default(), toggling(0, 125), true, Span::ZERO);
    assert!(all.slots.starts_with(told), "{}", all.slots);
    assert_eq!(all.deadline, "");
    assert_eq!((all.still, all.doubts, all.held), (125, 125, 0));
    // Whoever is met once is the one who did it.
    let named = found(&stranger(99, BUSY), toggling(0, 125), true, Span::ZERO);
    assert_eq!((named.doubts, named.held), (0, 125));
    assert!(named.slots.starts_with(ABOVE), "{}", named.slots);
}

/// As a watcher concludes, look by look.
#[test]
fn what_nobody_was_found_for_adds_up_over_several_looks() {
    let seen = Seen::default();
    let mut unfound = Vec::new();
    let grades = (0..3).map(|turn| {
        let evidence = Evidence {
            unfound: &unfound,
            ..watched(&seen)
        };
        let conclusion = conclude(&mut toggling(turn, 1), &evidence);
        let grade = conclusion.grade(Grade::Enforced, (Enforcer::Slots, HOLDER, CPU));
        unfound = conclusion.unfound;
        (grade.to_string(), unfound.len())
    });
    let grades: Vec<(String, usize)> = grades.collect();
    let expected = [("enforced", 1), ("uncertain", 2), ("uncertain", 3)];
    assert_eq!(
        grades,
        expected.map(|(grade, times)| (grade.to_owned(), times))
    );
}

/// A child that the program leaves behind, say: whether it had that rank before the end nobody knows.
#[test]
fn who_is_first_seen_when_all_is_over_is_not_known_to_have_been_there() {
    let at = |ms| Seen {
        strangers: vec![fifo(99, CPU, Some(after(ms)), BUSY)],
        ..Seen::default()
    };
    let (before, since) = (at(1_500), at(1_501));
    for (seen, expected) in [(&before, "unenforced"), (&since, "uncertain")] {
        let evidence = Evidence {
            over: Some(after(1_500)),
            ..watched(seen)
        };
        let conclusion = conclude(&mut held(5), &evidence);
        let grade = conclusion.grade(Grade::Enforced, (Enforcer::Slots, HOLDER, CPU));
        assert_eq!(grade.to_string(), expected);
        assert!(grade.reason().is_some_and(|why| why.contains(NAMED)));
    }
}

#[test]
fn strangers_who_idle_alone_and_not_together_are_held_against_slots() {
    let mut seen = stranger(99, IDLE);
    seen.strangers.push(fifo(99, CPU, None, IDLE));
    let slots = |seen: &Seen| found(seen, vec![], true, Span::ZERO).slots;
    assert_eq!(slots(&seen), "");
    Sighting::weigh_together(&mut seen.strangers, &[CPU]);
    assert_eq!(slots(&seen), ABOVE);
}
