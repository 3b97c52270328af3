//! Reservations that change and time constraints, granted while the table is carried out: everything the admission grants is held against
//! what was really given, tick by tick, and everything it refuses against a search that tries all ways.
//!
//! `LAXITY_CASES` multiplies the number of random cases (default 1).

use laxity_model::admission::changes::AdmissionState;
use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::{Instant, Refused, Reservation, Service, Span, TimeConstraint};
use proptest::prelude::*;

/// A tick is a nanosecond here: the planner and the admission know no other unit.
const END: u64 = 400;

fn every(service: u64, period: u64) -> Reservation {
    Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).unwrap()
}

fn at(tick: u64) -> Instant {
    Instant::from_nanos(tick)
}

fn costs(per_slot: u64) -> PlanCosts {
    PlanCosts {
        per_slot: Service::from_nanos(per_slot),
        max_share_ppm: 1_000_000,
        other_ppm: 0,
        granularity: Span::from_nanos(1),
    }
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Change {
        service: u64,
        period: u64,
    },
    Constrain {
        wait: u64,
        length: u64,
        service: u64,
    },
    Release,
}

/// Who asks for what, and when.
#[derive(Clone, Copy, Debug)]
struct Asked {
    tick: u64,
    who: usize,
    ask: Ask,
}

#[derive(Clone, Debug)]
struct Case {
    held: Vec<Reservation>,
    others: usize,
    per_slot: u64,
    notice: u64,
    asked: Vec<Asked>,
}

fn reservation() -> impl Strategy<Value = Reservation> {
    (4_u64..40, 5_u64..45).prop_map(|(period, share)| every((period * share / 100).max(1), period))
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        3 => reservation().prop_map(|asked| Ask::Change {
            service: asked.service().as_nanos(),
            period: asked.period().as_nanos(),
        }),
        4 => (0_u64..20, 1_u64..60, 1_u64..=100).prop_map(|(wait, length, part)| Ask::Constrain {
            wait,
            length,
            service: (length * part / 100).max(1),
        }),
        1 => Just(Ask::Release),
    ]
}

fn case(per_slot: std::ops::Range<u64>) -> impl Strategy<Value = Case> {
    let held = prop::collection::vec(reservation(), 1..5);
    let asked = prop::collection::vec((0..END, 0_usize..7, ask()), 1..14);
    (held, 0_usize..3, per_slot, 0_u64..4, asked).prop_map(
        |(held, others, per_slot, notice, asked)| {
            let mut asked: Vec<Asked> = asked
                .into_iter()
                .map(|(tick, who, ask)| Asked { tick, who, ask })
                .collect();
            asked.sort_by_key(|asked| asked.tick);
            Case {
                held,
                others,
                per_slot,
                notice,
                asked,
            }
        },
    )
}

/// A time constraint as it was granted and ended.
#[derive(Clone, Copy, Debug)]
struct Constraint {
    who: usize,
    from: u64,
    deadline: u64,
    service: u64,
    /// When it was released; the deadline if it was not.
    until: u64,
}

/// Carries a case out, tick by tick, and remembers all that was granted and given.
struct Played {
    admission: AdmissionState,
    /// Who had each tick by a table, and who had it as unreserved time.
    given: Vec<(Option<usize>, Option<usize>)>,
    /// By holder: from when it held what.
    history: Vec<Vec<(u64, Reservation)>>,
    constraints: Vec<Constraint>,
    granted: u64,
    refused: Vec<Refused>,
    /// Constraints that were decided otherwise than by the search.
    mistaken: Vec<String>,
}

