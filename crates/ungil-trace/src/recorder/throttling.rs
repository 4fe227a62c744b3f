//! The CPU limit of a process, and how often it has stopped it: the files of its control groups.
//!
//! A limit may be set for any group from the process's own up to the root that is visible here
//! (in a container, that of the container); each counts what it did. Where nothing is counted,
//! nothing is known.

use std::fs;
use std::path::{Path, PathBuf};

/// What a limit has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// In how many periods (of 100 ms, as a rule) it stopped the group's programs.
    pub times: u64,
    /// For how long, in ns, summed over the processors on which the group's programs stood.
    pub stopped_ns: u64,
}

/// The limits that a process is under, as they stood when it was first seen.
#[derive(Debug)]
pub struct CpuLimits {
    groups: Vec<(PathBuf, Throttling)>,
}

impl CpuLimits {
    /// Those of the process `pid`. `None` if it is gone, or nothing is counted.
    pub fn of(pid: u32) -> Option<Self> {
        let memberships = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::of_groups(groups(&memberships, &mounts)?)
    }

    fn of_groups(groups: Vec<PathBuf>) -> Option<Self> {
        let counted = |path: PathBuf| count(&path).map(|before| (path, before));
        let groups: Vec<_> = groups.into_iter().filter_map(counted).collect();
        (!groups.is_empty()).then_some(Self { groups })
    }

    /// The lowest of them, in thousandths of a processor. `None` if no group has one.
    pub fn lowest_thousandths(&self) -> Option<u32> {
        self.groups.iter().filter_map(|(path, _)| limit_thousandths(path)).min()
    }

    /// What the strictest of them has done since. `None` if the groups are gone.
    pub fn since(&self) -> Option<Throttling> {
        let since = |(path, before): &(PathBuf, Throttling)| {
            let now = count(path)?;
            Some(Throttling {
                times: now.times.saturating_sub(before.times),
                stopped_ns: now.stopped_ns.saturating_sub(before.stopped_ns),
            })
        };
        self.groups.iter().filter_map(since).max_by_key(|done| done.stopped_ns)
    }
}

/// The folders of the group that limits the CPU time of a process, and of all groups around it.
/// `memberships` is its `/proc/PID/cgroup`, `mounts` is `/proc/self/mountinfo`.
fn groups(memberships: &str, mounts: &str) -> Option<Vec<PathBuf>> {
    // Version 1 has a hierarchy for the controller `cpu`; where it has not, version 2 may.
    let has_cpu = |list: &str| list.split(',').any(|name| name == "cpu");
    let in_v1 = membership(memberships, has_cpu).and_then(|group| {
        folders(group, mounts, |kind, options| kind == "cgroup" && has_cpu(options))
    });
    in_v1.or_else(|| {
        let group = membership(memberships, str::is_empty)?;
        folders(group, mounts, |kind, _| kind == "cgroup2")
    })
}

/// The group of a process in the hierarchy with these controllers.
fn membership(memberships: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    memberships.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        is_wanted(controllers).then_some(group)
    })
}

/// The folders of `group` and of the groups around it, up to the root of the mount that is wanted.
fn folders(
    group: &str,
    mounts: &str,
    is_wanted: impl Fn(&str, &str) -> bool,
) -> Option<Vec<PathBuf>> {
    mounts.lines().find_map(|line| {
        let (place, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let mut place = place.split(' ').skip(3);
        let (root, point) = (unescaped(place.next()?), unescaped(place.next()?));
        if !is_wanted(kind, options) {
            return None;
        }
        // A container may be shown the whole machine's group and see its own part only.
        let inside = Path::new(group).strip_prefix(&root).ok()?;
        if inside.components().any(|part| part.as_os_str() == "..") {
            return None;
        }
        // Not `join`: an empty path would leave a slash at the end.
        let own: PathBuf = Path::new(&point).components().chain(inside.components()).collect();
        let around = own.ancestors().take(inside.components().count() + 1);
        Some(around.map(Path::to_owned).collect())
    })
}

/// A path of `mountinfo`, in which blanks and backslashes are octal numbers.
fn unescaped(path: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(path.to_owned(), |path, (code, plain)| path.replace(code, plain))
}

/// How much processor time a group gets in each period, in thousandths of it: `cpu.max` of version
/// 2, or the two files of version 1. `None` if the group has no limit of its own.
fn limit_thousandths(folder: &Path) -> Option<u32> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let two = || Some(format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?));
    let text = read("cpu.max").or_else(two)?;
    let mut words = text.split_whitespace();
    // Without a limit the quota is `max` in version 2, and -1 in version 1.
    let (quota, period): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let thousandths = quota.saturating_mul(1_000).checked_div(period)?;
    u32::try_from(thousandths).ok().filter(|&it| it > 0)
}

