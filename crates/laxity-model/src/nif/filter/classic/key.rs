//! From a packet to its key, in the cells of the program: [`frame`](crate::nif::frame) once more, instruction by instruction.
//!
//! Wherever the packet is malformed, the program goes on with the key as far as it is sound.

use super::assemble::{Assembler, Cell, Is, Place, Width};
use crate::nif::frame::{
    ARP, AUTHENTICATION, Behind, EXTENSIONS, FIRST_ETHER_TYPE, FRAGMENT, Field, IPV4, IPV6,
    LOOKED_THROUGH, RARP, SCTP, TAGS, TCP, Tail, UDP,
};

/// The halves of the key's words, as they lie in [`Words`](crate::nif::frame::Words).
const KINDS_UPPER: Cell = Cell(0);
const KINDS: Cell = Cell(1);
const PORTS: Cell = Cell(3);
const SOURCE: Cell = Cell(4);
const DESTINATION: Cell = Cell(8);
const TAIL_UPPER: Cell = Cell(12);
const TAIL: Cell = Cell(13);
/// No port is in the upper half of its word: before the transport header it has the place of the network header, and then the protocol.
const FREE: Cell = Cell(2);
/// Where the packet ends by what its network header says.
const END: Cell = Cell(14);
/// For the moment.
const KEPT: Cell = Cell(15);

/// What the kernel knows of a packet besides its bytes (`SKF_AD_OFF`): whether it has taken a tag out of it, and that tag.
const HAS_TAG: u32 = 0xffff_f000 + 48;
const TAG: u32 = 0xffff_f000 + 44;

/// Makes the key. What comes behind is run whatever the packet is.
pub(super) fn make(program: &mut Assembler, tail: Option<Tail>) {
    let made = program.place();
    program.number(0);
    (0..14).for_each(|cell| program.store(Cell(cell)));
    program.length();
    program.jump_unless(Is::AtLeast(14), made);
    ether_type(program, made);
    if let Some(tail) = tail.filter(|tail| tail.behind() == Behind::EtherType) {
        let cut = program.place();
        program.length();
        put_tail(program, tail, 0, cut);
        program.put(cut);
    }
    let (arp, old, new, transport) = (
        program.place(),
        program.place(),
        program.place(),
        program.place(),
    );
    program.load(KINDS);
    program.mask(0xffff);
    for (kind, place) in [(IPV4, old), (IPV6, new), (ARP, arp), (RARP, arp)] {
        program.jump_if(Is::Equal(kind.into()), place);
    }
    program.jump(made);
    program.put(arp);
    of_arp(program, made);
    program.put(old);
    of_ipv4(program, made);
    program.jump(transport);
    program.put(new);
    of_ipv6(program, made);
    program.put(transport);
    of_transport(program, tail, made);
    program.put(made);
}

/// A field's bits, and in which cell they are.
const fn bits(field: Field, value: u64) -> (Cell, u32) {
    let word = field.mask().as_array()[0];
    let bits = (value << word.trailing_zeros()) & word;
    if bits >> 32 == 0 {
        (KINDS, bits as u32)
    } else {
        (KINDS_UPPER, (bits >> 32) as u32)
    }
}

fn set(program: &mut Assembler, field: Field) {
    let (cell, bits) = bits(field, 1);
    program.load(cell);
    program.with(bits);
    program.store(cell);
}

/// Tags and the EtherType behind them; `x` is where that ends.
fn ether_type(program: &mut Assembler, made: Place) {
    let (untagged, inner, last) = (program.place(), program.place(), program.place());
    program.number_x(14);
    program.at(Width::One, HAS_TAG);
    program.jump_if(Is::Equal(0), untagged);
    program.at(Width::Two, TAG);
    put_outer(program);
    program.at(Width::Two, 12);
    program.jump(inner);
    program.put(untagged);
    program.at(Width::Two, 12);
    unless_tag(program, last);
    tag_is_there(program, made);
    program.behind_x(Width::Two, 0);
    put_outer(program);
    behind_tag(program);
    program.put(inner);
    unless_tag(program, last);
    tag_is_there(program, made);
    program.behind_x(Width::Two, 0);
    put_inner(program);
    behind_tag(program);
    for tag in TAGS {
        program.jump_if(Is::Equal(tag.into()), made);
    }
    program.put(last);
    program.jump_unless(Is::AtLeast(FIRST_ETHER_TYPE.into()), made);
    program.store_x(KEPT);
    program.add_bits_to(KINDS);
    program.load_x(KEPT);
}