fn play(case: &Case) -> Option<Played> {
    let costs = costs(case.per_slot);
    let table = plan(&case.held, &costs).ok()?;
    let admission = AdmissionState::new(
        (case.held.clone(), case.others),
        (table, at(0)),
        costs,
        Span::from_nanos(case.notice),
    );
    let mut played = Played {
        admission,
        given: Vec::new(),
        history: case.held.iter().map(|held| vec![(0, *held)]).collect(),
        constraints: Vec::new(),
        granted: 0,
        refused: Vec::new(),
        mistaken: Vec::new(),
    };
    let mut asked = case.asked.iter().peekable();
    for tick in 0..2 * END {
        while let Some(next) = asked.next_if(|asked| asked.tick <= tick) {
            played.ask(case, next);
        }
        let calendar = played.admission.calendar();
        let by_tables = calendar.by_tables(at(tick)).owner;
        let stand = calendar.at(at(tick));
        assert!(stand.since <= at(tick) && at(tick) < stand.until);
        let extra = stand.owner.filter(|_| by_tables.is_none());
        assert!(by_tables.is_none() || by_tables == stand.owner);
        played.given.push((by_tables, extra));
    }
    Some(played)
}

impl Played {
    fn ask(&mut self, case: &Case, asked: &Asked) {
        let (holders, tick) = (case.held.len(), asked.tick);
        let answer = match asked.ask {
            Ask::Change { service, period } => {
                Some(self.change(asked.who % holders, every(service, period), tick))
            }
            Ask::Constrain {
                wait,
                length,
                service,
            } => {
                let start = tick + wait;
                let deadline = at(start + length);
                let wanted = TimeConstraint::new(at(start), deadline, Service::from_nanos(service));
                let who = asked.who % (holders + case.others);
                self.constrain(case, who, wanted.unwrap(), tick)
            }
            Ask::Release => {
                self.release(asked.who % (holders + case.others), tick);
                None
            }
        };
        match answer {
            Some(Ok(from)) => {
                assert!(from >= at(tick));
                self.granted += 1;
            }
            Some(Err(why)) => self.refused.push(why),
            None => {}
        }
    }

    fn change(&mut self, who: usize, wanted: Reservation, tick: u64) -> Result<Instant, Refused> {
        let answer = (self.admission.propose(who, wanted))
            .and_then(|proposal| self.admission.change(proposal, at(tick)));
        let history = &mut self.history[who];
        // What is held already is granted as it is: no table takes over then, and another change may follow at once.
        let holds_it = history.last().is_some_and(|(_, held)| *held == wanted);
        if let (Ok(from), false) = (answer, holds_it) {
            history.push((from.as_nanos(), wanted));
        }
        answer
    }

    /// `None` if it has one already, which is refused whatever is asked for.
    fn constrain(
        &mut self,
        case: &Case,
        who: usize,
        wanted: TimeConstraint,
        tick: u64,
    ) -> Option<Result<Instant, Refused>> {
        if self.admission.is_constrained(who, at(tick)) {
            let answer = self.admission.constrain(who, wanted, at(tick));
            assert_eq!(answer, Err(Refused::HasConstraint));
            return None;
        }
        let feasible = self.feasible(case, who, wanted, tick);
        let answer = self.admission.constrain(who, wanted, at(tick));
        // A switch costs time only where somebody must be switched: a search that knows of switches is another problem.
        if case.per_slot == 0 && answer.is_ok() != feasible {
            let text = format!("tick {tick}, {who}: {wanted:?} {answer:?}");
            self.mistaken.push(text);
        }
        if answer.is_ok() {
            let deadline = wanted.deadline().as_nanos();
            self.constraints.push(Constraint {
                who,
                from: wanted.start().as_nanos().max(tick),
                deadline,
                service: wanted.service().as_nanos(),
                until: deadline,
            });
        }
        Some(answer)
    }

    fn release(&mut self, who: usize, tick: u64) {
        let released = self.admission.release(who, at(tick));
        let own = self.constraints.iter_mut().rev();
        let mut open = own.filter(|c| c.who == who && c.deadline > tick && c.until > tick);
        assert_eq!(
            released.is_some(),
            open.next().map(|c| c.until = tick).is_some()
        );
    }

