//! Control groups: the real-time group that a thread is in, and the root domains that cpusets cut the machine into.

use std::fs;
use std::path::Path;

use super::machine::{Fact, RealTimeGroup, Unknown};
use super::parse;
use crate::os::cgroup::{Hierarchy, Mount};
use crate::os::cpuset::CpuSet;
use crate::os::fact::{read, read_as};
use crate::os::limits;

/// A hierarchy with more groups than this is not walked: the answer would cost more than it is worth.
const MOST_GROUPS: usize = 10_000;

/// The real-time group of a process or thread, by its directory in `/proc`.
pub(super) fn real_time_group(
    of: &str,
    is_limiting: impl FnOnce() -> Fact<bool>,
    mounts: &[Mount],
) -> Fact<RealTimeGroup> {
    // Without a limit for the machine there is none for a group.
    if limits::throttling().runtime_us?.is_none() {
        return Ok(RealTimeGroup::NotLimited);
    }
    let own = read(format!("/proc/{of}/cgroup"))?;
    const CPU: Hierarchy<'_> = Hierarchy::V1("cpu");
    let Some(mount) = CPU.mount(mounts) else {
        let (mount, group) = (
            Hierarchy::Unified.mount(mounts),
            Hierarchy::Unified.group(&own),
        );
        return v2_group(is_limiting()?, mount, group);
    };
    let group = CPU.group(&own);
    let group = group.ok_or_else(|| Unknown("it is in no cpu group".to_owned()))?;
    v1_group(&mount.directory(group)?)
}

fn v1_group(directory: &Path) -> Fact<RealTimeGroup> {
    let runtime = directory.join("cpu.rt_runtime_us");
    if !directory.join("cpu.shares").exists() && !directory.join("tasks").exists() {
        return Err(Unknown(format!("{} is not there", directory.display())));
    }
    if !runtime.exists() {
        return Ok(RealTimeGroup::NotLimited);
    }
    // Only the group of all threads has a release agent.
    if directory.join("release_agent").exists() {
        return Ok(RealTimeGroup::Root);
    }
    Ok(RealTimeGroup::V1 {
        runtime_us: read_as(runtime, |text| {
            let runtime: i64 = text.parse().ok()?;
            Some(u64::try_from(runtime).ok())
        })?,
        period_us: read_as(directory.join("cpu.rt_period_us"), |text| text.parse().ok())?,
        directory: directory.display().to_string(),
    })
}

/// Whether the kernel limits the groups of version 2, by how it was built and started.
pub(super) fn is_limiting(config: Result<&str, &Unknown>, command_line: &str) -> Fact<bool> {
    let config = config?;
    let built = |name| parse::build_option(config, name) == Some("y");
    let switched_on = match parse::boot_option(command_line, "rt_group_sched") {
        Some(value) => !matches!(value, "0" | "n" | "no" | "off"),
        None => !built("RT_GROUP_SCHED_DEFAULT_DISABLED"),
    };
    Ok(built("RT_GROUP_SCHED") && switched_on)
}

fn v2_group(is_limiting: bool, mount: Option<&Mount>, group: Option<&str>) -> Fact<RealTimeGroup> {
    if !is_limiting {
        return Ok(RealTimeGroup::NotLimited);
    }
    let (Some(mount), Some(group)) = (mount, group) else {
        // Without any hierarchy all threads are in one group.
        return Ok(RealTimeGroup::Root);
    };
    // A group without the cpu controller belongs to the nearest ancestor that has it; cpu.weight shows which do.
    let own = mount.directory(group)?;
    let with_cpu = own
        .ancestors()
        .take_while(|ancestor| ancestor.starts_with(&mount.point))
        .find(|ancestor| ancestor.join("cpu.weight").exists());
    Ok(match with_cpu {
        Some(directory) => RealTimeGroup::V2 {
            directory: directory.display().to_string(),
        },
        None => RealTimeGroup::Root,
    })
}

