//! Who held the victim's processor when, and what of it was in excess.

use alloc::vec::Vec;

use super::calls::{Account, Budget};
use super::{Breach, Holder, Question};
use crate::{ActivityId, Event, EventKind, Instant, ProcessorId, Reservation, Service, Span};

/// A stretch in which nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) holder: Holder,
    /// From here to its end it is excess in the victim's way; its end if none of it is.
    pub(super) excess_from: Instant,
    /// The same whether or not it was in the victim's way: threads only.
    pub(super) over_from: Instant,
    /// When whoever holds it was raised, queued or woken: it could have run from then on.
    pub(super) ready: Instant,
    /// It came before the victim: a handler, a deferred call, or a thread while the victim was ready and had a claim.
    pub(super) before_victim: bool,
    /// The victim had a claim on this time: no reservation, or a slot of its own.
    pub(super) claim: bool,
    /// A thread that ranks no higher ran while the victim was ready and had a claim.
    pub(super) shared: bool,
    /// The thread that ran ranks no higher than the victim, as far as is declared.
    pub(super) ranks_no_higher: bool,
}

/// The victim's processor over the whole trace.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// Without gaps, by time.
    pub(super) pieces: Vec<Piece>,
    /// By activity.
    pub(super) breaches: Vec<Breach>,
    /// The victim's reservations: when each was in force.
    pub(super) reservations: Vec<(Instant, Instant, Reservation)>,
    pub(super) longest_held_off: Option<Span>,
    pub(super) end: Instant,
}

struct Reader<'a> {
    question: &'a Question<'a>,
    /// What was read so far; its end is the time up to which pieces are made.
    timeline: Timeline,
    accounts: Vec<Account>,
    handlers: Vec<ActivityId>,
    deferred: Vec<ActivityId>,
    /// Threads that were dispatched and have neither waited nor been preempted since; the last one runs.
    threads: Vec<ActivityId>,
    disturbances: Vec<(Instant, Instant)>,
    /// When the victim became ready before it could tell, the last first.
    wakes: Vec<Instant>,
    /// The victim's reservation is kept by slots that the trace shows.
    has_slots: bool,
    victim_is_thread: bool,
    ready: bool,
    in_slot: bool,
    reserved: Option<(Instant, Reservation)>,
    /// Granted, but not in force before its `ReservationFrom`.
    granted: Option<Reservation>,
}

impl Timeline {
    /// Reads the events of one processor.
    pub(super) fn read(events: &[Event], processor: ProcessorId, question: &Question<'_>) -> Self {
        let mut reader = Reader::new(events, processor, question);
        for event in events.iter().filter(|event| event.processor == processor) {
            reader.advance(event.at);
            reader.take(event);
        }
        let end = events.last().map_or(Instant::ZERO, |event| event.at);
        reader.advance(end);
        reader.finish()
    }
}

impl<'a> Reader<'a> {
    fn new(events: &[Event], processor: ProcessorId, question: &'a Question<'a>) -> Self {
        let victim = question.victim.activity;
        let of_victim = |kinds: &[EventKind]| {
            let mut all = events.iter();
            all.any(|event| event.activity == victim && kinds.contains(&event.kind))
        };
        let mut disturbances: Vec<(Instant, Instant)> = events
            .iter()
            .filter(|event| {
                let is_machines = matches!(event.kind, EventKind::Disturbed | EventKind::Crawled);
                is_machines && event.processor == processor
            })
            .map(|event| {
                let [from, to] = event.args.map(Instant::from_nanos);
                (from, to)
            })
            .collect();
        disturbances.sort_unstable();
        let activities = events.iter().map(|event| event.activity.index() + 1).max();
        Self {
            question,
            timeline: Timeline {
                end: events.first().map_or(Instant::ZERO, |event| event.at),
                ..Timeline::default()
            },
            accounts: alloc::vec![Account::default(); activities.unwrap_or(0)],
            handlers: Vec::new(),
            deferred: Vec::new(),
            threads: Vec::new(),
            disturbances,
            wakes: wakes_before_told(events, victim),
            has_slots: of_victim(&[EventKind::SlotBegin]),
            victim_is_thread: of_victim(&[EventKind::Dispatch, EventKind::Wake]),
            ready: true,
            in_slot: false,
            reserved: None,
            granted: None,
        }
    }

