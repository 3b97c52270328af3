//! Random calls, cut short to see what would have happened, and random traces.

use super::*;

/// Calls of others around six jobs; they may have to wait for each other.
fn cases() -> impl Strategy<Value = Vec<Call>> {
    let class = prop_oneof![
        Just(Class::Handler),
        Just(Class::Deferred),
        Just(Class::Above)
    ];
    // Some at once: who comes first then decides.
    let pause = prop_oneof![4 => 0_u64..9_000, 1 => 0_u64..3];
    let one = (class, 1_u16..4, 1_u64..9_000, pause);
    prop::collection::vec(one, 1..12).prop_map(|drawn| {
        let mut at = 9_000;
        let mut calls = jobs(6);
        for (class, who, work, pause) in drawn {
            // One number, one class.
            let who = who + 10 * class as u16;
            calls.push(call(class, who, at, work));
            at += pause;
        }
        calls
    })
}

/// Events that nobody need have recorded, most of them in order; arguments before, about and after them.
fn any_trace() -> impl Strategy<Value = Vec<Event>> {
    let kind = (0_u16..26).prop_map(|code| {
        let mark = EventKind::Mark(Mark(code % 3));
        EventKind::from_code(code).unwrap_or(mark)
    });
    let arg = prop_oneof![0_u64..200_000_000, Just(u64::MAX), any::<u64>()];
    let pause = prop_oneof![9 => 0_i64..20_000, 1 => -5_000_i64..0];
    let one = (pause, kind, 0_u16..4, 0_u16..8, [arg.clone(), arg]);
    prop::collection::vec(one, 0..60).prop_map(|drawn| {
        let mut at = 0_u64;
        let events = drawn
            .into_iter()
            .map(|(pause, kind, who, elsewhere, args)| {
                at = at.saturating_add_signed(pause);
                Event {
                    at: Instant::from_micros(at),
                    kind,
                    processor: ProcessorId(u16::from(elsewhere == 0)),
                    activity: ActivityId(who),
                    args,
                }
            });
        events.collect()
    })
}

fn any_declared() -> impl Strategy<Value = Declared> {
    let apart = prop_oneof![
        Just(None),
        Just(Some(Span::MAX)),
        (1_u64..20_000).prop_map(|us| Some(Span::from_micros(us)))
    ];
    (1_u64..5_000, apart, 0_u8..3).prop_map(|(us, apart, rank)| Declared {
        allowance: Some(Allowance {
            per_job: Service::from_micros(us),
            apart,
        }),
        priority: Priority::new(8 * rank),
    })
}

fn limit(class: Class) -> u64 {
    match class {
        Class::Handler => 100,
        Class::Deferred => 500,
        Class::Above | Class::Victim => 0,
    }
}

/// The same calls, those of `who` cut to what they may take.
fn cut(calls: &[Call], who: &[u16]) -> Vec<Call> {
    let short = |call: &Call| {
        let mut call = *call;
        if call.who != VICTIM && who.contains(&call.who) {
            call.work = call.work.min(limit(call.class));
        }
        call
    };
    let calls: Vec<Call> = calls.iter().map(short).collect();
    calls.into_iter().filter(|call| call.work > 0).collect()
}

/// Which jobs end when.
fn ends(calls: &[Call]) -> Vec<Instant> {
    let events = Machine::run(calls);
    let ends = events
        .iter()
        .filter(|event| event.kind == EventKind::Mark(END));
    ends.map(|event| event.at).collect()
}

proptest! {
    /// The definition, carried out by running the machine again with every set of calls cut short.
    #[test]
    fn interfering_tasks_are_those_whose_excess_decided(calls in cases()) {
        let findings = findings(&calls, &[]);
        let mut suspects: Vec<u16> = calls.iter().map(|call| call.who).filter(|who| *who != VICTIM).collect();
        suspects.sort_unstable();
        suspects.dedup();
        let sets: Vec<Vec<u16>> = (0..1_u32 << suspects.len())
            .map(|set| (0..suspects.len()).filter(|bit| set >> bit & 1 == 1).map(|bit| suspects[bit]).collect())
            .collect();
        let outcomes: Vec<Vec<Instant>> = sets.iter().map(|set| ends(&cut(&calls, set))).collect();
        let due = |job: usize| Instant::from_micros((job as u64 + 2) * DEADLINE_US);
        let late: Vec<usize> = (0..6).filter(|job| outcomes[0][*job] > due(*job)).collect();
        prop_assert_eq!(findings.late.len(), late.len());
        for (job, found) in late.into_iter().zip(&findings.late) {
            let decided: Vec<u16> = suspects.iter().enumerate().filter(|(bit, _)| {
                (0..sets.len()).filter(|set| set >> bit & 1 == 0).any(|set| {
                    outcomes[set][job] > due(job) && outcomes[set | 1 << bit][job] <= due(job)
                })
            }).map(|(_, who)| *who).collect();
            let mut named: Vec<u16> = match &found.fault {
                Fault::InterferingTasks(interfering) => interfering.iter().filter_map(|task| task.who.activity()).map(|id| id.0).collect(),
                _ => Vec::new(),
            };
            named.sort_unstable();
            prop_assert_eq!(&named, &decided, "job {} of {:?}", job, calls);
        }
    }

    /// Whatever a trace says, also one that was cut, is wrong or out of order: there is an answer, and its times add up.
    #[test]
    fn any_trace_is_answered(
        events in any_trace(), marked: bool, has_device: bool, declared in prop::collection::vec(any_declared(), 0..5),
    ) {
        let victim = Victim {
            device: has_device.then_some(ActivityId(1)),
            jobs: if marked {
                Jobs::Marks { begin: BEGIN, release: 0, end: END, service: Some(Mark(2)) }
            } else {
                Jobs::Waits
            },
            ..victim()
        };
        let question = Question { victim, declared: &declared, rules: Rules::PC99 };
        let findings = attribute(&events, &question);
        prop_assert!(findings.late.len() as u64 <= findings.jobs);
        for job in findings.late {
            prop_assert!(job.release <= job.end && !job.lateness.is_zero());
            let held: Span = job.held.iter().map(|held| held.time).sum();
            prop_assert!(held <= job.end - job.release);
            prop_assert!(job.held.iter().all(|held| held.excess <= held.time));
        }
    }

    /// Who held the processor between release and end adds up to that time.
    #[test]
    fn nothing_of_the_time_is_unaccounted(calls in cases()) {
        for job in findings(&calls, &[]).late {
            let held: Span = job.held.iter().map(|held| held.time).sum();
            prop_assert_eq!(held, job.end - job.release);
        }
    }
}
