//! Filters against tcpdump: 200 of them, on 5,000 packets each. Where the two differ, the packet or the filter is of a kind that is listed, each
//! with what makes the difference; and every kind does come.

use std::collections::BTreeMap;
use std::process::Command;

use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::parse;

use super::ask::Ask;
use super::bpf::Program;
use super::packets::{Draw, Network, Packet, spoiled};

const FILTERS: usize = 200;
const PACKETS: usize = 5_000;

/// The kinds of packets and filters that ours and tcpdump's differ in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Why {
    /// tcpdump finds no ports behind extension headers, and no protocol but the first's and behind a fragment header; without these headers it agrees.
    Extensions,
    /// tcpdump finds ports in the first piece of an IPv4 packet; as a later piece it agrees.
    FirstPiece,
    /// tcpdump takes ARP between other than Ethernet addresses for what it is not.
    StrangeArp,
    /// tcpdump looks at its places in a malformed packet.
    Malformed,
    /// To tcpdump, `vlan` shifts all that is written behind it, and nothing before; where it is written first, it agrees.
    VlanElsewhere,
}

const ALL: [Why; 5] = [
    Why::Extensions,
    Why::FirstPiece,
    Why::StrangeArp,
    Why::Malformed,
    Why::VlanElsewhere,
];

/// What tcpdump makes of a filter: a program, or an error.
fn compile(filter: &str) -> Result<Program, String> {
    let output = Command::new("tcpdump").args(["-ddd", filter]).output();
    let output = output.map_err(|error| error.to_string())?;
    let [printed, told] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Program::parse(&printed).ok_or(told)
}

fn is_there() -> bool {
    let is_there = compile("ip").is_ok();
    if !is_there {
        let required = std::env::var("LAXITY_REQUIRE_LIVE").is_ok_and(|value| value == "1");
        assert!(!required, "LAXITY_REQUIRE_LIVE=1, and there is no tcpdump");
        eprintln!("skipped: there is no tcpdump");
    }
    is_there
}

/// Why they differ, if what makes the difference explains it: without it they agree.
fn why(ours: bool, program: &Program, packet: &Packet, is_malformed: bool) -> Option<Why> {
    if is_malformed {
        return Some(Why::Malformed);
    }
    let agrees = |network: Network| {
        let other = Packet {
            network,
            ..packet.clone()
        };
        program.takes(&other.bytes()) == ours
    };
    match &packet.network {
        Network::Arp {
            is_usual: false, ..
        } => Some(Why::StrangeArp),
        Network::Old {
            options,
            piece: Some((0, true)),
        } => {
            let (options, piece) = (*options, Some((3, false)));
            agrees(Network::Old { options, piece }).then_some(Why::FirstPiece)
        }
        Network::New { piece, behind, .. } => {
            let (before, behind) = (
                Vec::new(),
                if packet.is_piece() {
                    behind.clone()
                } else {
                    Vec::new()
                },
            );
            let piece = piece.filter(|_| packet.is_piece());
            agrees(Network::New {
                before,
                piece,
                behind,
            })
            .then_some(Why::Extensions)
        }
        _ => None,
    }
}

/// A filter with `vlan` where tcpdump means the same by it, and one with `vlan` elsewhere, which means to us what the first means.
fn draw_filter(draw: &mut Draw) -> (Ask, Ask) {
    let operators = draw.below(4);
    let ask = Ask::draw(draw, operators);
    if draw.percent(70) {
        return (ask.clone(), ask);
    }
    let vlan = Ask::draw_vlan(draw);
    let first = Ask::And(vlan.clone().into(), ask.clone().into());
    let last = Ask::And(ask.into(), vlan.into());
    (first.clone(), if draw.percent(50) { last } else { first })
}

