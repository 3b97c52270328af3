//! `[hosts.*]` and `[links.*]`.

use std::ops::RangeInclusive;

use laxity_model::Span;

use super::ends::{self, AT};
use super::types::{Host, Link, Own, PublicKey};
use crate::scenario::keys::{
    Booleans, Form, Key, Other, Own as OwnForm, Table, Within, Without, Words,
};
use crate::scenario::quantities::{RATE, SIZE, SPAN};
use crate::scenario::reader::{Found, Section, shortened};
use crate::scenario::sections::{Names, named};
use crate::scenario::units::UnitError;

/// In bits a second, from 1 kbit/s to 1 Tbit/s.
pub(super) const RATES: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Bytes besides each frame: no medium has more.
const OVERHEADS: RangeInclusive<u64> = 0..=256;
/// What every link of IPv6 carries, which has room for each signal, to the longest packet of IP.
const MTUS: RangeInclusive<u64> = 1_280..=65_535;
/// By a satellite far out it is a quarter of a second.
const PROPAGATIONS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);

static KEY: Key<PublicKey> = Key::new(
    "key",
    &PublicKeys,
    Without::Refused("\"5dab…\""),
    "Its public key (X25519): who has the private one to it is this host, and nobody else is.",
);
pub(super) static HOST_KEYS: Table = Table {
    heading: "[hosts.<name>]",
    kind: None,
    about: "A host, which has a node.",
    keys: &[&KEY],
};

static BETWEEN: Key<Other> = Key::new(
    "between",
    &OwnForm("a list of two names of hosts"),
    Without::Refused("[\"robot\", \"base\"]"),
    "What it connects. Two hosts may have several links.",
);
static RATE_KEY: Key<u64> = Key::new(
    "rate",
    &Within(&RATE, RATES),
    Without::Refused("\"100 Mbit/s\""),
    "What it carries each way, headers and `overhead` with it.",
);
static OWN: Key<Own> = Key::new(
    "own",
    &Words(&[
        ("class", Own::Class),
        ("all", Own::All),
        ("none", Own::None),
    ]),
    Without::Is("\"none\""),
    "How much of it a node has: an egress class ahead of the kernel's other traffic; all of it, which can be planned, and which no node does yet; or nothing, and then channels over it are unenforced.",
);
static OVERHEAD: Key<u64> = Key::new(
    "overhead",
    &Within(&SIZE, OVERHEADS),
    Without::Is("\"24 B\""),
    "What each frame takes of it besides its own bytes: 24 B on Ethernet (preamble, checksum, gap), none where a rate is kept by HTB on a veth.",
);
static SEAL: Key<bool> = Key::new(
    "seal",
    &Booleans,
    Without::Is("true"),
    "Whether frames are sealed; otherwise they have a checksum, and whoever is on the link can read and forge them.",
);
static MTU: Key<u64> = Key::new(
    "mtu",
    &Within(&SIZE, MTUS),
    Without::Is("\"1500 B\""),
    "The longest packet of IP that goes over it, with its header. Messages are cut to what fits the narrowest link of the network, as relays cut nothing.",
);
static PROPAGATION: Key<Span> = Key::new(
    "propagation",
    &Within(&SPAN, PROPAGATIONS),
    Without::Is("\"0ns\""),
    "How long the last bit of a frame is under way at the most: 5 ns a metre of cable, and what a switch on it takes, its queues with it. No node sees that, and it is a part of each channel's time.",
);
pub(super) static LINK_KEYS: Table = Table {
    heading: "[links.<name>]",
    kind: None,
    about: "What connects two hosts directly, in both directions; a switch between them is part of it.",
    keys: &[
        &BETWEEN,
        &AT,
        &RATE_KEY,
        &OWN,
        &OVERHEAD,
        &SEAL,
        &MTU,
        &PROPAGATION,
    ],
};

