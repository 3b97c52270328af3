//! `[channels.*]`.

use std::ops::RangeInclusive;

use laxity_model::Span;
use laxity_model::channels::fit::Rate;
use laxity_model::channels::signalling::message::MOST_HOSTS;
use laxity_model::channels::source::Excess;

use super::hosts::host;
use super::route::{NoRoute, beyond, fewest};
use super::types::{Channel, Host, Late, Link};
use crate::scenario::keys::{
    Any, Integers, Key, Other, Own as OwnForm, Table, Texts, Within, Without, Words,
};
use crate::scenario::quantities::{MESSAGES, SIZE, SPAN};
use crate::scenario::reader::{Found, Section};
use crate::scenario::sections::{DURATIONS, Names, chosen, named};
use crate::scenario::units::{format_rate, format_span};

/// Bytes of a message, up to 16 MiB.
const SIZES: RangeInclusive<u64> = 1..=1 << 24;

static FROM: Key<String> = Key::new(
    "from",
    &Texts("the name of a host", "robot"),
    Without::Refused("\"robot\""),
    "The host that sends.",
);
static TO: Key<String> = Key::new(
    "to",
    &Texts("the name of a host", "base"),
    Without::Refused("\"base\""),
    "The host that receives.",
);
static VIA: Key<Other> = Key::new(
    "via",
    &OwnForm("a list of names of links"),
    Without::Means("the way over the fewest links, if there is but one such"),
    "The links that it goes over, in order.",
);
static MAX: Key<u64> = Key::new(
    "max",
    &Within(&SIZE, SIZES),
    Without::Refused("\"20 kB\""),
    "The largest message. A larger one counts as several.",
);
static RATE: Key<Rate> = Key::new(
    "rate",
    &Any(&MESSAGES),
    Without::Refused("\"30/s\""),
    "How many messages come in a time: each has its logical arrival no sooner than so much behind the one before.",
);
static BURST: Key<u32> = Key::new(
    "burst",
    &Integers(1, 65_535),
    Without::Is("1"),
    "How many may come at once.",
);
static WITHIN: Key<Span> = Key::new(
    "within",
    &Within(&SPAN, DURATIONS),
    Without::Refused("\"10ms\""),
    "From a message's logical arrival to its delivery, at the most.",
);
static OVER: Key<Excess> = Key::new(
    "over",
    &Words(&[
        ("shape", Excess::Shape),
        ("block", Excess::Block),
        ("demote", Excess::Demote),
        ("drop-newest", Excess::DropNewest),
        ("drop-oldest", Excess::DropOldest),
    ]),
    Without::Is("\"shape\""),
    "What becomes of messages that come too fast: they wait for their logical arrival, while there is room; their sender waits; they go as best effort; or one is dropped, the newest or the oldest.",
);
static LATE: Key<Late> = Key::new(
    "late",
    &Words(&[("deliver", Late::Deliver), ("discard", Late::Discard)]),
    Without::Is("\"deliver\""),
    "What becomes of a message that is late: it is delivered all the same, or let go of by the first hop that knows.",
);
pub(super) static KEYS: Table = Table {
    heading: "[channels.<name>]",
    kind: None,
    about: "A real-time channel: messages in one direction, in order, each delivered within a time.",
    keys: &[&FROM, &TO, &VIA, &MAX, &RATE, &BURST, &WITHIN, &OVER, &LATE],
};

/// `[channels.*]`.
pub(super) fn channels(
    root: &Section<'_>,
    hosts: &Names<Host>,
    links: &Names<Link>,
) -> Names<Channel> {
    named(root, "channels", |section, name| {
        channel(section, name, hosts, links)
    })
}

fn channel(
    section: &Section<'_>,
    name: &str,
    hosts: &Names<Host>,
    links: &Names<Link>,
) -> Option<Channel> {
    section.keyed([&KEYS]);
    let ends = ends(section, hosts);
    let route = ends.and_then(|ends| route(section, (hosts, links), ends));
    let (max, rate) = (section.optional(&MAX), messages(section));
    let within = section.optional(&WITHIN);
    let (burst, over) = (section.take(&BURST), section.take(&OVER));
    let late = section.take(&LATE);
    let (from, to) = ends?;
    let channel = Channel {
        name: name.to_owned(),
        from,
        to,
        route: route?,
        max: max? as u32,
        rate: rate?,
        burst,
        within: within?,
        over,
        late,
    };
    is_short(section, &channel);
    possible(section, &channel, links);
    Some(channel)
}

fn ends(section: &Section<'_>, hosts: &Names<Host>) -> Option<(usize, usize)> {
    let [from, to] = [&FROM, &TO].map(|key| {
        let found = section.find(key)?;
        let name = Found {
            value: found.value.as_str(),
            place: found.place.clone(),
        };
        host(section, &name, hosts)
    });
    let (from, to) = (from?, to?);
    if from == to {
        let cause = format!("{} is to where it is from", section.path);
        let remedy = "name another host; on one host programs need no channel to be described";
        section.wrong(TO.name, cause, remedy);
        return None;
    }
    Some((from, to))
}

