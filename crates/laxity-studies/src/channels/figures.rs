//! What is shown of the figures, and whether what the paper says of them is so.

use laxity_lab::bench::{Draft, Holes};
use laxity_lab::report::Axis;
use laxity_lab::runner::RunError;
use laxity_model::Span;

use super::machine::{LINK_SCHEDULING, PACKET_BYTES, on_link};
use super::sender::Way;
use super::shown::{
    Trial, beside, chart, compare, dropped, lines, load, losses, missed, of_real_time, offered,
    packets, row, say, signed, throughputs,
};
use super::tally::{Of, SENDERS, Tally};
use super::workload::{BEST_EFFORT, BEST_EFFORT_MESSAGES, CHANNELS, KILOBYTE};
use super::{TEXT, constants};

/// How far apart mean laxities may be that are the same, as a part of the channel's delay: one in so many.
pub(super) const ALIKE: u64 = 10;
/// Of what is offered so much is all of it, in percent: at the ends of what is counted some messages have come that have not left.
pub(super) const ALL: u64 = 95;
/// Of the most that best effort has, so much is left at least where that saturates or declines slightly, in percent.
pub(super) const SLIGHTLY: u64 = 85;
/// And so much at the most where it declines, in thousandths: what is between is a draw.
pub(super) const BARELY: u64 = 995;

/// What is shown of a figure's runs, and claimed.
type Shows = fn(&mut Draft<'_>, &[&Trial]);
/// A number of a channel, negative where it is late; `None` where there is none.
type Laxity = fn(&Of) -> Option<i64>;

/// Draws all figures.
pub(super) fn judge(draft: &mut Draft<'_>, trials: &[Trial]) -> Result<(), RunError> {
    let of = |figure| {
        let all = trials.iter().filter(move |(case, _)| case.figure == figure);
        all.collect::<Vec<&Trial>>()
    };
    let figures: [(&str, Shows); 5] = [
        ("figure-5", honoured),
        ("figure-6", violated),
        ("figure-7a", unpreemptible),
        ("figure-7b", ahead),
        ("unshaped", unshaped),
    ];
    for (figure, shown) in figures {
        let all = of(figure);
        if !all.is_empty() {
            draft.table(
                figure,
                "packets",
                &[],
                all.iter().filter_map(|one| row(one)),
            );
            shown(draft, &all);
        }
    }
    declines(draft, &of("figure-5"), &of("figure-7b"));
    draft.table("constants", "constants", &[], constants::rows()?);
    Ok(())
}

/// Whether a channel has what it offers, but for what has come and not left at the ends of what is counted.
fn has_all(tally: &Tally, channel: usize) -> bool {
    let of = &tally.of[channel];
    let (bytes, burst) = match CHANNELS.get(channel) {
        Some(channel) => (channel.bytes, channel.burst),
        None => BEST_EFFORT_MESSAGES,
    };
    of.dropped == 0 && of.sent.abs_diff(of.offered) <= u64::from(bytes) * u64::from(burst + 2)
}

/// Packets of real time that missed their deadlines, and that were dropped, of all of these; and the least laxity.
fn worst(all: &[&Trial]) -> (u64, u64, i64) {
    let sum = |number| all.iter().map(|(_, tally)| packets(tally, number)).sum();
    let least = all.iter().flat_map(|(_, tally)| of_real_time(tally));
    let least = least.filter_map(|of| of.least_ns).min();
    (sum(missed), sum(dropped), least.unwrap_or(i64::MIN))
}

/// Figure 5: everybody keeps what he states.
fn honoured(draft: &mut Draft<'_>, all: &[&Trial]) {
    throughputs(draft, "figure-5", all, "best-effort-load");
    let kinds: [(&str, Laxity); 2] = [("mean", Of::mean_ns), ("least", |of| of.least_ns)];
    for (kind, number) in kinds {
        let lines = lines(all, false, load, |tally, channel| {
            number(&tally.of[channel])
        });
        let y = Axis::time(TEXT.say("laxity", &[]));
        chart(
            draft,
            "figure-5",
            &format!("laxity-{kind}"),
            ("best-effort-load", y),
            lines,
        );
    }
    let (missed, dropped, least) = worst(all);
    let holes: Holes<'_> = &[
        ("runs", &all.len()),
        ("missed", &missed),
        ("dropped", &dropped),
        ("least", &signed(least)),
    ];
    let has_all = all
        .iter()
        .all(|(_, tally)| (0..BEST_EFFORT).all(|one| has_all(tally, one)));
    say(draft, "figure-5", "delivered", has_all, holes);
    say(
        draft,
        "figure-5",
        "in-time",
        missed == 0 && least >= 0,
        holes,
    );
    unaffected(draft, all);
    best_effort(draft, all);
}

