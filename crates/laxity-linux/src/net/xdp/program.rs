//! The programs at the hook: what they are made of, instruction by instruction.
//!
//! Both take the instant first, and write it in front of the packet with the number of its client, if there is room; then they hand the packet to a
//! socket. The first does that with every packet. The second finds the packet's client before, and takes one of the credits
//! that this has, or drops the packet. Either knows the first queue of an interface only.

use std::os::fd::AsFd;

use crate::net::bpf::assemble::{Assembler, Helper, If, Instruction, Place, Register, Width, With};

use Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};

/// Says that what stands in front of a packet was written by these programs.
pub(super) const MARK: u32 = 0x6c61_7869;
/// In front of a packet: the mark and the client, then the instant.
pub(super) const IN_FRONT: usize = 16;

/// What a program returns.
const DROP: i32 = 1;
const PASS: i32 = 2;

/// Offsets in the context of a program (`struct xdp_md`).
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const METADATA: i16 = 8;
const QUEUE: i16 = 16;

const ETHERNET: i16 = 14;
pub(super) const UDP: i32 = 17;
pub(super) const TCP: i32 = 6;

/// A flow as the map has it that finds clients: the far address, the own, both ports as they stand in the header, and what it is: the protocol, and two bits. An IPv4 address takes
/// the first of its four words.
pub(super) type Key = [u32; 10];
const FAR: usize = 0;
const OWN: usize = 4;
const PORTS: usize = 8;
const KIND: usize = 9;
/// It is of IPv6: the first word of such an address may be any of IPv4.
pub(super) const IPV6: i32 = 1 << 8;
/// The far end is named, whatever it is.
pub(super) const NAMED: i32 = 1 << 9;
/// Where it lies on the stack.
const KEY: i16 = -40;
/// Where the number of a client does, to find its credits.
const CLIENT: i16 = -48;

/// Stamps each packet, and hands it to the socket of number 0; to the kernel, while there is none.
pub(super) fn stamped(sockets: impl AsFd) -> Vec<Instruction> {
    let mut code = Assembler::default();
    begin(&mut code);
    code.set(R8, 0);
    code.set(R9, 0);
    deliver(&mut code, sockets, PASS);
    code.finish()
}

/// Keeps the context in R6 and the instant in R7. What came by another queue than the sockets' is the kernel's.
fn begin(code: &mut Assembler) {
    let ours = code.place();
    code.load(Width::Four, R0, R1, QUEUE);
    code.jump_if(R0, If::Equal, With::Number(0), ours);
    code.set(R0, PASS);
    code.exit();
    code.put(ours);
    code.copy(R6, R1);
    code.call(Helper::Now);
    code.copy(R7, R0);
}

/// Writes the instant of R7 and the client of R8 in front of the packet, and hands it to the socket of R9.
fn deliver(code: &mut Assembler, sockets: impl AsFd, otherwise: i32) {
    let redirect = code.place();
    code.copy(R1, R6);
    code.set(R2, -(IN_FRONT as i32));
    code.call(Helper::Metadata);
    code.jump_if(R0, If::NotEqual, With::Number(0), redirect);
    code.load(Width::Four, R1, R6, METADATA);
    code.load(Width::Four, R2, R6, DATA);
    code.copy(R3, R1);
    code.add(R3, IN_FRONT as i32);
    code.jump_if(R3, If::Above, With::Register(R2), redirect);
    code.store_number(Width::Four, R1, 0, MARK as i32);
    code.store(Width::Four, R1, 4, R8);
    code.store(Width::Eight, R1, 8, R7);
    code.put(redirect);
    code.map(R1, sockets);
    code.copy(R2, R9);
    code.set(R3, otherwise);
    code.call(Helper::Redirect);
    code.exit();
}

/// What becomes of packets that are of no client's flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The kernel has them, as if there were no program.
    Kernel,
    /// They are client 0's, for its credits, and go to the interface's own socket.
    ClientZero,
}

/// The maps of a program that finds clients.
pub(super) struct Maps<F, C, S> {
    /// From flows to the client and its socket's number.
    pub(super) flows: F,
    /// Credits and drops by client: for want of one, and of what is too long.
    pub(super) credits: C,
    /// Sockets by number.
    pub(super) sockets: S,
}

