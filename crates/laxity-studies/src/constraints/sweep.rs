//! Random time constraints of several threads beside reservations: whatever was granted is met.

use laxity::observe::Disturbances;
use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::confined;
use laxity_model::base::random::SplitMix64;
use laxity_model::{
    Body, Context, HostError, Instant, Mark, Placement, Priority, Program, Refused, RunRecord,
    Service, Span, Step, TimeConstraint,
};

use super::burst::{PROCESSOR, every};

/// Threads without a reservation that ask.
const GUESTS: usize = 3;
/// A thread counts its service in pieces of this.
pub const PIECE: Service = Service::from_micros(25);

/// What came of one that was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// What was asked for.
    pub asked: Service,
    /// What was received between start and deadline, to within two pieces.
    pub received: Service,
    /// The machine stood still meanwhile.
    pub disturbed: bool,
}

/// What came of a sweep.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// Those that were granted.
    pub granted: Vec<Granted>,
    /// How many were refused for want of time.
    pub no_time: u64,
    /// How many were refused for another reason.
    pub otherwise: u64,
}

impl Swept {
    /// Of each that received less than was asked for, less `tolerated_ppm` of it and two pieces, although the machine went on, what it lacked of that.
    pub fn missed(&self, tolerated_ppm: u64) -> impl Iterator<Item = Span> + Clone {
        let judged = self.granted.iter().filter(|granted| !granted.disturbed);
        let lacked = judged.map(move |granted| {
            let asked = granted.asked.as_nanos();
            let tolerated = asked * tolerated_ppm / 1_000_000 + 2 * PIECE.as_nanos();
            asked.saturating_sub(granted.received.as_nanos() + tolerated)
        });
        let missed = lacked.filter(|lacked| *lacked > 0);
        missed.map(Span::from_nanos)
    }

    /// Those during which the machine stood still.
    pub fn disturbed(&self) -> usize {
        self.granted
            .iter()
            .filter(|granted| granted.disturbed)
            .count()
    }

    /// How many were refused, for whatever reason.
    pub const fn refused(&self) -> u64 {
        self.no_time + self.otherwise
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.granted.extend(&other.granted);
        self.no_time += other.no_time;
        self.otherwise += other.otherwise;
        self
    }
}

/// A few threads that always want the processor ask for one random constraint after the other, beside two random reservations.
///
/// # Errors
///
/// The host's; a set of reservations that is refused is drawn anew.
pub fn run(host: &mut Runner<'_>, seed: u64, length: Span) -> Result<Swept, HostError> {
    let mut random = SplitMix64::new(seed);
    loop {
        let (program, told) = program(&mut random);
        match host.run(program, length) {
            Ok(record) => return Ok(judge(&record, told)),
            Err(HostError::Refused(_)) => {}
            Err(other) => return Err(other),
        }
    }
}

fn program(random: &mut SplitMix64) -> (Program, Mark) {
    let mut program = Program::new(1);
    let told = program.mark("constraint");
    for _ in 0..2 {
        let period_us = 2_000 + below(random, 18_000);
        let service_us = (period_us * (50 + below(random, 250)) / 1_000).max(150);
        let held = (
            Service::from_micros(service_us),
            Span::from_micros(period_us),
        );
        // A holder that asks too: its own slots count.
        let asker = asker(SplitMix64::new(random.draw()), told);
        program.push(confined("holder", every(held), asker));
    }
    for _ in 0..GUESTS {
        let asker = asker(SplitMix64::new(random.draw()), told);
        let normal = Placement::Thread(Priority::NORMAL);
        let guest = program.add("guest", PROCESSOR, normal, asker);
        program.constrained.push(guest);
    }
    (program, told)
}

/// What a mark tells beside the service received: the service asked for of one that was granted, or why it was refused.
const NO_TIME: u64 = 0;
const OTHERWISE: u64 = 1;

/// Asks, and counts what it receives until the deadline.
fn asker(mut random: SplitMix64, told: Mark) -> impl Body + 'static {
    let (mut asked, mut has_asked) = (None::<TimeConstraint>, false);
    let (mut before, mut received) = (None, Service::ZERO);
    move |context: &mut dyn Context| {
        let now = context.now();
        if std::mem::take(&mut has_asked)
            && let Err(why) = context.answer()
        {
            let is_time = matches!(why, Refused::Time { .. });
            context.mark(told, [0, if is_time { NO_TIME } else { OTHERWISE }]);
            asked = None;
            // It tries again later, not at once.
            return Step::Burn(Service::from_millis(1));
        }
        let Some(open) = asked else {
            asked = draw(&mut random, now);
            (has_asked, before, received) = (true, None, Service::ZERO);
            return asked.map_or(Step::Finish, Step::BeginConstraint);
        };
        if now < open.deadline() {
            if now >= open.start() {
                let before = *before.get_or_insert(context.service());
                received = context.service().saturating_sub(before);
            }
            return Step::Burn(PIECE);
        }
        // Beside what is asked for: from the deadline back to the start, so that both are known.
        context.mark(told, [received.as_nanos(), open.service().as_nanos()]);
        asked = None;
        Step::EndConstraint
    }
}

fn draw(random: &mut SplitMix64, now: Instant) -> Option<TimeConstraint> {
    let start = now + Span::from_micros(below(random, 4_000));
    let length_us = 2_000 + below(random, 18_000);
    let service_us = (length_us * (20 + below(random, 500)) / 1_000).max(100);
    let deadline = start + Span::from_micros(length_us);
    TimeConstraint::new(start, deadline, Service::from_micros(service_us)).ok()
}

fn judge(record: &RunRecord, told: Mark) -> Swept {
    let mut swept = Swept::default();
    let longest = Span::from_millis(48);
    for event in record.marked(told) {
        match event.args {
            [0, NO_TIME] => swept.no_time += 1,
            [0, OTHERWISE] => swept.otherwise += 1,
            [received, asked] => {
                let from = event.at - longest.min(event.at.since_epoch());
                let still = Disturbances::of(record, [&event.activity]);
                swept.granted.push(Granted {
                    asked: Service::from_nanos(asked),
                    received: Service::from_nanos(received),
                    disturbed: still.overlap(from, event.at),
                });
            }
        }
    }
    swept
}

/// A number from 0 to before `end`.
const fn below(random: &mut SplitMix64, end: u64) -> u64 {
    random.draw() % end
}