/// Goes on there unless the accumulator is a tag's EtherType.
fn unless_tag(program: &mut Assembler, otherwise: Place) {
    let is_tag = program.place();
    for tag in TAGS {
        program.jump_if(Is::Equal(tag.into()), is_tag);
    }
    program.jump(otherwise);
    program.put(is_tag);
}

fn tag_is_there(program: &mut Assembler, made: Place) {
    program.length();
    program.subtract_x();
    program.jump_unless(Is::AtLeast(4), made);
}

/// The EtherType behind a tag, and `x` behind that.
fn behind_tag(program: &mut Assembler) {
    program.behind_x(Width::Two, 2);
    program.store(KEPT);
    program.copy_x();
    program.add(4);
    program.set_x();
    program.load(KEPT);
}

/// The accumulator is the outer tag.
fn put_outer(program: &mut Assembler) {
    let (_, has) = bits(Field::HAS_OUTER, 1);
    program.mask(0xfff);
    program.shift_left(Field::OUTER.mask().as_array()[0].trailing_zeros());
    program.with(has);
    program.store_x(KEPT);
    program.add_bits_to(KINDS);
    program.load_x(KEPT);
}

/// The same of the inner one, whose id lies in both halves of its word.
fn put_inner(program: &mut Assembler) {
    let at = Field::INNER.mask().as_array()[0].trailing_zeros();
    let (_, has) = bits(Field::HAS_INNER, 1);
    program.mask(0xfff);
    program.store_x(KEPT);
    program.store(FREE);
    program.shift_left(at);
    program.add_bits_to(KINDS);
    program.load(FREE);
    program.shift_right(32 - at);
    program.with(has);
    program.add_bits_to(KINDS_UPPER);
    program.load_x(KEPT);
}

/// The tail so far behind `x`, if what ends at the accumulator has so much; else it goes on there. `x` stays.
fn put_tail(program: &mut Assembler, tail: Tail, behind: u32, cut: Place) {
    let (from, long) = (behind + u32::from(tail.offset()), tail.bits() / 8);
    program.subtract_x();
    program.jump_unless(Is::AtLeast(from + long), cut);
    let upper = long.saturating_sub(4);
    if upper > 0 {
        bytes(program, from, upper);
        program.store(TAIL_UPPER);
    }
    bytes(program, from + upper, long - upper);
    program.store(TAIL);
    set(program, Field::HAS_TAIL);
}

/// One to four bytes behind `x` as a number.
fn bytes(program: &mut Assembler, from: u32, count: u32) {
    match count {
        1 => program.behind_x(Width::One, from),
        2 => program.behind_x(Width::Two, from),
        3 => {
            // The first of four stands before them, perhaps before `x`: at the least it is the EtherType's.
            program.behind_x(Width::Four, from.wrapping_sub(1));
            program.mask(0xff_ffff);
        }
        _ => program.behind_x(Width::Four, from),
    }
}

fn put_addresses<const N: u32>(program: &mut Assembler, source: u32, destination: u32) {
    for (cell, from) in [(SOURCE, source), (DESTINATION, destination)] {
        for word in 0..N {
            program.behind_x(Width::Four, from + 4 * word);
            program.store(Cell(cell.0 + 4 - N + word));
        }
    }
    set(program, Field::HAS_ADDRESSES);
}

