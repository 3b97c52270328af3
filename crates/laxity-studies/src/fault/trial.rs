//! A case as a program, its runs, and what the trace says of them.

use std::fmt;

use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::{HandsOn, on_signal, slots};
use laxity_lab::runner::tasks::{Began, Spinner, at_times};
use laxity_model::verify::attribution::{
    Declared, Fault, Findings, Holder, Jobs, LateJob, Question, Rules, Victim, attribute,
};
use laxity_model::{
    Activity, ActivityId, Body, HostError, Outside, Placement, Priority, ProcessorId, Program,
    Reservation, RunRecord, Span,
};

use super::case::{Case, PERIOD, Part, WORK};

const CPU: ProcessorId = ProcessorId(0);
/// The window of the victim's reservation.
const WINDOW: Span = Span::from_millis(8);

/// A case as a program in the making.
struct Stage {
    program: Program,
    /// What the activities declare, by their ids.
    declared: Vec<Declared>,
}

impl Stage {
    fn declare(&mut self, who: ActivityId, declared: Declared) -> ActivityId {
        self.declared.resize(who.index() + 1, Declared::default());
        self.declared[who.index()] = declared;
        who
    }

    fn part(&mut self, part: &Part, name: &str) -> Vec<ActivityId> {
        let deferred = part.deferred.map(|work| (self.program.semaphore(0), work));
        let what = match (part.placement, part.times) {
            (Placement::Interrupt(_), _) => "interrupt",
            (_, Some(_)) => "thread",
            (_, None) => "spinner",
        };
        let queue = deferred.map(|(queue, _)| queue);
        let body: Box<dyn Body> = match part.times {
            Some(times) => Box::new(at_times(times, part.work, queue, Began::default())),
            None => Box::new(Spinner),
        };
        let activity = Activity {
            name: format!("{name} {what}"),
            processor: CPU,
            placement: part.placement,
            reservation: None,
            body,
        };
        let activity = self.program.push(activity);
        let mut ids = vec![self.declare(activity, part.declared)];
        if let Some((queue, work)) = deferred {
            let call = on_signal(queue, move |_, _| work, |_, _| {});
            let name = format!("{name} deferred call");
            ids.push(self.program.add(&name, CPU, Placement::Deferred, call));
        }
        ids
    }

    fn victim(&mut self, case: &Case) -> Victim {
        let marks = ["job begins", "job complete", "service"];
        let [begin, end, service] = marks.map(|name| self.program.mark(name));
        let device = HandsOn::install(&mut self.program, case.victim);
        let (times, overrun) = (case.victim, case.overrun);
        let body = on_signal(
            device.signal,
            move |context, number| {
                let origin = *device.began.get_or_init(|| context.now());
                let raised = times.at(origin, number).as_nanos();
                context.mark(begin, [number, raised]);
                match overrun {
                    Some((every, work)) if number % every == every / 2 => work,
                    _ => WORK,
                }
            },
            move |context, number| {
                context.mark(end, [number, 0]);
                let received = context.service().as_nanos();
                context.mark(service, [received, 0]);
            },
        );
        let priority = Priority::new(24).unwrap_or(Priority::HIGHEST);
        let reservation = case.reserved.and_then(|reserved| {
            let reservation = Reservation::new(reserved, WINDOW).ok()?;
            Some(slots(reservation, Outside::Confined))
        });
        let thread = self.program.push(Activity {
            name: "modem thread".into(),
            processor: CPU,
            placement: Placement::Thread(priority),
            reservation,
            body: Box::new(body),
        });
        Victim {
            activity: self.declare(thread, Declared::rank(priority)),
            device: Some(device.interrupt),
            jobs: Jobs::Marks {
                begin,
                release: 1,
                end,
                service: Some(service),
            },
            deadline: PERIOD,
            work: WORK,
        }
    }
}

/// Who is to blame.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Blame {
    /// Interfering tasks, by number.
    pub interfering: Vec<usize>,
    /// The victim's own overrun.
    pub victim: bool,
    /// Too small a reservation.
    pub reservation: bool,
    /// Others, by name.
    pub others: Vec<String>,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: Vec<String> = self.interfering.iter().map(letter).collect();
        let named = [
            (!letters.is_empty(), letters.join(" and ")),
            (self.victim, "the victim".into()),
            (self.reservation, "the reservation".into()),
        ];
        let named = named.into_iter().filter_map(|(is, who)| is.then_some(who));
        let all: Vec<String> = named.chain(self.others.iter().cloned()).collect();
        f.write_str(&listed(&all))
    }
}

/// Names in a row, or nobody.
pub fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "nobody".into(),
        false => names.join(", "),
    }
}

fn letter(task: &usize) -> String {
    char::from(b'A' + *task as u8).to_string()
}

/// What a trace says of a case.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Everything.
    pub findings: Findings,
    /// Who is named: the reservation if it explains most of the late jobs. A few are put to it wrongly: a replay leaves threads in a slot
    /// where they were.
    pub named: Blame,
    /// Who is named for late jobs during which the machine went on.
    pub named_undisturbed: Blame,
    /// Late jobs that nobody explains.
    pub unexplained: usize,
    /// What the activities are called.
    pub names: Vec<String>,
}

