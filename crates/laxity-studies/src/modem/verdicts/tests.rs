use laxity_lab::bench::Request;

use super::super::tables::{TABLES, table_3};
use super::super::tests::judged_as;
use super::*;

fn after(took: &[Option<u64>]) -> Vec<Attempt> {
    let attempt = |seconds: &Option<u64>| Attempt {
        took: seconds.map(Span::from_secs),
        ..Attempt::default()
    };
    took.iter().map(attempt).collect()
}

#[test]
fn the_claim_fails_with_a_row_that_no_constant_was_chosen_by_and_with_no_other() {
    let table = table_3();
    let int = after(&[Some(37)]);
    let check = |wrong: &str| {
        let seen: Vec<Vec<Attempt>> = table
            .rows
            .iter()
            .map(|row| {
                let served = row.attempts().succeeded == 10;
                after(&[(served != (row.place.name() == wrong)).then_some(37)])
            })
            .collect();
        let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
        agreement(&judge(table, &by_row, &int), true).0
    };
    assert!(check(""));
    // The line of gaps, which was drawn through 4/16, too, chose the lead.
    assert!(check("RES 2/13"));
    assert!(check("RES 4/16"));
    assert!(!check("RES 1/8"));
    assert!(!check("RES 2/15"));
}

#[test]
fn a_row_that_what_was_put_in_decides_never_agrees() {
    for table in [&TABLES[0], &TABLES[2]] {
        // The twin that does just what the study prints.
        let seen: Vec<Vec<Attempt>> = table
            .rows
            .iter()
            .map(|row| {
                let printed = row.attempts();
                let mean = printed.times.map(|times| times.mean);
                let attempt = |n| Attempt {
                    took: mean.filter(|_| n < printed.succeeded),
                    ..Attempt::default()
                };
                (0..printed.made).map(attempt).collect()
            })
            .collect();
        let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
        for row in judge(table, &by_row, &after(&[Some(37)])) {
            let is_free = row.decided().is_none();
            let row = row.compared();
            let agrees = matches!(row.verdict, Verdict::Agrees(_));
            let is_full_speed =
                matches!(&row.verdict, Verdict::Consistent(how) if how.ends_with(FULL_SPEED));
            assert_eq!(agrees, is_free && !is_full_speed, "{row:?}");
        }
    }
}

/// The lead was chosen by the line of gaps, which was drawn through all of these; where the share does not suffice no lead helps.
#[test]
fn no_row_of_table_3_nor_point_of_figure_17_agrees() {
    let decided = |name: &str| {
        let place = Place::try_from(name.to_owned()).expect("a place");
        DecidedBy::of(&place, true)
    };
    for row in &table_3().rows {
        for class in [Class::Sufficient, Class::Insufficient] {
            let drawn = class_verdict(&row.place, [class; 2]);
            assert!(matches!(drawn, Verdict::Consistent(_)), "{drawn:?}");
        }
    }
    for by_the_line in ["RES 3/15", "RES 3/17", "RES 4/16", "RES 8/20"] {
        assert_eq!(decided(by_the_line), Some(DecidedBy::TheLine));
    }
    for by_its_share in ["RES 1/8", "RES 2/15"] {
        assert_eq!(decided(by_its_share), Some(DecidedBy::TheShare));
    }
    assert_eq!(decided("RES 1/7"), Some(DecidedBy::Itself));
    assert_eq!(decided("THR 8"), None);
}

/// Whatever delays a modem that is still at full speed, its transfers take what the line's rate asks for.
#[test]
fn a_row_at_full_speed_is_only_consistent() {
    let times = after(&[Some(37)]);
    for table in TABLES.iter() {
        let by_row: Vec<&[Attempt]> = table.rows.iter().map(|_| &times[..]).collect();
        let judged = judge(table, &by_row, &times);
        let at_full_speed = judged
            .iter()
            .filter(|row| row.classes == [Class::Sufficient; 2]);
        assert!(at_full_speed.clone().count() >= 5, "{}", table.confined);
        for row in at_full_speed.map(Judged::compared) {
            assert!(matches!(row.verdict, Verdict::Consistent(_)), "{row:?}");
        }
    }
}

