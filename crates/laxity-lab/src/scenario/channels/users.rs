//! `[users.*]`.

use super::hosts::{RATES, host};
use super::types::{Channel, Host, User};
use crate::scenario::keys::{Integers, Key, Other, Own as OwnForm, Table, Texts, Within, Without};
use crate::scenario::quantities::RATE;
use crate::scenario::reader::{Found, Section};
use crate::scenario::sections::{NONE, Names, chosen, named};
use crate::scenario::units::format_rate;

static UID: Key<u32> = Key::new(
    "uid",
    &Integers(0, u32::MAX - 1),
    Without::Refused("1000"),
    "By which number the system knows the user.",
);
static HOST: Key<String> = Key::new(
    "host",
    &Texts("the name of a host", "robot"),
    Without::Means("each host"),
    "Where that is.",
);
static CHANNELS: Key<u16> = Key::new(
    "channels",
    &Integers(1, u16::MAX),
    Without::Means("as many as are named in `open`"),
    "How many channels the user may have opened at once.",
);
static RATE_KEY: Key<u64> = Key::new(
    "rate",
    &Within(&RATE, RATES),
    Without::Means("what those channels take"),
    "How many bits a second they may have together, of messages, without headers.",
);
static OPEN: Key<Other> = Key::new(
    "open",
    &OwnForm("a list of names of channels"),
    NONE,
    "The channels that the user may open.",
);
static LISTEN: Key<Other> = Key::new(
    "listen",
    &OwnForm("a list of names of channels"),
    NONE,
    "The channels that the user may listen to.",
);
pub(super) static KEYS: Table = Table {
    heading: "[users.<name>]",
    kind: None,
    about: "Who may open or listen to what, besides root and who runs the node.",
    keys: &[&UID, &HOST, &CHANNELS, &RATE_KEY, &OPEN, &LISTEN],
};

/// `[users.*]`.
pub(super) fn users(
    root: &Section<'_>,
    hosts: &Names<Host>,
    channels: &Names<Channel>,
) -> Names<User> {
    let users = named(root, "users", |section, name| {
        user(section, name, (hosts, channels))
    });
    for (number, declared) in users.iter().enumerate() {
        let Some(user) = &declared.value else {
            continue;
        };
        let mut before = users[..number].iter().filter_map(|one| one.value.as_ref());
        let is_same = |other: &&User| {
            let together = user.host.is_none() || other.host.is_none() || user.host == other.host;
            other.uid == user.uid && together
        };
        if let Some(other) = before.find(is_same) {
            let cause = format!("[users.{}] is the same user: uid {}", other.name, user.uid);
            let remedy = "say all of a user in one place, or of different hosts by `host`";
            root.findings.error(&declared.place, cause, remedy);
        }
    }
    users
}

fn user(
    section: &Section<'_>,
    name: &str,
    (hosts, channels): (&Names<Host>, &Names<Channel>),
) -> Option<User> {
    section.keyed([&KEYS]);
    let uid = section.optional(&UID);
    let host = match section.find(&HOST) {
        Some(found) => {
            let name = Found {
                value: found.value.as_str(),
                place: found.place.clone(),
            };
            Some(host(section, &name, hosts)?)
        }
        None => None,
    };
    let (most, rate) = (section.optional(&CHANNELS), section.find(&RATE_KEY));
    let open = may(section, &OPEN, (hosts, channels, host));
    let listen = may(section, &LISTEN, (hosts, channels, host));
    if !section.has(OPEN.name) && !section.has(LISTEN.name) {
        let cause = format!("{} may do nothing", section.path);
        let remedy = "name the channels, such as: open = [\"control\"]";
        section.findings.error(&section.place, cause, remedy);
    }
    let (open, listen) = (open?, listen?);
    if let Some(rate) = &rate {
        let specs = open
            .iter()
            .filter_map(|place| channels[*place].value.as_ref());
        if let Some(channel) = specs.max_by_key(|channel| channel.bits())
            && channel.bits() > rate.value
        {
            let cause = format!(
                "`{}` takes {}, so that this user could never open it",
                channel.name,
                format_rate(channel.bits())
            );
            let remedy = "write a higher `rate`, or leave the channel out of `open`";
            section.findings.error(&rate.place, cause, remedy);
        }
    }
    Some(User {
        name: name.to_owned(),
        uid: uid?,
        host,
        channels: most,
        rate: rate.map(|found| found.value),
        open,
        listen,
    })
}

/// The places of the channels that are named under a key, which begin, or end, where the user is.
fn may(
    section: &Section<'_>,
    key: &Key<Other>,
    (hosts, channels, host): (&Names<Host>, &Names<Channel>, Option<usize>),
) -> Option<Vec<usize>> {
    if !section.has(key.name) {
        return Some(Vec::new());
    }
    let texts = section.texts(key.name, "[\"control\"]")?;
    let names = channels.iter().map(|channel| channel.name.as_str());
    let named = chosen(section, ("channel", "name it once"), &texts, names);
    let opens = key.name == OPEN.name;
    for (place, text) in &named {
        let Some((channel, host)) = channels[*place].value.as_ref().zip(host) else {
            continue;
        };
        let end = if opens { channel.from } else { channel.to };
        if end != host {
            let verb = if opens { "begins" } else { "ends" };
            let cause = format!(
                "`{}` {verb} at `{}`, and this user is at `{}`",
                text.value, hosts[end].name, hosts[host].name
            );
            let remedy = "leave it out, or say of which `host` the user is";
            section.findings.error(&text.place, cause, remedy);
        }
    }
    (named.len() == texts.len()).then(|| named.into_iter().map(|(place, _)| place).collect())
}
