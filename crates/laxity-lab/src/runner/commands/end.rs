//! What became of a scenario's commands, and what contracts judge them by.

use std::os::unix::process::ExitStatusExt;

use laxity::command::{End, EndError, Ended};
use laxity::hold::Stretch;
use laxity::observe::Disturbances;
use laxity::{Delivery, Unknown, Whereabouts};
use laxity_model::verify::contract::{Limit, Observations, Observed, Phase, Quantity};
use laxity_model::verify::delivery::UNCOUNTED;
use laxity_model::{Disturbance, Enforcer, Grade, Instant, Reservation, RunRecord, Service, Span};
use rustix::process::Signal;

use crate::evidence::subjects::CommandRun;
use crate::scenario::kinds;
use crate::scenario::units::format_span;

/// What became of a command.
#[derive(Debug)]
pub struct CommandEnd {
    /// Its name.
    pub name: String,
    /// The code with which it may end before the run does, unless a contract says that.
    pub(super) expected: u8,
    /// What contracts say of it.
    pub(super) limits: Vec<Limit>,
    pub(super) start: Instant,
    pub(super) how: Result<End, EndError>,
    /// For so long the machine stood still while it was there, if it did.
    pub(super) stood: Option<Span>,
    /// What its reservation gave its first thread, if it had one: in all, and stretch by stretch.
    pub(super) received: Option<Result<(Delivery, Vec<Stretch>), Unknown>>,
    /// How firmly it was held.
    pub(super) grade: Option<Grade>,
    /// Where it was placed.
    pub(super) ran: Whereabouts,
    pub(super) reservation: Option<Reservation>,
}

impl CommandEnd {
    /// Where it may have run.
    pub(in crate::runner) const fn ran(&self) -> Whereabouts {
        self.ran
    }

    /// What it was granted, and how firmly that was held, if it had a reservation.
    pub(in crate::runner) fn grade(&self) -> Option<(String, Grade)> {
        let (reservation, grade) = self.reservation.zip(self.grade.clone())?;
        let holder = format!(
            "{reservation} by {} for its first thread",
            Enforcer::Deadline
        );
        Some((holder, grade))
    }

    fn ended(&self) -> Option<Ended> {
        self.how.as_ref().ok()?.by_itself
    }

    /// Its exit code, as a shell says it, if it ended by itself.
    fn exit_code(&self) -> Option<u64> {
        let status = self.ended()?.status;
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        u64::try_from(code?).ok()
    }

    /// The processor time that it took, with everything that it started.
    fn service(&self) -> Option<Service> {
        self.how.as_ref().ok()?.service
    }

    fn limits_of(&self, quantity: Quantity) -> impl Iterator<Item = &Limit> + Clone {
        let limits = self.limits.iter();
        limits.filter(move |limit| limit.quantity == quantity)
    }

    /// Whether a contract says what its exit code may be.
    fn is_judged(&self) -> bool {
        self.limits_of(kinds::EXIT_CODE).next().is_some()
    }

    /// What contracts limit of its end, as far as it is known.
    fn value(&self, quantity: Quantity) -> Option<u64> {
        match quantity {
            kinds::EXIT_CODE => self.exit_code(),
            _ => self.service().map(Service::as_nanos),
        }
    }

    /// Whether it ended with the code with which it may.
    fn is_expected(&self, code: u64) -> bool {
        code == u64::from(self.expected)
    }

    /// For how long the machine stood still before it ended with another code than was expected, if that may be why.
    fn excuse(&self) -> Option<Span> {
        let code = self.exit_code()?;
        self.stood
            .filter(|_| self.is_machines((kinds::EXIT_CODE, code), &[]))
    }

