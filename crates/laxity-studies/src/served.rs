//! The calls of a driver's signal processing, as its marks tell of them, and what the run's end finds that it has not served; of each, what halts of the
//! machine excuse.

use laxity::observe::Disturbances;
use laxity_devices::card::{self, Unserved};
use laxity_devices::modem::Phase;
use laxity_lab::scenario::devices::{Account, Installed};
use laxity_model::enforce::{BusyPeriod, DeviceCall, Losing};
use laxity_model::{Event, EventKind, HostError, Instant, Reservation, RunRecord, Service, Span};

/// A call of the signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Served {
    /// When its interrupt was raised.
    pub raised: Instant,
    /// When it began; of one that had not begun, the run's end.
    pub begun: Instant,
    /// When it was done; of one that was not, the run's end.
    pub done: Instant,
    /// Samples left in the input ring after it.
    pub pending: u64,
    /// Samples lost or underrun since the call before.
    pub damage: u64,
    /// Of these, those that were due to go out of a modem and were not there; none of another device.
    pub underrun: u64,
    /// Of these, as many as the machine answers for; `None`: it did not stand still.
    pub excused: Option<u64>,
    /// What is judged of it; `None` where all may be the machine's doing.
    pub judged: Option<Judged>,
    /// Processor time that the driver received from the end of the call before to its own; `None` if that is not known.
    pub service: Option<Service>,
    /// The device was in its first phase: on hook, at a modem.
    pub in_first_phase: bool,
    /// A time constraint was granted within it.
    pub constrained: bool,
    /// The run's end found it waiting or at work.
    pub is_left: bool,
}

/// Of a call, less what halts of the machine added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judged {
    /// From its interrupt until it was done, or as long as it had waited when the run ended.
    pub response: Span,
    /// Samples left in the input ring after it.
    pub pending: u64,
}

impl Served {
    /// What it lost that no halt of the machine excuses.
    pub fn undisturbed_damage(&self) -> u64 {
        self.damage - self.excused.unwrap_or(0)
    }

    /// Of these, what was due to go out of a modem. What is excused are samples that were to go out before it is any that came in.
    pub fn undisturbed_underrun(&self) -> u64 {
        self.underrun.saturating_sub(self.excused.unwrap_or(0))
    }

    /// From its interrupt until it was done, or as long as it had waited when the run ended.
    pub fn response(&self) -> Span {
        self.done.saturating_since(self.raised)
    }
}

/// What the run's end found that a driver had not served.
///
/// # Errors
///
/// [`HostError::Failed`] if the host kept the driver, so that nobody knows.
pub fn unserved<R>(record: &RunRecord, device: &card::Installed<R>) -> Result<Unserved, HostError> {
    let left = device.left.unserved(record.end);
    left.ok_or_else(|| HostError::Failed("the run is over, and its driver is not".into()))
}

/// All calls of a run, in their order: those that were done, and those that the run's end found too late at any rate, because the
/// interrupt after theirs was raised or something was lost. All damage of the run is in them.
///
/// # Errors
///
/// See [`unserved`].
pub fn calls(record: &RunRecord, device: &Installed) -> Result<Vec<Served>, HostError> {
    let mut reader = Reader::of(record, device);
    let events = record.events.iter();
    events
        .filter(|event| event.activity == device.driver)
        .for_each(|event| reader.take(event));
    reader.leave(&unserved(record, device)?, record.end);
    Ok(reader.calls)
}

/// Reads a driver's events.
struct Reader<'a> {
    device: &'a Installed,
    calls: Vec<Served>,
    /// Samples lost or underrun so far.
    damage: u64,
    /// Of a modem, samples underrun so far.
    underrun: u64,
    /// The call at work.
    open: Option<Served>,
    in_first_phase: bool,
    /// The driver's processor time at its last account.
    accounted: Option<Service>,
    /// By which what of the calls is excused.
    halts: Disturbances,
    reservation: Option<Reservation>,
    losing: Losing,
    busy: BusyPeriod,
}

