//! Upcalls as an application has them: made and ended by commands while their executor runs, on boards that say what became of each.
//!
//! Who commands is less urgent than the executor, so that each command is carried out, and each arrival served, before the next: no instant decides that order.

use std::sync::Arc;

use crate::stage::{HIGH, LOW, Stage, marks, micros};
use crate::upcalls::units;
use crate::{Result, Tolerance, ensure, ensure_in_time};
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{Call, PacedBy, Timing};
use laxity_model::program::upcalls::{
    Board, Command, Control, Counts, Entrant, Keeper, Order, STOP, Standing, turns,
};
use laxity_model::{Context, Host, Instant, Mark, PortId, RunEnd, Service, Span, Step};

/// Longer than any call is held up.
const LONG: Span = Span::from_secs(10);
/// Apart by nothing that anybody sees.
const APART: Span = Span::from_nanos(1);

/// So many arrivals wait for each.
const ROOM: u32 = 8;

/// Tells of a call, for the upcall of this place.
#[derive(Clone, Copy)]
struct Teller {
    told: Mark,
    place: u16,
}

impl Teller {
    /// At how many units of its call it is, and something of the call.
    fn tell(self, context: &mut dyn Context, call: &Call, what: u64) {
        context.mark(self.told, [at_work(self.place, call.done()), what]);
    }
}

/// What an upcall tells that is at its next unit.
fn at_work(place: u16, done: u32) -> u64 {
    u64::from(place) * 10 + u64::from(done)
}

/// What is told of who stands like this, and of the last command: 0 if there was none, 1 if it was carried out, 2 if not.
const fn stands(standing: Standing, answer: u64) -> u64 {
    100 + 10 * standing as u64 + answer
}

type Does = fn(Teller, &mut dyn Context, &mut Call) -> Step;

/// An upcall.
#[derive(Clone)]
struct Member {
    timing: Timing,
    /// What arrives releases it, so far apart at least.
    distance: Option<Span>,
    /// Who is before it in a chain.
    after: Option<u16>,
    deadline: Span,
    does: Does,
}

impl Member {
    fn new(timing: Timing, does: Does) -> Self {
        Self {
            timing,
            distance: None,
            after: None,
            deadline: LONG,
            does,
        }
    }
}

/// Has those that were made.
struct Keep {
    members: Vec<(Member, bool)>,
    told: Mark,
    arrivals: PortId,
}

impl Keeper for Keep {
    fn make(&mut self, place: u16) -> bool {
        self.members[usize::from(place)].1 = true;
        true
    }

    fn enter(&mut self, place: u16) -> Option<Entrant> {
        let (member, is_made) = self.members[usize::from(place)].clone();
        let (told, does) = (self.told, member.does);
        let follows = member.after.map(|_| Span::ZERO);
        let apart = follows.or(member.distance);
        is_made.then(|| Entrant {
            timing: member.timing,
            paced_by: apart.map(|apart| PacedBy {
                port: PortId(self.arrivals.0 + place),
                apart,
                room: ROOM,
            }),
            deadline: member.deadline,
            unit: Service::MAX,
            share: None,
            account: None,
            work: Box::new(move |context, call| does(Teller { told, place }, context, call)),
        })
    }

    fn after(&self, place: u16) -> Option<u16> {
        self.members[usize::from(place)].0.after
    }

    fn discard(&mut self, place: u16) {
        self.members[usize::from(place)].1 = false;
    }

    fn changed(&self) -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(|| ())
    }
}

/// What the one who commands does next.
#[derive(Clone, Copy)]
enum Act {
    Ask(u16, Command),
    /// Something arrives for this place, with this number.
    Arrive(u16, u64),
    /// How this place stands.
    Tell(u16),
    /// The same once it is not active.
    Await(u16),
}
use Act::{Arrive, Ask, Await, Tell};

/// Made, and to be called.
const fn begun(place: u16) -> [Act; 2] {
    [Ask(place, Command::Create), Ask(place, Command::Run)]
}

