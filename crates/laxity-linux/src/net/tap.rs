//! Ethernet by a TAP interface, or IP by a TUN: what the kernel sends on it is received here, and what is sent here the kernel receives on it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Left, LinkError, MOST_PIECES, Medium, Stamp};
use rustix::io::Errno;

use super::Settings;
use super::call;
use super::copied::{Below, Copied, Packet, Read};
use super::error::{OpenCause, OpenError};
use super::interface::{Interface, Watch, failed, request_of};
use super::unfinished::{ETHERNET, HEADER, LONGEST, TAG, header_of, left_of, without_ethernet};

const DEVICE: &str = "/dev/net/tun";

/// A TAP or TUN interface, from the side that is no kernel's. The first has an address of its own beside the kernel's.
///
/// The kernel tells of no arrival when it was: an instant is that of the read.
pub type TapLink = Copied<Tap>;

/// The way to a TAP or TUN interface.
#[derive(Debug)]
pub struct Tap {
    file: File,
    watch: Watch,
    facts: Facts,
    /// The kernel leaves checksums and segments to whoever reads.
    segments: bool,
}

impl TapLink {
    /// Makes the interface, or takes one that was made for this user, and sets it up.
    ///
    /// # Errors
    ///
    /// [`OpenError`], with what mends it.
    pub fn open(name: &str, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_of(name, Medium::Ethernet, settings)
    }

    /// The same of a TUN interface, which carries [IP alone](Medium::Ip).
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_tun(name: &str, settings: &Settings) -> Result<Self, OpenError> {
        Self::open_of(name, Medium::Ip, settings)
    }

    fn open_of(name: &str, medium: Medium, settings: &Settings) -> Result<Self, OpenError> {
        let full_name = match medium {
            Medium::Ethernet => format!("tap:{name}"),
            Medium::Ip => format!("tun:{name}"),
        };
        if settings.class.is_some() {
            return Err(OpenCause::NoClass.of(full_name));
        }
        let tap = Tap::open(name, &full_name, medium, settings);
        let tap = tap.map_err(|cause| cause.of(&full_name))?;
        let longest = match settings.segments {
            true => LONGEST,
            false => tap.facts.mtu + ETHERNET + TAG,
        };
        Ok(Self::new(tap, settings, longest))
    }
}

/// Whether an interface could be made, which none is for that: the kernel asks for the right before it refuses one of no kind.
pub(super) fn try_right() -> Result<(), OpenCause> {
    let file = device()?;
    let mut request = request_of("laxity%d").map_err(|_| OpenCause::Missing)?;
    // SAFETY: the request takes an `ifreq` without an address in it.
    match unsafe { call::ioctl(&file, libc::TUNSETIFF, &mut request) } {
        Err(Errno::PERM | Errno::ACCESS) => Err(OpenCause::NoInterfaceRights),
        _ => Ok(()),
    }
}

impl Tap {
    fn open(
        name: &str,
        full_name: &str,
        medium: Medium,
        settings: &Settings,
    ) -> Result<Self, OpenCause> {
        let file = device()?;
        let mut request = request_of(name).map_err(|_| OpenCause::Missing)?;
        let kind = match medium {
            Medium::Ethernet => libc::IFF_TAP,
            Medium::Ip => libc::IFF_TUN,
        };
        let flags = kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the request takes an `ifreq` without an address in it.
        unsafe { call::ioctl(&file, libc::TUNSETIFF, &mut request) }.map_err(
            |errno| match errno {
                Errno::PERM | Errno::ACCESS => OpenCause::NoInterfaceRights,
                // It is of another kind, or has been opened already.
                Errno::BUSY | Errno::INVAL | Errno::EXIST => OpenCause::NameTaken,
                errno => OpenCause::System("TUNSETIFF", errno),
            },
        )?;
        let offloads = match settings.segments {
            true => libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6,
            false => 0,
        };
        // SAFETY: the request takes a number.
        let set = unsafe { libc::ioctl(as_raw(&file), libc::TUNSETOFFLOAD as _, offloads) };
        if set != 0 {
            return Err(OpenCause::System("TUNSETOFFLOAD", call::failure()));
        }
        let mut interface = Interface::find_of(name, medium)?;
        // Without the right, it is up when whoever made it sets it up.
        let _ = interface.set_up();
        Ok(Self {
            facts: Facts {
                name: full_name.to_owned(),
                address: match medium {
                    Medium::Ethernet => beside(interface.address),
                    Medium::Ip => OURS,
                },
                mtu: interface.mtu,
                reach: settings.reach(),
                is_shared_with_kernel: false,
                medium,
                gathers: true,
                copies: false,
            },
            watch: Watch::new(interface),
            file,
            segments: settings.segments,
        })
    }