impl<'a> Reader<'a> {
    fn of(record: &RunRecord, device: &'a Installed) -> Self {
        let usage = record.usage.get(device.driver.index());
        let grant = usage.and_then(|usage| usage.grant.as_ref());
        Self {
            device,
            calls: Vec::new(),
            damage: 0,
            underrun: 0,
            open: None,
            in_first_phase: true,
            accounted: None,
            halts: Disturbances::of(record, &[device.interrupt, device.driver]),
            reservation: grant.map(|grant| grant.reservation),
            losing: device.report.losing(Phase::OnHook),
            busy: BusyPeriod::default(),
        }
    }

    fn take(&mut self, event: &Event) {
        let marks = self.device.marks;
        match event.kind {
            EventKind::Mark(mark) if mark == marks.phase => self.enter(event.args[0]),
            EventKind::Mark(mark) if mark == marks.call_begin => {
                self.open = Some(Served {
                    raised: Instant::from_nanos(event.args[1]),
                    begun: event.at,
                    ..Served::default()
                });
            }
            EventKind::ConstraintBegin => {
                let open = self.open.iter_mut();
                open.for_each(|call| call.constrained = true);
            }
            EventKind::Mark(mark) if mark == marks.call_end => {
                let Some(call) = self.open.take() else { return };
                let [pending, so_far] = event.args;
                self.end(Served {
                    done: event.at,
                    pending,
                    damage: so_far - self.damage,
                    ..call
                });
                self.damage = so_far;
            }
            EventKind::Mark(mark) if mark == marks.account => {
                let so_far = Service::from_nanos(event.args[0]);
                let before = self.accounted.replace(so_far);
                let underrun = self.underrun_since(event.args[1]);
                if let Some(call) = self.calls.last_mut() {
                    call.underrun = underrun;
                    call.service = before.map(|before| so_far.saturating_sub(before));
                }
            }
            _ => {}
        }
    }

    /// Samples that a modem has underrun since it was asked last, by what its account tells.
    fn underrun_since(&mut self, told: u64) -> u64 {
        match self.device.report {
            Account::Modems(_) => told - std::mem::replace(&mut self.underrun, told),
            Account::Stream(..) => 0,
        }
    }

    /// The device enters the phase of this number.
    fn enter(&mut self, number: u64) {
        self.in_first_phase &= number == 0;
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(phase) = Phase::ALL.get(place) {
            self.losing = self.device.report.losing(*phase);
        }
    }

    /// A call is over.
    fn end(&mut self, call: Served) {
        let taken = DeviceCall {
            raised: call.raised,
            ended: call.done,
            lost: call.damage,
        };
        let (busy, losing) = (&mut self.busy, self.losing);
        let excuse = busy.take(taken, losing, &self.halts, self.reservation);
        let judged = excuse.added.map(|added| Judged {
            response: call.response().saturating_sub(added),
            pending: call.pending.saturating_sub(losing.in_time(added)),
        });
        self.calls.push(Served {
            excused: excuse.lost,
            judged,
            in_first_phase: self.in_first_phase,
            ..call
        });
    }

    /// The run's end finds this unserved.
    fn leave(&mut self, left: &Unserved, end: Instant) {
        let lost = left.damage().saturating_sub(self.damage);
        let underrun = self.underrun_since(self.device.report.told_at_end(left));
        let calls = DeviceCall::left(&left.raised, end, lost);
        let late = left.raised.len().saturating_sub(1);
        for (number, call) in calls.enumerate() {
            // The last one is not owed yet, and is there for what was lost.
            if number == late && lost == 0 {
                return;
            }
            let open = self.open.take().unwrap_or_else(|| Served {
                raised: call.raised,
                begun: end,
                ..Served::default()
            });
            self.end(Served {
                done: end,
                pending: left.pending,
                damage: call.lost,
                // With all the rest that is lost at the end.
                underrun: if call.lost > 0 { underrun } else { 0 },
                is_left: true,
                ..open
            });
        }
    }
}
