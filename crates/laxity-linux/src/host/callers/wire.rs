//! Messages between a process and who serves it, each whole: a Unix socket of packets, which carries descriptors too.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use laxity_model::program::coordinator::{MOST_BYTES, Who};
use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType,
};

/// No message has more descriptors.
const DESCRIPTORS: usize = 2;
/// So many may wait to be let in.
const BACKLOG: i32 = 64;

/// One end.
#[derive(Debug)]
pub(crate) struct Wire(OwnedFd);

/// What was received: its bytes, none at the end, and its descriptors.
pub(crate) type Packet = (Option<Vec<u8>>, Vec<OwnedFd>);

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Where others [connect](Wire::connect) to.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    let listener = socket()?;
    net::bind(&listener, &SocketAddrUnix::new(path)?)?;
    net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

impl Wire {
    /// To whoever listens there. For no longer than this, as whoever is asked there waits for nothing longer.
    pub(crate) fn connect(path: &Path, patience: Duration) -> io::Result<Self> {
        let wire = Self(socket()?);
        wire.patience(Some(patience))?;
        net::connect(&wire.0, &SocketAddrUnix::new(path)?)?;
        Ok(wire)
    }

    /// The next who connects.
    pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Self> {
        Ok(Self(net::accept_with(listener, SocketFlags::CLOEXEC)?))
    }

    /// Who is at the other end, as the kernel says: `None` if it cannot be seen from here.
    pub(crate) fn peer(&self) -> io::Result<Option<Who>> {
        let mut peer = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut length = size_of_val(&peer) as libc::socklen_t;
        // SAFETY: a place for the answer, and its length.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let user = peer.uid;
        let process = u32::try_from(peer.pid).ok().filter(|process| *process > 0);
        Ok(process.map(|process| Who { process, user }))
    }

    /// From now on nothing is waited for longer than this.
    pub(crate) fn patience(&self, limit: Option<Duration>) -> io::Result<()> {
        set_socket_timeout(&self.0, Timeout::Recv, limit)?;
        Ok(set_socket_timeout(&self.0, Timeout::Send, limit)?)
    }

    /// Sends a message whole.
    pub(crate) fn send(&self, bytes: &[u8], with: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_by(bytes, with, SendFlags::NOSIGNAL)
    }

    /// The same, or an error where it would have to wait.
    pub(crate) fn send_at_once(&self, bytes: &[u8], with: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_by(bytes, with, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_by(&self, bytes: &[u8], with: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() && !control.push(SendAncillaryMessage::ScmRights(with)) {
            return Err(Errno::TOOBIG.into());
        }
        loop {
            match net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags) {
                Err(Errno::INTR) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    /// The next message, with descriptors. One that is longer than any may be is an error.
    pub(crate) fn receive(&self) -> io::Result<Packet> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
        let (packet, _) = self.receive_by(RecvFlags::empty(), &mut space)?;
        Ok(packet)
    }

    /// The next message of a stranger, or an error where it would have to wait. Only one that is said to take descriptors has any, and no more than any may have. Else it is the end: whoever takes a message out of a socket
    /// closes what came with it, and that lasts as long as whoever sent it likes, as of a socket that lingers.
    pub(crate) fn receive_at_once(&self, takes: impl FnOnce(&[u8]) -> bool) -> io::Result<Packet> {
        let look = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let (mut packet, has_more) = self.receive_by(look, &mut [])?;
        if has_more {
            if !packet.0.as_deref().is_some_and(takes) {
                return Ok((None, Vec::new()));
            }
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
            let (again, has_more) = self.receive_by(look, &mut space)?;
            if has_more {
                return Ok((None, again.1));
            }
            packet = again;
        }
        if packet.0.is_some() {
            // Whatever came with it is open here, too.
            net::recv(&self.0, &mut [0; 1], RecvFlags::DONTWAIT)?;
        }
        Ok(packet)
    }

    /// With whether it has more descriptors than there is space for.
    fn receive_by(
        &self,
        flags: RecvFlags,
        space: &mut [MaybeUninit<u8>],
    ) -> io::Result<(Packet, bool)> {
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let mut bytes = vec![0; MOST_BYTES];
        let mut control = RecvAncillaryBuffer::new(space);
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match net::recvmsg(&self.0, &mut parts, &mut control, flags) {
                Err(Errno::INTR) => {}
                received => break received?,
            }
        };
        let mut with = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                with.extend(descriptors);
            }
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(Errno::MSGSIZE.into());
        }
        bytes.truncate(received.bytes);
        let bytes = (received.bytes > 0).then_some(bytes);
        Ok(((bytes, with), received.flags.contains(ReturnFlags::CTRUNC)))
    }

    /// Both ends come to theirs.
    pub(crate) fn end(&self) {
        let _ = net::shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
