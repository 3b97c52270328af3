//! The victim's jobs.

use alloc::vec::Vec;

use super::{Jobs, Victim};
use crate::{Event, EventKind, Instant, Service};

/// A job of the victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Job {
    pub(super) release: Instant,
    pub(super) end: Instant,
    pub(super) completed: bool,
    /// Processor time it took, where the victim records it.
    pub(super) service: Option<Service>,
}

struct Reader<'a> {
    victim: &'a Victim,
    jobs: Vec<Job>,
    open: Option<Instant>,
    received: Option<Service>,
    /// Since the last job's end.
    raised: Vec<Instant>,
}

/// All jobs by release, as a victim serves them. What was released and not completed at the end of the trace is the last.
pub(super) fn read(events: &[Event], victim: &Victim, end: Instant) -> Vec<Job> {
    let mut reader = Reader {
        victim,
        jobs: Vec::new(),
        open: None,
        received: None,
        raised: Vec::new(),
    };
    for event in events {
        if event.activity == victim.activity {
            reader.take(event);
        }
        if Some(event.activity) == victim.device && event.kind == EventKind::InterruptEnter {
            let raised = Instant::from_nanos(event.args[0]);
            reader.raised.push(raised.min(event.at));
        }
    }
    reader.finish(end)
}

impl Reader<'_> {
    fn take(&mut self, event: &Event) {
        match (self.victim.jobs, event.kind) {
            (
                Jobs::Waits,
                EventKind::Wake | EventKind::InterruptEnter | EventKind::DeferredEnter,
            ) => {
                self.close(event.at);
                self.open = Some(Instant::from_nanos(event.args[0]).min(event.at));
            }
            (
                Jobs::Waits,
                EventKind::Block
                | EventKind::Finish
                | EventKind::InterruptExit
                | EventKind::DeferredExit,
            ) => self.close(event.at),
            (
                Jobs::Marks {
                    begin,
                    release,
                    end,
                    service,
                },
                EventKind::Mark(mark),
            ) => {
                if mark == begin {
                    let release = event.args.get(release).copied().unwrap_or(u64::MAX);
                    self.open = Some(Instant::from_nanos(release).min(event.at));
                } else if mark == end {
                    self.close(event.at);
                } else if Some(mark) == service {
                    self.account(Service::from_nanos(event.args[0]));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, at: Instant) {
        if let Some(release) = self.open.take() {
            self.raised.retain(|raised| *raised > release);
            self.jobs.push(Job {
                release,
                end: at,
                completed: true,
                service: None,
            });
        }
    }

    /// The account after a job: what it took is the difference to the last account.
    fn account(&mut self, received: Service) {
        let before = self.received.replace(received);
        if let (Some(job), Some(before)) = (self.jobs.last_mut(), before) {
            job.service = Some(received.saturating_sub(before));
        }
    }

    fn finish(mut self, end: Instant) -> Vec<Job> {
        let last = self.jobs.last().map(|job| job.release);
        let unserved = self.raised.iter().find(|raised| Some(**raised) > last);
        if let Some(release) = self.open.or(unserved.copied()) {
            self.jobs.push(Job {
                release,
                end,
                completed: false,
                service: None,
            });
        }
        self.jobs
    }
}
