//! The time of day, which nobody in the path of an upcall knows.

use std::fs;
use std::sync::mpsc;

use laxity::Span;
use laxity::upcalls::{Options, Rank, Upcalls};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};
use rustix::time::{ClockId, clock_gettime, clock_settime};

use crate::halts::Halts;
use crate::spec;

/// Setting the time of day changes nothing, since nobody in the path of an upcall knows it: all instants are of `CLOCK_MONOTONIC`. The time of day would be read through one of these names.
#[test]
fn nothing_in_the_path_of_an_upcall_knows_the_time_of_day() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let paths = [
        "laxity/src/upcalls",
        "laxity-linux/src/host/alone.rs",
        "laxity-linux/src/run",
        "laxity-linux/src/os",
        "laxity-model/src",
    ];
    let mut to_see: Vec<_> = paths.map(|path| format!("{crates}/{path}").into()).into();
    let mut seen = 0;
    while let Some(path) = to_see.pop() {
        let path: std::path::PathBuf = path;
        if path.is_dir() {
            to_see.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        seen += usize::from(text.contains("Monotonic"));
        for name in [
            "SystemTime",
            "Realtime",
            "CLOCK_REALTIME",
            "UNIX_EPOCH",
            "gettimeofday",
        ] {
            assert!(!text.contains(name), "{name} in {}", path.display());
        }
    }
    assert!(seen > 0, "the clock is read somewhere");
}

fn step(seconds: i64) -> rustix::io::Result<()> {
    let mut time = clock_gettime(ClockId::Realtime);
    time.tv_sec += seconds;
    clock_settime(ClockId::Realtime, time)
}

/// The clock of this machine is wrong by so many seconds until this is dropped.
struct Stepped(i64);

impl Drop for Stepped {
    fn drop(&mut self) {
        if let Err(why) = step(-self.0) {
            eprintln!(
                "the clock of this machine stays wrong by {} s: {why}",
                self.0
            );
        }
    }
}

/// What came to nothing did so while the machine stood still, and so did what began late. Others on this machine would see its clock jump, so it is done where it is asked for alone.
#[test]
fn releases_stay_on_the_grid_when_the_clock_is_set() {
    const EVERY: Span = Span::from_millis(5);
    const CALLS: usize = 100;
    if std::env::var_os("LAXITY_STEP_CLOCK").is_none() {
        return rights::skip("it steps the clock of this machine: LAXITY_STEP_CLOCK=1 asks for it");
    }
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let usable = sched::affinity(Tid::current()).unwrap();
    let processor = usable.iter().last().unwrap();
    let rank = Rank::Fifo {
        priority: 90,
        processor: Some(processor),
    };
    let upcalls = Upcalls::start(Options {
        rank,
        ..Options::default()
    });
    let upcalls = upcalls.unwrap();
    let (tell, told) = mpsc::channel();
    let mut left = CALLS;
    let upcall = upcalls.create(spec("steady", EVERY), move |call| {
        let paced = call.paced;
        tell.send((paced.release, call.began, paced.missed))
            .unwrap();
        left -= 1;
        if left == 0 {
            call.suspend();
        }
    });
    let upcall = upcall.unwrap();
    let (calls, halts) = Halts::during(processor, || {
        upcall.run().unwrap();
        let mut calls: Vec<_> = told.iter().take(CALLS / 3).collect();
        step(3).expect("who asks for this test may set the clock");
        let stepped = Stepped(3);
        calls.extend(told.iter().take(CALLS / 3));
        drop(stepped);
        let rest = CALLS - calls.len();
        calls.extend(told.iter().take(rest));
        calls
    });
    assert_eq!(calls.len(), CALLS);
    for two in calls.windows(2) {
        let ((before, ..), (release, began, missed)) = (two[0], two[1]);
        assert_eq!(release, before + EVERY * (missed + 1));
        let [lost, late] =
            [(before + EVERY, release), (release, began)].map(|(from, to)| halts.beyond(from, to));
        let most = EVERY + Halts::UNSEEN;
        assert!(
            lost < EVERY && late < most,
            "{missed} lost, {late} late; the longest halt {}",
            halts.longest()
        );
    }
}
