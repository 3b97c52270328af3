//! What covers a flow, as a table for people, as JSON, and as the lines of a file that describes a network.

use std::fmt::Write as _;

use laxity_model::channels::fit::Rate;
use serde_json::{Value, json};

use super::messages::Grouping;
use super::pairs::{Fitted, Pair, beside};
use crate::layout::{Align, Fit, Grid, TimeUnit, decimal, percent, wrap_to};
use crate::scenario::units::{format_messages, format_span};

/// A table of the pairs, and what is proposed, in lines of so many characters. `name` is the file's.
#[must_use]
pub fn render(fitted: &Fitted, name: &str, width: usize) -> String {
    let mut text = String::new();
    wrap_to(width, "", &head(fitted, name), &mut text);
    text.push('\n');
    text.push_str(&table(fitted, width));
    text.push('\n');
    for note in notes(fitted) {
        wrap_to(width, "note: ", &note, &mut text);
    }
    text.push_str(&snippet(fitted));
    text
}

fn head(fitted: &Fitted, name: &str) -> String {
    let Fitted {
        filter,
        packets,
        messages,
        bytes,
        largest,
        most_packets,
        lasts,
        mean,
        ..
    } = fitted;
    let time = TimeUnit::for_largest(lasts.as_nanos());
    let lasts = format!("{} {}", time.up(lasts.as_nanos()), time.name());
    let longest = match fitted.grouping {
        Grouping::Each => String::new(),
        Grouping::Gap(_) | Grouping::Rtp => format!(", and none more than {most_packets} packets"),
    };
    let of = match fitted.grouping {
        Grouping::Each => "each a packet".to_owned(),
        Grouping::Gap(gap) => format!(
            "of {packets} packets, where a gap of more than {} begins one",
            format_span(gap)
        ),
        Grouping::Rtp => format!("of {packets} packets, by the timestamps of RTP"),
    };
    format!(
        "{name}: {filter}: {messages} messages ({of}) of {bytes} bytes in {lasts}; the largest has {largest} bytes{longest}; in the mean {}",
        format_messages(*mean)
    )
}

fn table(fitted: &Fitted, width: usize) -> String {
    let heads = [
        "",
        "burst",
        "rate",
        "one every",
        "of the mean",
        "early by",
        "reserved",
    ];
    let heads = heads.map(|head| (head.to_owned(), Align::Right));
    let mut grid = Grid::new(heads, Fit::Words(width));
    for pair in &fitted.pairs {
        let mark = if *pair == fitted.chosen { ">" } else { "" };
        grid.row([
            mark.to_owned(),
            pair.burst.to_string(),
            format_messages(pair.rate),
            every(pair.rate),
            format!("{} %", percent(beside(pair.rate, fitted.mean))),
            early(pair),
            megabits(pair.rate, fitted.largest),
        ]);
    }
    grid.render()
}

/// The time from one message to the next, rounded down: so the rate is no lower.
fn every(rate: Rate) -> String {
    let Some(nanos) = rate.period().as_nanos().checked_div(rate.amount()) else {
        return "-".to_owned();
    };
    let unit = TimeUnit::for_largest(nanos);
    format!("{} {}", unit.down(nanos), unit.name())
}

fn early(pair: &Pair) -> String {
    let nanos = pair.earliness.as_nanos();
    let unit = TimeUnit::for_largest(nanos);
    format!("{} {}", unit.up(nanos), unit.name())
}

/// What so many messages of this size take of a link, without headers.
fn megabits(rate: Rate, bytes: u64) -> String {
    let bits = u128::from(rate.amount()) * 8 * u128::from(bytes) * 1_000_000_000;
    let bits = bits.div_ceil(u128::from(rate.period().as_nanos()));
    let bits = u64::try_from(bits).unwrap_or(u64::MAX);
    format!("{} Mbit/s", decimal(bits, 1_000_000, 3))
}

fn notes(fitted: &Fitted) -> Vec<String> {
    let mut notes = vec![
        "policed by such a pair no message of this recording is in excess; `early by`: so long before its time a message comes at the most, and so much later it is due; `reserved`: what messages of the largest size would take of a link, without headers".to_owned(),
    ];
    if fitted.flows > 1 {
        notes.push(format!(
            "the filter matches packets of {} flows, which are taken as one; a channel is for one: name its hosts and ports",
            fitted.flows
        ));
    }
    if fitted.pieces > 0 {
        notes.push(format!(
            "pieces of fragmented packets that were passed over: {}, as they have no ports; a filter of hosts alone takes them, and `--message gap=TIME` puts them together",
            fitted.pieces
        ));
    }
    notes
}

/// The lines that a file which describes a network needs for such a channel; what the recording cannot say is in comments.
#[must_use]
pub fn snippet(fitted: &Fitted) -> String {
    let chosen = &fitted.chosen;
    let mut text = String::from(
        "\n[channels.NAME]\n# from = \"…\", to = \"…\", within = \"…\": yours to say\n",
    );
    // Writing to a string does not fail.
    let _ = writeln!(text, "max = \"{} B\"", fitted.largest.max(1));
    let _ = writeln!(text, "rate = \"{}\"", format_messages(chosen.rate));
    let _ = writeln!(text, "burst = {}", chosen.burst);
    text
}

/// The same as JSON.
#[must_use]
pub fn to_json(fitted: &Fitted, name: &str) -> Value {
    let grouping = match fitted.grouping {
        Grouping::Each => "packet".to_owned(),
        Grouping::Gap(gap) => format!("gap={}", format_span(gap)),
        Grouping::Rtp => "rtp".to_owned(),
    };
    let pairs: Vec<Value> = fitted.pairs.iter().map(pair_json).collect();
    json!({
        "file_version": 1,
        "file": name,
        "filter": fitted.filter,
        "flows": fitted.flows,
        "fragments_passed_over": fitted.pieces,
        "message": grouping,
        "packets": fitted.packets,
        "messages": fitted.messages,
        "bytes": fitted.bytes,
        "largest_bytes": fitted.largest,
        "packets_max": fitted.most_packets,
        "lasted_ns": fitted.lasts.as_nanos(),
        "mean": rate_json(fitted.mean),
        "pairs": pairs,
        "chosen": pair_json(&fitted.chosen),
    })
}

fn rate_json(rate: Rate) -> Value {
    json!({ "messages": rate.amount(), "period_ns": rate.period().as_nanos() })
}

fn pair_json(pair: &Pair) -> Value {
    json!({
        "burst": pair.burst,
        "rate": rate_json(pair.rate),
        "rate_text": format_messages(pair.rate),
        "early_max_ns": pair.earliness.as_nanos(),
    })
}
