//! A process, to its coordinator.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use laxity_model::Span;
use laxity_model::program::coordinator::{Answer, Ask, Bottleneck, Item, Told};

use super::starting::{Starter, connect, reach};
use super::{At, CoordinatorError};
use crate::host::callers::wire::Wire;
use crate::host::together::{Region, Seat};
use crate::os::{fork, signals};

/// Nothing is waited for longer than this: a coordinator that is started, one that answers, one that follows another.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// From one try to the next.
pub(super) const TRY_EVERY: Duration = Duration::from_millis(5);
/// The same of who has lost its coordinator, and cannot start another.
const COME_BACK_EVERY: Duration = Duration::from_millis(500);
/// No more of those who have gone are kept for whoever asks.
const MOST_GONE: usize = 128;

/// Why it does not have what it asked for.
#[derive(Debug)]
pub enum Refusal {
    /// Somebody would be late, or have more than his share; and the reason.
    No(Bottleneck, String),
    /// There was no answer to that, or another one.
    Failed(CoordinatorError),
}

/// A process that has a seat from a coordinator, as long as this is there. Where the coordinator ends, another one is started, and told what this process has.
pub struct Client {
    link: Arc<Link>,
    priority: u8,
    /// Held while an answer is waited for.
    answers: Mutex<Receiver<Ticketed>>,
    listener: JoinHandle<()>,
    generation: u32,
}

/// A process that had upcalls, and has gone. What it had is kept by the coordinator until this is dropped by all, or a limit passes.
pub struct Departed {
    link: Arc<Link>,
    seat: u16,
    process: u32,
}

/// Which question is answered; `None`: the coordinator ended before it was.
type Ticketed = (u64, Option<Answer>);

struct Link {
    at: At,
    starter: Starter,
    name: String,
    seat: Seat,
    state: Mutex<State>,
    came_back: Condvar,
}

#[derive(Default)]
struct State {
    /// `None` while there is no coordinator.
    wire: Option<Arc<Wire>>,
    /// What is granted, as far as it is known.
    held: Vec<Item>,
    /// What is asked and not answered.
    asked: VecDeque<Asked>,
    tickets: u64,
    /// Something was granted that nobody waited for any more.
    is_astray: bool,
    /// The file of the seat: by its lock the next coordinator knows that the seat is taken.
    lock: Option<OwnedFd>,
    gone: Vec<(u16, u32)>,
    /// Why it has a coordinator no more.
    lost: Option<String>,
    ends: bool,
}

/// A question.
struct Asked {
    ticket: u64,
    /// What this process has if the answer is yes.
    items: Option<Vec<Item>>,
    is_waited_for: bool,
}

impl State {
    /// It has gone. What those had of whom nobody asks is others' long since: the oldest are forgotten.
    fn goes(&mut self, seat: u16, process: u32) {
        let over = (self.gone.len() + 1).saturating_sub(MOST_GONE);
        self.gone.drain(..over);
        self.gone.push((seat, process));
    }