    fn is_victim(&self, activity: ActivityId) -> bool {
        activity == self.question.victim.activity
    }

    fn budget(&self, holder: Holder) -> Budget {
        let declared = |id: ActivityId| self.question.declared.get(id.index()).copied();
        let declared = holder.activity().and_then(declared).unwrap_or_default();
        Budget::of(holder, declared, &self.question.rules)
    }

    /// Whether the thread ranks no higher than the victim, as far as both ranks are declared.
    fn ranks_no_higher(&self, thread: ActivityId) -> bool {
        let rank = |id: ActivityId| self.question.declared.get(id.index())?.priority;
        let (other, own) = (rank(thread), rank(self.question.victim.activity));
        !self.in_slot && other.is_some() && own.is_some() && other <= own
    }

    fn claims(&self) -> bool {
        self.reserved.is_none() || self.in_slot || !self.has_slots
    }

    /// Who holds the processor now.
    fn holder(&self) -> Holder {
        let (who, holder) = if let Some(handler) = self.handlers.last() {
            (*handler, Holder::Handler(*handler))
        } else if let Some(deferred) = self.deferred.last() {
            (*deferred, Holder::Deferred(*deferred))
        } else if let Some(thread) = self.threads.last() {
            (*thread, Holder::Thread(*thread))
        } else {
            return Holder::Nobody;
        };
        if self.is_victim(who) {
            Holder::Victim
        } else {
            holder
        }
    }

    /// Time goes on to `to`, and the victim wakes on the way.
    fn advance(&mut self, to: Instant) {
        while let Some(wake) = self.wakes.pop_if(|wake| *wake < to) {
            self.go_on(wake);
            self.ready = true;
        }
        self.go_on(to);
    }

    /// Time goes on to `to`; the machine stood still in what of it overlaps a disturbance.
    fn go_on(&mut self, to: Instant) {
        while self.timeline.end < to {
            let next = self
                .disturbances
                .iter()
                .find(|(_, end)| *end > self.timeline.end);
            let next = next.copied().filter(|(begin, _)| *begin < to);
            match next {
                Some((begin, end)) if begin <= self.timeline.end => {
                    self.piece(Holder::Machine, end.min(to));
                }
                Some((begin, _)) => self.piece(self.holder(), begin),
                None => self.piece(self.holder(), to),
            }
        }
    }

    fn piece(&mut self, holder: Holder, to: Instant) {
        let from = core::mem::replace(&mut self.timeline.end, to);
        let mut piece = Piece {
            from,
            to,
            holder,
            excess_from: to,
            over_from: to,
            ready: from,
            before_victim: false,
            claim: self.claims(),
            shared: false,
            ranks_no_higher: false,
        };
        if holder == Holder::Machine {
            piece.excess_from = from;
        } else if let Some(who) = holder.activity() {
            self.account(&mut piece, who);
        }
        self.timeline.pieces.push(piece);
    }

    /// Whose piece it is has held the processor for so much longer.
    fn account(&mut self, piece: &mut Piece, who: ActivityId) {
        let is_thread = matches!(piece.holder, Holder::Thread(_));
        let contended = self.victim_is_thread && self.ready && piece.claim;
        piece.before_victim = !is_thread || contended;
        piece.ranks_no_higher = is_thread && self.ranks_no_higher(who);
        piece.shared = contended && piece.ranks_no_higher;
        let budget = self.budget(piece.holder);
        let account = &mut self.accounts[who.index()];
        // Threads that come before the holder of a slot run outside it too, where nothing tells who would have come first.
        let pinned = self.has_slots && self.reserved.is_some();
        let excess_from = account.hold(piece.from, piece.to, &budget);
        if !(pinned && is_thread) {
            piece.ready = account.ready().min(piece.from);
        }
        piece.over_from = excess_from;
        if piece.before_victim && !piece.shared && excess_from < piece.to {
            account.in_excess.push(self.timeline.pieces.len());
            piece.excess_from = excess_from;
        }
    }

