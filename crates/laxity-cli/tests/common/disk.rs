//! A disk that is soon full.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use laxity::doctor::rights::lacks;

/// A small file system in memory that is mounted nowhere: it is gone when this process is, whatever ends that.
pub(crate) struct Disk(OwnedFd);

impl Disk {
    fn new(bytes: u32) -> io::Result<Self> {
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let size = CString::new(bytes.to_string()).expect("digits");
        fsconfig_set_string(&context, "size", &size)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        Ok(Self(fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            attributes,
        )?))
    }

    /// Its root, by a path that our children can use too.
    pub(crate) fn root(&self) -> PathBuf {
        let file = self.0.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{file}", std::process::id()))
    }
}

/// A disk of so many bytes; `None`, with the reason said, where we may not have one.
pub(crate) fn disk(bytes: u32) -> Option<Disk> {
    match Disk::new(bytes) {
        Ok(disk) => Some(disk),
        Err(error) => {
            lacks(&format!("no file system can be made in memory: {error}"));
            None
        }
    }
}
