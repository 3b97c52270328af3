//! Control groups: which hierarchies are mounted where, and in which group of each a process is. The readers are pure, and total.

use std::path::{Path, PathBuf};

use crate::os::fact::{Fact, Unknown, read};

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

/// How much more memory a control group lets its processes have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupRoom {
    /// Bytes. What is cached of files counts as free: the kernel takes it back first.
    pub(crate) left: u64,
    /// The file that has the limit.
    pub(crate) limit: PathBuf,
}

/// What the control groups of the calling thread leave it of memory: the least of its own and those around it, as far as they can be seen.
pub(crate) fn memory_left() -> Option<GroupRoom> {
    let mounts = read("/proc/thread-self/mountinfo").ok()?;
    let own = read("/proc/thread-self/cgroup").ok()?;
    memory_left_by((&mounts, &own), |path| read(path).ok())
}

/// The names of a hierarchy's files: the limit, what is used, and in `memory.stat` what of that are files that can be given up.
type MemoryFiles = (&'static str, &'static str, [&'static str; 2]);

/// The same by what is mounted, in which groups it is, and what files say.
fn memory_left_by(
    (mountinfo, groups): (&str, &str),
    read: impl Fn(&Path) -> Option<String>,
) -> Option<GroupRoom> {
    const V2: MemoryFiles = (
        "memory.max",
        "memory.current",
        ["inactive_file", "active_file"],
    );
    const V1: MemoryFiles = (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ["total_inactive_file", "total_active_file"],
    );
    let mounts = mounts(mountinfo);
    let both = [(Hierarchy::Unified, V2), (Hierarchy::V1("memory"), V1)];
    let rooms = both.into_iter().flat_map(|(hierarchy, files)| {
        let mount = hierarchy.mount(&mounts);
        let group = mount.and_then(|mount| mount.directory(hierarchy.group(groups)?).ok());
        let above = group.iter().flat_map(|group| group.ancestors());
        let within = above
            .take_while(|directory| mount.is_some_and(|mount| directory.starts_with(&mount.point)));
        let rooms = within.filter_map(|directory| room(directory, files, &read));
        rooms.collect::<Vec<_>>()
    });
    rooms.min_by_key(|room| room.left)
}

/// What a group leaves; `None` if it has no limit, which is said as `max`, or by leaving out the file.
fn room(
    directory: &Path,
    (limit, used, files): MemoryFiles,
    read: impl Fn(&Path) -> Option<String>,
) -> Option<GroupRoom> {
    let number = |name: &str| read(&directory.join(name))?.trim_end().parse::<u64>().ok();
    let (most, used) = (number(limit)?, number(used)?);
    let stat = read(&directory.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        files.contains(&name).then(|| bytes.parse::<u64>().ok())?
    });
    let cached = cached.fold(0, u64::saturating_add);
    Some(GroupRoom {
        left: most.saturating_sub(used.saturating_sub(cached)),
        limit: directory.join(limit),
    })
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

    /// What is left, in bytes, and by which file.
    fn left(mountinfo: &str, groups: &str, files: &[(&str, &str)]) -> Option<(u64, String)> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| format!("{text}\n"))
        };
        let room = memory_left_by((mountinfo, groups), read)?;
        Some((room.left, room.limit.display().to_string()))
    }

    #[test]
    fn the_tightest_group_around_is_what_leaves_memory() {
        const MOUNTED: &str = "30 24 0:26 / /cg rw - cgroup2 none rw\n";
        let files = [
            // The group of all has no limit, and its child none that is one.
            ("/cg/a/memory.max", "max"),
            ("/cg/a/memory.current", "9000"),
            ("/cg/a/b/memory.max", "1000"),
            ("/cg/a/b/memory.current", "700"),
            (
                "/cg/a/b/memory.stat",
                "anon 500\ninactive_file 100\nactive_file 50\nshmem 50",
            ),
            ("/cg/a/b/c/memory.max", "5000"),
            ("/cg/a/b/c/memory.current", "600"),
        ];
        let found = |group: &str| left(MOUNTED, &format!("0::{group}\n"), &files);
        let of_b = Some((450, "/cg/a/b/memory.max".to_owned()));
        assert_eq!(found("/a/b/c"), of_b);
        assert_eq!(found("/a/b"), of_b);
        assert_eq!((found("/a"), found("/"), found("/x")), (None, None, None));
        let full = [("/cg/memory.max", "10"), ("/cg/memory.current", "11")];
        let none = Some((0, "/cg/memory.max".to_owned()));
        assert_eq!(left(MOUNTED, "0::/\n", &full), none);
    }

    /// In a container of version 1 its own group is mounted in place of the root.
    #[test]
    fn a_container_of_version_1_has_its_limit_too() {
        let mounted = "30 24 0:26 /docker/x /cg/memory rw - cgroup cgroup rw,memory\n";
        let files = [
            ("/cg/memory/memory.limit_in_bytes", "1000"),
            ("/cg/memory/memory.usage_in_bytes", "700"),
            (
                "/cg/memory/memory.stat",
                "cache 900\ntotal_inactive_file 20\ntotal_active_file 30",
            ),
        ];
        let found = left(mounted, "4:memory:/docker/x\n0::/\n", &files);
        let expected = (350, "/cg/memory/memory.limit_in_bytes".to_owned());
        assert_eq!(found, Some(expected));
        assert_eq!(left(mounted, "4:memory:/else\n", &files), None);
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
