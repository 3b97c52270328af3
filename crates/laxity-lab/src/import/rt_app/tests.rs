mod large;
mod twice;

use laxity_model::Service;

use super::*;
use crate::import;
use crate::scenario::Diagnostic;

fn set(text: &str) -> TaskSet {
    import::read(text, "x.json", Format::RtApp).expect("a task set")
}

fn refused(text: &str) -> Diagnostic {
    let mut errors = import::read(text, "x.json", Format::RtApp).expect_err("no task set");
    errors.remove(0)
}

fn only(text: &str) -> (SetTask, Vec<String>) {
    let mut set = set(&format!("{{ \"tasks\": {{ \"a\": {{ {text} }} }} }}"));
    assert_eq!(set.tasks.len(), 1);
    (set.tasks.remove(0), set.notes)
}

const TIMER: &str = "\"timer\": { \"ref\": \"unique\", \"period\": 10000 }";

#[test]
fn the_dialect_has_comments_spare_commas_and_events_of_one_name() {
    let text = format!("/* a comment */ \"run\": 1000, \"run\": 500, // another\n {TIMER},");
    let (task, notes) = only(&text);
    let work = task.work.expect("analysable");
    assert_eq!(work.cost(), Service::from_micros(1_500));
    assert_eq!(work.period(), Span::from_millis(10));
    assert_eq!(task.policy, Policy::Timesharing);
    let [again] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(
        again.contains("`a`: `run` stands there again in line 1"),
        "{again}"
    );
}

#[test]
fn phases_are_the_largest_job_at_the_shortest_timer() {
    let phase = |run: u32, period: u32| {
        format!(
            "{{ \"loop\": 10, \"run0\": {run}, \"timer0\": {{ \"ref\": \"unique\", \"period\": {period} }} }}"
        )
    };
    let (light, heavy) = (phase(1_000, 30_000), phase(4_000, 60_000));
    let (task, notes) = only(&format!("\"phases\": {{ \"p\": {light}, \"q\": {heavy} }}"));
    let work = task.work.expect("analysable");
    assert_eq!(work.cost(), Service::from_millis(4));
    assert_eq!(work.period(), Span::from_millis(30));
    assert!(notes[0].contains("timers differ"), "{notes:?}");
}

#[test]
fn what_runs_behind_the_last_timer_belongs_to_the_next_job() {
    let (task, _) = only(&format!("\"run0\": 1000, {TIMER}, \"run1\": 2000"));
    assert_eq!(
        task.work.expect("analysable").cost(),
        Service::from_millis(3)
    );
}

#[test]
fn sleeps_are_run_within_a_job_and_its_pause_without_a_timer() {
    let (task, notes) = only(&format!("\"run\": 1000, \"sleep\": 500, {TIMER}"));
    assert_eq!(
        task.work.expect("analysable").cost(),
        Service::from_micros(1_500)
    );
    assert!(notes[0].contains("as if it ran"), "{notes:?}");
    assert!(task.sleeps);
    let (task, notes) = only("\"run\": 5000, \"sleep\": 10000");
    assert!(task.sleeps);
    let work = task.work.expect("analysable");
    assert_eq!(
        (work.cost(), work.period(), work.jitter()),
        (
            Service::from_millis(5),
            Span::from_millis(15),
            Span::from_millis(5)
        )
    );
    assert!(notes[0].contains("may come 5ms early"), "{notes:?}");
}