/// Finds the client, takes a credit or drops, stamps and hands to the client's socket.
///
/// A flow is found by both addresses and ports, or by the own only where nobody has it by both. So are packets of TCP and UDP over IPv4 and IPv6 that
/// are sound by [the rules of all drivers](laxity_model::nif::frame), and have neither tag nor options nor extensions; all others are of no flow here, whosever they are.
/// A client's packet of more than `longest` bytes, which no socket takes, is dropped before it costs a credit.
pub(super) fn early<F: AsFd, C: AsFd, S: AsFd>(
    maps: &Maps<F, C, S>,
    rest: Rest,
    longest: i32,
) -> Vec<Instruction> {
    let mut code = Assembler::default();
    let (nobody, found) = (code.place(), code.place());
    begin(&mut code);
    key(&mut code, nobody);
    find(&mut code, &maps.flows);
    code.jump_if(R0, If::NotEqual, With::Number(0), found);
    // Once more, by the own address and port alone: in the header's order the far port comes first.
    for word in FAR..OWN {
        code.store_number(Width::Four, R10, key_word(word), 0);
    }
    code.store_number(Width::Two, R10, key_word(PORTS), 0);
    code.add(R9, -NAMED);
    code.store(Width::Four, R10, key_word(KIND), R9);
    find(&mut code, &maps.flows);
    code.jump_if(R0, If::NotEqual, With::Number(0), found);
    code.put(nobody);
    let credit = code.place();
    match rest {
        Rest::Kernel => {
            code.set(R0, PASS);
            code.exit();
        }
        Rest::ClientZero => {
            code.set(R8, 0);
            code.set(R9, 0);
            code.jump(credit);
        }
    }
    code.put(found);
    code.load(Width::Four, R8, R0, 0);
    code.load(Width::Four, R9, R0, 4);
    code.put(credit);
    take_credit(&mut code, &maps.credits, longest);
    deliver(&mut code, &maps.sockets, DROP);
    code.finish()
}

const fn key_word(word: usize) -> i16 {
    KEY + 4 * word as i16
}

fn find(code: &mut Assembler, flows: impl AsFd) {
    code.map(R1, flows);
    code.copy(R2, R10);
    code.add(R2, KEY.into());
    code.call(Helper::Find);
}

/// Makes the packet's key, or goes on at `nobody`. R9 then has what the packet is.
fn key(code: &mut Assembler, nobody: Place) {
    let (ipv6, end) = (code.place(), code.place());
    code.load(Width::Four, R1, R6, DATA);
    code.load(Width::Four, R2, R6, DATA_END);
    // The shortest header of a protocol is that of UDP.
    bound(code, ETHERNET + 20 + 8, nobody);
    code.load(Width::Two, R0, R1, 12);
    code.swap_two(R0);
    code.jump_if(R0, If::Equal, With::Number(0x86dd), ipv6);
    code.jump_if(R0, If::NotEqual, With::Number(0x0800), nobody);
    key_of_ipv4(code, nobody);
    code.jump(end);
    code.put(ipv6);
    bound(code, ETHERNET + 40 + 8, nobody);
    key_of_ipv6(code, nobody);
    code.put(end);
    code.store(Width::Four, R10, key_word(KIND), R9);
}

/// The packet of R1 has so many bytes, up to R2.
fn bound(code: &mut Assembler, bytes: i16, nobody: Place) {
    code.copy(R3, R1);
    code.add(R3, bytes.into());
    code.jump_if(R3, If::Above, With::Register(R2), nobody);
}

fn key_of_ipv4(code: &mut Assembler, nobody: Place) {
    // The fourth version, and a header of five words.
    code.load(Width::One, R0, R1, ETHERNET);
    code.jump_if(R0, If::NotEqual, With::Number(0x45), nobody);
    // No fragment.
    code.load(Width::Two, R0, R1, ETHERNET + 6);
    code.swap_two(R0);
    code.mask(R0, 0x3fff);
    code.jump_if(R0, If::NotEqual, With::Number(0), nobody);
    code.load(Width::One, R9, R1, ETHERNET + 9);
    code.load(Width::Two, R8, R1, ETHERNET + 2);
    code.swap_two(R8);
    more(code, R8, 19, nobody);
    within(code, 0, nobody);
    code.add(R8, -20);
    transport(code, ETHERNET + 20, nobody);
    code.add(R9, NAMED);
    for word in 0..8 {
        code.store_number(Width::Four, R10, key_word(word), 0);
    }
    for (word, at) in [(FAR, 12), (OWN, 16), (PORTS, 20)] {
        code.load(Width::Four, R0, R1, ETHERNET + at);
        code.store(Width::Four, R10, key_word(word), R0);
    }
}

