//! The exact answer, from the supply.

use core::fmt;

use super::Device;
use super::blocks::Place;
use crate::analysis::supply::{SupplyBound, cycle_of};
use crate::analysis::{Doubt, Fraction, Overflow, Result};
use crate::base::number::gcd;
use crate::{Service, Span};
use derive_more::Display;

/// Pieces of blocks looked at one by one.
const MOST_PIECES: u64 = 100_000;

/// Whether a supply serves a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display)]
pub enum Answer {
    /// Always, and so much is to spare.
    #[display("served: complete {} after the interrupt at the latest", _0.response)]
    Served(Margins),
    /// There is a course of the supply in which a block is too late.
    #[display("not served: {_0}")]
    TooLate(Late),
    /// The supply and the work are so nearly equal that neither was found.
    #[display("unknown: {_0}")]
    Unknown(Doubt),
}

/// What is to spare in the worst case. With what no ring or call limits there is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Margins {
    /// The longest time from an interrupt to the end of its block's work; of a device [in pieces](Device::in_pieces), from the turn of each to its end.
    pub response: Span,
    /// What that could be longer until the input ring would overflow; of uneven blocks of the one of which that is least.
    pub input: Option<Span>,
    /// What it could be longer until the output would underflow, likewise.
    pub output: Option<Span>,
    /// The longest time without service while there is work.
    pub longest_pause: Span,
    /// What that could be longer.
    pub calls: Option<Span>,
}

/// What a device cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// The input ring overflows.
    Input,
    /// The output underflows.
    Output,
    /// It is not called often enough.
    Calls,
}

/// A block that is too late, in the worst case: time 0 is the interrupt of block 1, when nothing is left of earlier blocks and the
/// longest wait for service just begins. Of a device [in pieces](Device::in_pieces) each counts as a block, and its turn as an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// What goes wrong; of the two rings the one that does so first. Calls are judged before rings.
    pub limit: Limit,
    /// Which block, counted from 1: the first that can be late, if that is among the first 100,000.
    pub block: u64,
    /// Its interrupt.
    pub interrupt: Span,
    /// When its work had to be complete, or for [`Limit::Calls`] begun.
    pub due: Span,
    /// When it is.
    pub done: Span,
}

impl Answer {
    /// Whether the answer is yes.
    pub const fn is_served(&self) -> bool {
        matches!(self, Self::Served(_))
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, done) = match self.limit {
            Limit::Input => ("the input ring overflows", "complete"),
            Limit::Output => ("the output underflows", "complete"),
            Limit::Calls => ("it is not called in time", "begun"),
        };
        write!(
            f,
            "{what} at block {}, {done} {} after its interrupt instead of {}",
            self.block,
            self.done.saturating_sub(self.interrupt),
            self.due.saturating_sub(self.interrupt),
        )
    }
}

/// How long blocks take, or their pieces.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// From its turn.
    response: Span,
    /// From when it would be used if nothing were to spare in the rings.
    behind: Span,
}

impl Taken {
    fn of(done: Span, places: [Place; 3]) -> Self {
        let since = |earliest: fn(&Place) -> Span| {
            let earliest = places.iter().map(earliest).min();
            done.saturating_sub(earliest.unwrap_or(Span::ZERO))
        };
        Self {
            response: since(|place| place.turn),
            behind: since(|place| place.used),
        }
    }

    fn or_longer(self, other: Self) -> Self {
        Self {
            response: self.response.max(other.response),
            behind: self.behind.max(other.behind),
        }
    }

    fn is_within(self, longest: Self) -> bool {
        self.response <= longest.response && self.behind <= longest.behind
    }
}

/// What the search came to.
enum Found {
    Longest(Taken),
    /// This piece, counted from 0.
    Late {
        piece: u64,
        done: Span,
    },
    Nothing,
}

/// Whether a device whose work has all of this supply, and nothing besides, is always served in time, whatever their phases.
///
/// The k-th block of a stretch in which work is pending is complete, at the latest, in the shortest window that is sure of kC; it was
/// released (k − 1)T after the stretch began. So the longest response is max over k of `window_for(kC)` − (k − 1)T, to the end of the
/// longest such stretch, and the longest time without service `window_for(1)` less a tick. Of [uneven](Device::uneven) blocks, any of which may be the first of a
/// stretch, the k-th is released and due when the worst of these beginnings has it.
///
/// Exact for every supply whose sbf is, window by window, what some course gives: [`Dedicated`](crate::analysis::supply::Dedicated),
/// [`ExplicitDeadline`](crate::analysis::supply::ExplicitDeadline), [`TableSupply`](crate::analysis::supply::TableSupply). On
/// [`KernelDeadline`](crate::analysis::supply::KernelDeadline) with a tick and [`Residual`](crate::analysis::supply::Residual) *served*
/// is sure, and *too late* is so only in a course that the machine may not have. What falls between two ticks is rounded so that *served* is sure: the work for
/// a piece, and when uneven blocks come.
///
/// Cost: a query of the supply for every block of the longest stretch, or piece of one, or until work and supply repeat themselves (as all supplies of this
/// library do with the fraction of their [rate](SupplyBound::rate), and others must), 100,000 at most; beyond them the
/// supply's rate and delay decide, and the margins are what is sure.
pub fn serves<S: SupplyBound + ?Sized>(device: &Device, supply: &S) -> Result<Answer> {
    let first = supply.window_for(Service::from_nanos(1))?;
    let pause = first.saturating_sub(Span::from_nanos(1));
    if let Some(due) = device.longest_pause().filter(|longest| pause > *longest) {
        return Ok(Answer::TooLate(Late {
            limit: Limit::Calls,
            block: 1,
            interrupt: Span::ZERO,
            due,
            done: pause,
        }));
    }
    let (input, output) = (device.input_limit(), device.output_limit());
    let (limit, due) = match (input, output) {
        (Some(input), _) if device.overflows_first() => (Limit::Input, input),
        (_, Some(output)) => (Limit::Output, output),
        (input, None) => (Limit::Input, input.unwrap_or(Span::MAX)),
    };
    Ok(match longest(device, supply, due)? {
        Found::Longest(Taken { response, behind }) => Answer::Served(Margins {
            response,
            input: input.map(|limit| limit.saturating_sub(behind)),
            output: output.map(|limit| limit.saturating_sub(behind)),
            longest_pause: pause,
            calls: device.longest_pause().map(|g| g.saturating_sub(pause)),
        }),
        Found::Late { piece, done } => {
            let [first, second, third] = places_of(device, piece)?;
            let Place { used, turn } = first.min(second).min(third);
            Answer::TooLate(Late {
                limit,
                block: piece + 1,
                interrupt: turn,
                due: used.checked_add(due).unwrap_or(Span::MAX),
                done,
            })
        }
        Found::Nothing => Answer::Unknown(Doubt::TooLong),
    })
}

