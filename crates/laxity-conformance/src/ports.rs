//! Ports: queues of arrivals with payloads.

use crate::stage::{CPU, DEVICE, HIGH, LOW, Stage, counted, done_or, marks, micros, run_to};
use crate::{Failure, Result, Tolerance, ensure};
use laxity_model::base::port::PortUsage;
use laxity_model::{Host, Placement, PortId, ProcessorId, Program, RunEnd, Span, Step};

fn usage(record: &laxity_model::RunRecord, port: PortId) -> Result<PortUsage> {
    let usage = record.ports.get(port.index()).copied();
    let usage = usage.ok_or_else(|| Failure::Wrong(format!("port {port} is not in the record")))?;
    ensure!(usage.is_conserved(), "arrivals were lost: {usage:?}");
    Ok(usage)
}

/// What was put is taken in order, with its payload and the instant of the put.
pub(crate) fn order(host: &mut dyn Host, _: &Tolerance) -> Result {
    const PUTS: u64 = 50;
    let mut stage = Stage::new(1);
    let (story, putter, taker) = (stage.story(), stage.cue(), stage.cue());
    let port = stage.program.port(PUTS as u32);
    let put = stage.program.mark("put");
    let took = stage.program.mark("took");
    stage.actor(HIGH, putter, move |calls, context| {
        context.mark(put, [context.now().as_nanos(), 0]);
        context.put(port, [calls, !calls]);
        context.mark(put, [context.now().as_nanos(), 0]);
        done_or(calls + 1 == PUTS, Step::Burn(micros(20)))
    });
    stage.actor(LOW, taker, move |calls, context| {
        if calls > 0
            && let Some(arrival) = context.arrival()
        {
            story.tell(context, arrival.payload[0]);
            context.mark(took, [arrival.at.as_nanos(), arrival.payload[1]]);
        }
        done_or(calls == PUTS, Step::Wait(port))
    });
    let play = stage.play(host, &[putter, taker])?;
    let numbers: Vec<u64> = (0..PUTS).collect();
    play.expect(&numbers)?;
    let (puts, took) = (marks(&play.record, put), marks(&play.record, took));
    for (n, (around, [at, payload])) in puts.chunks(2).zip(took).enumerate() {
        ensure!(payload == !(n as u64), "arrival {n} brought {payload}");
        ensure!(
            around.len() == 2 && around[0][0] <= at && at <= around[1][0],
            "arrival {n} was put within {around:?} and says {at}"
        );
    }
    let all = usage(&play.record, port)?;
    ensure!(
        (all.arrived, all.taken) == (PUTS, PUTS),
        "{PUTS} were put and taken: {all:?}"
    );
    Ok(())
}

/// What finds no room is dropped, the putter is told, and the record counts it.
pub(crate) fn overflow(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, putter, taker) = (stage.story(), stage.cue(), stage.cue());
    let port = stage.program.port(4);
    stage.actor(HIGH, putter, move |_, context| {
        for number in 0..10 {
            let room = context.put(port, [number, 0]);
            story.tell(context, 100 + u64::from(room));
        }
        Step::Finish
    });
    stage.actor(LOW, taker, move |calls, context| {
        if calls > 0 {
            let number = context.arrival().map_or(99, |arrival| arrival.payload[0]);
            story.tell(context, number);
        }
        done_or(calls == 3, Step::Wait(port))
    });
    let play = stage.play(host, &[putter, taker])?;
    let mut expected = vec![101; 4];
    expected.extend([100; 6]);
    expected.extend([0, 1, 2]);
    play.expect(&expected)?;
    let expected = PortUsage {
        arrived: 10,
        taken: 3,
        dropped: 6,
        queued: 1,
    };
    let found = usage(&play.record, port)?;
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(())
}

/// An external activity and an interrupt handler feed the same port.
pub(crate) fn from_outside(host: &mut dyn Host, _: &Tolerance) -> Result {
    let feeders = [(0, Placement::External), (0, DEVICE)];
    all_is_taken(host, &feeders, LOW, (20, 1))
}