#[test]
fn what_cannot_be_told_is_named_and_not_guessed() {
    let cases = [
        (format!("\"lock\": \"m\", \"run\": 10, {TIMER}"), "`lock`"),
        (format!("\"mem\": 4096, {TIMER}"), "`mem`"),
        (
            format!("\"sem_wait\": \"s\", \"run\": 10, {TIMER}"),
            "`sem_wait`",
        ),
        (
            format!("\"suspend\", \"run\": 10, {TIMER}"),
            "`suspend` in line 1",
        ),
        (
            format!("\"run\": 10, {TIMER}, \"timer1\": {{ \"ref\": \"other\", \"period\": 5 }}"),
            "several timers",
        ),
        ("\"run\": 10".into(), "without ever waiting"),
        (String::new(), "no events that take time"),
        (
            "\"exec\": 1000, \"period\": 10000, \"deadline\": 10000".into(),
            "`exec` in line 1 is of an older rt-app",
        ),
        (
            format!("\"resume\": \"b\", {TIMER}"),
            "no events that take time",
        ),
        (
            format!("\"phases\": {{ \"p\": {{ \"run\": 1 }}, \"q\": {{ \"run\": 1, {TIMER} }} }}"),
            "some of its phases",
        ),
    ];
    for (text, word) in cases {
        let (task, notes) = only(&text);
        let why = task.work.expect_err("not analysable");
        assert!(why.contains(word), "{why}");
        assert!(notes[0].contains("not analysed"), "{notes:?}");
    }
}

#[test]
fn a_key_that_nobody_knows_is_named_and_never_passed_over() {
    // What it is to do is not known: so is not what the task does, and it is not refused.
    for text in [
        format!("\"run\": 10, \"colour\": 1, {TIMER}"),
        format!("\"phases\": {{ \"p\": {{ \"run\": 10, \"colour\": 1, {TIMER} }} }}"),
    ] {
        let (task, notes) = only(&text);
        let why = task.work.expect_err("not analysable");
        assert!(
            why.contains("`colour` in line 1 is no key of rt-app"),
            "{why}"
        );
        assert!(notes[0].contains("not analysed"), "{notes:?}");
    }
    // What is nearly one was meant to be it.
    let slips = [
        ("\"slep\": 10", "slep", "sleep"),
        ("\"prioriy\": 10", "prioriy", "priority"),
        ("\"dl_runtime\": 10", "dl_runtime", "dl-runtime"),
        ("\"instances\": 10", "instances", "instance"),
        ("\"phases\": { \"p\": { \"lop\": 1 } }", "lop", "loop"),
        ("\"timer\": { \"perod\": 1 }", "perod", "period"),
    ];
    for (text, slip, meant) in slips {
        let found = refused(&format!("{{ \"tasks\": {{ \"a\": {{ {text} }} }} }}"));
        assert!(found.cause.contains(&format!("no key `{slip}`")), "{found}");
        assert_eq!(found.remedy, format!("did you mean `{meant}`?"));
    }
    let found = refused("{ \"global\": { \"default_polcy\": \"SCHED_FIFO\" }, \"tasks\": {} }");
    assert!(found.remedy.contains("`default_policy`"), "{found}");
    let found = refused(&format!(
        "{{ \"tasks\": {{ \"a\": {{ \"run\": 1, \"timer\": {{ \"period\": 9, \"colour\": 1 }} }} }}, \"b\": {{ {TIMER} }} }}"
    ));
    assert!(
        found.cause.contains("a timer has no key `colour`"),
        "{found}"
    );
}

#[test]
fn what_rt_app_knows_and_no_analysis_is_named_as_ignored() {
    let text = format!(
        "{{ \"global\": {{ \"duration\": 5, \"log_basename\": \"x\", \"gnuplot\": true, \"ftrace\": \"none\", \"default_policy\": \"SCHED_FIFO\" }}, \"resources\": {{}}, \"scenery\": 1, \"tasks\": {{ \"a\": {{ \"util_min\": 10, \"sleep\": 7, \"phases\": {{ \"p\": {{ \"run\": 1000, {TIMER} }} }} }} }} }}"
    );
    let set = set(&text);
    assert_eq!(set.tasks[0].policy, Policy::Priority(10));
    let work = set.tasks[0].work.as_ref().expect("analysable");
    assert_eq!(work.cost(), Service::from_millis(1));
    let expected = [
        "the file: ignored, as nothing that is analysed depends on it: `resources`",
        "the file: `scenery` in line 1 is no key of rt-app, and ignored",
        "`global`: ignored, as nothing that is analysed depends on it: `duration`, `log_basename`, `gnuplot`, `ftrace`",
        "`a`: ignored, as nothing that is analysed depends on it: `util_min`, `sleep`",
    ];
    assert_eq!(set.notes, expected);
}

