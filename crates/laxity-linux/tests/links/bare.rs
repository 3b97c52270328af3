//! The kernel's end of a TUN interface, by a packet socket: what is sent here the kernel hands to whoever has the other end, and the other way round.
#![allow(
    unsafe_code,
    reason = "a socket is bound to an interface by a system call"
)]

use std::collections::VecDeque;
use std::os::fd::{FromRawFd, OwnedFd};

use laxity_model::Instant;
use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Facts, Left, Link, LinkError, Losses, Medium, Received, Stamp};
use laxity_model::nif::registry::ClientId;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

type Memory = Box<[u8]>;

/// It makes up an Ethernet header as any interface of IP alone.
pub(crate) struct Bare {
    socket: OwnedFd,
    facts: Facts,
    posted: VecDeque<Memory>,
    sent: VecDeque<Memory>,
    lost: u64,
}

impl Bare {
    pub(crate) fn open(name: &str) -> Self {
        let (kind, all) = (
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            (libc::ETH_P_ALL as u16).to_be(),
        );
        let name = std::ffi::CString::new(name).unwrap();
        // SAFETY: takes numbers and a name that outlives the call; zeros are a value of an address; the kernel reads as much of it as is said.
        let socket = unsafe {
            let number = libc::socket(libc::AF_PACKET, kind, all.into());
            assert!(number >= 0, "{}", std::io::Error::last_os_error());
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let size = size_of_val(&address) as u32;
            let bound = libc::bind(number, (&raw const address).cast(), size);
            assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(number)
        };
        Self {
            socket,
            facts: Facts {
                name: "bare".to_owned(),
                address: [2, 0, 0, 0, 0, 9],
                mtu: 1_500,
                reach: 64,
                medium: Medium::Ip,
                is_shared_with_kernel: false,
                gathers: false,
                copies: false,
            },
            posted: VecDeque::new(),
            sent: VecDeque::new(),
            lost: 0,
        }
    }
}

impl Link for Bare {
    type Memory = Memory;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Memory>, LinkError> {
        let one = |_| vec![0; self.facts.mtu + HEADER].into_boxed_slice();
        Ok((0..packets).map(one).collect())
    }

    fn post(&mut self, memory: Memory) -> Result<(), Memory> {
        self.posted.push_back(memory);
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Memory>>, LinkError> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        loop {
            let into = self.posted.front_mut();
            let into = into.map_or(&mut [][..], |memory| &mut memory[HEADER..]);
            match recv(&self.socket, into, flags) {
                Ok((_, length)) => {
                    let Some(memory) = self.posted.pop_front() else {
                        self.lost += 1;
                        continue;
                    };
                    return Ok(Some(Received {
                        memory,
                        length: HEADER + length,
                        at: now,
                        stamp: Stamp::Read,
                        left: Left::default(),
                        early: None,
                    }));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::NETDOWN) => return Err(LinkError::Down),
                Err(errno) => return Err(LinkError::Failed(errno.to_string())),
            }
        }
    }

    fn send(
        &mut self,
        memory: Memory,
        length: usize,
        _: Instant,
    ) -> Result<(), (Memory, LinkError)> {
        if self.sent.len() >= self.facts.reach {
            return Err((memory, LinkError::Full));
        }
        match send(&self.socket, &memory[HEADER..length], SendFlags::DONTWAIT) {
            Ok(_) => {
                self.sent.push_back(memory);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::NOBUFS) => Err((memory, LinkError::Full)),
            Err(errno) => Err((memory, LinkError::Failed(errno.to_string()))),
        }
    }

    fn has_discarded(&self) -> bool {
        false
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        Ok(())
    }

    fn is_silent(&self) -> bool {
        false
    }

    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, _: ClientId) {}

    fn sent(&mut self, _: Instant) -> Option<Memory> {
        self.sent.pop_front()
    }

    fn reclaim(&mut self) -> Option<Memory> {
        None
    }

    fn losses(&self) -> Losses {
        Losses {
            no_room: self.lost,
            ..Losses::default()
        }
    }
}