/// What is outside the machine takes what a thread puts.
pub(crate) fn to_outside(host: &mut dyn Host, _: &Tolerance) -> Result {
    all_is_taken(host, &[(0, LOW)], Placement::External, (20, 3))
}

/// Three activities put on two processors: each arrival is taken once, in its order.
pub(crate) fn several(host: &mut dyn Host, _: &Tolerance) -> Result {
    all_is_taken(host, &[(0, LOW), (1, LOW), (1, HIGH)], HIGH, (30, 10))
}

/// On each of these processors and placements something puts so many times so many; each is taken once, those of each putter in order.
fn all_is_taken(
    host: &mut dyn Host,
    putters: &[(u16, Placement)],
    taker: Placement,
    (times, at_once): (u64, u64),
) -> Result {
    let processors = putters.iter().map(|(processor, _)| processor + 1).max();
    let mut program = Program::new(processors.unwrap_or(1));
    let each = times * at_once;
    let all = each * putters.len() as u64;
    let port = program.port(all as u32);
    let mark = program.mark("taken");
    for (who, (processor, placement)) in (0..).zip(putters) {
        let body = counted(move |calls, context| {
            for n in 0..at_once {
                context.put(port, [who, at_once * calls + n]);
            }
            let later = context.now() + Span::from_micros(200);
            done_or(calls + 1 == times, Step::SleepUntil(later))
        });
        program.add("putter", ProcessorId(*processor), *placement, body);
    }
    let body = counted(move |calls, context| {
        if let Some(arrival) = context.arrival() {
            context.mark(mark, arrival.payload);
        }
        done_or(calls == all, Step::Wait(port))
    });
    program.add("taker", CPU, taker, body);
    let record = run_to(RunEnd::AllFinished, host, program)?;
    let taken = marks(&record, mark);
    for putter in 0..putters.len() as u64 {
        let own = taken.iter().filter(|[who, _]| *who == putter);
        let numbers: Vec<u64> = own.map(|[_, number]| *number).collect();
        let is_whole = numbers.iter().copied().eq(0..each);
        ensure!(is_whole, "of putter {putter} was taken: {numbers:?}");
    }
    Ok(())
}

/// A wait whose time is up has taken nothing, and one that took is no time-out.
pub(crate) fn time_out(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, taker) = (stage.story(), stage.cue());
    let port = stage.program.port(1);
    stage.actor(HIGH, taker, move |calls, context| {
        if calls > 0 {
            story.tell_wait(context);
        }
        if calls == 1 {
            context.put(port, [7, 0]);
        }
        let wait = Span::from_millis([2, 2, 0, 0][calls as usize]);
        done_or(calls == 3, Step::WaitUntil(port, context.now() + wait))
    });
    stage.play(host, &[taker])?.expect(&[1, 70, 1])
}

/// One waiter is woken by arrivals at either of two ports, and finds them at once.
pub(crate) fn doorbell(host: &mut dyn Host, _: &Tolerance) -> Result {
    let mut stage = Stage::new(1);
    let (story, waiter, giver) = (stage.story(), stage.cue(), stage.cue());
    let ports = [stage.program.port(8), stage.program.port(8)];
    let doorbell = stage.program.semaphore(0);
    stage.actor(HIGH, waiter, move |calls, context| {
        for port in ports {
            if calls == 0 {
                context.ring(port, doorbell);
            }
            while let Some(arrival) = context.take(port) {
                story.tell(context, arrival.payload[0]);
            }
        }
        done_or(calls == 3, Step::Wait(doorbell))
    });
    stage.actor(LOW, giver, move |calls, context| {
        let port = ports[usize::from(calls % 2 == 0)];
        context.put(port, [calls, 0]);
        done_or(calls == 2, Step::Burn(micros(100)))
    });
    stage.play(host, &[waiter, giver])?.expect(&[0, 1, 2])
}