    fn take(&mut self, event: &Event) {
        let who = event.activity;
        match event.kind {
            EventKind::InterruptEnter => {
                self.handlers.push(who);
                self.begin(Holder::Handler(who), event, true);
                self.held_off(event);
            }
            EventKind::InterruptExit => {
                self.handlers.retain(|handler| *handler != who);
                self.end(Holder::Handler(who), [event.args[0], 0]);
            }
            EventKind::DeferredEnter => {
                self.deferred.push(who);
                self.begin(Holder::Deferred(who), event, true);
            }
            EventKind::DeferredExit => {
                self.deferred.retain(|deferred| *deferred != who);
                self.end(Holder::Deferred(who), event.args);
            }
            EventKind::Wake => {
                let late = self.accounts[who.index()].is_open();
                self.end(Holder::Thread(who), [0; 2]);
                self.begin(Holder::Thread(who), event, late);
                self.ready |= self.is_victim(who);
            }
            EventKind::Dispatch => {
                self.threads.retain(|thread| *thread != who);
                self.threads.push(who);
                if !self.accounts[who.index()].is_open() {
                    self.begin(Holder::Thread(who), event, false);
                }
            }
            EventKind::Preempt => self.threads.retain(|thread| *thread != who),
            EventKind::Block | EventKind::Finish => {
                self.threads.retain(|thread| *thread != who);
                self.end(Holder::Thread(who), [0; 2]);
                self.ready &= !self.is_victim(who);
            }
            EventKind::SlotBegin | EventKind::SlotEnd => self.slot(event),
            EventKind::ReservationBegin
            | EventKind::ReservationChange
            | EventKind::ReservationFrom
            | EventKind::ReservationEnd
                if self.is_victim(who) =>
            {
                self.reservation(event);
            }
            _ => {}
        }
    }

    /// A call or job begins. If it is `late`, it could have run since it was meant to: a handler or deferred call since it was raised or
    /// queued, a thread that was still at its last job since its next release. Else a thread could not before it woke.
    fn begin(&mut self, holder: Holder, event: &Event, late: bool) {
        let budget = self.budget(holder);
        let release = match event.kind {
            EventKind::Dispatch => event.at,
            _ => Instant::from_nanos(event.args[0]).min(event.at),
        };
        let told = match event.kind {
            EventKind::Wake if event.args[1] > 0 => {
                Instant::from_nanos(event.args[1]).min(event.at)
            }
            _ => event.at,
        };
        let ready = if late { release } else { told };
        // Its rate is that of its releases: what was held up comes in a heap, and nobody can help that.
        self.accounts[event.activity.index()].begin(release, ready, &budget);
    }

    /// A call or job is over, which took `exact` nanoseconds (0: not known), and so many `further` calls with it.
    fn end(&mut self, holder: Holder, [exact, further]: [u64; 2]) {
        let open = |who: &ActivityId| !self.is_victim(*who) && self.accounts[who.index()].is_open();
        let Some(who) = holder.activity().filter(open) else {
            return;
        };
        let budget = self.budget(holder);
        let account = &mut self.accounts[who.index()];
        let exact = (exact > 0).then(|| Service::from_nanos(exact));
        let kept = account.end((exact, further.saturating_add(1)), &budget);
        for piece in account.in_excess.drain(..) {
            if kept && let Some(piece) = self.timeline.pieces.get_mut(piece) {
                piece.excess_from = piece.to;
            }
        }
    }

    fn held_off(&mut self, event: &Event) {
        if Some(event.activity) == self.question.victim.device {
            let waited = event
                .at
                .saturating_since(Instant::from_nanos(event.args[0]));
            let longest = &mut self.timeline.longest_held_off;
            *longest = (*longest).max(Some(waited));
        }
    }

