//! A case as a program, its runs, and what the trace says of them.

use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::{Device, OnSignal, slots};
use laxity_lab::runner::tasks::Spinner;
use laxity_model::verify::attribution::{
    Declared, Fault, Findings, Holder, Jobs, Question, Rules, Victim, attribute,
};
use laxity_model::{
    Activity, ActivityId, HostError, InterruptLevel, Outside, Placement, Priority, ProcessorId,
    Program, Reservation, ReservationRequest, RunRecord, Service, Span,
};

use super::bodies::{Driver, DriverMarks, Worker};
use super::case::{Case, PERIOD, Part, Served, WORK};

const CPU: ProcessorId = ProcessorId(0);
/// The level of the victim's interrupt: the study's modem (§5.1).
const LEVEL: InterruptLevel = InterruptLevel(5);
/// What its handler and its deferred call take (§6.2.4).
const SHORT: Service = Service::from_nanos(5_400);
/// The window of its reservation.
const WINDOW: Span = Span::from_millis(8);

/// Who is who in a program.
struct Cast {
    /// What is asked of its trace.
    victim: Victim,
    /// What everybody declares.
    declared: Vec<Declared>,
    /// The activities of each culprit.
    culprits: Vec<Vec<ActivityId>>,
    /// By activity.
    names: Vec<String>,
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
    let reservation = Reservation::new(service, WINDOW).ok()?;
    Some(slots(reservation, Outside::Confined))
}

/// The case with these of its culprits, by number.
fn stage(case: &Case, with: &[usize]) -> (Program, Cast) {
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
    let cast = Cast {
        victim,
        culprits,
        names: names.map(|activity| activity.name.clone()).collect(),
        declared: stage.declared,
    };
    (stage.program, cast)
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
    /// What the activities are called.
    pub names: Vec<String>,
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

/// All culprits of a case, by number.
#[must_use]
pub fn everybody(case: &Case) -> Vec<usize> {
    (0..case.culprits.len()).collect()
}

/// Reads the verdict off a record.
fn judge(record: &RunRecord, cast: Cast, rules: Rules) -> Verdict {
    let findings = attribute(
        &record.events,
        &Question {
            victim: cast.victim,
            declared: &cast.declared,
            rules,
        },
    );
    let (mut culprits, mut others, mut victim) = (Vec::new(), Vec::new(), false);
    for named in &findings.named {
        let number = named.who.activity().and_then(|id| {
            let mut all = cast.culprits.iter();
            all.position(|ids| ids.contains(&id))
        });
        match (named.who, number) {
            (Holder::Victim, _) => victim = true,
            (_, Some(number)) if !culprits.contains(&number) => culprits.push(number),
            (_, Some(_)) => {}
            (who, None) => others.push(name(who, &cast.names)),
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
        names: cast.names,
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

/// Runs the case with these of its culprits, and reads the verdict off its trace.
///
/// # Errors
///
/// Those of the host.
pub fn run(
    host: &mut Runner<'_>,
    case: &Case,
    with: &[usize],
    rules: Rules,
    length: Span,
) -> Result<Verdict, HostError> {
    let (program, cast) = stage(case, with);
    let record = host.run(program, length)?;
    Ok(judge(&record, cast, rules))
}

/// Runs the case with all its culprits, judges its trace, and finds the truth by running it without each set of them.
///
/// # Errors
///
/// Those of the host.
pub fn truth(
    host: &mut Runner<'_>,
    case: &Case,
    length: Span,
) -> Result<(Verdict, Truth), HostError> {
    let everybody = everybody(case);
    let mut late_with = |case: &Case, with: &[usize]| {
        let verdict = run(host, case, with, Rules::PC99, length)?;
        Ok::<_, HostError>((verdict.findings.late.len(), verdict))
    };
    let (late_with_all, verdict) = late_with(case, &everybody)?;
    let sets = 1_usize << everybody.len();
    let mut late = vec![late_with_all; sets];
    for (set, late) in late.iter_mut().enumerate().take(sets - 1) {
        let with = everybody.iter().copied();
        let with: Vec<usize> = with.filter(|number| set >> number & 1 == 1).collect();
        *late = late_with(case, &with)?.0;
    }
    let late_without = match case.overrun {
        Some(_) => {
            let overrun = None;
            let innocent = Case {
                overrun,
                ..case.clone()
            };
            late_with(&innocent, &[])?.0
        }
        None => late[0],
    };
    let makes_a_difference = |number: &usize| {
        let bit = 1 << number;
        (0..sets).any(|set| set & bit == 0 && late[set | bit] > late[set])
    };
    let truth = Truth {
        late_without,
        culprits: everybody.into_iter().filter(makes_a_difference).collect(),
        victim: case.overrun.is_some() && late[0] > late_without,
        reservation: late_without > 0,
    };
    Ok((verdict, truth))
}
