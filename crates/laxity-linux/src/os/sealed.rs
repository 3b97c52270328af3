//! Memory that processes share: a file without a name, which nobody can make shorter or longer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// So much of it, mapped to be read and written by whoever has the descriptor.
#[derive(Debug)]
pub(crate) struct Sealed {
    memory: NonNull<u8>,
    bytes: usize,
    descriptor: OwnedFd,
}

/// Why a descriptor is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsealed {
    /// The kernel said no.
    #[error(transparent)]
    Os(#[from] io::Error),
    /// What it names is not what was expected.
    #[error("{0}")]
    Other(&'static str),
}

impl From<rustix::io::Errno> for Unsealed {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Os(errno.into())
    }
}

// SAFETY: it is mapped until this is dropped, wherever that is. What is done with the memory is the affair of who has the address.
unsafe impl Send for Sealed {}
// SAFETY: the same.
unsafe impl Sync for Sealed {}

impl Sealed {
    /// New and zero. The name is what `/proc` calls it.
    pub(crate) fn create(name: &str, bytes: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor = rustix::fs::memfd_create(name, flags)?;
        rustix::fs::ftruncate(&descriptor, bytes as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&descriptor, seals)?;
        Self::map(descriptor, bytes)
    }

    /// That of another process: whoever read past the end of what became shorter would be ended by a signal.
    pub(crate) fn attach(descriptor: OwnedFd, bytes: usize) -> Result<Self, Unsealed> {
        let seals = rustix::fs::fcntl_get_seals(&descriptor);
        let seals = seals.map_err(|_| Unsealed::Other("it is no sealed memory"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(Unsealed::Other("it may become shorter"));
        }
        let size = rustix::fs::fstat(&descriptor)?.st_size;
        if u64::try_from(size).ok() != Some(bytes as u64) {
            return Err(Unsealed::Other("it is of another size"));
        }
        Ok(Self::map(descriptor, bytes)?)
    }

    fn map(descriptor: OwnedFd, bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Faulted in at once: whoever uses it is to wait for no page.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping, which overlaps nothing.
        let address =
            unsafe { rustix::mm::mmap(anywhere, bytes, protection, flags, &descriptor, 0) }?;
        let memory = NonNull::new(address.cast());
        Ok(Self {
            memory: memory.ok_or(io::ErrorKind::OutOfMemory)?,
            bytes,
            descriptor,
        })
    }

    /// Its first byte, at the beginning of a page. There are as many as was said, as long as this is there.
    pub(crate) const fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// None of its pages is taken away from now on.
    pub(crate) fn lock(&self) -> io::Result<()> {
        // SAFETY: it is mapped, and to be locked changes nothing of it.
        Ok(unsafe { rustix::mm::mlock(self.memory.as_ptr().cast(), self.bytes) }?)
    }

    /// Whether both are the same memory, however often this process has it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let identity = |of: &Self| {
            let status = rustix::fs::fstat(&of.descriptor).ok();
            status.map(|status| (status.st_dev, status.st_ino))
        };
        identity(self).is_some() && identity(self) == identity(other)
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody has it any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