    /// Whether one more constraint and all that are open can be met from now on: a maximal matching of what each lacks to the ticks
    /// that nobody has reserved, by augmenting paths, which finds one if there is any.
    fn feasible(&self, case: &Case, who: usize, asked: TimeConstraint, now: u64) -> bool {
        let calendar = self.admission.calendar();
        let by_tables = |tick: u64| calendar.by_tables(at(tick)).owner;
        let first = now + case.notice;
        let new = Constraint {
            who,
            from: asked.start().as_nanos().max(now),
            deadline: asked.deadline().as_nanos(),
            service: asked.service().as_nanos(),
            until: asked.deadline().as_nanos(),
        };
        let open = self.constraints.iter().filter(|c| c.until > now);
        let mut units: Vec<(u64, u64)> = Vec::new();
        for constraint in open.chain([&new]) {
            let owner = Some(constraint.who);
            let holds = constraint.who < case.held.len();
            // What is past is past; within the notice all is as it was planned.
            let had = (constraint.from..first).filter(|tick| {
                let past = self.given.get(*tick as usize).copied();
                let given = past.unwrap_or_else(|| {
                    let stand = calendar.at(at(*tick)).owner;
                    (
                        by_tables(*tick),
                        stand.filter(|_| by_tables(*tick).is_none()),
                    )
                });
                *tick < constraint.deadline && given.1 == owner
            });
            let own = (constraint.from..constraint.deadline).filter(|tick| {
                let past = self.given.get(*tick as usize).map(|given| given.0);
                holds && past.unwrap_or_else(|| by_tables(*tick)) == owner
            });
            let lacks = constraint
                .service
                .saturating_sub((had.count() + own.count()) as u64);
            let window = (constraint.from.max(first), constraint.deadline);
            units.extend((0..lacks).map(|_| window));
        }
        let horizon = units.iter().map(|unit| unit.1).max().unwrap_or(first);
        let free: Vec<u64> = (first..horizon)
            .filter(|t| by_tables(*t).is_none())
            .collect();
        let mut taken: Vec<Option<usize>> = vec![None; free.len()];
        (0..units.len()).all(|unit| {
            let mut seen = vec![false; free.len()];
            augment(unit, &units, &free, &mut taken, &mut seen)
        })
    }

    fn ticks(
        &self,
        from: u64,
        until: u64,
        given: impl Fn(&(Option<usize>, Option<usize>)) -> bool,
    ) -> u64 {
        let range = from as usize..(until as usize).min(self.given.len());
        self.given[range].iter().filter(|g| given(g)).count() as u64
    }
}

/// Whether the unit finds a tick, the others moving over.
fn augment(
    unit: usize,
    units: &[(u64, u64)],
    free: &[u64],
    taken: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for (place, tick) in free.iter().enumerate() {
        let (from, until) = units[unit];
        if *tick < from || *tick >= until || std::mem::replace(&mut seen[place], true) {
            continue;
        }
        if taken[place].is_none_or(|other| augment(other, units, free, taken, seen)) {
            taken[place] = Some(unit);
            return true;
        }
    }
    false
}

/// Every window of everybody, also those that hold a mode change, gave what was promised; every constraint was met.
fn check(case: &Case, played: &Played) -> Result<(), TestCaseError> {
    for (who, history) in played.history.iter().enumerate() {
        let own = |from, until| played.ticks(from, until, |given| given.0 == Some(who));
        for (place, (from, held)) in history.iter().enumerate() {
            let (service, period) = (held.service().as_nanos(), held.period().as_nanos());
            let next = history.get(place + 1);
            let until = next.map_or(2 * END, |(from, _)| *from);
            for begin in *from..(until + 1).saturating_sub(period) {
                let got = own(begin, begin + period);
                prop_assert!(got >= service, "{who} got {got} of {held} from {begin} on");
            }
            let Some((change, after)) = next else {
                continue;
            };
            let least = service.min(after.service().as_nanos());
            let window = period.max(after.period().as_nanos());
            for begin in change.saturating_sub(window)..=*change {
                let got = own(begin, begin + window);
                prop_assert!(
                    got >= least,
                    "{who} got {got} across {change} from {begin} on"
                );
            }
        }
    }
    for constraint in &played.constraints {
        let Constraint {
            who,
            from,
            deadline,
            service,
            until,
        } = *constraint;
        let holds = who < case.held.len();
        let got = played.ticks(from, deadline, |given| {
            given.1 == Some(who) || (holds && given.0 == Some(who))
        });
        prop_assert!(
            got >= service || until < deadline,
            "{constraint:?} got {got}"
        );
    }
    Ok(())
}