/// The accumulator is the protocol. What was in `x` is lost.
fn put_protocol(program: &mut Assembler) {
    let (cell, has) = bits(Field::HAS_PROTOCOL, 1);
    let at = Field::PROTOCOL.mask().as_array()[0].trailing_zeros();
    program.shift_left(at - 32);
    program.with(has);
    program.add_bits_to(cell);
}

fn of_arp(program: &mut Assembler, made: Place) {
    program.length();
    program.subtract_x();
    program.jump_unless(Is::AtLeast(28), made);
    program.behind_x(Width::Four, 0);
    program.jump_unless(Is::Equal(0x0001_0800), made);
    program.behind_x(Width::Two, 4);
    program.jump_unless(Is::Equal(0x0604), made);
    put_addresses::<1>(program, 14, 24);
    program.jump(made);
}

/// The packet has at least so much behind `x`, by its frame; and it is of this version.
fn header(program: &mut Assembler, long: u32, version: u32, made: Place) {
    program.length();
    program.subtract_x();
    program.jump_unless(Is::AtLeast(long), made);
    program.behind_x(Width::One, 0);
    program.shift_right(4);
    program.jump_unless(Is::Equal(version), made);
}

/// The accumulator is where the packet ends, by what it says: not beyond its frame. `x` is kept, and the network header's place.
fn ends(program: &mut Assembler, made: Place) {
    program.store(END);
    program.store_x(FREE);
    program.load_x(END);
    program.length();
    program.jump_unless(Is::AtLeastX, made);
    program.load_x(FREE);
}

/// Goes on with `x` behind the header, its protocol in [`FREE`], if the packet is no piece.
fn of_ipv4(program: &mut Assembler, made: Place) {
    let whole = program.place();
    header(program, 20, 4, made);
    program.behind_x(Width::Two, 2);
    program.add_x();
    ends(program, made);
    program.behind_x(Width::One, 0);
    program.mask(15);
    program.shift_left(2);
    program.jump_unless(Is::AtLeast(20), made);
    program.add_x();
    program.store(KEPT);
    program.load_x(KEPT);
    program.load(END);
    program.jump_unless(Is::AtLeastX, made);
    program.load_x(FREE);
    program.behind_x(Width::Two, 6);
    program.mask(0x3fff);
    program.jump_if(Is::Equal(0), whole);
    program.mask(0x1fff);
    program.shift_left(3);
    program.load_x(END);
    program.add_x();
    program.load_x(KEPT);
    program.subtract_x();
    program.jump_if(Is::Above(0xffff), made);
    let last = program.place();
    program.load_x(FREE);
    program.behind_x(Width::Two, 6);
    program.jump_unless(Is::Any(0x2000), last);
    program.load(END);
    program.load_x(KEPT);
    program.subtract_x();
    is_multiple(program, made);
    program.put(last);
    program.load_x(FREE);
    program.put(whole);
    put_addresses::<1>(program, 12, 16);
    program.behind_x(Width::One, 9);
    put_protocol(program);
    program.load_x(FREE);
    program.behind_x(Width::Two, 6);
    program.jump_if(Is::Any(0x3fff), made);
    program.behind_x(Width::One, 9);
    program.store(FREE);
    program.load_x(KEPT);
}

/// The accumulator, the length of a piece before others, is some times 8.
fn is_multiple(program: &mut Assembler, made: Place) {
    program.jump_if(Is::Equal(0), made);
    program.jump_if(Is::Any(7), made);
}

/// The same as of IPv4.
fn of_ipv6(program: &mut Assembler, made: Place) {
    let (upper, piece) = (program.place(), program.place());
    header(program, 40, 6, made);
    program.behind_x(Width::Two, 4);
    program.add_x();
    program.add(40);
    ends(program, made);
    put_addresses::<4>(program, 8, 24);
    program.behind_x(Width::One, 6);
    program.store(FREE);
    program.copy_x();
    program.add(40);
    program.set_x();
    for _ in 0..EXTENSIONS {
        program.load(FREE);
        unless_extension(program, upper);
        past_extension(program, piece, made);
    }
    program.load(FREE);
    unless_extension(program, upper);
    program.jump(made);
    program.put(piece);
    of_piece(program, made);
    program.put(upper);
    program.store_x(KEPT);
    program.load(FREE);
    put_protocol(program);
    program.load_x(KEPT);
}