    /// Whether a value breaks limits, or is no code with which it may end, and halts of the machine may be why of all that it breaks: of a time, where they
    /// took so much from it, or from the control's, or are counted as its own. Where none of its control's runs is known, limits beside that are left out.
    fn is_machines(&self, (quantity, value): (Quantity, u64), control: &[&Self]) -> bool {
        let is_code = quantity == kinds::EXIT_CODE;
        let may_be_code = self.stood.is_some() && !is_fault(value);
        if is_code && !self.is_judged() {
            return !self.is_expected(value) && may_be_code;
        }
        let stood = self.stood_ns();
        let without = [value.saturating_sub(stood), value.saturating_add(stood)];
        let largest = |halts: fn(&Self) -> u64| {
            let all = control.iter().filter_map(|one| {
                let value = one.value(quantity)?;
                let is_judged = !one.is_machines((quantity, value), &[]);
                is_judged.then(|| value.saturating_add(halts(one)))
            });
            all.max()
        };
        let broken = self.limits_of(quantity).filter_map(|limit| {
            let bound = limit.bound_value(|| largest(|_| 0))?;
            let most = limit.bound_value(|| largest(Self::stood_ns))?;
            let may_be_time = without.iter().any(|value| limit.holds(*value, most));
            (!limit.holds(value, bound)).then_some(if is_code { may_be_code } else { may_be_time })
        });
        broken.min() == Some(true)
    }

    fn stood_ns(&self) -> u64 {
        self.stood.map_or(0, Span::as_nanos)
    }

    /// Why the gaps of its first thread do not tell what the rest of it had, where that is so.
    fn unseen(&self) -> Option<String> {
        let reservation = self.reservation?;
        let (seen, _) = self.received.as_ref()?.as_ref().ok()?;
        let Some(used) = self.service() else {
            return Some("nobody knows how much of its processor time was its first thread's, which alone has the reservation".to_owned());
        };
        let unseen = seen.too_much_unseen(used, reservation.service())?;
        Some(format!(
            "nobody saw {unseen} of the {used} of processor time that the kernel counted: the reservation is its first thread's alone"
        ))
    }

    /// Leaves what contracts judge by: of its reservation, what it gave between the run's begin and its end.
    pub(in crate::runner) fn observe(
        &self,
        quantities: &mut Observations,
        [begin, end]: [Instant; 2],
        all: &[Disturbance],
    ) {
        self.observe_end(quantities, &[]);
        let is_unseen = self.unseen().is_some();
        if is_unseen {
            // Who was not seen may have waited all the time.
            let all = end.saturating_since(begin).as_nanos();
            quantities.record_possible(Quantity::SERVICE_GAP, &Phase::RUN, all);
        }
        let disturbances = Disturbances::bearing_on(all, [self.ran]);
        let received = self.received.iter().flatten();
        let stretches = received.flat_map(|(_, stretches)| stretches);
        let in_run = |stretch: &&Stretch| stretch.to > begin && stretch.from < end;
        for Stretch { from, to, gap } in stretches.filter(in_run) {
            let delayed = disturbances.delayed([*from, *to], self.reservation);
            let of_gaps = Quantity::SERVICE_GAP;
            let disturbed = quantities.record_time(of_gaps, &Phase::RUN, *gap, delayed);
            // As `exec` tells it: the kernel does not count all of a wait. Of who was not seen these are not the gaps.
            if !disturbed && !gap.is_zero() && !is_unseen {
                let gap = gap.saturating_sub(delayed.unwrap_or_default());
                let possible = (gap + UNCOUNTED).as_nanos();
                quantities.record_possible(of_gaps, &Phase::RUN, possible);
            }
        }
    }

    /// Leaves what contracts judge by of its end, in place of what was left before: beside these runs of its control, as far as they are known.
    pub(in crate::runner) fn observe_end(&self, quantities: &mut Observations, control: &[&Self]) {
        for quantity in [kinds::EXIT_CODE, kinds::PROCESSOR_TIME] {
            let Some(value) = self.value(quantity) else {
                continue;
            };
            let mut seen = Observed::default();
            match self.is_machines((quantity, value), control) {
                true => seen.disturbed.record(value),
                false => seen.undisturbed.record(value),
            }
            // Other runs that keep an absolute bound do not tell that this one would have. One beside a control is broken by all runs together.
            if self.is_machines((quantity, value), &[]) {
                seen.possible.record(value);
            }
            quantities.set(quantity, &Phase::RUN, seen);
        }
    }

