//! What every experiment leaves behind: the table, the file for programs, and the page.

use laxity_lab::report::{
    Attempts, Axis, Cell, Chart, Check, Compared, Figure, Mark, Origin, Report, Series, Table,
    Times, Unit, Value, Verdict, json, page, svg, text,
};
use laxity_model::Span;
use serde_json::Value as Json;

/// Tables fit here.
const WIDTH: usize = 80;

fn cell(value: Value, origin: Origin) -> Option<Cell> {
    Some(Cell { value, origin })
}

fn micros(micros: u64) -> Value {
    Value::Span(Span::from_micros(micros))
}

fn attempts(succeeded: u32, times_ms: Option<[u64; 4]>) -> Value {
    Value::Attempts(Attempts {
        made: 10,
        succeeded,
        times: times_ms.map(|times| {
            let [min, max, mean, deviation] = times.map(Span::from_millis);
            Times {
                min,
                max,
                mean,
                deviation,
            }
        }),
    })
}

fn axis(label: &str, unit: Unit, logarithmic: bool) -> Axis {
    Axis {
        label: label.into(),
        unit,
        logarithmic,
        range: None,
    }
}

fn series(name: &str, mark: Mark, points: Vec<(i64, i64)>) -> Series {
    Series {
        name: name.into(),
        mark,
        points,
    }
}

fn histogram() -> Chart {
    let bar = Mark::Bars { width: 50_000 };
    Chart {
        caption: "Gaps between wake-ups".into(),
        x: axis("gap", Unit::Nanoseconds, false),
        y: axis("wake-ups", Unit::Count, true),
        series: vec![
            series("alone", bar, vec![(950_000, 29_280), (1_950_000, 720)]),
            series(
                "INT",
                bar,
                vec![(950_000, 20_000), (3_100_000, 40), (5_300_000, 1)],
            ),
        ],
        lines: vec![],
    }
}

fn map() -> Chart {
    let milli = 1_000_000;
    Chart {
        caption: "Which reservations suffice".into(),
        x: axis("period", Unit::Nanoseconds, false),
        y: axis("amount", Unit::Nanoseconds, false),
        series: vec![
            series(
                "sufficient",
                Mark::Filled,
                vec![(7 * milli, milli), (13 * milli, 2 * milli)],
            ),
            series("marginal", Mark::Half, vec![(14 * milli, 2 * milli)]),
            series("insufficient", Mark::Empty, vec![(8 * milli, milli)]),
        ],
        lines: vec![("14.7 %".into(), (0, 0), (20 * milli, 2_940_000))],
    }
}

fn gaps() -> Figure {
    let paper = |micros_of| cell(micros(micros_of), Origin::Quoted);
    Figure {
        key: "figure-10".into(),
        title: "Figure 10: a 1 ms callback beside the modem".into(),
        about: "30,000 wake-ups at priority 31, buckets of 50 µs.".into(),
        charts: vec![histogram()],
        compared: vec![
            Compared {
                quantity: "largest gap, INT".into(),
                paper: paper(5_313),
                twin: cell(micros(5_276), Origin::Simulated),
                predicted: cell(micros(4_120), Origin::Predicted),
                live: cell(micros(4_391), Origin::Measured),
                verdict: Verdict::Agrees("within 15 %".into()),
                live_verdict: Verdict::Alone,
            },
            Compared {
                quantity: "wake-ups near 2 ms, no modem".into(),
                paper: cell(Value::Share(24_000), Origin::Quoted),
                twin: cell(Value::Share(23_438), Origin::Charged),
                predicted: None,
                live: None,
                verdict: Verdict::Consistent("the twin's clock has this rate".into()),
                live_verdict: Verdict::Alone,
            },
            Compared {
                quantity: "wake-ups".into(),
                paper: cell(Value::Count(30_000), Origin::Quoted),
                twin: cell(Value::Count(30_000), Origin::Simulated),
                predicted: None,
                live: None,
                verdict: Verdict::Alone,
                live_verdict: Verdict::Alone,
            },
        ],
        remarks: vec!["The clock of the study ticks 1024 times a second.".into()],
        ..Figure::default()
    }
}

fn transfers() -> Figure {
    let words = |word: &str| cell(Value::Text(word.into()), Origin::Simulated);
    Figure {
        key: "table-2".into(),
        title: "Table 2: transfers of 200,000 bytes".into(),
        charts: vec![map()],
        compared: vec![
            Compared {
                quantity: "RES 2/8".into(),
                paper: cell(
                    attempts(10, Some([36_319, 36_444, 36_378, 38])),
                    Origin::Quoted,
                ),
                twin: cell(
                    attempts(10, Some([36_334, 36_420, 36_371, 30])),
                    Origin::Simulated,
                ),
                predicted: None,
                live: None,
                verdict: Verdict::Agrees("same class; mean within 1 %".into()),
                live_verdict: Verdict::Alone,
            },
            Compared {
                quantity: "RES 1/8".into(),
                paper: cell(attempts(0, None), Origin::Quoted),
                twin: cell(
                    attempts(1, Some([83_336, 83_336, 83_336, 0])),
                    Origin::Simulated,
                ),
                predicted: None,
                live: None,
                verdict: Verdict::Disagrees("one transfer came through".into()),
                live_verdict: Verdict::Alone,
            },
        ],
        tables: vec![Table {
            caption: "Rates of the link".into(),
            columns: ["direction", "rate", "× V.34"].map(Into::into).into(),
            rows: vec![
                vec![
                    words("down"),
                    cell(Value::BitRate(50_600), Origin::Charged),
                    cell(Value::Ratio(1_506), Origin::Simulated),
                ],
                vec![
                    words("up"),
                    cell(Value::BitRate(28_800), Origin::Calibrated),
                    None,
                ],
            ],
        }],
        ..Figure::default()
    }
}