    /// Asks; `None` if the coordinator takes nothing more. Another error is its end, which is heard.
    fn ask(&mut self, wire: &Wire, items: &[Item], keep: bool) -> Option<u64> {
        let items = items.to_vec();
        let ask = Ask::Hold { items, keep };
        let sent = wire.send_at_once(&ask.encode(), &[]);
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return None;
        }
        self.tickets += 1;
        let Ask::Hold { items, .. } = ask else {
            return None;
        };
        self.asked.push_back(Asked {
            ticket: self.tickets,
            items: keep.then_some(items),
            is_waited_for: true,
        });
        Some(self.tickets)
    }

    /// The oldest question is answered so. What was granted too late is given back, unless what is asked since says anyway what this process is to have. Tells which question it was.
    fn answered(&mut self, wire: &Wire, answer: &Answer) -> Option<u64> {
        let asked = self.asked.pop_front()?;
        if let (Answer::Held(_), Some(items)) = (answer, asked.items) {
            self.is_astray = !asked.is_waited_for;
            if asked.is_waited_for {
                self.held = items;
            }
        }
        let is_said = self.asked.iter().any(|later| later.items.is_some());
        if self.is_astray && !is_said {
            let held = self.held.clone();
            self.is_astray = self.ask(wire, &held, true).is_none();
        }
        Some(asked.ticket)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(
    wire: &Wire,
    ask: &Ask,
    with: &[std::os::fd::BorrowedFd<'_>],
) -> Option<(Answer, Vec<OwnedFd>)> {
    wire.send(&ask.encode(), with).ok()?;
    let (bytes, with) = wire.receive().ok()?;
    Some((Answer::decode(&bytes?).ok()?, with))
}

/// A connection, and what it is answered whom the coordinator lets in: a seat, the priority there, and what shows that it has that.
fn welcomed(
    at: &At,
    starter: &Starter,
    name: &str,
) -> Result<(Wire, Seat, u8, OwnedFd), CoordinatorError> {
    let until = Instant::now() + PATIENCE;
    let lost = || CoordinatorError::Lost(at.processor);
    let refused = |why| CoordinatorError::Refused(at.processor, why);
    let mut why = None;
    loop {
        let wire = reach(at, starter, until)?;
        let name = name.to_owned();
        match ask(&wire, &Ask::Join { name }, &[]) {
            Some((Answer::Welcome { seat, priority }, with)) => {
                let [region, lock] = with.try_into().map_err(|_: Vec<OwnedFd>| lost())?;
                let region = Region::attach(region)?;
                let number = seat;
                return match wire.patience(None) {
                    Ok(()) => Ok((wire, Seat { region, number }, priority, lock)),
                    Err(_) => Err(lost()),
                };
            }
            Some((Answer::Refused(why), _)) => return Err(refused(why)),
            Some((Answer::NotYet(reason), _)) => why = Some(reason),
            // It ended just then.
            _ => {}
        }
        if Instant::now() >= until {
            return Err(why.map_or_else(lost, refused));
        }
        thread::sleep(TRY_EVERY);
    }
}

/// All who have seats from the coordinator there; `None` if nobody serves.
///
/// # Errors
///
/// What the kernel says; or it does not answer.
pub fn list(at: &At) -> Result<Option<Vec<Told>>, CoordinatorError> {
    let Some(wire) = connect(at)? else {
        return Ok(None);
    };
    let mut all = Vec::new();
    let mut from = 0;
    loop {
        match ask(&wire, &Ask::List(from), &[]).map(|(answer, _)| answer) {
            Some(Answer::Process(told)) if told.seat >= from => {
                from = told.seat.saturating_add(1);
                all.push(told);
            }
            Some(Answer::End) => return Ok(Some(all)),
            Some(Answer::Refused(why)) => return Err(CoordinatorError::Refused(at.processor, why)),
            _ => return Err(CoordinatorError::Lost(at.processor)),
        }
    }
}

impl Client {
    /// Has a seat from the coordinator there, which is started where there is none. Takes five seconds at the most.
    ///
    /// # Errors
    ///
    /// There is none, and none can be started; or it says no.
    pub fn join(at: At, starter: Starter, name: &str) -> Result<Self, CoordinatorError> {
        let (wire, seat, priority, lock) = welcomed(&at, &starter, name)?;
        let wire = Arc::new(wire);
        let state = State {
            wire: Some(Arc::clone(&wire)),
            lock: Some(lock),
            ..State::default()
        };
        let link = Arc::new(Link {
            at,
            starter,
            name: name.to_owned(),
            seat,
            state: Mutex::new(state),
            came_back: Condvar::new(),
        });
        let (tell, answers) = mpsc::channel();
        let listened = Arc::clone(&link);
        let builder = thread::Builder::new().name("coordinated".to_owned());
        let listener = signals::start_deaf(builder, move || listened.listen(wire, &tell));
        let listener = listener
            .map_err(|error| CoordinatorError::NotStarted(link.at.processor, error.to_string()))?;
        Ok(Self {
            link,
            priority,
            answers: Mutex::new(answers),
            listener,
            generation: fork::generation(),
        })
    }

    /// The seat that it has.
    pub fn seat(&self) -> Seat {
        self.link.seat.clone()
    }

    /// The FIFO priority of all executors there; `None`: they are ordinary threads.
    pub fn priority(&self) -> Option<u8> {
        Some(self.priority).filter(|priority| *priority > 0)
    }

    /// Asks for all that this process is to have, or where it is not to `keep` that, whether it could. Tells the bound of each. Takes five seconds at the most.
    ///
    /// # Errors
    ///
    /// Then it has what it had; what is granted after that is given back at once.
    pub fn hold(&self, items: &[Item], keep: bool) -> Result<Vec<Span>, Refusal> {
        let until = Instant::now() + PATIENCE;
        let refused = |why| CoordinatorError::Refused(self.link.at.processor, why);
        loop {
            return Err(Refusal::Failed(match self.asks(items, keep, until)? {
                Some(Answer::Held(bounds)) if bounds.len() == items.len() => return Ok(bounds),
                Some(Answer::No { bottleneck, reason }) => {
                    return Err(Refusal::No(bottleneck, reason));
                }
                Some(Answer::NotYet(why)) if Instant::now() >= until => refused(why),
                Some(Answer::NotYet(_)) => {
                    thread::sleep(TRY_EVERY);
                    continue;
                }
                // It is the same to the next one.
                None => continue,
                Some(Answer::Refused(why)) => refused(why),
                Some(_) => self.lost(),
            }));
        }
    }

    /// Asks that once, and waits for the answer until then; `None` where the coordinator ended before it answered.
    fn asks(&self, items: &[Item], keep: bool, until: Instant) -> Result<Option<Answer>, Refusal> {
        let answers = locked(&self.answers);
        let own = self.link.put(items, keep, until).map_err(Refusal::Failed)?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match answers.recv_timeout(left) {
                Ok((ticket, answer)) if ticket == own => return Ok(answer),
                // Nobody waits for it any more.
                Ok(_) => {}
                // Else it was answered just then.
                Err(RecvTimeoutError::Timeout) if !self.link.gives_up(own) => {}
                Err(_) => return Err(Refusal::Failed(self.lost())),
            }
        }
    }

    fn lost(&self) -> CoordinatorError {
        CoordinatorError::Lost(self.link.at.processor)
    }

    /// This process has no more than this, whether or not anybody hears that now: it is said once, and whoever has not heard it is told with what this process asks for next.
    pub fn give_back(&self, items: &[Item]) {
        locked(&self.link.state).held = items.to_vec();
        let _ = self.asks(items, true, Instant::now() + PATIENCE);
    }

    /// Who has gone since this was asked last.
    pub fn departed(&self) -> Vec<Departed> {
        let gone = std::mem::take(&mut locked(&self.link.state).gone);
        let departed = |(seat, process)| Departed {
            link: Arc::clone(&self.link),
            seat,
            process,
        };
        gone.into_iter().map(departed).collect()
    }

    /// It has nothing any more, nor its seat.
    pub fn leave(&self) {
        if fork::generation() != self.generation {
            return;
        }
        self.give_back(&[]);
        self.end();
    }

    fn end(&self) {
        let mut state = locked(&self.link.state);
        state.ends = true;
        state.lock = None;
        if let Some(wire) = state.wire.take() {
            wire.end();
        }
        drop(state);
        self.listener.thread().unpark();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // In a child that was forked the connection is its parent's.
        if fork::generation() == self.generation {
            self.end();
        }
    }
}

impl Departed {
    /// By the kernel's number.
    pub const fn process(&self) -> u32 {
        self.process
    }
}

impl Drop for Departed {
    fn drop(&mut self) {
        if let Some(wire) = &locked(&self.link.state).wire {
            let _ = wire.send_at_once(&Ask::Settled(self.seat).encode(), &[]);
        }
    }
}

impl Link {
    /// Asks the coordinator, or where it has ended, the next one; tells which answer is to that.
    fn put(&self, items: &[Item], keep: bool, until: Instant) -> Result<u64, CoordinatorError> {
        let mut state = locked(&self.state);
        loop {
            if let Some(why) = &state.lost {
                return Err(CoordinatorError::Refused(self.at.processor, why.clone()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.ends {
                return Err(CoordinatorError::Lost(self.at.processor));
            }
            if let Some(wire) = state.wire.clone() {
                let lost = CoordinatorError::Lost(self.at.processor);
                return state.ask(&wire, items, keep).ok_or(lost);
            }
            let waited = self.came_back.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nobody waits for this answer any more; `false` if it has come.
    fn gives_up(&self, ticket: u64) -> bool {
        let mut state = locked(&self.state);
        let asked = state.asked.iter_mut().find(|asked| asked.ticket == ticket);
        asked.is_some_and(|asked| {
            asked.is_waited_for = false;
            true
        })
    }

    /// Hears what the coordinator says, and whoever comes after it.
    fn listen(&self, mut wire: Arc<Wire>, answers: &Sender<Ticketed>) {
        loop {
            while let Ok((Some(bytes), _)) = wire.receive() {
                let mut state = locked(&self.state);
                match Answer::decode(&bytes) {
                    Ok(Answer::Gone { seat, process }) => state.goes(seat, process),
                    Ok(answer) => {
                        if let Some(ticket) = state.answered(&wire, &answer) {
                            let _ = answers.send((ticket, Some(answer)));
                        }
                    }
                    Err(_) => wire.end(),
                }
            }
            let mut state = locked(&self.state);
            state.wire = None;
            // The next one is told what this process has.
            state.is_astray = false;
            for asked in state.asked.drain(..) {
                let _ = answers.send((asked.ticket, None));
            }
            drop(state);
            match self.come_back() {
                Some(next) => wire = next,
                None => return self.came_back.notify_all(),
            }
        }
    }

    /// Until there is a coordinator that knows what this process has; `None` if there is none any more for it.
    fn come_back(&self) -> Option<Arc<Wire>> {
        loop {
            if locked(&self.state).ends {
                return None;
            }
            let until = Instant::now() + PATIENCE;
            let wire = reach(&self.at, &self.starter, until);
            if let Ok(wire) = wire {
                // Nothing is given back, or asked for, in between.
                let mut state = locked(&self.state);
                let Some(lock) = &state.lock else {
                    return None;
                };
                let resume = Ask::Resume {
                    name: self.name.clone(),
                    seat: self.seat.number,
                    items: state.held.clone(),
                };
                let with = [self.seat.region.as_fd(), lock.as_fd()];
                match ask(&wire, &resume, &with) {
                    Some((Answer::Held(_), _)) if wire.patience(None).is_ok() => {
                        let wire = Arc::new(wire);
                        state.wire = Some(Arc::clone(&wire));
                        self.came_back.notify_all();
                        return Some(wire);
                    }
                    Some((Answer::Refused(why), _)) => {
                        state.lost = Some(why);
                        return None;
                    }
                    _ => {}
                }
            }
            thread::park_timeout(COME_BACK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_those_who_have_gone_the_last_are_kept_for_who_asks() {
        let mut state = State::default();
        for process in 0..1_000 {
            state.goes(3, process);
        }
        assert_eq!(state.gone.len(), MOST_GONE);
        assert_eq!(state.gone.last(), Some(&(3, 999)));
    }
}
