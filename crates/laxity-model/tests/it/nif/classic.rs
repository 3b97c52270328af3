//! Programs of filters for the kernel against the filters themselves, on packets that are sound, cut, lying, and of random bytes.

use laxity_model::nif::filter::Filter;
use laxity_model::nif::filter::classic::MOST_INSTRUCTIONS;
use laxity_model::nif::frame::{Behind, Tail, parse};

use super::ask::Ask;
use super::bpf::Program;
use super::packets::{Draw, Packet, spoiled};

const FILTERS: usize = 300;
const PACKETS: usize = 1_500;

/// A packet that may be cut anywhere, and lie anywhere.
fn draw_bytes(draw: &mut Draw) -> Vec<u8> {
    let packet = Packet::draw(draw);
    let mut bytes = spoiled(draw, &packet);
    match draw.below(10) {
        0 => bytes.truncate(draw.below(bytes.len() + 1)),
        1..=3 if bytes.len() > 12 => {
            for _ in 0..=draw.below(3) {
                let at = 12 + draw.below((bytes.len() - 12).min(70));
                let low = draw.below(48) as u8;
                bytes[at] = draw.of(&[0, 1, 8, 0x45, 0x46, 0x60, 0x81, 0xff, low]);
            }
        }
        _ => {}
    }
    bytes
}

fn draw_tail(draw: &mut Draw) -> Option<Tail> {
    let behind = draw.of(&[Behind::EtherType, Behind::Udp]);
    let (offset, length) = (draw.below(6) as u16, 1 + draw.below(8) as u8);
    Tail::new(behind, offset, length).filter(|_| draw.percent(60))
}

/// A filter, and the tail of its driver's keys.
fn draw_filter(draw: &mut Draw) -> (Filter, Option<Tail>) {
    loop {
        let tail = draw_tail(draw);
        let operators = draw.below(4);
        let mut text = Ask::draw(draw, operators).to_string();
        if draw.percent(30) {
            text = format!("({text}) and {}", Ask::draw_vlan(draw));
        }
        if let Some(tail) = tail {
            let bits = tail.bits().min(1 + draw.below(3) as u32);
            let value = draw.below(1 << bits) << (tail.bits() - bits).min(40);
            let operator = draw.of(&["and", "or"]);
            text = format!("({text}) {operator} tail {value}/{bits}");
        }
        if let Ok(filter) = Filter::parse(&text, tail) {
            return (filter, tail);
        }
    }
}

/// The tag that the kernel takes out of a packet, and the packet without.
fn untagged(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let tag = bytes.get(12..16)?;
    let is_taken = matches!(tag[..2], [0x81, 0] | [0x88, 0xa8]);
    let rest = [&bytes[..12], &bytes[16..]].concat();
    is_taken.then(|| (u16::from_be_bytes([tag[2], tag[3]]), rest))
}

#[test]
fn the_kernel_would_take_what_a_filter_matches_and_nothing_else() {
    let draw = &mut Draw::new(1993);
    let packets: Vec<_> = (0..PACKETS).map(|_| draw_bytes(draw)).collect();
    let (mut matched, mut malformed, mut longest) = (0, 0, 0);
    for _ in 0..FILTERS {
        let (filter, tail) = draw_filter(draw);
        let program = filter.classic(tail).expect("it is short");
        longest = longest.max(program.len());
        let program = Program::from(program);
        for bytes in &packets {
            let parsed = parse(bytes, tail);
            let ours = filter.matches(&parsed.key);
            let key = parsed.key;
            assert_eq!(
                program.takes(bytes),
                ours,
                "`{filter}`, {tail:?}: {bytes:x?}, {key:?}"
            );
            if let Some((tag, rest)) = untagged(bytes).filter(|(_, rest)| rest.len() >= 14) {
                let takes = program.takes_untagged(&rest, Some(tag));
                assert_eq!(takes, ours, "`{filter}` without its tag: {bytes:x?}");
            }
            matched += usize::from(ours);
            malformed += usize::from(ours && parsed.malformed.is_some());
        }
    }
    assert!(
        matched > FILTERS * PACKETS / 50 && malformed > 100,
        "{matched}, {malformed}"
    );
    assert!(longest < MOST_INSTRUCTIONS);
}

#[test]
fn the_flow_of_a_packet_is_taken_and_no_other() {
    let draw = &mut Draw::new(7);
    let packets: Vec<_> = (0..300).map(|_| Packet::draw_flow(draw).bytes()).collect();
    let keys: Vec<_> = packets.iter().map(|bytes| parse(bytes, None).key).collect();
    for key in &keys {
        let flow = Filter::flow(key).expect("it has ports");
        let program = Program::from(flow.classic(None).expect("it is short"));
        for (bytes, other) in packets.iter().zip(&keys) {
            assert_eq!(program.takes(bytes), key == other);
        }
    }
}

#[test]
fn every_packet_is_taken_by_the_filter_of_every_packet_however_short_it_is() {
    let program = Filter::parse("", None).expect("every packet").classic(None);
    let program = Program::from(program.expect("it is short"));
    for length in 0..64 {
        assert!(program.takes(&vec![0x81; length]));
    }
}

#[test]
fn a_filter_of_more_conditions_than_the_kernel_takes_is_refused_with_its_length() {
    let hosts = |side: &str| {
        let all = (0..15).map(|host| format!("{side} host fd00::{host:x}"));
        all.collect::<Vec<_>>().join(" or ")
    };
    let text = format!("({}) and ({})", hosts("src"), hosts("dst"));
    let filter = Filter::parse(&text, None).expect("it is short enough");
    let refused = filter
        .classic(None)
        .expect_err("it has too many conditions");
    assert!(refused.instructions > MOST_INSTRUCTIONS, "{refused}");
}
