//! The table against a search through all conditions, with the definition of "more specific" written out.

use laxity_model::nif::filter::{Condition, Filter};
use laxity_model::nif::frame::{Behind, Tail, parse};
use laxity_model::nif::table::{Registration, Table};
use proptest::prelude::*;

use super::ask::Ask;
use super::packets::{Draw, Network, Packet};

/// All filters, one behind the other.
#[derive(Default)]
struct Oracle(Vec<(Filter, u32)>);

fn has_all(mask: &Condition, other: &Condition) -> bool {
    let words = mask.mask().as_array().iter().zip(other.mask().as_array());
    words
        .into_iter()
        .all(|(mask, other)| mask & other == *other)
}

fn is_more_specific(one: &Condition, other: &Condition) -> bool {
    let values = one.value().as_array().iter().zip(other.value().as_array());
    let mut agree = values.zip(other.mask().as_array());
    one.mask() != other.mask()
        && has_all(one, other)
        && agree.all(|((one, other), mask)| one & mask == *other)
}

fn may_meet_both(one: &Condition, other: &Condition) -> bool {
    let bits = |condition: &Condition| {
        let masks = condition.mask().as_array().to_vec();
        let values = condition.value().as_array().to_vec();
        let all = (0..masks.len() * 64).map(move |bit| {
            let looks = masks[bit / 64] >> (bit % 64) & 1 == 1;
            looks.then(|| values[bit / 64] >> (bit % 64) & 1)
        });
        all.collect::<Vec<_>>()
    };
    let pairs = bits(one).into_iter().zip(bits(other));
    pairs
        .into_iter()
        .all(|pair| !matches!(pair, (Some(one), Some(other)) if one != other))
}

fn has(filter: &Filter, condition: &Condition) -> bool {
    filter.alternatives().contains(condition)
}

fn is_within(one: &Filter, other: &Filter) -> bool {
    let within = |one| {
        let others = other.alternatives().iter();
        others
            .into_iter()
            .any(|other| one == other || is_more_specific(one, other))
    };
    one.alternatives().iter().all(within)
}

/// A filter, by one of its conditions, beside another one by one of its own.
type By<'f> = (&'f Filter, &'f Condition);

fn goes_before((filter, one): By<'_>, (other_filter, other): By<'_>) -> bool {
    let is_narrower = is_within(filter, other_filter) && !is_within(other_filter, filter);
    let is_nested = is_more_specific(other, one);
    let bits = |condition: &Condition| {
        let words = condition.mask().as_array().iter();
        words.map(|word| word.count_ones()).sum::<u32>()
    };
    let is_found = has(filter, other) || bits(one) > bits(other);
    is_more_specific(one, other) || (is_narrower && !is_nested && is_found)
}

impl Oracle {
    /// The first that overlaps it ambiguously.
    fn rival(&self, asked: &Filter) -> Option<&(Filter, u32)> {
        self.0.iter().find(|(held, _)| {
            asked.alternatives().iter().any(|one| {
                held.alternatives().iter().any(|other| {
                    let (one, other) = ((asked, one), (held, other));
                    may_meet_both(one.1, other.1)
                        && !goes_before(one, other)
                        && !goes_before(other, one)
                })
            })
        })
    }

