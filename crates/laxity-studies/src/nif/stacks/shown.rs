//! What is shown of the kernel's TCP and ours.

use laxity_lab::bench::{Draft, Holes, Made};
use laxity_lab::report::{Origin, Row, fixed};

use super::super::{Nif, Run, TEXT};
use super::{CONTENDERS, Figures, MESSAGES, Seen, Way};
use crate::or;
use crate::spread::Spread;

/// Of whom something is claimed.
pub(super) const CLAIMED: (Way, bool) = (Way::Tap, true);
/// It is so much of what the kernel sends by itself without them and with them, in thousandths.
const AIMS: [((Way, bool), u64); 2] = [((Way::Kernel, false), 1_000), ((Way::Kernel, true), 650)];

/// What a contender did with messages of a size, of each run.
fn of(runs: &[&Seen], contender: (Way, bool), message: usize) -> Vec<Figures> {
    let is_it = |one: &&Figures| one.contender == contender && one.message == message;
    let found = runs.iter().filter_map(|run| run.figures.iter().find(is_it));
    found.copied().collect()
}

fn row(contender: (Way, bool), message: usize, all: &[Figures]) -> Row {
    let spread = |of: fn(&Figures) -> u64| Spread::of(all.iter().map(|one| Some(of(one))));
    let cell = |of: fn(&Figures) -> u64, word: fn(u64) -> String| {
        Origin::Measured.cell(spread(of)?.briefly(word))
    };
    let rate: fn(u64) -> String = |rate| fixed(rate / 100_000, 10, 1);
    let [name, offloads] = words_of(contender);
    let mut row = Origin::Charged.row([name.into(), offloads.into(), (message as u64).into()]);
    row.extend([
        cell(|one| one.rates[0], rate),
        cell(|one| one.rates[1], rate),
        cell(|one| one.costs[0], |nanos| nanos.to_string()),
        cell(|one| one.costs[1], |nanos| nanos.to_string()),
        cell(|one| one.trip, |nanos| fixed(nanos / 100, 10, 1)),
    ]);
    row
}

fn words_of((way, is_on): (Way, bool)) -> [String; 2] {
    let offloads = if is_on { "on" } else { "off" };
    [TEXT.say(way.key(), &[]), offloads.to_owned()]
}

/// Says who could not begin, each once; why nothing is told of the one that something is claimed of, if that is one of them.
fn tell_absent(draft: &mut Draft<'_>, runs: &[&Seen]) -> Option<String> {
    let mut told = Vec::new();
    let mut doubt = None;
    for (contender, why) in runs.iter().flat_map(|run| &run.absent) {
        let [who, offloads] = words_of(*contender);
        let holes: Holes<'_> = &[("who", &who), ("offloads", &offloads), ("why", why)];
        let words = TEXT.say("stacks-absent", holes);
        if *contender == CLAIMED {
            doubt.get_or_insert_with(|| words.clone());
        }
        if !told.contains(&words) {
            draft.say("stacks-absent", holes);
            told.push(words);
        }
    }
    doubt
}

/// Draws the figure, if it was run.
pub(in super::super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Nif>) {
    let runs = made.live.iter().filter_map(|(_, seen)| match seen {
        super::super::Seen::Stacks(seen) => Some(seen),
        _ => None,
    });
    let runs: Vec<&Seen> = runs.collect();
    // Beside others its absence from the twin is nothing to tell.
    if !made.request.live && !made.request.figures.is_empty() {
        draft.say("stacks-live-only", &[]);
    }
    if runs.is_empty() {
        return;
    }
    let rows = CONTENDERS.into_iter().flat_map(|contender| {
        let each = MESSAGES.map(|message| (message, of(&runs, contender, message)));
        let there = each.into_iter().filter(|(_, all)| !all.is_empty());
        there.map(move |(message, all)| row(contender, message, &all))
    });
    draft.table("stacks", "stacks", &[], rows);
    let doubt = tell_absent(draft, &runs);
    let [.., longest] = MESSAGES;
    let ours = of(&runs, CLAIMED, longest);
    let shares = AIMS.map(|(theirs, _)| {
        let theirs = of(&runs, theirs, longest);
        let rounds = ours.iter().zip(&theirs);
        Spread::of(
            rounds.map(|(ours, theirs)| (ours.rates[0] * 1_000).checked_div(theirs.rates[0])),
        )
    });
    let words = |share: Option<Spread>| {
        let share = share.map(|share| share.briefly(|share| fixed(share, 1_000, 2)));
        or(share, "nothing was sent")
    };
    let [without, with] = AIMS.map(|(_, aim)| fixed(aim, 1_000, 2));
    let holes: Holes<'_> = &[
        ("message", &longest),
        ("without", &without),
        ("with", &with),
        ("without-share", &words(shares[0])),
        ("with-share", &words(shares[1])),
    ];
    let mut all = shares.iter().zip(AIMS);
    let holds = all.all(|(share, (_, aim))| share.is_some_and(|share| share.median >= aim));
    let said = made.said(|run| matches!(run, Run::Stacks(_))).but(doubt);
    draft.claim_here("stacks", (holds, false), holes, &said);
}
