//! Cards and the wire between them, by themselves and with the interrupts of a machine.

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use laxity_model::nif::link::{Link, LinkError, Received};
use laxity_model::nif::wire::Framing;
use laxity_model::{
    Context, Instant, InterruptLevel, Mark, Placement, ProcessorId, Program, RunRecord, Span, Step,
};
use laxity_sim::Profile;
use laxity_sim::net::{Cable, Card, Line, Moderation, Queue, Shape, Transfers};
use proptest::prelude::*;

type Packet = Box<[u8]>;

const SHAPE: Shape = Shape {
    queues: 1,
    receive: 32,
    send: 8,
    mtu: 1_500,
    transfers: Transfers {
        begin: Span::from_micros(1),
        rate: 800_000_000,
    },
    moderation: Moderation {
        most: 1,
        longest: Span::ZERO,
    },
};
const LATE: Instant = Instant::from_secs(10);

fn queue(card: &Card) -> Queue {
    card.queue(0).expect("each card has a queue")
}

fn post(queue: &mut Queue, packets: usize) {
    for memory in queue.allocate(packets).expect("there is memory") {
        queue.post(memory).expect("it fits the ring");
    }
}

/// A frame on this circuit, with its number.
fn frame(circuit: u8, number: u8, length: usize) -> Packet {
    let mut frame = vec![0; length].into_boxed_slice();
    (frame[0], frame[1]) = (circuit, number);
    frame
}

fn send(queue: &mut Queue, frame: Packet, now: Instant) {
    let length = frame.len();
    queue.send(frame, length, now).expect("it fits the ring");
}

fn all(queue: &mut Queue, now: Instant) -> Vec<Received<Packet>> {
    std::iter::from_fn(|| queue.receive(now).expect("the wire is up")).collect()
}

#[test]
fn a_frame_arrives_after_the_transfer_and_the_wire_and_is_there_after_another_transfer() {
    let (_, near, far) = Cable::new(Line::ethernet(), [SHAPE; 2], 1);
    let (mut near, mut far) = (queue(&near), queue(&far));
    post(&mut far, 1);
    send(&mut near, frame(0, 7, 100), Instant::ZERO);
    // Two transfers of 1 µs and 100 bytes at 10 ns; 124 bytes at 800 ns.
    let arrives = Instant::from_nanos(2_000 + 99_200);
    let there = arrives + Span::from_nanos(2_000);
    assert!(near.sent(arrives - Span::from_nanos(1)).is_none());
    assert!(near.sent(arrives).is_some());
    assert!(all(&mut far, there - Span::from_nanos(1)).is_empty());
    let received = all(&mut far, there);
    assert_eq!((received[0].at, received[0].length), (arrives, 100));
    assert_eq!(received[0].memory[1], 7);
}

#[test]
fn what_finds_no_memory_is_counted_and_leaves_what_is_posted_alone() {
    let (_, near, far) = Cable::new(Line::atm(), [SHAPE; 2], 1);
    let (mut near, mut far) = (queue(&near), queue(&far));
    post(&mut far, 3);
    for number in 0..8 {
        send(&mut near, frame(0, number, 64), Instant::ZERO);
    }
    let full = near.send(frame(0, 8, 64), 64, Instant::ZERO);
    assert_eq!(full.expect_err("8 descriptors").1, LinkError::Full);
    let numbers: Vec<u8> = all(&mut far, LATE)
        .iter()
        .map(|one| one.memory[1])
        .collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(far.losses().no_room, 5);
}

#[test]
fn a_flood_for_one_circuit_costs_no_packet_of_another_however_it_is_returned() {
    let (_, near, far) = Cable::new(Line::atm(), [SHAPE; 2], 1);
    far.find_circuits(
        |frame| frame.first().map(|first| u64::from(*first)),
        Instant::ZERO,
    );
    let (mut near, mut own) = (queue(&near), queue(&far));
    for (circuit, client) in [(1, 10), (2, 20)] {
        let memory = own.allocate(2).expect("there is memory");
        far.open(circuit, client, 0, memory, Instant::ZERO)
            .expect("it is closed");
    }
    assert!(
        far.open(1, 30, 0, Vec::new(), Instant::ZERO).is_err(),
        "it is open"
    );
    let mut taken = [0; 2];
    for round in 0..100 {
        let now = Instant::from_millis(round);
        for number in 0..6 {
            let circuit = if number == 5 { 2 } else { 1 };
            send(&mut near, frame(circuit, number, 500), now);
        }
        let later = now + Span::from_micros(900);
        while near.sent(later).is_some() {}
        for received in all(&mut own, later) {
            let client = received.early.expect("it is on a circuit");
            assert_eq!(client, u32::from(received.memory[0]) * 10);
            taken[usize::from(client == 20)] += 1;
            own.post(received.memory).expect("its place is free");
        }
    }
    assert_eq!((taken, own.losses().no_room), ([200, 100], 300));
    let closed = far.close(1, LATE).expect("it is open");
    assert_eq!((closed.len(), far.close(1, LATE).is_none()), (2, true));
}

