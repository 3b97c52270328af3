//! Executors that a coordinator admits together: here of one process and as ordinary threads, which needs no right, with a coordinator that a thread of the test is.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use laxity::upcalls::coordinator::{At, Coordinator, CoordinatorError, Settings, list};
use laxity::upcalls::{
    Call, Coordinated, Error, Options, Policy, Rank, Spec, Together, Upcall, Upcalls,
};
use laxity::{Service, Span};
use tempfile::TempDir;

const MS: Span = Span::from_millis(1);
/// Nothing takes longer, whatever becomes of the coordinator: five seconds to find the next one, and as long for its answer.
const LONGEST: Duration = Duration::from_secs(10);

/// A coordinator that may die, and whoever follows it.
struct Served {
    directory: TempDir,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

/// When it dies: at this message, and whether that is answered before.
type Death = (usize, bool);

fn settings(directory: &Path) -> Settings {
    let at = At::new(0, Some(directory.to_owned()));
    Settings {
        watch: None,
        linger: MS * 20,
        ..Settings::new(at)
    }
}

impl Served {
    fn new(death: Option<Death>) -> Self {
        let directory = TempDir::new().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let (path, over) = (directory.path().to_owned(), Arc::clone(&ends));
        let thread = thread::spawn(move || {
            let mut left = death;
            while !over.load(Ordering::SeqCst) {
                serve(&settings(&path), &mut left);
            }
            left.is_none()
        });
        Self {
            directory,
            ends,
            thread: Some(thread),
        }
    }

    fn options(&self) -> Options {
        Options {
            rank: Rank::Fair,
            together: Some(Together::Coordinated(Coordinated {
                directory: Some(self.directory.path().to_owned()),
                // It says that another serves.
                program: Some(PathBuf::from("true")),
                ..Coordinated::on(0)
            })),
            ..Options::default()
        }
    }

    fn executor(&self) -> Upcalls {
        Upcalls::start(self.options()).unwrap()
    }

    /// What each seat has, by the names of its upcalls.
    fn seats(&self) -> Vec<Vec<String>> {
        let at = At::new(0, Some(self.directory.path().to_owned()));
        let all = loop {
            // While one follows another there is none.
            if let Ok(Some(all)) = list(&at) {
                break all;
            }
        };
        let names = all.into_iter().map(|told| told.items.into_iter());
        names
            .map(|items| items.map(|item| item.name).collect())
            .collect()
    }