#[test]
fn policies_are_read_with_their_parameters_and_defaults() {
    let run = format!("\"run\": 1000, {TIMER}");
    let (task, _) = only(&format!("{run}, \"policy\": \"SCHED_FIFO\""));
    assert_eq!(
        (task.policy, task.takes_turns),
        (Policy::Priority(10), false)
    );
    let (task, _) = only(&format!(
        "{run}, \"policy\": \"SCHED_RR\", \"priority\": 42, \"cpus\": [1]"
    ));
    assert_eq!(
        (task.policy, task.processor()),
        (Policy::Priority(42), Some(1))
    );
    assert!(task.takes_turns);
    let (task, _) = only(&format!(
        "{run}, \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 2000, \"dl-period\": 8000"
    ));
    let period = Span::from_millis(8);
    let deadline = Policy::Deadline(DeadlineRequest {
        runtime: Service::from_millis(2),
        period,
        deadline: period,
    });
    assert_eq!(task.policy, deadline);
    assert_eq!(task.work.expect("analysable").deadline(), period);
}

#[test]
fn instances_and_equal_names_are_told_apart() {
    let one = format!("{{ \"instance\": 2, \"run\": 1, {TIMER} }}");
    let set = set(&format!(
        "{{ \"tasks\": {{ \"a\": {one}, \"a\": {one} }} }}"
    ));
    let names: Vec<&str> = set.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a-1", "a-2", "a-1.2", "a-2.2"]);
}

#[test]
fn errors_point_at_the_place() {
    let found = refused("{\n  \"tasks\": {\n    \"a\": { \"run\": -5 }\n  }\n}");
    assert_eq!((found.line, found.column), (3, 19));
    assert!(found.cause.contains("no whole number"));
    let found = refused("{ \"tasks\": { \"a\": { \"policy\": \"SCHED_BEST\" } } }");
    assert!(found.remedy.contains("SCHED_FIFO"));
    assert!(refused("[1]").cause.contains("no JSON object"));
    assert!(refused("{").line == 1);
    assert!(refused("{}").cause.contains("`tasks`"));
    let overflow = format!(
        "{{ \"tasks\": {{ \"a\": {{ \"run\": {}, {TIMER} }} }} }}",
        u64::MAX
    );
    assert!(
        refused(&overflow)
            .cause
            .contains("more than can be counted")
    );
    let many = "{ \"tasks\": { \"a\": { \"instance\": 1001, \"run\": 1, \"sleep\": 1 } } }";
    assert!(refused(many).cause.contains("1000 tasks"));
}

#[test]
fn an_event_needs_no_value_only_where_rt_app_needs_none() {
    let (task, notes) = only(&format!("\"run\": 1000, \"yield\", {TIMER}"));
    assert_eq!(
        task.work.expect("analysable").cost(),
        Service::from_millis(1)
    );
    assert!(notes.is_empty(), "{notes:?}");
    let found = refused("{ \"tasks\": {\n \"a\": { \"suspend\", \"lock\", \"run\": 1 } } }");
    assert_eq!(found.line, 2);
    assert!(found.remedy.contains("need no value"), "{found}");
    let found = refused("{ \"tasks\": {\n \"a\": { \"suspend\", \"run\": -5 } } }");
    assert_eq!((found.line, found.column), (2, 27));
}

/// Whoever refuses these refuses more than the file has.
#[test]
fn what_begins_later_or_ends_or_changes_may_ask_for_less() {
    let phase = |run: u32| format!("{{ \"run\": {run}, {TIMER} }}");
    let [light, heavy] = [phase(1_000), phase(7_000)];
    let table = [
        (format!("\"run\": 1, {TIMER}"), None),
        (format!("\"run\": 1, {TIMER}, \"loop\": -1"), None),
        (format!("\"run\": 1, {TIMER}, \"loop\": 5"), Some("it ends")),
        (format!("\"run\": 1, {TIMER}, \"delay\": 0"), None),
        (
            format!("\"run\": 1, {TIMER}, \"delay\": 9"),
            Some("it begins later"),
        ),
        (
            format!("\"phases\": {{ \"p\": {light}, \"q\": {light} }}"),
            None,
        ),
        (
            format!("\"phases\": {{ \"p\": {light}, \"q\": {heavy} }}"),
            Some("phases differ"),
        ),
        (
            format!(
                "\"run0\": 1, {TIMER}, \"run1\": 7, \"timer1\": {{ \"ref\": \"unique\", \"period\": 10000 }}"
            ),
            Some("its jobs differ"),
        ),
    ];
    for (text, why) in table {
        let (task, notes) = only(&text);
        assert_eq!(task.asks_less, why.is_some(), "{text}");
        let is_told = |why: &str| notes.iter().any(|note| note.contains(why));
        assert!(why.is_none_or(is_told), "{text}: {notes:?}");
    }
}