/// `[hosts.*]`.
pub(super) fn hosts(root: &Section<'_>) -> Names<Host> {
    let hosts = named(root, "hosts", |section, name| {
        section.keyed([&HOST_KEYS]);
        let key = section.find(&KEY)?;
        let name = name.to_owned();
        Some((
            Host {
                name,
                key: key.value,
            },
            key.place,
        ))
    });
    for (number, declared) in hosts.iter().enumerate() {
        let Some((host, place)) = &declared.value else {
            continue;
        };
        let before = hosts[..number].iter().filter_map(|one| one.value.as_ref());
        if let Some((other, _)) = before.clone().find(|(other, _)| other.key == host.key) {
            let cause = format!(
                "`{}` has this key, too: who has one key is one host",
                other.name
            );
            let remedy = "write each host's own public key";
            root.findings.error(place, cause, remedy);
        }
    }
    if let [only] = hosts.as_slice() {
        let cause = "a network has two hosts at least";
        root.findings
            .error(&only.place, cause, "add another one, such as [hosts.base]");
    }
    let without = |declared: crate::scenario::Declared<(Host, _)>| crate::scenario::Declared {
        name: declared.name,
        place: declared.place,
        value: declared.value.map(|(host, _)| host),
    };
    hosts.into_iter().map(without).collect()
}

/// `[links.*]`.
pub(super) fn links(root: &Section<'_>, hosts: &Names<Host>) -> Names<Link> {
    let links = named(root, "links", |section, name| {
        section.keyed([&LINK_KEYS]);
        let (between, rate) = (between(section, hosts), section.optional(&RATE_KEY));
        let (own, overhead) = (section.take(&OWN), section.take(&OVERHEAD));
        let (seal, at) = (section.take(&SEAL), ends::ends(section));
        let (mtu, propagation) = (section.take(&MTU), section.take(&PROPAGATION));
        Some(Link {
            name: name.to_owned(),
            between: between?,
            rate: rate?,
            own,
            overhead: overhead as u16,
            seal,
            at: at?,
            mtu: mtu as u16,
            propagation,
        })
    });
    ends::distinct(root, &links, |host| hosts[host].name.clone());
    links
}

fn between(section: &Section<'_>, hosts: &Names<Host>) -> Option<[usize; 2]> {
    section.find(&BETWEEN);
    let ends = section.texts(BETWEEN.name, "[\"robot\", \"base\"]")?;
    let [one, other] = ends.as_slice() else {
        let cause = format!("a link is between two hosts, and here are {}", ends.len());
        let remedy = "name two, such as: between = [\"robot\", \"base\"]; of a switch each pair of hosts has a link";
        section.wrong(BETWEEN.name, cause, remedy);
        return None;
    };
    let [from, to] = [one, other].map(|end| host(section, end, hosts));
    let (from, to) = (from?, to?);
    if from == to {
        let cause = format!("`{}` is at both ends of {}", one.value, section.path);
        section.wrong(BETWEEN.name, cause, "name the host at its other end");
        return None;
    }
    Some([from, to])
}

/// The place of the host of this name.
pub(super) fn host(
    section: &Section<'_>,
    name: &Found<&str>,
    hosts: &Names<Host>,
) -> Option<usize> {
    let found = hosts.iter().position(|host| host.name == name.value);
    if found.is_none() {
        let names = hosts.iter().map(|host| host.name.as_str());
        section.findings.unknown("host", name, names);
    }
    found
}

/// 32 bytes, as hexadecimal digits.
struct PublicKeys;

/// What 32 bytes are.
const DIGITS: usize = 64;

impl Form<PublicKey> for PublicKeys {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<PublicKey>> {
        let text = section.text(key, "a public key", "5dab…")?;
        section.parsed(&text, public_key)
    }

    fn parse(&self, text: &str) -> Option<PublicKey> {
        public_key(text).ok()
    }

    fn describe(&self) -> String {
        "64 hexadecimal digits".into()
    }
}

fn public_key(text: &str) -> Result<PublicKey, UnitError> {
    let remedy = "write the 32 bytes of the host's public key as 64 hexadecimal digits";
    let wrong = |cause: String| Err(UnitError::new(cause, remedy));
    if let Some(other) = text.chars().find(|digit| !digit.is_ascii_hexdigit()) {
        let text = shortened(text);
        return wrong(format!(
            "`{text}` is no public key: `{other}` is no hexadecimal digit"
        ));
    }
    if text.len() != DIGITS {
        return wrong(format!(
            "a public key has {DIGITS} digits, and this one {}",
            text.len()
        ));
    }
    let digit = |at: usize| char::from(text.as_bytes()[at]).to_digit(16).unwrap_or(0) as u8;
    let key = std::array::from_fn(|byte| digit(2 * byte) << 4 | digit(2 * byte + 1));
    if key == [0; 32] {
        return wrong("nobody has a key of zeros".to_owned());
    }
    Ok(PublicKey(key))
}
