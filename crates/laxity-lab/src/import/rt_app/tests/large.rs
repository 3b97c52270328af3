//! Files that are nearly as large as they may be: what is looked for in them is looked for once.

use std::iter;
use std::time::{Duration, Instant};

use super::*;
use crate::import::MOST_ERRORS;

/// More than any of these takes, and much less than a search for each of its keys.
const PATIENCE: Duration = Duration::from_secs(20);
/// So many keys and more fit.
const MANY: usize = 60_000;

/// A line each.
fn lines(each: impl Fn(usize) -> String) -> String {
    let all: Vec<String> = (0..MANY).map(each).collect();
    all.join(",\n")
}

#[track_caller]
fn in_time<T>(read: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = read();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    done
}

#[test]
fn a_task_of_many_keys_is_read_in_time() {
    let timer = TIMER.replace("10000", "10000000");
    let same = lines(|_| "\"run\": 1".into());
    let strange = lines(|i| format!("\"zzzzq{i}\": 1"));
    let locks = lines(|i| format!("\"lock{i}\": \"m{i}\""));
    let phases = lines(|i| format!("\"p{i}\": {{ \"run\": 1, \"sleep\": 9 }}"));
    let timers = lines(|i| format!("\"timer{i}\": {{ \"ref\": \"x{i}\", \"period\": 9 }}"));
    let asked = [
        (
            format!("{same},\n{timer}"),
            "`run` stands there again in line 2",
        ),
        (
            format!("\"run\": 1, {timer},\n{strange}"),
            "`zzzzq0` in line 2 is no key",
        ),
        (format!("{timer},\n{locks}"), "`lock` in line 2 takes"),
        (format!("\"phases\": {{ {phases} }}"), "it sleeps"),
        (format!("\"instance\": 1000,\n{timers}"), "`timer` in line"),
    ];
    for (task, told) in &asked[..4] {
        let (_, notes) = in_time(|| only(task));
        assert!(notes.iter().any(|note| note.contains(told)), "{told}");
    }
    let whole = format!("{{ \"tasks\": {{ \"a\": {{ {} }} }} }}", asked[4].0);
    let shared = in_time(|| set(&whole));
    assert!(shared.tasks.iter().all(|task| task.asks_less));
    let global =
        format!("{{ \"global\": {{\n{strange} }}, \"tasks\": {{ \"a\": {{ {TIMER} }} }} }}");
    let notes = in_time(|| set(&global)).notes;
    assert!(notes[0].contains("`zzzzq0` in line 2 "), "{}", notes[0]);
}

/// What a phase says is compared with what its thread does, however much stands beside either.
#[test]
fn phases_are_compared_with_a_thread_of_many_keys_in_time() {
    let runs = lines(|i| format!("\"run{i}\": 1"));
    let zeros: Vec<&str> = iter::repeat_n("0", 10 * MANY).collect();
    for own in [
        format!("{runs}, \"util_min\": 1"),
        format!("\"cpus\": [{}], \"util_min\": 1", zeros.join(",")),
    ] {
        let phases = lines(|i| format!("\"p{i}\":{{\"util_min\":1,\"cpus\":[0],\"run\":1}}"));
        in_time(|| only(&format!("{own}, \"phases\": {{ {phases} }}")));
    }
}

#[test]
fn no_more_is_found_wrong_than_anybody_reads() {
    let tasks = lines(|i| format!("\"t{i}\": 1"));
    let in_one = format!("{{ \"tasks\": {{ {} }} }}", tasks.replace('\n', " "));
    let found = in_time(|| import::read(&in_one, "x.json", Format::RtApp));
    assert_eq!(found.map_err(|errors| errors.len()), Err(MOST_ERRORS));
}