/// Acts one after the other, and then stops all.
struct Script {
    acts: std::vec::IntoIter<Act>,
    commands: PortId,
    arrivals: PortId,
    boards: Arc<[Board]>,
    told: Mark,
    ticket: u64,
}

impl Script {
    fn goes_on(&mut self, context: &mut dyn Context) -> Step {
        match self.acts.as_slice().first() {
            None => {
                context.put(self.commands, STOP);
                return Step::Finish;
            }
            Some(Await(place)) if self.board(*place).standing() == Standing::Active => {
                return Step::SleepUntil(context.now() + Span::from_millis(1));
            }
            Some(Tell(place) | Await(place)) => {
                let board = self.board(*place);
                let answer = match board.answer(self.ticket) {
                    _ if self.ticket == 0 => 0,
                    None => 0,
                    Some(Ok(())) => 1,
                    Some(Err(_)) => 2,
                };
                context.mark(self.told, [stands(board.standing(), answer), 0]);
            }
            Some(Ask(place, command)) => {
                let (place, command) = (*place, *command);
                self.ticket += 1;
                let ticket = self.ticket;
                let order = Order {
                    place,
                    command,
                    ticket,
                };
                context.put(self.commands, order.payload());
            }
            Some(Arrive(place, number)) => {
                context.put(PortId(self.arrivals.0 + place), [*number, 0]);
            }
        }
        self.acts.next();
        Step::Burn(micros(100))
    }

    fn board(&self, place: u16) -> &Board {
        &self.boards[usize::from(place)]
    }
}

/// What came of it: what was told, and what each has done.
struct Done {
    told: Vec<[u64; 2]>,
    counts: Vec<Counts>,
}

impl Done {
    fn story(&self) -> Vec<u64> {
        self.told.iter().map(|[what, _]| *what).collect()
    }

    fn expect(&self, expected: &[u64]) -> Result {
        let story = self.story();
        ensure!(story == expected, "told {story:?} instead of {expected:?}");
        Ok(())
    }

    /// Of each that was told by an upcall.
    fn details(&self) -> impl Iterator<Item = u64> {
        let of_calls = self.told.iter().filter(|[what, _]| *what < 100);
        of_calls.map(|[_, detail]| *detail)
    }
}

/// Has these upcalls, on an executor of their own, do as the script says.
fn perform(
    host: &mut dyn Host,
    members: Vec<Member>,
    (acts, end): (Vec<Act>, RunEnd),
) -> Result<Done> {
    let mut stage = Stage::new(1);
    let told = stage.program.mark("told");
    let (doorbell, commands) = (stage.program.semaphore(0), stage.program.port(32));
    let ports: Vec<PortId> = members.iter().map(|_| stage.program.port(ROOM)).collect();
    let arrivals = ports[0];
    let boards: Arc<[Board]> = members.iter().map(|_| Board::default()).collect();
    let members = members.into_iter().map(|member| (member, false)).collect();
    let keep = Keep {
        members,
        told,
        arrivals,
    };
    let control = Control::new([commands, arrivals], Arc::clone(&boards), keep);
    let mut body = turns(Rmdp::default(), doorbell, Box::new(control), false);
    let (executor, script) = (stage.cue(), stage.cue());
    // Before all others: an executor outside of a program calls itself the first activity.
    stage.actor(HIGH, executor, move |_, context| body.step(context));
    let mut acts = Script {
        acts: acts.into_iter(),
        commands,
        arrivals,
        boards: Arc::clone(&boards),
        told,
        ticket: 0,
    };
    stage.actor(LOW, script, move |_, context| acts.goes_on(context));
    let play = stage.play_until(end, host, &[executor, script])?;
    Ok(Done {
        told: marks(&play.record, told),
        counts: boards.iter().map(Board::counts).collect(),
    })
}

fn briefly(teller: Teller, context: &mut dyn Context, call: &mut Call) -> Step {
    teller.tell(context, call, call.origin.as_nanos());
    Step::Burn(micros(200))
}

