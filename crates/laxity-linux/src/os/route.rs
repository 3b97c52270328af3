//! The kernel's routing socket (rtnetlink), by which interfaces and their queues are read and changed. But for what makes a question, kernel calls only, so that what was forked may use it too.

use std::os::fd::{BorrowedFd, OwnedFd};

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};

/// What stands in front of each message: its length, its kind, flags, a number, and whose it is.
pub(crate) const HEADER: usize = 16;
/// The kind of message that ends an answer, with the error in it.
const ERROR: u16 = 2;
/// Room for one message. What an interface is asked for stands in the first half of its answer.
const ROOM: usize = 4096;
/// Descriptors below are for others: a process that was forked puts its own there.
const FIRST: i32 = 16;

/// One of this thread's network namespace, wherever the thread is later. Its number is 16 or more, and it never waits: the kernel answers within the call that asks.
pub(crate) fn open() -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    // Of its family the routing protocol is the first, which is the default.
    let socket = socket_with(family, kind, flags, None)?;
    fcntl_dupfd_cloexec(socket, FIRST)
}

/// A message that wants an acknowledgement, as [`request`] takes it. It allocates.
pub(crate) fn question(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut message = NetlinkMessage::from(message);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// Asks the kernel, with a message that wants an acknowledgement, and hands over each message of the answer, its header included, cut to 4 KiB.
///
/// # Errors
///
/// What the kernel answers.
pub(crate) fn request(
    socket: BorrowedFd<'_>,
    message: &[u8],
    mut answer: impl FnMut(&[u8]),
) -> Result<()> {
    let mut room = [0; ROOM];
    // Who asked before may have ended between question and answer.
    while recv(socket, &mut room, RecvFlags::empty()).is_ok() {}
    send(socket, message, SendFlags::empty())?;
    loop {
        let (length, _) = recv(socket, &mut room, RecvFlags::empty())?;
        let mut rest = &room[..length];
        while rest.len() >= HEADER {
            let length = word(rest, 0).map_or(0, |length| length as usize);
            let whole = &rest[..length.clamp(HEADER, rest.len())];
            if half(whole, 4) == Some(ERROR) {
                return match word(whole, HEADER).unwrap_or_default() as i32 {
                    0 => Ok(()),
                    errno => Err(Errno::from_raw_os_error(-errno)),
                };
            }
            answer(whole);
            rest = rest.get(whole.len().next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
}

/// An attribute of a message of which the kind's own header has so many bytes, if it has that attribute.
pub(crate) fn attribute(message: &[u8], own_header: usize, kind: u16) -> Option<&[u8]> {
    let mut rest = message.get(HEADER + own_header..)?;
    loop {
        let length = usize::from(half(rest, 0)?);
        let value = rest.get(4..length)?;
        if half(rest, 2)? == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// A number of four bytes at this place, if they are all there.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

/// One of two bytes.
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_attributes(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = vec![0; HEADER + 8];
        for (kind, value) in attributes {
            message.extend((value.len() as u16 + 4).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(*value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        message
    }

    #[test]
    fn an_attribute_is_found_behind_those_of_any_length_and_in_no_message_that_is_cut() {
        let message = with_attributes(&[(3, b"near\0"), (40, &7_u32.to_ne_bytes()), (9, b"")]);
        let found = attribute(&message, 8, 40);
        assert_eq!(found.and_then(|value| word(value, 0)), Some(7));
        assert_eq!(attribute(&message, 8, 9), Some(&[][..]));
        assert_eq!(attribute(&message, 8, 41), None);
        for length in 0..message.len() - 5 {
            let cut = attribute(&message[..length], 8, 40);
            assert_eq!(cut, None, "{length} bytes");
        }
        // One that says it is longer than all, or shorter than its own header.
        for length in [200_u16, 3, 0] {
            let mut wrong = message.clone();
            wrong[HEADER + 8..HEADER + 10].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(attribute(&wrong, 8, 40), None);
        }
    }

    #[test]
    fn the_kernel_is_asked_for_an_interface_and_says_which_there_is_not() {
        let ask = |index: u32| {
            let mut message = [0_u32, 0, 0, 0, 0, index, 0, 0]
                .map(u32::to_ne_bytes)
                .concat();
            message[..4].copy_from_slice(&32_u32.to_ne_bytes());
            // RTM_GETLINK, of one, with an acknowledgement.
            message[4..6].copy_from_slice(&18_u16.to_ne_bytes());
            message[6..8].copy_from_slice(&5_u16.to_ne_bytes());
            message
        };
        let socket = open().unwrap();
        let mut name = None;
        let found = |message: &[u8]| name = attribute(message, 16, 3).map(<[u8]>::to_vec);
        request(std::os::fd::AsFd::as_fd(&socket), &ask(1), found).unwrap();
        assert_eq!(name.as_deref(), Some(&b"lo\0"[..]));
        let missing = request(std::os::fd::AsFd::as_fd(&socket), &ask(0x7fff_0000), |_| {});
        assert_eq!(missing, Err(Errno::NODEV));
    }
}