/// A task with this on the thread and this in its second phase.
fn with_a_phase_of(thread: &str, phase: &str) -> (SetTask, Vec<String>) {
    let plain = format!("{{ \"run\": 1000, {TIMER} }}");
    let other = format!("{{ {phase} \"run\": 1000, {TIMER} }}");
    only(&format!(
        "{thread} \"phases\": {{ \"p\": {plain}, \"q\": {other} }}"
    ))
}

const FIFO: &str = "\"policy\": \"SCHED_FIFO\", \"priority\": 50,";
const RESERVED: &str =
    "\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 5000, \"dl-period\": 10000,";

/// rt-app schedules a phase as the phase says; what a phase may be at most is what counts for others.
#[test]
fn a_phase_that_is_scheduled_otherwise_than_its_thread_is_not_analysed() {
    let at_most = |level| Policy::Changing(Some(level));
    let any = Policy::Changing(None);
    let table = [
        (FIFO, "\"priority\": 5,", "priority", at_most(50)),
        (FIFO, "\"priority\": 60,", "priority", at_most(60)),
        // A phase that names a policy has that policy's default priority, 10.
        (FIFO, "\"policy\": \"SCHED_RR\",", "policy", at_most(50)),
        (FIFO, "\"policy\": \"SCHED_OTHER\",", "policy", at_most(50)),
        (FIFO, "\"cpus\": [0],", "cpus", at_most(50)),
        (FIFO, "\"util_max\": 10,", "util_max", at_most(50)),
        (
            FIFO,
            "\"nodes_membind\": [0],",
            "nodes_membind",
            at_most(50),
        ),
        (
            "",
            "\"policy\": \"SCHED_FIFO\", \"priority\": 99,",
            "policy",
            at_most(99),
        ),
        ("", "\"policy\": \"SCHED_FIFO\",", "policy", at_most(10)),
        ("", RESERVED, "policy", any),
        ("", "\"priority\": -5,", "priority", Policy::Timesharing),
        ("", "\"cpus\": [0],", "cpus", Policy::Timesharing),
        (
            "",
            "\"taskgroup\": \"/x\",",
            "taskgroup",
            Policy::Timesharing,
        ),
        (RESERVED, "\"dl-runtime\": 1000,", "dl-runtime", any),
        (RESERVED, "\"dl-period\": 20000,", "dl-period", any),
        (RESERVED, "\"dl-deadline\": 9000,", "dl-deadline", any),
        (RESERVED, "\"period\": 20000,", "period", any),
        (RESERVED, "\"deadline\": 9000,", "deadline", any),
        (RESERVED, FIFO, "policy", any),
        // What is left out of a phase's reservation is not the thread's.
        (RESERVED, "\"dl-runtime\": 5000,", "dl-runtime", any),
        (RESERVED, "\"policy\": \"SCHED_DEADLINE\",", "policy", any),
    ];
    for (thread, phase, key, policy) in table {
        let (task, notes) = with_a_phase_of(thread, phase);
        let why = task.work.expect_err(phase);
        assert!(
            why.contains(&format!("`{key}` in line 1")),
            "{phase}: {why}"
        );
        assert_eq!(task.policy, policy, "{thread} {phase}");
        assert!(
            notes.contains(&format!("`a` is not analysed: {why}")),
            "{phase}: {notes:?}"
        );
        let is_ignored = |note: &String| note.contains("ignored") && note.contains(key);
        assert!(!notes.iter().any(is_ignored), "{phase}: {notes:?}");
    }
}

