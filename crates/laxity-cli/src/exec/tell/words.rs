//! What is said of a delivery, in words.

use laxity::contract::Contract;
use laxity::doctor::Kernel;
use laxity::{Delivery, Reservation};
use laxity_lab::plain;
use laxity_model::verify::delivery::{SHORT_PERIODS, SHORT_STRETCHES};

use super::FINE;

/// That it never asked for what is reserved, so that nobody knows whether it would have had it.
pub(super) fn why_nothing(seen: &Delivery) -> Option<String> {
    (seen.periods > 0 && seen.asleep == seen.periods).then(|| {
        let all = seen.periods;
        let periods = periods(seen);
        format!("it asked for its reservation in none of {all} undisturbed {periods}")
    })
}

/// That none of the threads with these names has come.
pub(super) fn nobody(names: &[String]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", plain(name)))
        .collect();
    format!(
        "no thread that was named {} came to hold it before the program ended",
        names.join(" or ")
    )
}

/// What helps where the kernel has not as much as all threads of a program ask for.
pub(super) fn reserve_less(each: Reservation) -> String {
    format!(
        "each thread asks for {each} of its own: reserve less, or for fewer of them (`--threads NAME`, `--follow none`)"
    )
}

/// Of the periods that were not kept those that had too much; those that were not judged, and why.
pub(super) fn beside_kept(seen: &Delivery) -> String {
    let disturbed = match (seen.disturbed, seen.short_disturbed) {
        (0, _) => None,
        (all, 0) => Some(format!("{all} more while the machine stood still")),
        (all, short) => Some(format!(
            "{all} more while the machine stood still, {short} of them not kept"
        )),
    };
    let exceeded = seen.exceeded;
    let exceeded = (exceeded > 0).then(|| format!("{exceeded} of the others had too much"));
    let stopped = (seen.stopped > 0).then(|| format!("{} more while it was stopped", seen.stopped));
    let unseen = (seen.unseen > 0).then(|| format!("{} that nobody saw", seen.unseen));
    let halts = "halts of the machine are not seen".to_owned();
    let halts = seen.halts_unseen.then_some(halts);
    let all = exceeded.into_iter().chain(disturbed).chain(stopped);
    in_brackets(all.chain(unseen).chain(halts))
}

/// After what they are said of, if there are any.
pub(super) fn in_brackets(remarks: impl Iterator<Item = String>) -> String {
    let remarks: Vec<String> = remarks.collect();
    if remarks.is_empty() {
        String::new()
    } else {
        format!(" ({})", remarks.join("; "))
    }
}

/// That the kernel notices late that a budget is used up, if it does, or that it may.
pub(super) fn coarseness(kernel: &Kernel) -> Option<String> {
    let tick = kernel.tick;
    match kernel.hrtick {
        Ok(true) => None,
        Ok(false) => Some(format!("budgets end at the kernel's tick of {tick}")),
        Err(_) => Some(format!(
            "budgets may end at the kernel's tick of {tick} (see `laxity doctor`)"
        )),
    }
}

/// What is counted in place of periods where these are not seen.
pub(super) fn periods(seen: &Delivery) -> String {
    if seen.is_of_several() {
        let each = seen.together;
        format!("stretches of {each} periods (single periods are not seen)")
    } else {
        "periods".to_owned()
    }
}

/// How often the machine stood still, and for how long; `None`: not once, as far as anybody looked.
pub(super) fn halts(seen: &Delivery) -> Option<String> {
    let halts = seen.halts;
    let [longest, total] = [halts.longest, halts.total].map(|span| span.rounded_up(FINE));
    match halts.count {
        0 => None,
        1 => Some(format!("1 halt of the machine ({total})")),
        count => Some(format!(
            "{count} halts of the machine ({longest} the longest, {total} in all)"
        )),
    }
}

pub(super) fn lost(seen: &Delivery) -> String {
    match seen.events_lost {
        0 => String::new(),
        lost => format!(", {lost} records lost: what is told may be wrong"),
    }
}

/// What of a contract convicts also where much of what was received was not seen: a period that is short by what was seen may have had the rest.
pub(super) fn certain(contract: &Contract) -> Contract {
    let mut certain = contract.clone();
    let short = [SHORT_PERIODS, SHORT_STRETCHES];
    certain
        .limits
        .retain(|limit| !short.contains(&limit.quantity));
    certain
}

/// Where they are told by themselves.
pub(super) fn halts_or_none(seen: &Delivery) -> String {
    match halts(seen) {
        Some(halts) => halts,
        None if seen.halts_unseen => "not seen".to_owned(),
        None => "none".to_owned(),
    }
}
