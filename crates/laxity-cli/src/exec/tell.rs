//! What is said of a program when it has ended: a line, JSON, a page, a verdict.

mod file;
mod words;

use laxity::contract::{Contract, Evidence, Outcome, Subject};
use laxity::doctor::Machine;
use laxity::hold::{Holders, KIND};
use laxity::{Delivery, Grade, Service, Span, Unknown};
use laxity_lab::command_line;
use laxity_lab::report::{Cell, Check, Figure, Origin, Report, Table, Value, page};
use laxity_model::verify::contract;
use serde::Serialize;

use self::file::{Figures, File};
use self::words::{
    beside, beside_kept, certain, coarseness, halts, halts_or_none, in_brackets, lost, nobody,
    periods, reserve_less, stops, why_nothing,
};
use super::arguments::Exec;
use super::measured::{Round, told as told_rounds};
use super::program::End;
use super::reserved::{Had, Over};
use super::used::{Uncounted, too_much_unseen};
use crate::exit::{self, Failure, failed};
use crate::files;
use crate::outputs::Written;

/// What changes when a reader of the files must change.
pub(super) const FILE_VERSION: u32 = 1;

pub(super) fn json(of: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec_pretty(of).map_err(failed("JSON"))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What a program received.
pub(super) struct Received {
    /// As [`Exec::name`] has it, fit for a line.
    name: String,
    command: Vec<String>,
    reservation: laxity::Reservation,
    enforcer: laxity::Enforcer,
    confinement: Option<laxity::hold::Confinement>,
    processor: Option<usize>,
    took: Span,
    delivery: Result<Delivery, Unknown>,
    /// What the kernel counted of the program as a whole.
    used: Result<Service, Uncounted>,
    /// So much of it nobody saw, where that is too much to say what was received.
    unseen: Option<Service>,
    grade: Grade,
    note: Option<String>,
    /// Each time that it was measured.
    rounds: Vec<Round>,
    /// Why periods are short by this enforcer on this machine, where that is known.
    cause: Option<String>,
    had: Had,
    /// Whether anybody held it, and the names of which nobody came to.
    holders: Holders,
    missing: Vec<String>,
    /// Somebody who was to hold it could not.
    leaves_out: bool,
    /// As the kernel had no bandwidth for it.
    lacks_bandwidth: bool,
    judged: Option<Judged>,
}

/// A verdict, and what it rests on.
struct Judged {
    /// The contract's name; `None`: nothing was reserved that one could judge.
    contract: Option<String>,
    result: Outcome,
    reasons: Vec<String>,
}

/// Why there is nothing to judge.
const NOT_RESERVED: &str =
    "no contract was judged: it had no reservation, but slots to be measured in";

impl Received {
    pub(super) fn new(arguments: &Exec, over: Over, end: End) -> Self {
        let (used, grade) = (over.used(), over.grade(end));
        let Over {
            request,
            observer,
            took,
            had,
            note,
            rounds,
            ..
        } = over;
        let words = arguments.command.iter();
        let (holders, missing) = (observer.holders(), observer.missing());
        let delivery = match holders {
            Holders::Awaited => Err(Unknown(nobody(&missing))),
            Holders::FromTheBeginning | Holders::CameAfter(_) => observer.delivery(),
        };
        let both = used.as_ref().ok().zip(delivery.as_ref().ok());
        let unseen = both.and_then(|(used, seen)| too_much_unseen(&request, *used, seen));
        let enforcer = request.hold.enforcer;
        let is_short = delivery.as_ref().is_ok_and(|seen| seen.kept < seen.periods);
        let by_kernel = enforcer == laxity::Enforcer::Deadline;
        Self {
            name: arguments.name(),
            command: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            reservation: request.hold.reservation,
            enforcer,
            confinement: request.confinement,
            processor: observer.processor(),
            took: Span::from_nanos(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
            delivery,
            used,
            unseen,
            grade,
            note,
            rounds,
            cause: (is_short && by_kernel)
                .then(|| coarseness(&Machine::probe().kernel))
                .flatten(),
            had,
            holders,
            missing,
            leaves_out: observer.leaves_out(),
            lacks_bandwidth: observer.lacks_bandwidth(),
            judged: None,
        }
    }

    /// Judges it, if that is asked for.
    pub(super) fn judge(&mut self, asked: bool, named: Option<Contract>) {
        if !asked && named.is_none() {
            return;
        }
        self.judged = Some(match self.had {
            Had::Reservation => self.judged_by(named),
            Had::Measurement | Had::Nothing => Judged {
                contract: None,
                result: Outcome::Inconclusive,
                reasons: vec![NOT_RESERVED.to_owned()],
            },
        });
    }

    fn judged_by(&self, named: Option<Contract>) -> Judged {
        let seen = self.delivery.clone().unwrap_or_default();
        let contract = named.unwrap_or_else(|| seen.promise());
        let evidence = Evidence {
            subject: Subject {
                name: self.name.clone(),
                kind: KIND,
            },
            runs: vec![seen.observations()],
            control: Vec::new(),
            grades: vec![(self.name.clone(), self.grade.clone())],
            phases_over: Vec::new(),
            doubts: seen.doubts(),
        };
        let evidence = [evidence];
        let verdict = contract::judge(&contract, &evidence, &seen.facts());
        let reasons = verdict.reasons.iter().map(ToString::to_string);
        Judged {
            result: match (self.why_unseen(), verdict.result) {
                // Who was not seen may have been kept from the processor.
                (Some(_), _) => {
                    match contract::judge(&certain(&contract), &evidence, &seen.facts()).result {
                        Outcome::Violated => Outcome::Violated,
                        Outcome::Met | Outcome::Inconclusive => Outcome::Inconclusive,
                    }
                }
                // Nobody knows what those would have had who did not come.
                (None, Outcome::Met) if !self.missing.is_empty() => Outcome::Inconclusive,
                (None, result) => result,
            },
            contract: Some(contract.name),
            reasons: reasons
                .chain(why_nothing(&seen))
                .chain(self.why_unseen())
                .chain(self.why_nobody())
                .collect(),
        }
    }

    /// Which of the threads that were meant have not come, if that is so.
    fn why_nobody(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| nobody(&self.missing))
    }

    /// That nobody saw much of what the program had, if that is so or may be.
    fn why_unseen(&self) -> Option<String> {
        let who = match self.leaves_out {
            true => "who had it is not held, or came and went between two looks",
            false => "who had it came and went between two looks",
        };
        match (&self.used, self.unseen) {
            (Ok(used), Some(unseen)) => Some(format!(
                "nobody saw {} of the {} of service that the kernel counted: {who}",
                service(unseen),
                service(*used),
            )),
            (Err(Uncounted::Unread(why)), _) => Some(format!(
                "how much of its service nobody saw is not known: {why}"
            )),
            (Ok(_), None) | (Err(Uncounted::NotCompared(_)), _) => None,
        }
    }

    /// What would help where the kernel had nothing left for a thread.
    fn remedy(&self) -> Option<String> {
        self.lacks_bandwidth.then(|| reserve_less(self.reservation))
    }

    /// The exit code of the verdict, if there is one.
    pub(super) fn code(&self) -> Option<u8> {
        let judged = self.judged.as_ref();
        judged.map(|judged| exit::of(judged.result))
    }

    /// The line, the JSON, the page: each whatever becomes of the others.
    pub(super) fn tell(&self, arguments: &Exec) -> Result<(), Failure> {
        if !arguments.quiet {
            files::say(&format!("laxity: {}", self.line()));
        }
        let mut written = Written::default();
        if let Some(path) = arguments.json.path() {
            written.put(path, self.to_json());
        }
        if let Some(path) = &arguments.html {
            let page = page::render(&self.report()).map(String::into_bytes);
            written.put(path, page.map_err(failed("the page")));
        }
        written.done()
    }

    /// By whom, where.
    fn held(&self) -> String {
        let on = self.processor.map(|cpu| format!(" on processor {cpu}"));
        let confined = self.confinement.map_or("", |_| ", confined");
        let on = on.unwrap_or_default();
        format!("{} by {}{on}{confined}", self.reservation, self.enforcer)
    }

    fn line(&self) -> String {
        let all: Vec<String> = self.paragraphs().collect();
        all.join("\n  ")
    }

    /// What is said, and each reason of the verdict.
    fn paragraphs(&self) -> impl Iterator<Item = String> {
        let reasons = self.judged.iter().flat_map(|judged| &judged.reasons);
        std::iter::once(self.head()).chain(reasons.cloned())
    }

    fn head(&self) -> String {
        let grade = told(&self.grade);
        let note = self.note.as_deref().unwrap_or_default();
        let mut line = match self.had {
            Had::Nothing => format!(
                "nothing was reserved: {note}; it was measured with {}: {grade}",
                self.held()
            ),
            _ if note.is_empty() => format!("{}: {grade}", self.held()),
            _ => format!("{}: {grade}; {note}", self.held()),
        };
        match &self.delivery {
            Ok(seen) if seen.periods + seen.disturbed + seen.stopped == 0 => {
                line.push_str("; it ended before a period was seen");
            }
            Ok(seen) => line.push_str(&format!("; {}", self.received(seen))),
            Err(why) if self.holders == Holders::Awaited => line.push_str(&format!("; {why}")),
            Err(why) => line.push_str(&format!("; what it received cannot be seen: {why}")),
        }
        if let Holders::CameAfter(after) = self.holders {
            line.push_str(&format!("; its thread came after {}", rounded(after)));
        }
        let missing = self.why_nobody().filter(|_| self.delivery.is_ok());
        let rest = [
            missing,
            self.cause.clone(),
            self.remedy(),
            told_rounds(&self.rounds),
        ];
        for more in rest.iter().flatten() {
            line.push_str(&format!("; {more}"));
        }
        if let Some(judged) = &self.judged {
            let contract = judged.contract.as_ref();
            let contract = contract.map_or_else(String::new, |name| format!("`{name}` "));
            line.push_str(&format!("; {contract}{}", judged.result));
        }
        line
    }

    fn received(&self, seen: &Delivery) -> String {
        format!(
            "{}{} of service{} in {}, largest gap {}{}{}, {} of {} {} kept{}, {} overrun{}{}{}",
            if seen.unseen > 0 || self.unseen.is_some() {
                "at least "
            } else {
                ""
            },
            service(seen.service),
            self.unseen.map_or_else(String::new, |unseen| format!(
                " (and {} that nobody saw)",
                service(unseen)
            )),
            rounded(self.took),
            if seen.gap_is_at_most() {
                "at most "
            } else {
                ""
            },
            rounded(seen.largest_gap),
            self.beside_gap(seen),
            seen.kept,
            seen.periods,
            periods(seen),
            beside_kept(seen),
            seen.overruns,
            if seen.overruns == 1 { "" } else { "s" },
            beside(halts(seen)) + &beside(stops(seen)),
            lost(seen),
        )
    }

    /// The largest gap is of what was not disturbed: what it was otherwise, where that is more; what it may have been, where that is more than was promised; and that.
    fn beside_gap(&self, seen: &Delivery) -> String {
        let disturbed = seen.largest_gap_disturbed;
        let disturbed =
            (disturbed > seen.largest_gap).then(|| format!("{} disturbed", rounded(disturbed)));
        let possible = seen.largest_gap_possible;
        let promised = self.gap_promised();
        let possible = (possible > seen.largest_gap.max(promised.unwrap_or_default()))
            .then(|| format!("perhaps {} between two looks", rounded(possible)));
        let promised = promised.map(|promised| format!("{} promised", rounded(promised)));
        in_brackets(disturbed.into_iter().chain(possible).chain(promised))
    }

    /// No gap is longer, by what is reserved, of who never blocks.
    fn gap_promised(&self) -> Option<Span> {
        (self.had == Had::Reservation).then(|| self.reservation.longest_gap())
    }

    fn to_json(&self) -> Result<Vec<u8>, Failure> {
        let judged = self.judged.as_ref();
        let service_ns = self.reservation.service().as_nanos();
        let is_reserved = self.had == Had::Reservation;
        json(&File {
            file_version: FILE_VERSION,
            laxity_version: env!("CARGO_PKG_VERSION"),
            command: &self.command,
            held: match self.had {
                Had::Reservation => "reservation",
                Had::Measurement => "measurement",
                Had::Nothing => "nothing",
            },
            service_reserved_ns: is_reserved.then_some(service_ns),
            service_measured_with_ns: (!is_reserved).then_some(service_ns),
            period_ns: self.reservation.period().as_nanos(),
            gap_promised_ns: self.gap_promised().map(Span::as_nanos),
            enforcer: self.enforcer.to_string(),
            confined: self.confinement.is_some(),
            processor: self.processor,
            grade: self.grade.to_string(),
            grade_reason: self.grade.reason(),
            reserved_for: self.note.as_deref(),
            measured: self.rounds.iter().map(file::Measured::of).collect(),
            cause: self.cause.as_deref(),
            came_after_ns: match self.holders {
                Holders::CameAfter(after) => Some(after.as_nanos()),
                Holders::FromTheBeginning | Holders::Awaited => None,
            },
            never_came: &self.missing,
            remedy: self.remedy(),
            took_ns: self.took.as_nanos(),
            received: self.delivery.as_ref().ok().map(Figures::of),
            not_seen: self.delivery.as_ref().err().map(ToString::to_string),
            service_used_ns: self.used.as_ref().ok().map(|used| used.as_nanos()),
            service_unseen_ns: self.unseen.map(Service::as_nanos),
            used_not_known: self.used.as_ref().err().map(ToString::to_string),
            contract: judged.and_then(|judged| judged.contract.as_deref()),
            verdict: judged.map(|judged| judged.result.to_string()),
            reasons: judged.map_or(&[], |judged| &judged.reasons),
        })
    }

    fn table(&self) -> Table {
        let row = |name: &str, value| {
            let cell = |value| {
                Some(Cell {
                    origin: Origin::Measured,
                    value,
                })
            };
            vec![cell(Value::Text(name.to_owned())), cell(value)]
        };
        let span = |service: Service| Value::Span(service.as_dedicated_span());
        let rows = self.delivery.iter().flat_map(|seen| {
            let gap = Value::Span;
            [
                row("service", span(seen.service)),
                row("largest gap", gap(seen.largest_gap)),
                row("largest gap, disturbed", gap(seen.largest_gap_disturbed)),
                row("largest gap, perhaps", gap(seen.largest_gap_possible)),
                row("periods", Value::Count(seen.periods)),
                row("periods kept", Value::Count(seen.kept)),
                row("of these slept through", Value::Count(seen.asleep)),
                row("not kept, with too much", Value::Count(seen.exceeded)),
                row("periods stopped", Value::Count(seen.stopped)),
                row("periods disturbed", Value::Count(seen.disturbed)),
                row("of these not kept", Value::Count(seen.short_disturbed)),
                row("periods unseen", Value::Count(seen.unseen)),
                row("overruns", Value::Count(seen.overruns)),
                row("periods seen as one", Value::Count(seen.together.max(1))),
                row("records lost", Value::Count(seen.events_lost)),
                row("halts of the machine", Value::Text(halts_or_none(seen))),
                row("stops of laxity itself", Value::Count(seen.stops.count)),
            ]
        });
        let promised = self.gap_promised();
        let promised = promised.map(|promised| row("gap promised", Value::Span(promised)));
        let counted = self.used.iter();
        let counted = counted.map(|used| row("service by the kernel's count", span(*used)));
        let unseen = self.unseen.iter();
        let unseen = unseen.map(|unseen| row("of this nobody saw", span(*unseen)));
        Table {
            caption: "What it received".to_owned(),
            columns: vec!["quantity".to_owned(), "value".to_owned()],
            rows: promised
                .into_iter()
                .chain(rows)
                .chain(counted)
                .chain(unseen)
                .collect(),
        }
    }

    fn report(&self) -> Report {
        let checks = self.judged.iter().map(|judged| Check {
            claim: judged.contract.as_ref().map_or_else(
                || "what is reserved is kept".to_owned(),
                |name| format!("`{name}` is kept"),
            ),
            held: match judged.result {
                Outcome::Met => Some(true),
                Outcome::Violated => Some(false),
                Outcome::Inconclusive => None,
            },
            seen: self.paragraphs().collect::<Vec<_>>().join("; "),
        });
        Report {
            experiment: "",
            title: format!("{} with {}", self.name, self.held()),
            summary: self.paragraphs().collect(),
            circumstances: vec![
                ("command", command_line(&self.command)),
                ("grade", told(&self.grade)),
            ],
            figures: vec![Figure {
                key: "received".to_owned(),
                title: "Received".to_owned(),
                tables: vec![self.table()],
                ..Figure::default()
            }],
            checks: checks.collect(),
        }
    }
}

/// To whole microseconds.
fn rounded(span: Span) -> Span {
    Span::from_micros(span.as_nanos().div_ceil(1_000))
}

/// To whole microseconds.
fn service(service: Service) -> Span {
    rounded(service.as_dedicated_span())
}

/// A grade with its reason.
fn told(grade: &Grade) -> String {
    match grade.reason() {
        None => grade.to_string(),
        Some(reason) => format!("{grade} ({reason})"),
    }
}

#[cfg(test)]
mod tests;
