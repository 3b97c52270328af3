//! Upcalls that are admitted and closed while others run, against what was promised of each.

use std::sync::{Arc, Mutex};

use laxity_model::analysis::Task;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::executor::{ExecutorPolicy as _, HANDLERS};
use laxity_model::program::upcall::{First, Timing};
use laxity_model::program::upcalls::{
    Board, Command, Control, Entrant, Keeper, Rests, STOP, Standing, task, turns,
};
use laxity_model::{Body, Context as _, Instant, PortId, Service, Span, Step};
use proptest::prelude::*;

use crate::upcalls::machine::{
    COMMANDS, DOORBELL, MICRO, PLACES, Virtual, boards, events, keep, order, run, timing, us,
};

/// Those that are there by place, each with what a unit takes.
type There = Arc<Mutex<Vec<Option<(Timing, Service)>>>>;

struct Keep(There, Arc<Rests>);

impl Keeper for Keep {
    fn make(&mut self, _: u16) -> bool {
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let (timing, unit) = self.0.lock().unwrap()[usize::from(place)].clone()?;
        Some(Entrant {
            deadline: timing.period,
            timing,
            paced_by: None,
            unit,
            share: None,
            account: None,
            work: Box::new(move |_, call| Step::Charge(unit * u64::from(call.now()))),
        })
    }

    fn discard(&mut self, _: u16) {}

    fn rests(&self) -> Arc<Rests> {
        Arc::clone(&self.1)
    }

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

/// What somebody does so many microseconds after what was done before, if he can.
#[derive(Clone, Debug)]
enum Does {
    Create {
        after: u64,
        period: u64,
        unit: u64,
        batch: u32,
        quantum: u32,
    },
    Close {
        after: u64,
        place: usize,
    },
}

fn does() -> impl Strategy<Value = Does> {
    let after = prop_oneof![0..3_u64, 0..30_u64];
    let create = (after.clone(), 8..80_u64, 1..12_u64, 1..5_u32, 1..5_u32);
    let create = create.prop_map(|(after, period, unit, batch, quantum)| Does::Create {
        after,
        period,
        unit,
        batch,
        quantum,
    });
    let close = (after, 0..4_usize).prop_map(|(after, place)| Does::Close { after, place });
    prop_oneof![create, close]
}

struct Machine {
    machine: Virtual,
    body: Box<dyn Body>,
    boards: Arc<[Board]>,
    there: There,
    rests: Arc<Rests>,
}

impl Machine {
    fn new() -> Self {
        Self::of(PLACES)
    }

    /// For so many upcalls.
    fn of(places: u16) -> Self {
        let boards: Arc<[Board]> = (0..places).map(|_| Board::default()).collect();
        let there = There::default();
        there.lock().unwrap().resize(boards.len(), None);
        let rests = Arc::<Rests>::default();
        let keep = Keep(Arc::clone(&there), Arc::clone(&rests));
        let control = Control::new([COMMANDS, events(0)], Arc::clone(&boards), keep);
        Self {
            machine: Virtual::of(places, Vec::new()),
            body: turns(Rmdp::default(), DOORBELL, Box::new(control), false),
            boards,
            there,
            rests,
        }
    }

