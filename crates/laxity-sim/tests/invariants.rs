//! What must hold in every run, tried on programs made at random: no time is lost, and what is above is above.

mod common;

use common::*;
use laxity_model::{
    Context, EventKind, Instant, InterruptLevel, Outside, Placement, Priority, Program,
    Reservation, RunRecord, SemaphoreId, Service, Span, Step,
};
use laxity_sim::Profile;
use proptest::prelude::*;

const LENGTH_MS: u64 = 60;
const SEMAPHORES: u16 = 3;

/// A step, and the semaphore that is signalled before it.
type Entry = (Option<u16>, Step);

fn entry(may_sleep: bool) -> impl Strategy<Value = Entry> {
    let semaphore = || (0..SEMAPHORES).prop_map(SemaphoreId);
    let charge = (1..3_000_u64).prop_map(|us| Step::Charge(work(us)));
    let at = || (0..LENGTH_MS * 1_000).prop_map(Instant::from_micros);
    let step = if may_sleep {
        prop_oneof![
            charge,
            at().prop_map(Step::SleepUntil),
            semaphore().prop_map(Step::Wait),
            (semaphore(), at()).prop_map(|(s, at)| Step::WaitUntil(s, at)),
            Just(Step::Yield),
        ]
        .boxed()
    } else {
        prop_oneof![charge, semaphore().prop_map(Step::Wait)].boxed()
    };
    (prop::option::of(0..SEMAPHORES), step)
}

fn placed_script() -> impl Strategy<Value = (Placement, Vec<Entry>)> {
    let script = |may_sleep| prop::collection::vec(entry(may_sleep), 1..12);
    let level = (1..6_u8).prop_map(|level| Placement::Interrupt(InterruptLevel(level)));
    prop_oneof![
        ((2..31_u8).prop_map(thread), script(true)),
        ((7..9_u8).prop_map(thread), script(true)),
        (level, script(true)),
        (Just(Placement::Deferred), script(false)),
        (Just(Placement::External), script(true)),
    ]
}

fn body(script: &[Entry]) -> impl FnMut(&mut dyn Context) -> Step + Send + use<> {
    let script: Vec<Entry> = script.into();
    let mut script = script.into_iter();
    move |context: &mut dyn Context| {
        let Some((signal, step)) = script.next() else {
            return Step::Finish;
        };
        if let Some(semaphore) = signal {
            context.signal(SemaphoreId(semaphore));
        }
        step
    }
}

fn program(scripts: &[(Placement, Vec<Entry>)]) -> Program {
    let mut program = Program::new(1);
    for _ in 0..SEMAPHORES {
        program.semaphore(0);
    }
    for (placement, script) in scripts {
        program.add("any", CPU, *placement, body(script));
    }
    let reservation = Reservation::new(work(700), Span::from_millis(3)).expect("possible sums");
    program.push(reserved(
        4,
        reservation,
        Outside::Timesharing(Priority::NORMAL),
        spinner(),
    ));
    program.push(reserved(4, reservation, Outside::Confined, spinner()));
    program.add("spinner", CPU, thread(1), spinner());
    program
}

/// Follows the events of one processor and objects to the first that cannot be.
fn check_order(
    record: &RunRecord,
    scripts: &[(Placement, Vec<Entry>)],
) -> Result<(), TestCaseError> {
    let level = |who: u16| match scripts[usize::from(who)].0 {
        Placement::Interrupt(level) => level.0,
        _ => 0,
    };
    let (mut handlers, mut deferred, mut loaded) = (Vec::<u16>::new(), None, None);
    let mut now = Instant::ZERO;
    for event in &record.events {
        prop_assert!(event.at >= now);
        now = event.at;
        let who = event.activity.0;
        match event.kind {
            EventKind::InterruptEnter => {
                prop_assert!(handlers.last().is_none_or(|top| level(*top) < level(who)));
                handlers.push(who);
            }
            EventKind::InterruptExit => prop_assert_eq!(handlers.pop(), Some(who)),
            EventKind::DeferredEnter => {
                prop_assert!(handlers.is_empty() && deferred.is_none());
                deferred = Some(who);
            }
            EventKind::DeferredExit => {
                prop_assert!(handlers.is_empty());
                prop_assert_eq!(deferred.take(), Some(who));
            }
            EventKind::Dispatch => {
                prop_assert!(handlers.is_empty() && deferred.is_none() && loaded.is_none());
                loaded = Some(who);
            }
            EventKind::Preempt | EventKind::Block => {
                prop_assert!(handlers.is_empty() && deferred.is_none());
                prop_assert_eq!(loaded.take(), Some(who));
            }
            EventKind::Finish if loaded == Some(who) => loaded = None,
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_time_is_lost_and_the_order_of_contexts_is_kept(
        scripts in prop::collection::vec(placed_script(), 0..8),
    ) {
        for profile in [Profile::IDEAL, Profile::WIN2000_PII450] {
            let record = run(profile, program(&scripts), LENGTH_MS);
            prop_assert_eq!(record.end, ms(LENGTH_MS));
            check_order(&record, &scripts)?;
            let service: Service = record.usage.iter().map(|usage| usage.service).sum();
            if profile.name == "ideal" {
                // There is always a spinner, so the processor is never idle.
                prop_assert_eq!(service, Service::from_millis(LENGTH_MS));
            } else {
                prop_assert!(service < Service::from_millis(LENGTH_MS));
            }
            prop_assert_eq!(run(profile, program(&scripts), LENGTH_MS), record);
        }
    }
}