#[test]
fn a_wire_that_goes_down_gives_all_memory_back_and_tells_each_end_once() {
    let (cable, near, far) = Cable::new(Line::ethernet(), [SHAPE; 2], 1);
    let (mut near, mut far) = (queue(&near), queue(&far));
    post(&mut far, 4);
    (0..3).for_each(|number| send(&mut near, frame(0, number, 1_000), Instant::ZERO));
    let now = Instant::from_micros(100);
    cable.go_down(now);
    assert_eq!(near.receive(now).err(), Some(LinkError::Down));
    assert_eq!(far.receive(now).err(), Some(LinkError::Down));
    let refused = near.send(frame(0, 9, 64), 64, now);
    assert_eq!(refused.expect_err("it is down").1, LinkError::Down);
    assert_eq!(std::iter::from_fn(|| near.sent(LATE)).count(), 3);
    cable.go_up(LATE);
    send(&mut near, frame(0, 4, 64), LATE);
    let received = all(&mut far, LATE + Span::from_secs(1));
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].memory[1], 4);
}

/// What happens in a random run, on either side.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Send(bool, usize),
    Post(bool),
    Receive(bool),
    Sent(bool),
    Pass(u32),
    Down,
    Up,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::{Down, Pass, Post, Receive, Send, Sent, Up};
    let one = prop_oneof![
        6 => (any::<bool>(), 14..1_514_usize).prop_map(|(side, length)| Send(side, length)),
        4 => any::<bool>().prop_map(Post),
        4 => any::<bool>().prop_map(Receive),
        4 => any::<bool>().prop_map(Sent),
        6 => (0..2_000_000_u32).prop_map(Pass),
        1 => Just(Down),
        2 => Just(Up),
    ];
    prop::collection::vec(one, 1..200)
}

/// Both sides, the memory that is with neither, and what each received.
struct World {
    cable: Cable,
    sides: [Queue; 2],
    pool: Vec<Packet>,
    seen: Vec<(usize, Instant, usize, u8)>,
    now: Instant,
    number: u8,
}

const POOL: usize = 40;

impl World {
    fn new(line: Line) -> Self {
        let (cable, near, far) = Cable::new(line, [SHAPE; 2], 5);
        let mut sides = [queue(&near), queue(&far)];
        let pool = sides[0].allocate(POOL).expect("there is memory");
        Self {
            cable,
            sides,
            pool,
            seen: Vec::new(),
            now: Instant::ZERO,
            number: 0,
        }
    }

    fn does(&mut self, operation: Operation) {
        let now = self.now;
        match operation {
            Operation::Send(side, length) => {
                let Some(mut memory) = self.pool.pop() else {
                    return;
                };
                memory[1] = self.number;
                self.number = self.number.wrapping_add(1);
                let sent = self.sides[usize::from(side)].send(memory, length, now);
                self.pool.extend(sent.err().map(|(memory, _)| memory));
            }
            Operation::Post(side) => {
                let Some(memory) = self.pool.pop() else {
                    return;
                };
                let posted = self.sides[usize::from(side)].post(memory);
                self.pool.extend(posted.err());
            }
            Operation::Receive(side) => {
                let side = usize::from(side);
                if let Ok(Some(one)) = self.sides[side].receive(now) {
                    self.seen.push((side, one.at, one.length, one.memory[1]));
                    self.pool.push(one.memory);
                }
            }
            Operation::Sent(side) => self.pool.extend(self.sides[usize::from(side)].sent(now)),
            Operation::Pass(nanos) => self.now += Span::from_nanos(nanos.into()),
            Operation::Down => self.cable.go_down(now),
            Operation::Up => self.cable.go_up(now),
        }
    }
}

