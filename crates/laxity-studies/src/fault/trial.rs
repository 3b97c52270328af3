//! A case as a program, its runs, and what the trace says of them.

use laxity_model::verify::attribution::{
    Declared, Fault, Findings, Holder, Jobs, Question, Rules, Victim, attribute,
};
use laxity_model::{
    Activity, ActivityId, Enforcer, Host, HostError, InterruptLevel, Outside, Placement, Priority,
    ProcessorId, Program, Reservation, ReservationRequest, RunRecord, Service, Span,
};
use laxity_sim::{Profile, Twin};

use super::bodies::{Driver, DriverMarks, Worker};
use super::case::{Case, PERIOD, Part, Served, WORK};
use laxity_lab::bench::bodies::{Device, OnSignal};
use laxity_lab::runner::tasks::Spinner;

const CPU: ProcessorId = ProcessorId(0);
/// The level of the victim's interrupt: the study's modem (§5.1).
const LEVEL: InterruptLevel = InterruptLevel(5);
/// What its handler and its deferred call take (§6.2.4).
const SHORT: Service = Service::from_nanos(5_400);
/// The window of its reservation.
const WINDOW: Span = Span::from_millis(8);

/// A program that knows who is who.
pub struct Staged {
    /// What a host runs.
    pub program: Program,
    /// What is asked of its trace.
    pub victim: Victim,
    /// What everybody declares.
    pub declared: Vec<Declared>,
    /// The activities of each culprit.
    pub culprits: Vec<Vec<ActivityId>>,
    /// By activity.
    pub names: Vec<String>,
}

struct Stage {
    program: Program,
    declared: Vec<Declared>,
}

impl Stage {
    fn push(&mut self, activity: Activity, declared: Declared) -> ActivityId {
        self.declared.push(declared);
        self.program.push(activity)
    }

    fn add(
        &mut self,
        name: &str,
        placement: Placement,
        declared: Declared,
        body: impl laxity_model::Body + 'static,
    ) -> ActivityId {
        let activity = Activity {
            name: name.into(),
            processor: CPU,
            placement,
            reservation: None,
            body: Box::new(body),
        };
        self.push(activity, declared)
    }

    fn part(&mut self, part: Part, name: &str) -> Vec<ActivityId> {
        match part {
            Part::Device {
                level,
                times,
                handler,
                deferred,
            } => {
                let queue = deferred.map(|_| self.program.semaphore(0));
                let placement = Placement::Interrupt(InterruptLevel(level));
                let device = Device::new(times, handler, queue);
                let mut ids = vec![self.add(
                    &format!("{name} interrupt"),
                    placement,
                    Declared::default(),
                    device,
                )];
                if let Some((work, queue)) = deferred.zip(queue) {
                    ids.push(self.add(
                        &format!("{name} deferred call"),
                        Placement::Deferred,
                        Declared::default(),
                        OnSignal::new(queue, work, None),
                    ));
                }
                ids
            }
            Part::Thread {
                priority,
                times,
                work,
                declared,
            } => {
                let body = Worker::new(times, work);
                vec![self.add(
                    &format!("{name} thread"),
                    Placement::Thread(priority),
                    declared,
                    body,
                )]
            }
            Part::Spinner { priority } => vec![self.add(
                &format!("{name} spinner"),
                Placement::Thread(priority),
                Declared::rank(priority),
                Spinner,
            )],
        }
    }

    fn victim(&mut self, case: &Case) -> Victim {
        let marks = DriverMarks {
            begin: self.program.mark("job begins"),
            end: self.program.mark("job complete"),
            service: self.program.mark("service"),
        };
        let (queue, woken) = (self.program.semaphore(0), self.program.semaphore(0));
        let device = Device::new(case.victim, SHORT, Some(queue));
        let began = device.began();
        let none = Declared::default();
        let device = self.add("modem interrupt", Placement::Interrupt(LEVEL), none, device);
        let hand_on = OnSignal::new(queue, SHORT, Some(woken));
        self.add("modem deferred call", Placement::Deferred, none, hand_on);
        let priority = Priority::new(24).unwrap_or(Priority::HIGHEST);
        let body = Driver::new(woken, marks, (case.victim, began), WORK, case.overrun);
        let activity = Activity {
            name: "modem thread".into(),
            processor: CPU,
            placement: Placement::Thread(priority),
            reservation: reservation(case.served),
            body: Box::new(body),
        };
        Victim {
            activity: self.push(activity, Declared::rank(priority)),
            device: Some(device),
            jobs: Jobs::Marks {
                begin: marks.begin,
                release: 1,
                end: marks.end,
                service: Some(marks.service),
            },
            deadline: PERIOD,
            work: WORK,
        }
    }
}

fn reservation(served: Served) -> Option<ReservationRequest> {
    let Served::Reserved(service) = served else {
        return None;
    };
    Some(ReservationRequest {
        reservation: Reservation::new(service, WINDOW).ok()?,
        enforcer: Enforcer::Slots,
        outside: Outside::Confined,
        begins_at_start: true,
    })
}

/// The case with these of its culprits, by number.
#[must_use]
pub fn stage(case: &Case, with: &[usize]) -> Staged {
    let mut stage = Stage {
        program: Program::new(1),
        declared: Vec::new(),
    };
    let victim = stage.victim(case);
    for (number, part) in case.innocents.iter().enumerate() {
        stage.part(*part, &format!("innocent {}", number + 1));
    }
    let culprits = case.culprits.iter().enumerate();
    let culprits = culprits.map(|(number, part)| {
        if with.contains(&number) {
            let letter = char::from(b'A' + number as u8);
            stage.part(*part, &format!("culprit {letter}"))
        } else {
            Vec::new()
        }
    });
    let culprits = culprits.collect();
    let names = stage.program.activities.iter();
    Staged {
        victim,
        culprits,
        names: names.map(|activity| activity.name.clone()).collect(),
        program: stage.program,
        declared: stage.declared,
    }
}