    /// Up to this instant, and somewhat past it where somebody is at work.
    fn run_to(&mut self, until: Instant) {
        let nobody = |machine: &mut Virtual, next: Instant| {
            machine.script = vec![(until, PortId(0), [0; 2])];
            machine.wait(DOORBELL, next.min(until));
            machine.script.clear();
        };
        while self.machine.now < until {
            match self.body.step(&mut self.machine) {
                Step::Charge(service) => {
                    let now = self.machine.now + service.as_dedicated_span();
                    self.machine.pass_to(now);
                }
                Step::Wait(_) => nobody(&mut self.machine, Instant::MAX),
                Step::WaitUntil(_, next) => nobody(&mut self.machine, next),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The task of each place that counts.
    fn tasks(&self) -> Vec<Task> {
        let there = self.there.lock().unwrap();
        let counts = there.iter().flatten();
        let task = |(timing, unit): &(Timing, Service)| task(timing, *unit, timing.period);
        counts.map(|one| task(one).unwrap()).collect()
    }

    fn ask(&mut self, place: usize, command: Command) {
        let (_, port, payload) = order(0, place as u16, command, 0);
        self.machine.put(port, payload);
    }
}

proptest! {
    /// Each newcomer is released at once, and whoever is closed is forgotten as soon as nobody can tell that it was there.
    #[test]
    fn nobody_is_late_whoever_comes_and_goes(all in proptest::collection::vec(does(), 1..40)) {
        let mut machine = Machine::new();
        let in_time = |board: &Board, period: Span| {
            let counts = board.counts();
            counts.longest_response <= period && counts.missed == 0
        };
        for does in all {
            let (Does::Create { after, .. } | Does::Close { after, .. }) = does;
            machine.run_to(machine.machine.now + Span::from_micros(after));
            for (place, board) in machine.boards.iter().enumerate() {
                let mut there = machine.there.lock().unwrap();
                if board.standing() == Standing::Absent && !board.owes() {
                    there[place] = None;
                }
            }
            match does {
                Does::Create { period, unit, batch, quantum, .. } => {
                    let free = machine.there.lock().unwrap().iter().position(Option::is_none);
                    let Some(place) = free else { continue };
                    let now = machine.machine.now.as_nanos() / 1_000;
                    let own = timing(now, period, batch, quantum);
                    let tasks = machine.tasks();
                    let fits = |unit: &Service| {
                        let own = task(&own, *unit, own.period).unwrap();
                        let tasks: Vec<Task> = tasks.iter().copied().chain([own]).collect();
                        Rmdp::<128>::default().admit(&tasks, &Dedicated).is_ok()
                    };
                    // The longest that fits: there is nothing to spare.
                    let units = (1..=unit * 8).rev().map(|unit| MICRO * unit);
                    let Some(unit) = units.into_iter().find(fits) else {
                        continue;
                    };
                    machine.there.lock().unwrap()[place] = Some((own, unit));
                    machine.ask(place, Command::Create);
                    machine.ask(place, Command::Run);
                }
                Does::Close { place, .. } => machine.ask(place, Command::Close),
            }
            // The executor hears of it.
            machine.run_to(machine.machine.now + Span::from_nanos(1));
            for (board, one) in machine.boards.iter().zip(&*machine.there.lock().unwrap()) {
                let period = one.as_ref().map_or(Span::MAX, |(timing, _)| timing.period);
                prop_assert!(in_time(board, period), "{} {:?}", period, board.counts());
            }
        }
        let end = machine.machine.now + Span::from_micros(500);
        machine.run_to(end);
        for (board, one) in machine.boards.iter().zip(&*machine.there.lock().unwrap()) {
            let period = one.as_ref().map_or(Span::MAX, |(timing, _)| timing.period);
            prop_assert!(in_time(board, period), "{} {:?}", period, board.counts());
        }
        machine.machine.put(COMMANDS, STOP);
        while !matches!(machine.body.step(&mut machine.machine), Step::Finish) {}
        prop_assert!(machine.boards.iter().all(|board| !board.owes()));
    }
}

/// Where nobody else is at work it is nobody's affair that one was there; and one that was never called owes nothing.
#[test]
fn whoever_is_closed_counts_until_there_is_nothing_to_do() {
    let mut machine = Machine::new();
    let set = |machine: &Machine, place: usize, first, unit| {
        let one = (timing(first, 100, 4, 1), MICRO * unit);
        machine.there.lock().unwrap()[place] = Some(one);
    };
    set(&machine, 0, 10, 1);
    set(&machine, 1, 10, 10);
    for place in [0, 1] {
        machine.ask(place, Command::Create);
        machine.ask(place, Command::Run);
    }
    machine.run_to(us(9));
    let owe = |machine: &Machine| [0, 1].map(|place| machine.boards[place].owes());
    machine.run_to(us(30));
    machine.ask(0, Command::Close);
    machine.run_to(us(35));
    assert_eq!(owe(&machine), [true, false]);
    machine.run_to(us(60));
    assert_eq!(owe(&machine), [false, false]);
    machine.ask(1, Command::Close);
    machine.run_to(us(61));
    assert_eq!(owe(&machine), [false, false]);
    for _ in 0..3 {
        machine.ask(0, Command::Create);
        machine.ask(0, Command::Run);
        machine.ask(0, Command::Close);
    }
    machine.run_to(us(62));
    assert_eq!(owe(&machine), [false, false]);
}

/// Whoever asks is told of a moment after that, and not of one before.
#[test]
fn whoever_asks_for_a_rest_is_told_when_there_is_nothing_to_do() {
    let mut machine = Machine::new();
    machine.there.lock().unwrap()[0] = Some((timing(10, 100, 4, 1), MICRO * 10));
    machine.ask(0, Command::Create);
    machine.ask(0, Command::Run);
    let ask = |machine: &mut Machine, at, number| {
        machine.run_to(us(at));
        machine.machine.put(COMMANDS, Rests::ask(number));
        machine.run_to(us(at + 1));
        machine.rests.has_had(number)
    };
    assert!(ask(&mut machine, 5, 1));
    assert!(!ask(&mut machine, 15, 2));
    assert!(!ask(&mut machine, 40, 3));
    assert!(!machine.rests.has_had(2));
    machine.run_to(us(60));
    assert!(machine.rests.has_had(3));
    assert!(ask(&mut machine, 70, 4));
}

/// With the last upcall there are as many handlers as an executor has room for, beside the one that makes them: who looks for a rest makes room, and who asked for that has it later.
#[test]
fn the_last_upcall_runs_though_a_rest_is_looked_for() {
    const LAST: usize = HANDLERS - 2;
    let mut machine = Machine::of(LAST as u16 + 1);
    for place in 0..=LAST {
        // The first is at work from 10 to 50; the others not before all is over.
        let own = match place {
            0 => timing(10, 100_000, 4, 1),
            _ => timing(90_000, 100_000, 1, 1),
        };
        machine.there.lock().unwrap()[place] = Some((own, MICRO * 10));
        machine.ask(place, Command::Create);
        if place != LAST {
            machine.ask(place, Command::Run);
        }
        machine.run_to(machine.machine.now + Span::from_nanos(1));
    }
    machine.run_to(us(15));
    machine.machine.put(COMMANDS, Rests::ask(1));
    machine.run_to(us(25));
    machine.ask(LAST, Command::Run);
    machine.run_to(us(35));
    assert_eq!(machine.boards[LAST].standing(), Standing::Active);
    machine.run_to(us(60));
    assert!(!machine.rests.has_had(1));
    machine.ask(LAST, Command::Close);
    machine.run_to(us(61));
    assert!(machine.rests.has_had(1));
}

/// A descriptor is looked at before each job as long as one is there that it releases.
#[test]
fn what_feeds_nobody_any_more_is_not_looked_at() {
    let timings = vec![
        (timing(100, 100, 1, 1), Some(events(0))),
        (timing(100, 100, 1, 1), None),
    ];
    let keep = keep(timings, |_| Step::Charge(MICRO));
    let mut script: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|place| {
            [Command::Create, Command::Run].map(|command| order(10, place, command, 0))
        })
        .collect();
    script.push(order(550, 0, Command::Close, 0));
    script.push((us(1_000), COMMANDS, STOP));
    let control = Control::new([COMMANDS, events(0)], boards(), keep.clone());
    let mut body = turns(Rmdp::default(), DOORBELL, Box::new(control), false);
    let mut machine = Virtual::new(script);
    machine.fed = Some(events(0));
    machine.run(&mut *body);
    let polls = |from, to| {
        let all = machine.polls.iter();
        all.filter(|at| (us(from)..us(to)).contains(*at)).count()
    };
    assert!(polls(100, 550) >= 5);
    assert_eq!(polls(551, 1_000), 0);
    assert!(
        keep.calls
            .lock()
            .unwrap()
            .iter()
            .any(|(_, at)| *at == us(900))
    );
}

/// It was to run 40 µs before that was heard, and again when it had been suspended.
#[test]
fn the_first_release_is_a_period_after_the_command_and_the_grid_stays() {
    let from_command = Timing {
        first: First::AfterAPeriod,
        ..timing(0, 20, 1, 1)
    };
    let timings = vec![(timing(100, 10_000, 1, 1), None), (from_command, None)];
    let keep = keep(timings, |calls| {
        Step::Charge(Service::from_micros(if calls == 1 { 44 } else { 1 }))
    });
    let mut script = vec![
        order(10, 0, Command::Create, 0),
        order(11, 0, Command::Run, 0),
        order(12, 1, Command::Create, 0),
        order(104, 1, Command::Run, 0),
    ];
    script.push(order(170, 1, Command::Suspend, 0));
    script.push(order(193, 1, Command::Run, 0));
    run(&keep, &boards(), script, 230);
    let calls = keep.calls.lock().unwrap().clone();
    let of_second = calls.into_iter().filter(|(place, _)| *place == 1);
    let releases: Vec<Instant> = of_second.map(|(_, release)| release).collect();
    let wanted = [124, 164, 204, 224];
    assert_eq!(releases, wanted.map(us));
}