/// Each command means what it means to an upcall that is as it is, and one that means nothing is answered and changes nothing.
pub(crate) fn as_told(host: &mut dyn Host, _: &Tolerance) -> Result {
    use Standing::{Absent, Active, Suspended};
    let member = Member {
        distance: Some(APART),
        ..Member::new(Timing::each(Span::from_millis(10)), briefly)
    };
    let (mut acts, mut story) = (Vec::new(), Vec::new());
    for (act, told) in [
        // What arrives before it is made is nobody's.
        (Arrive(0, 0), vec![stands(Absent, 0)]),
        (Ask(0, Command::Run), vec![stands(Absent, 2)]),
        (Ask(0, Command::Create), vec![stands(Suspended, 1)]),
        (Ask(0, Command::Run), vec![stands(Active, 1)]),
        (Arrive(0, 0), vec![0, stands(Active, 1)]),
        (Ask(0, Command::Suspend), vec![stands(Suspended, 1)]),
        (Ask(0, Command::Suspend), vec![stands(Suspended, 1)]),
        (Ask(0, Command::Run), vec![stands(Active, 1)]),
        (Arrive(0, 0), vec![0, stands(Active, 1)]),
        (Ask(0, Command::Create), vec![stands(Active, 2)]),
        (Ask(0, Command::Close), vec![stands(Absent, 1)]),
        (Arrive(0, 0), vec![stands(Absent, 1)]),
        (Ask(0, Command::Close), vec![stands(Absent, 2)]),
    ] {
        acts.extend([act, Tell(0)]);
        story.extend(told);
    }
    let done = perform(host, vec![member], (acts, RunEnd::AllFinished))?;
    done.expect(&story)?;
    let counts = done.counts[0];
    ensure!(counts.calls == 2 && counts.units == 2, "{counts:?}");
    Ok(())
}

/// The end of a call, and no quantum before it, releases who comes after it, for as long as that one is called; its deadline counts from the release of the first.
pub(crate) fn chained(host: &mut dyn Host, _: &Tolerance) -> Result {
    let each = Timing::each(Span::from_millis(100));
    let first = Member {
        distance: Some(APART),
        ..Member::new(
            Timing {
                batch: units(2),
                ..each.clone()
            },
            |teller, context, call| {
                teller.tell(context, call, call.origin.as_nanos());
                Step::Burn(Service::from_millis(10))
            },
        )
    };
    // More urgent than who releases it, and late by what that one takes.
    let second = Member {
        after: Some(0),
        deadline: Span::from_millis(15),
        ..Member::new(each.clone(), briefly)
    };
    let third = Member {
        after: Some(1),
        ..Member::new(each, briefly)
    };
    let mut acts: Vec<Act> = (0..3).flat_map(begun).collect();
    let mut story = Vec::new();
    for (command, calls, standing) in [
        (Command::Run, &[0, 1, 10, 20][..], Standing::Active),
        (Command::Suspend, &[0, 1], Standing::Suspended),
        (Command::Run, &[0, 1, 10, 20], Standing::Active),
        (Command::Close, &[0, 1], Standing::Absent),
    ] {
        acts.extend([Ask(1, command), Arrive(0, 0), Tell(1)]);
        story.extend(calls);
        story.push(stands(standing, 1));
    }
    let members = vec![first, second, third];
    let done = perform(host, members, (acts, RunEnd::AllFinished))?;
    done.expect(&story)?;
    let origins: Vec<u64> = done.details().collect();
    let chains = origins.chunk_by(|before, after| before == after);
    let lengths: Vec<usize> = chains.map(<[u64]>::len).collect();
    ensure!(lengths == [4, 2, 4, 2], "released at {origins:?}");
    let counts = |of: fn(&Counts) -> u64| done.counts.iter().map(of).collect::<Vec<u64>>();
    let (calls, late) = (counts(|of| of.calls), counts(|of| of.late));
    ensure!(calls == [4, 2, 2], "{calls:?} calls");
    ensure!(late == [0, 2, 0], "{late:?} late, of {calls:?}");
    Ok(())
}

