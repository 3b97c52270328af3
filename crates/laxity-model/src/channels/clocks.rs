//! How the clocks of two neighbours stand to each other, and what that says of a frame that came: nothing here relies on clocks that agree.
//!
//! A frame that goes one way shows that the other clock is no earlier than what it said when the frame left; one that went the other way, that it was no later than what it said when that came. So each round trip bounds the offset between the two from both sides, as far
//! apart as the trip took: its middle is right to half of that. Rates differ by [`RATES_PPM`] at most, so what was learned widens with time, and what a later trip says is cut with it. Where two contradict each other a clock has been set, and all begins anew; what is
//! too little for that is forgotten with the window.
//!
//! What a frame carries is its *earliness*: how long before its logical arrival at the next hop it left, which is the hop's delay behind that at this one (§2.1; Kandlur, Shin, Ferrari 1994). The next hop knows from it when the message is current there, in its own clock,
//! and what a link took that nobody sees, such as a switch's queue, shows against the relation of the clocks.

use crate::{Instant, Span};

/// No two clocks' rates differ by more than so many millionths.
pub const RATES_PPM: u64 = 200;

/// What was learned is forgotten after twice this.
const WINDOW: Span = Span::from_secs(1);

/// How long the rates of two clocks are compared, at least; twice that at the most.
const BASE: Span = Span::from_secs(32);

/// What a heartbeat says of times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// When it left, by the clock of who sends it.
    pub sent: Instant,
    /// The last one that had come before.
    pub echo: Option<Echo>,
}

/// A heartbeat that has come, as it is told to who sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// When it had left, by the clock of who sent it.
    pub sent: Instant,
    /// How long before the answer it had come, by the clock of who answers.
    pub held: Span,
}

/// What a heartbeat said of the clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Nothing: it answers none, or says what cannot be.
    Nothing,
    /// It agrees with what was known.
    Agrees,
    /// One of the clocks has been set since the one before: what was known is forgotten.
    Stepped,
}

/// By how much the other clock is ahead of ours, as a number of nanoseconds that is in here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offset {
    least: i128,
    most: i128,
}

impl Offset {
    /// Of clocks that are one and the same.
    pub const NONE: Self = Self { least: 0, most: 0 };

    /// The middle, in nanoseconds; negative where the other is behind.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        i128::midpoint(self.least, self.most)
    }

    /// How far from the middle it may be.
    #[must_use]
    pub fn error(self) -> Span {
        span((self.most - self.least + 1) / 2)
    }

    /// Whether it may be this.
    #[must_use]
    pub const fn holds(self, nanos: i128) -> bool {
        self.least <= nanos && nanos <= self.most
    }

    fn and(self, other: Self) -> Option<Self> {
        let both = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
        };
        (both.least <= both.most).then_some(both)
    }

    fn after(self, passed: Span) -> Self {
        let drifted = drifted(passed);
        Self {
            least: self.least - drifted,
            most: self.most + drifted,
        }
    }
}

/// By how much the rates of two clocks differ, in billionths: the other gains so much on ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drift {
    /// No less than this.
    pub least_ppb: i64,
    /// No more.
    pub most_ppb: i64,
}

/// An offset as it was then, by our clock.
#[derive(Clone, Copy, Debug)]
struct Known {
    at: Instant,
    offset: Offset,
}

impl Known {
    /// As it may be now.
    fn at(self, now: Instant) -> Offset {
        self.offset.after(now.saturating_since(self.at))
    }
}

/// The relation of the other clock of a link to ours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relation {
    /// What is known of this window, and of the one before.
    recent: Option<Recent>,
    steps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    last: Instant,
    since: Instant,
    now: Known,
    before: Known,
    /// What was known at the beginning of this base and of the one before.
    bases: [Known; 2],
}