/// Before somebody gets the processor it is nobody's for as long as a switch takes.
fn check_switches(case: &Case, played: &Played) -> Result<(), TestCaseError> {
    let who: Vec<Option<usize>> = played.given.iter().map(|g| g.0.or(g.1)).collect();
    let mut pause = case.per_slot;
    let mut last = None;
    for (tick, who) in who.iter().enumerate() {
        match who {
            None => pause += 1,
            Some(_) if *who == last && pause == 0 => {}
            Some(_) => {
                prop_assert!(pause >= case.per_slot, "switched after {pause} at {tick}");
                (last, pause) = (*who, 0);
            }
        }
    }
    Ok(())
}

fn cases() -> u32 {
    let factor = std::env::var("LAXITY_CASES").ok();
    150 * factor.map_or(1, |factor| {
        factor.parse().expect("LAXITY_CASES is a number")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Switches cost nothing: a constraint is granted exactly if there is a way to meet it and all others.
    #[test]
    fn what_is_granted_is_kept_and_what_could_be_met_is_granted(case in case(0..1)) {
        let Some(played) = play(&case) else { return Ok(()) };
        prop_assert!(played.mistaken.is_empty(), "{:?}", played.mistaken);
        check(&case, &played)?;
    }

    /// With a cost before each slot and each extra.
    #[test]
    fn what_is_granted_is_kept_where_switches_cost_time(case in case(1..3)) {
        let Some(played) = play(&case) else { return Ok(()) };
        check(&case, &played)?;
        check_switches(&case, &played)?;
    }
}

/// Random sets of reservations as people ask for them, and random changes: how often there is no instant to change over.
#[test]
fn hardly_ever_is_there_a_table_and_no_instant_to_change_to_it() {
    let live = PlanCosts {
        per_slot: Service::from_micros(50),
        max_share_ppm: 940_000,
        other_ppm: 0,
        granularity: Span::from_micros(50),
    };
    let mut random = Random(1);
    let (mut granted, mut no_table, mut no_mode_change) = (0_u32, 0_u32, 0_u32);
    for _ in 0..cases() / 3 {
        let draw = |random: &mut Random, most_permille| {
            let period = 1_000 + random.below(29_000);
            let service = (period * (20 + random.below(most_permille)) / 1_000).max(100);
            Reservation::new(Service::from_micros(service), Span::from_micros(period)).unwrap()
        };
        let held: Vec<Reservation> = (0..1 + random.below(4))
            .map(|_| draw(&mut random, 280))
            .collect();
        let Ok(table) = plan(&held, &live) else {
            continue;
        };
        let mut admission = AdmissionState::new(
            (held.clone(), 0),
            (table, at(0)),
            live,
            Span::from_millis(2),
        );
        for n in 1..6 {
            let (who, asked) = (
                random.below(held.len() as u64) as usize,
                draw(&mut random, 280),
            );
            let now = Instant::from_millis(500 * n);
            let answer = admission
                .propose(who, asked)
                .and_then(|p| admission.change(p, now));
            match answer {
                Ok(_) => granted += 1,
                Err(Refused::Slots(_)) => no_table += 1,
                Err(Refused::NoModeChange { .. } | Refused::SearchEnded) => no_mode_change += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    println!("granted {granted}, no table {no_table}, no mode change {no_mode_change}");
    assert!(granted > 0);
    assert!(
        no_mode_change * 25 <= granted,
        "{no_mode_change} of {granted}"
    );
}

/// Marsaglia's xorshift, 64 bits.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