    /// Whoever has a condition that the packet meets and nobody's goes before.
    fn find(&self, packet: &Packet) -> Option<u32> {
        let key = parse(&packet.bytes(), None).key;
        let all = self.0.iter().flat_map(|(filter, owner)| {
            let conditions = filter.alternatives().iter();
            conditions.map(move |condition| ((filter, condition), *owner))
        });
        let met: Vec<_> = all
            .filter(|((_, condition), _)| condition.matches(&key))
            .collect();
        let best = |one: &&(By<'_>, u32)| !met.iter().any(|other| goes_before(other.0, one.0));
        let mut owners: Vec<u32> = met.iter().filter(best).map(|(_, owner)| *owner).collect();
        owners.dedup();
        assert!(owners.len() < 2, "{owners:?} have the same packet");
        owners.pop()
    }
}

/// A filter that leaves others room, and now and then one that does not.
fn filter(draw: &mut Draw, packets: &[Packet]) -> Option<Filter> {
    if draw.percent(40) {
        let packet = &packets[draw.below(packets.len())];
        return Filter::flow(&parse(&packet.bytes(), None).key);
    }
    let operators = draw.of(&[0, 0, 1, 1, 2]);
    let ask = Ask::draw(draw, operators);
    // Narrower or wider by alternatives alone, now and then.
    let ask = match draw.below(8) {
        0 => Ask::And(Ask::Type("ip").into(), ask.into()),
        1 => Ask::Or(Ask::Type("ip6").into(), ask.into()),
        _ => ask,
    };
    let ask = if draw.percent(30) {
        Ask::And(Ask::draw_vlan(draw).into(), ask.into())
    } else {
        ask
    };
    Filter::parse(&ask.to_string(), None).ok()
}

proptest! {
    #[test]
    fn the_most_specific_wins_and_what_is_ambiguous_is_refused(seed: u64) {
        let draw = &mut Draw::new(seed);
        let packets: Vec<_> = (0..60).map(|_| Packet::draw(draw)).collect();
        let mut table = Table::new(seed);
        let mut oracle = Oracle::default();
        let mut held: Vec<Registration> = Vec::new();
        for owner in 0..60 {
            if !held.is_empty() && draw.percent(25) {
                let place = draw.below(held.len());
                let removed = table.remove(held.swap_remove(place)).expect("it is there");
                let (filter, owner) = oracle.0.swap_remove(place);
                prop_assert_eq!(removed, (filter, owner));
            }
            let Some(filter) = filter(draw, &packets) else { continue };
            match table.insert(filter.clone(), owner) {
                Ok(registration) => {
                    let rival = oracle.rival(&filter);
                    prop_assert!(rival.is_none(), "{} was taken beside {:?}", filter, rival);
                    held.push(registration);
                    oracle.0.push((filter, owner));
                }
                Err(overlap) => {
                    prop_assert!(oracle.rival(&filter).is_some(), "{}", overlap);
                    prop_assert_eq!(&overlap.asked, &filter);
                    let named = Oracle(vec![(overlap.held, overlap.owner)]);
                    prop_assert!(oracle.0.contains(&named.0[0]) && named.rival(&filter).is_some());
                }
            }
            prop_assert_eq!(table.len(), oracle.0.len());
            let masks = oracle.0.iter().flat_map(|(filter, _)| filter.alternatives()).map(|c| *c.mask());
            prop_assert_eq!(table.masks(), masks.collect::<std::collections::BTreeSet<_>>().len());
            for packet in &packets[..10] {
                let key = parse(&packet.bytes(), None).key;
                prop_assert_eq!(table.find(&key), oracle.find(packet), "{:?}", packet);
            }
        }
        for packet in &packets {
            let key = parse(&packet.bytes(), None).key;
            prop_assert_eq!(table.find(&key), oracle.find(packet), "{:?}", packet);
        }
    }
}

fn taken(filters: &[&str]) -> Result<Table<usize>, String> {
    let tail = Tail::new(Behind::Udp, 0, 4);
    let mut table = Table::new(1);
    for (owner, text) in filters.iter().enumerate() {
        let filter = Filter::parse(text, tail).expect(text);
        let _kept = table
            .insert(filter, owner)
            .map_err(|overlap| overlap.to_string())?;
    }
    Ok(table)
}

#[test]
fn what_is_the_same_of_source_and_destination_is_looked_for_once() {
    let mut table = Table::new(1);
    for text in ["net ::/0", "net 0.0.0.0/0", "net 10.0.0.0/8"] {
        let filter = Filter::parse(text, None).expect(text);
        let all = filter.alternatives();
        assert!(
            (1..all.len()).all(|at| !all[..at].contains(&all[at])),
            "{text}"
        );
        let taken = table.insert(filter, 1).expect("it is alone");
        assert!(table.remove(taken).is_some() && table.is_empty(), "{text}");
    }
}

#[test]
fn filters_that_nest_or_have_nothing_in_common_live_together() {
    let all = [
        "",
        "ip",
        "udp",
        "udp dst port 53",
        "ip and udp dst port 53",
        "arp",
        "vlan",
        "vlan 5",
        "vlan 5 and udp",
        "tcp",
        "net 10.0.0.0/8 and tcp",
        "net 10.0.0.0/16 and tcp",
        "host 10.0.0.1 and tcp",
        "udp dst port 53 and tail 7",
        "udp dst port 53 and tail 0x100/24",
    ];
    assert_eq!(taken(&all).map(|table| table.len()), Ok(all.len()));
}

#[test]
fn filters_of_which_neither_is_more_specific_are_refused_naming_both() {
    for (held, asked) in [
        ("udp", "udp"),
        ("port 53", "src port 53"),
        ("port 53", "port 54"),
        ("src port 53", "dst port 53"),
        ("src port 53", "port 53"),
        ("ip or arp", "ip or ip6"),
        ("net 10.0.0.0/8 and ip", "udp"),
        ("udp dst port 53", "tail 7"),
    ] {
        let told = taken(&[held, asked]).expect_err("ambiguous");
        assert!(told.contains(&format!("`{asked}` and `{held}`")), "{told}");
    }
}

#[test]
fn of_filters_with_one_and_the_same_condition_the_narrower_has_it() {
    let all = [
        "ip or ip6 or arp",
        "ip",
        "ip or arp",
        "port 53",
        "ip and port 53",
    ];
    let mut table = taken(&all).expect("nested");
    let both = Packet {
        ports: (53, 53),
        ..Packet::draw_flow(&mut Draw::new(5))
    };
    let old = Packet {
        tags: Vec::new(),
        network: Network::Old {
            options: 0,
            piece: None,
        },
        ends: ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()),
        protocol: 99,
        ..both.clone()
    };
    let key = |packet: &Packet| parse(&packet.bytes(), None).key;
    let query = Packet {
        protocol: 6,
        ..old.clone()
    };
    assert_eq!(table.find(&key(&query)), Some(4));
    assert_eq!(table.find(&key(&old)), Some(1));
    let only = Filter::parse("ip", None).unwrap();
    assert_eq!(table.insert(only, 9).expect_err("the same").owner, 1);
    let narrow = Filter::parse("ip and vlan", None).unwrap();
    let _kept = table.insert(narrow, 9).expect("another one");
    assert_eq!(table.find(&key(&old)), Some(1));
}