proptest! {
    /// Oracle: the sum of all memory; a frame is on the wire for what its framing takes, up to its arrival.
    #[test]
    fn no_memory_is_lost_and_a_shared_wire_carries_one_frame_at_a_time(operations in operations()) {
        let mut world = World::new(Line::ethernet());
        let mut again = World::new(Line::ethernet());
        for operation in operations {
            world.does(operation);
            again.does(operation);
        }
        prop_assert_eq!(&world.seen, &again.seen);
        let World { mut sides, pool, mut seen, .. } = world;
        let home: usize = sides.iter_mut().map(|side| std::iter::from_fn(|| side.reclaim()).count()).sum();
        prop_assert_eq!(pool.len() + home, POOL);
        for side in 0..2 {
            let mut of = seen.iter().filter(|one| one.0 == side).map(|one| one.1);
            prop_assert!(of.by_ref().is_sorted());
        }
        seen.sort_by_key(|one| one.1);
        for pair in seen.windows(2) {
            let begins = pair[1].1 - Framing::Ethernet.takes(pair[1].2, 10_000_000);
            prop_assert!(begins >= pair[0].1, "{pair:?} are on the wire at once");
        }
    }
}

/// One host sends `count` frames of 500 bytes, 100 µs apart; the other, on a processor of its own, answers each. Marks: what the
/// second host took at each interrupt, and how many answers came back to the first.
fn two_hosts(moderation: Moderation, count: u8) -> (RunRecord, usize) {
    let shape = Shape {
        moderation,
        ..SHAPE
    };
    let (cable, near, far) = Cable::new(Line::atm(), [shape; 2], 1);
    let (mut near, mut far) = (queue(&near), queue(&far));
    post(&mut near, 32);
    post(&mut far, 32);
    let mut program = Program::new(2);
    let [doorbell, answered, asked] = [(); 3].map(|()| program.semaphore(0));
    let took = program.mark("took");
    let hardware = cable.hardware(doorbell, [vec![answered], vec![asked]]);
    program.add("hardware", CPU, Placement::External, hardware);
    let answers = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&answers);
    let mut asks = near.clone();
    let handler = Placement::Interrupt(InterruptLevel(5));
    program.add("first", CPU, handler, move |context: &mut dyn Context| {
        let now = context.now();
        while near.sent(now).is_some() {}
        *counted.lock().expect("nobody panics") += all(&mut near, now).len();
        near.unmask(now);
        context.signal(doorbell);
        Step::Wait(answered)
    });
    let mut number = 0;
    program.add("asks", CPU, thread(8), move |context: &mut dyn Context| {
        if number == count {
            return Step::Finish;
        }
        send(&mut asks, frame(0, number, 500), context.now());
        context.signal(doorbell);
        number += 1;
        Step::SleepUntil(Instant::from_micros(100 * u64::from(number)))
    });
    program.add(
        "second",
        ProcessorId(1),
        handler,
        move |context: &mut dyn Context| {
            answer(&mut far, context, took);
            context.signal(doorbell);
            Step::Wait(asked)
        },
    );
    let record = run(Profile::IDEAL, program, 1_000);
    let answers = *answers.lock().expect("nobody panics");
    (record, answers)
}

fn answer(far: &mut Queue, context: &mut dyn Context, took: Mark) {
    let now = context.now();
    while far.sent(now).is_some() {}
    let received = all(far, now);
    if let Some(first) = received.first() {
        let since = (now - first.at).as_nanos();
        context.mark(took, [received.len() as u64, since]);
    }
    for one in received {
        send(far, one.memory[..one.length].into(), now);
        far.post(one.memory).expect("its place is free");
    }
    far.unmask(now);
}

fn taken(record: &RunRecord) -> Vec<[u64; 2]> {
    let marks = record.events.iter();
    let marks = marks.filter(|event| matches!(event.kind, laxity_model::EventKind::Mark(_)));
    marks.map(|event| event.args).collect()
}

#[test]
fn hosts_at_both_ends_answer_each_other_in_one_run_and_equal_runs_are_equal_to_the_byte() {
    let at_once = SHAPE.moderation;
    let (record, answers) = two_hosts(at_once, 20);
    assert_eq!(answers, 20);
    // Each is taken when its transfer of 1 µs and 500 bytes at 10 ns ends.
    assert_eq!(taken(&record), [[1, 6_000]; 20]);
    let (again, _) = two_hosts(at_once, 20);
    assert_eq!(
        format!("{:?}", record.events),
        format!("{:?}", again.events)
    );
}

#[test]
fn a_moderated_interrupt_comes_after_so_many_packets_or_so_long_and_not_before() {
    let moderation = |most, longest| Moderation {
        most,
        longest: Span::from_micros(longest),
    };
    let (record, _) = two_hosts(moderation(5, 100_000), 20);
    let counts: u64 = taken(&record).iter().map(|[count, _]| count).sum();
    assert_eq!(counts, 20);
    assert!(taken(&record).len() <= 8, "answers that left count as well");
    let (record, _) = two_hosts(moderation(1_000, 250), 1);
    assert_eq!(taken(&record), [[1, 6_000 + 250_000]]);
}