/// The sets of processors that the scheduler balances within: one for the machine, unless cpusets or isolation cut it.
pub(super) fn root_domains(
    online: &CpuSet,
    isolated: &CpuSet,
    mounts: &[Mount],
) -> Fact<Vec<CpuSet>> {
    let (v1, v2) = (Hierarchy::V1("cpuset"), Hierarchy::Unified);
    let cut = match (v1.mount(mounts), v2.mount(mounts)) {
        (Some(mount), _) => v1_domains(mount, online)?,
        (None, Some(mount)) => v2_domains(mount)?,
        (None, None) => Cut::default(),
    };
    let mut domains = merged(cut.domains.into_iter().map(|d| d.without(isolated)));
    if !cut.rest_is_unbalanced {
        let taken: CpuSet = domains.iter().flat_map(CpuSet::iter).collect();
        domains.push(
            online
                .without(isolated)
                .without(&taken)
                .without(&cut.isolated),
        );
    }
    // What belongs to no domain is in the default one, together.
    let balanced: CpuSet = domains.iter().flat_map(CpuSet::iter).collect();
    domains.push(online.without(&balanced));
    domains.retain(|domain| !domain.is_empty());
    Ok(domains)
}

/// How cpusets cut the machine.
#[derive(Default)]
struct Cut {
    /// Sets balanced apart from the rest; they may overlap, and are then one.
    domains: Vec<CpuSet>,
    /// CpuSet in no domain.
    isolated: CpuSet,
    /// Whether the processors that are in none of them are not balanced either.
    rest_is_unbalanced: bool,
}

/// v1: the root is one domain while its `sched_load_balance` is 1; else each highest group with 1 is one.
fn v1_domains(mount: &Mount, online: &CpuSet) -> Fact<Cut> {
    let root = Path::new(&mount.point);
    if mount.root != "/" || !root.join("release_agent").exists() {
        return Err(hidden_root(mount));
    }
    let mut cut = Cut {
        rest_is_unbalanced: true,
        ..Cut::default()
    };
    let mut left = MOST_GROUPS;
    walk(root, &mut left, &mut |group| {
        let name = |file: &str| {
            // The controller's prefix is left out where the hierarchy was mounted with `noprefix`.
            let plain = group.join(file);
            if plain.exists() {
                plain
            } else {
                group.join(format!("cpuset.{file}"))
            }
        };
        if read_as(name("sched_load_balance"), |text| Some(text == "1"))? {
            let processors = read_as(name("cpus"), CpuSet::parse)?;
            cut.domains.push(online.both(&processors));
            return Ok(Below::Skip);
        }
        Ok(Below::Visit)
    })?;
    Ok(cut)
}

/// v2: each partition is a domain, an isolated one is in none.
fn v2_domains(mount: &Mount) -> Fact<Cut> {
    let root = Path::new(&mount.point);
    // Only groups below the root have a type.
    if mount.root != "/" || root.join("cgroup.type").exists() {
        return Err(hidden_root(mount));
    }
    let mut cut = Cut::default();
    let mut left = MOST_GROUPS;
    walk(root, &mut left, &mut |group| {
        let partition = group.join("cpuset.cpus.partition");
        if group != root && !partition.exists() {
            return Ok(Below::Skip);
        }
        if group != root {
            let processors = || read_as(group.join("cpuset.cpus.effective"), CpuSet::parse);
            match read(partition)?.trim() {
                "root" => cut.domains.push(processors()?),
                "isolated" => cut.isolated.extend(processors()?.iter()),
                _ => {}
            }
        }
        Ok(Below::Visit)
    })?;
    Ok(cut)
}

fn hidden_root(mount: &Mount) -> Unknown {
    Unknown(format!(
        "{} does not show the root of the control groups, as in a container",
        mount.point
    ))
}

enum Below {
    Visit,
    Skip,
}

/// Visits a group and what is below it. Groups that vanish meanwhile are left out.
fn walk(group: &Path, left: &mut usize, visit: &mut dyn FnMut(&Path) -> Fact<Below>) -> Fact<()> {
    *left = left
        .checked_sub(1)
        .ok_or_else(|| Unknown(format!("there are more than {MOST_GROUPS} control groups")))?;
    match visit(group) {
        Ok(Below::Visit) => {}
        Ok(Below::Skip) => return Ok(()),
        Err(_) if !group.exists() => return Ok(()),
        Err(reason) => return Err(reason),
    }
    let unseen = |error| Unknown(format!("cannot list {}: {error}", group.display()));
    let entries = match fs::read_dir(group) {
        Err(_) if !group.exists() => return Ok(()),
        entries => entries.map_err(unseen)?,
    };
    for entry in entries {
        let entry = entry.map_err(unseen)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), left, visit)?;
        }
    }
    Ok(())
}