    /// It is a TUN.
    fn is_bare(&self) -> bool {
        self.facts.medium == Medium::Ip
    }
}

/// The addresses in front of what arrives from a TUN interface, which has none: ours, and whoever's is at the other end.
const OURS: [u8; 6] = [2, b't', b'u', b'n', 0, 1];
const THEIRS: [u8; 6] = [2, b't', b'u', b'n', 0, 2];

/// Writes the Ethernet header of an IP packet, if there is room for one.
fn make_up(ethernet: &mut [u8], packet: &[u8]) {
    if ethernet.len() == ETHERNET {
        let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
        ethernet[..6].copy_from_slice(&OURS);
        ethernet[6..12].copy_from_slice(&THEIRS);
        ethernet[12..].copy_from_slice(if is_ipv6 { &[0x86, 0xdd] } else { &[8, 0] });
    }
}

/// Whether this user may have TAP interfaces at all: the device is there and may be opened.
pub(super) fn device() -> Result<File, OpenCause> {
    let mut options = File::options();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK);
    let file = options.open(DEVICE);
    file.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => OpenCause::NoTunDevice,
        Some(Errno::PERM | Errno::ACCESS) => OpenCause::TunDeviceClosed,
        errno => OpenCause::System("open", errno.unwrap_or(Errno::IO)),
    })
}

fn as_raw(file: &File) -> i32 {
    use std::os::fd::AsRawFd;
    file.as_raw_fd()
}

/// An address of our own, that differs from the kernel's of the same interface in its last bit, and says that nobody assigned it.
fn beside(mut address: [u8; 6]) -> [u8; 6] {
    address[0] = address[0] & !1 | 2;
    address[5] ^= 1;
    address
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

impl Below for Tap {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self, into: &mut [u8], now: Instant) -> Result<Read, LinkError> {
        // One byte more than there is room for tells a packet that is cut.
        let (mut header, mut beyond) = ([0; HEADER], [0]);
        let made_up = if self.is_bare() {
            ETHERNET.min(into.len())
        } else {
            0
        };
        let (ethernet, packet) = into.split_at_mut(made_up);
        let room = packet.len();
        let mut places = [
            IoSliceMut::new(&mut header),
            IoSliceMut::new(packet),
            IoSliceMut::new(&mut beyond),
        ];
        match self.file.read_vectored(&mut places) {
            Ok(read) if read > HEADER + room => Ok(Read::TooLong),
            Ok(read) if read >= HEADER => {
                make_up(ethernet, packet);
                Ok(Read::Packet(Packet {
                    length: made_up + read - HEADER,
                    at: now,
                    stamp: Stamp::Read,
                    left: left_of(&header),
                }))
            }
            Ok(_) => Ok(Read::Nothing),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.watch.look(now).map(|()| Read::Nothing)
            }
            Err(error) => match errno_of(&error) {
                Errno::BADFD => Err(self.watch.gone()),
                // It is being shut down.
                Errno::FAULT => self.watch.look(now).map(|()| Read::Nothing),
                errno => Err(failed("read", errno)),
            },
        }
    }

    fn write(&mut self, pieces: &[IoSlice<'_>], left: Left) -> Result<(), LinkError> {
        let mut header = header_of(&pieces[0], left)?;
        if self.is_bare() {
            header = without_ethernet(header);
        }
        let mut all = [IoSlice::new(&header); MOST_PIECES + 2];
        all[1..=pieces.len()].copy_from_slice(pieces);
        if self.is_bare() {
            all[1].advance(ETHERNET);
        }
        let all = &all[..=pieces.len()];
        let length: usize = all.iter().map(|piece| piece.len()).sum();
        match self.file.write_vectored(all) {
            Ok(written) if written == length => Ok(()),
            Ok(_) => Err(failed("write", Errno::IO)),
            Err(error) => match errno_of(&error) {
                Errno::INVAL if self.is_bare() => {
                    let why = "it carries IP, and this frame holds none";
                    Err(LinkError::Failed(why.to_owned()))
                }
                Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => Err(LinkError::Full),
                // What a TAP says that is not up.
                Errno::IO => Err(LinkError::Down),
                errno => Err(self.watch.refused("write", errno)),
            },
        }
    }

    fn overflown(&self) -> Option<u64> {
        self.watch.dropped().map(|[_, sent]| sent)
    }

    fn is_gone(&self) -> bool {
        self.watch.is_gone()
    }

    fn finishes(&self) -> bool {
        self.segments
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