/// The first row of table 1 has its shortest above its longest, and a remark says that only its mean is compared.
#[test]
fn of_a_row_that_is_misprinted_no_deviation_is_compared() {
    for table in TABLES.iter() {
        let request = Request {
            figures: vec![table.key.clone()],
            repeats: Some(2),
            ..Request::default()
        };
        let report = judged_as(&request, |number| Attempt {
            took: Some(Span::from_secs(37) + Span::from_millis(number)),
            ..Attempt::default()
        });
        let figure = &report.figures[0];
        let misprinted = |row: &&Row| row.attempts().times.is_some_and(|of| of.min > of.max);
        let misprinted: Vec<&Row> = table.rows.iter().filter(misprinted).collect();
        let of = |row: &Row| format!("{}, standard deviation", row.place.name());
        let mut compared = figure.compared.iter();
        let shown = compared.find(|shown| misprinted.iter().any(|row| shown.quantity == of(row)));
        assert_eq!(shown, None);
        let mut remarks = figure.remarks.iter();
        let is_remarked = remarks.any(|remark| remark.contains("only the mean is compared"));
        assert_eq!(is_remarked, !misprinted.is_empty(), "{}", table.key);
        let all = figure.compared.iter();
        let deviations = all.filter(|row| row.quantity.ends_with("standard deviation"));
        assert!(deviations.count() >= 7, "{}", table.key);
    }
}

#[test]
fn degraded_rows_that_were_foretold_are_counted_and_no_others() {
    let of = |table: &QuotedTable, is_true: bool| -> Vec<bool> {
        let seen: Vec<Vec<Attempt>> = table
            .rows
            .iter()
            .map(|row| {
                let mean = row.attempts().times.map(|times| times.mean);
                let attempt = |n| Attempt {
                    took: match is_true {
                        true => mean.filter(|_| n < row.attempts().succeeded),
                        false if mean.is_none() => Some(Span::from_secs(37)),
                        false => None,
                    },
                    ..Attempt::default()
                };
                (0..10).map(attempt).collect()
            })
            .collect();
        let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
        let judged = judge(table, &by_row, &after(&[Some(37)]));
        let degraded = judged.iter().filter_map(Judged::degraded);
        degraded.map(|(_, missed)| missed.is_none()).collect()
    };
    // THR 8. The other rows below full speed took part in choosing constants, 3/17 by the line of gaps; and 1/8 and 2/15 have less than their calls take.
    for is_true in [true, false] {
        assert_eq!(of(&TABLES[0], is_true), [is_true; 1]);
        assert_eq!(of(&TABLES[1], is_true), [is_true; 0]);
        assert_eq!(of(&TABLES[2], is_true), [is_true; 0]);
    }
}

/// No transfer takes less than the line's rate asks for, so a factor of the whole time would be kept by any.
#[test]
fn a_slow_row_comes_true_by_what_it_takes_longer_and_not_by_what_the_line_takes() {
    let table = &TABLES[0];
    let foretold = |slow: u64| {
        let seen: Vec<Vec<Attempt>> = table
            .rows
            .iter()
            .map(|row| match row.place.name() {
                "THR 8" => after(&[Some(slow)]),
                _ => after(&[Some(37)]),
            })
            .collect();
        let by_row: Vec<&[Attempt]> = seen.iter().map(Vec::as_slice).collect();
        let judged = judge(table, &by_row, &after(&[Some(37)]));
        let mut degraded = judged.iter().filter_map(Judged::degraded);
        let row = degraded.find(|(name, _)| *name == "THR 8");
        row.expect("it").1.is_none()
    };
    // The study's is 23 s slower than at full speed.
    assert!(foretold(60) && foretold(50) && foretold(80));
    assert!(!foretold(47) && !foretold(85));
}

#[test]
fn a_server_that_is_slower_is_not_as_fast() {
    let table = |pool: u64, server: u64| {
        let by = |table: &'static QuotedTable, seconds| {
            let seen = after(&[Some(seconds)]);
            let rows: Vec<&[Attempt]> = table.rows.iter().map(|_| &seen[..]).collect();
            judge(table, &rows, &after(&[Some(37)]))
        };
        servers(&by(&TABLES[0], pool), &by(&TABLES[1], server)).remove(0)
    };
    let slower = table(37, 38);
    assert_eq!(
        slower.twin.expect("it").value,
        Value::Text("1s slower".into())
    );
    assert!(matches!(slower.verdict, Verdict::Disagrees(_)));
    assert!(matches!(table(38, 37).verdict, Verdict::Agrees(_)));
}

#[test]
fn the_studys_own_rows_fall_into_the_classes_it_names() {
    let table = table_3();
    let int = full_speed(table);
    let class = |index: usize| {
        let row: &Row = &table.rows[index];
        (row.place.name(), Class::of(&row.attempts(), int))
    };
    assert_eq!(class(0), ("RES 1/7", Class::Sufficient));
    assert_eq!(class(1), ("RES 1/8", Class::Insufficient));
    assert_eq!(class(3), ("RES 2/14", Class::Marginal));
    assert_eq!(class(6), ("RES 3/16", Class::Marginal));
    let marginal = (0..12).filter(|index| class(*index).1 == Class::Marginal);
    assert_eq!(marginal.count(), 2);
}