    /// In a sentence, if it did not run as declared: it ended by itself with another code than is expected of it, and no contract judges that,
    /// or nobody knows what became of it.
    pub fn failure(&self) -> Option<String> {
        match &self.how {
            Err(error) => Some(format!("the command of `{}`: {error}", self.name)),
            Ok(End { by_itself, .. }) => {
                let ended = (*by_itself)?;
                let is_expected = self.exit_code().is_some_and(|code| self.is_expected(code));
                let as_declared = self.is_judged() || is_expected;
                (!as_declared).then(|| self.told(&ended))
            }
        }
    }

    /// Whether the machine may be why it [did not run as declared](Self::failure).
    pub(in crate::runner) fn may_be_machines(&self) -> bool {
        self.excuse().is_some()
    }

    /// How it ended by itself, in a sentence, and for how long the machine stood still, if that may be why.
    fn told(&self, ended: &Ended) -> String {
        let (name, how) = (&self.name, how(ended));
        let when = match ended.at > self.start {
            true => format!("{} after the start", format_span(ended.at - self.start)),
            false => "before the start".to_owned(),
        };
        let halts = self.excuse().map_or_else(String::new, |stood| {
            format!("; the machine stood still for {stood} before that, and may be why")
        });
        format!("the command of `{name}` {how} {when}{halts}")
    }

    /// What else is to be known of it, each a sentence.
    pub(in crate::runner) fn notices(&self) -> impl Iterator<Item = String> {
        let name = &self.name;
        let stopped = self.how.as_ref().is_ok_and(|end| end.keeper_was_stopped);
        let stopped = stopped.then(|| {
            format!(
                "somebody had stopped the process that looks after the command of `{name}`; it was let go on, and may have noticed the command's end late"
            )
        });
        let unseen = self.unseen();
        let unseen = unseen.map(|why| format!("the command of `{name}`: {why}"));
        let excused = self.excuse().filter(|_| self.is_judged());
        let excused = excused.and_then(|_| self.ended());
        let excused = excused.map(|ended| format!("{}: not judged", self.told(&ended)));
        [stopped, unseen, excused].into_iter().flatten()
    }

    /// The same as a program reads it.
    pub(in crate::runner) fn figures(&self) -> CommandRun {
        let ended = self.ended();
        let received = self.received.as_ref();
        let unknown = received.and_then(|received| received.as_ref().err());
        CommandRun {
            exit_code: ended.and_then(|ended| ended.status.code()),
            signal: ended.and_then(|ended| ended.status.signal()),
            ended_after_ns: ended.map(|ended| ended.at.saturating_since(self.start).as_nanos()),
            processor_time_ns: self.service().map(Service::as_nanos),
            problem: self.how.as_ref().err().map(ToString::to_string),
            service_gap_unknown: unknown.map(ToString::to_string).or_else(|| self.unseen()),
        }
    }
}

/// For how long the machine stood still in a run, where a command ran that ended like this, before it did; `None` where it did not.
pub(super) fn stood_still(
    how: &Result<End, EndError>,
    ran: Whereabouts,
    record: &RunRecord,
) -> Option<Span> {
    let by_itself = how.as_ref().ok().and_then(|end| end.by_itself);
    let until = by_itself.map_or(record.end, |ended| ended.at);
    let halts = Disturbances::of_who_ran(record, [ran]);
    halts.stood([record.start, until.max(record.start)])
}

/// Whether a program ends with this code that did what it cannot, which is no matter of time. By another signal one may end that finds itself too late (SIGABRT), or that is
/// found so by who watches over it (SIGALRM, SIGXCPU, SIGTERM, SIGKILL).
fn is_fault(code: u64) -> bool {
    let faults = [
        Signal::ILL,
        Signal::BUS,
        Signal::FPE,
        Signal::SEGV,
        Signal::SYS,
    ];
    let mut codes = faults.into_iter().map(|signal| 128 + signal.as_raw());
    codes.any(|fault| u64::try_from(fault) == Ok(code))
}

fn how(ended: &Ended) -> String {
    match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => format!("ended: {}", ended.status),
    }
}

#[cfg(test)]
mod tests;