/// The mean laxity is the same at every load.
fn unaffected(draft: &mut Draft<'_>, all: &[&Trial]) {
    let spreads = CHANNELS.iter().enumerate().map(|(channel, stated)| {
        let means = all
            .iter()
            .filter_map(|(_, tally)| tally.of[channel].mean_ns());
        let means: Vec<i64> = means.collect();
        let (least, most) = (means.iter().min().copied(), means.iter().max().copied());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        let is_alike = most.abs_diff(least) * ALIKE <= stated.delay.as_nanos();
        (
            is_alike && means.len() == all.len(),
            format!("{} to {}", signed(least), signed(most)),
        )
    });
    let (alike, words): (Vec<bool>, Vec<String>) = spreads.unzip();
    let holes: Holes<'_> = &[("means", &beside(words)), ("alike", &ALIKE)];
    say(
        draft,
        "figure-5",
        "unaffected",
        alike.iter().all(|one| *one),
        holes,
    );
}

/// What best effort has rises with what it offers until there is no more, and stays.
fn best_effort(draft: &mut Draft<'_>, all: &[&Trial]) {
    let has = |tally: &Tally| tally.rate(tally.of[BEST_EFFORT].sent).unwrap_or(0);
    let (free, full): (Vec<&&Trial>, Vec<&&Trial>) = all
        .iter()
        .partition(|(_, tally)| tally.of[BEST_EFFORT].dropped == 0);
    let up_to = free.last().map_or(0, |(case, _)| case.setup.best_effort);
    let most = all.iter().map(|(_, tally)| has(tally)).max().unwrap_or(0);
    let last = all.last().map_or(0, |(_, tally)| has(tally));
    let holes: Holes<'_> = &[
        ("up-to", &up_to),
        ("most", &most),
        ("last", &last),
        ("slightly", &SLIGHTLY),
        ("each", &in_turn()),
    ];
    let is_linear = free.iter().all(|(_, tally)| has_all(tally, BEST_EFFORT));
    let is_most = free.len() > full.len();
    say(draft, "figure-5", "linear", is_linear && is_most, holes);
    let stays = last * 100 >= most * SLIGHTLY && full.len() > 1;
    say(draft, "figure-5", "saturates", stays, holes);
    // The paper tells why it declines, and not by how much: it is shown, and nothing is claimed.
    let declines = last * 1_000 < most * BARELY;
    compare(draft, "figure-5", "declines", declines, holes);
}

/// How long a packet takes from its scheduling to its completion, which is when the next one is scheduled.
fn in_turn() -> Span {
    LINK_SCHEDULING.as_dedicated_span() + on_link(PACKET_BYTES.get().into())
}

/// Figure 6: channel 0 sends more than it states.
fn violated(draft: &mut Draft<'_>, all: &[&Trial]) {
    throughputs(draft, "figure-6", all, "channel-0-load");
    let drops = |tally: &Tally, channel: usize| i64::try_from(tally.of[channel].dropped).ok();
    let y = Axis::count(TEXT.say("dropped", &[]));
    let drops = lines(all, true, offered, drops);
    chart(draft, "figure-6", "drops", ("channel-0-load", y), drops);
    let (missed, _, least) = worst(all);
    let own: Vec<u64> = all.iter().map(|(_, tally)| tally.of[0].dropped).collect();
    let others = all.iter().flat_map(|(_, tally)| &tally.of[1..]);
    let others: u64 = others.map(dropped).sum();
    let stated = CHANNELS[0].rate() / u64::from(KILOBYTE);
    let got = all
        .iter()
        .filter_map(|(_, tally)| tally.rate(tally.of[0].sent));
    let got: Vec<u64> = got.collect();
    let holes: Holes<'_> = &[
        ("runs", &all.len()),
        ("missed", &missed),
        ("least", &signed(least)),
        ("own", &beside(&own)),
        ("others", &others),
        ("stated", &stated),
        ("got", &beside(&got)),
        ("all", &ALL),
    ];
    let isolated = all
        .iter()
        .all(|(_, tally)| (1..SENDERS).all(|one| has_all(tally, one)));
    say(draft, "figure-6", "isolated", isolated, holes);
    let is_stated = |got: &u64| got * 100 >= stated * ALL && got * ALL <= stated * 100;
    say(
        draft,
        "figure-6",
        "violator-served",
        got.iter().all(is_stated),
        holes,
    );
    say(
        draft,
        "figure-6",
        "violator-in-time",
        missed == 0 && least >= 0,
        holes,
    );
    let grows = own.windows(2).all(|pair| pair[0] <= pair[1]) && own.last() > Some(&0);
    say(
        draft,
        "figure-6",
        "drops-its-own",
        grows && others == 0,
        holes,
    );
}

/// Those of a figure whose host is organised in this way.
fn those<'a>(all: &[&'a Trial], is: impl Fn(Way) -> bool) -> Vec<&'a Trial> {
    let all = all.iter().copied();
    all.filter(|(case, _)| is(case.setup.way)).collect()
}

/// Misses and drops of real time at each load.
fn at_each(all: &[&Trial]) -> [String; 2] {
    [missed, dropped].map(|number| beside(all.iter().map(|(_, tally)| packets(tally, number))))
}