/// What `cpu.stat` in `folder` says; version 1 counts in ns, version 2 in us.
fn count(folder: &Path) -> Option<Throttling> {
    let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let number = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    let in_us = || Some(number("throttled_usec")?.saturating_mul(1_000));
    let stopped_ns = number("throttled_time").or_else(in_us)?;
    Some(Throttling { times: number("nr_throttled")?, stopped_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpuacct
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:8 - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const V2: &str = "\
22 1 0:21 / /proc rw - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev - cgroup2 cgroup2 rw,nsdelegate
";

    fn paths(memberships: &str, mounts: &str) -> Option<Vec<String>> {
        let paths = groups(memberships, mounts)?;
        Some(paths.into_iter().map(|path| path.display().to_string()).collect())
    }

    #[test]
    fn the_group_of_version_2_and_those_around_it_are_found() {
        let found = paths("0::/system.slice/app.service\n", V2).unwrap();
        let root = "/sys/fs/cgroup";
        assert_eq!(
            found,
            [
                format!("{root}/system.slice/app.service"),
                format!("{root}/system.slice"),
                root.into()
            ]
        );
        assert_eq!(paths("0::/\n", V2).unwrap(), [root]);
    }

    #[test]
    fn the_hierarchy_of_version_1_that_has_the_cpu_controller_goes_first() {
        let memberships = "3:cpuset:/\n2:cpuacct:/x\n1:cpu:/limited\n0::/\n";
        let cpu = "/sys/fs/cgroup/cpu";
        assert_eq!(paths(memberships, V1).unwrap(), [format!("{cpu}/limited"), cpu.into()]);
        let together = "32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpuacct,cpu\n";
        assert_eq!(paths("4:cpu,cpuacct:/\n", together).unwrap(), ["/cg/cpu,cpuacct"]);
    }

    #[test]
    fn a_container_that_is_told_the_machines_path_sees_its_own_part() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        assert_eq!(paths("1:cpu:/docker/abc\n", mounts).unwrap(), ["/sys/fs/cgroup/cpu"]);
        let inner = paths("1:cpu:/docker/abc/inner\n", mounts).unwrap();
        assert_eq!(inner, ["/sys/fs/cgroup/cpu/inner", "/sys/fs/cgroup/cpu"]);
    }

    #[test]
    fn a_group_that_is_not_visible_is_not_guessed() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(paths("0::/docker/other\n", mounts), None);
        assert_eq!(paths("0::/../sibling\n", V2), None);
        assert_eq!(paths("0::/\n", "22 1 0:21 / /proc rw - proc proc rw\n"), None);
        for torn in ["", "\n", "0", "0:", ":::", "nonsense"] {
            assert_eq!(paths(torn, V1), None, "{torn:?}");
        }
    }

    #[test]
    fn a_mount_point_with_a_blank_is_found() {
        let mounts = r"30 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw";
        assert_eq!(paths("0::/a\n", mounts).unwrap(), ["/my groups/a", "/my groups"]);
    }

    #[test]
    fn the_strictest_limit_is_told_with_what_it_did_since() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("pod/app");
        fs::create_dir_all(&own).unwrap();
        let write = |folder: &Path, times: u32, usec: u32| {
            let text = format!(
                "usage_usec 7\nuser_usec 5\nsystem_usec 2\nnr_periods 90\nnr_throttled {times}\n\
                 throttled_usec {usec}\nnr_bursts 0\nburst_usec 0\n"
            );
            fs::write(folder.join("cpu.stat"), text).unwrap();
        };
        write(&own, 5, 500);
        write(&root.path().join("pod"), 10, 9_000);
        // The root of version 2 counts no throttling.
        fs::write(root.path().join("cpu.stat"), "usage_usec 7\nuser_usec 5\n").unwrap();
        let groups = own.ancestors().take(3).map(Path::to_owned).collect();
        let limits = CpuLimits::of_groups(groups).unwrap();
        assert_eq!(limits.since(), Some(Throttling::default()));
        write(&own, 6, 600);
        write(&root.path().join("pod"), 14, 11_000);
        assert_eq!(limits.since(), Some(Throttling { times: 4, stopped_ns: 2_000_000 }));
        fs::remove_dir_all(root.path().join("pod")).unwrap();
        assert_eq!(limits.since(), None);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_is_told() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("pod/app");
        fs::create_dir_all(&own).unwrap();
        for (folder, limit) in [
            (own.as_path(), "max 100000\n"),
            (&root.path().join("pod"), "150000 100000\n"),
            (root.path(), "400000 100000\n"),
        ] {
            fs::write(folder.join("cpu.stat"), "nr_throttled 0\nthrottled_usec 0\n").unwrap();
            fs::write(folder.join("cpu.max"), limit).unwrap();
        }
        let groups = own.ancestors().take(3).map(Path::to_owned).collect();
        assert_eq!(CpuLimits::of_groups(groups).unwrap().lowest_thousandths(), Some(1_500));
        let alone = CpuLimits::of_groups(vec![own]).unwrap();
        assert_eq!(alone.lowest_thousandths(), None, "it has no limit of its own");
    }

    #[test]
    fn a_limit_of_version_1_is_in_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        assert_eq!(limit_thousandths(path), None);
        write("cpu.cfs_period_us", "50000\n");
        write("cpu.cfs_quota_us", "25000\n");
        assert_eq!(limit_thousandths(path), Some(500));
        write("cpu.cfs_quota_us", "-1\n");
        assert_eq!(limit_thousandths(path), None);
        for torn in ["", "5", "x 5", "5 0", "5 x"] {
            write("cpu.max", torn);
            assert_eq!(limit_thousandths(path), None, "{torn:?}");
        }
    }

    #[test]
    fn version_1_counts_in_nanoseconds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("cpu.stat"), "nr_periods 27\nnr_throttled 24\nthrottled_time 1451\n")
            .unwrap();
        assert_eq!(count(path), Some(Throttling { times: 24, stopped_ns: 1_451 }));
        for text in ["", "nr_throttled 3\n", "nr_throttled x\nthrottled_time 3\n"] {
            fs::write(path.join("cpu.stat"), text).unwrap();
            assert_eq!(count(path), None, "{text:?}");
        }
        assert!(CpuLimits::of_groups(vec![path.to_owned()]).is_none(), "nothing is counted there");
    }
}