#[test]
fn ten_thousand_flows_and_who_overlaps_one_of_them() {
    let mut table = Table::new(3);
    let flow = |n: usize, rest: &str| {
        let text = format!(
            "ip src host 10.1.{}.{} and udp src port 9 and {rest}",
            n / 256,
            n % 256
        );
        Filter::parse(&text, None).expect("a filter")
    };
    let mut kept: Vec<_> = (0..10_000)
        .map(|n| table.insert(flow(n, "udp dst port 1"), n).expect("taken"))
        .collect();
    // Neither mask has all bits of the other.
    for n in 10_000..20_000 {
        kept.push(
            table
                .insert(flow(n, "dst host 10.0.0.1"), n)
                .expect("taken"),
        );
    }
    assert_eq!((table.len(), table.masks()), (20_000, 2));
    let overlap = table
        .insert(flow(4_321, "dst host 10.0.0.1"), 0)
        .expect_err("ambiguous");
    assert_eq!(overlap.owner, 4_321);
    let _ = table.remove(kept.swap_remove(4_321));
    assert!(table.insert(flow(4_321, "dst host 10.0.0.1"), 0).is_ok());
    for registration in kept {
        assert!(table.remove(registration).is_some());
    }
    assert_eq!((table.len(), table.masks()), (1, 1));
}