#[test]
fn a_phase_stays_as_the_one_before_it_made_it() {
    let phase = |says: &str| format!("{{ {says} \"run\": 1000, {TIMER} }}");
    let (p, q) = (
        phase("\"policy\": \"SCHED_FIFO\","),
        phase("\"priority\": 70,"),
    );
    let (task, _) = only(&format!("\"phases\": {{ \"p\": {p}, \"q\": {q} }}"));
    assert_eq!(task.policy, Policy::Changing(Some(70)));
    let found = refused(&format!(
        "{{ \"tasks\": {{ \"a\": {{ {FIFO} \"phases\": {{ \"p\": {} }} }} }} }}",
        phase("\"priority\": 100,")
    ));
    assert!(found.remedy.contains("from 1 to 99"), "{found}");
}

#[test]
fn a_phase_may_say_what_its_thread_says() {
    let bound = "\"cpus\": [0, 1], \"util_min\": 10,";
    let fifo = format!("{FIFO} {bound}");
    let table = [
        (fifo.as_str(), FIFO),
        (&fifo, "\"priority\": 50,"),
        (&fifo, "\"cpus\": [1,0], \"util_min\": 10,"),
        (
            "\"policy\": \"SCHED_FIFO\",",
            "\"policy\": \"SCHED_FIFO\", \"priority\": 10,",
        ),
        (RESERVED, RESERVED),
        ("", "\"policy\": \"SCHED_OTHER\", \"priority\": 0,"),
        ("", ""),
    ];
    for (thread, phase) in table {
        let (task, notes) = with_a_phase_of(thread, phase);
        assert!(task.work.is_ok(), "{phase}: {notes:?}");
        assert!(!matches!(task.policy, Policy::Changing(_)), "{phase}");
    }
}

/// rt-app looks for the old spellings only where it found nothing in the new ones, which are the runtime where they are left out.
#[test]
fn an_old_spelling_that_rt_app_does_not_read_is_named() {
    let run = format!("\"policy\": \"SCHED_DEADLINE\", \"run\": 500, {TIMER}");
    let table = [
        ("\"dl-runtime\": 1000, \"period\": 10000", "period"),
        (
            "\"dl-runtime\": 1000, \"dl-period\": 10000, \"deadline\": 5000",
            "deadline",
        ),
        (
            "\"runtime\": 1000, \"dl-period\": 10000, \"deadline\": 5000",
            "deadline",
        ),
    ];
    for (asked, key) in table {
        let (task, _) = only(&format!("{asked}, {run}"));
        let why = task.work.expect_err(asked);
        assert!(why.contains(&format!("`{key}` in line 1")), "{why}");
        assert!(why.contains(&format!("write `dl-{key}`")), "{why}");
        assert_eq!(task.policy, Policy::Changing(None), "{asked}");
    }
    let (task, _) = only(&format!(
        "\"runtime\": 1000, \"period\": 10000, \"deadline\": 5000, {run}"
    ));
    let request = task.policy.reservation().expect("a reservation");
    assert_eq!(request.deadline, Span::from_millis(5));
}

#[test]
fn no_control_character_comes_through() {
    let found = refused("{ \"tasks\": {\n  \"a\u{1b}[31m\": { \"run\": 1 } } }");
    assert_eq!((found.line, found.column), (2, 3));
    assert!(
        found.cause.contains("`a\\u{1b}[31m` has a control"),
        "{found}"
    );
    let found = refused("{ \"tasks\": { \"a\\nb\": { \"run\": 1 } } }");
    assert!(found.cause.contains("`a\\nb` has a control"), "{found}");
    let found = refused("{ \"tasks\": { \"a\": { \"policy\": \"\\u001b\" } } }");
    assert!(found.cause.contains("\\u{1b}"), "{found}");
    let (task, _) = only(&format!(
        "\"run\": 10, {TIMER}, \"timer1\": {{ \"ref\": \"\\u001b\", \"period\": 5 }}"
    ));
    let why = task.work.expect_err("two timers");
    assert!(!why.chars().any(char::is_control), "{why:?}");
}
