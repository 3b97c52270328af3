//! Figure 17 beyond the study's twelve points: what the analysis predicts of a reservation is what the twin's modem does with it, and where it is
//! not, a counter says why.
//!
//! Every fifth reservation of the map; all of them with `LAXITY_CASES` (of any value).

use laxity_lab::bench::{Request, make};
use laxity_lab::runner::Silent;
use laxity_studies::modem::Modem;
use laxity_studies::modem::map::{self, Tried};

fn surveyed(every: u64, threads: usize) -> Vec<Tried> {
    let request = Request {
        figures: vec!["figure-17".into()],
        threads,
        seed: 1,
        repeats: Some(1),
        options: [("every".into(), every)].into(),
        ..Request::default()
    };
    let made = make(&Modem, &request, &mut Silent).expect("the twin runs");
    map::surveyed(&made).expect("the analysis knows each of them")
}

#[test]
fn what_is_predicted_of_a_reservation_happens_or_is_accounted_for() {
    let all = std::env::var_os("LAXITY_CASES").is_some();
    let tried = surveyed(if all { 1 } else { 5 }, 0);
    for one in &tried {
        println!("{one:?}: {:?}", one.accounted_for());
        // 7/20 is served or not by its seed.
        let is_clear = one.name != "RES 7/20";
        assert!(!is_clear || one.accounted_for().is_some(), "{one:?}");
        // Far from both lines there is nothing to account for, and the study's model says the same.
        if !one.near {
            assert_eq!(one.exact, one.served(), "{one:?}");
            assert_eq!(one.lines, one.served(), "{one:?}");
            assert_eq!(one.study_lines, one.served(), "{one:?}");
        }
        // What is served loses next to nothing, and what is not, much.
        if one.exact {
            assert_eq!(one.abandoned, 0, "{one:?}");
        } else if !one.served() {
            assert!(one.underrun > 200, "{one:?}");
        }
    }
    let served = tried.iter().filter(|one| one.served()).count();
    assert!(served > 0 && served < tried.len());
    if all {
        let near = |one: &&Tried| one.near && !one.in_table_3;
        assert!(tried.iter().filter(|one| !one.in_table_3).count() >= 40);
        assert!(tried.iter().filter(near).count() >= 12);
    }
}

/// What the study's words say of it, with all seeds; they are counted only with `LAXITY_CASES`.
#[test]
fn with_13_of_the_seeds_1_to_20_7_of_20_is_at_full_speed() {
    let seeds = if std::env::var_os("LAXITY_CASES").is_some() {
        20
    } else {
        2
    };
    let at_full_speed = |seed: &u64| {
        let request = Request {
            figures: vec!["figure-17".into()],
            seed: *seed,
            // Every tenth: it is the eleventh of all.
            options: [("every".into(), 10)].into(),
            ..Request::default()
        };
        let made = make(&Modem, &request, &mut Silent).expect("the twin runs");
        let tried = map::surveyed(&made).expect("the analysis knows each of them");
        let mut tried = tried.iter();
        let one = tried
            .find(|one| one.name == "RES 7/20")
            .expect("it is tried");
        assert_eq!(one.made, 2);
        one.served()
    };
    let served = (1..=seeds).filter(at_full_speed).count();
    assert_eq!(served, if seeds == 20 { 13 } else { 1 });
}

#[test]
fn the_map_does_not_depend_on_threads() {
    // Of 56 reservations the first and the last but a few.
    let figures = |threads| format!("{:?}", surveyed(50, threads));
    assert_eq!(figures(1), figures(2));
}
