//! Task-set files: what is read, and where errors point.

use laxity_lab::import::{Format, MOST_TASKS, Policy, TaskSet, read};
use laxity_lab::scenario::Diagnostic;
use laxity_model::analysis::Preemption;
use laxity_model::analysis::multiprocessor::DeadlineRequest;
use laxity_model::{Service, Span};
use proptest::prelude::*;

fn csv(text: &str) -> Result<TaskSet, Vec<Diagnostic>> {
    read(text, "x.csv", Format::Csv)
}

fn first(text: &str) -> Diagnostic {
    csv(text).expect_err("this is no task set").remove(0)
}

#[test]
fn what_kind_of_file_it_is_follows_from_name_or_content() {
    assert_eq!(Format::of("a.CSV", ""), Some(Format::Csv));
    assert_eq!(Format::of("a.json", ""), Some(Format::RtApp));
    assert_eq!(Format::of("a.toml", "name,cost_us"), None);
    assert_eq!(Format::of("a", "# x\nname,cost_us"), Some(Format::Csv));
    assert_eq!(Format::of("-", "name;cost_us"), Some(Format::Csv));
    assert_eq!(Format::of("a", "\u{feff} { }"), Some(Format::RtApp));
    assert_eq!(Format::of("a", "/* x */ { }"), Some(Format::RtApp));
    assert_eq!(Format::of("a", "[quick]\n"), None);
    assert_eq!(Format::of("a", ""), None);
}

/// A text, where it is wrong, and a word of the cause and of the remedy.
type Mistake = (&'static str, (usize, usize), &'static str, &'static str);

const MISTAKES: &[Mistake] = &[
    ("", (1, 1), "empty", "header"),
    ("\n\n", (1, 1), "empty", "header"),
    ("name,cost_us,period_us\n", (1, 1), "no task", "add a line"),
    (
        "cost_us\n1\n",
        (1, 1),
        "no column for the period",
        "period_us",
    ),
    ("cost,period_us\n", (1, 1), "has no unit", "`cost_us`"),
    (
        "cost_us,priod_us\n",
        (1, 9),
        "no column `priod_us`",
        "period_us",
    ),
    ("cost_us,\n", (1, 9), "no name", "period_us"),
    (
        "cost_us,cost_ms,period_us\n",
        (1, 9),
        "says the same as column 1",
        "leave one",
    ),
    (
        "cost_us,period_us\n1\n",
        (2, 2),
        "1 fields, and the header 2",
        "field",
    ),
    ("cost_us,period_us\n1,2,3\n", (2, 5), "3 fields", "field"),
    (
        "cost_us,period_us\n\n# c\nµ,2\n",
        (4, 1),
        "`µ` is not a number of us",
        "2500",
    ),
    (
        "cost_us,period_us\n1, 2ms\n",
        (2, 4),
        "`2ms` is not a number",
        "column's name",
    ),
    (
        "cost_us,period_us\n-1,2\n",
        (2, 1),
        "`-1` is not a number",
        "number from 0",
    ),
    (
        "cost_us,period_us\n1.,2\n",
        (2, 1),
        "does not begin with a number",
        "",
    ),
    (
        "cost_us,period_us\n0,2\n",
        (2, 1),
        "more than zero",
        "at most",
    ),
    (
        "cost_us,period_us\n1,0\n",
        (2, 3),
        "more than zero",
        "apart",
    ),
    (
        "cost_us,period_us\n1,\n",
        (2, 3),
        "no period",
        "write its period",
    ),
    (
        "cost_us,period_us,deadline_us\n1,2,0\n",
        (2, 5),
        "more than zero",
        "due",
    ),
    (
        "cost_us,period_s\n1,99999999999999\n",
        (2, 3),
        "larger than can be counted",
        "",
    ),
    (
        "cost_ns,period_us\n1.5,2\n",
        (2, 1),
        "no whole number of nanoseconds",
        "",
    ),
    (
        "cost_us,period_us,region_us\n5,9,6\n",
        (2, 5),
        "does not fit",
        "is at most",
    ),
    (
        "cost_us,period_us,last_region_us\n5,9,1\n",
        (2, 5),
        "no longest one",
        "region_us",
    ),
    (
        "cost_us,period_us,region_us,last_region_us\n5,9,1,2\n",
        (2, 7),
        "is longer than the longest",
        "preemption point",
    ),
    (
        "cost_us,period_us,priority\n5,9,high\n",
        (2, 5),
        "`high` is not",
        "more urgent",
    ),
    (
        "cost_us,period_us,priority\n5,9,1\n5,9,\n",
        (3, 5),
        "no priority",
        "all tasks",
    ),
    (
        "cost_us,period_us,processor\n5,9,64\n",
        (2, 5),
        "0 to 63",
        "first is 0",
    ),
    (
        "name,cost_us,period_us\na,1,2\n\"a\",1,2\n",
        (3, 1),
        "in line 2",
        "own name",
    ),
    (
        "name;cost_us;period_ms\na;1000;10\n",
        (1, 1),
        "separated by semicolons",
        "by commas",
    ),
    (
        "cost_us\tperiod_ms\n1000\t10\n",
        (1, 1),
        "separated by tabs",
        "by commas",
    ),
    (
        "cost_us,period_us\n1;2\n",
        (2, 4),
        "1 fields, and the header 2",
        "by commas",
    ),
    (
        "name,cost_us,period_us\n\u{1b}[31mred,1,2\n",
        (2, 1),
        "`\\u{1b}[31mred` has a control character",
        "one line",
    ),
    (
        "cost_us,period_us,name\n1,2,\"a\nb\"\n",
        (2, 5),
        "`a\\nb` has a control character",
        "one line",
    ),
    (
        "cost_us,period_us\n\u{7},2\n",
        (2, 1),
        "`\\u{7}` is not a number",
        "2500",
    ),
    (
        "cost_us,period_us,region_us,last_region_us\n5,9,0,1\n",
        (2, 7),
        "no longest one",
        "region_us",
    ),
];

#[test]
fn no_region_is_none_or_nothing_known_of_it() {
    let text = "cost_us,period_us,region_us,last_region_us\n5,9,0,0\n5,9,0,\n5,9,,\n5,9,2,0\n5,9,2,\n5,9,2,1\n";
    let set = csv(text).expect("a task set");
    let micros = Service::from_micros;
    let found: Vec<Preemption> = set
        .tasks
        .iter()
        .map(|task| task.work.clone().expect("analysable").preemption())
        .collect();
    let floating = Preemption::Floating { longest: micros(2) };
    let fixed = Preemption::Fixed {
        longest: micros(2),
        last: micros(1),
    };
    let anywhere = Preemption::Anywhere;
    assert_eq!(
        found,
        [anywhere, anywhere, anywhere, floating, floating, fixed]
    );
}

/// What rt-app's own examples are made of: a waker, sleepers that say `"suspend",` and no more, queues behind a lock, phases and spare commas.
const PLAYER: &str = r#"{
	/* a player: a tick wakes the decoder, the decoder the output */
	"tasks" : {
		"tick" : {
			"priority" : -19,
			"loop" : -1,
			"phases" : {
				"first" : { "loop" : 1, "resume" : "output", "timer" : { "ref" : "tick", "period": 6000 } },
				"rest" : { "loop" : 4, "timer" : { "ref" : "tick", "period": 6000 }, },
			},
		},
		"output" : {
			"suspend",
			"run" : 275,
			"resume" : "decoder",
			"run" : 4725, // the second of its name
			"sync" : { "ref" : "queue", "mutex" : "mutex" }
		},
		"decoder" : {
			"suspend" : "decoder",
			"run" : 1000,
			"lock" : "mutex",
			"signal" : "queue",
			"wait" : { "ref" : "queue", "mutex" : "mutex" },
			"unlock" : "mutex",
			"run" : 150,
		},
		"effects" : {
			"policy" : "SCHED_FIFO",
			"run" : 300, "yield", "timer" : { "ref" : "unique", "period" : 6000, "mode" : "absolute" }
		},
		"display" : { "priority" : -7, "run" : 1500, "suspend" }
	},
	"global" : { "duration" : 6, "default_policy" : "SCHED_OTHER", "pi_enabled" : false, }
}"#;