    /// Whether it died as it was to.
    fn ends(mut self) -> bool {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// One coordinator, until it dies or nobody is there.
fn serve(settings: &Settings, death: &mut Option<Death>) {
    let mut coordinator = loop {
        match Coordinator::open(settings.clone()) {
            // What another test starts has its lock until it executes.
            Err(CoordinatorError::Served(_)) => {}
            opened => break opened.unwrap(),
        }
    };
    while let Some(heard) = coordinator.hear().unwrap() {
        if let Some((left, answers)) = death {
            *left = left.saturating_sub(heard.count());
            if *left == 0 {
                if *answers {
                    coordinator.answer(heard);
                }
                *death = None;
                return;
            }
        }
        coordinator.answer(heard);
    }
}

/// So many tenths of a processor, every 10 ms, with a look every quarter of a millisecond.
fn tenths(name: &str, count: u32) -> Spec {
    let mut spec = Spec::each(MS * 10, Service::from_micros(250));
    spec.name = name.to_owned();
    spec.timing.batch = NonZeroU32::new(4 * count).unwrap();
    spec
}

fn create(upcalls: &Upcalls, spec: Spec) -> Result<Upcall, Error> {
    let began = Instant::now();
    let created = upcalls.create(spec, |_: &mut Call<'_>| ());
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    created
}

#[test]
fn what_others_have_is_refused_and_what_they_close_is_granted() {
    let served = Served::new(None);
    let (one, other) = (served.executor(), served.executor());
    let big = create(&one, tenths("big", 5)).unwrap();
    // Of another process, which is this one here.
    let mut urgent = tenths("urgent", 4);
    urgent.timing.period = MS * 9;
    let Err(Error::NotAdmitted(no)) = create(&other, urgent) else {
        panic!("more than all is granted");
    };
    assert_eq!(
        no.bottleneck,
        format!("big of process {}", std::process::id()),
        "{no}"
    );
    let small = create(&other, tenths("small", 2)).unwrap();
    assert_eq!(served.seats(), [["big"], ["small"]]);
    // Others, itself, and what is charged where there are several.
    let bound = other.bound(&small).unwrap();
    assert!(bound > MS * 8 && bound < MS * 9, "{bound}");
    let Err(Error::NotAdmitted(no)) = create(&other, tenths("more", 3)) else {
        panic!("more than all is granted");
    };
    let fits = no.fits.expect("something fits");
    assert!(
        fits > Service::from_micros(50) && fits < Service::from_micros(300),
        "{fits}"
    );
    big.close().unwrap();
    let more = create(&other, tenths("more", 3)).unwrap();
    assert_eq!(served.seats(), [vec![], vec!["small", "more"]]);
    drop(one);
    drop((small, more));
    drop(other);
    served.ends();
}

#[test]
fn a_quantum_that_is_too_long_among_processes_is_refused_with_what_fits() {
    let served = Served::new(None);
    let one = served.executor();
    let mut long = tenths("long", 4);
    long.timing.quantum = NonZeroU32::new(4).unwrap();
    let Err(Error::NotAdmitted(no)) = create(&one, long) else {
        panic!("1 ms without a look is granted");
    };
    assert_eq!(no.bottleneck, "long");
    // Half a millisecond, with what is done beside it.
    assert_eq!(no.fits, Some(Service::from_micros(124)), "{no}");
    drop(one);
    served.ends();
}

#[test]
fn what_cannot_take_turns_there_is_refused() {
    let served = Served::new(None);
    let start = |change: fn(&mut Options)| {
        let mut options = served.options();
        change(&mut options);
        Upcalls::start(options).err()
    };
    assert_eq!(
        start(|options| options.policy = Policy::Edf),
        Some(Error::Order)
    );
    let rank = |priority, processor| Rank::Fifo {
        priority,
        processor,
    };
    let elsewhere = start(|options| {
        options.rank = Rank::Fifo {
            priority: 90,
            processor: Some(1),
        }
    });
    assert!(elsewhere.unwrap().to_string().contains("another processor"));
    let mut options = served.options();
    options.rank = rank(90, None);
    let refused = Upcalls::start(options).err().unwrap().to_string();
    assert!(
        refused.contains("ordinary threads") && refused.contains("FIFO priority 90"),
        "{refused}"
    );
    served.ends();
}

#[test]
fn without_a_coordinator_that_can_be_started_it_is_said_why() {
    let directory = TempDir::new().unwrap();
    let start = |program: &str| {
        let coordinated = Coordinated {
            directory: Some(directory.path().to_owned()),
            program: Some(PathBuf::from(program)),
            ..Coordinated::on(0)
        };
        let options = Options {
            rank: Rank::Fair,
            together: Some(coordinated.into()),
            ..Options::default()
        };
        Upcalls::start(options).err().unwrap().to_string()
    };
    assert!(
        start("/nonexistent").contains("No such file"),
        "{}",
        start("/nonexistent")
    );
    assert!(start("false").contains("no coordinator can be started"));
    // There is never more than one.
    let first = Coordinator::open(settings(directory.path())).unwrap();
    let second = Coordinator::open(settings(directory.path()));
    assert!(matches!(second, Err(CoordinatorError::Served(0))));
    drop(first);
    assert!(Coordinator::open(settings(directory.path())).is_ok());
}

/// At every message that is heard, before and after it is answered: nothing hangs, what was granted is granted still, and no more than there is.
#[test]
fn a_coordinator_may_die_at_any_message() {
    for death in 1..=12 {
        for answers in [false, true] {
            let served = Served::new(Some((death, answers)));
            let one = served.executor();
            let first = create(&one, tenths("first", 4)).unwrap();
            let other = served.executor();
            let second = create(&other, tenths("second", 3)).unwrap();
            first.run().unwrap();
            let refused = create(&other, tenths("third", 3));
            assert!(matches!(refused, Err(Error::NotAdmitted(_))), "{refused:?}");
            let began = Instant::now();
            first.close().unwrap();
            assert!(began.elapsed() < LONGEST);
            let third = create(&other, tenths("third", 5)).unwrap();
            let refused = create(&one, tenths("fourth", 3));
            assert!(matches!(refused, Err(Error::NotAdmitted(_))), "{refused:?}");
            assert_eq!(
                served.seats(),
                [vec![], vec!["second", "third"]],
                "at {death}"
            );
            drop((second, third));
            drop((one, other));
            assert!(served.ends(), "at {death}, {answers}");
        }
    }
}
