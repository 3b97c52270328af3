//! A process that takes more than it was admitted with, beside one to which something is promised: this test is the coordinator and the latter, and starts itself again as the former.

use std::io::{BufRead as _, BufReader};
use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::{env, thread};

use laxity::upcall::{First, OnOverrun};
use laxity::upcalls::coordinator::{At, Coordinator, Settings};
use laxity::upcalls::{Call, Coordinated, Options, Rank, Spec, Together, Upcalls, Watch};
use laxity::{Instant, Service, Span, now};
use laxity_linux::doctor::rights::{self, Right};
use laxity_linux::os::sched::{self, Tid};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::halts::Halts;
use crate::{MS, spin};

/// What the process is told that is started.
const TOLD: &str = "LAXITY_TEST_HELD";
/// So much is declared of a call that takes more.
const DECLARED: Service = Service::from_micros(50);
/// So long both are called.
const LASTS: Span = Span::from_millis(1_000);

/// What a process does otherwise than it said.
#[derive(Clone, Copy)]
struct Wrong {
    /// It is called so often.
    period: Span,
    /// A call really takes this.
    takes: Span,
    /// skip, suspend or process: what is to become of it.
    choice: &'static str,
    /// So much more is tolerated.
    tolerance: Service,
}

/// What came of it.
struct Came {
    /// What it said of itself.
    said: Vec<String>,
    status: ExitStatus,
    other: Other,
}

/// How the other process fared, to which something is promised.
struct Other {
    /// How many of its calls were over later than promised, halts of the machine apart.
    late: usize,
    /// The longest halt that was seen meanwhile.
    halted: Span,
}

fn options(processor: usize, directory: &Path) -> Options {
    Options {
        rank: Rank::Fifo {
            priority: 90,
            processor: Some(processor),
        },
        together: Some(Together::Coordinated(Coordinated {
            directory: Some(directory.to_owned()),
            program: Some(PathBuf::from("false")),
            ..Coordinated::on(processor)
        })),
        ..Options::default()
    }
}

/// The process, where this test is started as that.
#[test]
fn another_process_that_takes_more() {
    let Ok(told) = env::var(TOLD) else {
        return;
    };
    let told: Vec<&str> = told.split(' ').collect();
    let [directory, processor, first, period, takes, choice] = told[..] else {
        panic!("{told:?}");
    };
    let nanos = |text: &str| text.parse().unwrap();
    let (first, takes) = (
        Instant::from_nanos(nanos(first)),
        Span::from_nanos(nanos(takes)),
    );
    let upcalls = Upcalls::start(options(processor.parse().unwrap(), Path::new(directory)));
    let upcalls = upcalls.unwrap();
    let mut spec = Spec::each(Span::from_nanos(nanos(period)), DECLARED);
    spec.name = "greedy".to_owned();
    spec.timing.first = First::At(first);
    spec.timing.on_overrun = match choice {
        "skip" => OnOverrun::SKIP,
        "suspend" => OnOverrun::Suspend,
        "process" => OnOverrun::EndProcess,
        other => panic!("{other}"),
    };
    let greedy = upcalls.create(spec, move |call: &mut Call<'_>| {
        spin(takes);
        if now() >= first + LASTS {
            call.end();
        }
    });
    let greedy = greedy.unwrap();
    greedy.run().unwrap();
    println!("ready");
    let _ = upcalls.sleep(&[&greedy]);
    let counts = greedy.counts();
    println!("calls {}", counts.calls);
    println!("yields {}", counts.yields);
    println!("over {}", counts.over_service);
    println!("state {:?}", greedy.state());
    println!("failure {}", upcalls.failure().is_some());
    println!("end");
}

/// The other process, which is ready.
fn start(
    wrong: &Wrong,
    processor: usize,
    directory: &Path,
    first: Instant,
) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([
        "held::another_process_that_takes_more",
        "--exact",
        "--nocapture",
    ]);
    let directory = directory.display();
    let [first, period, takes] = [
        first.as_nanos(),
        wrong.period.as_nanos(),
        wrong.takes.as_nanos(),
    ];
    let choice = wrong.choice;
    command.env(
        TOLD,
        format!("{directory} {processor} {first} {period} {takes} {choice}"),
    );
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "ready"));
    (child, lines)
}

/// Has both called; `None` where this cannot be done here.
fn beside(wrong: &Wrong) -> Option<Came> {
    let _live = rights::require(&[Right::RealTime])?;
    let processor = sched::affinity(Tid::current())
        .unwrap()
        .iter()
        .last()
        .unwrap();
    let directory = TempDir::new().unwrap();
    let at = At::new(processor, Some(directory.path().to_owned()));
    let settings = Settings {
        watch: Some(Watch {
            tolerance: wrong.tolerance,
            ..Watch::default()
        }),
        linger: MS * 2_000,
        ..Settings::new(at)
    };
    let coordinator = Coordinator::open(settings).unwrap();
    let serving = thread::spawn(move || coordinator.serve().unwrap());
    // Whoever comes first comes from here: a process may take long to start.
    let upcalls = Upcalls::start(options(processor, directory.path())).unwrap();
    let first = now() + MS * 500;
    let (mut child, lines) = start(wrong, processor, directory.path(), first);
    let other = promised(&upcalls, processor, first, wrong.tolerance);
    drop(upcalls);
    let said = lines.take_while(|line| line != "end").collect();
    let status = child.wait().unwrap();
    serving.join().unwrap();
    Some(Came {
        said,
        status,
        other: other?,
    })
}

