//! The exact answer, from the supply.

use core::fmt;

use super::Device;
use crate::analysis::supply::{SupplyBound, cycle_of};
use crate::analysis::{Doubt, Overflow, Result};
use crate::base::number::gcd;
use crate::{Service, Span};
use derive_more::Display;

/// Blocks looked at one by one.
const MOST_BLOCKS: u64 = 100_000;

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
    /// The longest time from an interrupt to the end of its block's work.
    pub response: Span,
    /// From then until the input ring would overflow.
    pub input: Option<Span>,
    /// From then until the output would underflow.
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
/// longest wait for service just begins.
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

/// How long blocks take.
enum Found {
    Longest(Span),
    Late { block: u64, done: Span },
    Nothing,
}

/// Whether a device whose work has all of this supply, and nothing besides, is always served in time, whatever their phases.
///
/// The k-th block of a stretch in which work is pending is complete, at the latest, in the shortest window that is sure of kC; it was
/// released (k − 1)T after the stretch began. So the longest response is max over k of `window_for(kC)` − (k − 1)T, to the end of the
/// longest such stretch, and the longest time without service `window_for(1)` less a tick.
///
/// Exact for every supply whose sbf is, window by window, what some course gives: [`Dedicated`](crate::analysis::supply::Dedicated),
/// [`ExplicitDeadline`](crate::analysis::supply::ExplicitDeadline), [`TableSupply`](crate::analysis::supply::TableSupply). On
/// [`KernelDeadline`](crate::analysis::supply::KernelDeadline) with a tick and [`Residual`](crate::analysis::supply::Residual) *served*
/// is sure, and *too late* is so only in a course that the machine may not have.
///
/// Cost: a query of the supply for every block of the longest stretch, or until work and supply repeat themselves (as all supplies of this
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
    Ok(match longest_response(device, supply, due)? {
        Found::Longest(response) => Answer::Served(Margins {
            response,
            input: input.map(|limit| limit.saturating_sub(response)),
            output: output.map(|limit| limit.saturating_sub(response)),
            longest_pause: pause,
            calls: device.longest_pause().map(|g| g.saturating_sub(pause)),
        }),
        Found::Late { block, done } => {
            let interrupt = interrupt_of(device, block)?;
            let due = interrupt.checked_add(due).unwrap_or(Span::MAX);
            Answer::TooLate(Late {
                limit,
                block,
                interrupt,
                due,
                done,
            })
        }
        Found::Nothing => Answer::Unknown(Doubt::TooLong),
    })
}

fn interrupt_of(device: &Device, block: u64) -> Result<Span> {
    let interrupt = device.period().checked_mul(block - 1);
    interrupt.ok_or(Overflow("the interrupts of a device"))
}

/// The longest response, unless it is longer than `due`.
fn longest_response<S: SupplyBound + ?Sized>(
    device: &Device,
    supply: &S,
    due: Span,
) -> Result<Found> {
    let keeps_up = supply
        .rate()
        .compare_sum([device.share()].into_iter())
        .is_le();
    let last = repeats_after(device, supply).filter(|_| keeps_up);
    let mut longest = Span::ZERO;
    for block in 1..=MOST_BLOCKS {
        let (done, response) = completion(device, supply, block)?;
        longest = longest.max(response);
        if response > due {
            return Ok(Found::Late { block, done });
        }
        // All of it done before the next interrupt.
        if response <= device.period() {
            return Ok(Found::Longest(longest));
        }
        let later = at_rate(device, supply, block + 1).filter(|_| keeps_up);
        if last == Some(block) || later.is_some_and(|later| later <= longest) {
            return Ok(Found::Longest(longest));
        }
    }
    if keeps_up {
        let later = at_rate(device, supply, MOST_BLOCKS + 1);
        return Ok(match later.map(|later| later.max(longest)) {
            Some(sure) if sure <= due => Found::Longest(sure),
            _ => Found::Nothing,
        });
    }
    // It falls behind without end: some block is late.
    let mut block = MOST_BLOCKS;
    loop {
        block = block
            .checked_mul(2)
            .ok_or(Overflow("the blocks of a device"))?;
        let (done, response) = completion(device, supply, block)?;
        if response > due {
            return Ok(Found::Late { block, done });
        }
    }
}

/// No block after this one takes longer than one up to it, if the supply keeps up: n more of service take d more of window, from the
/// second tick of service on at the latest.
fn repeats_after<S: SupplyBound + ?Sized>(device: &Device, supply: &S) -> Option<u64> {
    cycle_of(supply)?;
    let rate = supply.rate();
    let common = gcd(rate.numerator(), device.work().as_nanos());
    (rate.numerator() / common).checked_add(1)
}

/// When a block is complete, and how long after its interrupt.
fn completion<S: SupplyBound + ?Sized>(
    device: &Device,
    supply: &S,
    block: u64,
) -> Result<(Span, Span)> {
    let work = device.work().checked_mul(block);
    let done = supply.window_for(work.ok_or(Overflow("the work of a device"))?)?;
    Ok((done, done.saturating_sub(interrupt_of(device, block)?)))
}

/// No block from this one on takes longer, if the supply keeps up: its work is done at the supply's rate after its delay.
fn at_rate<S: SupplyBound + ?Sized>(device: &Device, supply: &S, block: u64) -> Option<Span> {
    let rate = supply.rate();
    let work = device.work().checked_mul(block)?;
    let scaled = u128::from(work.as_nanos()) * u128::from(rate.denominator());
    let scaled = scaled.div_ceil(u128::from(rate.numerator()));
    let done = u128::from(supply.delay().as_nanos()) + scaled;
    let interrupt = u128::from(device.period().checked_mul(block - 1)?.as_nanos());
    let response = u64::try_from(done.saturating_sub(interrupt)).ok()?;
    Some(Span::from_nanos(response))
}
