//! Taps: whoever has the driver may let others look at packets that are not theirs, outside of whose they are.

use laxity_model::Instant;
use laxity_model::nif::exchange::Outcome;
use laxity_model::nif::link::Link;
use laxity_model::nif::registry::{ClientId, Demultiplex};

use super::Driver;
use super::entry::caught;
use crate::client::{Context, Effects, Loan, Peek};

/// What a tap was granted to see, both ways.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope<F> {
    /// All packets.
    All,
    /// Those of a filter, whosever they are.
    In(F),
}

/// A tap of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TapId(u32);

pub(super) struct Tap<F> {
    id: TapId,
    scope: Scope<F>,
    pub(super) peek: Box<dyn Peek>,
    has_panicked: bool,
    /// It has looked at the last packet that was shown.
    has_looked: bool,
}

impl<L: Link, D: Demultiplex> Driver<L, D> {
    /// Grants a look at all packets of this scope, for as long as the driver lives. There may be any number of taps, each of which
    /// costs every packet a call.
    pub fn tap(&mut self, scope: Scope<D::Filter>, peek: impl Peek + 'static) -> TapId {
        let id = TapId(self.taps_made);
        self.taps_made += 1;
        self.taps.push(Tap {
            id,
            scope,
            peek: Box::new(peek),
            has_panicked: false,
            has_looked: false,
        });
        id
    }

    /// Ends a grant; `false` if it has ended before.
    pub fn remove_tap(&mut self, id: TapId) -> bool {
        let before = self.taps.len();
        self.taps.retain(|tap| tap.id != id);
        self.taps.len() < before
    }

    pub(super) fn look_at_taps(&mut self, mut look: impl FnMut(&mut Tap<D::Filter>)) {
        look_at(&mut self.taps, &mut look);
    }
}

fn look_at<F>(taps: &mut Vec<Tap<F>>, look: &mut impl FnMut(&mut Tap<F>)) {
    for tap in taps.iter_mut() {
        tap.has_panicked = caught(|| look(tap)).is_none();
    }
    taps.retain(|tap| !tap.has_panicked);
}

/// Shows a packet to those who may see it.
pub(super) fn show<D: Demultiplex>(
    taps: &mut Vec<Tap<D::Filter>>,
    demultiplex: &D,
    loan: Loan<'_>,
    now: Instant,
    effects: &mut dyn Effects,
) {
    look_at(taps, &mut |tap| {
        let is_granted = match &tap.scope {
            Scope::All => true,
            Scope::In(filter) => demultiplex.matches(filter, loan.bytes),
        };
        tap.has_looked = is_granted;
        if is_granted {
            tap.peek.look(loan, &mut Context::new(now, effects));
        }
    });
}

/// Tells those who have seen the packet what became of it.
pub(super) fn tell<F>(taps: &mut Vec<Tap<F>>, whose: Option<ClientId>, outcome: Outcome) {
    look_at(taps, &mut |tap| {
        if std::mem::take(&mut tap.has_looked) {
            tap.peek.became(whose, outcome);
        }
    });
}