/// Sets that overlap are one domain.
fn merged(sets: impl Iterator<Item = CpuSet>) -> Vec<CpuSet> {
    let mut domains: Vec<CpuSet> = Vec::new();
    for mut set in sets {
        domains.retain(|domain| {
            let apart = !domain.overlaps(&set);
            if !apart {
                set.extend(domain.iter());
            }
            apart
        });
        domains.push(set);
    }
    domains
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn mount(point: &Path, file_system: &str, option: &str) -> Mount {
        Mount {
            root: "/".to_owned(),
            point: point.display().to_string(),
            file_system: file_system.to_owned(),
            options: vec!["rw".to_owned(), option.to_owned()],
        }
    }

    fn group(directory: &Path, files: &[(&str, &str)]) {
        create_dir_all(directory).unwrap();
        for (name, text) in files {
            write(directory.join(name), text).unwrap();
        }
    }

    #[test]
    fn overlapping_sets_merge_through_a_third() {
        let sets = ["0-1", "4-5", "1-4", "7"].map(set);
        assert_eq!(merged(sets.into_iter()), [set("0-1,4-5,2-3"), set("7")]);
    }

    #[test]
    fn a_balanced_v1_root_is_one_domain_beside_the_isolated() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let balance = ("cpuset.sched_load_balance", "1\n");
        group(
            root,
            &[("release_agent", ""), balance, ("cpuset.cpus", "0-7\n")],
        );
        group(&root.join("a"), &[balance, ("cpuset.cpus", "0\n")]);
        let mounts = [mount(root, "cgroup", "cpuset")];
        let domains = root_domains(&set("0-7"), &set("6-7"), &mounts).unwrap();
        assert_eq!(domains, [set("0-5"), set("6-7")]);
    }

    #[test]
    fn an_unbalanced_v1_root_is_cut_by_its_groups() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let off = ("cpuset.sched_load_balance", "0\n");
        let on = ("cpuset.sched_load_balance", "1\n");
        group(
            root,
            &[("release_agent", ""), off, ("cpuset.cpus", "0-3\n")],
        );
        group(&root.join("a"), &[on, ("cpuset.cpus", "0-1\n")]);
        group(&root.join("b"), &[off, ("cpuset.cpus", "2-3\n")]);
        group(&root.join("b/c"), &[on, ("cpuset.cpus", "2\n")]);
        let mounts = [mount(root, "cgroup", "cpuset")];
        let mut domains = root_domains(&set("0-3"), &set(""), &mounts).unwrap();
        domains.sort();
        assert_eq!(domains, [set("0-1"), set("2"), set("3")]);
    }

    #[test]
    fn v2_partitions_are_domains() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let partition = |directory: &str, kind: &str, processors: &str| {
            group(
                &root.join(directory),
                &[
                    ("cpuset.cpus.partition", kind),
                    ("cpuset.cpus.effective", processors),
                ],
            );
        };
        partition("a", "root\n", "2-3\n");
        partition("a/b", "isolated\n", "4\n");
        partition("c", "member\n", "0-1\n");
        partition("d", "root invalid (no exclusive processors)\n", "0-1\n");
        let mounts = [mount(root, "cgroup2", "")];
        let domains = root_domains(&set("0-4"), &set(""), &mounts).unwrap();
        assert_eq!(domains, [set("2-3"), set("0-1"), set("4")]);
    }

    #[test]
    fn a_container_does_not_know_its_root_domain() {
        let place = tempfile::tempdir().unwrap();
        group(place.path(), &[("cgroup.type", "domain\n")]);
        let mounts = [mount(place.path(), "cgroup2", "")];
        assert!(root_domains(&set("0-1"), &set(""), &mounts).is_err());
    }

    #[test]
    fn a_v2_group_without_the_controller_is_its_ancestors() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        group(&root.join("a"), &[("cpu.weight", "100\n")]);
        group(&root.join("a/b"), &[]);
        group(&root.join("c"), &[]);
        let config = "CONFIG_RT_GROUP_SCHED=y\n";
        let mounted = mount(root, "cgroup2", "");
        let of = |path, config, line| {
            let is_limiting = is_limiting(Ok(config), line).unwrap();
            v2_group(is_limiting, Some(&mounted), Some(path)).unwrap()
        };
        let directory = root.join("a").display().to_string();
        assert_eq!(of("/a/b", config, ""), RealTimeGroup::V2 { directory });
        assert_eq!(of("/c", config, ""), RealTimeGroup::Root);
        let without = "# CONFIG_RT_GROUP_SCHED is not set\n";
        assert_eq!(of("/a/b", without, ""), RealTimeGroup::NotLimited);
        let off = "quiet rt_group_sched=0";
        assert_eq!(of("/a/b", config, off), RealTimeGroup::NotLimited);
    }
}