/// Figure 7a: the handler of best effort is not preempted.
fn unpreemptible(draft: &mut Draft<'_>, all: &[&Trial]) {
    let smaller = |room: u32| room == super::ROOMS[0];
    let [few, many] = [true, false].map(|few| {
        those(
            all,
            |way| matches!(way, Way::Unpreemptible(room) if smaller(room) == few),
        )
    });
    losses(draft, "figure-7a", "few", &few);
    losses(draft, "figure-7a", "many", &many);
    let (low, rest) = few.split_at(few.len().min(2));
    let lost = |trial: &&Trial| packets(&trial.1, missed) + packets(&trial.1, dropped);
    let most = |all: &[&Trial]| all.iter().map(lost).max().unwrap_or(0);
    let is_full = |trial: &&&Trial| trial.1.of[BEST_EFFORT].dropped > 0;
    let beyond = few.iter().filter(is_full).map(lost).max();
    let peak = most(&few);
    let (low_most, low) = (most(low), worst(low));
    let (of_few, of_many) = (worst(&few), worst(&many));
    let [misses, drops] = at_each(&few);
    let holes: Holes<'_> = &[
        ("misses", &misses),
        ("drops", &drops),
        ("low-missed", &low.0),
        ("low-dropped", &low.1),
        ("few-missed", &of_few.0),
        ("few-dropped", &of_few.1),
        ("many-missed", &of_many.0),
        ("many-dropped", &of_many.1),
        ("peak", &peak),
        ("beyond", &beyond.unwrap_or(0)),
    ];
    say(draft, "figure-7a", "at-once", low.0 > 0 && low.1 > 0, holes);
    say(
        draft,
        "figure-7a",
        "grows",
        most(rest) > 2 * low_most,
        holes,
    );
    let declines = beyond.is_some_and(|beyond| beyond < peak);
    say(draft, "figure-7a", "fewer-beyond", declines, holes);
    let is_worse = of_many.0 > of_few.0 && of_many.1 >= of_few.1;
    say(draft, "figure-7a", "larger-window", is_worse, holes);
}

/// Figure 7b: what is early goes ahead of best effort, and is preempted between messages at most.
fn ahead(draft: &mut Draft<'_>, all: &[&Trial]) {
    let [between, drains] =
        [false, true].map(|drains| those(all, |way| way == Way::Ahead { drains }));
    losses(draft, "figure-7b", "between", &between);
    losses(draft, "figure-7b", "drains", &drains);
    let (of_between, of_drains) = (worst(&between), worst(&drains));
    let [misses, drops] = at_each(&between);
    let holes: Holes<'_> = &[
        ("misses", &misses),
        ("drops", &drops),
        ("between-missed", &of_between.0),
        ("between-dropped", &of_between.1),
        ("drains-missed", &of_drains.0),
        ("drains-dropped", &of_drains.1),
    ];
    let are_some = of_between.0 > 0 && of_between.1 > 0;
    say(draft, "figure-7b", "early-misses", are_some, holes);
    let is_worse = of_drains.0 > of_between.0 && of_drains.1 >= of_between.1;
    say(draft, "figure-7b", "drained", is_worse, holes);
}

/// What best effort loses where early real time goes first, of what it has beside real time that waits for its time.
fn declines(draft: &mut Draft<'_>, proposed: &[&Trial], ahead: &[&Trial]) {
    let ahead = those(ahead, |way| way == Way::Ahead { drains: false });
    let effort = |trial: &Trial| trial.1.of[BEST_EFFORT];
    let mut both = proposed.iter().zip(&ahead);
    let free = both.clone().filter(|(one, _)| effort(one).dropped == 0);
    let lost: u64 = free.map(|(_, other)| effort(other).dropped).sum();
    let Some((last, of_ahead)) = both.next_back() else {
        return;
    };
    let has = |trial: &Trial| trial.1.rate(effort(trial).sent).unwrap_or(0);
    let holes: Holes<'_> = &[
        ("lost", &lost),
        ("proposed", &has(last)),
        ("ahead", &has(of_ahead)),
    ];
    say(draft, "figure-7b", "effort-declines", lost > 0, holes);
}

/// §5.3: what comes too soon is current as it comes.
fn unshaped(draft: &mut Draft<'_>, all: &[&Trial]) {
    let [shaped, unshaped] = [Way::Proposed, Way::Unshaped].map(|way| those(all, |one| one == way));
    let (Some((_, before)), Some((_, after))) = (shaped.first(), unshaped.first()) else {
        return;
    };
    let losses = |tally: &Tally| {
        let of = tally.of[1..BEST_EFFORT].iter();
        of.map(|of| of.missed + of.dropped).collect::<Vec<u64>>()
    };
    let effort = |tally: &Tally| tally.rate(tally.of[BEST_EFFORT].sent).unwrap_or(0);
    let holes: Holes<'_> = &[
        ("before", &beside(losses(before))),
        ("after", &beside(losses(after))),
        ("effort-before", &effort(before)),
        ("effort-after", &effort(after)),
    ];
    let all_worse = losses(before)
        .iter()
        .zip(losses(after))
        .all(|(before, after)| *before < after);
    let is_worse = all_worse && effort(after) < effort(before);
    say(draft, "unshaped", "all-worse", is_worse, holes);
}