fn key_of_ipv6(code: &mut Assembler, nobody: Place) {
    code.load(Width::One, R0, R1, ETHERNET);
    code.mask(R0, 0xf0);
    code.jump_if(R0, If::NotEqual, With::Number(0x60), nobody);
    code.load(Width::One, R9, R1, ETHERNET + 6);
    code.load(Width::Two, R8, R1, ETHERNET + 4);
    code.swap_two(R8);
    within(code, 40, nobody);
    transport(code, ETHERNET + 40, nobody);
    code.add(R9, NAMED | IPV6);
    for word in 0..9 {
        code.load(Width::Four, R0, R1, ETHERNET + 8 + 4 * word as i16);
        code.store(Width::Four, R10, key_word(word), R0);
    }
}

/// There is more in the register than so much.
fn more(code: &mut Assembler, of: Register, than: i32, nobody: Place) {
    let enough = code.place();
    code.jump_if(of, If::Above, With::Number(than), enough);
    code.jump(nobody);
    code.put(enough);
}

/// Behind so many bytes of IP, as many as R8 says are not beyond R2.
fn within(code: &mut Assembler, behind: i32, nobody: Place) {
    code.copy(R3, R1);
    code.add(R3, i32::from(ETHERNET) + behind);
    code.add_register(R3, R8);
    code.jump_if(R3, If::Above, With::Register(R2), nobody);
}

/// The protocol of R9 is one with ports, and its header, that stands there, is in the R8 bytes behind IP; of UDP, so is all that it says.
fn transport(code: &mut Assembler, at: i16, nobody: Place) {
    let (udp, sound) = (code.place(), code.place());
    code.jump_if(R9, If::Equal, With::Number(UDP), udp);
    code.jump_if(R9, If::NotEqual, With::Number(TCP), nobody);
    more(code, R8, 19, nobody);
    code.jump(sound);
    code.put(udp);
    code.load(Width::Two, R0, R1, at + 4);
    code.swap_two(R0);
    more(code, R0, 7, nobody);
    code.jump_if(R0, If::Above, With::Register(R8), nobody);
    code.put(sound);
}

/// Takes one of the credits of the client of R8. Drops the packet, and counts that, where it has none, or where the packet is too long.
fn take_credit(code: &mut Assembler, credits: impl AsFd, longest: i32) {
    let (late, none, long) = (code.place(), code.place(), code.place());
    let (drop, taken) = (code.place(), code.place());
    code.store(Width::Four, R10, CLIENT, R8);
    code.map(R1, credits);
    code.copy(R2, R10);
    code.add(R2, CLIENT.into());
    code.call(Helper::Find);
    code.jump_if(R0, If::Equal, With::Number(0), drop);
    code.load(Width::Four, R3, R6, DATA);
    code.load(Width::Four, R2, R6, DATA_END);
    code.add(R3, longest);
    code.jump_if(R2, If::Above, With::Register(R3), long);
    code.load(Width::Eight, R1, R0, 0);
    code.jump_if(R1, If::NotPositive, With::Number(0), none);
    code.set(R1, -1);
    code.fetch_add(R0, 0, R1);
    code.jump_if(R1, If::NotPositive, With::Number(0), late);
    code.jump(taken);
    code.put(long);
    code.set(R1, 1);
    code.add_to(R0, 16, R1);
    code.jump(drop);
    // Another processor took the last one meanwhile: what was taken too much is given back.
    code.put(late);
    code.set(R1, 1);
    code.add_to(R0, 0, R1);
    code.put(none);
    code.set(R1, 1);
    code.add_to(R0, 8, R1);
    code.put(drop);
    code.set(R0, DROP);
    code.exit();
    code.put(taken);
}
