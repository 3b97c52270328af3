//! What a program received, as JSON.

use laxity::Delivery;
use serde::Serialize;

use crate::exec::measured::Round;

#[derive(Serialize)]
pub(super) struct File<'a> {
    pub(super) file_version: u32,
    pub(super) laxity_version: &'static str,
    pub(super) command: &'a [String],
    /// What it had at its end: a `reservation`, a `measurement`, or `nothing` any more after that.
    pub(super) held: &'static str,
    pub(super) service_reserved_ns: Option<u64>,
    /// Where nothing was reserved: what was received is of the time in which it had this to be measured in.
    pub(super) service_measured_with_ns: Option<u64>,
    pub(super) period_ns: u64,
    /// What is reserved promises that no gap is longer to who never blocks.
    pub(super) gap_promised_ns: Option<u64>,
    pub(super) enforcer: String,
    pub(super) confined: bool,
    pub(super) processor: Option<usize>,
    pub(super) grade: String,
    pub(super) grade_reason: Option<&'a str>,
    /// Where X was open: why it was this one.
    pub(super) reserved_for: Option<&'a str>,
    /// Each time that the program was measured; left out where X was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) measured: Vec<Measured<'a>>,
    /// By `deadline`, where periods are short: what this kernel makes of budgets.
    pub(super) cause: Option<&'a str>,
    /// So long after the program's start the first thread came that was named for it; left out where nobody was awaited, or nobody came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) came_after_ns: Option<u64>,
    /// Names of which no thread came to hold it; left out where all came, or none was named.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) never_came: &'a [String],
    /// Where a thread could not be held: what would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
    /// What was received is of this time.
    pub(super) took_ns: u64,
    pub(super) received: Option<Figures>,
    pub(super) not_seen: Option<String>,
    /// What the kernel counted of the program as a whole, of what has ended too.
    pub(super) service_used_ns: Option<u64>,
    /// So much of that nobody saw, where it is too much to say what was received.
    pub(super) service_unseen_ns: Option<u64>,
    pub(super) used_not_known: Option<String>,
    pub(super) contract: Option<&'a str>,
    pub(super) verdict: Option<String>,
    pub(super) reasons: &'a [String],
}

/// One time that a program was measured, so that what it needs might be found.
#[derive(Serialize)]
pub(super) struct Measured<'a> {
    /// Whether what is reserved follows of it.
    used: bool,
    /// Why not.
    why_not: Option<&'a str>,
    /// How firmly it had its slots meanwhile.
    grade: String,
    grade_reason: Option<&'a str>,
    /// What was taken, and what was left out: see the fields of the same names.
    #[serde(flatten)]
    seen: Figures,
}

impl<'a> Measured<'a> {
    pub(super) fn of(round: &'a Round) -> Self {
        Self {
            used: round.why_not.is_none(),
            why_not: round.why_not.as_deref(),
            grade: round.grade.to_string(),
            grade_reason: round.grade.reason(),
            seen: Figures::of(&round.seen),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Figures {
    pub(super) service_ns: u64,
    pub(super) most_in_a_period_ns: u64,
    pub(super) largest_gap_ns: u64,
    pub(super) largest_gap_disturbed_ns: u64,
    /// Where several periods are seen together, or the kernel does not count all of a wait, `largest_gap_ns` is what it was at most, and this at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) largest_gap_least_ns: Option<u64>,
    /// It may have been this, and nobody knows; 0: it is known.
    pub(super) largest_gap_possible_ns: u64,
    pub(super) periods: u64,
    pub(super) periods_kept: u64,
    /// Of these: it asked for nothing.
    pub(super) periods_asleep: u64,
    /// Of those that were not kept: it had more than is reserved, and is to have nothing besides.
    pub(super) periods_exceeded: u64,
    /// It could not ask for anything.
    pub(super) periods_stopped: u64,
    pub(super) periods_disturbed: u64,
    /// Of these.
    pub(super) periods_disturbed_short: u64,
    /// Of those that were disturbed, while somebody had stopped laxity itself.
    pub(super) periods_disturbed_by_stops: u64,
    /// What it had in them nobody saw.
    pub(super) periods_unseen: u64,
    pub(super) overruns: u64,
    /// What is counted as a period are so many.
    pub(super) periods_seen_as_one: u64,
    /// Of what dispatcher and witness recorded.
    pub(super) events_lost: u64,
    /// Else periods in which the machine stood still are among those that are judged.
    pub(super) halts_seen: bool,
    /// So often the machine stood still, for so long at the most, and in all.
    pub(super) halts: u64,
    pub(super) halts_longest_ns: u64,
    pub(super) halts_total_ns: u64,
    /// So often somebody had stopped laxity itself, which is none of these.
    pub(super) stops: u64,
    pub(super) stops_longest_ns: u64,
    pub(super) stops_total_ns: u64,
}

impl Figures {
    pub(super) fn of(seen: &Delivery) -> Self {
        Self {
            service_ns: seen.service.as_nanos(),
            most_in_a_period_ns: seen.most.as_nanos(),
            largest_gap_ns: seen.largest_gap.as_nanos(),
            largest_gap_disturbed_ns: seen.largest_gap_disturbed.as_nanos(),
            largest_gap_least_ns: seen
                .gap_is_at_most()
                .then(|| seen.largest_gap_least.as_nanos()),
            largest_gap_possible_ns: seen.largest_gap_possible.as_nanos(),
            periods: seen.periods,
            periods_kept: seen.kept,
            periods_asleep: seen.asleep,
            periods_exceeded: seen.exceeded,
            periods_stopped: seen.stopped,
            periods_disturbed: seen.disturbed,
            periods_disturbed_short: seen.short_disturbed,
            periods_disturbed_by_stops: seen.disturbed_by_stops,
            periods_unseen: seen.unseen,
            overruns: seen.overruns,
            periods_seen_as_one: seen.together.max(1),
            events_lost: seen.events_lost,
            halts_seen: !seen.halts_unseen,
            halts: seen.halts.count,
            halts_longest_ns: seen.halts.longest.as_nanos(),
            halts_total_ns: seen.halts.total.as_nanos(),
            stops: seen.stops.count,
            stops_longest_ns: seen.stops.longest.as_nanos(),
            stops_total_ns: seen.stops.total.as_nanos(),
        }
    }
}
