//! Filters against the same questions asked of a packet's parts; what is refused, and where.

use laxity_model::nif::filter::{Filter, LONGEST, MOST};
use laxity_model::nif::frame::{Behind, Tail, parse};
use proptest::prelude::*;

use super::ask::Ask;
use super::packets::{Draw, Packet};

/// A filter of any shape, with `vlan` in any place.
pub(super) fn draw_any(draw: &mut Draw) -> Ask {
    let operators = draw.below(4);
    let ask = Ask::draw(draw, operators);
    let vlan = Ask::draw_vlan(draw);
    let [one, other] = if draw.percent(60) {
        [vlan, ask.clone()]
    } else {
        [ask.clone(), vlan]
    };
    match draw.below(5) {
        0 => Ask::And(one.into(), other.into()),
        1 => Ask::Or(one.into(), other.into()),
        2 => Ask::And(
            Ask::draw_vlan(draw).into(),
            Ask::And(one.into(), other.into()).into(),
        ),
        _ => ask,
    }
}

proptest! {
    #[test]
    fn a_filter_matches_the_packets_that_it_means(seed: u64) {
        let draw = &mut Draw::new(seed);
        let ask = draw_any(draw);
        let packets: Vec<_> = (0..200).map(|_| Packet::draw(draw)).collect();
        match Filter::parse(&ask.to_string(), None) {
            Ok(filter) => {
                for packet in packets {
                    let key = parse(&packet.bytes(), None).key;
                    prop_assert_eq!(filter.matches(&key), ask.is_met(&packet), "{} {:?}", ask, packet);
                }
            }
            Err(error) => {
                prop_assert!(error.why.contains("no packet is both") || error.why.contains("alternatives") || error.why.contains("other version"), "{} {}", ask, error);
                if !error.why.contains("alternatives") {
                    let met = packets.iter().find(|packet| ask.is_met(packet));
                    prop_assert!(met.is_none(), "{} {:?}", ask, met);
                }
            }
        }
    }

    #[test]
    fn a_flows_filter_is_the_one_that_is_read_from_its_text(seed: u64) {
        let draw = &mut Draw::new(seed);
        let packet = Packet::draw_flow(draw);
        let key = parse(&packet.bytes(), None).key;
        let flow = Filter::flow(&key).expect("it has ports");
        prop_assert_eq!(&Filter::parse(&flow.to_string(), None), &Ok(flow.clone()));
        prop_assert!(flow.matches(&key));
        let other = Packet::draw_flow(draw);
        let ids = |packet: &Packet| packet.tags.iter().map(|(_, id)| id & 0xfff).collect::<Vec<_>>();
        let says = |packet: &Packet| (ids(packet), packet.addresses(), packet.protocol(), packet.ports());
        prop_assert_eq!(flow.matches(&parse(&other.bytes(), None).key), says(&packet) == says(&other));
    }

    #[test]
    fn no_text_panics(text in "[ -~]{0,60}|((and|or|src|dst|host|net|port|vlan|ip6?|tcp|udp|tail|proto|ether|not|[0-9]{1,5}|10\\.0\\.0\\.0/8|fd00::1|\\(|\\)|&&) ?){0,12}") {
        let tail = Tail::new(Behind::Udp, 0, 8);
        if let Err(error) = Filter::parse(&text, tail) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{} {}", text, error);
        }
    }
}

fn count(text: &str) -> usize {
    let tail = Tail::new(Behind::Udp, 0, 4);
    let filter = Filter::parse(text, tail).unwrap_or_else(|error| panic!("{text}: {error}"));
    filter.alternatives().len()
}

#[test]
fn a_filter_is_as_many_conditions_as_it_has_to_be() {
    let all = [
        ("", 1),
        ("ip", 1),
        ("udp", 2),
        ("port 53", 12),
        ("udp port 53", 4),
        ("ip and udp port 53", 2),
        ("ip and udp dst port 53", 1),
        ("src and dst port 53", 6),
        ("host 10.0.0.1", 6),
        ("ip src host 10.0.0.1", 1),
        ("net fd00::/8", 2),
        ("tail 7", 2),
        ("ip and udp and tail 7", 1),
        // What is contradictory, or said already, goes.
        ("(ip and arp) or udp", 2),
        ("udp or ip proto 17", 2),
        ("port 53 and port 53", 12),
        ("ip or ip host 10.0.0.1", 1),
        (
            "src host 10.0.0.1 and dst host 10.0.0.2 and udp src port 1 and udp dst port 2",
            1,
        ),
    ];
    assert_eq!(
        all.map(|(text, _)| count(text)),
        all.map(|(_, count)| count)
    );
}

#[test]
fn what_comes_to_an_end_is_one_alternative() {
    for (own, far) in [
        ("10.0.0.2:2000", None),
        ("10.0.0.2:2000", Some("10.0.0.1:1000")),
        ("[fd00::2]:2000", Some("[fd00::1]:1000")),
    ] {
        for is_tcp in [false, true] {
            let far = far.map(|far| far.parse().unwrap());
            let filter = Filter::to(is_tcp, own.parse().unwrap(), far).unwrap();
            assert_eq!(filter.alternatives().len(), 1, "{filter}");
        }
    }
}