fn places_of(device: &Device, piece: u64) -> Result<[Place; 3]> {
    let places = device.places(piece);
    places.ok_or(Overflow("the interrupts of a device"))
}

/// The longest that a piece takes, unless it is longer behind than `due`.
fn longest<S: SupplyBound + ?Sized>(device: &Device, supply: &S, due: Span) -> Result<Found> {
    let all = device.piece().checked_mul(device.pieces());
    let share = all.and_then(|all| Fraction::new(all.as_nanos(), device.period().as_nanos()));
    let share = share.ok_or(Overflow("the work of a device"))?;
    let keeps_up = supply.rate().compare_sum([share].into_iter()).is_le();
    let (cycle, last) = (device.cycle(), repeats_after(device, supply));
    let (mut longest, mut shorter) = (Taken::default(), 0);
    for piece in 0..MOST_PIECES {
        if keeps_up && last == Some(piece) {
            return Ok(Found::Longest(longest));
        }
        let sure = keeps_up.then(|| at_rate(device, supply, piece)).flatten();
        if sure.is_some_and(|sure| sure.is_within(longest)) {
            // Nor do those after them.
            shorter += 1;
            if shorter == cycle {
                return Ok(Found::Longest(longest));
            }
            continue;
        }
        shorter = 0;
        let (done, taken) = completion(device, supply, piece)?;
        longest = longest.or_longer(taken);
        if taken.behind > due {
            return Ok(Found::Late { piece, done });
        }
        // All of it done before the next interrupt, however soon that comes.
        let next = piece + 1;
        if next.is_multiple_of(device.pieces())
            && places_of(device, next)?
                .iter()
                .all(|next| done <= next.turn)
        {
            return Ok(Found::Longest(longest));
        }
    }
    if keeps_up {
        let later = (MOST_PIECES..).take(cycle.min(MOST_PIECES) as usize);
        let sure = later.map(|piece| at_rate(device, supply, piece));
        let sure = sure.reduce(|a, b| Some(a?.or_longer(b?))).flatten();
        return Ok(match sure.map(|sure| sure.or_longer(longest)) {
            Some(sure) if sure.behind <= due && cycle <= MOST_PIECES => Found::Longest(sure),
            _ => Found::Nothing,
        });
    }
    // It falls behind without end: some block is late.
    let mut piece = MOST_PIECES;
    loop {
        piece = piece
            .checked_mul(2)
            .ok_or(Overflow("the blocks of a device"))?;
        let (done, taken) = completion(device, supply, piece)?;
        if taken.behind > due {
            return Ok(Found::Late { piece, done });
        }
    }
}

/// No piece after so many takes longer than one of them, if the supply keeps up: n more of service take d more of window, from the
/// second tick of service on at the latest.
fn repeats_after<S: SupplyBound + ?Sized>(device: &Device, supply: &S) -> Option<u64> {
    cycle_of(supply)?;
    let (rate, cycle) = (supply.rate(), device.cycle());
    let common = gcd(rate.numerator(), device.piece().as_nanos());
    let pieces = rate.numerator() / common;
    let blocks = cycle / gcd(pieces, cycle);
    pieces.checked_mul(blocks)?.checked_add(1)
}

/// When a piece is complete, and how long that takes.
fn completion<S: SupplyBound + ?Sized>(
    device: &Device,
    supply: &S,
    piece: u64,
) -> Result<(Span, Taken)> {
    let work = piece
        .checked_add(1)
        .and_then(|pieces| device.piece().checked_mul(pieces));
    let done = supply.window_for(work.ok_or(Overflow("the work of a device"))?)?;
    Ok((done, Taken::of(done, places_of(device, piece)?)))
}

/// It takes no longer, nor does one that comes a [cycle](Device::cycle) after it, if the supply keeps up: its work is done at the supply's rate after its delay.
fn at_rate<S: SupplyBound + ?Sized>(device: &Device, supply: &S, piece: u64) -> Option<Taken> {
    let rate = supply.rate();
    let work = device.piece().checked_mul(piece.checked_add(1)?)?;
    let scaled = u128::from(work.as_nanos()) * u128::from(rate.denominator());
    let scaled = scaled.div_ceil(u128::from(rate.numerator()));
    let done = u128::from(supply.delay().as_nanos()) + scaled;
    let done = Span::from_nanos(u64::try_from(done).ok()?);
    Some(Taken::of(done, device.places(piece)?))
}