#[test]
fn what_rt_apps_examples_are_made_of_is_read() {
    let set = read(PLAYER, "player.json", Format::RtApp).expect("a task set");
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["tick", "output", "decoder", "effects", "display"]);
    let known: Vec<bool> = set.tasks.iter().map(|task| task.work.is_ok()).collect();
    assert_eq!(known, [false, false, false, true, false]);
    let effects = set.tasks[3].work.clone().expect("analysable");
    assert_eq!(effects.cost(), Service::from_micros(300));
    assert_eq!(effects.period(), Span::from_millis(6));
    let says = |text: &str| set.notes.iter().any(|note| note.contains(text));
    assert!(says(
        "`tick` is not analysed: it has no events that take time"
    ));
    assert!(says("`output` is not analysed: `suspend` in line 13"));
    assert!(says("`display` is not analysed: `suspend` in line 32"));
}

#[test]
fn every_mistake_points_at_its_line_and_column() {
    for &(text, place, cause, remedy) in MISTAKES {
        let found = first(text);
        assert_eq!((found.line, found.column), place, "{text:?}: {found}");
        assert!(found.cause.contains(cause), "{text:?}: {found}");
        assert!(found.remedy.contains(remedy), "{text:?}: {found}");
        assert!(found.to_string().contains("x.csv"), "{found}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let found = csv("cost_us,period_us\nx,y\n1,2\n0,1\n").expect_err("three mistakes");
    let lines: Vec<usize> = found.iter().map(|error| error.line).collect();
    assert_eq!(lines, [2, 2, 4]);
}

#[test]
fn a_set_has_at_most_so_many_tasks() {
    let many = |tasks: usize| format!("cost_us,period_us\n{}", "1,2\n".repeat(tasks));
    assert_eq!(
        csv(&many(MOST_TASKS)).map(|set| set.tasks.len()),
        Ok(MOST_TASKS)
    );
    let found = csv(&many(MOST_TASKS + 5)).expect_err("too many");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].line, MOST_TASKS + 2);
}