fn report() -> Report {
    Report {
        experiment: "modem",
        title: "A soft modem under reservations".into(),
        summary: vec!["With 2 ms in every 8 ms nothing is lost and nobody is held up.".into()],
        circumstances: vec![("host", "twin win2000-pii450".into()), ("seed", "1".into())],
        figures: vec![gaps(), transfers()],
        checks: vec![
            Check {
                claim: "co-thread maxima within 15 % of the study's".into(),
                held: Some(true),
                seen: "largest difference 7 %".into(),
            },
            Check {
                claim: "1/8 fails".into(),
                held: Some(false),
                seen: "1 of 10 transfers came through".into(),
            },
        ],
    }
}

#[test]
fn a_person_reads_a_table() {
    let shown = text::render(&report(), WIDTH);
    for line in shown.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_program_reads_integers_with_units() {
    let bytes = json::render(&report());
    let shown = String::from_utf8(bytes).expect("text");
    let parsed: Json = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(parsed["file_version"], json::FILE_VERSION);
    assert_eq!(parsed["holds"], false);
    assert_eq!(
        parsed["figures"][0]["compared"][0]["paper"]["span_ns"],
        5_313_000
    );
    no_fraction(&parsed);
    // One line for each point would be unreadable, one for all would hide every difference.
    assert!(
        shown
            .lines()
            .any(|line| line.contains("[[950000,29280],[1950000,720]]"))
    );
    let version = env!("CARGO_PKG_VERSION");
    insta::assert_snapshot!(shown.replace(&format!("\"{version}\""), "\"(version)\""));
}

/// What a difference between two machines could hide in.
fn no_fraction(value: &Json) {
    match value {
        Json::Number(number) => assert!(number.is_i64() || number.is_u64(), "{number}"),
        Json::Array(items) => items.iter().for_each(no_fraction),
        Json::Object(items) => items.values().for_each(no_fraction),
        _ => {}
    }
}

#[test]
fn every_value_is_in_the_file_under_a_key_with_its_unit_and_its_origin() {
    let parsed: Json = serde_json::from_slice(&json::render(&report())).expect("JSON");
    let keys = [
        "span_ns",
        "count",
        "share_ppm",
        "ratio_thousandths",
        "bit_rate_bit_s",
        "attempts",
        "text",
    ];
    let mut seen = 0;
    let mut check = |cell: &Json| {
        let cell = cell.as_object().expect("a cell");
        assert!(cell["origin"].is_string(), "{cell:?}");
        assert_eq!(cell.len(), 2, "{cell:?}");
        assert!(
            cell.keys().any(|key| keys.contains(&key.as_str())),
            "{cell:?}"
        );
        seen += 1;
    };
    for figure in parsed["figures"].as_array().expect("figures") {
        for row in figure["compared"].as_array().expect("rows") {
            let sources = ["paper", "twin", "predicted", "live"];
            sources
                .iter()
                .filter_map(|source| row.get(source))
                .for_each(&mut check);
        }
        for table in figure["tables"].as_array().expect("tables") {
            for row in table["rows"].as_array().expect("rows") {
                let cells = row.as_array().expect("cells");
                cells
                    .iter()
                    .filter(|cell| !cell.is_null())
                    .for_each(&mut check);
            }
        }
    }
    assert_eq!(
        seen,
        report().figures.iter().flat_map(Figure::cells).count()
    );
}

#[test]
fn the_page_is_whole_and_stands_alone() {
    let page = page::render(&report()).expect("a page");
    // Kept for a look with a browser.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/report.html"), &page).expect("a file");
    well_formed(&page);
    stands_alone(&page);
    for there in [
        "paper <i class=\"o Q\">quoted</i></th>",
        ">5.313\u{a0}ms</td>",
        ">disagrees<",
        ">not held<",
        "1 of 2 checks did not hold",
    ] {
        assert!(page.contains(there), "{there}");
    }
    assert!(
        !page.contains("<nav"),
        "two figures need no table of contents"
    );
    let mut many = report();
    many.figures.extend([gaps(), gaps(), gaps()]);
    let page = page::render(&many).expect("a page");
    well_formed(&page);
    assert_eq!(page.matches("href=\"#").count(), 6);
    assert_eq!(page, page::render(&many).expect("a page"));
}

/// Nothing is fetched and nothing is run.
fn stands_alone(page: &str) {
    for outside in [
        "http:", "https:", "src=", "<script", "@import", "url(", "<link", "NaN",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_hundred_thousand_dots_are_small_and_every_figure_stays_readable() {
    // Any generator will do; this one is Knuth's.
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let dots = |random: &mut dyn FnMut() -> i64| {
        let points = (0..100_000).map(|index| (index * 600_000, random() % 5_000_000));
        Chart {
            x: axis("time", Unit::Nanoseconds, false),
            y: axis("elapsed", Unit::Nanoseconds, false),
            series: vec![series("each wake-up", Mark::Dots, points.collect())],
            ..histogram()
        }
    };
    let mut large = report();
    large.figures.clear();
    for _ in 0..20 {
        let mut figure = gaps();
        let bars = (0..400).map(|bucket| (bucket * 50_000, random() % 30_000));
        let mut second = histogram();
        second.series[1].points = bars.collect();
        figure.charts = vec![dots(&mut random), second];
        let row = figure.compared[0].clone();
        figure.compared.resize(15, row);
        large.figures.push(figure);
    }
    let page = page::render(&large).expect("a page");
    assert!(page.len() <= 300_000, "{} bytes", page.len());
    well_formed(&page);
    let one = svg::alone(&large.figures[0].charts[0]);
    assert!(one.len() < 40_000, "{} bytes", one.len());
    assert!(
        one.len() > 5_000,
        "{} bytes: too thin to show anything",
        one.len()
    );
}

#[test]
fn names_are_shown_not_obeyed() {
    let hostile = "</title><script>alert('x')</script>\" onload=\"x\u{1b}[2J\n&amp; --> ]]>";
    let name = || hostile.to_owned();
    let mut bad = report();
    bad.title = name();
    bad.summary = vec![name()];
    bad.circumstances = vec![("host", name())];
    bad.checks[0].claim = name();
    bad.checks[0].seen = name();
    let figure = &mut bad.figures[0];
    (figure.key, figure.title, figure.about) = (name(), name(), name());
    figure.remarks = vec![name()];
    figure.compared[0].quantity = name();
    figure.compared[0].verdict = Verdict::Disagrees(name());
    figure.compared[0].twin = cell(Value::Text(name()), Origin::Simulated);
    figure.tables = vec![Table {
        caption: name(),
        columns: vec![name()],
        rows: vec![vec![cell(Value::Text(name()), Origin::Quoted)]],
    }];
    let chart = &mut figure.charts[0];
    chart.caption = name();
    (chart.x.label, chart.y.label) = (name(), name());
    chart.series[0].name = name();
    chart.lines = vec![(name(), (0, 0), (1, 1))];
    let alone = svg::alone(chart);
    let page = page::render(&bad).expect("a page");
    for markup in [&page, &alone] {
        well_formed(markup);
        assert!(
            !markup.contains("<script") && !markup.contains("onload=\""),
            "{markup}"
        );
    }
    let shown = text::render(&bad, WIDTH);
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= WIDTH),
        "{shown}"
    );
    let parsed: Json = serde_json::from_slice(&json::render(&bad)).expect("JSON");
    assert_eq!(parsed["title"], hostile);
}

#[test]
fn drawings_of_their_own_are_whole() {
    for chart in [histogram(), map()] {
        let file = svg::alone(&chart);
        well_formed(&file);
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    }
}

#[test]
fn a_report_with_nothing_in_it_is_a_report() {
    let nothing = Report {
        experiment: "modem",
        ..Report::default()
    };
    well_formed(&page::render(&nothing).expect("a page"));
    assert!(text::render(&nothing, WIDTH).contains("nothing was claimed"));
    let parsed: Json = serde_json::from_slice(&json::render(&nothing)).expect("JSON");
    assert_eq!(parsed["holds"], true);
}

/// Elements of HTML that have no end.
const VOID: [&str; 3] = ["meta", "br", "!doctype"];

/// Checks that every element ends where it should, that attributes are quoted, and that no character is left over for markup.
#[track_caller]
fn well_formed(markup: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(begin) = rest.find('<') {
        assert!(
            !rest[..begin].contains('>'),
            "a loose `>` before {:.60}",
            &rest[begin..]
        );
        let inside = &rest[begin + 1..];
        let end = inside.find('>').expect("every tag ends");
        let tag = &inside[..end];
        rest = &inside[end + 1..];
        assert!(!tag.contains('<'), "<{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "</{name}> ends what it should not; {open:?}"
            );
            continue;
        }
        let name = tag
            .split([' ', '/'])
            .next()
            .expect("there is always a first");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '!';
        assert!(!name.is_empty() && name.chars().all(is_plain), "<{tag}>");
        let quotes = tag.matches('"').count();
        assert!(
            quotes.is_multiple_of(2) && quotes / 2 == tag.matches("=\"").count(),
            "<{tag}>"
        );
        if VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if name == "style" {
            let end = rest.find("</style>").expect("the style ends");
            rest = &rest[end..];
        }
        open.push(name);
    }
    assert!(open.is_empty(), "not closed: {open:?}");
}
