//! System calls on sockets and interfaces, each with what it reads and writes in its type; and memory that the kernel shares.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// What the kernel reads and writes as it stands: any bytes are a value of it.
///
/// # Safety
///
/// It is made of integers only, or of what the kernel takes for such.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: each is made of integers.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl<const N: usize> Plain for [u32; N] {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: integers and an address, which only the kernel follows.
unsafe impl Plain for libc::sock_fprog {}
// SAFETY: a name, and one of several that are integers or an address which only the kernel follows.
unsafe impl Plain for libc::ifreq {}

/// What the last call of this thread failed by.
pub(super) fn failure() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 {
        Err(failure())
    } else {
        Ok(result)
    }
}

/// A socket that is closed when another program is executed, and never waits.
pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes plain numbers.
    let number = checked(unsafe { libc::socket(family, kind, protocol) })?;
    // SAFETY: it was just opened, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

pub(super) fn set_option<T: Plain>(of: impl AsFd, level: i32, name: i32, value: &T) -> Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let number = of.as_fd().as_raw_fd();
    // SAFETY: the kernel reads so many bytes of the value, which outlives the call.
    let result =
        unsafe { libc::setsockopt(number, level, name, ptr::from_ref(value).cast(), size) };
    checked(result).map(drop)
}

/// The option's value; what an older kernel does not know of it stays as it is in `value`.
pub(super) fn option<T: Plain>(of: impl AsFd, level: i32, name: i32, mut value: T) -> Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    let number = of.as_fd().as_raw_fd();
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes at most so many bytes to the value, of which any are one.
    checked(unsafe { libc::getsockopt(number, level, name, place, &raw mut size) })?;
    Ok(value)
}

pub(super) fn bind<T: Plain>(of: impl AsFd, address: &T) -> Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let number = of.as_fd().as_raw_fd();
    // SAFETY: the kernel reads so many bytes of the address, which outlives the call.
    checked(unsafe { libc::bind(number, ptr::from_ref(address).cast(), size) }).map(drop)
}

/// An `ioctl` that reads and writes one value.
///
/// # Safety
///
/// The request is one that takes the address of a `T`, and follows no address in it that is not valid.
pub(super) unsafe fn ioctl<T: Plain>(
    of: impl AsFd,
    request: libc::c_ulong,
    value: &mut T,
) -> Result<()> {
    let number = of.as_fd().as_raw_fd();
    // SAFETY: as the caller says; the value outlives the call.
    let result = unsafe { libc::ioctl(number, request as _, ptr::from_mut(value)) };
    checked(result).map(drop)
}

/// Tells the kernel to look at a socket's ring of frames to send, and waits for nothing.
pub(super) fn send_ring(of: impl AsFd) -> Result<()> {
    let number = of.as_fd().as_raw_fd();
    // SAFETY: there is neither message nor address.
    let sent = unsafe { libc::sendto(number, ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent < 0 { Err(failure()) } else { Ok(()) }
}

/// Memory that the kernel or another mapping may write too; it is unmapped with this.
#[derive(Debug)]
pub(super) struct Mapping {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory of the process, which is nowhere bound to a thread; who reads and writes what of it is up to whoever has it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// So many bytes of what a descriptor stands for, from an offset on, all of them there at once.
    pub(super) fn of(descriptor: impl AsFd, length: usize, offset: u64) -> Result<Self> {
        let (protection, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
        );
        // SAFETY: a new mapping, which overlaps nothing.
        let address = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                protection,
                flags,
                descriptor,
                offset,
            )
        }?;
        Self::at_address(address.cast(), length)
    }

    /// So many zero bytes.
    pub(super) fn anonymous(length: usize) -> Result<Self> {
        let (protection, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::POPULATE,
        );
        // SAFETY: a new mapping, which overlaps nothing.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), length, protection, flags) }?;
        Self::at_address(address.cast(), length)
    }

    fn at_address(address: *mut u8, length: usize) -> Result<Self> {
        let address = NonNull::new(address).ok_or(Errno::FAULT)?;
        Ok(Self { address, length })
    }

    /// The address of so many bytes from an offset on.
    ///
    /// # Panics
    ///
    /// They are not all in it.
    #[inline]
    pub(super) fn place(&self, offset: usize, bytes: usize) -> *mut u8 {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.length),
            "beyond the mapping"
        );
        // SAFETY: it is in the mapping, as was just seen.
        unsafe { self.address.as_ptr().add(offset) }
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody has an address in it any more, who does not have the mapping. It fails only where it is not mapped.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.length) };
    }
}