/// A first call of two periods and a half, and another, after which it suspends itself, unless what was chosen for overruns comes before.
fn overruns(teller: Teller, context: &mut dyn Context, call: &mut Call) -> Step {
    teller.tell(context, call, call.paced.missed);
    match call.previous_ended {
        None => Step::Burn(Service::from_millis(30)),
        Some(_) => Step::SleepUntil(Instant::MAX),
    }
}

/// Each overrun is counted, with the releases that came to nothing for it, and has the consequence that was chosen.
pub(crate) fn overrun(host: &mut dyn Host, _: &Tolerance) -> Result {
    use Standing::{Ended, Overran, Suspended};
    let [suspended, overran, ended] = [Suspended, Overran, Ended].map(|how| stands(how, 1));
    let twice = vec![0, 0, suspended, 0, 0, suspended];
    let denied = stands(Ended, 2);
    for (on_overrun, story, expected) in [
        (OnOverrun::SKIP, twice.clone(), [4, 2, 4]),
        (OnOverrun::ONCE_LATE, twice.clone(), [4, 2, 2]),
        (OnOverrun::CatchUp { at_most: 5 }, twice, [4, 2, 0]),
        (OnOverrun::Suspend, vec![0, overran, 0, overran], [2, 2, 0]),
        (OnOverrun::End, vec![0, ended, denied], [1, 1, 0]),
        (OnOverrun::EndProcess, vec![0], [1, 1, 0]),
    ] {
        let end = match on_overrun {
            OnOverrun::EndProcess => RunEnd::EndRun,
            _ => RunEnd::AllFinished,
        };
        let timing = Timing {
            on_overrun,
            ..Timing::each(Span::from_millis(12))
        };
        let again = [Await(0), Ask(0, Command::Run), Await(0)];
        let acts = begun(0).into_iter().chain(again).collect();
        let done = perform(host, vec![Member::new(timing, overruns)], (acts, end))?;
        done.expect(&story)?;
        let counts = done.counts[0];
        let missed = done.details().sum::<u64>();
        ensure!(
            [counts.calls, counts.overruns] == expected[..2],
            "{on_overrun:?}: {counts:?}"
        );
        ensure!(counts.missed == missed, "told of {missed}: {counts:?}");
        ensure_in_time!(missed == expected[2], "{on_overrun:?}: {counts:?}");
    }
    Ok(())
}

/// What arrives releases in its order, and no sooner than its distance after the release before: not even where it was suspended between the two.
pub(crate) fn distant(host: &mut dyn Host, _: &Tolerance) -> Result {
    let distance = Span::from_millis(10);
    let timing = Timing {
        on_overrun: OnOverrun::CatchUp { at_most: u32::MAX },
        ..Timing::each(distance)
    };
    let member = Member {
        distance: Some(distance),
        ..Member::new(timing, |teller, context, call| {
            teller.tell(context, call, call.paced.release.as_nanos());
            match call.arrived {
                Some([3, _]) => Step::SleepUntil(Instant::MAX),
                _ => Step::Burn(micros(200)),
            }
        })
    };
    let mut acts = Vec::from(begun(0));
    acts.extend([Arrive(0, 0), Arrive(0, 1)]);
    acts.extend([Command::Suspend, Command::Run].map(|command| Ask(0, command)));
    acts.extend([Arrive(0, 2), Arrive(0, 3), Await(0)]);
    let done = perform(host, vec![member], (acts, RunEnd::AllFinished))?;
    let (story, expected) = (done.story(), [0, 0, 0, stands(Standing::Suspended, 1)]);
    ensure_in_time!(story == expected, "told {story:?} instead of {expected:?}");
    let releases: Vec<u64> = done.details().collect();
    let apart: Vec<u64> = releases.windows(2).map(|two| two[1] - two[0]).collect();
    let distance = distance.as_nanos();
    let is_kept = apart.iter().all(|apart| *apart >= distance);
    ensure!(is_kept, "{apart:?} ns apart");
    ensure_in_time!(apart == [distance; 2], "{apart:?} ns apart");
    Ok(())
}