fn unless_extension(program: &mut Assembler, otherwise: Place) {
    let is_extension = program.place();
    for number in LOOKED_THROUGH {
        program.jump_if(Is::Equal(number.into()), is_extension);
    }
    program.jump(otherwise);
    program.put(is_extension);
}

/// From an extension header at `x`, its number in [`FREE`], to what is behind it.
fn past_extension(program: &mut Assembler, piece: Place, made: Place) {
    let (fragment, authentication, long) = (program.place(), program.place(), program.place());
    program.load(END);
    program.subtract_x();
    program.jump_unless(Is::AtLeast(8), made);
    program.load(FREE);
    program.jump_if(Is::Equal(FRAGMENT.into()), fragment);
    program.jump_if(Is::Equal(AUTHENTICATION.into()), authentication);
    program.behind_x(Width::One, 1);
    program.add(1);
    program.shift_left(3);
    program.jump(long);
    program.put(authentication);
    program.behind_x(Width::One, 1);
    program.add(2);
    program.shift_left(2);
    program.jump(long);
    program.put(fragment);
    program.behind_x(Width::Two, 2);
    program.jump_if(Is::Any(0xfff9), piece);
    program.number(8);
    program.put(long);
    program.add_x();
    program.store(KEPT);
    program.behind_x(Width::One, 0);
    program.store(FREE);
    program.load_x(KEPT);
    program.load(END);
    program.jump_unless(Is::AtLeastX, made);
}

/// A piece whose fragment header is at `x` has a protocol, if no extension header stands behind that, and nothing else.
fn of_piece(program: &mut Assembler, made: Place) {
    let (last, no_extension) = (program.place(), program.place());
    program.store_x(FREE);
    program.behind_x(Width::Two, 2);
    program.mask(0xfff8);
    program.subtract_x();
    program.load_x(END);
    program.add_x();
    program.subtract(8);
    program.jump_if(Is::Above(0xffff), made);
    program.load_x(FREE);
    program.behind_x(Width::Two, 2);
    program.jump_unless(Is::Any(1), last);
    program.load(END);
    program.subtract_x();
    program.subtract(8);
    is_multiple(program, made);
    program.put(last);
    program.behind_x(Width::One, 0);
    unless_extension(program, no_extension);
    program.jump(made);
    program.put(no_extension);
    put_protocol(program);
    program.jump(made);
}

/// Ports, and the tail behind UDP, of the transport header at `x`, its protocol in [`FREE`].
fn of_transport(program: &mut Assembler, tail: Option<Tail>, made: Place) {
    let (ports, udp) = (program.place(), program.place());
    for (protocol, long) in [(TCP, 20), (SCTP, 12)] {
        let other = program.place();
        program.load(FREE);
        program.jump_unless(Is::Equal(protocol.into()), other);
        program.load(END);
        program.subtract_x();
        program.jump_if(Is::AtLeast(long), ports);
        program.jump(made);
        program.put(other);
    }
    program.jump_if(Is::Equal(UDP.into()), udp);
    program.jump(made);
    program.put(udp);
    program.load(END);
    program.subtract_x();
    program.jump_unless(Is::AtLeast(8), made);
    program.behind_x(Width::Two, 4);
    program.jump_unless(Is::AtLeast(8), made);
    program.add_x();
    program.store(KEPT);
    program.store_x(FREE);
    program.load_x(KEPT);
    program.load(END);
    program.jump_unless(Is::AtLeastX, made);
    program.load_x(FREE);
    if let Some(tail) = tail.filter(|tail| tail.behind() == Behind::Udp) {
        program.load(KEPT);
        put_tail(program, tail, 8, ports);
    }
    program.put(ports);
    program.behind_x(Width::Four, 0);
    program.store(PORTS);
    set(program, Field::HAS_PORTS);
}
