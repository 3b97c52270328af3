//! Ports: queues of arrivals with payloads.

use crate::stage::{CPU, DEVICE, HIGH, LOW, NEVER, Stage, counted, marks, micros};
use crate::{Case, Failure, Tolerance, ensure};
use laxity_model::base::port::PortUsage;
use laxity_model::{Context, Host, Placement, PortId, ProcessorId, Program, RunEnd, Span, Step};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a-port-keeps-order-payload-and-instant",
        shows: "what was put is taken in order, with its payload and the instant at which it was put",
        processors: 1,
        run: order,
    },
    Case {
        name: "a-full-port-drops-and-counts",
        shows: "what finds no room is dropped, the putter is told, and the record counts it",
        processors: 1,
        run: overflow,
    },
    Case {
        name: "a-port-is-fed-from-outside-the-machine",
        shows: "an external activity and an interrupt handler feed the same port",
        processors: 1,
        run: from_outside,
    },
    Case {
        name: "what-several-put-is-taken-once",
        shows: "three activities put on two processors: each arrival is taken once, those of each in order",
        processors: 2,
        run: several,
    },
    Case {
        name: "a-time-out-brings-no-arrival",
        shows: "a wait for a port whose time is up has taken nothing, and one that took something is no time-out",
        processors: 1,
        run: time_out,
    },
    Case {
        name: "a-bell-rings-for-any-port",
        shows: "one waiter is woken by arrivals at either of two ports, and finds them without waiting",
        processors: 1,
        run: bell,
    },
];

fn usage(record: &laxity_model::RunRecord, port: PortId) -> Result<PortUsage, Failure> {
    let usage = record.ports.get(port.index()).copied();
    let usage = usage.ok_or_else(|| Failure::Wrong(format!("port {port} is not in the record")))?;
    ensure!(usage.is_conserved(), "arrivals were lost: {usage:?}");
    Ok(usage)
}

fn order(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
        if calls + 1 == PUTS {
            return Step::Finish;
        }
        Step::Burn(micros(20))
    });
    stage.actor(LOW, taker, move |calls, context| {
        if calls > 0
            && let Some(arrival) = context.arrival()
        {
            story.tell(context, arrival.payload[0]);
            context.mark(took, [arrival.at.as_nanos(), arrival.payload[1]]);
        }
        if calls == PUTS {
            Step::Finish
        } else {
            Step::Wait(port)
        }
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

fn overflow(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
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
        match calls {
            3 => Step::Finish,
            _ => Step::Wait(port),
        }
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

fn from_outside(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    const EACH: u64 = 20;
    let mut program = Program::new(1);
    let port = program.port(2 * EACH as u32);
    let taken = program.mark("taken");
    for (who, placement) in [(1, Placement::External), (2, DEVICE)] {
        let body = counted(move |calls, context| {
            if calls > 0 {
                context.put(port, [who, calls]);
            }
            if calls == EACH {
                return Step::Finish;
            }
            Step::SleepUntil(context.now() + Span::from_micros(500))
        });
        program.add("feeder", CPU, placement, body);
    }
    let taker = counted(move |calls, context| {
        if let Some(arrival) = context.arrival() {
            context.mark(taken, arrival.payload);
        }
        match calls {
            n if n == 2 * EACH => Step::Finish,
            _ => Step::Wait(port),
        }
    });
    program.add("taker", CPU, LOW, taker);
    let record = host.admit_and_run(program, NEVER)?;
    expect_all(&record, &marks(&record, taken), &[1, 2], EACH)
}

fn several(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    const EACH: u64 = 300;
    let mut program = Program::new(2);
    let port = program.port(3 * EACH as u32);
    let taken = program.mark("taken");
    let places = [(1, 0, LOW), (2, 1, LOW), (3, 1, HIGH)];
    for (who, processor, placement) in places {
        let body = counted(move |calls, context| {
            for n in 10 * calls..10 * (calls + 1) {
                context.put(port, [who, n + 1]);
            }
            match 10 * (calls + 1) {
                EACH => Step::Finish,
                _ => Step::SleepUntil(context.now() + Span::from_micros(200)),
            }
        });
        program.add("putter", ProcessorId(processor), placement, body);
    }
    let taker = counted(move |calls, context| {
        if let Some(arrival) = context.arrival() {
            context.mark(taken, arrival.payload);
        }
        match calls {
            n if n == 3 * EACH => Step::Finish,
            _ => Step::Wait(port),
        }
    });
    program.add("taker", CPU, HIGH, taker);
    let record = host.admit_and_run(program, NEVER)?;
    expect_all(&record, &marks(&record, taken), &[1, 2, 3], EACH)
}

/// Whether each of these has put `each` arrivals that were taken in order.
fn expect_all(
    record: &laxity_model::RunRecord,
    taken: &[[u64; 2]],
    putters: &[u64],
    each: u64,
) -> Result<(), Failure> {
    ensure!(
        record.ended_by == RunEnd::AllFinished && record.events_lost == 0,
        "ended by {:?}, {} events lost",
        record.ended_by,
        record.events_lost
    );
    for putter in putters {
        let own = taken.iter().filter(|[who, _]| who == putter);
        let numbers: Vec<u64> = own.map(|[_, number]| *number).collect();
        ensure!(
            numbers.iter().copied().eq(1..=each),
            "of {putter} was taken: {numbers:?}"
        );
    }
    Ok(())
}

fn time_out(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, taker) = (stage.story(), stage.cue());
    let port = stage.program.port(1);
    let tell = move |context: &mut dyn Context| {
        let taken = context.arrival().map_or(0, |arrival| arrival.payload[0]);
        let told = 10 * taken + u64::from(context.timed_out());
        story.tell(context, told);
    };
    stage.actor(HIGH, taker, move |calls, context| match calls {
        0 => Step::WaitUntil(port, context.now() + Span::from_millis(2)),
        1 => {
            tell(context);
            context.put(port, [7, 0]);
            Step::WaitUntil(port, context.now() + Span::from_millis(2))
        }
        2 => {
            tell(context);
            Step::WaitUntil(port, context.now())
        }
        _ => {
            tell(context);
            Step::Finish
        }
    });
    stage.play(host, &[taker])?.expect(&[1, 70, 1])
}

fn bell(host: &mut dyn Host, _: &Tolerance) -> Result<(), Failure> {
    let mut stage = Stage::new(1);
    let (story, waiter, giver) = (stage.story(), stage.cue(), stage.cue());
    let ports = [stage.program.port(8), stage.program.port(8)];
    let bell = stage.program.semaphore(0);
    stage.actor(HIGH, waiter, move |calls, context| {
        for port in ports {
            if calls == 0 {
                context.ring(port, bell);
            }
            while let Some(arrival) = context.take(port) {
                story.tell(context, arrival.payload[0]);
            }
        }
        match calls {
            3 => Step::Finish,
            _ => Step::Wait(bell),
        }
    });
    stage.actor(LOW, giver, move |calls, context| {
        let port = ports[usize::from(calls % 2 == 0)];
        context.put(port, [calls, 0]);
        match calls {
            2 => Step::Finish,
            _ => Step::Burn(micros(100)),
        }
    });
    stage.play(host, &[waiter, giver])?.expect(&[0, 1, 2])
}