#[test]
fn and_and_or_group_from_the_left() {
    let [left, right] =
        ["arp or ip and udp", "arp or (ip and udp)"].map(|text| Filter::parse(text, None).unwrap());
    assert_eq!(left.alternatives().len(), 1);
    assert_eq!(right.alternatives().len(), 2);
}

/// A text, the column of what is wrong in it, and what is said of that.
const WRONG: &[(&str, usize, &str)] = &[
    ("udp and not port 53", 9, "there is no `not`"),
    ("!udp", 1, "there is no `not`"),
    ("udp & port 53", 5, "`&` is written twice"),
    (
        "udp port",
        9,
        "a number from 0 to 65535 is missing at the end",
    ),
    (
        "udp port 65536",
        10,
        "`65536` stands where a number from 0 to 65535 belongs",
    ),
    ("port 080", 6, "a number from 0 to 65535"),
    ("port 80 or 443", 12, "`443` stands where one of ether"),
    ("port 53 or 80", 12, "own words: `port 80 or port 443`"),
    ("tcp udp", 5, "every condition begins with its own words"),
    ("(udp", 5, "`and`, `or` or `)` is missing at the end"),
    ("udp)", 4, "no parenthesis is open"),
    ("ip host fd00::1", 9, "of the other version"),
    ("ip6 net 10.0.0.0/8", 9, "of the other version"),
    ("host 10.0.0.0/8", 6, "an IPv4 or IPv6 address"),
    ("net 10.0.0.0", 5, "a prefix, such as"),
    (
        "net 10.0.0.1/8",
        5,
        "all bits behind the first 8 must be zero",
    ),
    ("net 10.0.0.0/33", 14, "a number from 0 to 32"),
    ("net fd00::/129", 12, "a number from 0 to 128"),
    ("src 10.0.0.1", 5, "`host` or `net`"),
    ("src or dst", 11, "`host` or `net`"),
    ("tcp src host 10.0.0.1", 9, "`port`"),
    ("ip proto 256", 10, "a number from 0 to 255"),
    ("ip6 proto 44", 11, "44 is an extension header"),
    (
        "ether host 02:00:00:00:00:01",
        7,
        "hardware addresses are not looked at",
    ),
    ("ether proto 1500", 13, "a number from 1536 to 65535"),
    ("ether proto 0x8100", 13, "write `vlan`"),
    ("vlan 4096", 6, "a number from 0 to 4095"),
    ("vlan 1 and vlan 2 and vlan 3", 19, "no packet is both"),
    ("ip and arp", 4, "no packet is both"),
    (
        "src port 1 and (src port 2 and udp)",
        12,
        "no packet is both",
    ),
    ("tail 1", 1, "have no tail"),
    ("grün", 1, "`grün` stands where one of ether"),
    ("udp and \u{1b}", 9, "`\\u{1b}` stands where"),
];

#[test]
fn what_is_wrong_is_told_with_its_column_and_what_would_be_right() {
    for (text, column, why) in WRONG {
        let error = Filter::parse(text, None).expect_err(text);
        assert_eq!(error.column, *column, "{text}: {error}");
        assert!(error.why.contains(why), "{text}: {error}");
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let deep = Filter::parse(&"(".repeat(40), None).unwrap_err();
    assert_eq!(deep.column, 33);
    assert!(deep.why.contains("at most 32"), "{deep}");
    let hosts = |count: u8| {
        (1..=count)
            .map(|n| format!("host 10.0.0.{n}"))
            .collect::<Vec<_>>()
            .join(" or ")
    };
    assert!(
        Filter::parse(&hosts(42), None).is_ok(),
        "{} are at most {MOST}",
        42 * 6
    );
    assert!(
        Filter::parse(&hosts(43), None)
            .unwrap_err()
            .why
            .contains("more than 256 alternatives")
    );
    let long = "udp ".repeat(LONGEST / 4) + "and";
    assert_eq!(Filter::parse(&long, None).unwrap_err().column, 1);
}

#[test]
fn a_tail_is_a_number_or_how_it_begins() {
    let tail = Tail::new(Behind::Udp, 1, 3);
    let [exact, begins, all] = ["tail 0x010203", "tail 0x010000/16", "tail 0x800000/1"]
        .map(|text| Filter::parse(text, tail).unwrap());
    let mut packet = Packet::draw_flow(&mut Draw::new(7));
    packet.protocol = laxity_model::nif::frame::UDP;
    let mut matches = |payload: [u8; 4]| {
        packet.payload = payload.to_vec();
        let key = parse(&packet.bytes(), tail).key;
        [&exact, &begins, &all].map(|filter| filter.matches(&key))
    };
    assert_eq!(matches([9, 1, 2, 3]), [true, false, false]);
    assert_eq!(matches([9, 1, 0, 3]), [false, true, false]);
    assert_eq!(matches([9, 0x81, 0, 3]), [false, false, true]);
    for (text, column) in [
        ("tail 0x1000000", 6),
        ("tail 0x010203/16", 6),
        ("tail 1/25", 8),
        ("tail 0/0", 8),
        ("tail 1/", 8),
    ] {
        assert_eq!(
            Filter::parse(text, tail).expect_err(text).column,
            column,
            "{text}"
        );
    }
}