impl Relation {
    /// A heartbeat of the other end came at this instant of ours.
    pub fn exchanged(&mut self, stamp: Stamp, at: Instant) -> Seen {
        let Some(echo) = stamp.echo else {
            return Seen::Nothing;
        };
        let there = nanos(stamp.sent) - i128::from(echo.held.as_nanos());
        let went_back = self.recent.is_some_and(|recent| at < recent.last);
        if there < 0 || (echo.sent > at && !went_back) {
            return Seen::Nothing;
        }
        // When ours left theirs was no later than when it came; when it left again, no later than when that came here.
        let most = there - nanos(echo.sent) + drifted(at.saturating_since(echo.sent));
        let least = nanos(stamp.sent) - nanos(at);
        if least > most || went_back {
            return self.forgets();
        }
        let known = Known {
            at,
            offset: Offset { least, most },
        };
        let contradicts = |offset: Offset| offset.and(known.offset).is_none();
        if self.offset(at).is_some_and(contradicts) {
            self.forgets();
            self.recent = Some(Recent::new(known));
            return Seen::Stepped;
        }
        match &mut self.recent {
            Some(recent) => recent.learns(known),
            recent => *recent = Some(Recent::new(known)),
        }
        Seen::Agrees
    }

    fn forgets(&mut self) -> Seen {
        self.recent = None;
        self.steps = self.steps.saturating_add(1);
        Seen::Stepped
    }

    /// The offset at this instant of ours; `None` before the first round trip, and after a clock was set until the next one. A clock that is set is noticed by the first round trip that begins after that.
    #[must_use]
    pub fn offset(&self, at: Instant) -> Option<Offset> {
        let recent = self.recent?;
        let [now, before] = [recent.now, recent.before].map(|known| known.at(at));
        Some(now.and(before).unwrap_or(now))
    }

    /// The mean difference of the rates, over half a minute at least; `None` until then.
    #[must_use]
    pub fn drift(&self) -> Option<Drift> {
        let recent = self.recent?;
        let (from, to) = (recent.bases[0], recent.now);
        let passed = i128::from(to.at.saturating_since(from.at).as_nanos());
        if passed < i128::from(BASE.as_nanos()) {
            return None;
        }
        let most = i128::from(RATES_PPM) * 1_000;
        let ppb = |nanos: i128| (nanos * 1_000_000_000).div_euclid(passed);
        let least_ppb = ppb(to.offset.least - from.offset.most).clamp(-most, most);
        let most_ppb = (ppb(to.offset.most - from.offset.least) + 1).clamp(-most, most);
        Some(Drift {
            least_ppb: least_ppb as i64,
            most_ppb: most_ppb as i64,
        })
    }

    /// How often a clock was seen to have been set.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }
}

impl Recent {
    const fn new(known: Known) -> Self {
        Self {
            last: known.at,
            since: known.at,
            now: known,
            before: known,
            bases: [known; 2],
        }
    }

    fn learns(&mut self, known: Known) {
        self.last = known.at;
        if known.at.saturating_since(self.since) >= WINDOW {
            (self.before, self.now, self.since) = (self.now, known, known.at);
        } else {
            let offset = self.now.at(known.at).and(known.offset);
            self.now = Known {
                at: known.at,
                offset: offset.unwrap_or(known.offset),
            };
        }
        if known.at.saturating_since(self.bases[1].at) >= BASE {
            self.bases = [self.bases[1], self.now];
        }
    }
}

/// When a message is current at a hop, by the hop's clock: no later than this, and no more than the error before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logical {
    /// No later than this. Whoever goes by it takes a message for due later than it is by no more than the error.
    pub at: Instant,
    /// [`Span::MAX`]: not known.
    pub error: Span,
    /// When it came to the hop.
    pub came: Instant,
    /// The first of hosts and links that made it late, as far as the clocks tell.
    pub late: Option<Place>,
}

/// Of a route: host 0 is the origin, link 0 is behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A host.
    Host(u8),
    /// The link behind that host.
    Link(u8),
}

/// What a frame carries of its message's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// When it left, by the clock of who sent it.
    pub left: Instant,
    /// How long before its logical arrival at the next hop, in nanoseconds, without the link: no more than this.
    pub earliness: i64,
    /// And no less than this below it; [`Span::MAX`]: not known.
    pub error: Span,
    /// As it was at the hop that it left, or that one.
    pub late: Option<Place>,
}

/// What a link takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// Its place in the route.
    pub number: u8,
    /// Of a frame's last bit.
    pub propagation: Span,
    /// Of a frame from when it leaves to when it has come, at the longest: with what goes ahead of it out of our reach.
    pub longest: Span,
}

/// Whether a message was in time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Timeliness {
    /// It was.
    InTime,
    /// It was not.
    Late,
    /// What the clocks do not tell.
    WithinError,
}

