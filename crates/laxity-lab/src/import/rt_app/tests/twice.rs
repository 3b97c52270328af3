//! What stands twice in a file, what several threads share, and what means something else than it seems to.

use super::*;

/// rt-app alone takes the last of two, and other programs the first.
#[test]
fn a_key_that_stands_twice_and_is_no_event_is_a_mistake() {
    let task = |text: &str| {
        format!("{{ \"tasks\": {{ \"a\": {{\n {text}, \"run\": 1000, {TIMER} }} }} }}")
    };
    let reserved = |key: &str| {
        task(&format!(
            "\"policy\": \"SCHED_DEADLINE\", \"dl-period\": 9000, \"{key}\": 5000, \"{key}\": 1000"
        ))
    };
    let global = "\"global\": { \"default_policy\": \"SCHED_OTHER\" }";
    let tasks = "\"tasks\": {}";
    let table = [
        (task("\"instance\": 1, \"instance\": 3"), "instance"),
        (task("\"cpus\": [0], \"cpus\": [1]"), "cpus"),
        (task("\"priority\": 1, \"priority\": 2"), "priority"),
        (task("\"util_min\": 1, \"util_min\": 2"), "util_min"),
        (reserved("dl-runtime"), "dl-runtime"),
        (reserved("runtime"), "runtime"),
        (
            task("\"timer0\": { \"period\": 10000, \"period\": 5000 }"),
            "period",
        ),
        (
            task("\"phases\": { \"p\": { \"loop\": 1, \"loop\": 2 } }"),
            "loop",
        ),
        (format!("{{ {global}, {global}, {tasks} }}"), "global"),
        (format!("{{ {tasks}, {tasks} }}"), "tasks"),
    ];
    for (text, key) in table {
        let found = refused(&text);
        assert_eq!(found.cause, format!("`{key}` stands here twice"), "{text}");
    }
    let found = refused(&task("\"cpus\": [0], \"cpus\": [1]"));
    assert_eq!((found.line, found.column), (2, 15));
}

#[test]
fn events_tasks_and_phases_of_one_name_all_count_and_that_is_told() {
    let work = format!("\"run\": 1000, {TIMER}");
    let phases =
        format!("\"phases\": {{ \"p\": {{ {work} }}, \"p\": {{ {work}, \"run\": 500 }} }}");
    let text = format!("{{ \"tasks\": {{ \"a\": {{ {phases} }},\n\"a\": {{ {work} }} }} }}");
    let set = set(&text);
    assert_eq!(set.tasks.len(), 2);
    for said in [
        "`tasks`: `a` stands there again in line 2",
        "the phases of `a`: `p` stands there again in line 1",
        "`a`: `run` stands there again in line 1",
    ] {
        let count = set
            .notes
            .iter()
            .filter(|note| note.starts_with(said))
            .count();
        assert_eq!(count, 1, "{said}: {:?}", set.notes);
    }
}

/// Of a timer whose name begins with `unique` each thread has its own.
#[test]
fn threads_that_share_a_timer_may_ask_for_less() {
    let of = |timer: &str| format!("\"run\": 6000, \"timer\": {{ {timer} \"period\": 10000 }}");
    let two = |a: &str, b: &str| {
        let [a, b] = [a, b].map(of);
        format!("\"a\": {{ {a} }}, \"b\": {{ \"phases\": {{ \"p\": {{ {b} }} }} }}")
    };
    let instances = |timer: &str| format!("\"a\": {{ \"instance\": 2, {} }}", of(timer));
    let [tick, tock, own] =
        ["tick", "tock", "unique_1"].map(|name| format!("\"ref\": \"{name}\","));
    let table = [
        (
            two(&tick, &tick),
            Some("`a`, `b` wait for one timer, `tick`"),
        ),
        (two("", ""), Some("`a`, `b` wait for one timer, `unknown`")),
        (
            instances(&tick),
            Some("`a-1`, `a-2` wait for one timer, `tick`"),
        ),
        (two(&tick, &tock), None),
        (two(&own, &own), None),
        (instances(&own), None),
    ];
    for (tasks, said) in table {
        let set = set(&format!("{{ \"tasks\": {{ {tasks} }} }}"));
        let mut notes = set.notes.iter();
        assert!(
            set.tasks
                .iter()
                .all(|task| task.asks_less == said.is_some()),
            "{tasks}"
        );
        assert!(
            said.is_none_or(|said| notes.any(|note| note.starts_with(said))),
            "{set:?}"
        );
    }
}

const REAL_TIME: &str = "\"policy\": \"SCHED_FIFO\",";

#[test]
fn a_priority_without_a_policy_is_told_to_be_a_nice_value() {
    for (priority, policy, is_told) in [(50, "", true), (-7, "", false), (50, REAL_TIME, false)] {
        let (_, notes) = only(&format!(
            "\"priority\": {priority}, {policy} \"run\": 1000, {TIMER}"
        ));
        let said = "`a`: `priority` in line 1 is a nice value";
        assert_eq!(
            notes.iter().any(|note| note.starts_with(said)),
            is_told,
            "{notes:?}"
        );
    }
}