/// What a trace says of a case.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Everything.
    pub findings: Findings,
    /// Culprits named, by number.
    pub culprits: Vec<usize>,
    /// Whether the victim is named.
    pub victim: bool,
    /// Others that are named, by name.
    pub others: Vec<String>,
    /// Late jobs for which too small a reservation is told.
    pub too_little: usize,
    /// Late jobs that nobody explains.
    pub unexplained: usize,
}

impl Verdict {
    /// Whether too small a reservation explains most of the late jobs. A few are put to it wrongly: a replay leaves threads in a slot where
    /// they were.
    #[must_use]
    pub fn blames_reservation(&self) -> bool {
        2 * self.too_little > self.findings.late.len()
    }
}

/// What of a case is so: found by running it again without somebody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// Late jobs if all keep the rules.
    pub late_without: usize,
    /// Those culprits whose absence makes fewer jobs late, whoever else is absent.
    pub culprits: Vec<usize>,
    /// Whether it is the victim's own overrun.
    pub victim: bool,
    /// Whether it is the reservation.
    pub reservation: bool,
}

/// A case with its verdict and the truth.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The case.
    pub case: Case,
    /// What the trace says.
    pub verdict: Verdict,
    /// What is so.
    pub truth: Truth,
    /// Events in the trace.
    pub events: usize,
}

impl Trial {
    /// Whether exactly those are named that are to blame.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let (verdict, truth) = (&self.verdict, &self.truth);
        verdict.culprits == truth.culprits
            && verdict.victim == truth.victim
            && verdict.others.is_empty()
            && verdict.unexplained == 0
            && verdict.blames_reservation() == truth.reservation
    }
}

/// Reads the verdict off a record.
#[must_use]
pub fn judge(record: &RunRecord, staged: &Staged, rules: Rules) -> Verdict {
    let findings = attribute(
        &record.events,
        &Question {
            victim: staged.victim,
            declared: &staged.declared,
            rules,
        },
    );
    let (mut culprits, mut others, mut victim) = (Vec::new(), Vec::new(), false);
    for named in &findings.named {
        let number = named.who.activity().and_then(|id| {
            let mut all = staged.culprits.iter();
            all.position(|ids| ids.contains(&id))
        });
        match (named.who, number) {
            (Holder::Victim, _) => victim = true,
            (_, Some(number)) if !culprits.contains(&number) => culprits.push(number),
            (_, Some(_)) => {}
            (who, None) => others.push(name(who, &staged.names)),
        }
    }
    culprits.sort_unstable();
    let count = |is: fn(&Fault) -> bool| findings.late.iter().filter(|job| is(&job.fault)).count();
    Verdict {
        culprits,
        victim,
        others,
        too_little: count(|fault| matches!(fault, Fault::Reservation { .. })),
        unexplained: count(|fault| matches!(fault, Fault::Rank | Fault::Overload)),
        findings,
    }
}

/// What somebody is called.
#[must_use]
pub fn name(who: Holder, names: &[String]) -> String {
    match (who, who.activity()) {
        (_, Some(id)) => names.get(id.index()).cloned().unwrap_or_default(),
        (Holder::Victim, _) => "the victim itself".into(),
        (Holder::Machine, _) => "the machine".into(),
        (Holder::Unseen, _) => "something unseen".into(),
        _ => "nobody".into(),
    }
}

fn run(case: &Case, with: &[usize], length: Span) -> Result<(Verdict, usize), HostError> {
    let staged = stage(case, with);
    let Staged {
        program,
        victim,
        declared,
        culprits,
        names,
    } = staged;
    let record = Twin::new(Profile::WIN2000_PII450).run(program, length)?;
    let staged = Staged {
        program: Program::new(1),
        victim,
        declared,
        culprits,
        names,
    };
    let verdict = judge(&record, &staged, Rules::PC99);
    Ok((verdict, record.events.len()))
}

/// Runs the case with all its culprits, judges its trace, and finds the truth by running it without each set of them.
///
/// # Errors
///
/// Those of the twin: none, for a case that was drawn.
pub fn trial(case: &Case, length: Span) -> Result<Trial, HostError> {
    let everybody: Vec<usize> = (0..case.culprits.len()).collect();
    let (verdict, events) = run(case, &everybody, length)?;
    let sets = 1_usize << everybody.len();
    let mut late = vec![verdict.findings.late.len(); sets];
    for (set, late) in late.iter_mut().enumerate().take(sets - 1) {
        let with: Vec<usize> = everybody
            .iter()
            .copied()
            .filter(|number| set >> number & 1 == 1)
            .collect();
        *late = run(case, &with, length)?.0.findings.late.len();
    }
    let innocent = Case {
        overrun: None,
        ..case.clone()
    };
    let late_without = match case.overrun {
        Some(_) => run(&innocent, &[], length)?.0.findings.late.len(),
        None => late[0],
    };
    let makes_a_difference = |number: &usize| {
        let bit = 1 << number;
        (0..sets).any(|set| set & bit == 0 && late[set | bit] > late[set])
    };
    Ok(Trial {
        truth: Truth {
            late_without,
            culprits: everybody.into_iter().filter(makes_a_difference).collect(),
            victim: case.overrun.is_some() && late[0] > late_without,
            reservation: late_without > 0,
        },
        case: case.clone(),
        verdict,
        events,
    })
}