/// What can match nothing for us matches nothing for tcpdump: it says so, or has a program that takes none of these, but for what is listed.
fn matches_nothing(ask: &Ask, packets: &[(Vec<u8>, Packet)]) {
    let Ok(program) = compile(&ask.to_string()) else {
        return;
    };
    let sound = packets
        .iter()
        .filter(|(bytes, packet)| *bytes == packet.bytes());
    let taken = sound.filter(|(bytes, _)| program.takes(bytes));
    let strange = taken
        .map(|(_, packet)| packet)
        .find(|packet| why(false, &program, packet, false).is_none());
    assert!(
        strange.is_none(),
        "`{ask}` matches nothing here, but {strange:?}"
    );
}

#[test]
fn filters_match_what_tcpdump_matches_but_for_what_is_listed() {
    if !is_there() {
        return;
    }
    let draw = &mut Draw::new(1996);
    let packets: Vec<_> = (0..PACKETS)
        .map(|_| {
            let packet = Packet::draw(draw);
            (spoiled(draw, &packet), packet)
        })
        .collect();
    let parsed: Vec<_> = packets
        .iter()
        .map(|(bytes, _)| parse(bytes, None))
        .collect();
    let (mut filters, mut matched, mut found) = (0, 0, BTreeMap::new());
    while filters < FILTERS {
        let (first, ask) = draw_filter(draw);
        let Ok(filter) = Filter::parse(&ask.to_string(), None) else {
            matches_nothing(&first, &packets);
            continue;
        };
        filters += 1;
        let [straight, program] = [&first, &ask].map(|ask| compile(&ask.to_string()));
        let straight = straight.unwrap_or_else(|told| panic!("`{first}`: {told}"));
        // tcpdump refuses what it knows to match nothing.
        let nothing = |told: String| {
            assert!(told.contains("rejects all packets"), "`{ask}`: {told}");
            Program::parse("1\n6 0 0 0").expect("a program")
        };
        let program = program.unwrap_or_else(nothing);
        for ((bytes, packet), parsed) in packets.iter().zip(&parsed) {
            let ours = filter.matches(&parsed.key);
            matched += usize::from(ours);
            if straight.takes(bytes) != ours {
                let why = why(ours, &straight, packet, parsed.malformed.is_some());
                let why = why.unwrap_or_else(|| panic!("`{first}`: ours {ours}, {packet:?}"));
                *found.entry(why).or_insert(0) += 1;
            } else if program.takes(bytes) != ours {
                *found.entry(Why::VlanElsewhere).or_insert(0) += 1;
            }
        }
    }
    eprintln!(
        "{matched} of {} match; differences: {found:?}",
        FILTERS * PACKETS
    );
    assert!(
        matched > FILTERS * PACKETS / 50,
        "too few match to tell: {matched}"
    );
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ALL);
}

/// What tcpdump knows of 802.3 frames by their EtherType's number, and of extension headers as protocols: ours does not, or refuses.
#[test]
fn what_tcpdump_finds_by_other_rules_than_ours() {
    if !is_there() {
        return;
    }
    let mut snap = Packet::draw(&mut Draw::new(3));
    snap.tags.clear();
    snap.network = Network::Length;
    snap.payload = vec![0; 40];
    let mut bytes = snap.bytes();
    // AppleTalk behind SNAP.
    bytes[14..22].copy_from_slice(&[0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b]);
    let text = "ether proto 0x809b";
    assert!(compile(text).expect("a filter").takes(&bytes));
    assert!(
        !Filter::parse(text, None)
            .expect("a filter")
            .matches(&parse(&bytes, None).key)
    );
    let pieces = "ip6 proto 44";
    assert!(compile(pieces).is_ok() && Filter::parse(pieces, None).is_err());
    // To tcpdump, what is behind a tag is behind it in every alternative that follows.
    let tagged = Packet {
        tags: vec![(0x8100, 6)],
        ..snap
    }
    .bytes();
    let either = "vlan 5 or vlan 6";
    assert!(!compile(either).expect("a filter").takes(&tagged));
    assert!(
        Filter::parse(either, None)
            .expect("a filter")
            .matches(&parse(&tagged, None).key)
    );
}