#[test]
fn the_shipped_sets_are_what_they_say() {
    let text = include_str!("../../../../scenarios/upcalls-12.csv");
    let set = csv(text).expect("a task set");
    assert_eq!(set.tasks.len(), 12);
    let mut load = 0.0;
    for task in &set.tasks {
        let work = task.work.clone().expect("analysable");
        let ratio = work.cost().as_nanos() as f64 / work.period().as_nanos() as f64;
        load += ratio;
        assert!((ratio - 0.8 / 12.0).abs() < 2e-5, "{}: {ratio}", task.name);
        let Preemption::Fixed { longest, last } = work.preemption() else {
            panic!("{}: {:?}", task.name, work.preemption());
        };
        // Four regions of whole microseconds: the longest is no less than a quarter, the last no more.
        let micros = work.cost().as_nanos() / 1_000;
        assert_eq!(longest, Service::from_micros(micros.div_ceil(4)));
        assert_eq!(last, Service::from_micros(micros / 4));
    }
    assert!((0.7998..=0.8).contains(&load), "{load}");

    let text = include_str!("../../../../scenarios/rt-app.json");
    let set = read(text, "rt-app.json", Format::RtApp).expect("a task set");
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(
        names,
        ["video", "control", "sensor-1", "sensor-2", "logger"]
    );
    let period = Span::from_millis(20);
    let video = Policy::Deadline(DeadlineRequest {
        runtime: Service::from_millis(3),
        period,
        deadline: period,
    });
    assert_eq!(set.tasks[0].policy, video);
    assert_eq!(set.tasks[4].policy, Policy::Timesharing);
    assert!(set.tasks[4].work.is_err());
    // The kernel binds no SCHED_DEADLINE task to one processor of several.
    assert_eq!(set.tasks[0].processor(), None);
    let mut bound = set.tasks[1..].iter();
    assert!(bound.all(|task| task.processor() == Some(0)));
    let [ignored, unknown] = set.notes.as_slice() else {
        panic!("{:?}", set.notes);
    };
    assert!(ignored.ends_with("depends on it: `duration`"), "{ignored}");
    assert!(unknown.contains("`lock` in line 35"), "{unknown}");
}

/// Texts that are almost task sets: pieces of them in any order.
fn almost(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(pieces).prop_map(str::to_owned);
    let piece = prop_oneof![9 => piece, 1 => any::<char>().prop_map(String::from)];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

const CSV: &[&str] = &[
    "cost_us,period_us\n",
    "name,cost_ms,period_s,priority\n",
    ",",
    "\n",
    "\r\n",
    "\"",
    "\"\"",
    "#",
    "1",
    "2.5",
    "99999999999999999999",
    "a",
    " ",
    "region_us",
    "last_region_us",
    "\u{feff}",
    "µ",
    ";",
    "\t",
    "\u{1b}",
];
const JSON: &[&str] = &[
    "{\"tasks\":{\"a\":{",
    "\"run\":1000,",
    "\"timer\":{\"ref\":\"unique\",\"period\":9000},",
    "}",
    "}}}",
    "{",
    "[",
    "]",
    ",",
    ":",
    "\"phases\":{\"p\":{",
    "\"sleep\":5,",
    "\"lock\":\"m\",",
    "\"suspend\",",
    "'yield'",
    "\"instance\":3,",
    "\"cpus\":[1,2],",
    "\"policy\":\"SCHED_FIFO\",",
    "\"priority\":9,",
    "\"policy\":\"SCHED_DEADLINE\",\"dl-runtime\":5,",
    "/* x */",
    "// y\n",
    "18446744073709551615",
    "-1",
    "true",
    "\"global\":{\"default_policy\":\"SCHED_RR\"}",
    "\n",
    "é",
];

/// The text is a set that reads the same again, or every error points into it and has a remedy.
fn check(text: &str, format: Format) {
    match read(text, "x", format) {
        Ok(set) => {
            assert!((1..=MOST_TASKS).contains(&set.tasks.len()));
            let names = set.tasks.iter().map(|task| task.name.as_str());
            let said = set.notes.iter().map(String::as_str);
            for shown in names.chain(said) {
                assert!(!shown.chars().any(char::is_control), "{shown:?}");
            }
            assert_eq!(read(text, "x", format), Ok(set));
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "refused without a reason");
            for error in errors {
                let line = text.split('\n').nth(error.line - 1);
                let line = line.expect("the line is one of the text's");
                assert!(
                    (1..=line.chars().count() + 1).contains(&error.column),
                    "{error:?}"
                );
                assert!(
                    !error.cause.is_empty() && !error.remedy.is_empty(),
                    "{error:?}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>(), csv in almost(CSV), json in almost(JSON)) {
        for text in [&text, &csv, &json] {
            check(text, Format::Csv);
            check(text, Format::RtApp);
        }
    }
}