/// An upcall of this process that has a third of the processor, and before each of whose calls the other one's go. `None` where the machine stood still, in one of its quanta, for as
/// long as nobody may take: then it has no seat any more.
fn promised(
    upcalls: &Upcalls,
    processor: usize,
    first: Instant,
    tolerance: Service,
) -> Option<Other> {
    let mut spec = Spec::each(MS * 10, Service::from_micros(100));
    (spec.name, spec.timing.first) = ("honest".to_owned(), First::At(first));
    spec.timing.batch = NonZeroU32::new(30).unwrap();
    let (tell, told) = mpsc::channel();
    let honest = upcalls.create(spec, move |call: &mut Call<'_>| {
        spin(Span::from_micros(85));
        if call.done() + call.now() == call.batch() {
            tell.send([call.paced.release, now()]).unwrap();
        }
        if now() >= first + LASTS {
            call.end();
        }
    });
    let honest = honest.unwrap();
    let bound = upcalls.bound(&honest).unwrap();
    let (counts, halts) = Halts::during(processor, || {
        honest.run().unwrap();
        upcalls.sleep(&[&honest]).ok()?;
        honest.close().ok()
    });
    let Some(counts) = counts else {
        skip_for_a_halt(halts.longest(), tolerance);
        return None;
    };
    let took = told.iter().map(|[due, ended]| halts.beyond(due, ended));
    let took: Vec<Span> = took.collect();
    let longest = took.iter().max().unwrap();
    eprintln!(
        "{longest} of {bound}, {} missed in {} calls",
        counts.missed, counts.calls
    );
    let late = took.iter().filter(|took| **took > bound + Halts::UNSEEN);
    Some(Other {
        late: late.count(),
        halted: halts.longest(),
    })
}

/// Somebody lost a seat whom a halt of `room` had to meet for that: it was there, or may have been.
fn skip_for_a_halt(seen: Span, room: Service) {
    assert!(
        (seen + Halts::UNSEEN).as_nanos() > room.as_nanos(),
        "a seat was lost, and the machine stood still for {seen} at most"
    );
    rights::skip(&format!("the machine stood still for {seen}"));
}

impl Came {
    fn number(&self, of: &str) -> u64 {
        self.word(of).parse().unwrap()
    }

    fn word(&self, of: &str) -> &str {
        let mut found = self.said.iter().filter_map(|line| line.strip_prefix(of));
        found
            .next()
            .unwrap_or_else(|| panic!("{of} of {:?}", self.said))
            .trim()
    }

    /// Short halts that come in a row are not told from what another one does: such a call in a while is the machine's.
    fn harmed_nobody(&self) {
        let late = self.other.late;
        assert!(late <= 3, "{late} over later than promised");
    }
}

/// What is not enough to lose a seat, in each call, nor is a halt beside it that is too short to be seen.
const FOURFOLD: Wrong = Wrong {
    period: Span::from_millis(4),
    takes: Span::from_micros(200),
    choice: "skip",
    tolerance: Service::from_micros(750),
};

/// It is seen within twice of what it may take, and a little.
#[test]
fn one_that_takes_ninefold_loses_its_seat_and_makes_nobody_late() {
    let came = beside(&Wrong {
        period: Span::from_millis(2),
        takes: Span::from_micros(450),
        tolerance: Service::from_micros(150),
        ..FOURFOLD
    });
    if let Some(came) = came {
        came.harmed_nobody();
        assert_eq!(came.word("failure "), "true", "{:?}", came.said);
        assert!(came.number("calls ") < 20, "{:?}", came.said);
    }
}

/// There is time for its calls where the other has nothing to do.
#[test]
fn one_that_takes_fourfold_goes_behind_the_others() {
    if let Some(came) = beside(&FOURFOLD) {
        came.harmed_nobody();
        if came.word("failure ") == "true" {
            let takes = Service::from_nanos(FOURFOLD.takes.as_nanos());
            let room = DECLARED + FOURFOLD.tolerance - takes;
            return skip_for_a_halt(came.other.halted, room);
        }
        let calls = came.number("calls ");
        assert!(calls > 60, "{:?}", came.said);
        assert!(came.number("yields ") * 3 > calls * 2, "{:?}", came.said);
        assert!(came.number("over ") + 1 >= calls, "{:?}", came.said);
    }
}

/// What was chosen for overruns becomes of it.
#[test]
fn one_that_takes_more_than_it_was_admitted_with_is_suspended_where_that_was_chosen() {
    let came = beside(&Wrong {
        choice: "suspend",
        ..FOURFOLD
    });
    if let Some(came) = came {
        came.harmed_nobody();
        assert_eq!(came.word("state "), "Overran", "{:?}", came.said);
        assert!(came.number("calls ") < 20, "{:?}", came.said);
    }
}

#[test]
fn its_process_ends_where_that_was_chosen() {
    let came = beside(&Wrong {
        choice: "process",
        ..FOURFOLD
    });
    if let Some(came) = came {
        came.harmed_nobody();
        assert_eq!(
            came.status.signal(),
            Some(Signal::ABORT.as_raw()),
            "{:?}",
            came.said
        );
    }
}