/// A message that was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Whether it was in time.
    pub timeliness: Timeliness,
    /// How long before it was due, in nanoseconds: no more than this; negative where it is late for certain.
    pub laxity: i64,
    /// And no less than this below it.
    pub error: Span,
    /// The first that made it late, as far as the clocks tell; somebody where it is late.
    pub late: Option<Place>,
}

impl Logical {
    /// At the origin, whose clock it is.
    #[must_use]
    pub const fn here(at: Instant) -> Self {
        Self {
            at,
            error: Span::ZERO,
            came: at,
            late: None,
        }
    }

    /// A frame of the message leaves the host of this number, whose delay this is.
    #[must_use]
    pub fn leaves(self, delay: Span, now: Instant, host: u8) -> Carried {
        let Delivered {
            laxity,
            error,
            late,
            ..
        } = self.delivered(delay, now, host);
        Carried {
            left: now,
            earliness: laxity,
            error,
            late,
        }
    }

    /// The message is delivered at the host of this number, where it was due this delay behind its logical arrival.
    #[must_use]
    pub fn delivered(self, delay: Span, now: Instant, host: u8) -> Delivered {
        let due = nanos(self.at) + i128::from(delay.as_nanos());
        let laxity = due - nanos(now);
        let timeliness = if laxity < 0 {
            Timeliness::Late
        } else if self.error == Span::MAX || laxity < i128::from(self.error.as_nanos()) {
            Timeliness::WithinError
        } else {
            Timeliness::InTime
        };
        let late = match timeliness {
            Timeliness::Late => self.late.or(Some(self.blamed(delay, now, host))),
            Timeliness::InTime | Timeliness::WithinError => self.late,
        };
        Delivered {
            timeliness,
            laxity: saturated(laxity),
            error: self.error,
            late,
        }
    }

    /// Who made it late: the host if it had the message for longer than its delay when it was current, else what it came over.
    fn blamed(self, delay: Span, now: Instant, host: u8) -> Place {
        let due = nanos(self.at.max(self.came)) + i128::from(delay.as_nanos());
        match host.checked_sub(1) {
            Some(link) if nanos(now) <= due => Place::Link(link),
            _ => Place::Host(host),
        }
    }

    /// How long is left at this instant until the message is due so long behind its logical arrival, in nanoseconds: no more than this.
    #[must_use]
    pub fn laxity(self, delay: Span, now: Instant) -> i64 {
        saturated(nanos(self.at) + i128::from(delay.as_nanos()) - nanos(now))
    }
}

impl Carried {
    /// The frame has come at this instant, over a link of which this is known of the clocks then. Whatever the frame says, this is no later than the earliness behind its arrival.
    #[must_use]
    pub fn arrives(self, clocks: Option<Offset>, at: Instant, link: Crossing) -> Logical {
        let propagation = i128::from(link.propagation.as_nanos());
        let earliness = i128::from(self.earliness);
        // A link takes no less than no time.
        let latest = nanos(at) + earliness + propagation;
        let Some(Offset { least, most }) = clocks else {
            return Logical {
                at: instant(latest),
                error: Span::MAX,
                came: at,
                late: self.late,
            };
        };
        let current = nanos(self.left) + earliness + propagation;
        let upper = latest.min(current - least);
        let error = match self.error {
            Span::MAX => Span::MAX,
            error => span(upper - (current - most) + i128::from(error.as_nanos())),
        };
        Logical {
            at: instant(upper),
            error,
            came: at,
            late: self.late.or(self.blamed(nanos(at), upper, least, link)),
        }
    }

    /// Who made it late that came after it was to be current: the host, if the link had not as long as it may take and did not take longer for certain; else the link.
    fn blamed(self, at: i128, upper: i128, least: i128, link: Crossing) -> Option<Place> {
        let longest = i128::from(link.longest.as_nanos());
        let had = i128::from(self.earliness) + i128::from(link.propagation.as_nanos());
        let took = at - nanos(self.left) + least;
        let place = match had < longest && took <= longest {
            true => Place::Host,
            false => Place::Link,
        };
        (at > upper).then_some(place(link.number))
    }
}

/// By how much an offset may have changed, rounded up.
fn drifted(passed: Span) -> i128 {
    let parts = u128::from(passed.as_nanos()) * u128::from(RATES_PPM);
    parts.div_ceil(1_000_000) as i128
}

fn nanos(instant: Instant) -> i128 {
    instant.as_nanos().into()
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn span(nanos: i128) -> Span {
    Span::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn saturated(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}