    /// The holder of a slot comes before all other threads while it lasts, and after them when it is over.
    fn slot(&mut self, event: &Event) {
        let (who, begins) = (event.activity, event.kind == EventKind::SlotBegin);
        if self.is_victim(who) {
            self.in_slot = begins;
        }
        if self.threads.contains(&who) {
            self.threads.retain(|thread| *thread != who);
            let place = if begins { self.threads.len() } else { 0 };
            self.threads.insert(place, who);
        }
    }

    fn reservation(&mut self, event: &Event) {
        let [service, period] = event.args;
        let told = Reservation::new(Service::from_nanos(service), Span::from_nanos(period)).ok();
        match event.kind {
            EventKind::ReservationBegin => self.reserve(told, event.at),
            EventKind::ReservationChange => self.granted = told,
            // What is not in force yet may be changed too.
            EventKind::ReservationFrom => {
                let from = Instant::from_nanos(event.args[0]).max(event.at);
                if let Some(granted) = self.granted.take().filter(|_| self.reserved.is_some()) {
                    self.reserve(Some(granted), from);
                }
            }
            _ => {
                self.in_slot = false;
                self.reserve(None, event.at);
            }
        }
    }

    /// From then on this is the victim's reservation.
    fn reserve(&mut self, reservation: Option<Reservation>, from: Instant) {
        let now = reservation.map(|reservation| (from, reservation));
        if let Some((since, before)) = core::mem::replace(&mut self.reserved, now) {
            self.timeline.reservations.push((since, from, before));
        }
    }

    fn finish(mut self) -> Timeline {
        for who in self.handlers.clone() {
            self.end(Holder::Handler(who), [0; 2]);
        }
        for who in self.deferred.clone() {
            self.end(Holder::Deferred(who), [0; 2]);
        }
        // What is still open is a thread's.
        for who in 0..self.accounts.len() {
            self.end(Holder::Thread(ActivityId(who as u16)), [0; 2]);
        }
        self.reserve(None, self.timeline.end);
        let breaches = self.accounts.iter().filter_map(Account::breach);
        self.timeline.breaches = breaches.collect();
        self.timeline
    }
}

/// When a thread became ready of which it told only once it ran again, the last first: after it had begun to wait.
fn wakes_before_told(events: &[Event], thread: ActivityId) -> Vec<Instant> {
    let mut waits_since = Instant::ZERO;
    let mut wakes = Vec::new();
    for event in events.iter().filter(|event| event.activity == thread) {
        match event.kind {
            EventKind::Block => waits_since = event.at,
            EventKind::Wake if event.args[1] > 0 => {
                wakes.push(Instant::from_nanos(event.args[1]).max(waits_since));
            }
            _ => {}
        }
    }
    wakes.reverse();
    wakes
}

impl Timeline {
    /// The pieces that overlap the time from `from` to `to`, cut to it; none if that is no time. O(log n) to find the first.
    pub(super) fn between(
        &self,
        from: Instant,
        to: Instant,
    ) -> impl Iterator<Item = Piece> + Clone + '_ {
        let first = self.pieces.partition_point(|piece| piece.to <= from);
        let rest = self.pieces[first..].iter();
        rest.take_while(move |piece| piece.from < to && from < to)
            .map(move |piece| {
                let (begin, end) = (piece.from.max(from), piece.to.min(to));
                Piece {
                    from: begin,
                    to: end,
                    excess_from: piece.excess_from.clamp(begin, end),
                    over_from: piece.over_from.clamp(begin, end),
                    ready: piece.ready.clamp(from, begin),
                    ..*piece
                }
            })
    }

    /// The reservation in force at this time.
    pub(super) fn reservation_at(&self, at: Instant) -> Option<Reservation> {
        let mut all = self.reservations.iter();
        all.find(|(from, to, _)| *from <= at && at < *to)
            .map(|(_, _, reservation)| *reservation)
    }
}