/// What of a case is so: found by running it again without somebody.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// Late jobs if all keep the rules.
    pub late_without: usize,
    /// Who is to blame: of the interfering tasks those whose absence makes fewer jobs late, whoever else is absent.
    pub to_blame: Blame,
}

/// All interfering tasks of a case, by number.
pub fn everybody(case: &Case) -> Vec<usize> {
    (0..case.interfering.len()).collect()
}

/// What somebody is called.
pub fn name(who: Holder, names: &[String]) -> String {
    match (who, who.activity()) {
        (_, Some(id)) => names.get(id.index()).cloned().unwrap_or_default(),
        (Holder::Victim, _) => "the victim itself".into(),
        (Holder::Machine, _) => "the machine".into(),
        (Holder::Unseen, _) => "something unseen".into(),
        _ => "nobody".into(),
    }
}

/// Runs the case with these of its interfering tasks, and reads the verdict off its trace.
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
    let mut stage = Stage {
        program: Program::new(1),
        declared: Vec::new(),
    };
    let victim = stage.victim(case);
    for (number, part) in (1..).zip(&case.innocents) {
        stage.part(part, &format!("innocent {number}"));
    }
    let mut interfering = vec![Vec::new(); case.interfering.len()];
    for task in with {
        let name = format!("interfering {}", letter(task));
        interfering[*task] = stage.part(&case.interfering[*task], &name);
    }
    let activities = stage.program.activities.iter();
    let names: Vec<String> = activities.map(|activity| activity.name.clone()).collect();
    stage.declared.resize(names.len(), Declared::default());
    let record = host.run(stage.program, length)?;
    let question = Question {
        victim,
        declared: &stage.declared,
        rules,
    };
    Ok(judge(&record, &question, &interfering, names))
}

/// Those who are named; `interfering` are the activities of each.
fn blamed(
    named: impl Iterator<Item = Holder>,
    interfering: &[Vec<ActivityId>],
    names: &[String],
) -> Blame {
    let mut blame = Blame::default();
    for who in named {
        let is_of = |id| interfering.iter().position(|ids| ids.contains(&id));
        match (who, who.activity().and_then(is_of)) {
            (Holder::Victim, _) => blame.victim = true,
            (_, Some(number)) => blame.interfering.push(number),
            (who, None) => blame.others.push(name(who, names)),
        }
    }
    blame.interfering.sort_unstable();
    blame.interfering.dedup();
    blame
}

/// Reads the verdict off a record; `interfering` are the activities of each.
fn judge(
    record: &RunRecord,
    question: &Question<'_>,
    interfering: &[Vec<ActivityId>],
    names: Vec<String>,
) -> Verdict {
    let findings = attribute(&record.events, question);
    let all = findings.named.iter().map(|named| named.who);
    let mut blame = blamed(all, interfering, &names);
    let went_on = |job: &&LateJob| job.held.iter().all(|held| held.who != Holder::Machine);
    let undisturbed = findings.late.iter().filter(went_on);
    let undisturbed = undisturbed.flat_map(|job| match &job.fault {
        Fault::InterferingTasks(tasks) => &tasks[..],
        Fault::Reservation { .. } | Fault::Rank | Fault::Overload => &[],
    });
    let named_undisturbed = blamed(undisturbed.map(|task| task.who), interfering, &names);
    let count = |is: fn(&Fault) -> bool| findings.late.iter().filter(|job| is(&job.fault)).count();
    let too_little = count(|fault| matches!(fault, Fault::Reservation { .. }));
    blame.reservation = 2 * too_little > findings.late.len();
    Verdict {
        named: blame,
        named_undisturbed,
        unexplained: count(|fault| matches!(fault, Fault::Rank | Fault::Overload)),
        findings,
        names,
    }
}

/// Runs the case with all its interfering tasks, judges its trace, and finds the truth by running it without each set of them.
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
    let mut with = |case: &Case, with: &[usize]| run(host, case, with, Rules::PC99, length);
    let verdict = with(case, &everybody)?;
    let sets = 1_usize << everybody.len();
    let mut late = Vec::with_capacity(sets);
    for set in 0..sets - 1 {
        let there = everybody.iter().copied();
        let there: Vec<usize> = there.filter(|number| set >> number & 1 == 1).collect();
        late.push(with(case, &there)?.findings.late.len());
    }
    late.push(verdict.findings.late.len());
    let late_without = match case.overrun {
        Some(_) => {
            let overrun = None;
            let innocent = Case {
                overrun,
                ..case.clone()
            };
            with(&innocent, &[])?.findings.late.len()
        }
        None => late[0],
    };
    let makes_a_difference = |number: &usize| {
        let bit = 1 << number;
        (0..sets).any(|set| set & bit == 0 && late[set | bit] > late[set])
    };
    let to_blame = Blame {
        interfering: everybody.into_iter().filter(makes_a_difference).collect(),
        victim: case.overrun.is_some() && late[0] > late_without,
        reservation: late_without > 0,
        others: Vec::new(),
    };
    let truth = Truth {
        late_without,
        to_blame,
    };
    Ok((verdict, truth))
}
