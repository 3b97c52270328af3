//! Control groups: which hierarchies are mounted where, and in which group of each a process is. The readers are pure, and total.

use std::path::{Path, PathBuf};

use crate::os::fact::{Fact, Unknown};

/// A line of `/proc/PID/mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// What part of the file system is mounted: `/` for all of it.
    pub root: String,
    /// Where.
    pub point: String,
    /// `cgroup`, `cgroup2`, `debugfs`, …
    pub file_system: String,
    /// The file system's own options: for `cgroup`, its controllers are among them.
    pub options: Vec<String>,
}

/// Every well-formed line of `/proc/PID/mountinfo`.
pub fn mounts(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let file_system = after.next()?;
    let options = after.nth(1).unwrap_or_default();
    Some(Mount {
        root: unescape(root),
        point: unescape(point),
        file_system: file_system.to_owned(),
        options: options.split(',').map(str::to_owned).collect(),
    })
}

/// Undoes the kernel's `\040` for blanks and its like.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                plain.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                at += 4;
            }
            _ => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

impl Mount {
    /// Where a group of the mounted hierarchy is seen, if it is within what is mounted: in a container that may be a part of it.
    pub(crate) fn directory(&self, group: &str) -> Fact<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root);
        let below = below.map_err(|_| {
            let point = &self.point;
            Unknown(format!(
                "the group {group} is outside what is mounted at {point}"
            ))
        });
        Ok(Path::new(&self.point).join(below?))
    }
}

/// A hierarchy of control groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hierarchy<'a> {
    /// That of version 2.
    Unified,
    /// That of version 1 which has this controller.
    V1(&'a str),
}

impl Hierarchy<'_> {
    /// Where it is mounted, if it is.
    pub(crate) fn mount(self, mounts: &[Mount]) -> Option<&Mount> {
        mounts.iter().find(|mount| match self {
            Self::Unified => mount.file_system == "cgroup2",
            Self::V1(controller) => {
                let mut options = mount.options.iter();
                mount.file_system == "cgroup" && options.any(|option| option == controller)
            }
        })
    }

    /// The group of this hierarchy that `/proc/PID/cgroup` names.
    pub fn group(self, cgroup: &str) -> Option<&str> {
        cgroup.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let is_this = match self {
                Self::Unified => number == "0" && controllers.is_empty(),
                Self::V1(controller) => controllers.split(',').any(|name| name == controller),
            };
            is_this.then_some(path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mount_lines() {
        let info = "32 31 0:29 / /sys/fs/cg\\040roup rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\nbroken\n";
        let mounts = mounts(info);
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].point, "/sys/fs/cg roup");
        assert_eq!(mounts[0].file_system, "cgroup");
        assert_eq!(mounts[0].options, ["rw", "cpu", "cpuacct"]);
    }

    #[test]
    fn groups() {
        let both = "2:cpuacct:/a\n1:cpu,cpuset:/b:c\n0::/d\n";
        assert_eq!(Hierarchy::V1("cpu").group(both), Some("/b:c"));
        assert_eq!(Hierarchy::Unified.group(both), Some("/d"));
        assert_eq!(Hierarchy::V1("memory").group(both), None);
    }

    #[test]
    fn a_group_is_seen_where_its_hierarchy_is_mounted() {
        let info = "\
30 24 0:26 / /sys/fs/cgroup rw,relatime shared:8 - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
40 30 0:36 /user /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 none rw
";
        let mounts = mounts(info);
        let seen = |hierarchy: Hierarchy<'_>, group| {
            let directory = hierarchy.mount(&mounts)?.directory(group);
            Some(directory.map(|directory| directory.display().to_string()))
        };
        let cpu = seen(Hierarchy::V1("cpu"), "/jobs/a");
        assert_eq!(cpu, Some(Ok("/sys/fs/cgroup/cpu/jobs/a".to_owned())));
        let unified = seen(Hierarchy::Unified, "/user/b");
        assert_eq!(unified, Some(Ok("/sys/fs/cgroup/unified/b".to_owned())));
        assert!(seen(Hierarchy::Unified, "/system").is_some_and(|seen| seen.is_err()));
        assert_eq!(seen(Hierarchy::V1("freezer"), "/"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,300}", word in "[A-Za-z0-9 ,:()=\\\\\n-]{0,200}") {
            for text in [&text, &word] {
                let _ = (mounts(text), Hierarchy::Unified.group(text));
            }
        }
    }
}