/// So many in so much time.
fn messages(section: &Section<'_>) -> Option<(u32, Span)> {
    let found = section.find(&RATE)?;
    let (amount, period) = (found.value.amount(), found.value.period());
    if period.as_nanos() < amount {
        let cause = "more than a message a nanosecond";
        section.wrong(
            RATE.name,
            cause,
            "write a lower rate, such as: rate = \"1000/s\"",
        );
        return None;
    }
    // As it is read, it is of 32 bits.
    Some((u32::try_from(amount).ok()?, period))
}

fn route(
    section: &Section<'_>,
    (hosts, links): (&Names<Host>, &Names<Link>),
    (from, to): (usize, usize),
) -> Option<Vec<usize>> {
    let known: Option<Vec<Link>> = links.iter().map(|link| link.value.clone()).collect();
    if section.has(VIA.name) {
        return via(section, (hosts, links), (from, to));
    }
    // Of a link that could not be read nobody knows where it leads; that there is none at all is told by itself.
    let known = known.filter(|links| !links.is_empty())?;
    let found = fewest(&known, hosts.len(), (from, to));
    let [start, end] = [from, to].map(|host| hosts[host].name.as_str());
    match found {
        Ok(route) => Some(route),
        Err(NoRoute::Apart) => {
            let cause = format!("no links lead from `{start}` to `{end}`");
            let remedy =
                "add the link that is missing, such as [links.wire], or correct `between` of one";
            section.wrong(TO.name, cause, remedy);
            None
        }
        Err(NoRoute::Ambiguous) => {
            let cause = format!("several ways from `{start}` to `{end}` go over as few links");
            let remedy = "say over which links, in order, such as: via = [\"wire\"]";
            section.findings.error(&section.place, cause, remedy);
            None
        }
    }
}

/// The links that are named, which lead from one host to the other and to none twice.
fn via(
    section: &Section<'_>,
    (hosts, links): (&Names<Host>, &Names<Link>),
    (from, to): (usize, usize),
) -> Option<Vec<usize>> {
    let texts = section.texts(VIA.name, "[\"wire\"]")?;
    let names = links.iter().map(|link| link.name.as_str());
    let named = chosen(
        section,
        ("link", "a way goes over each link once"),
        &texts,
        names,
    );
    if named.len() < texts.len() {
        return None;
    }
    let (mut at, mut visited) = (from, vec![from]);
    for (place, text) in &named {
        let link = links[*place].value.as_ref()?;
        let here = hosts[at].name.as_str();
        let Some(next) = beyond(link, at) else {
            let ends = link.between.map(|end| hosts[end].name.as_str());
            let cause = format!(
                "`{}` is not at `{here}`, which the way has come to: it is between `{}` and `{}`",
                text.value, ends[0], ends[1]
            );
            let remedy = format!("name a link of `{here}` here");
            section.findings.error(&text.place, cause, remedy);
            return None;
        };
        if visited.contains(&next) {
            let cause = format!("the way comes to `{}` twice", hosts[next].name);
            section
                .findings
                .error(&text.place, cause, "leave out the links between");
            return None;
        }
        visited.push(next);
        at = next;
    }
    if at != to {
        let [here, end] = [at, to].map(|host| hosts[host].name.as_str());
        let cause = format!(
            "the way ends at `{here}`, and {} is to `{end}`",
            section.path
        );
        let remedy = format!("add the links from `{here}` to `{end}`");
        section.wrong(VIA.name, cause, remedy);
        return None;
    }
    Some(named.into_iter().map(|(place, _)| place).collect())
}

/// Reports a way that is longer than what hosts can say to each other.
fn is_short(section: &Section<'_>, channel: &Channel) {
    let hosts = channel.route.len() + 1;
    if hosts > MOST_HOSTS {
        let cause = format!("its way goes over {hosts} hosts, both ends with them");
        let remedy = format!(
            "a way has {MOST_HOSTS} hosts at the most: connect some by a link of their own"
        );
        let key = if section.has(VIA.name) {
            VIA.name
        } else {
            TO.name
        };
        section.wrong(key, cause, remedy);
    }
}

/// Reports what no admission could ever grant.
fn possible(section: &Section<'_>, channel: &Channel, links: &Names<Link>) {
    let known = channel
        .route
        .iter()
        .filter_map(|link| links[*link].value.as_ref());
    let Some(slowest) = known.min_by_key(|link| link.rate) else {
        return;
    };
    let bits = channel.bits();
    if bits > slowest.rate {
        let cause = format!(
            "its messages are {}, and the link `{}` carries {}",
            format_rate(bits),
            slowest.name,
            format_rate(slowest.rate)
        );
        let remedy = "write a lower `rate`, or a smaller `max`";
        section.wrong(RATE.name, cause, remedy);
        return;
    }
    let bits = u128::from(channel.max) * 8 * 1_000_000_000;
    let takes = u64::try_from(bits.div_ceil(u128::from(slowest.rate))).unwrap_or(u64::MAX);
    let takes = Span::from_nanos(takes);
    if takes > channel.within {
        let cause = format!(
            "its largest message takes the link `{}` {} alone",
            slowest.name,
            format_span(takes)
        );
        let remedy = "write a longer `within`, or a smaller `max`";
        section.wrong(WITHIN.name, cause, remedy);
    }
}
